"""`compute` and its kin: what `java.util.Map` decides on the value that is there, atomically."""

from __future__ import annotations

import operator
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.errors import NullElementError
from tests.collections.stored import Making


def test_compute_gets_the_key_and_the_value(make):
    """The value is None if there is none; the result is the value afterwards."""
    counts = make.map({"whale": 1})

    assert counts.compute("whale", lambda word, n: n + len(word)) == 6
    assert counts.compute("sea", lambda word, n: (word, n) and 7) == 7
    assert counts == {"whale": 6, "sea": 7}


def test_compute_removes_with_none(make):
    """What is not there is not removed, and is no event."""
    counts = make.map({"whale": 1}, journal=True)

    assert (counts.compute("whale", lambda word, n: None), counts.compute("sea", lambda word, n: None)) == (None, None)
    assert [event.kind for event in counts.journal()] == ["ADDED", "REMOVED"]


def test_compute_stores_a_value_that_was_changed_in_place(make):
    """The function may change the list that it gets and return it."""
    lists = make.map({"a": [1]})
    changed = lists.compute("a", lambda key, held: held.append(2) or held)
    changed.append(3)

    assert lists == {"a": [1, 2]}


def test_compute_if_absent_runs_for_absent_keys_alone(make):
    """The value that is there comes back; a result of None adds nothing."""
    lengths, ran = make.map({"whale": 1}), []
    results = [lengths.compute_if_absent(key, lambda word: ran.append(word) or len(word)) for key in ("whale", "sea")]

    assert (results, ran, lengths.compute_if_absent("x", lambda word: None)) == ([1, 3], ["sea"], None)
    assert lengths == {"whale": 1, "sea": 3}


def test_compute_if_present_runs_for_present_keys_alone(make):
    """A result of None removes the entry."""
    stock = make.map({"rope": 2, "tar": 1})
    results = [stock.compute_if_present(key, lambda what, n: n - 1 or None) for key in ("rope", "tar", "sail")]

    assert (results, stock.copy()) == ([1, None, None], {"rope": 1})


def test_merge_combines_with_the_value_that_is_there(make):
    """Without one the given value is put; a result of None removes the entry."""
    counts = make.map({"whale": 1})

    assert [counts.merge(key, 5, operator.add) for key in ("whale", "sea")] == [6, 5]
    assert (counts.merge("sea", 5, lambda old, new: None), counts.copy()) == (None, {"whale": 6})


def test_an_exception_of_the_function_says_where_and_changes_nothing(make):
    """It passes through with a note."""
    counts = make.map({"whale": 0})
    with pytest.raises(ZeroDivisionError) as raised:
        counts.compute("whale", lambda word, n: 1 / n)

    assert raised.value.__notes__ == [
        "in compute() of map 'ages', lambda, on the key 'whale'; this entry was not changed"
    ]
    assert counts == {"whale": 0}


CALLS = {
    "compute": lambda m, key, fn: m.compute(key, fn),
    "compute_if_absent": lambda m, key, fn: m.compute_if_absent(key, fn),
    "compute_if_present": lambda m, key, fn: m.compute_if_present(key, fn),
    "merge": lambda m, key, fn: m.merge(key, 1, fn),
}


async def later(*values):
    """A function that runs later, if anybody waits for it."""
    return values


@pytest.mark.parametrize("call", CALLS)
def test_wrong_arguments_are_refused_at_the_call(make, call):
    """A None key, what is no function, and a function that would not run."""
    for key, fn, kind, words in [
        (None, len, NullElementError, "cannot have None as a key"),
        ("a", 5, TypeError, "fn must be a function, not int"),
        ("a", later, TypeError, "fn must give a result"),
    ]:
        with pytest.raises(kind, match=words):
            CALLS[call](make.map(), key, fn)


def test_merge_refuses_none(make):
    """A map holds no None, as in Java."""
    with pytest.raises(NullElementError, match="cannot have None as a value, here of the key 'a'"):
        make.map().merge("a", None, operator.add)


def test_merge_gives_a_fresh_value_each_time(make):
    """Another writer was first, so the function runs again; what it did to its argument before is forgotten."""
    lists = make.map({"a": [0]})

    def joined(old, new):
        new.insert(0, len(new))
        if len(old) == 1:
            lists["a"] = [0, 0]
        return old + new

    assert lists.merge("a", [9], joined) == [0, 0, 1, 9]


def test_threads_lose_no_merge(make):
    """Four threads count to 100 together."""
    counts = make.map()
    threads = [
        threading.Thread(target=lambda: [counts.merge("n", 1, operator.add) for _ in range(25)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counts["n"] == 100


def test_an_expired_value_is_none(make):
    """What a cache no longer shows is absent for the functions too."""
    sessions = make.cache({"Ada": 1}, ttl=60)
    sessions.store._clock.now += 60

    assert sessions.merge("Ada", 5, operator.add) == 5


def plain(entries, call, key, value):
    """Do to a dict what Java documents for a map."""
    old = entries.get(key)
    if call == "compute_if_absent":
        new = value if old is None else old
    elif call == "compute_if_present":
        new = None if old is None else value
    else:
        new = 1 if call == "merge" and old is None else value
    entries.pop(key, None)
    if new is not None:
        entries[key] = new
    return new


STEPS = st.tuples(st.sampled_from([*CALLS]), st.sampled_from(["a", "b", 1, 1.0]), st.none() | st.integers(0, 3))


@given(st.lists(STEPS, max_size=20))
@settings(max_examples=60, deadline=None)
def test_any_calls_do_what_java_says(steps):
    """Results and entries are those of the definition."""
    stored, entries = Making().map(), {}
    for call, key, value in steps:
        assert CALLS[call](stored, key, lambda *given, value=value: value) == plain(entries, call, key, value)

    assert stored == entries
