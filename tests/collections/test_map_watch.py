"""`watch`: the changes of a map as a loop that waits for new ones."""

from __future__ import annotations

import itertools
import threading

import pytest

from dstream.errors import CollectionDestroyedError, IllegalStateError


def keys(events, n):
    """Return the keys of the next n events."""
    return [event.key for event in itertools.islice(events, n)]


def test_watch_gives_what_happens_after_the_call(make):
    """What was there before does not come; what comes before the first look does."""
    ages = make.map({"Ada": 36}, journal=True)
    changes = ages.watch()
    ages["Alan"] = 41
    del ages["Ada"]

    assert [tuple(event)[:4] for event in itertools.islice(changes, 2)] == [
        ("ADDED", "Alan", None, 41),
        ("REMOVED", "Ada", 36, None),
    ]


def test_watch_since_an_offset_goes_on_behind_it(make):
    """0 is the start; the offset of an event leads to the next one."""
    ages = make.map({"a": 1, "b": 2, "c": 3}, journal=True)
    first, second = itertools.islice(ages.watch(since=0), 2)

    assert (first.key, second.key, keys(ages.watch(since=second.offset), 1)) == ("a", "b", ["c"])


def test_watch_waits_for_changes_of_others(make):
    """A thread writes while the loop waits; nothing is lost or comes twice, and the order is kept."""
    numbers = make.map(journal=True)
    changes = numbers.watch(every=0.001)
    writer = threading.Thread(target=lambda: [numbers.put(n, n) for n in range(100)])
    writer.start()

    assert keys(changes, 100) == list(range(100))
    writer.join()


def test_watch_ends_after_a_time_without_changes(make):
    """With `timeout`; without one it would wait on."""
    ages = make.map({"Ada": 36}, journal=True)

    assert [event.key for event in ages.watch(0, every=0.001, timeout=0.002)] == ["Ada"]


@pytest.mark.parametrize("every", [60, float("inf")])
def test_watch_waits_no_longer_than_its_timeout(make, every):
    """However seldom it looks."""
    ages = make.map(journal=True)

    assert list(ages.watch(every=every, timeout=0.002)) == []


def test_watch_ends_with_its_map(make):
    """A map that is destroyed meanwhile is an error, no end."""
    ages = make.map(journal=True)
    changes = ages.watch(every=0.001)
    ages.destroy()

    with pytest.raises(CollectionDestroyedError):
        next(changes)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"since": "x"}, TypeError, "since must be an int"),
        ({"since": -1}, ValueError, "since must not be negative"),
        ({"since": 5}, ValueError, "since=5 is later than the last change of map 'ages'"),
        ({"every": 0}, ValueError, "every must be a number of seconds above 0"),
        ({"every": None}, TypeError, "every must be a number of seconds, not None"),
        ({"timeout": True}, TypeError, "timeout must be a number of seconds"),
    ],
)
def test_watch_refuses_wrong_arguments_at_the_call(make, arguments, kind, words):
    """Before anything is iterated."""
    with pytest.raises(kind, match=words):
        make.map(journal=True).watch(**arguments)


def test_watch_needs_a_journal(make):
    """A map without one, and a cache, say so at the call."""
    with pytest.raises(IllegalStateError, match=r"get_map\('ages', journal=True\)"):
        make.map().watch()
    with pytest.raises(IllegalStateError, match="cache 'sessions' keeps no journal"):
        make.cache(ttl=5).watch()
