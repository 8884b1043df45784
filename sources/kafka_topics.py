"""Topics of Kafka as a source. `sources.kafka_ranges` reads them, `sources.kafka_offsets` says how far they reach."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args, overload

from dstream.spi.functions import refuse_one_that_would_not_run
from dstream.spi.source import Source
from dstream.spi.stream_source import Offset, Reached, StreamSource
from dstream.spi.wrong_arguments import checked_function
from dstream.values.blaming import shown
from dstream.values.kafka_settings import checked_topic, kafka_settings
from sources.kafka_clients import DEFAULTS, FIXED
from sources.kafka_offsets import Cluster, Place
from sources.kafka_ranges import KafkaRange, KafkaRecord, Making
from sources.memory import NamesOfStreams

__all__ = ["KafkaTopics", "KafkaUpToLatest", "kafka"]

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
T = TypeVar("T")

Topics: TypeAlias = str | Sequence[str] | re.Pattern[str]
Config: TypeAlias = Mapping[str, Any]
Start: TypeAlias = Literal["earliest", "latest"] | datetime.datetime | Mapping[Place, int]
Make: TypeAlias = Callable[[bytes], T]
Latest: TypeAlias = Literal["latest"]


@overload
def kafka(
    topics: Topics, config: Config, *, start: Start = ..., until: None = ...
) -> StreamSource[KafkaRecord[bytes, bytes]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, value: Make[V], start: Start = ..., until: None = ...
) -> StreamSource[KafkaRecord[bytes, V]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, key: Make[K], start: Start = ..., until: None = ...
) -> StreamSource[KafkaRecord[K, bytes]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, key: Make[K], value: Make[V], start: Start = ..., until: None = ...
) -> StreamSource[KafkaRecord[K, V]]: ...
@overload
def kafka(
    topics: Topics,
    config: Config,
    *,
    key: Make[Any] | None = ...,
    value: Make[Any] | None = ...,
    projection: Callable[[KafkaRecord[Any, Any]], R | None],
    start: Start = ...,
    until: None = ...,
) -> StreamSource[R]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, start: Start = ..., until: Latest
) -> Source[KafkaRecord[bytes, bytes]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, value: Make[V], start: Start = ..., until: Latest
) -> Source[KafkaRecord[bytes, V]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, key: Make[K], start: Start = ..., until: Latest
) -> Source[KafkaRecord[K, bytes]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, key: Make[K], value: Make[V], start: Start = ..., until: Latest
) -> Source[KafkaRecord[K, V]]: ...
@overload
def kafka(
    topics: Topics,
    config: Config,
    *,
    key: Make[Any] | None = ...,
    value: Make[Any] | None = ...,
    projection: Callable[[KafkaRecord[Any, Any]], R | None],
    start: Start = ...,
    until: Latest,
) -> Source[R]: ...
def kafka(
    topics: Topics,
    config: Config,
    *,
    key: Make[Any] | None = None,
    value: Make[Any] | None = None,
    projection: Callable[[KafkaRecord[Any, Any]], Any] | None = None,
    start: Start = "earliest",
    until: Latest | None = None,
) -> StreamSource[Any] | Source[Any]:
    """Read the messages of topics in Kafka, without an end or up to what is there now.

    Messages of one partition come in the order of their offsets. Up to the latest they come partition by partition;
    how far that is, is asked when a terminal operation or a job starts. Without `until`, a job also reads the
    partitions and topics that come up later. The package comes with `pip install 'dstream-spark[kafka]'`.

    **Parallelism**: one task for each range of offsets of a partition; up to the latest, large partitions are divided
    into several ranges. Clients stay open in the workers from range to range of a stream.
    **Guarantee**: each message once. Offsets are kept by the job and not in Kafka, no consumer group is joined. Of
    transactions those that were committed are read. Messages that Kafka removed before they were read are a failure.
    **On re-run**: a job goes on behind what it has read, and refuses a topic that was made anew under its name. A
    stream, or a job up to the latest, reads what is there then.

    Args:
        topics: the name of a topic, several names, or a compiled pattern that the whole name matches.
        config: settings of confluent-kafka, at least `{"bootstrap.servers": "host:9092"}`. They are never shown.
            A value `env:NAME` or `file:/path` is a secret that each process looks up.
        key: makes a key of its bytes, such as `bytes.decode`; unset, keys are bytes. One that is missing stays None.
        value: the same for values, such as `json.loads`.
        projection: what to make of each record, where it is read; a record of which it makes None is dropped.
            `native_timestamps()` gives each item the time of its record.
        start: where a new job begins: `"earliest"`, `"latest"`, at the first message that is not older than a
            datetime with a time zone, or at an offset for each partition, `{("orders", 0): 17}`; partitions that are
            not named begin at the earliest.
        until: `"latest"` ends where the topics end when it starts.

    Raises:
        SetupError: the package is not installed.
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices, or `config` has what no client takes.
        SourceError: when it runs: a topic is not there, the cluster does not answer for 30 s, or messages are lost.

    Example:
        >>> from sources import kafka
        >>> orders = kafka("orders", {"bootstrap.servers": "localhost:9092"}, value=bytes.decode, until="latest")
        >>> orders
        kafka('orders', until='latest')
        >>> with connect(engine="local") as ctx:
        ...     big = ctx.read(orders).filter(lambda record: len(record.value) > 100)
    """
    names = _checked_topics(topics)
    functions: dict[str, Any] = {"key": key, "value": value, "projection": projection}
    for argument, fn in functions.items():
        if fn is not None:
            refuse_one_that_would_not_run(checked_function(fn, argument), argument)
    if until not in (None, *get_args(Latest)):
        raise ValueError(f"until must be 'latest' or None, not {shown(until)}")
    checked = _checked_start(start)
    settings = kafka_settings("kafka", config, "Consumer", [*FIXED, "error_cb"], {**DEFAULTS, **FIXED})
    written = [shown(topics.pattern) if isinstance(topics, re.Pattern) else shown(topics)]
    label = f"kafka({', '.join(written + (['until=' + repr(until)] if until else []))})"
    kind: type[KafkaTopics[Any]] = RecordTopics if projection is None else ProjectedTopics
    source = kind(label, Cluster(label, settings, names), checked, Making(**functions))
    return source if until is None else KafkaUpToLatest(source)


def _checked_topics(topics: Any) -> tuple[str, ...] | re.Pattern[str]:
    if isinstance(topics, re.Pattern):
        if not isinstance(topics.pattern, str):
            raise TypeError("topics must be a pattern of text, not of bytes")
        return topics
    if isinstance(topics, str):
        return (checked_topic(topics, "topics"),)
    if not isinstance(topics, Sequence) or isinstance(topics, bytes):
        raise TypeError(f"topics must be a name, several names, or a compiled pattern, not {type(topics).__name__}")
    names = tuple(checked_topic(name, "each of topics") for name in topics)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"topics must be at least one name, each of them once, not {shown(topics)}")
    return names


def _checked_start(start: Any) -> Start:
    if isinstance(start, datetime.datetime):
        if start.utcoffset() is None:
            raise ValueError(f"start must have a time zone, such as datetime.now(timezone.utc), not {shown(start)}")
        return start
    if isinstance(start, Mapping):
        for place, offset in start.items():
            match place, offset:
                case (str(), int()), int() if offset >= 0 and not isinstance(offset, bool):
                    continue
            raise TypeError(f"start must map (topic, partition) to an offset, not {shown(place)} to {shown(offset)}")
        return dict(start)
    if not isinstance(start, str):
        raise TypeError(
            f"start must be 'earliest', 'latest', a datetime, or a mapping of offsets, not {type(start).__name__}"
        )
    if start not in ("earliest", "latest"):
        raise ValueError(f"start must be 'earliest', 'latest', a datetime, or a mapping of offsets, not {shown(start)}")
    return "earliest" if start == "earliest" else "latest"


@dataclass(frozen=True, slots=True, repr=False)
class KafkaTopics(NamesOfStreams, Generic[T]):
    """A source without an end. Its partitions are called `topic-number`.

    Attributes:
        label: the source as the user wrote it.
        cluster: where the topics are.
        start: where a new job begins.
        making: what becomes of the messages.
    """

    label: str
    cluster: Cluster
    start: Start
    making: Making

    @property
    def identity(self) -> Mapping[str, str]:
        """The ids of the topics, by their names: the offsets of one are of no use in another that was made later.

        Raises:
            SourceError: a topic is not there, or the cluster does not answer.
        """
        return self.cluster.ids()

    def begin(self) -> Mapping[str, Offset]:
        """Return where a new job begins in each partition that there is."""
        return {_name(place): offset for place, offset in self.first_offsets().items()}

    def first_offsets(self) -> dict[Place, int]:
        """Return the same by topic and number.

        Raises:
            SourceError: a topic or a partition is not there, or the offset of one.
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

        A partition that came up is at 0, and can be read from the next call on.
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
        return self.range((topic, int(number)), start or 0, stop, is_followed=True)  # None is one that came up.

    def range(self, place: Place, start: int, stop: int, *, is_followed: bool) -> KafkaRange[T]:
        """Return the items of a partition from `start` up to `stop`."""
        return KafkaRange(self.label, self.cluster.settings, *place, start, stop, self.making, is_followed)

    def __repr__(self) -> str:
        return self.label


