"""Consumers of Kafka: ranges of offsets of a partition, and the records made of messages.

A client that has read up to an offset remains open in its process: the next range of that partition begins there, which
costs a fiftieth of a new client. If other workers have read ranges meanwhile, its position is a little before the
range. It has most likely fetched the messages between already, and skips them; a seek waits for the response to the
last request, for up to half a second (librdkafka 2.16).
"""

from __future__ import annotations

import atexit
import itertools
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from dstream.base.showing import add_note, shown
from dstream.base.threads import RenewedLock, contextmanager
from dstream.connectors.kafka.settings import KafkaSettings, may_pass
from dstream.errors import SourceError, SourceUnavailableError
from dstream.failures.attribution import stopped
from dstream.spi import Misread
from dstream.values import BadRecord
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

__all__ = ["DEFAULTS", "FIXED", "PATIENCE", "KafkaRange", "KafkaRecord", "RecordMaker", "standing"]


PATIENCE = 30.0
"""Seconds without an answer after which a cluster counts as lost."""

_BLOCK = 500
_WAIT = 0.02
_LOOKING = 5.0
_MOST_OPEN = 32
_MANY = 8
"""The number of clients of a process beyond which others prefetch less, to buffer at most about 200 MB in total."""
_NEAR = 5_000
"""The maximal number of skipped offsets; creating a client takes as long as reading several thousand."""
_RECENT = 10.0
"""Seconds for which a client before the range is reused: others would have fetched much in vain."""


class OffsetRange(Protocol):
    """A range of offsets of one partition."""

    @property
    def label(self) -> str:
        """The source, for messages."""
        ...

    @property
    def settings(self) -> KafkaSettings:
        """The settings of the cluster."""
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
        """The offset after its last one."""
        ...


@contextmanager
def standing(wanted: OffsetRange, is_followed: bool) -> Iterator[ConsumerClient]:
    """Provide a client at the start of the range, or near it; cache it if another range follows."""
    client = _OPEN.taken(wanted) or ConsumerClient(wanted, is_one_of_many=len(_OPEN.here()) >= _MANY)
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


def _partition(wanted: OffsetRange) -> _Partition:
    return wanted.settings, wanted.topic, wanted.partition


class _Open:
    """The open clients of this process, by their positions. A process that was forked has none."""

    def __init__(self) -> None:
        self._by_process: dict[int, OrderedDict[tuple[_Partition, int], ConsumerClient]] = {}
        # The jobs of a process read in separate threads.
        self._lock = RenewedLock()

    def here(self) -> OrderedDict[tuple[_Partition, int], ConsumerClient]:
        # A fork copies a client without its threads: it would never respond, so it is neither used nor closed in the
        # fork.
        return self._by_process.setdefault(os.getpid(), OrderedDict())

    def taken(self, wanted: OffsetRange) -> ConsumerClient | None:
        """Remove and return the client at the start of a range, or the nearest before it."""
        partition, since = _partition(wanted), time.monotonic() - _RECENT
        with self._lock:
            here = self.here()
            standing = [at for of, at in here if of == partition and 0 <= wanted.start - at <= _NEAR]
            if not standing:
                return None
            place = partition, max(standing)
            is_there = place[1] == wanted.start or here[place].kept_at >= since
            return here.pop(place) if is_there else None

    def keep(self, wanted: OffsetRange, client: ConsumerClient) -> None:
        """Cache a client, and close one at the same position, or the least recently used one."""
        place = _partition(wanted), client.position
        client.kept_at = time.monotonic()
        with self._lock:
            here = self.here()
            dropped = here.pop(place, None)
            here[place] = client
            if len(here) > _MOST_OPEN:
                _, dropped = here.popitem(last=False)
        # Without the lock: a client leaves its cluster first.
        if dropped is not None:
            dropped.close()

    def close(self) -> None:
        for client in self._by_process.pop(os.getpid(), {}).values():
            client.close()


_OPEN = _Open()
atexit.register(_OPEN.close)


FIXED: dict[str, Any] = {"enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": True}
"""The settings of each client, whatever the user sets: offsets are stored elsewhere, and lost ones are an error."""

DEFAULTS: dict[str, Any] = {
    "group.id": "dstream",  # A client needs one; it joins no group.
    "isolation.level": "read_committed",
    # By default a client waits for a second once its prefetch buffer is full, which costs seven eighths of the speed
    # (confluent-kafka 2.16).
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 16_384,
    "check.crcs": True,
}
_OF_MANY: dict[str, Any] = {"queued.max.messages.kbytes": 1_024}


