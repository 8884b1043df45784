"""`KafkaSettings`: the configuration of a cluster, its administrative client, transient errors."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dstream.base.environment import pip_install
from dstream.base.showing import shown
from dstream.base.threads import RenewedLock
from dstream.base.urls import is_reference, looked_up
from dstream.errors import SetupError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

__all__ = ["ClusterClient", "KafkaSettings", "OpenClients", "checked_topic", "kafka_settings", "may_pass"]


_PASSING = (
    # Of the client: there is no response, or not in time.
    *("_ALL_BROKERS_DOWN", "_MSG_TIMED_OUT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "_WAIT_COORD"),
    # A new partition, or one whose leader changes, is known to one broker before another.
    *("_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_OR_PART", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"),
    *("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "UNSTABLE_OFFSET_COMMIT"),
    # Of brokers that start, stop, or are alone for a while.
    *("BROKER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
    *("KAFKA_STORAGE_ERROR", "NETWORK_EXCEPTION", "REQUEST_TIMED_OUT"),
    # A client that fetches offsets has no broker any more, and so no leader (librdkafka 2.16).
    "_NOENT",
    *("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "CONCURRENT_TRANSACTIONS"),
    # The cluster has forgotten a producer, as one that was idle for a week: a new one can continue.
    *("INVALID_PRODUCER_ID_MAPPING", "INVALID_TXN_STATE", "UNKNOWN_PRODUCER_ID"),
)


def may_pass(error: KafkaError) -> bool:
    """Return whether a failure is one of now. `retriable()` alone does not: only producers with transactions set it."""
    return error.retriable() or any(error.code() == getattr(error, name) for name in _PASSING)


_SERVERS = "bootstrap.servers"
_QUIET = {"log_level": 2}
"""Errors of a client are raised; its own lines on stderr would repeat them."""

_PUBLIC = frozenset({_SERVERS, "client.id", "group.id", "security.protocol", "sasl.mechanism", "isolation.level"})
"""Settings whose values a message may show; all others could be secrets."""

_LONGEST_TOPIC = 249


@dataclass(frozen=True, slots=True, repr=False)
class KafkaSettings:
    """The settings of a client, whose values are never shown.

    Attributes:
        items: names and values, sorted; a value may be a reference to a secret.
    """

    items: tuple[tuple[str, Any], ...]

    @property
    def servers(self) -> str:
        """The addresses of the bootstrap servers."""
        return str(dict(self.items)[_SERVERS])

    def for_client(self, defaults: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a client: the user's between our `defaults` and the `fixed` ones.

        Raises:
            SetupError: a secret that a setting refers to is not in this process.
        """
        settings = {name: looked_up(value) if is_reference(value) else value for name, value in self.items}
        return {**_QUIET, **defaults, **settings, **fixed}

    def without_secrets(self, text: str) -> str:
        """Return a client's message, without the value of any setting that could be a secret."""
        for name, value in self.items:
            secret = _secret(value)
            # A value of three characters or fewer may be in any message, which would lose its words.
            if name not in _PUBLIC and len(secret) > 3:
                text = text.replace(secret, "***")
        return text

    def __repr__(self) -> str:
        return f"<settings for {self.servers}>"


def _secret(value: Any) -> str:
    """Return the value of a setting in this process, if it is a string; empty for an unresolved reference."""
    if not is_reference(value):
        return value if isinstance(value, str) else ""
    try:
        return looked_up(value)
    except SetupError:
        return ""


