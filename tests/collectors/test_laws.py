"""The laws of collectors, over every factory; a factory without a case fails the first test."""

from __future__ import annotations

import functools
import pickle
from dataclasses import replace
from itertools import chain
from typing import Any

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectors as c
from dstream.spi import Collector
from dstream.testing import check_collector
from tests.collectors.cases_of_laws import CASES, EVERY, KEYED, Case

every_case = pytest.mark.parametrize("case", EVERY)
quick = settings(max_examples=20, deadline=None)
with_each_library = settings(quick, max_examples=5)
with_the_kit = settings(quick, max_examples=5)  # Each of them is what it draws itself, in some twenty ways.


def shape(result: Any) -> Any:
    """Return what two equal results share: the order of keys counts, that of a set does not, and NaN equals NaN."""
    if isinstance(result, set | frozenset):
        return sorted(map(repr, result))
    if isinstance(result, dict):
        return [(repr(key), shape(value)) for key, value in result.items()]
    return repr(result)


def looped(collector: Collector[Any, Any, Any], items: list[Any], container: Any = None) -> Any:
    """Return the container of `items`, filled one by one, or one that held more before."""
    container = collector.supplier() if container is None else container
    return replace(collector, accumulate_all=None).accumulated(container, items)


def by_parts(collector: Collector[Any, Any, Any], parts: list[list[Any]]) -> list[Any]:
    """Return the container of each part."""
    return [collector.accumulated(collector.supplier(), part) for part in parts]


def parts_of(case: Case) -> st.SearchStrategy[list[list[Any]]]:
    """Draw a few parts, some of them empty."""
    return st.lists(st.lists(case.items, max_size=12), max_size=5)


def test_every_factory_has_a_case():
    """A factory that is made public without a case here is an error."""
    assert set(CASES) == set(c.__all__)


@every_case
@quick
@given(data=st.data())
def test_any_split_gives_the_same(case, data):
    """Parts of any number and size, combined in order from the left or from the right, equal one part."""
    parts = data.draw(parts_of(case))
    collector = case.collector
    whole = shape(collector.collect(list(chain(*parts))))

    left = functools.reduce(collector.combined, by_parts(collector, parts), collector.supplier())
    right = collector.supplier()
    for container in reversed(by_parts(collector, parts)):
        right = collector.combined(container, right)

    assert shape(collector.finisher(left)) == whole
    assert shape(collector.finisher(right)) == whole


@every_case
def test_many_items_in_three_parts_give_the_same(case):
    """Batches do not show in the result: thousands of items, whole, looped over, and in three parts."""
    collector, many = case.collector, case.many
    whole = shape(collector.collect(iter(many)))
    parts = by_parts(collector, [many[:100], many[100:5000], many[5000:]])

    assert shape(collector.finisher(looped(collector, many))) == whole
    assert shape(collector.finisher(functools.reduce(collector.combined, parts))) == whole


@every_case
@quick
@given(data=st.data())
def test_accumulate_all_is_a_loop_of_the_accumulator(case, data):
    """Items taken in one by one, and then in bulk, give what they give in bulk."""
    first, second = data.draw(st.tuples(st.lists(case.items), st.lists(case.items)))
    collector = case.collector
    mixed = collector.accumulated(looped(collector, first), second)

    assert shape(collector.finisher(looped(collector, first + second))) == shape(collector.collect(first + second))
    assert shape(collector.finisher(mixed)) == shape(collector.collect(first + second))


@every_case
@quick
@given(data=st.data())
def test_a_container_is_nobody_elses(case, data):
    """The supplier gives a fresh container, and filling it changes no other and no item."""
    mine, theirs = data.draw(st.tuples(st.lists(case.items), st.lists(case.items)))
    collector = case.collector
    nothing, before = shape(collector.collect([])), repr((mine, theirs))
    container = collector.accumulated(collector.supplier(), mine)

    by_parts(collector, [theirs])
    looped(collector, theirs)

    assert shape(collector.finisher(container)) == shape(collector.collect(mine))
    assert shape(collector.finisher(collector.supplier())) == nothing
    assert repr((mine, theirs)) == before


