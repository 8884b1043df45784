"""Indexes find what reading all entries finds, in every storage, whoever writes and however."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import operator
import random
from fractions import Fraction

import pytest

from dstream import Entry, where
from dstream.collections.indexes import Indexes
from dstream.spi.store import Revision


class Color(enum.Enum):
    RED = 1
    BLUE = 2


DAY = datetime.date(2026, 11, 24)
HALF, TWO = Fraction(1, 2), Fraction(2)
FIELDS = [0, 1, 2, 3, 2.0, True, -1.5, None, "a", "b", math.nan, [1], DAY, Color.RED, decimal.Decimal("NaN"), HALF, TWO]
NUMBERS = [0, 1, 2, 3, 2.5, -1, True, None]


def conditions(random_, fields):
    """Return some conditions on the field `n`, of one part and of several."""
    known = [value for value in fields if value is not None]
    leaves = [
        where("n") == random_.choice(known),
        where("n").is_in(random_.choices(known, k=2)),
        where("n").is_none(),
        where("n") < 2,
        where("n").between(1, 2),
        (where("n") > 0) & (where("n") <= 2.5),
        where("n") != 1,
        where("m") == 1,
        where("__key") == 2,
    ]
    pairs = [random_.sample(leaves, 2) for _ in range(4)]
    return [*leaves, *[random_.choice([operator.and_, operator.or_])(*pair) for pair in pairs], ~leaves[0]]


def outcome(condition, entries):
    """Return which entries satisfy a condition, or that it fails."""
    try:
        return sorted(repr(entry) for entry in entries if condition(entry))
    except (TypeError, ArithmeticError):
        return "it fails"


def change(random_, store, use, step, fields):
    """Change the map in one of all ways there are."""
    keys = random_.sample([*range(12), "k", 1.5, (1, math.nan)], 4)
    new = {key: {"n": random_.choice(fields), "m": 1} if random_.random() < 0.9 else {} for key in keys}
    way = random_.random()
    if way < 0.5:
        store.update(keys, lambda old: [None if random_.random() < 0.2 else value for value in new.values()])
    elif way < 0.7:
        use.run(store, f"job {step}", new, replace=random_.random() < 0.3)
    elif way < 0.8:
        use.run(store, f"job {step}", new, merge=lambda old, value: {**old, **value})
    elif way < 0.9:
        use.run(store, f"job {step}", new, merge=Revision(lambda key, value: {**value, "m": 2}))
    elif way < 0.93:
        store.clear()
    else:
        store.compact()


@pytest.fixture
def second(backend, storage):
    """Another handle to the storage, where there can be one."""
    opened = backend.open() if backend.shared else storage
    yield opened
    opened.close()


@pytest.mark.parametrize(("kind", "fields"), [("hash", FIELDS), ("sorted", FIELDS), ("sorted", NUMBERS)])
def test_indexes_find_what_reading_everything_finds(storage, second, use, kind, fields):
    """After any changes, also by another handle. Entries that an index leaves out are not asked and cannot fail."""
    store, other = use.map(storage, journal=True), use.map(second)
    indexes, random_, used = Indexes(store), random.Random(len(fields) + len(kind)), 0
    for path in ("n", "m", "__key"):
        indexes.add(path, kind)
    for step in range(25):
        change(random_, random_.choice([store, other]), use, step, fields)
        entries = [Entry(*pair) for pair in use.content(store).items()]
        for condition in conditions(random_, fields):
            found = indexes.look_up(condition)
            expected = outcome(condition, entries)
            if found is not None and expected != "it fails":
                used += 1
                assert outcome(condition, found) == expected, condition
    assert used > 100


def test_an_index_gives_keys_as_the_map_does(storage, use):
    """In the form of the key type; and each NaN is one key."""
    store = use.map(storage, key_type=float, journal=True)
    indexes = Indexes(store)
    indexes.add("this", "hash")
    for value in (1, 2):
        use.put(store, {1: value, math.nan: value})
    found = indexes.look_up(where("this") == 2)

    assert sorted(repr(entry) for entry in found) == ["Entry(key=1.0, value=2)", "Entry(key=nan, value=2)"]
    assert indexes.look_up(where("this") == 1) == []


def test_an_index_is_made_anew_when_events_are_lost(storage, use):
    """A vacuum has removed what a handle had not looked at for long."""
    store, other = (use.map(storage, journal=True) for _ in range(2))
    indexes = Indexes(store)
    indexes.add("this", "hash")
    for n in range(5):
        use.put(other, {n: n, "k": n})
    other.compact()
    other.vacuum(0)

    assert indexes.look_up(where("this") == 4) in ([Entry(4, 4), Entry("k", 4)], [Entry("k", 4), Entry(4, 4)])


def test_a_look_up_is_of_one_moment(storage, second, use):
    """While a writer moves a mark between two entries, always in one change, exactly one of them is found."""
    store = use.map(storage, journal=True)
    use.put(store, {"left": "here", "right": "there"})
    indexes = Indexes(store)
    indexes.add("this", "hash")
    found = []

    def move():
        other = use.map(second)
        for _ in range(60):
            other.update(["left", "right"], lambda old: old[::-1])

    def look():
        for _ in range(60):
            entries = indexes.look_up(where("this") == "here")
            found.append(1 if entries is None else len([entry for entry in entries if entry.value == "here"]))

    use.together(move, look)
    assert set(found) == {1}
