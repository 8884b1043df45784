"""Keys of subclasses, enums and numpy name the entries of the plain keys that they equal."""

from __future__ import annotations

import numpy
import pytest

from tests.keys.specimens import KEYS, NUMBERS, Mood, Text

TEXTS = [Text("n"), numpy.str_("n"), Mood.GLAD]


def _old_values(numbers):
    """Return what a dict of the keys with these numbers gives when each is put in turn."""
    last: dict[int, int] = {}
    found = []
    for position, number in enumerate(numbers):
        found.append(last.get(number))
        last[number] = position
    return found


@pytest.mark.parametrize("backwards", [False, True], ids=["plain first", "plain last"])
def test_keys_of_every_class_are_those_of_a_dict(storage, use, backwards):
    """Every put replaces the value of the last equal key and of no other one, whichever of them came first."""
    keys, numbers = (KEYS[::-1], NUMBERS[::-1]) if backwards else (KEYS, NUMBERS)
    store = use.map(storage)
    last = {number: position for position, number in enumerate(numbers)}

    old = [store.update([key], lambda _, p=position: [p])[0] for position, key in enumerate(keys)]

    assert old == _old_values(numbers)
    assert store.get_many(keys) == [last[number] for number in numbers]
    assert (store.size(), len(use.content(store))) == (len(last), len(last))


def test_keys_of_every_class_are_found_by_a_new_handle(backend, storage, use):
    """What was put under one class is found under the others by who has nothing in memory."""
    store = use.map(storage)
    for key, number in zip(KEYS, NUMBERS, strict=True):
        store.update([key], lambda _, n=number: [n])

    fresh = use.map(backend.open()) if backend.shared else store
    assert fresh.get_many(KEYS) == NUMBERS


@pytest.mark.parametrize("key", TEXTS, ids=lambda key: type(key).__name__)
def test_keys_of_a_subclass_count_up_as_plain_ones(storage, use, key):
    """A loop of read and write under a subclass of str leaves one entry, and the journal says added once."""
    store = use.map(storage, journal=True)
    for _ in range(3):
        (old,) = store.get_many(["n"])
        store.update([key], lambda _, new=(old or 0) + 1: [new])

    assert (store.get_many(["n", key]), store.size()) == ([3, 3], 1)
    assert [event.kind for event in store.journal(0)] == ["ADDED", "UPDATED", "UPDATED"]


@pytest.mark.parametrize("key", TEXTS, ids=lambda key: type(key).__name__)
def test_keys_of_a_subclass_are_removed_as_plain_ones(storage, use, key):
    """A job that writes a plain text and a removal under a subclass meet."""
    store = use.map(storage)
    use.run(store, "job", {"n": 1, "m": 2})
    store.update([key], lambda _: [None])

    assert use.content(store) == {"m": 2}
