"""Jet's names on a map, and where they differ from a dict's."""

from __future__ import annotations

import math

import pytest

from dstream import Entry
from dstream.errors import IllegalStateError, NullElementError


def test_put_returns_the_old_value(make):
    """None says that there was none."""
    ages = make.map()

    assert (ages.put("Ada", 36), ages.put("Ada", 37), ages.copy()) == (None, 36, {"Ada": 37})


def test_put_if_absent_leaves_what_is_there(make):
    """It returns what is there, or None if it put the value."""
    ages = make.map({"Ada": 36})

    assert (ages.put_if_absent("Ada", 1), ages.put_if_absent("Alan", 41)) == (36, None)
    assert ages == {"Ada": 36, "Alan": 41}


def test_replace_with_two_arguments_needs_an_entry(make):
    """It returns the old value, or None and then sets nothing."""
    ages = make.map({"Ada": 36})

    assert (ages.replace("Ada", 37), ages.replace("Alan", 41), ages.copy()) == (36, None, {"Ada": 37})


def test_replace_with_three_arguments_needs_the_old_value(make):
    """It says whether it replaced the value."""
    ages = make.map({"Ada": 36})

    assert [ages.replace("Ada", 1, 2), ages.replace("Alan", 1, 2), ages.replace("Ada", 36, 37)] == [False, False, True]
    assert ages == {"Ada": 37}


def test_remove_returns_the_old_value(make):
    """Removing what is not there is no error; None says so."""
    ages = make.map({"Ada": 36})

    assert (ages.remove("Ada"), ages.remove("Ada"), ages.is_empty()) == (36, None, True)


def test_remove_with_a_value_needs_that_value(make):
    """It says whether it removed the entry."""
    ages = make.map({"Ada": 36})

    assert [ages.remove("Ada", 1), ages.remove("Alan", 1), ages.remove("Ada", 36)] == [False, False, True]
    assert ages.size() == 0


@pytest.mark.parametrize("call", ["replace", "remove"])
def test_a_wrong_number_of_arguments_is_refused(make, call):
    """The message says what the call takes."""
    with pytest.raises(TypeError, match=rf"{call}\(\) takes \(key"):
        getattr(make.map(), call)("Ada", 1, 2, 3)


def test_nan_is_one_key_and_equals_itself_as_a_value(make):
    """Identity cannot tell NaN from NaN in a storage."""
    numbers = make.map({math.nan: 1.0})
    numbers[float("nan")] = math.nan

    assert numbers.size() == 1
    assert (float("nan") in numbers.values(), 1.0 in numbers.values()) == (True, False)
    assert (numbers.remove(math.nan, 0.0), numbers.remove(-math.nan, math.nan)) == (False, True)


def test_equal_keys_of_one_update_are_one_entry(make):
    """The last one wins, as in a dict."""
    numbers = make.map()
    numbers.put_all([(1, "a"), (1.0, "b"), (math.nan, "c"), (float("nan"), "d")])

    assert (numbers[1], numbers[True], numbers.size(), numbers[math.nan]) == ("b", "b", 2, "d")


def test_get_all_gives_the_entries_that_are_there(make):
    """Keys without an entry are left out."""
    ages = make.map({"Ada": 36, "Alan": 41})

    assert ages.get_all(iter(["Alan", "Grace", "Alan"])) == {"Alan": 41}
    assert ages.get_all([]) == {}
    for keys in "Ada", b"Ada", 3, None:
        with pytest.raises(TypeError, match=r"get_all\(\) takes several keys, such as a list of them, not "):
            ages.get_all(keys)


def test_put_all_takes_a_mapping_pairs_and_another_map(make):
    """All of them are what `update` takes too."""
    ages = make.map()
    for entries in ({"a": 1}, [("b", 2)], iter([Entry("c", 3)]), make.map({"d": 4}, "others"), {}):
        ages.put_all(entries)

    assert ages == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_the_or_operators(make):
    """`|` gives a plain dict, `|=` changes the map."""
    ages = make.map({"a": 1, "b": 2})
    both, turned = ages | {"b": 3}, {"b": 3} | ages
    ages |= [("c", 4)]

    assert (both, turned, ages.copy()) == ({"a": 1, "b": 3}, {"b": 2, "a": 1}, {"a": 1, "b": 2, "c": 4})
    assert ages | ages == ages
    with pytest.raises(TypeError):
        ages | [("c", 4)]


@pytest.mark.parametrize(
    ("other", "is_equal"),
    [
        ({"a": 1, "b": 2}, True),
        ({"b": 2, "a": 1.0}, True),
        ({"a": 1}, False),
        ({"a": 1, "b": 3}, False),
        ({"a": 1, "c": 2}, False),
        ({"a": 1, None: 2}, False),
        ({"a": 1, "b": None}, False),
        ({"a": 1, ("b", object()): 2}, False),
        ([("a", 1), ("b", 2)], False),
        (None, False),
    ],
)
def test_equality_with_any_mapping(make, other, is_equal):
    """It compares entries, and is never an error."""
    ages = make.map({"a": 1, "b": 2})

    assert (ages == other, other == ages, ages != other) == (is_equal, is_equal, not is_equal)


def test_a_dict_with_two_nan_equals_no_map(make):
    """In a map they would be one key."""
    numbers = make.map({math.nan: 1, "a": 2})

    assert numbers == {float("nan"): 1, "a": 2}
    assert numbers != {float("nan"): 1, math.nan: 1, "a": 2}


def test_equality_of_two_maps(make):
    """Two maps are equal if their entries are, whatever their names."""
    ages = make.map({"a": 1, "b": 2})

    assert ages == make.map({"b": 2, "a": 1}, "same")
    assert ages != make.map({"a": 1, "b": 3}, "other value")
    assert ages != make.map({"a": 1, "c": 2}, "other key")
    assert ages != make.map({"a": 1}, "smaller")


