"""Kafka's clients of sinks end with the write that failed, so that a job which retries needs no more of them."""

from __future__ import annotations

import gc
import os
import sys
import threading
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from dstream.connectors.kafka import consumers, producers, sinks
from dstream.connectors.kafka import sources as kafka_sources
from dstream.connectors.kafka.producers import PRODUCING, ProducerClient
from dstream.connectors.kafka.settings import OpenClients, kafka_settings
from dstream.connectors.kafka.sinks import MessageMaker


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


def test_threads_take_idle_producers_at_once(settings, monkeypatch):
    """One that finds none left, though there was one a moment before, makes its own."""

    class Emptied(list):
        def __bool__(self):
            return True

    monkeypatch.setitem(producers._IDLE, (os.getpid(), settings), Emptied())

    assert isinstance(producers.taken(settings), ProducerClient)


def test_threads_take_and_keep_consumers_at_once(settings, monkeypatch):
    """No two have the same one, and none fails since another changes what it looks through."""
    opened, held = consumers._Open(), set()
    monkeypatch.setattr(consumers, "_MOST_OPEN", 5)

    def read(job):
        # Equal to the settings of the other jobs, and another object, as each source has its own.
        of_job = kafka_settings("to_kafka", {"bootstrap.servers": "localhost:1"}, "Producer", [], {})
        for n in range(1_000):
            wanted = SimpleNamespace(settings=of_job, topic="t", partition=0, start=n % 7)
            client = opened.taken(wanted) or SimpleNamespace(close=lambda: None)
            assert id(client) not in held
            held.add(id(client))
            client.position = (n + job) % 7
            held.remove(id(client))
            opened.keep(wanted, client)

    assert failures_of_threads(read) == []


def test_threads_open_what_stays_open_at_once(monkeypatch):
    """One gets its own, though more are open than stay, and others close some meanwhile."""
    monkeypatch.setattr(producers, "_OPEN", OpenClients())
    monkeypatch.setattr(kafka_sources, "_ASKING", OpenClients())
    monkeypatch.setattr(kafka_sources, "ClusterClient", lambda settings: settings.bootstrap)

    def ask(job):
        for n in range(1_000):
            of_job = SettingsOfPython((n + job) % 11)
            assert producers.transactions(of_job, "t", "j", "to_kafka")._settings == of_job
            assert kafka_sources._asking(of_job) == of_job.bootstrap
            if n % 50 == 0:
                kafka_sources._ASKING.clear()

    assert failures_of_threads(ask) == []


class CountedClient:
    """A client that counts how many of its class were dropped."""

    dropped = 0

    def __del__(self):
        CountedClient.dropped += 1


def test_a_fork_drops_no_clients_of_its_parent():
    """Its copies have no threads, and librdkafka crashes when one of them is closed."""
    opened = OpenClients()
    kept = {opened.of(n, make=CountedClient) for n in range(10)}
    child = os.fork()
    if child == 0:
        found = 255
        try:
            kept.clear()
            before = CountedClient.dropped
            opened.of(0, make=CountedClient)
            opened.clear()
            found = CountedClient.dropped - before
        finally:
            os._exit(found)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    kept.clear()
    assert CountedClient.dropped == 2
    opened.clear()
    assert CountedClient.dropped == 10


@dataclass(frozen=True)
class SettingsOfPython:
    """Settings that are compared in Python, between which threads change."""

    bootstrap: int


def failures_of_threads(run):
    """Run a function in four threads that change all the time, and return what they raise."""
    switch, failures = sys.getswitchinterval(), []

    def attempt(job):
        try:
            run(job)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=attempt, args=(job,)) for job in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    return failures
