"""Sinks of Kafka: messages made of items, staged in the storage and published in one transaction, or sent immediately.

Each process that has the receipts can publish: they contain the run that staged, the number of messages, and their part
of the list. The decision `docs/decisions/0042-write-to-kafka-from-staged-messages.md` lists what remains if a process
dies.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any, Generic, Literal, TypeVar, cast

from more_itertools import chunked

from dstream.base.records import record
from dstream.base.showing import shown
from dstream.connectors.base import ImmediateSink
from dstream.connectors.kafka.producers import (
    Message,
    MessageProducer,
    Transactions,
    failure,
    kept,
    taken,
    transactions,
)
from dstream.connectors.kafka.settings import ClusterClient, KafkaSettings
from dstream.errors import IllegalStateError, SinkError
from dstream.failures.attribution import each
from dstream.spi import Collections, ListStore, ListView, Receipt, Splice, WriteJob, Writer

__all__ = ["KafkaJob", "KafkaSink", "KafkaTarget", "MessageMaker"]


_STAGING = "staging"
_BATCH = 500
_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class MessageMaker:
    """Function that makes messages of items.

    Attributes:
        key: makes the key; unset, there is none.
        value: makes the value; unset, it is the item.
        headers: makes the headers; unset, there are none.
    """

    key: Callable[[Any], Any] | None
    value: Callable[[Any], Any] | None
    headers: Callable[[Any], Any] | None

    def messages(self, items: Sequence[Any]) -> list[Message]:
        """Return a message for each item; a failure records its item."""
        none: list[Any] = [None] * len(items)
        keys = none if self.key is None else each(_key, items, each(self.key, items))
        values = each(_value, items, items if self.value is None else each(self.value, items))
        headers = [[] for _ in items] if self.headers is None else each(_headers, items, each(self.headers, items))
        return list(zip(keys, values, headers, strict=True))


def _key(made: Any, item: Any) -> bytes | None:
    return _bytes(made, "key")


def _value(made: Any, item: Any) -> bytes | None:
    return _bytes(made, "value")


def _headers(made: Any, item: Any) -> list[tuple[str, bytes | None]]:
    if made is None:
        return []
    pairs = made.items() if isinstance(made, Mapping) else made
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise TypeError(f"to_kafka(): headers= must make a mapping, or pairs of name and value, not {shown(made)}")
    headers: list[tuple[str, bytes | None]] = []
    for pair in pairs:
        match pair:
            case (str(name), value):
                headers.append((name, _bytes(value, "headers")))
            case _:
                raise TypeError(f"to_kafka(): headers= must make pairs of name and value, not {shown(pair)}")
    return headers


def _bytes(made: Any, argument: str) -> bytes | None:
    if made is None or type(made) is bytes:
        return made
    if isinstance(made, str):
        return made.encode()
    if isinstance(made, bytes | bytearray | memoryview):
        return bytes(made)
    raise TypeError(f"to_kafka(): {argument}= must make bytes, a str or None, not {type(made).__name__} {shown(made)}")


@dataclass(slots=True)
class KafkaJob:
    """Transaction of one epoch of a job, in the driver.

    Attributes:
        context: has the storage, in which a list contains the staged messages.
        topic: the topic of the messages.
        job: the user's name of the job, or a unique one.
        is_named: other processes may commit it too.
        epoch: its number.
    """

    context: Collections
    transactions: Transactions
    making: MessageMaker
    topic: str
    job: str
    is_named: bool
    epoch: int
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    _begun: tuple[int, WriteJob[Writer]] | None = None
    _is_done: bool = False

    @property
    def name(self) -> str:
        """The list of staged messages: one for each job of a name, one for each run without."""
        return f"to_kafka-{self.topic}-{sha256(self.job.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    @property
    def is_done(self) -> bool:
        """Return whether this epoch, or a later one, is in the topic."""
        self._is_done = self._is_done or self.transactions.epoch() >= self.epoch
        return self._is_done

    @property
    def writer(self) -> StagingWriter:
        """The writer that stages messages. The list is made on first use."""
        if self._begun is None:
            store: ListStore = self.context.get_list(self.name).store
            # Messages that are staged later replace those that were staged earlier, of other epochs and of other runs.
            turn = time.time_ns() // 1000
            begun = store.begin(_STAGING, turn, replace=True)
            while begun.is_done:  # The clock of another machine is ahead.
                turn += 10**6
                begun = store.begin(_STAGING, turn, replace=True)
            self._begun = (turn, begun)
        turn, begun = self._begun
        return StagingWriter(self.making, self.run, turn, begun.writer)

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Publish the messages that the receipts name, unless the epoch is published.

        Raises:
            IllegalStateError: they name none that are still staged; nothing was changed.
            SinkError: the cluster refuses, or does not answer.
        """
        if self._is_done:
            return
        staged = _Staged.of(receipts)
        self.transactions.publish(self.epoch, lambda: staged.messages(self.context, self.name))
        self._is_done = True
        self._clean(staged.run)

    def _clean(self, run: str) -> None:
        """Remove published messages, and all traces of a run without a name. The list of a named job remains."""
        if not self.is_named:
            self.transactions.forget()
        if self._begun is not None:
            self._begun[1].abort()
        found = self.context.existing("list", self.name)
        if found is None:
            return
        with suppress(IllegalStateError):  # Another client has removed it.
            if self.is_named:
                # Another run may have staged its messages in the list meanwhile.
                found.store.edit(lambda view: Splice(0, view.size, []) if _is_of(view, run) else None)
            else:
                found.store.destroy()

    def abort(self) -> None:
        """Remove the messages staged by this run's tasks."""
        with suppress(Exception):
            if self._begun is not None:
                self._begun[1].abort()
            if not self.is_named and (found := self.context.existing("list", self.name)) is not None:
                found.store.destroy()


