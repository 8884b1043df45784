"""Two processes on one store: nothing is lost, and nobody sees half of a change."""

from __future__ import annotations

import operator
import time

import pytest

from dstream.spi.store import Options

pytestmark = pytest.mark.usefixtures("shared")


def _count(backend, times):
    store = backend.open().create("map", "m", Options())
    for _ in range(times):
        store.update(["n"], lambda old: [(old[0] or 0) + 1])


def test_processes_counting_lose_nothing(backend, storage, use, elsewhere):
    """Two processes increment one counter 2,000 times altogether."""
    counting = [elsewhere(_count, backend, 1_000) for _ in range(2)]
    for process in counting:
        process.returned()

    assert use.map(storage).get_many(["n"]) == [2_000]


def _names(backend):
    storage = backend.open()
    ids = [storage.create(kind, "one", Options()) for kind in ("map", "list")]
    ids[0].update(["k"], lambda old: [(old[0] or 0) + 1])
    ids[1].extend([1])
    return storage.names()


def test_processes_that_create_one_name_get_one_store(backend, storage, use, elsewhere):
    """All of them find the store that the first of them made."""
    for process in [elsewhere(_names, backend) for _ in range(3)]:
        assert process.returned() == [("list", "one"), ("map", "one")]

    assert use.map(storage, "one").get_many(["k"]) == [3]
    assert use.list(storage, name="one").size() == 3


def _swap(backend, times):
    store = backend.open().create("map", "m", Options())
    for n in range(times):
        store.update(["left", "right"], lambda old, n=n: [n, n])
        time.sleep(0.001)  # A busy machine gives the reader its turn.


def test_processes_see_no_torn_change(backend, storage, use, elsewhere):
    """Two keys that always change together are never read apart."""
    store = use.map(storage)
    use.put(store, {"left": 0, "right": 0})
    writing = elsewhere(_swap, backend, 400)
    seen = set()
    while store.get_many(["left"]) != [399]:
        left, right = store.get_many(["left", "right"])
        assert left == right
        seen.add(left)
    writing.returned()

    assert len(seen) > 2  # Between the first change and the last one, too.


def _replace(backend, times):
    from dstream.spi.store import Options

    store = backend.open().create("map", "m", Options())
    for n in range(times):
        job = store.begin(f"job {n}", replace=True)
        job.commit(_write_buckets(job.writer, [(f"key {k}", n) for k in range(40)]))


def test_processes_see_no_torn_job(backend, storage, use, elsewhere):
    """A job that replaces everything is seen as a whole or not at all."""
    store = use.map(storage)
    writing = elsewhere(_replace, backend, 40)
    seen: set[object] = set()
    while 39 not in seen:
        values = set(store.get_many([f"key {k}" for k in range(40)]))
        assert len(values) == 1
        seen |= values
    writing.returned()

    assert set(use.content(store).values()) == {39}


def _write_buckets(writer, entries):
    by_bucket = {}
    for key, value in entries:
        by_bucket.setdefault(writer.bucket_of(key), []).append((key, value))
    return [receipt for bucket, pairs in by_bucket.items() for receipt in writer.write_bucket(bucket, iter(pairs))]


def _write(writer, items):
    return list(writer.write(iter(items)))


def test_processes_are_where_tasks_run(storage, use, elsewhere):
    """Writers travel to other processes, and their receipts come back."""
    store, items = use.map(storage), use.list(storage)
    jobs = [store.begin("job", merge=operator.add), items.begin("job")]
    use.put(store, {"a": 1})
    tasks = [
        elsewhere(_write_buckets, jobs[0].writer, [("a", 10), ("b", 20)]),
        elsewhere(_write, jobs[1].writer, [1, 2]),
    ]
    for job, task in zip(jobs, tasks, strict=True):
        job.commit(task.returned())

    assert use.content(store) == {"a": 11, "b": 20}
    assert use.items(items) == [1, 2]
