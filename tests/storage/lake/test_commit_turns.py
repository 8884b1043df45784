"""Turns: writers of one collection do not race for the next commit, and nothing depends on that."""

from __future__ import annotations

import fcntl
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from dstream.delta.actions import LOG
from dstream.delta.collection_log import CollectionLog
from dstream.filesystem import local
from dstream.filesystem.local import turn
from dstream.spi.store import Options


@pytest.fixture
def patient(monkeypatch):
    """Whoever waits does so for as long as it takes, also on a busy machine."""
    monkeypatch.setattr(local, "LONGEST_WAIT", 60.0)


@pytest.fixture
def published(monkeypatch):
    """How many commits were tried, by whether they were the first of their version."""
    found: Counter[bool] = Counter()
    publish = CollectionLog.publish

    def counting(log, actions):
        is_first = publish(log, actions)
        found[is_first] += 1
        return is_first

    monkeypatch.setattr(CollectionLog, "publish", counting)
    return found


def _increments(store, key, times):
    for _ in range(times):
        store.update([key], lambda olds: [(olds[0] or 0) + 1])


@pytest.mark.parametrize("keys", [["hot"] * 3, ["a", "b", "c"]])
def test_writers_lose_no_race(lake, patient, published, keys):
    """Each commit of three writers is the first of its version, on one key and on several."""
    handles = [lake.map(buckets=1) for _ in keys]
    lake.put(handles[0], other=1)  # The folder that is locked is made by the first commit.
    published.clear()
    with ThreadPoolExecutor(len(keys)) as pool:
        list(pool.map(_increments, handles, keys, [15] * len(keys)))

    assert sum(lake.map().get_many(sorted(set(keys)))) == 45
    assert (published[True] >= 45, published[False]) == (True, 0)


def test_a_change_runs_at_most_twice(lake, patient):
    """Who came too late changes the newest value before it is somebody else's turn."""
    runs: list[int] = []
    handles = [lake.map(buckets=1) for _ in range(3)]

    def work(store):
        for _ in range(10):
            store.update(["hot"], lambda olds: runs.append(1) or [(olds[0] or 0) + 1])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, handles))

    assert handles[0].get_many(["hot"]) == [30]
    assert len(runs) <= 60


def test_a_stuck_turn_holds_nobody_up(lake, monkeypatch):
    """After the longest wait a commit takes place whoever's turn it is; readers never wait."""
    monkeypatch.setattr(local, "LONGEST_WAIT", 0.01)
    store = lake.map()
    lake.put(store, a=1)
    stuck = os.open(f"{store.location}/{LOG}", os.O_RDONLY)
    fcntl.flock(stuck, fcntl.LOCK_EX)
    lake.put(store, a=2)

    assert lake.map().get_many(["a"]) == [2]
    os.close(stuck)


def test_a_function_may_change_the_collection_whose_turn_it_is(lake, patient):
    """A thread does not wait for a turn that it has itself."""
    store = lake.map()
    lake.put(store, a=1)
    with turn(store.location, LOG):
        lake.put(store, a=2)

    assert store.get_many(["a"]) == [2]


def test_a_process_that_ends_gives_its_turn_back(lake, patient):
    """The kernel lets go of the lock of a process that was killed."""
    store = lake.map()
    lake.put(store, a=1)
    if not (child := os.fork()):
        turn(store.location, LOG).__enter__()
        os._exit(0)
    os.waitpid(child, 0)
    lake.put(store, a=2)

    assert store.get_many(["a"]) == [2]


@pytest.mark.parametrize("error", [OSError(95, "Operation not supported"), OSError(9, "Bad file descriptor")])
def test_a_file_system_without_locks_is_written_to_all_the_same(lake, monkeypatch, error):
    """Then commits race, as on an object store."""

    def refused(descriptor, operation):
        if operation != fcntl.LOCK_UN:
            raise error

    monkeypatch.setattr(local.fcntl, "flock", refused)
    store = lake.map()
    lake.put(store, a=1)

    assert lake.map().get_many(["a"]) == [1]


@pytest.mark.parametrize("folder", ["", f"/{LOG}"])
def test_a_stuck_turn_costs_one_wait_and_not_one_for_each_change(lake, monkeypatch, folder):
    """A process that was stopped while it was its turn is waited for once."""
    monkeypatch.setattr(local, "LONGEST_WAIT", 0.3)
    store = lake.map()
    lake.put(store, a=0)
    stuck = os.open(f"{store.location}{folder}", os.O_RDONLY)
    fcntl.flock(stuck, fcntl.LOCK_EX)
    started = time.monotonic()
    for n in range(20):
        lake.put(store, a=n)

    assert time.monotonic() - started < 3
    os.close(stuck)


def test_turns_are_taken_again_once_the_stuck_one_is_over(lake, monkeypatch):
    """Who finds the turn free waits for it again from then on."""
    monkeypatch.setattr(local, "LONGEST_WAIT", 0.01)
    store = lake.map()
    lake.put(store, a=0)
    stuck = os.open(store.location, os.O_RDONLY)
    fcntl.flock(stuck, fcntl.LOCK_EX)
    lake.put(store, a=1)
    assert store.location in local._stuck
    os.close(stuck)
    lake.put(store, a=2)

    assert store.location not in local._stuck


def test_getting_a_collection_takes_no_turn(lake, monkeypatch):
    """Where nothing is to be written it waits for nobody: neither who has the turn, nor who waits for that thread."""
    monkeypatch.setattr(local, "LONGEST_WAIT", 5.0)
    storage = lake.storage()
    store = storage.create("map", "m", Options())
    lake.put(store, a=1)
    with turn(store.location, LOG), ThreadPoolExecutor(1) as pool:
        started = time.monotonic()
        pool.submit(storage.create, "map", "m", Options()).result()

    assert time.monotonic() - started < 2.5