def _is_of(view: ListView, run: str) -> bool:
    return any(_unpacked(block)[0] == run for block in view.read(0, 1))


@dataclass(frozen=True, slots=True)
class StagingWriter:
    """Travels to the tasks.

    Attributes:
        run: the id of the run.
        turn: its number in the list.
        inner: the writer of the list, whose items are blocks of messages.
    """

    making: MessageMaker
    run: str
    turn: int
    inner: Writer

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Yield the receipts of the list, each with the run, and at last the number of messages."""
        counted = [0]
        for receipt in self.inner.write(self._blocks(iter(items), counted)):
            yield [self.run, self.turn, 0, receipt]
        if counted[0]:
            yield [self.run, self.turn, counted[0], None]

    def check_item(self, item: Any) -> None:
        """Refuse an item that is no message, if there is no function to convert it."""
        if self.making == MessageMaker(None, None, None):
            self.making.messages([item])

    def _blocks(self, items: Iterator[Any], counted: list[int]) -> Iterator[bytes]:
        while batch := list(islice(items, _BATCH)):
            for messages in _cut(self.making.messages(batch)):
                counted[0] += len(messages)
                yield _packed(self.run, messages)


def _cut(messages: list[Message]) -> Iterator[list[Message]]:
    """Yield the messages in lists of a few hundred KB."""
    held: list[Message] = []
    size = 0
    for message in messages:
        held.append(message)
        size += len(message[0] or b"") + len(message[1] or b"")
        if size > _BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _packed(run: str, messages: list[Message]) -> bytes:
    import msgpack

    return cast("bytes", msgpack.packb([run, messages]))


def _unpacked(block: Any) -> list[Any]:
    import msgpack

    try:
        run, messages = msgpack.unpackb(block)
        return [run, [(key, value, [(name, data) for name, data in headers]) for key, value, headers in messages]]
    except (ValueError, TypeError) as error:
        raise IllegalStateError("the list of staged messages holds what no to_kafka() has staged") from error


@dataclass(frozen=True, slots=True)
class _Staged:
    """The contents of receipts."""

    run: str
    turn: int
    count: int
    receipts: list[Receipt]

    @classmethod
    def of(cls, receipts: Sequence[Receipt]) -> _Staged:
        """Return the staged output of receipts, which are validated: they may have been stored anywhere."""
        run, turn, count, inner = "", 0, 0, []
        for found in receipts:
            match found:
                case [str(of_run), int(of_turn), int(of_task), receipt] if run in ("", of_run):
                    run, turn, count = of_run, of_turn, count + of_task
                    inner += [] if of_task else [receipt]
                case _:
                    raise IllegalStateError(
                        f"nothing was published, since {found!r} is no receipt of the run {run!r} of to_kafka()"
                    )
        return cls(run, turn, count, inner)

    def messages(self, context: Collections, name: str) -> Iterator[list[Message]]:
        """Yield the messages, and check that they match the receipts.

        Raises:
            IllegalStateError: they no longer exist.
        """
        if not self.run:
            return
        found = context.existing("list", name)
        given = 0
        if found is not None:
            found.store.begin(_STAGING, self.turn, replace=True).commit(self.receipts)
            for run, messages in map(_unpacked, _items(found.store)):
                if run == self.run:
                    given += len(messages)
                    yield messages
        # Raised inside of the transaction, which is aborted then, with the sent messages.
        if given != self.count:
            raise IllegalStateError(
                f"nothing was published, since of {self.count:,} messages {given:,} are still in the list {name!r}"
            )


def _items(store: ListStore) -> Iterable[Any]:
    return (item for split in store.splits(1) for item in split.read())


T = TypeVar("T")
Guarantee = Literal["exactly-once", "at-least-once"]


@dataclass(frozen=True, slots=True, repr=False)
class KafkaSink(Generic[T]):
    """Result of `to_kafka`.

    Attributes:
        label: the reducer as the user wrote it.
        settings: the settings of the cluster.
        making: makes messages of items.
    """

    label: str
    settings: KafkaSettings
    topic: str
    making: MessageMaker
    job: str | None

    @property
    def collector(self) -> None:
        """None: the items are written as they are."""
        return

    def open(self, context: Collections) -> KafkaTarget:
        """Check that the topic exists.

        Raises:
            SinkError: it does not exist, or there is no response.
        """
        _refuse_what_is_not_there(self.label, self.settings, self.topic)
        return KafkaTarget(self, context)

    def __repr__(self) -> str:
        return self.label


def _refuse_what_is_not_there(label: str, settings: KafkaSettings, topic: str) -> None:
    from confluent_kafka import KafkaException

    asking, last = ClusterClient(settings), time.monotonic() + _SPREADING
    try:
        # Of all topics: a request for a missing topic makes some brokers create it.
        while topic not in (found := asking.client.list_topics(timeout=_PATIENCE).topics) and time.monotonic() < last:
            time.sleep(0.1)
    except KafkaException as error:
        raise failure(settings, label, error.args[0], asking.last_error()) from None
    if topic not in found:
        raise SinkError(
            f"{label}: {settings.servers} has no topic {topic!r}: make it, with as many partitions as it needs"
        )


_PATIENCE = 30.0
_SPREADING = 0.5
"""Seconds until all brokers have a topic that was made."""


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """The topic, opened in the driver."""

    sink: KafkaSink[Any]
    context: Collections

    def begin(self, job: str | None, epoch: int = 1) -> KafkaJob:
        """Begin an epoch."""
        sink, name = self.sink, uuid.uuid4().hex if job is None else job
        # A run without a name is never committed again, so that its producer need not remain open.
        made = Transactions if job is None else transactions
        epochs = made(sink.settings, sink.topic, name, sink.label)
        return KafkaJob(self.context, epochs, sink.making, sink.topic, name, job is not None, epoch)

    def result(self) -> None:
        """Return None."""


@record(slots=False, repr=False)
class PassingKafkaSink(ImmediateSink[T]):
    """Result of `to_kafka(..., guarantee="at-least-once")`."""

    writer: MessageWriter

    def open(self, context: Collections) -> PassingKafkaSink[T]:
        """Check that the topic exists, and return itself as the target.

        Raises:
            SinkError: it does not exist, or there is no response.
        """
        _refuse_what_is_not_there(self.label, self.writer.settings, self.writer.topic)
        return self


@dataclass(frozen=True, slots=True)
class MessageWriter:
    """Sends messages from a task."""

    label: str
    settings: KafkaSettings
    topic: str
    making: MessageMaker

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Send a message for each item, and wait until the cluster has them all; yield no receipts."""
        client = taken(self.settings)
        handing = MessageProducer(client, self.settings, self.topic, self.label)
        try:
            for batch in chunked(items, _BATCH):
                handing.give(self.making.messages(batch))
            handing.finish()
        except BaseException:
            client.give_up()
            raise
        kept(self.settings, client)
        yield from ()
