"""Functions that go to the entries of a map, and what is atomic."""

from __future__ import annotations

import threading

import pytest

from dstream.spi.store import UNCHANGED
from tests.collections.stored import StoreAround
from tests.failures.test_items import Mute


def test_execute_on_key_changes_the_entry_and_returns_the_result(make):
    """`set_value` returns the value before; what the function returns comes back."""
    counts = make.map({"whale": 1})
    result = counts.execute_on_key("whale", lambda entry: (entry.key, entry.set_value(entry.value + 1), entry.value))

    assert (result, counts.copy()) == (("whale", 1, 2), {"whale": 2})


def test_execute_on_key_of_an_absent_key(make):
    """The value is None; setting one adds the entry, setting none adds nothing."""
    counts = make.map()
    seen = counts.execute_on_key("sea", lambda entry: entry.value)
    counts.execute_on_key("whale", lambda entry: entry.set_value((entry.value or 0) + 1))
    counts.execute_on_key("ship", lambda entry: entry.set_value(None))

    assert (seen, counts.copy()) == (None, {"whale": 1})


def test_execute_on_key_removes_by_setting_none(make):
    """As in Jet; the last value that was set counts."""
    counts = make.map({"whale": 1, "sea": 1}, journal=True)
    counts.execute_on_key("whale", lambda entry: entry.set_value(None))
    counts.execute_on_key("sea", lambda entry: (entry.set_value(None), entry.set_value(5)))
    counts.execute_on_key("gone", lambda entry: (entry.set_value(5), entry.set_value(None)))

    assert counts == {"sea": 5}
    assert [event.kind for event in counts.journal()] == ["ADDED", "ADDED", "REMOVED", "UPDATED"]


def test_execute_on_key_runs_again_with_the_fresh_value(make):
    """Another thread changed the entry while the function ran."""
    counts = make.map({"whale": 1})
    runs = []

    def increment(entry):
        runs.append(entry.value)
        if len(runs) == 1:
            other = threading.Thread(target=counts.put, args=("whale", 10))
            other.start()
            other.join()
        return entry.set_value(entry.value + 1)

    assert (counts.execute_on_key("whale", increment), runs, counts["whale"]) == (10, [1, 10], 11)


