"""Clients that read a partition of Kafka, from where they stand. `sources.kafka_ranges` makes items of the messages.

A client that has read up to some offset stays open in its process: the next range of that partition begins there, and
then costs a fiftieth of what a new client costs. If other workers have read ranges meanwhile, it stands a little before
the range. It has most likely fetched what is between already, and passes over it; one that is told to go elsewhere
waits until the cluster has answered what it asked last, for up to half a second (librdkafka 2.16).
"""

from __future__ import annotations

import atexit
import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from dstream.errors import SourceError, SourceUnavailableError
from dstream.values.contexts import contextmanager
from dstream.values.kafka_failures import may_pass
from dstream.values.kafka_settings import KafkaSettings

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

__all__ = ["DEFAULTS", "FIXED", "PATIENCE", "standing"]

PATIENCE = 30.0
"""Seconds without an answer after which a cluster counts as gone."""

_BLOCK = 500
_WAIT = 0.02
_LOOKING = 5.0
_MOST_OPEN = 32
_MANY = 8
"""Behind so many clients of a process, others fetch less ahead, so that all of them hold some 200 MB at most."""
_NEAR = 5_000
"""So many offsets at most are passed over; to make a client takes as long as to read some thousand more."""
_RECENT = 10.0
"""Seconds for which a client serves that stands before the range: others would have fetched much for nobody."""


class Wanted(Protocol):
    """A range of offsets of one partition."""

    @property
    def label(self) -> str:
        """The source, for messages."""
        ...

    @property
    def settings(self) -> KafkaSettings:
        """Those of the cluster."""
        ...

    @property
    def name(self) -> str:
        """The partition, for messages."""
        ...

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    @property
    def start(self) -> int:
        """Its first offset."""
        ...

    @property
    def stop(self) -> int:
        """The offset behind its last one."""
        ...


@contextmanager
def standing(wanted: Wanted, is_followed: bool) -> Iterator[Client]:
    """Give a client that stands where the range begins, or near; keep it open if another range follows."""
    client = _OPEN.taken(wanted) or Client(wanted, is_one_of_many=len(_OPEN.here()) >= _MANY)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    if is_followed:
        _OPEN.keep(wanted, client)
    else:
        client.close()


_Partition: TypeAlias = tuple[KafkaSettings, str, int]


def _partition(wanted: Wanted) -> _Partition:
    return wanted.settings, wanted.topic, wanted.partition


class _Open:
    """The clients of this process, by where they stand. A process that was forked has none."""

    def __init__(self) -> None:
        self._by_process: dict[int, OrderedDict[tuple[_Partition, int], Client]] = {}

    def here(self) -> OrderedDict[tuple[_Partition, int], Client]:
        return self._by_process.setdefault(os.getpid(), OrderedDict())

    def taken(self, wanted: Wanted) -> Client | None:
        """Take out the client that stands where a range begins, or the nearest before it."""
        here, partition, since = self.here(), _partition(wanted), time.monotonic() - _RECENT
        standing = [at for of, at in here if of == partition and 0 <= wanted.start - at <= _NEAR]
        if not standing:
            return None
        place = partition, max(standing)
        is_there = place[1] == wanted.start or here[place].kept_at >= since
        return here.pop(place) if is_there else None

    def keep(self, wanted: Wanted, client: Client) -> None:
        """Keep a client, and close the one that stands at the same place, or that was used longest ago."""
        here, place = self.here(), (_partition(wanted), client.position)
        if same := here.pop(place, None):
            same.close()
        client.kept_at = time.monotonic()
        here[place] = client
        if len(here) > _MOST_OPEN:
            here.popitem(last=False)[1].close()

    def close(self) -> None:
        for client in self._by_process.pop(os.getpid(), {}).values():
            client.close()


_OPEN = _Open()
atexit.register(_OPEN.close)


FIXED: dict[str, Any] = {"enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": True}
"""What a client must do, whatever its user says: offsets are kept elsewhere, and lost ones are an error."""

DEFAULTS: dict[str, Any] = {
    "group.id": "dstream",  # A client needs one; it joins no group.
    "isolation.level": "read_committed",
    # By default a client waits for a second once it has more than it is asked for, which costs seven eighths of the
    # speed (confluent-kafka 2.16).
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 16_384,
    "check.crcs": True,
}
_OF_MANY: dict[str, Any] = {"queued.max.messages.kbytes": 1_024}


