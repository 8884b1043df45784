"""Jobs that write entries: several files, several drivers, types that tasks do not agree on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dstream.delta import checkpoints
from tests.storage.lake.writing import written


def _tasks(job, *parts):
    return [receipt for part in parts for receipt in written(job.writer, part.items())]


def test_job_takes_the_types_of_most_rows(lake):
    """Tasks that infer different types: the files of the few are written again, and all values come back exactly."""
    store = lake.map()
    job = store.begin("job")
    many, few = {f"k{n}": n for n in range(20)}, {"text": "x", "flag": True}
    job.commit(_tasks(job, few, many))

    assert store.options.value_type is int
    assert lake.content(lake.map()) == {**many, **few}
    assert lake.content(store)["flag"] is True


@pytest.mark.parametrize("arguments", [{}, {"merge": max}, {"replace": True}], ids=repr)
def test_job_meets_types_that_were_decided_meanwhile(lake, arguments):
    """The collection's types win, whatever the tasks have inferred."""
    store = lake.map()
    job = store.begin("job", **arguments)
    receipts = _tasks(job, {1: 2.5})
    lake.map().update(["s"], lambda old: ["text"])
    job.commit(receipts)

    kept = {} if "replace" in arguments else {"s": "text"}
    assert lake.content(lake.map()) == {1: 2.5, **kept}
    assert lake.map().options.value_type is str


def test_job_of_two_drivers_is_done_once(lake):
    """Both have written everything; the second commit finds that there is nothing to do."""
    jobs = [lake.map().begin("job", merge=lambda old, new: old + new) for _ in range(2)]
    receipts = [_tasks(job, {"n": 1}) for job in jobs]
    for _ in range(2):
        for job, own in zip(jobs, receipts, strict=True):
            job.commit(own)
            job.abort()

    assert [job.is_done for job in jobs] == [True, True]
    assert lake.content(lake.map()) == {"n": 1}


def test_job_merges_only_the_touched_buckets_again(lake):
    """Buckets that nobody has changed since `begin` take the file that their task has merged."""
    merged = []
    store = lake.map(buckets=4)
    lake.put(store, **{f"k{n}": 1 for n in range(40)})
    job = store.begin("job", merge=lambda old, new: merged.append(1) or old + new)
    receipts = _tasks(job, {f"k{n}": 10 for n in range(40)})
    touched = job.writer.bucket_of("k0")
    lake.put(lake.map(), k0=100)
    del merged[:]
    job.commit(receipts)

    assert len(merged) == sum(job.writer.bucket_of(f"k{n}") == touched for n in range(40)) < 40
    assert lake.content(lake.map()) == {"k0": 110, **{f"k{n}": 11 for n in range(1, 40)}}


def test_job_merges_with_nothing_after_a_clear(lake):
    """Entries that were there when the tasks ran, and are gone at the commit, do not come back."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    job = store.begin("job", merge=lambda old, new: old + new)
    receipts = _tasks(job, {"a": 10})
    lake.map().clear()
    job.commit(receipts)

    assert lake.content(lake.map()) == {"a": 10}


def test_job_leaves_only_files_that_are_live(lake):
    """What was written to merge from is removed after the commit, and everything after an abort."""
    store = lake.map(buckets=4)
    lake.put(store, **{f"k{n}": 1 for n in range(40)})
    job = store.begin("job", merge=max)
    job.commit(_tasks(job, {f"k{n}": 10 for n in range(40)}))
    assert lake.files(store) == {file.path for file in store.log.files()}

    before = lake.files(store)
    job = store.begin("other")
    _tasks(job, {"k": 1})
    assert lake.files(store) > before
    job.abort()
    assert lake.files(store) == before


def test_job_survives_a_vacuum_of_what_it_read_at_first(lake):
    """A task that finds the files of `begin` gone leaves the merge to the driver."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    lake.put(store, b=1)
    job = store.begin("job", merge=lambda old, new: old + new)
    other = lake.map()
    other.compact()
    other.vacuum(0)
    job.commit(_tasks(job, {"a": 10, "c": 10}))

    assert lake.content(lake.map()) == {"a": 11, "b": 1, "c": 10}


