"""`kafka(...)` without an end: what a job asks of it, against a real broker."""

from __future__ import annotations

import os
import pickle
import re
from collections import OrderedDict
from itertools import pairwise
from unittest.mock import patch

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from hypothesis import given, settings
from hypothesis import strategies as st

import dstream as ds
from collectors import to_list
from dstream.base.pickling import dumps
from dstream.connectors.kafka import consumers
from dstream.errors import IllegalStateError, SourceError, SourceUnavailableError
from dstream.spi.source import StreamSource, Timestamped, TimestampedBeside
from dstream.windows import tumbling
from reducers import to_ilist
from sources import kafka
from tests.jobs.unbounded.streams import eventually, pipeline_of
from tests.servers.topics import Topic


@pytest.fixture
def topic(broker):
    """A topic of one partition with three messages."""
    made = Topic(broker.address)
    made.send([b"a", b"b", b"c"])
    return made


def read(source, partition, start, stop):
    """Return the values of a range, whose split has traveled."""
    split = pickle.loads(dumps(source.split(partition, start, stop)))
    return [record.value.decode() for record in split.read()]


def test_kafka_is_a_source_without_an_end(topic):
    """It says what a record's time is."""
    source = kafka(topic.name, topic.config)
    [record] = source.split(f"{topic.name}-0", 1, 2).read()

    assert isinstance(source, StreamSource)
    assert isinstance(source, Timestamped)
    assert (source.label, repr(source)) == (f"kafka('{topic.name}')",) * 2
    assert source.timestamp(record) == record.timestamp


def test_what_a_projection_makes_has_the_time_of_its_record(topic):
    """Also where it drops some, though the items do not say it."""
    records = list(kafka(topic.name, topic.config).split(f"{topic.name}-0", 0, 3).read())
    source = kafka(topic.name, topic.config, projection=lambda each: None if each.value == b"b" else each.value)
    split = pickle.loads(dumps(source.split(f"{topic.name}-0", 0, 3)))

    assert isinstance(source, TimestampedBeside)
    assert not isinstance(source, Timestamped)
    assert list(split.read_timed()) == [(records[0].timestamp, b"a"), (records[2].timestamp, b"c")]
    assert list(split.read()) == [b"a", b"c"]


def test_windows_take_the_time_of_what_was_projected(local_context, broker):
    """`native_timestamps()` stands behind a source with a projection."""
    topic = Topic(broker.address)
    for value, timestamp in [(b"a", 1_000), (b"b", 1_900), (b"c", 2_500), (b"d", 9_000)]:
        topic.send([value], timestamp=timestamp)
    values = kafka(topic.name, topic.config, projection=lambda each: each.value.decode())
    pipeline, name = ds.Pipeline(), f"windows-{topic.name}"
    windows = pipeline.read_from(values).native_timestamps().window(tumbling(1_000)).aggregate(to_list())
    windows.write_to(to_ilist(name))
    job = local_context.new_job(pipeline)
    eventually(lambda: len(local_context.get_list(name)) == 2)
    job.cancel()

    assert [(each.start, each.result) for each in local_context.get_list(name)] == [(1_000, ["a", "b"]), (2_000, ["c"])]


def test_kafka_says_how_far_it_reaches(topic):
    """From the offsets that were read, and no further than it is asked for."""
    source, name = kafka(topic.name, topic.config), f"{topic.name}-0"
    assert source.begin() == {name: 0}
    assert source.reach({name: 0}) == {name: 3}
    assert source.reach({name: 1}, most=1) == {name: 2}

    assert source.reach({name: 3}, most=5) == {name: 3}
    assert kafka(topic.name, topic.config, start="latest").begin() == {name: 3}


def test_kafka_finds_new_partitions_and_topics(broker, topic):
    """They begin at 0, and are read from the next call on."""
    source = kafka(re.compile(f"{topic.name}.*"), topic.config)
    begun = source.begin()
    topic.grow(2)
    other = Topic(broker.address, name=f"{topic.name}-2")
    other.send([b"z"])
    first, second = f"{topic.name}-0", f"{topic.name}-2-0"
    reached = source.reach(begun)

    assert reached == {first: 3, f"{topic.name}-1": 0, second: 0}
    assert read(source, second, None, 0) == []
    assert source.reach(reached) == {**reached, second: 1}
    assert read(source, second, 0, 1) == ["z"]


def test_a_job_reads_new_partitions_and_topics(local_context, broker, topic):
    """Those that come up while it runs, from their first message on."""
    values = kafka(re.compile(f"{topic.name}.*"), topic.config, value=bytes.decode, projection=lambda each: each.value)
    name = f"read-{topic.name}"
    job = local_context.new_job(pipeline_of(values, to_ilist(name)), name=name, config=ds.JobConfig(epoch_length=0.02))
    found = local_context.get_list(name)
    eventually(lambda: len(found) == 3)
    topic.grow(2)
    topic.send([b"d"], 1)
    Topic(broker.address, name=f"{topic.name}-2").send([b"z"])
    eventually(lambda: len(found) == 5 or job.status.has_ended)
    job.cancel()

    assert sorted(found) == ["a", "b", "c", "d", "z"]