class Client:
    """A consumer that stands at an offset of one partition.

    Attributes:
        position: that offset.
        kept_at: when it was kept for the next range, by a clock that goes on.
    """

    def __init__(self, wanted: Wanted, *, is_one_of_many: bool = False) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._said = ""
        self._place = TopicPartition(wanted.topic, wanted.partition, wanted.start)
        defaults = {**DEFAULTS, **(_OF_MANY if is_one_of_many else {})}
        self._consumer = Consumer(wanted.settings.for_client(defaults, {**FIXED, "error_cb": self._heard}))
        self._consumer.assign([self._place])
        self._ahead: list[Message] = []  # They were fetched with others, and belong to the next range.
        self.position = wanted.start
        self.kept_at = 0.0

    def _heard(self, error: KafkaError) -> None:
        self._said = error.str()

    def messages(self, wanted: Wanted) -> Iterator[list[Message]]:
        """Give the messages of a range that begins where this client stands, or behind that."""
        since = time.monotonic()
        while self.position < wanted.stop:
            before = self.position
            found = self._within(wanted.stop, self._fetched(wanted))
            if self.position > before:
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE:
                if self._is_gone(wanted.topic):
                    raise self._failure(wanted, "the topic is gone")
                reason = f"no answer for {PATIENCE:g} s ({self._said or 'nothing was said'})"
                raise self._failure(wanted, reason, SourceUnavailableError)
            if before < wanted.start:
                found = [message for message in found if message.offset() >= wanted.start]  # type: ignore[operator]
            if found:
                yield found

    def _is_gone(self, topic: str) -> bool:
        """Say whether there is no such topic: a client that reads one is told nothing (confluent-kafka 2.16)."""
        from confluent_kafka import KafkaException

        try:
            return topic not in self._consumer.list_topics(timeout=_LOOKING).topics  # One that is named may be made.
        except KafkaException:
            return False

    def _fetched(self, wanted: Wanted) -> list[Message]:
        if self._ahead:
            ahead, self._ahead = self._ahead, []
            return ahead
        found = self._consumer.consume(min(_BLOCK, wanted.stop - self.position), _WAIT)
        return [message for message in found if message.error() is None or self._is_end(message, wanted)]

    def _is_end(self, message: Message, wanted: Wanted) -> bool:
        """Take in that everything up to an offset has been read; raise any other failure. It is no message."""
        from confluent_kafka import KafkaError

        error = cast("KafkaError", message.error())
        if error.code() == KafkaError._PARTITION_EOF:
            self.position = max(self.position, cast("int", message.offset()))
        elif error.code() == KafkaError._AUTO_OFFSET_RESET and self.position < wanted.start:
            self._go_to(wanted.start)  # Kafka has removed some that others have read.
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise self._failure(wanted, f"the messages from offset {self.position} on are not there any more")
        elif not may_pass(error):
            raise self._failure(wanted, error.str())
        else:
            self._heard(error)
        return False

    def _go_to(self, offset: int) -> None:
        self._place.offset = self.position = offset
        self._consumer.assign([self._place])

    def _within(self, stop: int, found: list[Message]) -> list[Message]:
        """Return what stands before `stop`, keep the rest, and move on."""
        if found and found[-1].offset() >= stop:  # type: ignore[operator]  # A message that is no error has an offset.
            inside = [message for message in found if message.offset() < stop]  # type: ignore[operator]
            self._ahead = found[len(inside) :]
            self.position = stop
            return inside
        # Offsets without a message, such as the end of a transaction, are passed over, also behind the last message.
        reached = self._consumer.position([self._place])[0].offset
        self.position = max(self.position, reached, *(cast("int", message.offset()) + 1 for message in found[-1:]))
        return found

    def _failure(self, wanted: Wanted, reason: str, kind: type[SourceError] = SourceError) -> SourceError:
        place = f"{wanted.name} at {wanted.settings.servers}, which was read up to offset {self.position}"
        return kind(wanted.settings.without_secrets(f"{wanted.label}: {place}: {reason}"))

    def close(self) -> None:
        """Let go of the cluster."""
        self._consumer.close()