def test_job_writes_many_rows_in_bounded_parts(lake):
    """More rows than are collected at a time, in several buckets at once."""
    store = lake.map(buckets=3)
    entries = {n: [n] for n in range(30_000)}
    job = store.begin(None)
    job.commit(_tasks(job, entries))

    assert lake.content(store) == entries
    assert store.size() == 30_000
    assert len(store.log.files()) == 3


def test_job_writes_bucket_by_bucket(lake):
    """A task that has several buckets writes one after the other; a bucket without entries has no receipt."""
    store = lake.map(buckets=3)
    lake.put(store, a=1)
    job = store.begin("job", merge=lambda old, new: old + new)
    entries = {f"k{n}": n for n in range(3000)} | {"a": 10}
    parts = {bucket: [e for e in entries.items() if job.writer.bucket_of(e[0]) == bucket] for bucket in range(3)}
    receipts = [receipt for bucket, part in parts.items() for receipt in job.writer.write_bucket(bucket, iter(part))]
    job.commit(receipts)

    assert list(job.writer.write_bucket(0, iter([]))) == []
    assert lake.content(lake.map()) == {**entries, "a": 11}


def test_failing_items_leave_nothing_behind(lake):
    """An exception of the stream passes through; half-written files are gone."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    before = lake.files(store)

    def items():
        yield from ((f"k{n}", n) for n in range(5000))
        raise OSError("of the user")

    with pytest.raises(OSError, match=r"^of the user$") as caught:
        list(store.begin("job").writer.write_bucket(0, items()))

    assert type(caught.value) is OSError
    assert lake.files(store) == before


def test_merge_may_change_the_old_value_it_gets(lake):
    """The journal has the old value as it was."""
    store = lake.map(journal=True)
    lake.put(store, a=[1])
    job = store.begin("job", merge=lambda old, new: old.extend(new) or old)
    job.commit(_tasks(job, {"a": [2]}))
    added, updated = store.journal(0)

    assert (added.new_value, updated.old_value, updated.new_value) == ([1], [1], [1, 2])


def test_merge_that_changes_the_map_itself_loses_nothing(lake):
    """In the driver, a merge function may put into the same map; what it put is merged with."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    job = store.begin("job", merge=lambda old, new: old + new)
    receipts = _tasks(job, {"a": 10})
    lake.put(store, a=2)
    puts = [100]
    job._plan = replace(job._plan, merge=lambda old, new: (puts and lake.put(store, a=puts.pop()), old + new)[1])
    job.commit(receipts)

    assert lake.content(lake.map()) == {"a": 110}


def test_merge_that_misses_a_file_of_its_own_says_so(lake):
    """An error of the user's function, in a task or in the driver, is not taken for one of the storage."""
    store = lake.map(buckets=1)
    lake.put(store, a=1)
    fails = [True]

    def merge(old, new):
        if fails[0]:
            raise FileNotFoundError("of the user")
        return old + new

    job = store.begin("job", merge=merge)
    with pytest.raises(FileNotFoundError, match="of the user"):
        _tasks(job, {"a": 10})
    fails[0] = False
    receipts = _tasks(job, {"a": 10})
    lake.put(store, a=2)
    fails[0] = True
    with pytest.raises(FileNotFoundError, match="of the user"):
        job.commit(receipts)
    assert lake.content(store) == {"a": 2}


def test_merging_job_notices_a_clear_that_a_checkpoint_summed_up(lake):
    """What the log does not say bucket by bucket counts as changed, also where nothing is left."""
    store = lake.map(buckets=1)
    lake.put(store, k=1)
    job = store.begin("job", merge=lambda old, new: old + new)
    receipts = written(job.writer, [("k", 10)])
    lake.map().clear()
    checkpoints.write_checkpoint(store.log.folder)
    store.log.renew()  # as after a failed read in the middle of a commit
    job.commit(receipts)

    assert lake.content(store) == {"k": 10}


def test_job_that_is_interrupted_after_its_commit_keeps_its_files(lake):
    """What was folded right after the commit still is the journal's."""
    store = lake.map(journal=True, buckets=1)
    job = store.begin("job")
    job.commit(_tasks(job, {"a": 1, "b": 2}))
    lake.put(store, c=3)
    store.compact()
    job.abort()

    assert [event.key for event in store.journal(0)] == ["a", "b", "c"]
    assert lake.content(lake.map()) == {"a": 1, "b": 2, "c": 3}
