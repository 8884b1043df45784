"""Failures of the user's functions, and of their keys, name the item, wherever they are called."""

from __future__ import annotations

import traceback

import pytest

from collectors import AggregateOperation, counting
from dstream.errors import UnstableKeyError
from dstream.failures import MISSING, is_ours, item_of
from dstream.failures.attribution import given_to
from dstream.operators.joins.intervals import IntervalJoin
from dstream.operators.state.keyed_operators import KeyedDistinct, RollingAggregate, StatefulMapping
from tests.operators.by_hand import ByHand

ITEMS = [[(1, 2), (2, 0), (3, 4)]]


def inverse(item):
    """Fail on 0."""
    return 1 / item


def inverse_with_state(state, item):
    """Fail on 0."""
    return 1 / item


def inverses(state, item):
    """Fail on 0, not before what it gives is asked for."""
    yield 1 / item


def ends(state, item):
    """Raise what an iterator raises at its end, on 0."""
    return item or next(iter(()))


def nothing_there(*given):
    """Fail on whatever is given."""
    return [][1]


def failed(operator, items=ITEMS, to=None):
    """Return the failure of an operator, the item on which it failed, and the words that tell where else."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each test says which one
        ByHand(operator).epoch(*[items] * operator.inputs, to=to)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    item = item_of(caught.value, next(filter(is_ours, frames)), MISSING)
    return caught.value, item, given_to(caught.value)


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        (RollingAggregate(inverse, counting()), ZeroDivisionError),
        (RollingAggregate(None, counting().with_accumulate(inverse_with_state)), ZeroDivisionError),
        (RollingAggregate(str, counting(), lambda key, result: 1 // int(key)), ZeroDivisionError),
        (StatefulMapping(inverse, list, zip, "map"), ZeroDivisionError),
        (StatefulMapping(None, list, inverse_with_state, "map"), ZeroDivisionError),
        (StatefulMapping(None, list, inverse_with_state, "filter"), ZeroDivisionError),
        (StatefulMapping(None, list, inverses, "flat_map"), ZeroDivisionError),
        (StatefulMapping(None, list, ends, "map"), RuntimeError),
        (StatefulMapping(None, list, lambda state, item: [] if item else 5, "flat_map"), TypeError),
        (StatefulMapping(lambda item: item or [], list, ends, "map"), UnstableKeyError),
        (KeyedDistinct(lambda item: item or object()), UnstableKeyError),
        (IntervalJoin(inverse, abs, 1, 1), ZeroDivisionError),
        (IntervalJoin(abs, lambda item: item or next(iter(())), 1, 1), RuntimeError),
    ],
)
def test_a_failure_names_its_item(operator, kind):
    """Also where a function gives its results one after another, or raises StopIteration."""
    error, item, _ = failed(operator)

    assert (type(error), item) == (kind, 0)


@pytest.mark.parametrize(
    "operator",
    [
        StatefulMapping(abs, nothing_there, inverse_with_state, "map"),
        RollingAggregate(abs, AggregateOperation(nothing_there, max)),
        RollingAggregate(abs, AggregateOperation(list, list.append, finish=nothing_there)),
    ],
)
def test_a_failure_without_the_item_names_it_all_the_same(operator):
    """The state of its key was to be made for it, or its result."""
    assert failed(operator)[1] == 2


@pytest.mark.parametrize(
    "farewell",
    [
        lambda state, key, watermark: 1 / 0,
        lambda state, key, watermark: next(iter(())),
        lambda state, key, watermark: (1 / 0 for _ in "a"),
        lambda state, key, watermark: 5,
    ],
)
@pytest.mark.parametrize("items", [[[(1, 7)]], [[(1, 7), (2, 3), (99, 7)]]])
def test_a_farewell_that_fails_names_the_key(farewell, items):
    """And no item: none of them is to blame, also where one lets the state go."""
    operator = StatefulMapping(abs, list, lambda state, key, item: [], "flat_map", ttl=5, on_evict=farewell)

    assert failed(operator, items, to=50)[1:] == (MISSING, "where the state of the key 7 was evicted")


@pytest.mark.parametrize(
    "operator",
    [
        StatefulMapping(abs, list, zip, "map", ttl=5),
        KeyedDistinct(abs, within=5),
        IntervalJoin(abs, abs, 1, 1),
    ],
)
def test_an_item_without_a_timestamp_is_named_where_time_counts(operator):
    """The message says what to do."""
    error, item, _ = failed(operator, [[(1, 2), (None, 3)]])

    assert (type(error), item) == (ValueError, 3)
    assert str(error) == "an item without a timestamp is never over; add_timestamps(...) gives each item one"