def test_kafka_refuses_a_loss(topic):
    """Where it is asked how far it reaches, and where it is read."""
    source, name = kafka(topic.name, topic.config), f"{topic.name}-0"
    topic.drop_before(2)
    with pytest.raises(SourceError, match=f"{name} has no messages before offset 2 any more, and was read up to 1"):
        source.reach({name: 1})
    with pytest.raises(SourceError, match="up to offset 1: the messages from offset 1 on are not there any more"):
        read(source, name, 1, 3)

    assert read(source, name, 2, 3) == ["c"]


def test_kafka_refuses_a_topic_that_was_made_anew(broker, topic):
    """It ends before what was read; one that is gone is named."""
    source, name = kafka(re.compile(".*" + topic.name), topic.config), f"{topic.name}-0"
    topic.delete()
    Topic(broker.address, name="b" + topic.name)
    with pytest.raises(SourceError, match=f"{name}, which was read before, is gone"):
        source.reach({name: 3})
    Topic(broker.address, name=topic.name)

    with pytest.raises(SourceError, match=f"{name} ends at offset 0, and was read up to 3"):
        source.reach({name: 3, f"b{name}": 0})


def test_a_job_does_not_go_on_in_a_topic_that_was_made_anew(broker, topic, tmp_path):
    """Although it has more messages than were read of the one before; topics that came up meanwhile are no reason."""
    values = kafka(re.compile(f"{topic.name}.*"), topic.config, value=bytes.decode, projection=lambda each: each.value)

    def read_by_a_job(*expected):
        with ds.connect(engine="local", storage=str(tmp_path)) as ctx:
            job = ctx.new_job(pipeline_of(values, to_ilist("out")), name="one", config=ds.JobConfig(epoch_length=0.02))
            eventually(lambda: sorted(ctx.get_list("out")) == list(expected) or job.status.has_ended)
            assert sorted(ctx.get_list("out")) == list(expected)

    read_by_a_job("a", "b", "c")
    Topic(broker.address, name=f"{topic.name}-2").send([b"d"])
    read_by_a_job("a", "b", "c", "d")
    topic.delete()
    Topic(broker.address, name=topic.name).send([b"v", b"w", b"x", b"y", b"z"])

    with pytest.raises(IllegalStateError, match=r"kafka\(.* is not what the stage .* or one that was made anew"):
        read_by_a_job()


def test_kafka_says_that_a_topic_goes_while_it_is_read(topic, monkeypatch):
    """Behind the look at how far it reaches, with its partition and its broker; no repetition would help."""
    monkeypatch.setattr(consumers, "PATIENCE", 0.5)
    source, name = kafka(topic.name, topic.config), f"{topic.name}-0"
    stop = source.reach({name: 0})[name]
    topic.delete()
    eventually(lambda: topic.name not in topic._admin.list_topics().topics)

    with pytest.raises(
        SourceError, match=rf"kafka\('{topic.name}'\): {name} at 127.*up to offset 0: the topic is gone"
    ) as caught:
        read(source, name, 0, stop)
    assert not isinstance(caught.value, SourceUnavailableError)


def test_kafka_goes_on_with_the_client_that_is_there(topic):
    """One that stands where the range begins is kept; one that stands behind that is of no use."""
    source, name = kafka(topic.name, topic.config), f"{topic.name}-0"
    here = consumers._OPEN.here()
    here.clear()
    assert read(source, name, 0, 2) == ["a", "b"]
    [client] = here.values()
    topic.send([b"d"])
    assert read(source, name, 2, 4) == ["c", "d"]

    assert list(here.values()) == [client]
    assert read(source, name, 0, 1) == ["a"]


def test_kafka_passes_over_what_other_workers_have_read(topic, monkeypatch):
    """With the client that stands a little before the range, and was used of late."""
    source, name = kafka(topic.name, topic.config), f"{topic.name}-0"
    here = consumers._OPEN.here()
    here.clear()
    assert read(source, name, 0, 1) == ["a"]
    [client] = here.values()
    topic.send([b"d", b"e"])
    assert read(source, name, 3, 4) == ["d"]
    assert list(here.values()) == [client]

    monkeypatch.setattr(consumers, "_RECENT", 0.0)
    topic.send([b"f"])
    assert read(source, name, 5, 6) == ["f"]
    assert len(here) == 2


def test_kafka_passes_over_what_is_gone_and_was_read_before(topic):
    """Kafka has removed messages that another worker has read, and that a client of this one would fetch."""
    source, name = kafka(topic.name, topic.config), f"{topic.name}-0"
    consumers._OPEN.here().clear()
    topic.drop_before(2)
    behind = consumers.ConsumerClient(source.split(name, 0, 1))
    consumers._OPEN.keep(source.split(name, 0, 1), behind)

    assert read(source, name, 2, 3) == ["c"]
    assert list(consumers._OPEN.here().values()) == [behind]


