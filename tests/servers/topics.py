"""Topics for tests, and what is in them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec, TopicMetadata

__all__ = ["Topic"]

R = TypeVar("R")


class Topic:
    """A topic of a broker, under a name of its own.

    Attributes:
        config: what a source or a sink needs.
    """

    def __init__(self, address: str, partitions: int = 1, name: str = "", **settings: str) -> None:
        self.name = name or f"t{uuid.uuid4().hex}"
        self.config = {"bootstrap.servers": address}
        self._admin = AdminClient({**self.config, "log_level": 0})
        self._make(NewTopic(self.name, partitions, 1, config=settings))
        self._wait_for(partitions)

    def _make(self, topic: NewTopic) -> None:
        """Make it, once the broker has told its controller that it serves; behind a silence that takes a moment."""
        last, answers_lost = time.monotonic() + 120, 0
        while True:
            [made] = self._admin.create_topics([topic], request_timeout=5).values()
            try:
                made.result()
            except KafkaException as error:
                match error.args[0].code():
                    case KafkaError.TOPIC_ALREADY_EXISTS if answers_lost:
                        return
                    case KafkaError.INVALID_REPLICATION_FACTOR if time.monotonic() < last:
                        time.sleep(0.1)
                    case KafkaError._TIMED_OUT if time.monotonic() < last:
                        answers_lost += 1
                        self._admin = AdminClient({**self.config, "log_level": 0})
                    case _:
                        raise
            else:
                return

    def _wait_for(self, partitions: int) -> None:
        """Wait until the broker knows what its controller has made."""
        while True:
            found = self._listed()
            # The partitions may be known, and nobody lead them yet.
            if found.error is None and len(found.partitions) == partitions and self._end() >= 0:
                return
            time.sleep(0.01)

    def grow(self, partitions: int) -> None:
        """Set the number of its partitions."""
        [made] = self._admin.create_partitions([NewPartitions(self.name, partitions)]).values()
        made.result()
        self._wait_for(partitions)

    def drop_before(self, offset: int, partition: int = 0) -> None:
        """Remove the messages before an offset, as the broker does with old ones."""
        [made] = self._admin.delete_records([TopicPartition(self.name, partition, offset)]).values()
        made.result()

    def delete(self) -> None:
        """Remove it."""
        [made] = self._admin.delete_topics([self.name]).values()
        made.result()

    def send(self, values: Iterable[Any], partition: int = 0, *, commit: bool | None = None, **more: Any) -> None:
        """Send messages; `commit` ends a transaction around them so, otherwise there is none."""
        transaction = {} if commit is None else {"transactional.id": uuid.uuid4().hex, "retry.backoff.ms": 5}
        producer = Producer({**self.config, **transaction, "log_level": 0})
        if commit is not None:
            producer.init_transactions()
            producer.begin_transaction()
        for value in values:
            producer.produce(self.name, value=value, partition=partition, **more)
        producer.flush()
        if commit is not None:
            producer.commit_transaction() if commit else producer.abort_transaction()
            self._settle()

    def _settle(self) -> None:
        """Wait until transactions have ended: the broker answers before it has written the end of one."""
        last = time.monotonic() + 3
        while self._end(IsolationLevel.READ_COMMITTED) < self._end(IsolationLevel.READ_UNCOMMITTED):
            if time.monotonic() > last:
                return  # One is open.
            time.sleep(0.01)

    def _end(self, level: IsolationLevel = IsolationLevel.READ_COMMITTED) -> int:
        places = {TopicPartition(self.name, number): OffsetSpec.latest() for number in self._partitions()}

        def ask() -> int:
            answers = self._admin.list_offsets(places, isolation_level=level, request_timeout=5)
            return sum(answer.result().offset for answer in answers.values())

        return self._answered(ask)

    def _partitions(self) -> list[int]:
        return sorted(self._listed().partitions)

    def _listed(self) -> TopicMetadata:
        return self._answered(lambda: self._admin.list_topics(self.name, timeout=5).topics[self.name])

    def _answered(self, ask: Callable[[], R]) -> R:
        """Ask the broker; a client that took it for lost finds it no more, so another one asks then."""
        last = time.monotonic() + 120
        while True:
            try:
                return ask()
            except KafkaException:
                if time.monotonic() > last:
                    raise
            time.sleep(0.05)
            self._admin = AdminClient({**self.config, "log_level": 0})

    def content(self, level: str = "read_committed") -> list[Any]:
        """Return what readers see: (partition, key, value) of all messages, partition by partition."""
        self._settle()
        return [
            (number, message.key(), message.value())
            for number in self._partitions()
            for message in self._messages(number, level)
        ]

    def _messages(self, partition: int, level: str) -> Iterator[Message]:
        """Give the messages of a partition; one reader after another, since one may take the broker for lost."""
        settings = {"group.id": "look", "enable.partition.eof": True, "isolation.level": level, "fetch.wait.max.ms": 10}
        last, offset = time.monotonic() + 120, 0
        while True:
            consumer = Consumer({**self.config, **settings, "auto.offset.reset": "earliest", "log_level": 0})
            consumer.assign([TopicPartition(self.name, partition, offset)])
            while (message := consumer.poll(10)) is not None and message.error() is None:
                offset = message.offset() + 1
                yield message
            consumer.close()
            if message is not None and message.error().code() == KafkaError._PARTITION_EOF:
                return
            if time.monotonic() > last:
                raise TimeoutError(f"{self.name}-{partition} behind {offset}: {message and message.error()}")
