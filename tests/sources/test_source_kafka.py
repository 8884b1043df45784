"""`kafka(..., until="latest")`: what is in topics, on both engines, against a real broker."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from dstream.connectors.kafka import consumers
from dstream.connectors.kafka import sources as kafka_sources
from dstream.errors import SourceError
from dstream.spi.source import InputSize, input_size
from sources import KafkaRecord, kafka
from tests.servers.topics import Topic


@pytest.fixture
def topic(broker):
    """A topic of two partitions; the first has five messages and the second two."""
    made = Topic(broker.address, 2)
    made.send([b"a", b"b", b"c", b"d", b"e"])
    made.send([b"x", b"y"], 1)
    return made


def values(topic, **options):
    """Return a source of the values alone."""
    return kafka(topic.name, topic.config, projection=lambda record: record.value.decode(), until="latest", **options)


def test_kafka_gives_the_messages_partition_by_partition(engine, topic):
    """In the order of their offsets; an empty partition gives none, and what comes later is not read."""
    topic.grow(3)
    stream = engine.context.read(values(topic))

    assert stream.to_list() == list("abcdexy")
    topic.send([b"z"], 2)
    assert stream.to_list() == list("abcdexyz")


def test_kafka_gives_records_with_all_that_a_message_has(engine, broker):
    """Bytes unless a function makes something of them; what is missing is None."""
    topic = Topic(broker.address)
    headers = [("trace", b"7"), ("trace", None)]
    topic.send([b'{"n": 1}', None], key=b"k", headers=headers, timestamp=1_700_000_000_000)
    source = kafka([topic.name], topic.config, key=bytes.decode, value=json.loads, until="latest")

    first = KafkaRecord(topic.name, 0, 0, 1_700_000_000_000, "k", {"n": 1}, tuple(headers))
    assert engine.context.read(source).to_list() == [first, first._replace(offset=1, value=None)]


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_kafka_reads_what_was_committed(local_context, broker, level):
    """Offsets without a message, at the end of a range too, end it; aborted messages are there for who asks."""
    topic = Topic(broker.address)
    topic.config["isolation.level"] = level
    for word, commit in [(b"a", True), (b"b", False), (b"c", True), (b"d", False)]:
        topic.send([word], commit=commit)

    seen = local_context.read(values(topic)).to_list()
    assert seen == (["a", "c"] if level == "read_committed" else ["a", "b", "c", "d"])


def test_kafka_divides_large_partitions(local_context, topic, monkeypatch):
    """Each message is in one range, whatever the parallelism."""
    monkeypatch.setattr(kafka_sources, "_LEAST", 1)
    for parallelism in (1, 2, 3, 7, 20):
        splits = values(topic).splits(parallelism)
        assert "".join(item for split in splits for item in split.read()) == "abcdexy"
        assert parallelism <= len(splits) <= parallelism + 1 or parallelism > 6


def test_kafka_knows_how_many_offsets_there_are(topic, monkeypatch):
    """Not exactly how many messages: compaction and transactions leave offsets without one. An error is unknown."""
    monkeypatch.setattr(kafka_sources, "_QUICK", 60.0)
    size = input_size(values(topic))

    assert size == InputSize(7)
    assert input_size(values(topic, start={(topic.name, 0): 4, (topic.name, 1): 2})) == InputSize(1)
    assert input_size(values(topic, start={(topic.name, 5): 0})) == InputSize()


def test_kafka_drops_what_the_projection_makes_none_of(local_context, topic):
    """And gives no None."""
    source = kafka(topic.name, topic.config, until="latest", projection=lambda r: r.value if r.partition == 1 else None)

    assert local_context.read(source).to_list() == [b"x", b"y"]


@pytest.mark.parametrize(
    ("start", "expected"),
    [("latest", ""), ({1: 1}, "abcdey"), ({0: 4, 1: 2}, "e"), (datetime.now(UTC) + timedelta(hours=1), "")],
)
def test_kafka_begins_where_it_is_told(local_context, topic, start, expected):
    """Partitions without an offset begin at the earliest."""
    if isinstance(start, dict):
        start = {(topic.name, partition): offset for partition, offset in start.items()}

    assert "".join(local_context.read(values(topic, start=start))) == expected


def test_kafka_begins_at_a_time(local_context, broker):
    """With the first message that is not older."""
    topic = Topic(broker.address)
    for second in range(3):
        topic.send([str(second).encode()], timestamp=1_700_000_000_000 + 1000 * second)
    start = datetime.fromtimestamp(1_700_000_001, UTC)

    assert local_context.read(values(topic, start=start)).to_list() == ["1", "2"]


@pytest.mark.parametrize(
    ("since", "expected"), [(timedelta(), "abc"), (timedelta(microseconds=1), "bc"), (timedelta(milliseconds=1), "bc")]
)
def test_kafka_begins_at_a_time_exactly(local_context, broker, since, expected):
    """A message is as old as its millisecond; one that is older by less than that is left out."""
    topic = Topic(broker.address)
    for place, letter in enumerate("abc"):
        topic.send([letter], timestamp=1_700_000_001_001 + place)
    first = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=1_700_000_001_001)

    assert "".join(local_context.read(values(topic, start=first + since))) == expected


@pytest.mark.parametrize("before", [timedelta(milliseconds=1), timedelta(milliseconds=3), timedelta(days=10_000)])
def test_kafka_begins_before_1970(local_context, topic, before):
    """With the first message: a cluster would take the number of such a time for its end, or refuse it."""
    start = datetime.fromtimestamp(0, UTC) - before

    assert "".join(local_context.read(values(topic, start=start))) == "abcdexy"


@pytest.mark.parametrize("start", [{("?", 5): 0}, {("?", 1): 3}])
def test_kafka_refuses_a_start_that_is_not_there(local_context, topic, start):
    """It names the partition, and the offsets that it has."""
    start = {(topic.name, partition): offset for (_, partition), offset in start.items()}
    words = f"there is no partition {topic.name}-5|{topic.name}-1 has offsets from 0 up to 2, not 3"
    with pytest.raises(SourceError, match=words):
        local_context.read(values(topic, start=start)).to_list()


def test_kafka_refuses_an_unknown_topic(local_context, topic):
    """It names one that is called alike; a pattern that nothing matches is refused as well."""
    for topics, words in [(topic.name[:-1], f"there is {topic.name!r}"), (re.compile("no-.*"), "no topic matches")]:
        with pytest.raises(SourceError, match=words):
            local_context.read(kafka(topics, topic.config, until="latest")).to_list()


def test_kafka_says_which_message_a_function_fails_on(engine, topic):
    """The exception is that of the function; topic, partition, offset and bytes stand in a note."""
    source = kafka(topic.name, topic.config, value=int, until="latest", start={(topic.name, 0): 3, (topic.name, 1): 2})
    with pytest.raises(ValueError, match="invalid literal") as caught:
        engine.context.read(source).to_list()

    assert f"the value at offset 3 of {topic.name}-0: b'd'" in "".join(caught.value.__notes__)


def test_kafka_says_that_nobody_answers(local_context, monkeypatch):
    """With the address, and the reason that the client has reported aside."""
    monkeypatch.setattr(consumers, "PATIENCE", 0.3)
    source = kafka("t", {"bootstrap.servers": "127.0.0.1:1"}, until="latest")
    with pytest.raises(SourceError, match=r"kafka\('t', until='latest'\): 127.0.0.1:1: .*\(.*Connection refused"):
        local_context.read(source).to_list()


def test_kafka_says_why_a_broker_lets_nobody_in(local_context, topic, monkeypatch):
    """That its password is not taken is what a user has to know; the password is not shown."""
    monkeypatch.setattr(consumers, "PATIENCE", 0.5)
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "ada", "sasl.password": "hunter2-secret"}
    source = kafka(topic.name, {**topic.config, "security.protocol": "sasl_plaintext", **login}, until="latest")
    with pytest.raises(SourceError, match="SASL PLAIN mechanism handshake failed") as caught:
        local_context.read(source).to_list()

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"fetch.min.bytes": -5}, {"session.timeout.ms": 7, "max.poll.interval.ms": 5}])
def test_kafka_refuses_settings_that_no_client_takes(wrong):
    """At the call, also those that contradict each other."""
    with pytest.raises(ValueError, match=r"^config: .*\bms|bytes"):
        kafka("t", {"bootstrap.servers": "h:1", **wrong})


def test_kafka_never_shows_secrets(broker):
    """Neither what it returns nor an error."""
    config = {"bootstrap.servers": "h:1", "sasl.username": "ada", "sasl.password": "hunter2-secret"}
    source = kafka("t", config, until="latest")
    with pytest.raises(ValueError, match="No such configuration property") as caught:
        kafka("t", {**config, "hunter": "hunter2-secret"})

    assert "hunter2" not in repr(source) + repr(source.topics.cluster) + str(caught.value)