def test_kafka_keeps_the_client_of_each_of_many_partitions(broker):
    """One task reads all of them in a small epoch; the last ones fetch less ahead."""
    topic, here = Topic(broker.address, 12), consumers._OPEN.here()
    here.clear()
    source = kafka(topic.name, topic.config)
    for number in range(12):
        topic.send([b"a", b"b"], partition=number)
        assert read(source, f"{topic.name}-{number}", 0, 1) == ["a"]
    clients = list(here.values())
    for number in range(12):
        assert read(source, f"{topic.name}-{number}", 1, 2) == ["b"]

    assert list(here.values()) == clients
    consumers._OPEN.close()


@pytest.fixture(scope="module")
def mixed(broker):
    """A topic of plain messages and transactions, a last one among them that was given up."""
    made = Topic(broker.address)
    for values, commit in [("ab", None), ("cde", True), ("xy", False), ("f", True), ("g", None), ("z", False)]:
        made.send(values, commit=commit)
    return made


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 14), max_size=4), workers=st.lists(st.integers(0, 1), min_size=5, max_size=5))
def test_kafka_gives_each_message_once_in_any_ranges(mixed, cuts, workers):
    """Cut anywhere, also between a message and the end of its transaction; that end, too, is an offset.

    Whichever of two workers reads a range: its client has missed those of the other one.
    """
    source, name = kafka(mixed.name, mixed.config), f"{mixed.name}-0"
    assert source.reach({name: 0}) == {name: 14}
    clients, found = [OrderedDict(), OrderedDict()], ""
    for (start, stop), worker in zip(pairwise([0, *sorted(cuts), 14]), workers, strict=False):
        with patch.dict(consumers._OPEN._by_process, {os.getpid(): clients[worker]}):
            found += "".join(read(source, name, start, stop))
    for client in (*clients[0].values(), *clients[1].values()):
        client.close()

    assert found == "abcdefg"


def test_kafka_reads_on_when_the_broker_is_back(broker, topic, monkeypatch):
    """While it is silent a task and the driver fail, and say so; a repetition gives what was asked for."""
    source, name = kafka(topic.name, topic.config), f"{topic.name}-0"
    assert read(source, name, 0, 1) == ["a"]
    with broker.silent(), monkeypatch.context() as patch:
        patch.setattr(consumers, "PATIENCE", 0.3)
        for asked in (lambda: source.reach({name: 1}), lambda: read(source, name, 0, 2)):
            with pytest.raises(SourceError, match=f"kafka.'{topic.name}'.*{broker.address}"):
                asked()

    assert read(source, name, 0, 2) == ["a", "b"]
    assert source.reach({name: 1}) == {name: 3}


def test_kafka_believes_no_answer_without_an_offset(topic, monkeypatch):
    """The library answers -1001 when a broker does not reply in time: it is asked again, and a job begins nowhere."""
    source, name, answers = kafka(topic.name, topic.config, start="latest"), f"{topic.name}-0", [-1001, -1001]

    class Torn:
        def __init__(self, offset):
            self.offset = offset

        def result(self):
            return self

    def list_offsets(self, places, **named):
        if answers:
            return dict.fromkeys(places, Torn(answers.pop()))
        return listed(self, places, **named)

    listed = AdminClient.list_offsets
    monkeypatch.setattr(AdminClient, "list_offsets", list_offsets)
    assert (source.begin(), answers) == ({name: 3}, [])

    monkeypatch.setattr(consumers, "PATIENCE", 0.0)
    answers.append(-1001)
    with pytest.raises(SourceUnavailableError, match=f"{topic.config['bootstrap.servers']}: {name}: .*Timed out"):
        source.reach({name: 3})


def test_kafka_asks_with_another_client_where_one_knows_no_leader(topic, monkeypatch):
    """As behind a broker that was away, which the client took for lost."""
    source, name, asked = kafka(topic.name, topic.config), f"{topic.name}-0", []

    def list_offsets(self, places, **named):
        asked.append(self)
        if len(asked) == 1:
            raise KafkaException(KafkaError(KafkaError._NOENT, "Failed to query partition leaders: No leaders found"))
        return listed(self, places, **named)

    listed = AdminClient.list_offsets
    monkeypatch.setattr(AdminClient, "list_offsets", list_offsets)
    assert source.reach({name: 1}) == {name: 3}
    assert asked[0] is not asked[1]


def test_kafka_says_how_much_is_left(topic):
    """All that is there behind what is taken, for the metrics of a job."""
    source, name = kafka(topic.name, topic.config), f"{topic.name}-0"

    assert (source.reach({name: 0}, most=1).left, source.reach({name: 1}).left) == (2, 0)
