"""Topics of Kafka as a source: partitions, offsets at the start and now, ranges for tasks."""

from __future__ import annotations

import datetime
import itertools
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from dstream.base.threads import result_within
from dstream.connectors.kafka import consumers
from dstream.connectors.kafka.consumers import KafkaRange, KafkaRecord, RecordMaker
from dstream.connectors.kafka.settings import ClusterClient, KafkaSettings, OpenClients, may_pass
from dstream.connectors.memory import NamesOfStreams
from dstream.errors import SourceError, SourceUnavailableError
from dstream.spi.source import InputSize, Offset, Reached

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

__all__ = ["KafkaTopics", "KafkaUpToLatest", "Place", "TopicOffsets"]


R = TypeVar("R")

Place: TypeAlias = tuple[str, int]
"""A topic, and the number of a partition."""


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """The topics that a source reads, with the settings of their cluster.

    Attributes:
        label: the source as the user wrote it, for messages.
        topics: their names, or what all of the name must match.
    """

    label: str
    settings: KafkaSettings
    topics: tuple[str, ...] | re.Pattern[str]

    def places(self) -> list[Place]:
        """Return the current partitions, by topic and number.

        Raises:
            SourceError: a topic does not exist, or the cluster does not respond.
        """
        found = self._topics()
        return [(name, number) for name in self._names(sorted(found)) for number in found[name]]

    def ids(self) -> dict[str, str]:
        """Return the cluster's identity of each topic: a recreated topic has another id.

        Topics of clusters without ids are left out: clusters before Kafka 2.8, and the mock cluster of Kafka's client.

        Raises:
            SourceError: a topic does not exist, or the cluster does not respond.
        """
        names = sorted({name for name, _ in self.places()})
        return self._asked(lambda client, seconds: _ids(client, names, seconds))

    def _topics(self) -> dict[str, list[int]]:
        """Return all topics and their partitions; wait a little for a topic that may have just been created."""
        last = time.monotonic() + _SPREADING
        while True:
            topics = self._asked(self._listed)
            found = {name: sorted(topic.partitions) for name, topic in topics.items() if topic.error is None}
            if isinstance(self.topics, re.Pattern) or found.keys() >= {*self.topics} or time.monotonic() > last:
                return found
            time.sleep(_PAUSE)

    def _listed(self, client: AdminClient, seconds: float) -> dict[str, Any]:
        """Return all topics. A topic of this source without a leader is included, and has to be requested again."""
        from confluent_kafka import KafkaError, KafkaException

        topics = client.list_topics(timeout=seconds).topics
        for name, topic in topics.items():
            if topic.error is None or topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            if self._is_meant(name) and may_pass(topic.error):
                raise KafkaException(topic.error, f"the topic {name}")
        return topics

    def _is_meant(self, name: str) -> bool:
        return bool(self.topics.fullmatch(name)) if isinstance(self.topics, re.Pattern) else name in self.topics

    def _names(self, there: list[str]) -> list[str]:
        if isinstance(self.topics, re.Pattern):
            # Kafka's own topics, such as `__consumer_offsets`, are called so.
            matching = [name for name in there if self.topics.fullmatch(name) and not name.startswith("__")]
            if not matching:
                raise self.failure(f"no topic matches {self.topics.pattern!r}")
            return matching
        for name in self.topics:
            if name not in there:
                close = get_close_matches(name, there, 1)
                raise self.failure(f"there is no topic {name!r}" + (f"; there is {close[0]!r}" if close else ""))
        return list(self.topics)

    def first(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offset of the first existing message."""
        return self._offsets(dict.fromkeys(places, _specs().earliest()))

    def behind_last(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offset after the last message that can be read."""
        return self._offsets(dict.fromkeys(places, _specs().latest()))

    def since(self, places: Iterable[Place], when: datetime.datetime) -> dict[Place, int]:
        """Return the offset of the first message that is not older than `when`, or the end offset."""
        found = self._offsets(dict.fromkeys(places, _specs().for_timestamp(_milliseconds(when))), least=_NONE)
        behind = self.behind_last(place for place, offset in found.items() if offset < 0)
        return {place: behind.get(place, offset) for place, offset in found.items()}

    def _offsets(self, wanted: Mapping[Place, Any], least: int = 0) -> dict[Place, int]:
        if not wanted:
            return {}
        from confluent_kafka import IsolationLevel, TopicPartition

        level = dict(self.settings.items).get("isolation.level", "read_committed").upper()

        def ask(client: AdminClient, seconds: float) -> dict[Place, int]:
            asked = client.list_offsets(
                {TopicPartition(*place): spec for place, spec in wanted.items()},
                isolation_level=IsolationLevel[level],
                request_timeout=seconds,
            )
            return {(place.topic, place.partition): _offset(place, answer, least) for place, answer in asked.items()}

        return self._asked(ask)

    def _asked(self, ask: Callable[[AdminClient, float], R]) -> R:
        """Return an answer of the cluster; ask again for a while if that may help, as while it elects a leader."""
        from confluent_kafka import KafkaException

        last = time.monotonic() + consumers.PATIENCE
        asking = _asking(self.settings)
        asking.forget()
        while True:
            try:
                # A time-out below 0 has no end.
                return ask(asking.client, max(last - time.monotonic(), _PAUSE))
            except KafkaException as error:
                reason, *places = error.args
                words = ": ".join([*places, reason.str()])
                if not may_pass(reason):
                    raise self.failure(words) from None
                is_late, last_error = time.monotonic() + _PAUSE > last, asking.last_error()
                if is_late or reason.code() == reason._NOENT:
                    _ASKING.clear()  # A client that took a broker for lost may not find it again (librdkafka 2.16).
                    asking = _asking(self.settings)
                if is_late:
                    raise self.failure(
                        words + (f" ({last_error})" if last_error else ""), SourceUnavailableError
                    ) from None
            time.sleep(_PAUSE)

    def failure(self, reason: str, kind: type[SourceError] = SourceError) -> SourceError:
        """Return an error that names the source and the cluster."""
        return kind(self.settings.without_secrets(f"{self.label}: {self.settings.servers}: {reason}"))


def _ids(client: AdminClient, names: list[str], seconds: float) -> dict[str, str]:
    from confluent_kafka import KafkaException, TopicCollection

    cluster = client.list_topics(timeout=seconds)
    if cluster.controller_id >= 0 and cluster.controller_id not in cluster.brokers:
        return {}  # The controller of the request does not exist, and will not: the cluster is a mock.
    found: dict[str, str] = {}
    for name, answer in client.describe_topics(TopicCollection(names), request_timeout=seconds).items():
        try:
            found[name] = str(answer.result().topic_id)
        except KafkaException as error:
            # Any other failure means that the cluster has no ids, as before Kafka 2.8.
            if may_pass(error.args[0]):
                raise KafkaException(error.args[0], f"the topic {name}") from None
    return {name: identity for name, identity in found.items() if identity != _NO_ID}


_NO_ID = "A" * 22
"""An id of zeros."""


def _offset(place: TopicPartition, answer: Future[Any], least: int) -> int:
    """Return the offset of an answer.

    A response may contain the invalid offset -1001, without an error, when a broker did not reply in time
    (confluent-kafka
    2.16).
    """
    from confluent_kafka import KafkaError, KafkaException

    name = f"{place.topic}-{place.partition}"
    try:
        offset = int(answer.result().offset)
    except KafkaException as error:
        raise KafkaException(error.args[0], name) from None
    if offset < least:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT), name)
    return offset


