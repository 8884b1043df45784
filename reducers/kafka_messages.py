"""Messages of Kafka: what is made of items, and the producers that hand them over."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from dstream.errors import SinkError, SinkTakenError, SinkUnavailableError
from dstream.values.blaming import each, shown
from dstream.values.kafka_failures import may_pass
from dstream.values.kafka_settings import KafkaSettings

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka import Message as Sent

__all__ = ["PRODUCING", "Client", "Handing", "Making", "Message", "failure", "kept", "taken"]

Message: TypeAlias = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Key, value, headers."""

PRODUCING: dict[str, Any] = {
    "enable.idempotence": True,  # A repetition of the client changes neither the order nor the number of messages.
    "partitioner": "murmur2_random",  # That of Java's clients, so that a key has one partition for all of them.
    "linger.ms": 5,
    "message.timeout.ms": 30_000,
}


@dataclass(frozen=True, slots=True)
class Making:
    """Makes messages of items.

    Attributes:
        key: makes the key; unset, there is none.
        value: makes the value; unset, it is the item.
        headers: makes the headers; unset, there are none.
    """

    key: Callable[[Any], Any] | None
    value: Callable[[Any], Any] | None
    headers: Callable[[Any], Any] | None

    def messages(self, items: Sequence[Any]) -> list[Message]:
        """Return a message for each item; a failure keeps the item that it arose on."""
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


class Client:
    """A producer, and the worst that it has said; a failure that nobody hears breaks its next call.

    Attributes:
        producer: the library's.
        said: why it can do nothing more, or what was wrong last.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        from confluent_kafka import Producer

        self.said = ""
        self._is_fatal = False
        self.producer = Producer({**settings, "error_cb": self._heard})

    def _heard(self, error: KafkaError) -> None:
        if not self._is_fatal:
            self.said, self._is_fatal = error.str(), error.fatal()


class Handing:
    """Hands messages to a producer, and knows what became of them."""

    def __init__(self, client: Client, settings: KafkaSettings, topic: str, label: str) -> None:
        self._client = client
        self._producer = client.producer
        self._settings = settings
        self._topic = topic
        self._label = label
        self._waiting = 0
        self._failed: KafkaError | None = None
        self._unsent: Sent | None = None

    def give(self, messages: Iterable[Message]) -> None:
        """Hand them over, in order; wait while the producer has more than it can hold.

        Raises:
            SinkError: the cluster has refused one of these, or one before.
        """
        for key, value, headers in messages:
            while not self._has_taken(key, value, headers):
                self._heard(self._producer.poll, 0.05)
        self._heard(self._producer.poll, 0)

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
        # Nothing may be asked of the message here: an error of the client may be on its way, and would be lost.
        self._waiting -= 1
        if error is not None and self._failed is None:
            self._failed, self._unsent = error, message

    def finish(self) -> None:
        """Wait until the cluster has them all; each is there, or has failed, after `message.timeout.ms`.

        Raises:
            SinkError: the cluster has refused one of these, or the client does not say what became of it.
        """
        while self._heard(self._producer.flush, 1):
            continue
        if self._waiting:
            where = f"{self._label}: {self._settings.servers}"
            unknown = f"{where}: the client does not say what became of {self._waiting:,} messages"
            raise SinkUnavailableError(self._settings.without_secrets(unknown))

    def _heard(self, serve: Callable[[float], int], seconds: float) -> int:
        """Let the producer say what became of messages; return what `serve` does."""
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
        """Return why a producer can do nothing more: it refuses for that whatever it is asked for; None if it can.

        It throws away its messages a moment before it says so.
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
        return failure(self._settings, self._label, reason, self._client.said, place)


def failure(
    settings: KafkaSettings, label: str, reason: KafkaError | str, said: str = "", place: str = ""
) -> SinkError:
    """Return an error that names the sink, the cluster and the partition, and what a client has said.

    It is a SinkTakenError if another process has begun a transaction of the job, and so ended the one of this process;
    and a SinkUnavailableError if to try again may help.
    """
    words = reason if isinstance(reason, str) else reason.str()
    more = f" ({said})" if said and said not in words else ""
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


def taken(settings: KafkaSettings) -> Client:
    """Return a producer of this process that nobody uses, or a new one."""
    idle = _IDLE.get((os.getpid(), settings))
    return idle.pop() if idle else Client(settings.for_client(PRODUCING, {}))


def kept(settings: KafkaSettings, client: Client) -> None:
    """Keep a producer that has handed everything over: a task after this one needs no connections of its own."""
    idle = _IDLE.setdefault((os.getpid(), settings), [])
    idle.append(client)
    del idle[:-_MOST_IDLE]


_MOST_IDLE = 4
_IDLE: dict[tuple[int, KafkaSettings], list[Client]] = {}


@atexit.register
def _let_go() -> None:
    _IDLE.clear()
