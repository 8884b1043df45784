"""`add_index`: `select` finds by an index what it finds without one, and reads no other entries."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation

import pytest

import dstream as ds
from dstream import Entry, where
from dstream.collections.field_index import FieldIndex
from dstream.errors import CollectionDestroyedError, IllegalStateError, UnsupportedError
from tests.collections.stored import Spy

PEOPLE = {n: {"born": 1800 + n, "country": ["NO", "UK", None][n % 3], "name": f"p{n}"} for n in range(30)}


class Watched(Spy):
    """Counts also the keys that are looked up."""

    asked = 0

    def get_many(self, keys):
        self.asked += len(keys)
        return self.store.get_many(keys)


@pytest.fixture
def people(make):
    """A map with two indexes, over a store that counts what is read."""
    made = make.map(PEOPLE, "people", journal=True)
    made._opened = Watched(made.store)
    made.add_index("country")
    made.add_index("born", "sorted")
    made._opened.given = 0
    return made


def names(people, condition):
    """Return the numbers of the people who satisfy a condition, and how many were read, by an index or all."""
    people._opened.asked = people._opened.given = 0
    found = sorted(people.select(condition, lambda entry: entry.key))
    return found, people._opened.asked, people._opened.given


LOOK_UPS = {
    "equal": (where("country") == "NO", [*range(0, 30, 3)], 10),
    "none": (where("country").is_none(), [*range(2, 30, 3)], 10),
    "several": (where("born").is_in([1800, 1829, 5]), [0, 29], 2),
    "less": (where("born") < 1802, [0, 1], 2),
    "between": (where("born").between(1810, 1812), [10, 11, 12], 3),
    "and": ((where("country") == "UK") & (where("born") > 1827), [28], 2),
    "and anything": ((where("born") >= 1829) & ~(where("name") == "x"), [29], 1),
    "or": ((where("born") > 1828) | (where("born") < 1801), [0, 29], 2),
    "nothing": (where("country") == "SE", [], 0),
}


@pytest.mark.parametrize("label", LOOK_UPS)
def test_a_look_up_reads_the_entries_that_it_finds(people, label):
    """And none of the others."""
    condition, expected, asked = LOOK_UPS[label]

    assert names(people, condition) == (expected, asked, 0)


SCANS = [where("name") == "p3", (where("born") == 1803) | (where("name") == "p3"), ~(where("born") != 1803)]


@pytest.mark.parametrize("condition", SCANS, ids=repr)
def test_what_no_index_tells_is_read(people, condition):
    """With the same result; a function is never looked up."""
    assert names(people, condition) == ([3], 0, 30)
    assert names(people, lambda entry: entry.value["born"] == 1803) == ([3], 0, 30)


def test_an_index_follows_changes_of_other_handles(people, make):
    """What is written, changed, replaced and removed is found or not by the next look-up."""
    other = make.map(name="people")
    other.update({0: {"born": 1}, 100: {"born": 2}})
    del other[1]
    other.replace_all(lambda key, person: {**person, "born": person["born"] + 1000})

    assert names(people, where("born") < 1810)[0] == [0, 100]
    assert names(people, where("born") == 2801)[0] == []
    assert people.select(where("born") == 2829) == [{**PEOPLE[29], "born": 2829}]


def test_a_projection_works_on_what_is_found(people):
    """Where it gives None, nothing comes; without one values come."""
    made = people.select(where("country") == "NO", lambda entry: entry.key or None)

    assert (len(made), people.select(where("born") == 1804)) == (9, [PEOPLE[4]])


def test_a_projection_that_fails_on_what_is_found_says_where(people):
    """Which function of which call, and on which key."""
    with pytest.raises(ZeroDivisionError) as caught:
        people.select(where("born") == 1804, lambda entry: 1 // 0)
    assert "in select() of map 'people', lambda, on the key 4" in caught.value.__notes__[0]


@pytest.mark.parametrize("looks", [True, False])
def test_an_index_does_not_grow_with_changes(looks):
    """A field that goes back and forth has two values, however often; whether a range is asked for or not."""
    index = FieldIndex("this", "sorted")
    for n in range(5000):
        index.remove("key")
        index.add("key", Entry("key", n % 2))
        if looks:
            index.between([where("this") < 5])

    assert index.between([where("this") >= 1]) == {"key"}
    assert len(index._order) + len(index._new) < 100


def test_a_value_that_fails_every_comparison_is_asked_by_a_range(make):
    """A NaN of a Decimal, as without an index; one of a float is neither less nor greater."""
    amounts = make.map({0: Decimal("NaN"), 1: 1, 2: math.nan}, journal=True)
    amounts.add_index("this", "sorted")
    with pytest.raises(InvalidOperation):
        amounts.select(where("this") < 2)
    del amounts[0]

    assert amounts.select(where("this") < 2) == [1]
    assert amounts.select((where("this") > 2) & (where("this") < Decimal("sNaN"))) == []


def test_a_field_of_nans_alone_is_compared_as_without_an_index(make):
    """With a number, to no avail; with a text, which is an error."""
    amounts = make.map({0: math.nan, 1: math.nan}, journal=True)
    amounts.add_index("this", "sorted")

    assert amounts.select(where("this") < 2) == []
    with pytest.raises(TypeError, match="not supported between"):
        amounts.select(where("this") < "a")


def test_two_handles_have_indexes_of_their_own(people, make):
    """Another handle to the map reads everything, and finds the same."""
    other = make.map(name="people")

    assert other.select(where("born") == 1805) == people.select(where("born") == 1805) == [PEOPLE[5]]
    assert other._indexes is None


def test_an_index_whose_making_failed_is_made_anew(people, monkeypatch):
    """An error in the middle, such as an interrupt, leaves no half of an index behind."""

    def broken(since):
        yield from people._opened.store.journal(since)
        raise KeyboardInterrupt

    people[30] = {"born": 1830, "country": "NO"}
    monkeypatch.setattr(people._opened, "journal", broken, raising=False)
    with pytest.raises(KeyboardInterrupt):
        people.select(where("born") > 1828)
    monkeypatch.undo()
    del people[29]

    assert names(people, where("born") > 1828)[0] == [30]


def test_a_look_up_ends_with_the_context():
    """As every use of a collection; a destroyed map says so."""
    with ds.connect(engine="local", storage="memory:") as ctx:
        people, others = (ctx.get_map(name, journal=True) for name in ("people", "others"))
        for each in (people, others):
            each.add_index("this")
        others.destroy()
        with pytest.raises(CollectionDestroyedError):
            others.select(where("this") == 1)
    with pytest.raises(IllegalStateError, match="closed"):
        people.select(where("this") == 1)


def test_an_index_is_refused_without_a_journal(make):
    """The message says how to get one; a cache has none."""
    with pytest.raises(IllegalStateError, match=re.escape("get_map('ages', journal=True) makes one that does")):
        make.map().add_index("born")
    with pytest.raises(UnsupportedError, match="cache 'sessions' has no indexes; maps have"):
        make.cache(ttl=5, journal=True).add_index("born")


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ((5,), TypeError, "name of a field"),
        (("a..b",), ValueError, "name of a field"),
        (("a", "tree"), ValueError, "hash"),
    ],
)
def test_wrong_arguments_of_an_index_are_refused(make, arguments, kind, words):
    """At the call."""
    with pytest.raises(kind, match=words):
        make.map(journal=True).add_index(*arguments)
