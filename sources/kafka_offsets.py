"""How far the partitions of topics in Kafka reach: what a driver asks the cluster before tasks read."""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dstream.errors import SourceError, SourceUnavailableError
from dstream.values.kafka_asking import Asking
from dstream.values.kafka_failures import may_pass
from dstream.values.kafka_settings import KafkaSettings
from sources import kafka_clients

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

__all__ = ["Cluster", "Place"]

R = TypeVar("R")

Place: TypeAlias = tuple[str, int]
"""A topic, and the number of a partition."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The topics that a source reads, and where to ask for them.

    Attributes:
        label: the source as the user wrote it, for messages.
        topics: their names, or what all of the name must match.
    """

    label: str
    settings: KafkaSettings
    topics: tuple[str, ...] | re.Pattern[str]

    def places(self) -> list[Place]:
        """Return the partitions that there are now, by topic and number.

        Raises:
            SourceError: a topic is not there, or the cluster does not answer.
        """
        found = self._topics()
        return [(name, number) for name in self._names(sorted(found)) for number in found[name]]

    def ids(self) -> dict[str, str]:
        """Return what the cluster knows each topic by: one that is made anew under its name has another id.

        Topics are left out whose cluster does not say it: one before Kafka 2.8, and one that Kafka's client plays.

        Raises:
            SourceError: a topic is not there, or the cluster does not answer.
        """
        names = sorted({name for name, _ in self.places()})
        return self._asked(lambda client, seconds: _ids(client, names, seconds))

    def _topics(self) -> dict[str, list[int]]:
        """Return all topics and their partitions; wait a little for one that may have been made this moment."""
        last = time.monotonic() + _SPREADING
        while True:
            topics = self._asked(self._listed)
            found = {name: sorted(topic.partitions) for name, topic in topics.items() if topic.error is None}
            if isinstance(self.topics, re.Pattern) or found.keys() >= {*self.topics} or time.monotonic() > last:
                return found
            time.sleep(_PAUSE)

    def _listed(self, client: AdminClient, seconds: float) -> dict[str, Any]:
        """Return all topics. One of ours that has no leader now is there all the same, and is to be asked for again."""
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
        """Return the offset of the first message that is still there."""
        return self._offsets(dict.fromkeys(places, _specs().earliest()))

    def behind_last(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offset behind the last message that can be read: that of the next one."""
        return self._offsets(dict.fromkeys(places, _specs().latest()))

    def since(self, places: Iterable[Place], when: datetime.datetime) -> dict[Place, int]:
        """Return the offset of the first message that is not older than `when`, or the one behind the last."""
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

        last = time.monotonic() + kafka_clients.PATIENCE
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
                is_late, said = time.monotonic() + _PAUSE > last, asking.said()
                if is_late or reason.code() == reason._NOENT:
                    _ASKING.clear()  # A client that took a broker for lost may not find it again (librdkafka 2.16).
                    asking = _asking(self.settings)
                if is_late:
                    raise self.failure(words + (f" ({said})" if said else ""), SourceUnavailableError) from None
            time.sleep(_PAUSE)

    def failure(self, reason: str, kind: type[SourceError] = SourceError) -> SourceError:
        """Return an error that names the source and the cluster."""
        return kind(self.settings.without_secrets(f"{self.label}: {self.settings.servers}: {reason}"))


def _ids(client: AdminClient, names: list[str], seconds: float) -> dict[str, str]:
    from confluent_kafka import KafkaException, TopicCollection

    cluster = client.list_topics(timeout=seconds)
    if cluster.controller_id >= 0 and cluster.controller_id not in cluster.brokers:
        return {}  # The one that is asked for them is not there, and will not be: such a cluster is played.
    found: dict[str, str] = {}
    for name, answer in client.describe_topics(TopicCollection(names), request_timeout=seconds).items():
        try:
            found[name] = str(answer.result().topic_id)
        except KafkaException as error:
            if may_pass(error.args[0]):
                raise KafkaException(error.args[0], f"the topic {name}") from None
    return {name: identity for name, identity in found.items() if identity != _NO_ID}


_NO_ID = "A" * 22
"""An id of zeros."""


def _offset(place: TopicPartition, answer: Future[Any], least: int) -> int:
    """Return the offset of an answer.

    An answer may hold offset -1001, which is none, and no error, when a broker did not reply in time (confluent-kafka
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
"""What stands for no message since a time."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _milliseconds(when: datetime.datetime) -> int:
    """Return the first whole millisecond that is not before `when`; negative ones mean something else to a cluster."""
    return max(0, -((_EPOCH - when) // datetime.timedelta(milliseconds=1)))


def _specs() -> Any:
    from confluent_kafka import admin

    untyped: Any = admin  # It does not export the types of these (confluent-kafka 2.16).
    return untyped.OffsetSpec


_PAUSE = 0.1
_SPREADING = 0.5
"""Seconds until all brokers know a topic that was made."""


def _asking(settings: KafkaSettings) -> Asking:
    """Return the client of this process for a cluster, which stays open: it is asked before every epoch."""
    key = (os.getpid(), settings)
    if key not in _ASKING:
        _ASKING[key] = Asking(settings)
        while len(_ASKING) > _MOST_OPEN:
            del _ASKING[next(iter(_ASKING))]
    return _ASKING[key]


_MOST_OPEN = 8
_ASKING: dict[tuple[Any, ...], Asking] = {}
