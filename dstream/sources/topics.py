"""`kafka`: topics of Kafka as a source."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args, overload

from dstream.arguments import running_function
from dstream.base.showing import shown
from dstream.connectors.kafka.consumers import DEFAULTS, FIXED, KafkaRecord, RecordMaker
from dstream.connectors.kafka.settings import checked_topic, kafka_settings
from dstream.connectors.kafka.sources import (
    Config,
    KafkaTopics,
    KafkaUpToLatest,
    Latest,
    Make,
    ProjectedTopics,
    RecordTopics,
    Start,
    TopicOffsets,
    Topics,
)
from dstream.spi.source import Source, StreamSource

__all__ = ["kafka"]


K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


@overload
def kafka(
    topics: Topics, config: Config, *, start: Start = ..., until: None = ...
) -> StreamSource[KafkaRecord[bytes, bytes]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, value: Make[V], start: Start = ..., until: None = ...
) -> StreamSource[KafkaRecord[bytes, V]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, key: Make[K], start: Start = ..., until: None = ...
) -> StreamSource[KafkaRecord[K, bytes]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, key: Make[K], value: Make[V], start: Start = ..., until: None = ...
) -> StreamSource[KafkaRecord[K, V]]: ...
@overload
def kafka(
    topics: Topics,
    config: Config,
    *,
    key: Make[Any] | None = ...,
    value: Make[Any] | None = ...,
    projection: Callable[[KafkaRecord[Any, Any]], R | None],
    start: Start = ...,
    until: None = ...,
) -> StreamSource[R]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, start: Start = ..., until: Latest
) -> Source[KafkaRecord[bytes, bytes]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, value: Make[V], start: Start = ..., until: Latest
) -> Source[KafkaRecord[bytes, V]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, key: Make[K], start: Start = ..., until: Latest
) -> Source[KafkaRecord[K, bytes]]: ...
@overload
def kafka(
    topics: Topics, config: Config, *, key: Make[K], value: Make[V], start: Start = ..., until: Latest
) -> Source[KafkaRecord[K, V]]: ...
@overload
def kafka(
    topics: Topics,
    config: Config,
    *,
    key: Make[Any] | None = ...,
    value: Make[Any] | None = ...,
    projection: Callable[[KafkaRecord[Any, Any]], R | None],
    start: Start = ...,
    until: Latest,
) -> Source[R]: ...
def kafka(
    topics: Topics,
    config: Config,
    *,
    key: Make[Any] | None = None,
    value: Make[Any] | None = None,
    projection: Callable[[KafkaRecord[Any, Any]], Any] | None = None,
    start: Start = "earliest",
    until: Latest | None = None,
) -> StreamSource[Any] | Source[Any]:
    """Read the messages of topics in Kafka, without an end or up to their present end.

    Messages of one partition are read in the order of their offsets. Up to the latest they are read partition by
    partition; how far that is, is asked when a terminal operation or a job starts. Without `until`, a job also reads
    the partitions and topics that are added later. The package is installed by `pip install 'dstream-spark[kafka]'`.

    **Parallelism**: one task for each range of offsets of a partition; up to the latest, large partitions are divided
    into several ranges. Clients stay open in the workers from range to range of a stream.
    **Guarantee**: each message once. Offsets are kept by the job and not in Kafka, no consumer group is joined. Of
    transactions those that were committed are read. Messages that Kafka removed before they were read are a failure.
    **On re-run**: a job resumes behind what it has read, and refuses a topic that was made anew under its name. A
    stream, or a job up to the latest, reads the messages of that time.

    Args:
        topics: the name of a topic, several names, or a compiled pattern that the whole name matches.
        config: settings of confluent-kafka, at least `{"bootstrap.servers": "host:9092"}`. They are never shown.
            A value `env:NAME` or `file:/path` is a secret that each process looks up.
        key: makes a key of its bytes, such as `bytes.decode`; unset, keys are bytes. One that is missing stays None.
        value: the same for values, such as `json.loads`.
        projection: makes the item of each record, where it is read; a record for which it returns None is dropped.
            `native_timestamps()` gives each item the time of its record.
        start: where a new job begins: `"earliest"`, `"latest"`, at the first message that is not older than a
            datetime with a time zone, or at an offset for each partition, `{("orders", 0): 17}`; partitions that are
            not named begin at the earliest.
        until: `"latest"` ends where the topics end when it starts.

    Raises:
        SetupError: the package is not installed.
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices, or `config` has what no client takes.
        SourceError: when it runs: a topic is not there, the cluster does not answer for 30 s, or messages are lost.

    Example:
        >>> from sources import kafka
        >>> orders = kafka("orders", {"bootstrap.servers": "localhost:9092"}, value=bytes.decode, until="latest")
        >>> orders
        kafka('orders', until='latest')
        >>> with connect(engine="local") as ctx:
        ...     big = ctx.read(orders).filter(lambda record: len(record.value) > 100)
    """
    names = _checked_topics(topics)
    functions: dict[str, Any] = {"key": key, "value": value, "projection": projection}
    for argument, fn in functions.items():
        if fn is not None:
            running_function(fn, argument)
    if until not in (None, *get_args(Latest)):
        raise ValueError(f"until must be 'latest' or None, not {shown(until)}")
    checked = _checked_start(start)
    settings = kafka_settings("kafka", config, "Consumer", [*FIXED, "error_cb"], {**DEFAULTS, **FIXED})
    written = [shown(topics.pattern) if isinstance(topics, re.Pattern) else shown(topics)]
    label = f"kafka({', '.join(written + (['until=' + repr(until)] if until else []))})"
    kind: type[KafkaTopics[Any]] = RecordTopics if projection is None else ProjectedTopics
    source = kind(label, TopicOffsets(label, settings, names), checked, RecordMaker(**functions))
    return source if until is None else KafkaUpToLatest(source)


def _checked_topics(topics: Any) -> tuple[str, ...] | re.Pattern[str]:
    if isinstance(topics, re.Pattern):
        if not isinstance(topics.pattern, str):
            raise TypeError("topics must be a pattern of text, not of bytes")
        return topics
    if isinstance(topics, str):
        return (checked_topic(topics, "topics"),)
    if not isinstance(topics, Sequence) or isinstance(topics, bytes):
        raise TypeError(f"topics must be a name, several names, or a compiled pattern, not {type(topics).__name__}")
    names = tuple(checked_topic(name, "each of topics") for name in topics)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"topics must be at least one name, each of them once, not {shown(topics)}")
    return names


def _checked_start(start: Any) -> Start:
    if isinstance(start, datetime.datetime):
        if start.utcoffset() is None:
            raise ValueError(f"start must have a time zone, such as datetime.now(timezone.utc), not {shown(start)}")
        return start
    if isinstance(start, Mapping):
        for place, offset in start.items():
            match place, offset:
                case (str(), int()), int() if offset >= 0 and not isinstance(offset, bool):
                    continue
            raise TypeError(f"start must map (topic, partition) to an offset, not {shown(place)} to {shown(offset)}")
        return dict(start)
    if not isinstance(start, str):
        raise TypeError(
            f"start must be 'earliest', 'latest', a datetime, or a mapping of offsets, not {type(start).__name__}"
        )
    if start not in ("earliest", "latest"):
        raise ValueError(f"start must be 'earliest', 'latest', a datetime, or a mapping of offsets, not {shown(start)}")
    # mypy narrows no strings by `in`.
    return "earliest" if start == "earliest" else "latest"