_NONE = -1
"""The offset of no message since a time."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _milliseconds(when: datetime.datetime) -> int:
    """Return the first whole millisecond that is not before `when`; negative ones have a special meaning."""
    return max(0, -((_EPOCH - when) // datetime.timedelta(milliseconds=1)))


def _specs() -> Any:
    from confluent_kafka import admin

    untyped: Any = admin  # It does not export the types of these (confluent-kafka 2.16).
    return untyped.OffsetSpec


_PAUSE = 0.1
_SPREADING = 0.5
"""Seconds until all brokers have a topic that was made."""


def _asking(settings: KafkaSettings) -> ClusterClient:
    """Return the client of this process for a cluster, which remains open: it is used before every epoch."""
    return _ASKING.of(settings, make=lambda: ClusterClient(settings))


_ASKING: OpenClients[ClusterClient] = OpenClients()


K = TypeVar("K")
V = TypeVar("V")


T = TypeVar("T")

Topics: TypeAlias = str | Sequence[str] | re.Pattern[str]
Config: TypeAlias = Mapping[str, Any]
Start: TypeAlias = Literal["earliest", "latest"] | datetime.datetime | Mapping[Place, int]
Make: TypeAlias = Callable[[bytes], T]
Latest: TypeAlias = Literal["latest"]


@dataclass(frozen=True, slots=True, repr=False)
class KafkaTopics(NamesOfStreams, Generic[T]):
    """A source without an end. Its partitions are called `topic-number`.

    Attributes:
        label: the source as the user wrote it.
        cluster: the cluster of the topics.
        start: where a new job begins.
        making: makes items of the messages.
    """

    label: str
    cluster: TopicOffsets
    start: Start
    making: RecordMaker

    @property
    def identity(self) -> Mapping[str, str]:
        """The ids of the topics, by their names: the offsets of one are of no use in another that was made later.

        Raises:
            SourceError: a topic does not exist, or the cluster does not respond.
        """
        return self.cluster.ids()

    def begin(self) -> Mapping[str, Offset]:
        """Return where a new job begins in each existing partition."""
        return {_name(place): offset for place, offset in self.first_offsets().items()}

    def first_offsets(self) -> dict[Place, int]:
        """Return the first offsets by topic and number.

        Raises:
            SourceError: a topic, a partition or an offset does not exist.
        """
        places = self.cluster.places()
        if self.start == "latest":
            return self.cluster.behind_last(places)
        if isinstance(self.start, datetime.datetime):
            return self.cluster.since(places, self.start)
        first = self.cluster.first(places)
        return first if self.start == "earliest" else self._named(self.start, first)

    def _named(self, start: Mapping[Place, int], first: dict[Place, int]) -> dict[Place, int]:
        behind = self.cluster.behind_last(place for place in start if place in first)
        for place, offset in start.items():
            if place not in first:
                raise self.cluster.failure(f"start: there is no partition {_name(place)}")
            if not first[place] <= offset <= behind[place]:
                reach = f"from {first[place]} up to {behind[place]}"
                raise self.cluster.failure(f"start: {_name(place)} has offsets {reach}, not {offset}")
        return {**first, **start}

    def reach(self, offsets: Mapping[str, Offset], most: int | None = None) -> Mapping[str, Offset]:
        """Return how far each partition can be read now, at most `most` offsets on.

        A partition that was added is at 0, and can be read from the next call on.
        """
        there = {_name(place): place for place in self.cluster.places()}
        if gone := sorted(offsets.keys() - there.keys()):
            raise self.cluster.failure(f"the partition {gone[0]}, which was read before, is gone")
        first, behind = self.cluster.first(there.values()), self.cluster.behind_last(there.values())
        reached: dict[str, Offset] = {}
        left = 0
        for name, place in there.items():
            at = offsets.get(name, 0)
            self._refuse_loss(name, at, first[place], behind[place])
            stop = behind[place] if most is None else min(behind[place], at + most)
            reached[name] = stop if name in offsets else 0
            left += behind[place] - reached[name]
        return Reached(reached, left)

    def _refuse_loss(self, name: str, at: int, first: int, behind: int) -> None:
        if first > at:
            raise self.cluster.failure(
                f"{name} has no messages before offset {first} any more, and was read up to {at}: those between are "
                "lost. Let Kafka keep messages for longer, and start a new job from what is left"
            )
        if behind < at:
            raise self.cluster.failure(
                f"{name} ends at offset {behind}, and was read up to {at}: it was made anew. Start a new job"
            )

    def split(self, partition: str, start: Offset, stop: Offset) -> KafkaRange[T]:
        """Return the items of a range, which another one will follow."""
        topic, _, number = partition.rpartition("-")
        return self.range((topic, int(number)), start or 0, stop, is_followed=True)  # None is one that was added.

    def range(self, place: Place, start: int, stop: int, *, is_followed: bool) -> KafkaRange[T]:
        """Return the items of a partition from `start` up to `stop`."""
        return KafkaRange(self.label, self.cluster.settings, *place, start, stop, self.making, is_followed)

    def __repr__(self) -> str:
        return self.label


class RecordTopics(KafkaTopics[KafkaRecord[Any, Any]]):
    """Result of `kafka` without a projection: its items are records, which have their time."""

    __slots__ = ()

    def timestamp(self, item: KafkaRecord[Any, Any]) -> int | None:
        """Return the time of a record."""
        return item.timestamp


class ProjectedTopics(KafkaTopics[T]):
    """Result of `kafka` with a projection, whose items do not have the time of their records."""

    __slots__ = ()

    has_times_beside = True


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


@dataclass(frozen=True, slots=True, repr=False)
class KafkaUpToLatest(NamesOfStreams, Generic[T]):
    """Result of `kafka(..., until="latest")`.

    Attributes:
        topics: the same without an end.
    """

    topics: KafkaTopics[T]

    ordered = True
    bounded = True
    in_caller = False
    on_bad = "fail"
    into = None

    def input_size(self) -> InputSize | None:
        """Return the number of offsets, an upper bound of the messages; None without a quick response."""
        ranges = result_within(_QUICK, self._ranges)
        return None if ranges is None else InputSize(_count(ranges))

    def splits(self, parallelism: int) -> list[KafkaRange[T]]:
        """Request the ends of the partitions, and divide them into ranges."""
        ranges = self._ranges()
        most = max(_LEAST, -(-_count(ranges) // parallelism))
        return [
            self.topics.range(place, start, stop, is_followed=False)
            for place, whole in ranges.items()
            for start, stop in _divided(*whole, most)
        ]

    def _ranges(self) -> dict[Place, tuple[int, int]]:
        """Return the first offset of each partition, and its end offset."""
        first = self.topics.first_offsets()
        behind = self.topics.cluster.behind_last(first)
        return {place: (start, behind[place]) for place, start in first.items()}

    def __repr__(self) -> str:
        return self.topics.label


_LEAST = 50_000
"""Minimal offsets of a range: a client prefetches while it reads, and messages after the range are wasted."""


_QUICK = 1.0
"""Seconds for which an estimate waits for the cluster."""


def _count(ranges: Mapping[Place, tuple[int, int]]) -> int:
    return sum(max(0, behind - start) for start, behind in ranges.values())


def _divided(start: int, stop: int, most: int) -> list[tuple[int, int]]:
    """Return ranges of about the same length, each at most `most`."""
    pieces = -(-(stop - start) // most)
    borders = [start + (stop - start) * piece // max(1, pieces) for piece in range(pieces + 1)]
    return list(itertools.pairwise(borders))
