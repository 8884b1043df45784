"""`Update`: a job that makes values of the ones that are there and of items, also where there is none."""

from __future__ import annotations

import pytest

from dstream.spi.store import UNCHANGED, Update


def added(key, value, items):
    """Add the items up; without a sum, remove the entry; leave it alone if there is nothing to add."""
    if items == ["leave"]:
        return UNCHANGED
    return ((value or 0) + sum(items)) or None


def test_an_update_makes_values_of_what_is_there_and_of_items(store, use):
    """New ones too; what the job does not name stays."""
    use.run(store, "job", {"a": [1, 1], "x": [7]}, merge=Update(added))

    assert use.content(store) == {"a": 3, "b": 2, "c": 3, "x": 7}


def test_an_update_removes_entries_and_leaves_them(store, use):
    """None removes, or makes none; UNCHANGED leaves it as it is, or absent."""
    items = {"a": [-1], "b": ["leave"], "x": [0], "y": ["leave"]}
    use.run(store, "job", items, merge=Update(added))

    assert use.content(store) == {"b": 2, "c": 3}
    assert store.size() == 2


def test_an_update_decides_the_types_by_its_results(storage, use):
    """Not by the items, which a strict map would not take either."""
    store, strict = use.map(storage, "new"), use.map(storage, "strict", key_type=str, value_type=int, strict=True)
    for each in store, strict:
        use.run(each, "job", {"a": [1, 2], "b": [3]}, merge=Update(added))

    assert (use.content(store), use.content(strict)) == ({"a": 3, "b": 3},) * 2
    assert (store.options.key_type, store.options.value_type) == (str, int)
    with pytest.raises(TypeError, match="strict"):
        use.run(strict, "other", {"a": [1]}, merge=Update(lambda key, value, items: "text"))


def test_an_update_takes_values_that_changed_since_the_tasks_ran(store, use):
    """It runs again on them, on those that were added, and on those that are gone."""
    job = store.begin("job", merge=Update(added))
    receipts = use.tasks(job, {"a": [1], "b": [1], "c": [-3], "d": [1]})
    store.update(["a", "b", "d"], lambda old: [5, None, 4])
    job.commit(receipts)

    assert use.content(store) == {"a": 6, "b": 1, "d": 5}


def test_an_update_is_done_once(store, use):
    """For a job of a name, and each of its epochs."""
    for epoch in (1, 1, 2, 1):
        use.run(store, "job", {"a": [10]}, epoch=epoch, merge=Update(added))

    assert use.content(store)["a"] == 21


def test_an_update_may_change_what_it_gets(storage, use):
    """The journal has the old value as it was."""
    store = use.map(storage, "lists", journal=True)
    use.put(store, {"a": [1]})

    def extended(key, value, items):
        value.extend(items)
        return value

    use.run(store, "job", {"a": [2, 3]}, merge=Update(extended))
    *_, event = store.journal(0)
    assert tuple(event)[:4] == ("UPDATED", "a", [1], [1, 2, 3])


def test_an_update_is_in_the_journal(storage, use):
    """As what it comes to; what stays absent is no event."""
    store = use.map(storage, "kept", journal=True)
    use.put(store, {"a": 1, "b": 1})
    end = store.journal_end()
    use.run(store, "job", {"a": [1], "b": [-1], "x": [5], "y": [0]}, merge=Update(added))

    found = sorted(tuple(event)[:4] for event in store.journal(end))
    assert found == [("ADDED", "x", None, 5), ("REMOVED", "b", 1, None), ("UPDATED", "a", 1, 2)]


def test_an_update_that_fails_changes_nothing(store, use):
    """In the tasks, or in the driver where entries changed meanwhile."""
    job = store.begin("job", merge=Update(lambda key, value, items: 1 // (value - 5)))
    receipts = use.tasks(job, {"a": [], "b": []})
    store.update(["a"], lambda old: [5])
    with pytest.raises(ZeroDivisionError):
        job.commit(receipts)

    assert use.content(store) == {"a": 5, "b": 2, "c": 3}


def test_updates_and_changes_at_the_same_time_lose_nothing(backend, storage, use):
    """Both add to one counter, each through a handle of its own."""
    second = backend.open() if backend.shared else storage
    use.map(storage)

    def count():
        store = use.map(second)
        for _ in range(20):
            store.update(["n"], lambda old: [(old[0] or 0) + 1])

    def update():
        store = use.map(storage)
        for _ in range(5):
            use.run(store, None, {"n": [1000]}, merge=Update(added))

    use.together(count, update)
    assert use.content(use.map(storage)) == {"n": 5020}
    second.close()
