"""`Revision`: a job that makes new values of the entries that are there when it is committed."""

from __future__ import annotations

import pytest

from dstream.spi.store import Revision


def tenfold(key, value):
    """Return what says which key and which value it was made of."""
    return f"{key}{value * 10}"


def test_a_revision_makes_values_of_keys_and_values(store, use):
    """What the job writes does not matter, only of which keys; the others stay."""
    use.run(store, "job", {"a": 0, "b": 0}, merge=Revision(tenfold))

    assert use.content(store) == {"a": "a10", "b": "b20", "c": 3}


def test_a_revision_makes_no_entry_where_there_is_none(store, use):
    """Whether other keys of the job are there or not; nothing happens to one that is absent."""
    use.run(store, "job", {"a": 0, "x": 0, "y": 0}, merge=Revision(tenfold))
    use.run(store, "other", {"z": 0}, merge=Revision(tenfold))

    assert use.content(store) == {"a": "a10", "b": 2, "c": 3}
    assert store.size() == 3


def test_a_revision_of_an_empty_map_leaves_it_empty(storage, use):
    """Also when it is the first job of the map."""
    store = use.map(storage, "empty")
    use.run(store, "job", {"a": 0, "b": 0}, merge=Revision(tenfold))

    assert (use.content(store), store.size()) == ({}, 0)


def test_a_revision_takes_values_that_changed_since_the_tasks_ran(store, use):
    """It runs again on them; what was removed meanwhile stays away, and what was added is left alone."""
    job = store.begin("job", merge=Revision(tenfold))
    receipts = use.tasks(job, {"a": 0, "b": 0, "c": 0})
    store.update(["a", "b", "d"], lambda old: [5, None, 4])
    job.commit(receipts)

    assert use.content(store) == {"a": "a50", "c": "c30", "d": 4}


def test_a_revision_that_fails_changes_nothing(store, use):
    """In the tasks, or in the driver where entries changed meanwhile."""
    job = store.begin("job", merge=Revision(lambda key, value: 1 // (value - 5)))
    receipts = use.tasks(job, {"a": 0, "b": 0})
    store.update(["a"], lambda old: [5])
    with pytest.raises(ZeroDivisionError):
        job.commit(receipts)

    assert use.content(store) == {"a": 5, "b": 2, "c": 3}


def test_a_revision_is_in_the_journal(storage, use):
    """As updates with the old values; entries that are not there are no events."""
    store = use.map(storage, "kept", journal=True)
    use.put(store, {"a": 1})
    end = store.journal_end()
    use.run(store, "job", {"a": 0, "x": 0}, merge=Revision(tenfold))

    assert [tuple(event)[:4] for event in store.journal(end)] == [("UPDATED", "a", 1, "a10")]


def test_revisions_and_changes_at_the_same_time_lose_nothing(backend, storage, use):
    """Both add to one counter, each through a handle of its own."""
    second = backend.open() if backend.shared else storage
    use.put(use.map(storage), {"n": 0})

    def count():
        store = use.map(second)
        for _ in range(20):
            store.update(["n"], lambda old: [old[0] + 1])

    def revise():
        store = use.map(storage)
        for _ in range(5):
            use.run(store, None, {"n": 0}, merge=Revision(lambda key, value: value + 1000))

    use.together(count, revise)
    assert use.content(use.map(storage)) == {"n": 5020}
    second.close()