def kafka_settings(
    call: str, config: Mapping[str, Any], kind: str, kept: Iterable[str], defaults: Mapping[str, Any]
) -> KafkaSettings:
    """Return the settings, checked by the library, which connects to nothing meanwhile.

    Args:
        call: the function with the argument `config`.
        config: the configuration of confluent-kafka; a value `env:NAME` or `file:path` refers to a secret.
        kind: the kind of client, `"Consumer"` or `"Producer"`.
        kept: names of settings that the caller sets itself.
        defaults: further settings of the client, which `config` may override.

    Raises:
        SetupError: the library is not installed, or a secret that `config` refers to does not exist.
        TypeError: `config` is no mapping of names to values.
        ValueError: it lacks `bootstrap.servers`, or has an unknown setting, or one of `kept`.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config must be a mapping such as {{'{_SERVERS}': 'host:9092'}}, not {type(config).__name__}")
    if find_spec("confluent_kafka") is None:
        raise SetupError(f"{call}() needs the package confluent-kafka: {pip_install('kafka')}")
    for name, value in config.items():
        if not isinstance(name, str):
            raise TypeError(f"config must have names that are str, not {shown(name)}")
        if not isinstance(value, str | int | float) and not (name == "oauth_cb" and callable(value)):
            raise TypeError(f"config[{name!r}] must be a text, a number or a bool, not {type(value).__name__}")
        if name in kept:
            raise ValueError(f"config[{name!r}] is what {call}() sees to itself: leave it out")
    if not config.get(_SERVERS):
        raise ValueError(f"config must name the cluster: {{'{_SERVERS}': 'host:9092'}}")
    settings = KafkaSettings(tuple(sorted(config.items())))
    _refuse_what_no_client_takes(settings, kind, defaults)
    return settings


def _refuse_what_no_client_takes(settings: KafkaSettings, kind: str, defaults: Mapping[str, Any]) -> None:
    import confluent_kafka

    make: Callable[[Mapping[str, Any]], Any] = getattr(confluent_kafka, kind)
    # Without the address of a cluster it connects to none.
    tried = {name: value for name, value in settings.for_client(defaults, {}).items() if name != _SERVERS}
    try:
        make(tried)
    except confluent_kafka.KafkaException as error:
        raise ValueError(f"config: {settings.without_secrets(error.args[0].str())}") from None


def checked_topic(topic: Any, argument: str) -> str:
    """Return the name of a topic.

    Raises:
        TypeError: it is no str.
        ValueError: no topic can have this name.
    """
    if not isinstance(topic, str):
        raise TypeError(f"{argument} must be the name of a topic, not {type(topic).__name__}")
    is_plain = topic.replace(".", "a").replace("_", "a").replace("-", "a").isalnum() and topic.isascii()
    if not is_plain or len(topic) > _LONGEST_TOPIC or topic in (".", ".."):
        raise ValueError(f"{argument} must be the name of a topic (letters, digits, '.', '_', '-'), not {shown(topic)}")
    return topic


T = TypeVar("T")


class OpenClients(Generic[T]):
    """Open clients of the jobs of each process, at most eight; the oldest is evicted."""

    def __init__(self) -> None:
        self._by_process: dict[int, dict[tuple[Any, ...], T]] = {}
        # Each job uses a separate thread, and entries may be removed and added concurrently.
        self._lock = RenewedLock()

    def _here(self) -> dict[tuple[Any, ...], T]:
        # A fork copies a client without its threads, and librdkafka crashes when it closes such a one.
        return self._by_process.setdefault(os.getpid(), {})

    def of(self, *key: Any, make: Callable[[], T]) -> T:
        """Return the object of a key, created if missing."""
        with self._lock:
            here = self._here()
            if key not in here:
                here[key] = make()
            found = here[key]
            dropped = [here.pop(first) for first in list(here)[:-_MOST_OPEN]]
        del dropped  # Without the lock: a client leaves its cluster first.
        return found

    def clear(self) -> None:
        """Remove the clients of this process."""
        with self._lock:
            dropped = self._by_process.pop(os.getpid(), {})
        dropped.clear()


_MOST_OPEN = 8


class ClusterClient:
    """A client of the library, with its asynchronous error reports.

    A failed call reports only that there is no response: an unresolved name, or a wrong password, is reported
    asynchronously (confluent-kafka 2.16).

    Attributes:
        client: the library's.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        from confluent_kafka.admin import AdminClient

        self._errors = errors = deque[str](maxlen=1)

        def on_error(error: KafkaError) -> None:
            if error.code() != error._ALL_BROKERS_DOWN:  # It follows the reason of each of them, and has none.
                errors.append(error.str())

        self.client = AdminClient(settings.for_client({}, {"error_cb": on_error}))

    def forget(self) -> None:
        """Forget the reports so far, which belong to earlier calls."""
        self.client.poll(0)
        self._errors.clear()

    def last_error(self) -> str:
        """Return the last report; empty if there is none."""
        self.client.poll(0)
        return self._errors[-1] if self._errors else ""
