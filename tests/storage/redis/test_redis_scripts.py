"""Scripts at sizes at which Lua needs several steps."""

from __future__ import annotations

import pytest

from dstream.spi.store import Assignment, Options, Splice

MANY = 10_001


def test_redis_job_adds_many_entries_to_a_bucket_that_has_some(storage, written):
    """A staged bucket that cannot take the place of the old one is added to it, in steps."""
    store = storage.create("map", "m", Options(buckets=1))
    store.update([-1, 0], lambda old: ["stays", "goes"])
    job = store.begin("job")
    job.commit(written(job, {n: n for n in range(MANY)}))

    assert store.size() == MANY + 1
    assert store.get_many([-1, 0, MANY - 1]) == ["stays", 0, MANY - 1]


def test_redis_journal_is_read_page_by_page(storage):
    """More events than one page holds come complete and in order."""
    store = storage.create("map", "m", Options(buckets=2, journal=True))
    store.update(range(2500), lambda old: list(range(2500)))
    events = list(store.journal(0))

    assert [event.offset for event in events] == list(range(1, 2501))
    assert [event.key for event in events] == list(range(2500))


@pytest.mark.parametrize("count", [0, 1, 5, 9_000])
@pytest.mark.parametrize(
    ("start", "stop"), [(0, 0), (0, 1), (1, 3), (6_000, 6_003), (9_998, MANY), (MANY, MANY), (0, MANY), (4_990, 5_010)]
)
def test_redis_splice_of_a_long_list(storage, start, stop, count):
    """Wherever and whatever is replaced: what a Python list would hold."""
    store, model = storage.create("list", "l", Options()), list(range(MANY))
    store.extend(model)
    store.edit(lambda view: Splice(start, stop, [f"new {n}" for n in range(count)]))
    model[start:stop] = [f"new {n}" for n in range(count)]

    assert store.size() == len(model)
    assert store.read(0, 30_000) == model


def test_redis_list_job_appends_to_items_that_are_there(storage):
    """Long staged lists are appended in steps and keep their order."""
    store = storage.create("list", "l", Options())
    store.extend(["first"])
    job = store.begin("job")
    job.commit(
        [receipt for task in range(2) for receipt in job.writer.write(iter(range(task * MANY, task * MANY + MANY)))]
    )

    assert store.read(0, 30_000) == ["first", *range(2 * MANY)]


@pytest.mark.parametrize("count", [1, 3_999, 4_000, 4_001, 5_000])
def test_redis_list_is_extended_in_steps(storage, count):
    """Items of one command are appended in several steps, each of them once and in order."""
    store = storage.create("list", "l", Options())
    store.extend(["first"])
    store.extend(range(count))

    assert store.read(0, 30_000) == ["first", *range(count)]


def test_an_assignment_is_one_script(storage, server):
    """It reads no old values, and asks once more only if the types are not those that it knew."""
    store, other = (storage.create("map", "m", Options()), storage.open("map", "m", Options()))
    store.update(["a"], Assignment([1]))
    other.update(["a", "b"], Assignment([2, 3]))  # It did not know any types.
    assert store.get_many(["a", "b"]) == [2, 3]

    before = server.info("commandstats")["cmdstat_evalsha"]["calls"]
    other.update(["a", "b", "c"], Assignment([4, None, None]))
    assert server.info("commandstats")["cmdstat_evalsha"]["calls"] - before == 1
    assert store.get_many(["a", "b", "c"]) == [4, None, None]
