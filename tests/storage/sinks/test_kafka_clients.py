"""Kafka's clients of sinks end with the write that failed, so that a job which retries needs no more of them."""

from __future__ import annotations

import gc
import os

import pytest

from dstream.connectors.kafka import sinks
from dstream.connectors.kafka.producers import PRODUCING, MessageMaker, ProducerClient
from dstream.connectors.kafka.settings import kafka_settings


@pytest.fixture
def settings():
    """The settings of a cluster that is not there; the garbage collector does nothing meanwhile."""
    gc.collect()
    gc.disable()
    yield kafka_settings("to_kafka", {"bootstrap.servers": "localhost:1"}, "Producer", [], {})
    gc.enable()


def open_descriptors():
    """Return the number of open files and sockets of this process."""
    return len(os.listdir("/dev/fd"))


def test_a_producer_ends_with_its_client(settings):
    """Its listener is no method of the client: that would be a cycle."""
    ProducerClient(settings.for_client(PRODUCING, {}))
    before = open_descriptors()
    for _ in range(3):
        ProducerClient(settings.for_client(PRODUCING, {}))

    assert open_descriptors() <= before


def test_a_write_that_fails_leaves_no_producer(settings, monkeypatch):
    """Also with messages on their way, each of which has a listener in librdkafka, out of sight of Python."""
    monkeypatch.setattr(sinks, "_BATCH", 1)
    writer = sinks.MessageWriter("to_kafka", settings, "words", MessageMaker(None, lambda n: str(1 // n), None))
    found = [descriptors_after_a_failure(writer) for _ in range(4)]

    assert max(found[1:]) <= found[0]


def descriptors_after_a_failure(writer):
    """Fail on the second item, and return the number of open files and sockets."""
    with pytest.raises(ZeroDivisionError):
        list(writer.write(iter([1, 0])))
    return open_descriptors()
