"""Jobs: what tasks write is nowhere until it is committed, then everywhere, once."""

from __future__ import annotations

import operator
import pickle

import pytest

from dstream.spi.store import Splice


def test_job_is_invisible_before_its_commit(numbers, use):
    """Written entries show in nothing that can be asked; committed, they are all there."""
    job = numbers.begin("job")
    receipts = use.tasks(job, {"a": 10, "d": 4})
    before = (use.content(numbers), numbers.size(), numbers.get_many(["a", "d"]), job.is_done)
    job.commit(receipts)

    assert before == ({"a": 1, "b": 2, "c": 3}, 3, [1, None], False)
    assert use.content(numbers) == {"a": 10, "b": 2, "c": 3, "d": 4}
    assert job.is_done


def test_job_of_many_entries_is_complete(storage, use):
    """Ten thousand entries from as many tasks as there are buckets."""
    store = use.map(storage)
    job = store.begin("job")
    job.commit(use.tasks(job, {n: str(n) for n in range(10_000)}))

    assert use.content(store) == {n: str(n) for n in range(10_000)}
    assert store.get_many([0, 9_999]) == ["0", "9999"]


def test_job_has_small_receipts_that_travel(backend, storage, use):
    """What the driver gets from a task says where the entries are, and does not carry them."""
    job = use.map(storage).begin("job")
    receipts = use.tasks(job, {n: "x" * 1000 for n in range(100) if job.writer.bucket_of(n) < 4})

    assert backend.name == "memory" or len(pickle.dumps(receipts)) < 4_000


def test_job_without_entries_commits(numbers, use):
    """A job whose tasks found nothing is done all the same."""
    job = numbers.begin("empty")
    job.commit(use.bucket(job, 0, {}))

    assert numbers.begin("empty").is_done
    assert use.content(numbers) == {"a": 1, "b": 2, "c": 3}


def test_job_attempt_that_lost_leaves_nothing(numbers, use):
    """A task that ran twice wrote twice; the receipts of one attempt are committed, the others never show."""
    job = numbers.begin("job")
    use.tasks(job, {"d": "losing", "e": "only in the losing attempt"})
    job.commit(use.tasks(job, {"d": "winning"}))

    assert use.content(numbers) == {"a": 1, "b": 2, "c": 3, "d": "winning"}


