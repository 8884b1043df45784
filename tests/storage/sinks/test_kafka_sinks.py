"""`to_kafka` holds the contract of sinks, against a real broker; whoever dies, readers see an epoch once or not yet."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import dstream as ds
from dstream import Pipeline
from dstream.connectors.kafka import producers, sinks
from dstream.connectors.kafka import settings as kafka_settings
from dstream.connectors.kafka.producers import MessageProducer
from dstream.connectors.kafka.settings import OpenClients
from dstream.errors import IllegalStateError, SetupError, SinkError, SinkTakenError, SinkUnavailableError
from reducers import to_kafka
from sources import kafka
from tests.servers.topics import Topic
from tests.storage.sinks.sink_contract import SinkCase, SinkContract


@pytest.fixture
def topic(broker):
    """A topic of two partitions."""
    return Topic(broker.address, 2)


@pytest.fixture
def storage():
    """A context with a storage of its own, as long as the test."""
    with ds.connect(engine="local", storage="memory:") as context:
        yield context


def staged(context):
    """Return the lists that hold anything."""
    return {name for kind, name in context.collections() if len(context.existing(kind, name))}


def values(topic, level="read_committed"):
    """Return the values that readers see."""
    return [value.decode() for _, _, value in topic.content(level)]


class TestKafkaSink(SinkContract):
    """The whole contract."""

    @pytest.fixture
    def case(self, topic, storage):
        """The sink, and how to look into its topic."""
        sink = to_kafka(topic.name, topic.config, key=lambda n: "k", value=str)
        content, left = lambda: values(topic), lambda: staged(storage)
        return SinkCase(sink, lambda: storage, [1, 2, 3], [44, 55], content, left)


@pytest.mark.on_spark("guarantee")
@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_to_kafka_sends_key_value_and_headers(engine, broker, guarantee):
    """In the order of a partition; texts are UTF-8, None stays None."""
    topic = Topic(broker.address)
    headers = {1: {"n": b"1", "none": None}, 2: [("a", "é")], 3: None}
    sink = to_kafka(
        topic.name, topic.config, key=str, value={1: "é", 2: b"\xff"}.get, headers=headers.get, guarantee=guarantee
    )
    assert engine.stream([1, 2, 3], 1).collect(sink) is None
    records = engine.context.read(kafka(topic.name, topic.config, until="latest")).to_list()

    assert [record[4:6] for record in records] == [(b"1", "é".encode()), (b"2", b"\xff"), (b"3", None)]
    assert [record.headers for record in records] == [(("n", b"1"), ("none", None)), (("a", "é".encode()),), ()]


def test_to_kafka_sends_what_all_tasks_made(engine, topic):
    """More than a task holds at once; empty partitions give none; nothing stays staged."""
    before = engine.context.collections()
    engine.stream(range(3000), partitions=4).map("{:05}".format).collect(to_kafka(topic.name, topic.config, key=str))

    assert sorted(values(topic)) == [f"{n:05}" for n in range(3000)]
    assert engine.context.collections() == before


def test_to_kafka_places_keys_as_clients_of_java_do(local_context, broker):
    """By murmur2: these partitions of 10 are what Java's default partitioner gives."""
    topic = Topic(broker.address, 10)
    local_context.stream(["21", "foobar", "a-little-bit-long-string"]).collect(
        to_kafka(topic.name, topic.config, key=str)
    )

    placed = {value.decode(): partition for partition, _, value in topic.content()}
    assert placed == {
        key: (hashed & 0x7FFFFFFF) % 10
        for key, hashed in [("21", -973932308), ("foobar", -790332482), ("a-little-bit-long-string", -985981536)]
    }


def test_to_kafka_sends_a_job_of_a_name_once(storage, topic):
    """However often it runs."""
    for _ in range(2):
        storage.stream(["a"]).collect(to_kafka(topic.name, topic.config, job="nightly"))

    assert (values(topic), staged(storage)) == (["a"], set())