def test_views_are_live(make):
    """They show what is written after they were made."""
    ages = make.map({"a": 1})
    keys, items, values = ages.key_set(), ages.entry_set(), ages.values()
    ages["b"] = 2

    assert (sorted(keys), sorted(items), sorted(values)) == (["a", "b"], [("a", 1), ("b", 2)], [1, 2])
    assert (len(keys), len(items), len(values)) == (2, 2, 2)


def test_views_are_sets_as_those_of_a_dict(make):
    """`in` and the set operations mean the same."""
    stored, plain = make.map({"a": 1, "b": 2}), {"a": 1, "b": 2}
    for ages in (stored, plain):
        assert ages.keys() & {"a", "c"} == {"a"}
        assert ages.keys() | ["c"] == {"a", "b", "c"}
        assert ages.keys() == {"a", "b"}
        assert ages.items() - {("a", 1)} == {("b", 2)}
        assert [("a", 1) in ages.items(), ("a", 2) in ages.items(), ("c", 1) in ages.items()] == [True, False, False]
        assert ["a" in ages.items(), ("a", 1, 1) in ages.items()] == [False, False]
        assert [2 in ages.values(), 3 in ages.values(), "a" in ages.keys()] == [True, False, True]  # noqa: SIM118


def test_iterating_sees_the_state_at_its_start(make):
    """Also what is written between `iter` and the first `next`."""
    ages = make.map({"a": 1})
    iterators = [iter(ages), iter(ages.items()), iter(ages.values())]
    ages.update(a=2, b=3)

    assert list(map(list, iterators)) == [["a"], [("a", 1)], [1]]


def test_entries_are_named_tuples(make):
    """What a map hands out as an entry has a key and a value."""
    ages = make.map({"Ada": 36})
    (entry,) = ages.entry_set()

    assert (entry.key, entry.value, type(entry)) == ("Ada", 36, Entry)
    assert type(ages.popitem()) is Entry


def test_what_is_handed_out_is_a_copy(make):
    """Changing a value in place changes nothing in the map."""
    lists = make.map({"a": [1]})
    lists["a"].append(2)
    lists.setdefault("a", []).append(3)
    lists.execute_on_key("a", lambda entry: entry.value.append(4))

    assert lists == {"a": [1]}


NULLS = {
    "m[None] = 1": lambda m: m.__setitem__(None, 1),
    "m['a'] = None": lambda m: m.__setitem__("a", None),
    "put": lambda m: m.put("a", None),
    "put_all": lambda m: m.put_all({"a": 1, "b": None}),
    "update": lambda m: m.update({None: 1}),
    "put_if_absent": lambda m: m.put_if_absent("a", None),
    "setdefault": lambda m: m.setdefault("a"),
    "replace": lambda m: m.replace("a", None),
    "replace old": lambda m: m.replace("a", None, 1),
    "replace new": lambda m: m.replace("a", 1, None),
    "execute_on_key": lambda m: m.execute_on_key(None, lambda entry: 1),
}


@pytest.mark.parametrize("call", NULLS)
def test_none_is_refused_by_the_name_of_the_map(make, call):
    """Neither a key nor a value that is put may be None; nothing changes."""
    ages = make.map({"a": 1})
    with pytest.raises(NullElementError, match="map 'ages' cannot have None as a"):
        NULLS[call](ages)

    assert ages == {"a": 1}


def test_a_key_that_has_no_hash_is_a_type_error(make):
    """As in a dict, also where it is only looked for; a note names the map."""
    ages = make.map()
    for call in (lambda: [] in ages, lambda: ages.get({}), lambda: ages.update({1: 1, 2: 2} | {object(): 3})):
        with pytest.raises(TypeError, match="cannot be a key") as raised:
            call()
        assert raised.value.__notes__ == ["in map 'ages'"]


def test_a_map_has_no_hash(make):
    """As a dict, which changes."""
    with pytest.raises(TypeError, match="unhashable type: 'IStreamMap'"):
        hash(make.map())


def test_journal_gives_the_changes_since_an_offset(make):
    """Each with its old and its new value."""
    ages = make.map(journal=True)
    ages["Ada"] = 36
    ages["Ada"] = 37
    del ages["Ada"]
    first, *others = ages.journal()

    assert (first.kind, first.key, first.new_value) == ("ADDED", "Ada", 36)
    assert [(event.kind, event.old_value) for event in others] == [("UPDATED", 36), ("REMOVED", 37)]
    assert list(ages.journal(since=first.offset)) == others


def test_a_map_without_a_journal_says_how_to_get_one(make):
    """At the call, before anything is iterated."""
    with pytest.raises(IllegalStateError, match=r"get_map\('ages', journal=True\)"):
        make.map().journal()
    with pytest.raises(ValueError, match="since must not be negative: -1"):
        make.map(name="others", journal=True).journal(-1)


def test_options_and_types_are_those_of_the_store(make):
    """The first commit decides what was left open."""
    ages = make.map()
    before = (ages.key_type, ages.value_type)
    ages["Ada"] = 36

    assert (before, ages.key_type, ages.value_type, ages.name) == ((None, None), str, int, "ages")


def test_compact_and_vacuum(make):
    """They change nothing that can be seen."""
    ages = make.map({"a": 1})
    ages.compact()

    assert (ages.vacuum(older_than=0), ages.copy()) == (0, {"a": 1})
    words = "older_than must be a finite number of seconds, at least 0, not -1"
    with pytest.raises(ValueError, match=words):
        ages.vacuum(-1)
