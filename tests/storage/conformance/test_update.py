"""`update` and `get_many`: atomic changes of some keys, seen by whoever asks afterwards."""

from __future__ import annotations

import pytest

from dstream.spi.store import UNCHANGED


def test_update_puts_replaces_and_removes(numbers, use):
    """A new value is put, None removes, and the old values are returned."""
    old = numbers.update(["a", "b", "z"], lambda old: [10, None, 26])

    assert old == [1, 2, None]
    assert use.content(numbers) == {"a": 10, "c": 3, "z": 26}


def test_update_gets_the_old_values_in_the_order_of_the_keys(numbers):
    """`change` sees each key's value, None where there is none."""
    seen = []
    numbers.update(["c", "z", "a"], lambda old: seen.append(list(old)) or [UNCHANGED] * 3)

    assert seen == [[3, None, 1]]


def test_update_unchanged_leaves_an_entry_as_it_is(numbers, use):
    """UNCHANGED keeps a value, and keeps absent what is absent."""
    assert numbers.update(["a", "z", "b"], lambda old: [UNCHANGED, UNCHANGED, old[2] * 10]) == [1, None, 2]
    assert use.content(numbers) == {"a": 1, "b": 20, "c": 3}


def test_update_removes_what_is_not_there(numbers, use):
    """Removing an absent entry is no error."""
    assert numbers.update(["z"], lambda old: [None]) == [None]
    assert numbers.size() == 3


def test_update_is_seen_by_every_other_handle(backend, numbers, use):
    """What returned before an operation starts is seen by it, whichever handle it uses."""
    other = use.map(backend.open(), "numbers")
    for count in range(5):
        use.put(numbers, {"a": count})
        assert other.get_many(["a"]) == [count]
        use.put(other, {"a": -count})
        assert numbers.get_many(["a"]) == [-count]


def test_update_runs_again_when_another_change_came_between(backend, numbers, use):
    """A competing change makes `change` run again, with the fresh values; neither is lost."""
    other, runs = use.map(backend.open(), "numbers"), []

    def change(old):
        if not runs:
            use.put(other, {"b": 20})
        runs.append(list(old))
        return [old[0] + old[1], UNCHANGED]

    assert numbers.update(["a", "b"], change) == [1, 20]
    assert runs == [[1, 2], [1, 20]]
    assert use.content(numbers) == {"a": 21, "b": 20, "c": 3}


@pytest.mark.parametrize("competing", [{"z": 5}, {"a": None}], ids=["appears", "disappears"])
def test_update_runs_again_when_an_entry_came_or_went(backend, numbers, use, competing):
    """An entry that appears or disappears meanwhile is a change like any other."""
    other, runs = use.map(backend.open(), "numbers"), []

    def change(old):
        if not runs:
            use.put(other, competing)
        runs.append(list(old))
        return [(old[0] or 0) + 1, (old[1] or 0) + 1]

    numbers.update(["a", "z"], change)
    assert len(runs) == 2
    assert numbers.get_many(["a", "z"]) == [(runs[1][0] or 0) + 1, (runs[1][1] or 0) + 1]


def test_update_that_decides_nothing_still_compares(backend, storage, use):
    """Two first puts of one key at the same time: the second one sees the first."""
    store, other, runs = use.map(storage), use.map(backend.open()), []

    def change(old):
        if not runs:
            use.put(other, {"k": "text"})
        runs.append(old[0])
        return [7]

    store.update(["k"], change)
    assert runs == [None, "text"]
    assert use.content(use.map(backend.open())) == {"k": 7}


def test_update_that_was_not_the_first_decides_no_types(backend, storage, use):
    """Two first changes of different keys at the same time: the one that commits first decides."""
    store, other = use.map(storage), use.map(backend.open())
    store.update([1], lambda old: use.put(other, {"k": "text"}) and [7])

    options = use.map(backend.open()).options
    assert (options.key_type, options.value_type) == (str, str)
    assert use.content(store) == {"k": "text", 1: 7}


def test_update_may_use_the_map_itself(numbers, use):
    """`change` may read and write the same map, other keys and other stores: nothing deadlocks, nothing is lost."""

    def change(old):
        use.put(numbers, {"c": numbers.get_many(["c"])[0] + 1})
        return [numbers.size()]

    numbers.update(["a"], change)
    assert use.content(numbers)["a"] == 3
    assert use.content(numbers)["c"] >= 4


