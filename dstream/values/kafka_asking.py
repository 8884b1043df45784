"""`Asking`: the client that asks a Kafka cluster what is there, and that knows why nobody answers."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dstream.values.kafka_settings import KafkaSettings

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

__all__ = ["Asking"]


class Asking:
    """A client of the library, and what it has reported beside its answers.

    A call that fails says only that nobody answers: that a name does not resolve, or that a password is wrong, is
    reported aside (confluent-kafka 2.16).

    Attributes:
        client: the library's.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        from confluent_kafka.admin import AdminClient

        self._heard = heard = deque[str](maxlen=1)

        def hear(error: KafkaError) -> None:
            if error.code() != error._ALL_BROKERS_DOWN:  # It follows the reason of each of them, and has none.
                heard.append(error.str())

        self.client = AdminClient(settings.for_client({}, {"error_cb": hear}))

    def forget(self) -> None:
        """Let go of what was reported so far, which belongs to earlier calls."""
        self.client.poll(0)
        self._heard.clear()

    def said(self) -> str:
        """Return what was reported last; nothing if nothing was."""
        self.client.poll(0)
        return self._heard[-1] if self._heard else ""
