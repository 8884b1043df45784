"""Producers of Kafka: delivery of messages, and transactions of a job.

A transaction has the messages of an epoch and its number, which is the offset of a consumer group in partition 0 of the
topic. The group is named after the job and has no members. Kafka publishes both or neither, so the number shows whether
the messages are written. One process at a time can commit: a later one fences the others.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from dstream.base.threads import in_a_thread
from dstream.connectors.kafka.settings import KafkaSettings, OpenClients, may_pass
from dstream.errors import SinkError, SinkTakenError, SinkUnavailableError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka import Message as Sent

__all__ = [
    "PRODUCING",
    "Message",
    "MessageProducer",
    "ProducerClient",
    "Transactions",
    "failure",
    "kept",
    "taken",
    "transactions",
]


Message: TypeAlias = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Key, value, headers."""

PRODUCING: dict[str, Any] = {
    "enable.idempotence": True,  # A repetition of the client changes neither the order nor the number of messages.
    "partitioner": "murmur2_random",  # As in Java's clients, so that a key has one partition for all.
    "linger.ms": 5,
    "message.timeout.ms": 30_000,
}


class ProducerClient:
    """A producer, and the worst error that it has reported; without a listener, a failure breaks its next call.

    Attributes:
        producer: the library's.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        from confluent_kafka import Producer

        # A method of the client as the listener would be a cycle, which has threads and sockets until Python finds it.
        self._reports = _Reports()
        self.producer = Producer({**settings, "error_cb": self._reports.add})

    @property
    def last_error(self) -> str:
        """Why it can do nothing more, or what was wrong last."""
        return self._reports.worst

    def give_up(self) -> None:
        """Drop the messages that were not delivered, so that the producer ends with this client; raise nothing."""
        # librdkafka refers to the listener of each message, and so to the producer, until the loss is reported (2.16).
        for drop in (self.producer.purge, lambda: self.producer.poll(0)):
            with suppress(Exception):
                drop()


class _Reports:
    """The worst error so far: the first fatal one, or else the last."""

    def __init__(self) -> None:
        self.worst = ""
        self._is_fatal = False

    def add(self, error: KafkaError) -> None:
        if not self._is_fatal:
            self.worst, self._is_fatal = error.str(), error.fatal()


class MessageProducer:
    """Passes messages to a producer, and counts their delivery."""

    def __init__(self, client: ProducerClient, settings: KafkaSettings, topic: str, label: str) -> None:
        self._client = client
        self._producer = client.producer
        self._settings = settings
        self._topic = topic
        self._label = label
        self._waiting = 0
        self._failed: KafkaError | None = None
        self._unsent: Sent | None = None

    def give(self, messages: Iterable[Message]) -> None:
        """Pass them to the producer, in order; wait while its buffer is full.

        Raises:
            SinkError: the cluster has refused one of these, or one before.
        """
        for key, value, headers in messages:
            while not self._has_taken(key, value, headers):
                self._served(self._producer.poll, 0.05)
        # Deliveries are reported within `poll` alone, and free the queue of the client.
        self._served(self._producer.poll, 0)

    def _has_taken(self, key: bytes | None, value: bytes | None, headers: Any) -> bool:
        from confluent_kafka import KafkaException

        try:
            self._producer.produce(self._topic, value=value, key=key, headers=headers, on_delivery=self._delivered)
        except BufferError:
            return False
        except KafkaException as error:
            raise self._failure(error.args[0]) from None
        self._waiting += 1
        return True

    def _delivered(self, error: KafkaError | None, message: Sent) -> None:
        # No method of the message may be called here: a pending error of the client would be lost.
        self._waiting -= 1
        if error is not None and self._failed is None:
            self._failed, self._unsent = error, message

    def finish(self) -> None:
        """Wait until all messages are written, or have failed, at most `message.timeout.ms`.

        Raises:
            SinkError: the cluster has refused one of these, or the client does not report its delivery.
        """
        # In steps of a second, since a failed message ends the wait for the others.
        while self._served(self._producer.flush, 1):
            continue
        if self._waiting:
            where = f"{self._label}: {self._settings.servers}"
            unknown = f"{where}: the client does not say what became of {self._waiting:,} messages"
            raise SinkUnavailableError(self._settings.without_secrets(unknown))

    def _served(self, serve: Callable[[float], int], seconds: float) -> int:
        """Make the producer report deliveries; return the result of `serve`."""
        from confluent_kafka import KafkaException

        try:
            number = serve(seconds)
        except KafkaException as error:  # A producer that was cut off raises so.
            raise self._failure(error.args[0]) from None
        except SystemError as error:
            raise self._failure(self._reason(error)) from None
        if self._failed is not None:
            raise self._failure((_is_purged(self._failed) and self._fatal()) or self._failed)
        return number

    def _reason(self, error: SystemError) -> KafkaError | str:
        """Return why a producer can do nothing more.

        It raises that while it also reports a message, so that Python sees two errors at once, or the report takes the
        error away (confluent-kafka 2.16).
        """
        from confluent_kafka import KafkaException

        if isinstance(error.__cause__, KafkaException):
            return cast("KafkaError", error.__cause__.args[0])
        return self._fatal() or self._failed or str(error)

    def _fatal(self) -> KafkaError | None:
        """Return why a producer can do nothing more: it refuses every call for that; None if it can.

        It drops its messages a moment before it reports that.
        """
        from confluent_kafka import KafkaException

        last = time.monotonic() + _A_MOMENT
        while True:
            try:
                self._producer.abort_transaction(0)
            except KafkaException as refused:
                reason: KafkaError = refused.args[0]
                if reason.fatal():
                    return reason
            if time.monotonic() > last:
                return None
            time.sleep(0.01)

    def _failure(self, reason: KafkaError | str) -> SinkError:
        partition = None if self._unsent is None else self._unsent.partition()
        place = "" if partition is None or partition < 0 else f"partition {partition}: "
        return failure(self._settings, self._label, reason, self._client.last_error, place)


def failure(
    settings: KafkaSettings, label: str, reason: KafkaError | str, last_error: str = "", place: str = ""
) -> SinkError:
    """Return an error that names the sink, the cluster and the partition, and has the client's message.

    It is a SinkTakenError if another process has begun a transaction of the job, and so ended the one of this process;
    and a SinkUnavailableError if a retry may help.
    """
    words = reason if isinstance(reason, str) else reason.str()
    more = f" ({last_error})" if last_error and last_error not in words else ""
    kind = SinkError if isinstance(reason, str) else _kind(reason)
    return kind(settings.without_secrets(f"{label}: {settings.servers}: {place}{words}{more}"))


def _kind(reason: KafkaError) -> type[SinkError]:
    if _is_cut_off(reason):
        return SinkTakenError
    return SinkUnavailableError if may_pass(reason) else SinkError


_A_MOMENT = 1.0
"""Seconds."""


def _is_purged(error: KafkaError) -> bool:
    return error.code() in (error._PURGE_QUEUE, error._PURGE_INFLIGHT)


def _is_cut_off(error: KafkaError) -> bool:
    from confluent_kafka import KafkaError

    return error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


def taken(settings: KafkaSettings) -> ProducerClient:
    """Return an idle producer of this process, or a new one."""
    try:
        # Without a check of the list, since another thread may take the last one in between.
        return _IDLE[os.getpid(), settings].pop()
    except LookupError:
        return ProducerClient(settings.for_client(PRODUCING, {}))


def kept(settings: KafkaSettings, client: ProducerClient) -> None:
    """Cache a producer that has delivered everything: a later task needs no new connections."""
    idle = _IDLE.setdefault((os.getpid(), settings), [])
    idle.append(client)
    del idle[:-_MOST_IDLE]


_MOST_IDLE = 4
_IDLE: dict[tuple[int, KafkaSettings], list[ProducerClient]] = {}


@atexit.register
def _let_go() -> None:
    _IDLE.clear()


R = TypeVar("R")
_Seeing: TypeAlias = Literal["read_committed", "read_uncommitted"]
"""Whether to wait for open transactions, or to ignore them."""

PATIENCE = 30.0
"""Seconds without an answer after which a cluster counts as lost."""

_PAUSE = 0.05
_FORGETTING = 5.0
_TRANSACTIONAL = {**PRODUCING, "retry.backoff.ms": 10}  # By default a commit waits at least once for 100 ms.


def transactions(settings: KafkaSettings, topic: str, job: str, label: str) -> Transactions:
    """Return this process's transactions, which remain open: a new producer waits until an old one counts as dead."""
    return _OPEN.of(settings, topic, job, make=lambda: Transactions(settings, topic, job, label))