def test_update_changes_nothing_when_change_raises(numbers, use):
    """The exception passes through as it is."""
    with pytest.raises(ZeroDivisionError):
        numbers.update(["a", "b"], lambda old: [5, 1 // 0])

    assert use.content(numbers) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize("new", [[], [1], [1, 2, 3]], ids=len)
def test_update_refuses_another_number_of_values(numbers, use, new):
    """`change` returns one value for each key, or nothing happens."""
    with pytest.raises(ValueError, match="numbers"):
        numbers.update(["a", "b"], lambda old: new)

    assert use.content(numbers) == {"a": 1, "b": 2, "c": 3}


def test_update_of_many_keys_is_one_change(storage, use):
    """Ten thousand keys are put, read and removed at once."""
    store = use.map(storage)
    entries = {f"key {n}": n for n in range(10_000)}
    use.put(store, entries)

    assert store.size() == 10_000
    assert store.get_many(list(entries)) == list(range(10_000))
    store.update(list(entries), lambda old: [None if value % 2 else UNCHANGED for value in old])
    assert store.size() == 5_000


def test_get_many_gives_a_value_per_key(numbers):
    """Absent keys give None, keys may be repeated, and no keys give no values."""
    assert numbers.get_many(["c", "z", "a", "c"]) == [3, None, 1, 3]
    assert numbers.get_many([]) == []


def test_clear_removes_all_entries(backend, numbers, use):
    """After clear there is nothing, for all handles, and the map can be used on."""
    other = use.map(backend.open(), "numbers")
    numbers.clear()

    assert (other.size(), other.get_many(["a"]), use.content(other)) == (0, [None], {})
    use.put(other, {"d": 4})
    assert use.content(numbers) == {"d": 4}


def test_clear_between_read_and_write_makes_change_run_again(backend, numbers, use):
    """A clear is a change of every key."""
    other, runs = use.map(backend.open(), "numbers"), []

    def change(old):
        if not runs:
            other.clear()
        runs.append(old[0])
        return [(old[0] or 0) + 1]

    numbers.update(["a"], change)
    assert runs == [1, None]
    assert use.content(numbers) == {"a": 1}


def test_size_counts_the_entries(numbers, use):
    """Replacing counts once, removing counts down."""
    assert numbers.size() == 3
    use.put(numbers, {"a": 7, "d": 4})
    numbers.update(["b"], lambda old: [None])
    assert numbers.size() == 3


def test_update_from_threads_loses_nothing(backend, use):
    """Threads that share a handle and threads that have one each all count to the same sum."""
    shared = use.map(backend.open())

    def count(store):
        for _ in range(50):
            store.update(["n"], lambda old: [(old[0] or 0) + 1])

    use.together(*[lambda: count(shared)] * 2, *[lambda: count(use.map(backend.open()))] * 2)
    assert shared.get_many(["n"]) == [200]


def test_update_is_linearizable_per_key(backend, use):
    """A value that only grows never shrinks for a reader, and each writer at once reads what it wrote."""
    use.put(use.map(backend.open()), {"n": 0})
    done = []

    def write(store):
        for _ in range(60):
            [old] = store.update(["n"], lambda old: [old[0] + 1])
            assert store.get_many(["n"])[0] > old
        done.append(1)

    def read(store):
        last = 0
        while len(done) < 2:
            [now] = store.get_many(["n"])
            assert now >= last
            last = now

    stores = [use.map(backend.open()) for _ in range(4)]
    use.together(*[lambda s=s: write(s) for s in stores[:2]], *[lambda s=s: read(s) for s in stores[2:]])
    assert stores[0].get_many(["n"]) == [120]


@pytest.mark.parametrize("keys", [[1, 1.0], [float("nan"), float("nan")]], ids=repr)
def test_update_refuses_a_key_that_is_named_twice(storage, use, keys):
    """One entry cannot get two values; nothing changes."""
    store = use.map(storage)
    with pytest.raises(ValueError, match=r"map 'm' names the key .* twice"):
        store.update(keys, lambda old: ["first", "second"])

    assert store.size() == 0
