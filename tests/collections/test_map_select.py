"""`select`, and conditions of `where` wherever a map, a source or a stream takes a predicate."""

from __future__ import annotations

import re

import pytest

from dstream import where
from sources import imap

PEOPLE = {"Ada": {"born": 1815, "country": "UK"}, "Niels": {"born": 1802, "country": "NO"}, "X": {"born": None}}


def test_select_gives_the_values_that_satisfy_a_condition(make):
    """A function of an entry does as well."""
    people = make.map(PEOPLE)

    assert people.select(where("born") < 1810) == people.select(lambda entry: entry.key == "Niels") == [PEOPLE["Niels"]]
    assert people.select(where("born") > 1900) == []


def test_select_projects(make):
    """A projection gets the entry; where it gives None, nothing comes."""
    people = make.map(PEOPLE)
    named = people.select(where("born") > 1800, lambda entry: entry.key)
    countries = people.select(where("born").is_none() | (where("born") > 0), lambda entry: entry.value.get("country"))

    assert (sorted(named), sorted(countries)) == (["Ada", "Niels"], ["NO", "UK"])


def test_select_of_a_cache_leaves_out_what_expired(make):
    """Conditions see what users put there."""
    sessions = make.cache({"Ada": 1}, ttl=60)
    seen = sessions.select(where("this") == 1)
    sessions.store._clock.now += 60

    assert (seen, sessions.select(where("this") == 1)) == ([1], [])


def test_conditions_stand_wherever_predicates_do(make, local_context):
    """In streams of maps, in functions that go to entries, and behind a stream of any items."""
    people = make.map(PEOPLE)
    is_old = where("born") < 1810

    assert people.stream(is_old, lambda entry: entry.key).to_list() == ["Niels"]
    assert people.execute_on_entries(lambda entry: 1, is_old) == {"Niels": 1}
    assert local_context.stream(PEOPLE.values()).filter(is_old).to_list() == [PEOPLE["Niels"]]


def test_a_source_takes_a_condition(engine):
    """On the workers too; the source shows it as it was written."""
    source = imap("conditions-people", where("country") == "NO", lambda entry: entry.key)
    engine.context.get_map("conditions-people").update(PEOPLE)

    assert repr(source) == "imap('conditions-people', predicate=where('country') == 'NO', projection=lambda)"
    assert engine.context.read(source).to_list() == ["Niels"]
    assert engine.context.get_map("conditions-people").select(where("born") > 1810) == [PEOPLE["Ada"]]


def test_select_refuses_what_is_no_predicate(make):
    """At the call; a field alone is none."""
    people = make.map(PEOPLE)
    with pytest.raises(TypeError, match=re.escape("not Field; a condition compares the field, as in where('a') == Tr")):
        people.select(where("a"))
    with pytest.raises(TypeError, match="projection must be a function, not int"):
        people.select(where("a") == 1, 5)


def test_a_condition_that_fails_names_the_step_and_the_entry(make):
    """Whatever the engine."""
    ages = make.map({"Ada": "36"})
    with pytest.raises(TypeError, match=r"where\('this'\) > 5, on the value '36'") as raised:
        ages.select(where("this") > 5)

    assert "get_map('ages').select(predicate=where('this') > 5" in "".join(raised.value.__notes__)