def test_job_attempt_that_broke_off_leaves_nothing(numbers, use):
    """A task that failed after some entries has given no receipts, so they are nowhere."""
    job = numbers.begin("job")
    bucket = job.writer.bucket_of("a")
    keys = [n for n in range(999) if job.writer.bucket_of(n) == bucket]
    with pytest.raises(ZeroDivisionError):
        use.bucket(job, bucket, ((key, 1 // (key != keys[2])) for key in keys))
    job.commit(use.tasks(job, {"d": 4}))

    assert use.content(numbers) == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_job_commits_once_however_often_it_is_asked(numbers, use):
    """A second commit of the same job, by the same driver, does nothing."""
    job = numbers.begin("job")
    receipts = use.tasks(job, {"a": 10})
    job.commit(receipts)
    use.put(numbers, {"a": 11})
    job.commit(receipts)

    assert numbers.get_many(["a"]) == [11]


def test_job_without_a_name_commits_once_too(storage, numbers, use):
    """Committing again after an answer was lost has no second effect, for maps and lists."""
    items = use.list(storage)
    jobs = [numbers.begin(None, merge=operator.add), items.begin(None)]
    receipts = [use.tasks(jobs[0], {"a": 10}), use.task(jobs[1], ["x"])]
    for _ in range(2):
        for job, written in zip(jobs, receipts, strict=True):
            job.commit(written)

    assert numbers.get_many(["a"]) == [11]
    assert items.read(0, 9) == ["x"]
    assert not numbers.begin(None).is_done


def test_job_of_two_drivers_has_one_effect(backend, numbers, use):
    """Two drivers that run the same job at the same time: the first commit counts, the other does nothing."""
    stores = [use.map(backend.open(), "numbers") for _ in range(2)]
    jobs = [store.begin("job", merge=operator.add) for store in stores]
    receipts = [use.tasks(job, {"a": 10 * (n + 1)}) for n, job in enumerate(jobs)]
    jobs[1].commit(receipts[1])
    jobs[0].commit(receipts[0])

    assert numbers.get_many(["a"]) == [21]
    assert all(job.is_done for job in jobs)


def test_job_of_many_drivers_at_a_time_has_one_effect(backend, numbers, use):
    """The same with real concurrency."""

    def run():
        use.run(use.map(backend.open(), "numbers"), "job", {"a": 1, "b": 1, "d": 1}, merge=operator.add)

    use.together(*[run] * 4)
    assert use.content(numbers) == {"a": 2, "b": 3, "c": 3, "d": 1}


def test_job_is_done_for_everybody(backend, numbers, use):
    """`is_done` is asked before the work, from anywhere; other names are other jobs."""
    use.run(numbers, "job", {"a": 10})
    other = use.map(backend.open(), "numbers")

    assert other.begin("job").is_done
    assert not other.begin("other").is_done
    assert not use.map(backend.open(), "another map").begin("job").is_done


def test_job_that_was_aborted_leaves_nothing(numbers, use):
    """Giving up never raises, may be repeated, and the job can be run again."""
    job = numbers.begin("job", replace=True)
    use.tasks(job, {"a": 10})
    job.abort()
    job.abort()

    assert use.content(numbers) == {"a": 1, "b": 2, "c": 3}
    use.run(numbers, "job", {"a": 20})
    assert numbers.get_many(["a"]) == [20]


def test_job_abort_after_commit_takes_nothing_back(numbers, use):
    """What was committed stays, also if the driver gives up afterwards."""
    job = numbers.begin("job")
    job.commit(use.tasks(job, {"d": 4}))
    job.abort()

    assert use.content(numbers) == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_job_merges_with_what_is_there(numbers, use):
    """`merge` gets the value that is there and the new one, in this order, where there is one."""
    use.run(numbers, "job", {"a": "new", "z": "alone"}, merge=lambda old, new: f"{old} then {new}")

    assert use.content(numbers) == {"a": "1 then new", "b": 2, "c": 3, "z": "alone"}


@pytest.mark.parametrize(
    "competing", [{"a": 100, "new": 100}, {"a": None}, {"b": 7}], ids=["puts", "removes", "beside"]
)
def test_job_merges_with_the_newest_value(backend, numbers, use, competing):
    """What others write between the tasks and the commit is merged with, not lost."""
    job = numbers.begin("job", merge=operator.add)
    receipts = use.tasks(job, {"a": 10, "new": 10})
    use.put(use.map(backend.open(), "numbers"), competing)
    job.commit(receipts)

    now = {"a": 1, "b": 2, "c": 3} | competing
    expected = now | {"a": (now["a"] or 0) + 10, "new": now.get("new", 0) + 10}
    assert use.content(numbers) == expected


COMPETING = []


def _add_after_competing(old, new):
    """Add, after somebody else was faster; a function of the module, so that tasks can load it."""
    if COMPETING:
        COMPETING.pop()()
    return old + new


def test_job_merges_again_when_a_value_changes_while_it_commits(backend, numbers, use):
    """A writer that comes while the driver merges is merged with too: nothing is lost."""
    other = use.map(backend.open(), "numbers")
    job = numbers.begin("job", merge=_add_after_competing)
    receipts = use.tasks(job, {"a": 10})
    use.put(other, {"a": 50})
    COMPETING.append(lambda: use.put(other, {"a": 100}))
    job.commit(receipts)

    assert numbers.get_many(["a"]) == [110]
    assert not COMPETING


def test_job_that_another_driver_commits_while_this_one_merges_has_one_effect(backend, numbers, use):
    """The last look at whether the job is done and the commit are one step."""
    other = use.map(backend.open(), "numbers")
    job = numbers.begin("job", merge=_add_after_competing)
    receipts = use.tasks(job, {"a": 10})
    use.put(other, {"a": 50})
    COMPETING.append(lambda: use.run(other, "job", {"a": 10}, merge=operator.add))
    job.commit(receipts)

    assert numbers.get_many(["a"]) == [60]


def test_job_that_merges_beside_counting_writers_loses_nothing(backend, numbers, use):
    """Ten merging jobs and an incrementing writer at the same time add up."""

    def increment():
        store = use.map(backend.open(), "numbers")
        for _ in range(30):
            store.update(["a"], lambda old: [old[0] + 1])

    def merge():
        for n in range(10):
            use.run(use.map(backend.open(), "numbers"), f"job {n}", {"a": 100}, merge=operator.add)

    use.together(increment, merge)
    assert numbers.get_many(["a"]) == [1 + 30 + 1000]


def test_job_whose_merge_raises_changes_nothing(numbers, use):
    """The exception passes through; the job is not done."""
    with pytest.raises(ZeroDivisionError):
        use.run(numbers, "job", {"a": 1, "d": 4}, merge=lambda old, new: 1 // 0)

    assert use.content(numbers) == {"a": 1, "b": 2, "c": 3}
    assert not numbers.begin("job").is_done


def test_job_replaces_in_one_commit(numbers, use):
    """What was there before disappears as the new entries appear, and only then."""
    job = numbers.begin("job", replace=True)
    receipts = use.tasks(job, {"c": 30, "d": 40})
    assert use.content(numbers) == {"a": 1, "b": 2, "c": 3}
    job.commit(receipts)

    assert use.content(numbers) == {"c": 30, "d": 40}
    assert numbers.get_many(["a", "c", "d"]) == [None, 30, 40]


def test_job_that_replaces_removes_what_was_written_meanwhile(backend, numbers, use):
    """Everything up to the commit is "before"; a replacing job without entries leaves an empty map."""
    job = numbers.begin("job", replace=True)
    receipts = use.tasks(job, {"d": 4})
    use.put(use.map(backend.open(), "numbers"), {"e": 5})
    job.commit(receipts)
    assert use.content(numbers) == {"d": 4}

    use.run(numbers, "empty", {}, replace=True)
    assert (use.content(numbers), numbers.size()) == ({}, 0)


def test_job_that_replaces_and_merges_merges_with_nothing(numbers, use):
    """What disappears in the commit is no value to merge with."""
    use.run(numbers, "job", {"a": 5, "z": 6}, merge=operator.add, replace=True)

    assert use.content(numbers) == {"a": 5, "z": 6}


def test_job_of_a_list_appends_in_the_order_of_the_receipts(storage, use):
    """Whatever task was first, the receipts say what stands where; None is an item."""
    store = use.list(storage, 0)
    job = store.begin("job")
    late, early, none = use.task(job, [5, None, 6]), use.task(job, [3, 4]), use.task(job, [])
    assert use.items(store) == [0]
    job.commit([*early, *none, *late])

    assert use.items(store) == store.read(0, 9) == [0, 3, 4, 5, None, 6]


def test_job_of_a_list_is_as_large_as_it_wants(storage, use):
    """Twenty thousand items from four tasks keep their order."""
    store = use.list(storage)
    job = store.begin("job")
    job.commit([r for task in range(4) for r in use.task(job, range(task * 5_000, task * 5_000 + 5_000))])

    assert use.items(store) == list(range(20_000))
    assert store.read(9_998, 10_002) == [9_998, 9_999, 10_000, 10_001]


def test_job_of_a_list_has_one_effect(backend, storage, use):
    """Losing attempts never show, two drivers commit once, and the job is done for everybody."""
    store = use.list(storage)
    job, same = store.begin("job"), use.list(backend.open()).begin("job")
    use.task(job, ["losing"])
    receipts, others = use.task(job, ["winning"]), use.task(same, ["too late"])
    job.commit(receipts)
    same.commit(others)
    job.commit(receipts)

    assert store.read(0, 9) == ["winning"]
    assert use.list(backend.open()).begin("job").is_done


def test_job_of_a_list_replaces_in_one_commit(storage, use):
    """The old items disappear as the new ones appear; the list can be used on."""
    store = use.list(storage, 1, 2, 3)
    job = store.begin("job", replace=True)
    receipts = use.task(job, ["new"])
    store.extend([4])
    job.commit(receipts)
    store.edit(lambda view: Splice(1, 1, ["more"]))

    assert use.items(store) == ["new", "more"]


def test_jobs_that_replace_with_nothing_empty_the_list(storage, use):
    """No receipts, no items."""
    store = use.list(storage, 1, 2)
    store.begin("job", replace=True).commit([])

    assert (store.size(), use.items(store)) == (0, [])


def test_job_and_cache_work_as_for_a_map(storage, use):
    """A cache is a map whose values carry their expiry."""
    from dstream.spi.store import Options

    store = storage.create("cache", "c", Options(ttl=60))
    use.run(store, "job", {"a": (1, 99.5)})

    assert use.content(store) == {"a": (1, 99.5)}