class RecordTopics(KafkaTopics[KafkaRecord[Any, Any]]):
    """What `kafka` returns without a projection: its items are records, which say their time."""

    __slots__ = ()

    def timestamp(self, item: KafkaRecord[Any, Any]) -> int | None:
        """Return the time of a record."""
        return item.timestamp


class ProjectedTopics(KafkaTopics[T]):
    """What `kafka` returns with a projection, whose items do not say the time that their records had."""

    __slots__ = ()

    has_times_beside = True


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


@dataclass(frozen=True, slots=True, repr=False)
class KafkaUpToLatest(NamesOfStreams, Generic[T]):
    """What `kafka(..., until="latest")` returns.

    Attributes:
        topics: the same without an end.
    """

    topics: KafkaTopics[T]

    ordered = True
    bounded = True
    in_caller = False
    on_bad = "fail"
    into = None

    def splits(self, parallelism: int) -> list[KafkaRange[T]]:
        """Ask how far the partitions reach, and divide them into ranges."""
        first = self.topics.first_offsets()
        behind = self.topics.cluster.behind_last(first)
        count = sum(max(0, behind[place] - start) for place, start in first.items())
        most = max(_LEAST, -(-count // parallelism))
        return [
            self.topics.range(place, start, stop, is_followed=False)
            for place in first
            for start, stop in _divided(first[place], behind[place], most)
        ]

    def __repr__(self) -> str:
        return self.topics.label


_LEAST = 50_000
"""Offsets of a range at least: a client fetches on while it reads, and what it fetched behind the range is lost."""


def _divided(start: int, stop: int, most: int) -> list[tuple[int, int]]:
    """Return ranges of about the same length, each at most `most`."""
    pieces = -(-(stop - start) // most)
    borders = [start + (stop - start) * piece // max(1, pieces) for piece in range(pieces + 1)]
    return list(itertools.pairwise(borders))