@pytest.mark.parametrize("when", ["begin_transaction", "send_offsets_to_transaction", "commit_transaction"])
def test_to_kafka_sends_once_though_a_commit_dies(storage, topic, monkeypatch, when):
    """Before, within and at the end of its transaction; another process then commits the same receipts."""
    case = SinkCase(to_kafka(topic.name, topic.config), lambda: storage, ["a"], ["b"], lambda: values(topic), set)
    job = case.target().begin("job")
    receipts = case.written(job, case.first)
    with monkeypatch.context() as patch:
        patch.setattr(producers.Transactions, "_begun", Dying.at(when))
        with pytest.raises(KeyboardInterrupt):
            job.commit(receipts)
    producers._OPEN.clear()
    case.target().begin("job").commit(receipts)

    assert (values(topic), case.target().begin("job").is_done) == (["a"], True)


def test_to_kafka_does_not_wait_for_what_a_dead_driver_has_left_open(storage, topic, monkeypatch):
    """Whether an epoch is there is known at once, though Kafka ends its transaction after a minute; then it is sent."""
    monkeypatch.setattr(producers, "PATIENCE", 10.0)
    case = SinkCase(to_kafka(topic.name, topic.config), lambda: storage, ["a"], ["b"], lambda: values(topic), set)
    job = case.target().begin("job")
    receipts = case.written(job, case.first)
    with monkeypatch.context() as patch:
        patch.setattr(producers.Transactions, "_begun", Dying.at("send_offsets_to_transaction"))
        with pytest.raises(KeyboardInterrupt):
            job.commit(receipts)
    monkeypatch.setattr(producers, "_OPEN", OpenClients())
    again = case.target().begin("job")

    assert again.is_done is False
    again.commit(receipts)
    assert (values(topic), case.target().begin("job").is_done) == (["a"], True)


class Dying:
    """A producer that does one thing, and then its process is no more: it gives up no transaction."""

    def __init__(self, producer, when):
        self._producer = producer
        self._when = when
        self._is_dead = False

    @staticmethod
    def at(when):
        """Return what takes the place of the method that makes the producer."""
        begun = producers.Transactions._begun

        def dying(self):
            client = begun(self)
            client.producer = Dying(client.producer, when)
            return client

        return dying

    def __getattr__(self, name):
        def call(*args, **kwargs):
            result = None if self._is_dead else getattr(self._producer, name)(*args, **kwargs)
            if name == self._when:
                self._is_dead = True
                raise KeyboardInterrupt
            return result

        return call


def test_to_kafka_cuts_off_who_was_there_before(storage, topic, monkeypatch):
    """One that went on after another took its job over fails, and sends nothing; the messages are there once."""
    case = SinkCase(to_kafka(topic.name, topic.config), lambda: storage, ["a"], ["b"], lambda: values(topic), set)
    case.commit("job", 1, ["first"])
    late = case.target().begin("job", 3)
    monkeypatch.setattr(producers, "_OPEN", OpenClients())
    case.commit("job", 2, ["second"])
    receipts = case.written(late, ["third"])
    with pytest.raises(SinkTakenError, match=f"{topic.name}.*[Ff]enced"):
        late.commit(receipts)

    assert sorted(values(topic)) == ["first", "second"]


class Fenced:
    """A producer that was cut off, and loses that beside the report of a message, as the library may."""

    def flush(self, seconds):
        raise SystemError("flush returned NULL without setting an exception")

    def abort_transaction(self, seconds):
        from confluent_kafka import KafkaError, KafkaException

        raise KafkaException(KafkaError(KafkaError._FENCED, "fenced by a newer one", True))


def test_a_producer_that_loses_why_it_was_cut_off_is_asked_again():
    """The error of a client and the report of a message may meet, and one takes the other away."""
    settings = kafka_settings.KafkaSettings((("bootstrap.servers", "127.0.0.1:1"),))
    client = SimpleNamespace(producer=Fenced(), last_error="")
    handing = MessageProducer(client, settings, "sales", "to_kafka('sales')")
    with pytest.raises(SinkTakenError, match=r"to_kafka\('sales'\).*fenced by a newer one"):
        handing.finish()


class Purging(Fenced):
    """A producer that throws its messages away before it knows why, as the library does."""

    def __init__(self):
        self.delivered, self.asked = None, 0

    def produce(self, topic, *, on_delivery, **_):
        self.delivered = on_delivery

    def poll(self, seconds):
        return 0

    def flush(self, seconds):
        from confluent_kafka import KafkaError

        self.delivered(KafkaError(KafkaError._PURGE_QUEUE), SimpleNamespace(partition=lambda: 1))
        return 0

    def abort_transaction(self, seconds):
        from confluent_kafka import KafkaError, KafkaException

        self.asked += 1
        if self.asked < 3:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        super().abort_transaction(seconds)


