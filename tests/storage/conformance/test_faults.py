"""SIGKILL at any moment: what was acknowledged is there, the rest is there or not, and nothing is half."""

from __future__ import annotations

import itertools
import operator
import random
import time

import pytest

from dstream.spi.store import Options, Splice

KILLS = 4
KEYS = 200


pytestmark = pytest.mark.usefixtures("shared")


def _write_for_ever(backend):
    """Change a map and a list, and say each time which change was acknowledged."""
    storage = backend.open()
    store, items = storage.create("map", "m", Options(journal=True)), storage.create("list", "l", Options())
    for n in itertools.count(1):
        store.update(["left", "right", n % 50], lambda old, n=n: [n, n, n])
        items.extend([n, n])
        if n % 20 == 0:
            items.edit(lambda view: Splice(0, view.size - 4, []))
            store.compact()
        yield n


@pytest.mark.parametrize("seed", range(KILLS))
def test_killed_writer_loses_nothing_that_it_acknowledged(backend, storage, use, elsewhere, seed):
    """Whenever the writer dies, its last acknowledged change is there and none is torn; the store works on."""
    writer = elsewhere(_write_for_ever, backend)
    random_ = random.Random(seed)
    acknowledged, last = 0, random_.randint(1, 45)
    for acknowledged in writer.said():
        if acknowledged == last:
            _pass_time(random_)
            writer.kill()
    store, items = use.map(storage, "m", journal=True), use.list(storage)
    left, right, other = store.get_many(["left", "right", acknowledged % 50])

    assert left == right >= acknowledged == other
    assert items.size() % 2 == 0
    assert items.read(items.size() - 2, items.size())[0] in (left, left - 1)
    assert list(store.journal(0))[-1].new_value == left
    use.put(store, {"left": "alive"})
    assert store.get_many(["left"]) == ["alive"]


def _run_job(storage, name):
    """Run one job of four tasks that adds 1 to every entry, and one that appends four items."""
    store, items = storage.create("map", "m", Options(buckets=4)), storage.create("list", "l", Options())
    job, appending = store.begin(name, merge=operator.add), items.begin(name)
    parts = [[(n, 1) for n in range(KEYS) if job.writer.bucket_of(n) == bucket] for bucket in range(4)]
    if not job.is_done:
        job.commit([receipt for bucket in range(4) for receipt in job.writer.write_bucket(bucket, iter(parts[bucket]))])
    if not appending.is_done:
        appending.commit([receipt for part in range(4) for receipt in appending.writer.write(iter([(name, part)]))])


def _run_jobs_for_ever(backend):
    """Run one job after the other, and say which are committed."""
    storage = backend.open()
    for n in itertools.count():
        _run_job(storage, f"job {n}")
        yield n


@pytest.mark.parametrize("seed", range(KILLS))
def test_killed_driver_and_a_second_run_have_one_result(backend, storage, use, elsewhere, seed):
    """A driver killed at any moment of its job, then the same job again: exactly one result, and never half of it."""
    random_ = random.Random(seed)
    driver, last = elsewhere(_run_jobs_for_ever, backend), random_.randint(0, 9)
    for n in driver.said():
        if n == last:
            _pass_time(random_)
            driver.kill()
    store, items = use.map(storage), use.list(storage)
    [count] = set(use.content(store).values())
    assert count > last
    assert items.size() % 4 == 0
    for again in range(count + 1):
        _run_job(storage, f"job {again}")

    assert use.content(store) == dict.fromkeys(range(KEYS), count + 1)
    assert use.items(store=items) == [(f"job {n}", part) for n in range(count + 1) for part in range(4)]


def _pass_time(random_):
    """Run a process for a while: these tests vary the moment at which it ends."""
    time.sleep(random_.uniform(0, 0.03))


def test_failing_storage_of_a_task_leaves_the_store_as_it_was(storage, use):
    """A task that dies between two receipts has written nothing that anybody sees."""
    store = use.map(storage)
    use.put(store, {"a": 1})
    job = store.begin("job", replace=True)
    next(iter(job.writer.write_bucket(job.writer.bucket_of("a"), iter([("a", 2)]))))
    job.abort()

    assert use.content(store) == {"a": 1}