def test_threads_lose_no_increment(make):
    """Four threads count to 100 together."""
    counts = make.map({"n": 0})

    def count():
        for _ in range(25):
            counts.execute_on_key("n", lambda entry: entry.set_value(entry.value + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts["n"] == 100


def test_an_exception_of_the_function_changes_nothing(make):
    """It passes through and says in which collection, and on which key, it arose."""
    counts = make.map({"whale": 0})

    def divide(entry):
        entry.set_value(7)
        return 1 / entry.set_value(0) / 0

    with pytest.raises(ZeroDivisionError) as raised:
        counts.execute_on_key("whale", divide)
    assert counts == {"whale": 0}
    (note,) = raised.value.__notes__
    assert note == "in execute_on_key() of map 'ages', divide, on the key 'whale'; this entry was not changed"


def test_execute_on_entries_changes_those_that_satisfy_the_predicate(make):
    """The results come back by key, also those that are None."""
    counts = make.map({"a": 1, "b": 2, "c": 3})
    results = counts.execute_on_entries(
        lambda entry: entry.set_value(None if entry.key == "c" else entry.value * 10), lambda entry: entry.value > 1
    )

    assert (results, counts.copy()) == ({"b": 2, "c": 3}, {"a": 1, "b": 20})
    assert counts.execute_on_entries(lambda entry: None) == {"a": None, "b": None}


def test_execute_on_entries_reaches_every_entry_of_a_large_map(make):
    """Entries are changed in chunks, each one once."""
    counts = make.map({n: n for n in range(2500)})
    counts.execute_on_entries(lambda entry: entry.set_value(entry.value + 1))

    assert counts == {n: n + 1 for n in range(2500)}


def test_execute_on_entries_looks_at_fresh_values(make):
    """An entry that is gone by the time of its turn, or does not satisfy the predicate any more, is left out."""
    counts = make.map({n: n for n in range(3000)})
    counts._opened = Meddling(counts.store, [2998, 2999], [None, -1])
    results = counts.execute_on_entries(lambda entry: entry.value, lambda entry: entry.value != -1)

    assert len(results) == 2998
    assert not {2998, 2999} & set(results)


class Meddling(StoreAround):
    """A store that another one changes before its first change.

    Args:
        store: the store.
        keys: the keys that the other one changes; those of the change by default.
        new: their new values.
    """

    def __init__(self, store, keys=None, new=None):
        super().__init__(store)
        self.keys, self.new = keys, new
        self.is_first = True

    def update(self, keys, change):
        if self.is_first:
            self.is_first = False
            self.store.update(self.keys or keys, lambda old: self.new or [None for _ in old])
        return self.store.update(keys, change)


def test_execute_on_entries_forgets_the_results_of_a_run_that_did_not_count(make):
    """An entry that vanished before the run that counts has no result."""
    counts = make.map({"a": 1, "b": 2})
    counts._opened = Retrying(counts.store)

    assert counts.execute_on_entries(lambda entry: entry.set_value(entry.value + 10)) == {"b": 2}
    assert counts == {"b": 12}


class Retrying(StoreAround):
    """Removes an entry during a change, which therefore runs again."""

    def update(self, keys, change):
        def meddling(old):
            new = change(old)
            self.store.update(["a"], lambda old: [None])
            return new

        return self.store.update(keys, meddling)


def test_an_exception_names_the_entry_of_the_predicate_too(make):
    """Both functions are the user's."""
    counts = make.map({"a": 1})
    with pytest.raises(ZeroDivisionError) as raised:
        counts.execute_on_entries(lambda entry: 1, lambda entry: 1 / 0)

    (note,) = raised.value.__notes__
    assert note == "in execute_on_entries() of map 'ages', lambda, on the key 'a'; this entry was not changed"


@pytest.mark.parametrize(
    "call",
    [
        lambda counts, fn: counts.execute_on_key("a", fn),
        lambda counts, fn: counts.execute_on_entries(fn),
        lambda counts, fn: counts.execute_on_entries(len, fn),
        lambda counts, fn: counts.replace_all(lambda key, value: fn(key)),
    ],
)
def test_an_exception_that_takes_no_notes_passes_through(make, call):
    """As one of the user's, which a note that it refuses does not hide."""
    counts = make.map({"a": 1})
    with pytest.raises(Mute):
        call(counts, fails_mute)

    assert counts == {"a": 1}


def fails_mute(value):
    """Fail."""
    raise Mute


@pytest.mark.parametrize("call", ["execute_on_key", "execute_on_entries", "predicate"])
def test_what_is_no_function_is_refused_at_the_call(make, call):
    """Before anything runs, also on an empty map."""
    ages = make.map()
    calls = {
        "execute_on_key": lambda: ages.execute_on_key("a", 5),
        "execute_on_entries": lambda: ages.execute_on_entries(5),
        "predicate": lambda: ages.execute_on_entries(len, 5),
    }
    with pytest.raises(TypeError, match="must be a function, not int"):
        calls[call]()


CHANGES = {
    "put": lambda m: m.put("a", 2),
    "put_if_absent": lambda m: m.put_if_absent("a", 2),
    "setdefault": lambda m: m.setdefault("a", 2),
    "replace": lambda m: m.replace("a", 2),
    "replace if": lambda m: m.replace("a", 1, 2),
    "remove": lambda m: m.remove("a"),
    "remove if": lambda m: m.remove("a", 1),
    "pop": lambda m: m.pop("a"),
    "del": lambda m: m.__delitem__("a"),
    "put_all": lambda m: m.put_all({"a": 2, "b": 3, "c": 4}),
    "update": lambda m: m.update(a=2, b=3),
    "execute_on_key": lambda m: m.execute_on_key("a", lambda entry: entry.set_value(2)),
    "execute_on_entries": lambda m: m.execute_on_entries(lambda entry: entry.set_value(2)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_one_atomic_update(make, change):
    """Nothing is read first and written later."""
    ages = make.map({"a": 1})
    store = Counting(ages.store)
    ages._opened = store
    CHANGES[change](ages)

    assert store.calls == ["update"]


class Counting(StoreAround):
    """Notes what changes a store, or looks keys up."""

    def __init__(self, store):
        super().__init__(store)
        self.calls = []

    def __getattr__(self, name):
        if name in {"update", "get_many", "begin", "clear"}:
            self.calls.append(name)
        return super().__getattr__(name)


def test_popitem_removes_an_entry_once(make):
    """What another thread took first is not given again."""
    ages = make.map({"a": 1, "b": 2})
    ages._opened = Meddling(ages.store)

    assert [ages.popitem()[1], ages.size()] in ([1, 0], [2, 0])


def test_a_change_that_changes_nothing_says_so_to_the_store(make):
    """A store then writes nothing."""
    ages = make.map({"a": 1})
    made = []
    store = ages.store
    ages._opened = Noting(store, made)
    for call in (lambda: ages.put_if_absent("a", 2), lambda: ages.remove("b"), lambda: ages.replace("b", 1)):
        call()
    ages.execute_on_key("b", lambda entry: entry.set_value(None))

    assert made == [[UNCHANGED]] * 4


class Noting(StoreAround):
    """Notes what each change makes."""

    def __init__(self, store, made):
        super().__init__(store)
        self.made = made

    def update(self, keys, change):
        def noting(old):
            self.made.append(change(old))
            return self.made[-1]

        return self.store.update(keys, noting)