class ConsumerClient:
    """A consumer at an offset of one partition.

    Attributes:
        position: that offset.
        kept_at: when it was cached for the next range, by a monotonic clock.
    """

    def __init__(self, wanted: OffsetRange, *, is_one_of_many: bool = False) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._last_error = ""
        self._place = TopicPartition(wanted.topic, wanted.partition, wanted.start)
        defaults = {**DEFAULTS, **(_OF_MANY if is_one_of_many else {})}
        self._consumer = Consumer(wanted.settings.for_client(defaults, {**FIXED, "error_cb": self._on_error}))
        self._consumer.assign([self._place])
        self._ahead: list[Message] = []  # They were fetched with others, and belong to the next range.
        self.position = wanted.start
        self.kept_at = 0.0

    def _on_error(self, error: KafkaError) -> None:
        self._last_error = error.str()

    def messages(self, wanted: OffsetRange) -> Iterator[list[Message]]:
        """Yield the messages of a range that begins at the position of this client, or after it."""
        since = time.monotonic()
        while self.position < wanted.stop:
            before = self.position
            found = self._within(wanted.stop, self._fetched(wanted))
            if self.position > before:
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE:
                if self._is_gone(wanted.topic):
                    raise self._failure(wanted, "the topic is gone")
                reason = f"no answer for {PATIENCE:g} s ({self._last_error or 'no error was reported'})"
                raise self._failure(wanted, reason, SourceUnavailableError)
            if before < wanted.start:
                found = [message for message in found if message.offset() >= wanted.start]  # type: ignore[operator]
            if found:
                yield found

    def _is_gone(self, topic: str) -> bool:
        """Return whether the topic is missing, which a client that reads it does not report (confluent-kafka 2.16)."""
        from confluent_kafka import KafkaException

        try:
            return topic not in self._consumer.list_topics(timeout=_LOOKING).topics  # One that is named may be made.
        except KafkaException:
            return False

    def _fetched(self, wanted: OffsetRange) -> list[Message]:
        if self._ahead:
            ahead, self._ahead = self._ahead, []
            return ahead
        found = self._consumer.consume(min(_BLOCK, wanted.stop - self.position), _WAIT)
        return [message for message in found if message.error() is None or self._is_end(message, wanted)]

    def _is_end(self, message: Message, wanted: OffsetRange) -> bool:
        """Handle an event: the end of the partition; raise any other failure."""
        from confluent_kafka import KafkaError

        error = cast("KafkaError", message.error())
        if error.code() == KafkaError._PARTITION_EOF:
            self.position = max(self.position, cast("int", message.offset()))
        elif error.code() == KafkaError._AUTO_OFFSET_RESET and self.position < wanted.start:
            self._go_to(wanted.start)  # Kafka has removed messages that were read before.
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise self._failure(wanted, f"the messages from offset {self.position} on are not there any more")
        elif not may_pass(error):
            raise self._failure(wanted, error.str())
        else:
            self._on_error(error)
        return False

    def _go_to(self, offset: int) -> None:
        self._place.offset = self.position = offset
        self._consumer.assign([self._place])

    def _within(self, stop: int, found: list[Message]) -> list[Message]:
        """Return the messages before `stop`, buffer the rest, and advance."""
        if found and found[-1].offset() >= stop:  # type: ignore[operator]  # A message that is no error has an offset.
            inside = [message for message in found if message.offset() < stop]  # type: ignore[operator]
            self._ahead = found[len(inside) :]
            self.position = stop
            return inside
        # Offsets without a message, such as the end of a transaction, are skipped, also after the last message.
        reached = self._consumer.position([self._place])[0].offset
        self.position = max(self.position, reached, *(cast("int", message.offset()) + 1 for message in found[-1:]))
        return found

    def _failure(self, wanted: OffsetRange, reason: str, kind: type[SourceError] = SourceError) -> SourceError:
        place = f"{wanted.name} at {wanted.settings.servers}, which was read up to offset {self.position}"
        return kind(wanted.settings.without_secrets(f"{wanted.label}: {place}: {reason}"))

    def close(self) -> None:
        """Close the connection to the cluster."""
        self._consumer.close()


