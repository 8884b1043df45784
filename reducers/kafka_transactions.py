"""Transactions of a job into a topic of Kafka: messages, and with them the number of the epoch that they are of.

The number is the offset that a consumer group has in partition 0 of the topic. The group is named after the job and
nobody joins it. Kafka shows both or neither, so whoever asks for the number knows whether the messages are there. One
process at a time can commit: who comes later cuts off the others.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from dstream.errors import SinkError
from dstream.values.idle_threads import in_a_thread
from dstream.values.kafka_failures import may_pass
from dstream.values.kafka_settings import KafkaSettings
from reducers.kafka_messages import PRODUCING, Client, Handing, Message, failure

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError

__all__ = ["Transactions", "transactions"]

R = TypeVar("R")
_Seeing: TypeAlias = Literal["read_committed", "read_uncommitted"]
"""Whether to wait for transactions that have not ended, or to look past them."""

PATIENCE = 30.0
"""Seconds without an answer after which a cluster counts as gone."""

_PAUSE = 0.05
_FORGETTING = 5.0
_TRANSACTIONAL = {**PRODUCING, "retry.backoff.ms": 10}  # By default a commit waits for 100 ms at least once.


def transactions(settings: KafkaSettings, topic: str, job: str, label: str) -> Transactions:
    """Return those of this process, which stay open: a new producer has to wait until an old one counts as dead."""
    key = (os.getpid(), settings, topic, job)
    if key not in _OPEN:
        _OPEN[key] = Transactions(settings, topic, job, label)
        while len(_OPEN) > _MOST_OPEN:
            del _OPEN[next(iter(_OPEN))]
    return _OPEN[key]


_MOST_OPEN = 8
_OPEN: dict[tuple[Any, ...], Transactions] = {}


class Transactions:
    """The epochs of one job in one topic."""

    def __init__(self, settings: KafkaSettings, topic: str, job: str, label: str) -> None:
        self._settings = settings
        self._topic = topic
        self._job = job
        self._label = label
        self._group = f"dstream-{job}"
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._looking: dict[_Seeing, Consumer] = {}

    def epoch(self) -> int:
        """Return the number of the last epoch that is in the topic; 0 if there is none.

        One that is about to come in, or that a process which has died has left open, is not there yet: nobody waits for
        it here.

        Raises:
            SinkError: the cluster does not answer.
        """
        return self._asked(lambda: self._looked_up("read_uncommitted"))

    def _looked_up(self, seeing: _Seeing) -> int:
        """Return that number; `read_committed` waits until each transaction that would change it has ended."""
        from confluent_kafka import KafkaException, TopicPartition

        [found] = self._consumer(seeing).committed([TopicPartition(self._topic, 0)], PATIENCE)
        if found.error is not None:
            raise KafkaException(found.error)
        return max(0, found.offset)

    def _consumer(self, seeing: _Seeing) -> Consumer:
        from confluent_kafka import Consumer

        if seeing not in self._looking:
            fixed = {"group.id": self._group, "isolation.level": seeing, "enable.auto.commit": False}
            self._looking[seeing] = Consumer(self._settings.for_client({}, fixed))
        return self._looking[seeing]

    def publish(self, epoch: int, messages: Callable[[], Iterable[list[Message]]]) -> None:
        """Write an epoch, unless it, or one behind it, is there.

        Args:
            epoch: its number.
            messages: gives them; it is called once nobody else can write.

        Raises:
            SinkTakenError: another process has taken over.
            SinkError: the cluster refuses. Here as there, nothing is written, unless only the answer was lost; a
                repetition finds out.
        """
        from confluent_kafka import KafkaException

        try:
            with self._lock:
                client = self._begun()
                # What others began has ended, but Kafka may not have come to the number yet.
                if self._asked(lambda: self._looked_up("read_committed")) < epoch:
                    self._write(client, epoch, messages())
        except KafkaException as error:
            failed = self._failure(error.args[0])
            self._give_up()
            raise failed from None
        except BaseException:
            self._give_up()
            raise

    def _begun(self) -> Client:
        """Return a producer that has cut off those before it, and has finished or given up what they began."""
        if self._client is None:
            fixed = {"transactional.id": f"dstream-{self._topic}-{self._job}", "enable.idempotence": True}
            made = Client(self._settings.for_client(_TRANSACTIONAL, fixed))
            self._asked(lambda: made.producer.init_transactions(PATIENCE))
            self._client = made
        return self._client

    def _write(self, client: Client, epoch: int, messages: Iterable[list[Message]]) -> None:
        from confluent_kafka import TopicPartition

        producer = client.producer
        producer.begin_transaction()
        handing = Handing(client, self._settings, self._topic, self._label)
        for batch in messages:
            handing.give(batch)
        handing.finish()
        number, group = (
            [TopicPartition(self._topic, 0, epoch)],
            self._consumer("read_committed").consumer_group_metadata(),
        )
        self._asked(lambda: _in_time(lambda: producer.send_offsets_to_transaction(number, group, PATIENCE)))
        self._asked(lambda: producer.commit_transaction(PATIENCE))

    def _asked(self, ask: Callable[[], R]) -> R:
        """Return an answer of the cluster; ask again for a while if that may help."""
        from confluent_kafka import KafkaException

        last = time.monotonic() + PATIENCE
        while True:
            try:
                return ask()
            except KafkaException as error:
                if time.monotonic() + _PAUSE > last or not _may_be_asked_again(error.args[0]):
                    raise self._failure(error.args[0]) from None
            time.sleep(_PAUSE)

    def forget(self) -> None:
        """Remove the number, of a job that nobody else can commit; raises nothing. Kafka would keep it for a week."""
        from confluent_kafka.admin import AdminClient

        client = AdminClient(self._settings.for_client({}, {}))
        with suppress(Exception):
            client.delete_consumer_groups([self._group])[self._group].result(_FORGETTING)

    def _give_up(self) -> None:
        """Leave nothing of a transaction that failed; the next one begins with clients that know no broker as lost."""
        client, self._client = self._client, None
        self._looking = {}
        if client is not None:
            with suppress(Exception):  # Another one has taken over, or the cluster is gone and gives up by itself.
                client.producer.purge()
                client.producer.abort_transaction(5)

    def _failure(self, reason: KafkaError | str) -> SinkError:
        return failure(self._settings, self._label, reason, self._client.said if self._client else "")


def _in_time(ask: Callable[[], object]) -> None:
    """Wait for an answer in another thread: sending offsets keeps to no time-out.

    It waits for ever if a broker was away for as long as clients forget it (librdkafka 2.16, its issues 5456 and 5511).
    The thread that waits is left behind then, with its producer, which a new one cuts off.

    Raises:
        KafkaException: there was none in time, or it says no.
    """
    from confluent_kafka import KafkaError, KafkaException

    answered = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            ask()
        except BaseException as error:
            failed.append(error)
        answered.set()

    in_a_thread(run, "dstream-kafka")
    if not answered.wait(PATIENCE):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer for {PATIENCE:g} s"))
    if failed:
        raise failed[0]


def _may_be_asked_again(error: KafkaError) -> bool:
    """Say whether the same call may help, as while brokers agree on who coordinates a group."""
    return error.retriable() or (may_pass(error) and not error.txn_requires_abort() and not error.fatal())
