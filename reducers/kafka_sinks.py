"""`to_kafka`: items as messages of a topic of Kafka."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

from more_itertools import chunked

from dstream.errors import SinkError
from dstream.spi import Collections, Receipt, Reducer
from dstream.spi.functions import refuse_one_that_would_not_run
from dstream.values.blaming import shown
from dstream.values.kafka_asking import Asking
from dstream.values.kafka_settings import KafkaSettings, checked_topic, kafka_settings
from reducers.kafka_messages import PRODUCING, Handing, Making, failure, kept, taken
from reducers.kafka_staging import KafkaJob
from reducers.kafka_transactions import Transactions, transactions
from reducers.passing import PassingSink
from reducers.writing import checked_function, checked_text

__all__ = ["KafkaSink", "KafkaTarget", "to_kafka"]

T = TypeVar("T")
Guarantee = Literal["exactly-once", "at-least-once"]


def to_kafka(
    topic: str,
    config: Mapping[str, Any],
    *,
    key: Callable[[T], Any] | None = None,
    value: Callable[[T], Any] | None = None,
    headers: Callable[[T], Any] | None = None,
    guarantee: Guarantee = "exactly-once",
    job: str | None = None,
) -> Reducer[T, None]:
    """Send each item as a message to a topic of Kafka, which has to be there.

    Exactly once: tasks stage the messages in a list of the storage, and the commit sends them all in one transaction.
    Who reads with `isolation.level=read_committed` sees all or none of them; Kafka's own default shows also what is
    not committed. At least once: tasks send the messages themselves, which costs less and shows them at once. The
    package comes with `pip install 'dstream-spark[kafka]'`.

    **Parallelism**: messages are made where the items are. Exactly once the caller sends them, in encounter order; at
    least once each task sends its own. The order of messages holds within a partition of Kafka.
    **Guarantee**: as it is asked for. With the messages goes the number of the epoch, as the offset of a group named
    after the job, so that a commit that is asked again does nothing. Kafka forgets that number a week after the last
    commit of a job (`offsets.retention.minutes`); then a job that is run again sends again.
    **On re-run**: the items are sent again, unless `job` names the job.

    Args:
        topic: its name.
        config: settings of confluent-kafka, at least `{"bootstrap.servers": "host:9092"}`. They are never shown. A
            value `env:NAME` or `file:/path` is a secret that each process looks up. A
            transaction must end within `transaction.timeout.ms`, a minute by default.
        key: makes the key of an item: bytes, a str or None. Items of one key come into one partition, the same that
            Java's clients choose.
        value: makes the value, the same; unset, it is the item. None says to a compacted topic to remove the key.
        headers: makes a mapping, or pairs, of names and values.
        guarantee: `"exactly-once"` or `"at-least-once"`.
        job: a job of this name is committed once, however often it runs; only exactly once.

    Raises:
        SetupError: the package is not installed.
        TypeError: an argument is of another kind; or, when it runs, what is made of an item.
        ValueError: an argument is none of its choices, or `config` has what no client takes.
        SinkError: when it runs: there is no such topic, or the cluster refuses or does not answer for 30 s.

    Example:
        >>> from reducers import to_kafka
        >>> to_kafka("words", {"bootstrap.servers": "localhost:9092"}, key=lambda word: word[0])
        to_kafka('words')
    """
    checked_topic(topic, "topic")
    given = {"key": key, "value": value, "headers": headers}
    for argument, fn in given.items():
        if fn is not None:
            refuse_one_that_would_not_run(checked_function(fn, argument), argument)
    if guarantee not in get_args(Guarantee):
        raise ValueError(f"guarantee must be 'exactly-once' or 'at-least-once', not {shown(guarantee)}")
    if job is not None:
        checked_text(job, "job")
        if guarantee == "at-least-once":
            raise ValueError("job is committed once, which guarantee='at-least-once' does not see to")
    transaction = {"transactional.id": "none"} if guarantee == "exactly-once" else {}
    settings = kafka_settings("to_kafka", config, "Producer", _OURS, {**PRODUCING, **transaction})
    shown_guarantee = "" if guarantee == "exactly-once" else f", guarantee={guarantee!r}"
    label = f"to_kafka({topic!r}{shown_guarantee})"
    making = Making(key, value, headers)
    if guarantee == "at-least-once":
        return PassingKafkaSink(label, Sending(label, settings, topic, making))
    return KafkaSink(label, settings, topic, making, job)


_OURS = ("transactional.id", "enable.idempotence", "group.id", "isolation.level")


@dataclass(frozen=True, slots=True, repr=False)
class KafkaSink(Generic[T]):
    """What `to_kafka` returns.

    Attributes:
        label: the reducer as the user wrote it.
        settings: of the cluster.
        making: makes messages of items.
    """

    label: str
    settings: KafkaSettings
    topic: str
    making: Making
    job: str | None

    @property
    def collector(self) -> None:
        """None: the items are written as they are."""
        return

    def open(self, context: Collections) -> KafkaTarget:
        """Look for the topic.

        Raises:
            SinkError: it is not there, or nobody answers.
        """
        _refuse_what_is_not_there(self.label, self.settings, self.topic)
        return KafkaTarget(self, context)

    def __repr__(self) -> str:
        return self.label


def _refuse_what_is_not_there(label: str, settings: KafkaSettings, topic: str) -> None:
    from confluent_kafka import KafkaException

    asking, last = Asking(settings), time.monotonic() + _SPREADING
    try:
        # Of all topics: asked for one that is not there, some brokers make it.
        while topic not in (found := asking.client.list_topics(timeout=_PATIENCE).topics) and time.monotonic() < last:
            time.sleep(0.1)
    except KafkaException as error:
        raise failure(settings, label, error.args[0], asking.said()) from None
    if topic not in found:
        raise SinkError(
            f"{label}: {settings.servers} has no topic {topic!r}: make it, with as many partitions as it needs"
        )


_PATIENCE = 30.0
_SPREADING = 0.5
"""Seconds until all brokers know a topic that was made."""


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """The topic, opened in the driver."""

    sink: KafkaSink[Any]
    context: Collections

    def begin(self, job: str | None, epoch: int = 1) -> KafkaJob:
        """Begin an epoch."""
        sink, name = self.sink, uuid.uuid4().hex if job is None else job
        made = Transactions if job is None else transactions
        epochs = made(sink.settings, sink.topic, name, sink.label)
        return KafkaJob(self.context, epochs, sink.making, sink.topic, name, job is not None, epoch)

    def result(self) -> None:
        """Return None."""


@dataclass(frozen=True, repr=False)
class PassingKafkaSink(PassingSink[T]):
    """What `to_kafka(..., guarantee="at-least-once")` returns."""

    writer: Sending

    def open(self, context: Collections) -> PassingKafkaSink[T]:
        """Look for the topic; it is its own target.

        Raises:
            SinkError: it is not there, or nobody answers.
        """
        _refuse_what_is_not_there(self.label, self.writer.settings, self.writer.topic)
        return self


@dataclass(frozen=True, slots=True)
class Sending:
    """Sends messages from a task."""

    label: str
    settings: KafkaSettings
    topic: str
    making: Making

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Send a message for each item, and wait until the cluster has them all; give no receipts."""
        client = taken(self.settings)
        handing = Handing(client, self.settings, self.topic, self.label)
        try:
            for batch in chunked(items, _BATCH):
                handing.give(self.making.messages(batch))
            handing.finish()
        except BaseException:
            client.producer.purge()
            raise
        kept(self.settings, client)
        yield from ()


_BATCH = 500