_OPEN: OpenClients[Transactions] = OpenClients()


class Transactions:
    """The epochs of one job in one topic."""

    def __init__(self, settings: KafkaSettings, topic: str, job: str, label: str) -> None:
        self._settings = settings
        self._topic = topic
        self._job = job
        self._label = label
        self._group = f"dstream-{job}"
        self._lock = threading.Lock()
        self._client: ProducerClient | None = None
        self._looking: dict[_Seeing, Consumer] = {}

    def epoch(self) -> int:
        """Return the number of the last epoch in the topic; 0 if there is none.

        One that is about to be committed, or that a process which has died has left open, does not count: it is not
            awaited.

        Raises:
            SinkError: the cluster does not answer.
        """
        return self._asked(lambda: self._looked_up("read_uncommitted"))

    def _looked_up(self, seeing: _Seeing) -> int:
        """Return the number of the last epoch; `read_committed` waits for the end of each transaction."""
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
        """Write an epoch, unless it, or a later one, is written.

        Args:
            epoch: its number.
            messages: returns them; it is called once no other process can write.

        Raises:
            SinkTakenError: another process has taken over.
            SinkError: the cluster refuses. In both cases, nothing is written, unless only the response was lost; a
                retry finds out.
        """
        from confluent_kafka import KafkaException

        try:
            with self._lock:
                # Fence others before the number is read, or it could increase between the read and the transaction.
                client = self._begun()
                # What others began has ended, but Kafka may not have stored the number yet.
                if self._asked(lambda: self._looked_up("read_committed")) < epoch:
                    self._write(client, epoch, messages())
        except KafkaException as error:
            failed = self._failure(error.args[0])
            self._give_up()
            raise failed from None
        except BaseException:
            self._give_up()
            raise

    def _begun(self) -> ProducerClient:
        """Return a producer that has fenced earlier ones, and has finished or aborted their transactions."""
        if self._client is None:
            fixed = {"transactional.id": f"dstream-{self._topic}-{self._job}", "enable.idempotence": True}
            made = ProducerClient(self._settings.for_client(_TRANSACTIONAL, fixed))
            self._asked(lambda: made.producer.init_transactions(PATIENCE))
            self._client = made
        return self._client

    def _write(self, client: ProducerClient, epoch: int, messages: Iterable[list[Message]]) -> None:
        from confluent_kafka import TopicPartition

        producer = client.producer
        producer.begin_transaction()
        handing = MessageProducer(client, self._settings, self._topic, self._label)
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
        """Return a response of the cluster; retry for a while if that may help."""
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
        """Remove the number of a job that no other process commits; raise nothing. Kafka would retain it for a week."""
        from confluent_kafka.admin import AdminClient

        client = AdminClient(self._settings.for_client({}, {}))
        with suppress(Exception):
            client.delete_consumer_groups([self._group])[self._group].result(_FORGETTING)

    def _give_up(self) -> None:
        """Leave nothing of a transaction that failed; the next one begins with clients for which no broker is lost."""
        client, self._client = self._client, None
        self._looking = {}
        if client is not None:
            with suppress(Exception):  # Another one has taken over, or the cluster is lost and aborts it.
                client.producer.purge()
                client.producer.abort_transaction(5)
            client.give_up()

    def _failure(self, reason: KafkaError | str) -> SinkError:
        return failure(self._settings, self._label, reason, self._client.last_error if self._client else "")


def _in_time(ask: Callable[[], object]) -> None:
    """Wait for a response in another thread: sending offsets ignores time-outs.

    It waits for ever if a broker was down until clients forgot it (librdkafka 2.16, its issues 5456 and 5511). The
    waiting thread is abandoned then, with its producer, which a new one fences.

    Raises:
        KafkaException: there was no response in time, or it is a refusal.
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
    """Return whether the same call may help, as while brokers elect the coordinator of a group."""
    return error.retriable() or (may_pass(error) and not error.txn_requires_abort() and not error.fatal())
