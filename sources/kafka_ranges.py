"""Ranges of offsets of a partition in Kafka, as a task reads them. `sources.kafka_topics` says which ones there are.

A client that has read up to some offset stays open in its process: the next range of that partition begins there, and
then costs a tenth of what a new client costs.
"""

from __future__ import annotations

import atexit
import itertools
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from dstream.errors import SourceError
from dstream.spi.functions import shown_function
from dstream.values.blaming import shown, stopped
from dstream.values.contexts import contextmanager
from dstream.values.kafka_settings import KafkaSettings

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

__all__ = ["FIXED", "PATIENCE", "KafkaRange", "KafkaRecord", "Making"]

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

PATIENCE = 30.0
"""Seconds without an answer after which a cluster counts as gone."""

_BLOCK = 500
_WAIT = 0.02
_MOST_OPEN = 8


class KafkaRecord(NamedTuple, Generic[K, V]):
    """A message of Kafka, and where it stands.

    Attributes:
        topic: the name of its topic.
        partition: the number of its partition.
        offset: its place there; offsets grow, and some are left out.
        timestamp: milliseconds since 1970, of its producer or of the broker, as the topic says; None if it has none.
        key: what was made of its key; None if it has none.
        value: what was made of its value; None if it has none, which says that the key was removed.
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
class Making:
    """What becomes of the messages.

    Attributes:
        key: makes a key of bytes; None leaves it as it is.
        value: the same for values.
        projection: makes an item of a record, or None to drop it; unset, the record is the item.
    """

    key: Callable[[bytes], Any] | None = None
    value: Callable[[bytes], Any] | None = None
    projection: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class KafkaRange(Generic[T]):
    """The messages of one partition from the offset `start` up to `stop`, without the one at `stop`.

    Attributes:
        label: the source as the user wrote it, for messages.
        is_followed: another range will begin where this one ends, so its client stays open.
    """

    label: str
    settings: KafkaSettings
    topic: str
    partition: int
    start: int
    stop: int
    making: Making
    is_followed: bool

    @property
    def name(self) -> str:
        """The partition, as messages name it."""
        return f"{self.topic}-{self.partition}"

    def read(self) -> Iterator[T]:
        """Give the items.

        Raises:
            SourceError: the cluster does not answer, or has removed messages of the range.
        """
        return itertools.chain.from_iterable(self.read_blocks())

    def read_blocks(self) -> Iterator[Sequence[T]]:
        """Give the items in lists."""
        if self.start >= self.stop:
            return
        with _client(self) as client:
            for messages in client.messages(self):
                yield self._items(messages)

    def _items(self, messages: Sequence[Message]) -> list[Any]:
        made = list(map(_RECORD, zip(*self._columns(messages), strict=True)))
        if self.making.projection is None:
            return made
        projected = self._called("the record", self.making.projection, messages, made)
        return [item for item in projected if item is not None]

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
        """Return what a function makes of each value; a None stays None. A failure says where the message stands."""
        if fn is None:
            return values
        made: list[Any] = []
        for value in values:
            try:
                made.append(None if value is None else fn(value))
            except Exception as error:
                place = f"{part} at offset {messages[len(made)].offset()} of {self.name}"
                failure = stopped(shown_function(fn)) if isinstance(error, StopIteration) else error
                with suppress(Exception):  # An exception may refuse notes.
                    failure.add_note(f"in {self.label}: {shown_function(fn)} failed on {place}: {shown(value)}")
                raise failure from (error if failure is not error else error.__cause__)
        return made


_RECORD: Callable[[Iterable[Any]], KafkaRecord[Any, Any]] = partial(tuple.__new__, cast("Any", KafkaRecord))


def _time(stamp: tuple[int, int]) -> int | None:
    kind, time = stamp
    return time if kind else None  # The kind 0 says that the message has none.


FIXED: dict[str, Any] = {"enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": True}
"""What a client must do, whatever its user says: offsets are kept elsewhere, and lost ones are an error."""

_DEFAULTS: dict[str, Any] = {
    "group.id": "dstream",  # A client needs one; it joins no group.
    "isolation.level": "read_committed",
    # By default a client waits for a second once it has more than it is asked for, which costs seven eighths of the
    # speed (confluent-kafka 2.16).
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 16_384,
    "check.crcs": True,
}


class _Client:
    """A consumer that stands at an offset of one partition."""

    def __init__(self, wanted: KafkaRange[Any]) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._said = ""
        self._place = TopicPartition(wanted.topic, wanted.partition, wanted.start)
        self._consumer = Consumer(wanted.settings.for_client(_DEFAULTS, {**FIXED, "error_cb": self._heard}))
        self._consumer.assign([self._place])
        self._ahead: list[Message] = []  # They were fetched with others, and belong to the next range.
        self.position = wanted.start

    def _heard(self, error: KafkaError) -> None:
        self._said = error.str()

    def messages(self, wanted: KafkaRange[Any]) -> Iterator[list[Message]]:
        """Give the messages of a range that begins where this client stands."""
        since = time.monotonic()
        while self.position < wanted.stop:
            before = self.position
            found = self._within(wanted.stop, self._fetched(wanted))
            if self.position > before:
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE:
                raise self._failure(wanted, f"no answer for {PATIENCE:g} s ({self._said or 'nothing was said'})")
            if found:
                yield found

    def _fetched(self, wanted: KafkaRange[Any]) -> list[Message]:
        if self._ahead:
            ahead, self._ahead = self._ahead, []
            return ahead
        found = self._consumer.consume(min(_BLOCK, wanted.stop - self.position), _WAIT)
        return [message for message in found if message.error() is None or self._is_end(message, wanted)]

    def _is_end(self, message: Message, wanted: KafkaRange[Any]) -> bool:
        """Take in that everything up to an offset has been read; raise any other failure. It is no message."""
        from confluent_kafka import KafkaError

        error = cast("KafkaError", message.error())
        if error.code() == KafkaError._PARTITION_EOF:
            self.position = max(self.position, cast("int", message.offset()))
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise self._failure(wanted, f"the messages from offset {self.position} on are not there any more")
        elif not error.retriable():
            raise self._failure(wanted, error.str())
        return False

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

    def _failure(self, wanted: KafkaRange[Any], reason: str) -> SourceError:
        place = f"{wanted.name} at {wanted.settings.servers}, which was read up to offset {self.position}"
        return SourceError(wanted.settings.without_secrets(f"{wanted.label}: {place}: {reason}"))

    def close(self) -> None:
        """Let go of the cluster."""
        self._consumer.close()


@contextmanager
def _client(wanted: KafkaRange[Any]) -> Iterator[_Client]:
    """Give a client that stands where the range begins, and keep it if another range follows."""
    open_here = _OPEN.setdefault(os.getpid(), OrderedDict())
    place = (wanted.settings, wanted.topic, wanted.partition)
    client = open_here.pop((*place, wanted.start), None) or _Client(wanted)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    if not wanted.is_followed:
        client.close()
        return
    replaced = open_here.pop((*place, client.position), None)
    open_here[(*place, client.position)] = client
    for old in [replaced] if replaced else [open_here.popitem(last=False)[1]] if len(open_here) > _MOST_OPEN else []:
        old.close()


_OPEN: dict[int, OrderedDict[tuple[Any, ...], _Client]] = {}
"""The clients of each process, by where they stand: in a process that was forked those of the other one are dead."""


@atexit.register
def _close_all() -> None:
    for client in _OPEN.pop(os.getpid(), OrderedDict[Any, _Client]()).values():
        client.close()
