"""Ranges of offsets of a partition in Kafka, as a task reads them. `sources.kafka_topics` says which ones there are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from dstream.errors import SourceError
from dstream.spi import Misread
from dstream.spi.functions import shown_function
from dstream.values import BadRecord
from dstream.values.blaming import shown, stopped
from dstream.values.kafka_settings import KafkaSettings
from sources.kafka_clients import standing

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["KafkaRange", "KafkaRecord", "Making"]

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


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
        for messages in self._messages():
            yield [item for item in self._items(messages) if item is not None]

    def read_past(self, misread: Callable[[Misread], Iterable[Any]]) -> Iterator[Any]:
        """Give the items, and in the place of a message of which a function makes none what `misread` gives."""
        for messages in self._messages():
            try:
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
        """Give the items, each behind the time of its record in milliseconds.

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
        """Return what becomes of each message; None for one that is dropped."""
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
