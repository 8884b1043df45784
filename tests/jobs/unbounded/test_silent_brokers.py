"""A broker that is silent for a while, or killed, loses and doubles nothing; one that stays silent fails the job."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from contextlib import ExitStack
from types import SimpleNamespace
from uuid import uuid4

import pytest

import dstream as ds
from dstream.connectors.kafka import consumers, producers, sinks
from dstream.connectors.kafka.consumers import ConsumerClient
from dstream.connectors.kafka.producers import MessageProducer, Transactions
from dstream.connectors.kafka.sources import TopicOffsets
from dstream.errors import SinkUnavailableError, SourceUnavailableError
from reducers import to_ilist, to_kafka
from sources import kafka
from tests.jobs.unbounded.streams import eventually, pipeline_of
from tests.servers.topics import Topic

MOMENTS = {
    "asking": (TopicOffsets, "_asked", False),
    "reading": (ConsumerClient, "messages", False),
    "publishing": (Transactions, "publish", False),
    "committing": (MessageProducer, "finish", True),
}
"""Where a broker falls silent: in which call, and whether when that has been done."""

AWAKE = 150.0
"""Seconds until a broker on a busy machine serves again; what a client asked it before may wait half a minute."""

UNAVAILABLE = (SourceUnavailableError, SinkUnavailableError)


@pytest.fixture
def silence(broker):
    """Call `begin()`: the broker answers nobody up to `end()`, and clients do not wait for half a minute meanwhile."""
    with ExitStack() as until_then, pytest.MonkeyPatch.context() as patch:

        def begin():
            patch.setattr(consumers, "PATIENCE", 1.0)
            patch.setattr(producers, "PATIENCE", 1.0)
            patch.setattr(sinks, "_PATIENCE", 1.0)
            until_then.enter_context(broker.silent())

        def end():
            until_then.close()
            patch.undo()
            patch.setattr(producers, "PATIENCE", 5.0)  # A client may have taken the broker for lost.

        yield SimpleNamespace(begin=begin, end=end)


@pytest.fixture
def topics(broker):
    """One to read, with a message in it, and one to write."""
    read, written = Topic(broker.address, 2), Topic(broker.address)
    read.send([b"0"])
    return read, written


def copying(topics, name):
    """Return a pipeline from one topic into the other one, and into a list."""
    read, written = topics
    values = kafka(read.name, read.config, value=bytes.decode, projection=lambda record: record.value)
    impatient = {**written.config, "socket.timeout.ms": 1000}
    return pipeline_of(values, to_kafka(written.name, impatient), to_ilist(name))


def content(topic):
    """Return how often readers see each message."""
    return Counter(value.decode() for _, _, value in topic.content())


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_job_goes_on_when_its_broker_answers_again(ctx, silence, topics, monkeypatch, moment):
    """Whenever it fell silent: runs fail meanwhile, and every message is there once in the end."""
    name = f"copied-{uuid4().hex}"
    job = ctx.new_job(copying(topics, name), config=ds.JobConfig(auto_restart=(1000, 0.01)))
    eventually(lambda: job.epoch >= 1)
    runs, begin = job.metrics().runs, [silence.begin]
    topics[0].send([b"1", b"2"], 1)
    fall_silent(monkeypatch, begin, *MOMENTS[moment])
    eventually(lambda: job.metrics().runs > runs + 1)
    silence.end()
    topics[0].send([b"3"])
    eventually(lambda: len(ctx.get_list(name)) >= 4, AWAKE)
    eventually(lambda: content(topics[1]).total() >= 4, AWAKE)
    job.cancel()

    assert (content(topics[1]), Counter(ctx.get_list(name))) == (Counter("0123"), Counter("0123"))


def test_a_job_goes_on_when_its_client_waits_for_ever(ctx, topics, monkeypatch):
    """As one does that took its broker for lost (librdkafka 2.16): the epoch is published by another one, once."""
    released, waiting = threading.Event(), []

    class Deaf(producers.ProducerClient):
        def __init__(self, settings):
            super().__init__(settings)
            self.producer = SimpleNamespace(
                **{name: getattr(self.producer, name) for name in dir(self.producer) if not name.startswith("_")}
            )
            if not waiting:
                self.producer.send_offsets_to_transaction = lambda *given: waiting.append(released.wait())

    name = f"copied-{uuid4().hex}"
    with monkeypatch.context() as patch:
        patch.setattr(producers, "ProducerClient", Deaf)
        patch.setattr(producers, "PATIENCE", 2.0)
        job = ctx.new_job(copying(topics, name), config=ds.JobConfig(auto_restart=(1000, 0.01)))
        eventually(lambda: job.metrics().runs > 1)
    topics[0].send([b"1"])
    try:
        eventually(lambda: content(topics[1]).total() >= 2, AWAKE)
    finally:
        released.set()
    job.cancel()

    assert (content(topics[1]), Counter(ctx.get_list(name))) == (Counter("01"), Counter("01"))


def fall_silent(monkeypatch, begin, owner, method, is_after):
    """Begin the silence, once, before a method or after it."""
    inner = getattr(owner, method)

    def falling_silent(*given):
        if begin and not is_after:
            begin.pop()()
        result = inner(*given)
        if begin:
            begin.pop()()
        return result

    monkeypatch.setattr(owner, method, falling_silent)


def test_a_job_goes_on_when_its_broker_was_killed(ctx, broker, topics, monkeypatch):
    """In the middle of an epoch, whose messages are handed over and not committed: each is there once in the end."""
    name = f"copied-{uuid4().hex}"
    job = ctx.new_job(copying(topics, name), config=ds.JobConfig(auto_restart=(1000, 0.01)))
    eventually(lambda: job.epoch >= 1)
    runs = job.metrics().runs
    topics[0].send([b"1", b"2"], 1)
    monkeypatch.setattr(producers, "PATIENCE", 5.0)
    fall_silent(monkeypatch, [broker.stop], MessageProducer, "finish", True)
    try:
        eventually(lambda: job.metrics().runs > runs)
    finally:
        broker.start()
    topics[0].send([b"3"])
    eventually(lambda: len(ctx.get_list(name)) >= 4, AWAKE)
    eventually(lambda: content(topics[1]).total() >= 4, AWAKE)
    job.cancel()

    assert (content(topics[1]), Counter(ctx.get_list(name))) == (Counter("0123"), Counter("0123"))


def test_a_broker_that_stays_silent_fails_the_job(ctx, broker, silence, topics, monkeypatch, caplog):
    """As often as it may start again it does, and says so; the error names the topic and the broker."""
    job = ctx.new_job(copying(topics, f"copied-{uuid4().hex}"), config=ds.JobConfig(auto_restart=(2, 0.01)))
    eventually(lambda: job.epoch >= 1)
    runs = job.metrics().runs
    caplog.set_level(logging.WARNING, "dstream.jobs")
    # Between two calls: one that has begun before waits for half a minute.
    fall_silent(monkeypatch, [silence.begin], *MOMENTS["asking"])
    with pytest.raises(UNAVAILABLE, match=f"'t.*{broker.address}"):
        job.join(60)

    said = [each.getMessage() for each in caplog.records if "starts again in" in each.getMessage()]
    assert (job.metrics().runs - runs, len(said), "in 0.01 s, restarts left: 1:" in said[0]) == (2, 2, True)


def test_a_broker_that_never_answered_fails_the_job_at_once(ctx, broker, silence, topics):
    """Nobody has ever seen it: its address may be wrong."""
    silence.begin()
    job = ctx.new_job(copying(topics, f"copied-{uuid4().hex}"))
    with pytest.raises(UNAVAILABLE, match=broker.address):
        job.join(60)

    assert job.metrics().runs == 1