def test_messages_that_are_thrown_away_are_not_the_reason():
    """Why a producer was cut off is known a moment later."""
    settings = kafka_settings.KafkaSettings((("bootstrap.servers", "127.0.0.1:1"),))
    handing = MessageProducer(
        SimpleNamespace(producer=Purging(), last_error=""), settings, "sales", "to_kafka('sales')"
    )
    handing.give([(None, b"x", [])])
    with pytest.raises(SinkTakenError, match=r"to_kafka\('sales'\).*fenced by a newer one"):
        handing.finish()


def test_to_kafka_refuses_receipts_whose_messages_are_gone(storage, topic):
    """Nothing is sent, not even the number of the epoch."""
    case = SinkCase(to_kafka(topic.name, topic.config), lambda: storage, ["a"], ["b"], lambda: values(topic), set)
    job = case.target().begin("job")
    receipts = case.written(job, ["a", "b"])
    for name in staged(storage) | {name for _, name in storage.collections()}:
        storage.get_list(name).destroy()
    with pytest.raises(IllegalStateError, match="nothing was published, since of 2 messages 0 are still in the list"):
        case.target().begin("job").commit(receipts)

    with pytest.raises(IllegalStateError, match="is no receipt of the run"):
        job.commit(["what"])
    assert (values(topic, "read_uncommitted"), job.is_done) == ([], False)


def test_to_kafka_publishes_the_messages_of_one_run(storage, topic, monkeypatch):
    """A run whose messages those of another one have replaced publishes none of them; the other one can."""
    case = SinkCase(to_kafka(topic.name, topic.config), lambda: storage, ["a"], ["b"], lambda: values(topic), set)
    jobs = [case.target().begin("job") for _ in range(2)]
    receipts = [case.written(job, [text]) for job, text in zip(jobs, "ab", strict=True)]
    with monkeypatch.context() as patch:
        patch.setattr(producers.Transactions, "_begun", Dying.at("produce"))
        with pytest.raises(KeyboardInterrupt):
            jobs[1].commit(receipts[1])
    with pytest.raises(IllegalStateError, match="nothing was published, since of 1 messages 0 are still"):
        jobs[0].commit(receipts[0])
    jobs[1].commit(receipts[1])

    assert values(topic) == ["b"]


def test_to_kafka_refuses_what_is_no_message(engine, topic):
    """It names the function, the type and the item; nothing is sent."""
    with pytest.raises(TypeError, match="value= must make bytes, a str or None, not int 5"):
        engine.stream(["a", 5]).collect(to_kafka(topic.name, topic.config))
    with pytest.raises(TypeError, match="headers= must make a mapping, or pairs"):
        engine.stream(["a"]).collect(to_kafka(topic.name, topic.config, headers=lambda item: 5))

    assert values(topic, "read_uncommitted") == []


