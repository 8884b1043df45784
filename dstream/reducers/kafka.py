"""`to_kafka`: items as messages of a topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

from dstream.arguments import running_function
from dstream.base.showing import shown
from dstream.connectors.base import checked_text
from dstream.connectors.kafka.producers import PRODUCING
from dstream.connectors.kafka.settings import checked_topic, kafka_settings
from dstream.connectors.kafka.sinks import Guarantee, KafkaSink, MessageMaker, MessageWriter, PassingKafkaSink
from dstream.spi import Reducer

__all__ = ["to_kafka"]


T = TypeVar("T")


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
    """Send each item as a message to a topic of Kafka, which has to exist.

    Exactly once: tasks stage the messages in a list of the storage, and the commit sends them all in one transaction.
    A reader with `isolation.level=read_committed` sees all or none of them; Kafka's own default shows also what is
    not committed. At least once: tasks send the messages themselves, which costs less and shows them at once. The
    package is installed by `pip install 'dstream-spark[kafka]'`.

    **Parallelism**: messages are made where the items are. Exactly once the caller sends them, in encounter order; at
    least once each task sends its own. The order of messages holds within a partition of Kafka.
    **Guarantee**: as it is asked for. The number of the epoch is sent with the messages, as the offset of a group named
    after the job, so that a commit that is asked again does nothing. Kafka forgets that number a week after the last
    commit of a job (`offsets.retention.minutes`); then a job that is run again sends again.
    **On re-run**: the items are sent again, unless `job` names the job.

    Args:
        topic: its name.
        config: settings of confluent-kafka, at least `{"bootstrap.servers": "host:9092"}`. They are never shown. A
            value `env:NAME` or `file:/path` is a secret that each process looks up. A
            transaction must end within `transaction.timeout.ms`, a minute by default.
        key: makes the key of an item: bytes, a str or None. Items of one key are written into one partition, the same
            that Java's clients choose.
        value: makes the value, the same; unset, it is the item. None removes the key from a compacted topic.
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
            running_function(fn, argument)
    if guarantee not in get_args(Guarantee):
        raise ValueError(f"guarantee must be 'exactly-once' or 'at-least-once', not {shown(guarantee)}")
    if job is not None:
        checked_text(job, "job")
        if guarantee == "at-least-once":
            raise ValueError("job is committed once, which guarantee='at-least-once' does not see to")
    # With an id, librdkafka also refuses settings that contradict transactions.
    transaction = {"transactional.id": "none"} if guarantee == "exactly-once" else {}
    settings = kafka_settings("to_kafka", config, "Producer", _OURS, {**PRODUCING, **transaction})
    shown_guarantee = "" if guarantee == "exactly-once" else f", guarantee={guarantee!r}"
    label = f"to_kafka({topic!r}{shown_guarantee})"
    making = MessageMaker(key, value, headers)
    if guarantee == "at-least-once":
        return PassingKafkaSink(label, MessageWriter(label, settings, topic, making))
    return KafkaSink(label, settings, topic, making, job)


_OURS = ("transactional.id", "enable.idempotence", "group.id", "isolation.level")