@every_case
@pytest.mark.parametrize("library", [pickle, cloudpickle])
@with_each_library
@given(data=st.data())
def test_pickling_changes_nothing(case, library, data):
    """A collector and its containers go through pickle, before and after they are combined, and take more items.

    Not more NaN: one that went through pickle is another object, which a dict does not find again. Engines combine
    containers that went through pickle, which makes all NaN one, and put no items into them.
    """
    parts = data.draw(parts_of(case))
    more = data.draw(st.lists(case.items.filter(lambda item: "nan" not in repr(item).lower()), max_size=12))
    whole = shape(case.collector.collect(list(chain(*parts, more))))
    collector = library.loads(library.dumps(case.collector))

    containers = [pickle.loads(library.dumps(container)) for container in by_parts(case.collector, parts)]
    combined = functools.reduce(collector.combined, containers, collector.supplier())
    one_by_one = looped(collector, more[:3], pickle.loads(library.dumps(combined)))
    sent = collector.accumulated(pickle.loads(library.dumps(one_by_one)), more[3:])

    assert shape(collector.finisher(pickle.loads(library.dumps(sent)))) == whole


@every_case
@with_the_kit
@given(data=st.data())
def test_the_kit_for_users_finds_nothing(case, data):
    """`check_collector` tries the laws in its own way and has no false alarm."""
    check_collector(case.collector, data.draw(st.lists(case.items, max_size=5)), by=case.by)


def groups_of_items(collector: Collector[Any, Any, Any], part: list[Any]) -> dict[Any, Any]:
    """Fill a container of each key with the keyed view alone."""
    members: dict[Any, list[Any]] = {}
    for item in part:
        members.setdefault(collector.keyed.classifier(item), []).append(item)
    downstream = collector.keyed.downstream
    return {key: downstream.accumulated(downstream.supplier(), items) for key, items in members.items()}


def groups_of_container(collector: Collector[Any, Any, Any], part: list[Any]) -> dict[Any, Any]:
    """Take the container of the whole for what `Keyed` promises: a container of each key."""
    return dict(collector.accumulated(collector.supplier(), part))


@pytest.mark.parametrize("case", KEYED)
@pytest.mark.parametrize("groups_of", [groups_of_items, groups_of_container])
@quick
@given(data=st.data())
def test_the_keyed_view_gives_the_same(case, groups_of, data):
    """Partial containers of each key, combined key by key and assembled, equal collecting at once."""
    parts = data.draw(parts_of(case))
    keyed = case.collector.keyed
    groups: dict[Any, Any] = {}
    for part in parts:
        for key, container in groups_of(case.collector, part).items():
            sent = pickle.loads(pickle.dumps(container))
            groups[key] = keyed.downstream.combined(groups[key], sent) if key in groups else sent

    pairs = [(key, keyed.downstream.finisher(container)) for key, container in groups.items()]
    assert shape(keyed.assemble(iter(pairs))) == shape(case.collector.collect(list(chain(*parts))))


def test_what_is_keyed():
    """The collectors with one entry per key are seen group by group, also behind a finishing function."""
    names = {param.id.rsplit("-", 1)[0] for param in KEYED}

    assert names == {
        "collecting_and_then",
        "frequencies",
        "grouping_by",
        "grouping_by_concurrent",
        "mode",
        "to_concurrent_map",
        "to_map",
        "to_unmodifiable_map",
    }


def test_what_can_be_deducted():
    """Of the cases above; `test_deducting` has the laws, and what is made of other parts."""
    names = {name for name, cases in CASES.items() if any(case.collector.deduct is not None for case in cases)}

    assert names == {
        "all_of",
        "averaging",
        "averaging_double",
        "averaging_int",
        "averaging_long",
        "correlation",
        "counting",
        "covariance",
        "frequencies",
        "linear_trend",
        "mapping",
        "stddev",
        "summing",
        "summing_double",
        "summing_int",
        "summing_long",
        "teeing",
        "to_bags",
        "variance",
    }