K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class KafkaRecord(NamedTuple, Generic[K, V]):
    """A message of Kafka, with its topic, partition and offset.

    Attributes:
        topic: the name of its topic.
        partition: the number of its partition.
        offset: its offset in the partition; offsets increase, with gaps.
        timestamp: milliseconds since 1970, of its producer or of the broker, by the setting of the topic; None if it
            has none.
        key: its decoded key; None if it has none.
        value: its decoded value; None if it has none, which means that the key was removed.
        headers: names and values, in order.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: K | None
    value: V | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class RecordMaker:
    """The conversion of messages to items.

    Attributes:
        key: decodes the bytes of a key; None for bytes.
        value: the same for values.
        projection: returns the item of a record, or None to drop it; unset, the record is the item.
    """

    key: Callable[[bytes], Any] | None = None
    value: Callable[[bytes], Any] | None = None
    projection: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class KafkaRange(Generic[T]):
    """The messages of one partition from the offset `start` up to `stop`, exclusive.

    Attributes:
        label: the source as the user wrote it, for messages.
        is_followed: another range will begin where this one ends, so its client remains open.
    """

    label: str
    settings: KafkaSettings
    topic: str
    partition: int
    start: int
    stop: int
    making: RecordMaker
    is_followed: bool

    @property
    def name(self) -> str:
        """The partition, as messages name it."""
        return f"{self.topic}-{self.partition}"

    def read(self) -> Iterator[T]:
        """Yield the items.

        Raises:
            SourceError: the cluster does not answer, or has removed messages of the range.
        """
        return itertools.chain.from_iterable(self.read_blocks())

    def read_blocks(self) -> Iterator[Sequence[T]]:
        """Yield the items in lists."""
        for messages in self._messages():
            yield [item for item in self._items(messages) if item is not None]

    def read_past(self, misread: Callable[[Misread], Iterable[Any]]) -> Iterator[Any]:
        """Yield the items, with the result of `misread` in place of a message for which a function fails."""
        for messages in self._messages():
            try:
                # Bad messages are rare: a block is made as a whole, and message by message only after a failure.
                made: Iterable[Any] = list(self._items(messages))
            except Exception:
                made = itertools.chain.from_iterable(self._past(message, misread) for message in messages)
            yield from (item for item in made if item is not None)

    def _past(self, message: Message, misread: Callable[[Misread], Iterable[Any]]) -> Iterable[Any]:
        try:
            return list(self._items([message]))
        except Exception as error:
            problem, offset = error, cast("int", message.offset())

            def record() -> BadRecord:
                return BadRecord(f"{self.label}: {self.name}", offset, f"{message.key()!r}: {message.value()!r}")

            def failure() -> SourceError:
                found = SourceError(f"{self.label}: the message at offset {offset} of {self.name}: {problem}")
                found.__cause__ = problem
                return found

            return misread(Misread(problem, record, failure))

    def read_timed(self) -> Iterator[tuple[int, T]]:
        """Yield pairs of the time of the record in milliseconds and the item.

        Raises:
            SourceError: as `read`, or a message has no time.
        """
        for messages in self._messages():
            for message, item in zip(messages, self._items(messages), strict=True):
                if item is not None:
                    yield self._time(message), item

    def _messages(self) -> Iterator[Sequence[Message]]:
        if self.start >= self.stop:
            return
        with standing(self, self.is_followed) as client:
            yield from client.messages(self)

    def _items(self, messages: Sequence[Message]) -> Iterable[Any]:
        """Return the item of each message; None for one that is dropped."""
        records = list(map(_RECORD, zip(*self._columns(messages), strict=True)))
        return self._called("the record", self.making.projection, messages, records)

    def _time(self, message: Message) -> int:
        time = _time(message.timestamp())
        if time is None:
            raise SourceError(f"{self.label}: the message at offset {message.offset()} of {self.name} has no timestamp")
        return time

    def _columns(self, messages: Sequence[Message]) -> Iterator[Iterable[Any]]:
        kind = type(messages[0])
        yield itertools.repeat(self.topic, len(messages))
        yield itertools.repeat(self.partition, len(messages))
        yield map(kind.offset, messages)
        yield map(_time, map(kind.timestamp, messages))
        yield self._called("the key", self.making.key, messages, map(kind.key, messages))
        yield self._called("the value", self.making.value, messages, map(kind.value, messages))
        yield [() if headers is None else tuple(headers) for headers in map(kind.headers, messages)]

    def _called(
        self, part: str, fn: Callable[[Any], Any] | None, messages: Sequence[Message], values: Iterable[Any]
    ) -> Iterable[Any]:
        """Return the results of a function for each value; None for None. A failure names the message's location."""
        if fn is None:
            return values
        made: list[Any] = []
        for value in values:
            try:
                made.append(None if value is None else fn(value))
            except Exception as error:
                place = f"{part} at offset {messages[len(made)].offset()} of {self.name}"
                failure = stopped(shown_function(fn)) if isinstance(error, StopIteration) else error
                add_note(failure, f"in {self.label}: {shown_function(fn)} failed on {place}: {shown(value)}")
                raise failure from (error if failure is not error else error.__cause__)
        return made


# The `__new__` of a named tuple is a function of Python; this one is called by `map` without leaving C.
_RECORD: Callable[[Iterable[Any]], KafkaRecord[Any, Any]] = partial(tuple.__new__, cast("Any", KafkaRecord))


def _time(stamp: tuple[int, int]) -> int | None:
    kind, time = stamp
    return time if kind else None  # The kind 0 means that the message has none.