def test_to_kafka_refuses_a_topic_that_is_not_there(engine, topic):
    """Before anything runs; so it does if nobody answers."""
    for guarantee in ("exactly-once", "at-least-once"):
        sink = to_kafka("no" + topic.name, topic.config, guarantee=guarantee)
        with pytest.raises(SinkError, match=f"has no topic 'no{topic.name}'"):
            engine.stream([0]).map(lambda n: 1 // n).collect(sink)


@pytest.mark.parametrize(
    ("wrong", "guarantee"),
    [
        ({"acks": 1}, "exactly-once"),
        ({"acks": 1}, "at-least-once"),
        ({"message.timeout.ms": 1}, "at-least-once"),
        ({"transaction.timeout.ms": 1000}, "exactly-once"),
    ],
)
def test_to_kafka_refuses_settings_that_its_producer_does_not_take(wrong, guarantee):
    """At the call: what contradicts the promise would fail in the commit, or in a task with an error of the library."""
    with pytest.raises(ValueError, match=f"^config: .*`{next(iter(wrong))}`"):
        to_kafka("t", {"bootstrap.servers": "h:1", **wrong}, guarantee=guarantee)


def test_to_kafka_says_why_nobody_answers(local_context, monkeypatch):
    """What the client has reported aside, beside the address."""
    monkeypatch.setattr(sinks, "_PATIENCE", 0.5)
    with pytest.raises(SinkUnavailableError, match=r"127.0.0.1:1: .*\(.*Connection refused"):
        local_context.stream(["a"]).collect(to_kafka("t", {"bootstrap.servers": "127.0.0.1:1"}))


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_to_kafka_says_that_the_cluster_refuses(local_context, broker, guarantee):
    """A message that is larger than the topic takes; nothing of its transaction is seen."""
    topic = Topic(broker.address, **{"max.message.bytes": "1000"})
    with pytest.raises(SinkError, match=r"to_kafka\(.*Message size too large"):
        local_context.stream(["a", "b" * 2000]).collect(to_kafka(topic.name, topic.config, guarantee=guarantee))

    assert values(topic) == [] or guarantee == "at-least-once"


def test_to_kafka_commits_when_the_broker_is_back(storage, broker, topic, monkeypatch):
    """A broker that is silent between tasks and commit: the commit fails, and a repetition sends all of it once."""
    case = SinkCase(to_kafka(topic.name, topic.config), lambda: storage, ["a"], ["b"], lambda: values(topic), set)
    case.commit("job", 1, ["a"])
    job = case.target().begin("job", 2)
    receipts = case.written(job, ["b", "c"])
    with broker.silent(), monkeypatch.context() as patch:
        patch.setattr(producers, "PATIENCE", 0.3)
        with pytest.raises(SinkError, match=broker.address):
            job.commit(receipts)
    job.commit(receipts)

    assert sorted(values(topic)) == ["a", "b", "c"]


class Forgetful:
    """A producer that has handed everything over, but for the report of one message, which is lost."""

    def __init__(self):
        self.reports = []

    def produce(self, topic, on_delivery, **message):
        self.reports.append(on_delivery)

    def poll(self, seconds):
        return len(self.reports)

    def flush(self, seconds):
        for report in self.reports[1:]:
            report(None, None)
        return 0


def test_a_message_without_a_report_is_not_taken_for_sent():
    """Nobody knows whether it has arrived, so the job starts again."""
    settings = kafka_settings.KafkaSettings((("bootstrap.servers", "127.0.0.1:1"),))
    handing = MessageProducer(
        SimpleNamespace(producer=Forgetful(), last_error=""), settings, "sales", "to_kafka('sales')"
    )
    handing.give([(None, b"a", None), (None, b"b", None)])
    with pytest.raises(SinkUnavailableError, match=r"to_kafka\('sales'\).*does not say what became of 1 messages"):
        handing.finish()


def test_to_kafka_names_the_partition_of_a_message_that_does_not_arrive(broker):
    """A broker that falls silent for a task: to try again may help, and the error says where."""
    topic = Topic(broker.address)
    config = {**topic.config, "message.timeout.ms": 5000}
    sending = to_kafka(topic.name, config, guarantee="at-least-once").writer
    assert list(sending.write(iter(["a"]))) == []
    words = f"{topic.name}.*{broker.address}: partition 0: Local: Message timed out"
    with broker.silent(), pytest.raises(SinkUnavailableError, match=words):
        list(sending.write(iter(["b"])))

    assert "a" in values(topic)


def test_to_kafka_ends_a_job_that_read_from_kafka(storage, broker, topic):
    """From topic to topic."""
    other = Topic(broker.address)
    topic.send([b"a", b"b"], key=b"k")
    made = kafka(topic.name, topic.config, projection=lambda record: record.value.upper(), until="latest")
    pipeline = Pipeline()
    pipeline.read_from(made).write_to(to_kafka(other.name, other.config))
    storage.new_job(pipeline, name="copy").join()

    assert values(other) == ["A", "B"]


def test_to_kafka_and_kafka_name_what_is_not_installed(monkeypatch):
    """When they are called, with the command that installs it."""
    monkeypatch.setattr(kafka_settings, "find_spec", lambda name: None)
    for call in (kafka, to_kafka):
        with pytest.raises(
            SetupError, match=r"needs the package confluent-kafka: pip install 'dstream-spark\[kafka\]'"
        ):
            call("t", {"bootstrap.servers": "host:9092"})
