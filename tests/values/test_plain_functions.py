"""Functions whose code alone tells what they give."""

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest

from dstream.base.functions import plain, refuse_awaitable
from dstream.failures.attribution import each
from dstream.values.entries import Pairs, PairsOfOneValue

OUTER = 3


def documented(item):
    """Give a pair."""
    return item, 1


def yielding(item):
    """Give an iterator."""
    yield item


def capturing():
    """Return a function that has a variable of ours."""
    inner = 2
    return lambda item: (item, inner)


async def awaited(item):
    """Give a coroutine."""
    return item


TOLD = [
    (lambda item: item, ("item", None)),
    (lambda item, /: item, ("item", None)),
    (lambda item: 1, ("constant", 1)),
    (lambda item: None, ("constant", None)),
    (lambda item: (1, "a"), ("constant", (1, "a"))),
    (lambda item: (item, 1), ("pair", 1)),
    (lambda item: (item, 1000), ("pair", 1000)),
    (lambda item: (item, "a"), ("pair", "a")),
    (lambda item: (item, None), ("pair", None)),
    (documented, ("pair", 1)),
]
UNTOLD = [
    *(str, len, functools.partial(documented), documented.__call__, yielding, awaited, capturing()),
    *(lambda item: item.key, lambda item: item + 1, lambda item: OUTER, lambda item: []),
    *(lambda item: (1, item), lambda item: (item, item), lambda item: [item, 1], lambda item: (item, 1, 1)),
    *(lambda item, more=1: item, lambda item, more=1: (item, 1), lambda *items: items, lambda *items: 1),
    *(lambda *, item=1: item, lambda item, *, more=1: item, lambda **items: 1, lambda: 1),
]


@pytest.mark.parametrize(("fn", "expected"), TOLD)
def test_what_plain_functions_give_is_told(fn, expected):
    """And it is what they give when they are called, of the same type."""
    form, constant = plain(fn)

    assert (form, constant, type(constant)) == (*expected, type(expected[1]))
    item = object()
    assert fn(item) == {"item": item, "constant": constant, "pair": (item, constant)}[form]


@pytest.mark.parametrize("fn", UNTOLD)
def test_of_all_other_functions_nothing_is_told(fn):
    """Whatever they may turn out to give."""
    assert plain(fn) is None


def test_constants_that_are_equal_stay_apart():
    """`True`, `1` and `1.0` are three constants, and so are the two zeros."""
    pairs = [lambda item: (item, 1), lambda item: (item, True), lambda item: (item, 1.0), lambda item: (item, -0.0)]

    assert [str(plain(fn)[1]) for fn in pairs] == ["1", "True", "1.0", "-0.0"]


def test_who_watches_calls_sees_them():
    """A debugger, or a measurement of coverage, is not surprised by calls that are left out."""
    before = sys.gettrace()
    sys.settrace(lambda *seen: None)
    try:
        told = plain(lambda item: item)
    finally:
        sys.settrace(before)

    assert told is None


def test_what_is_given_for_each_item_needs_no_call():
    """`each` gives a list of its own, whatever the function is."""
    items = ["a", "b"]

    assert each(lambda item: item, items) == items
    assert each(lambda item: item, items) is not items
    assert each(lambda item: 1, items) == [1, 1]
    assert each(lambda item: (item, 1), items) == [("a", 1), ("b", 1)]


class Guarded(tuple[Any, ...]):
    """A tuple whose items are not for everybody."""

    def __iter__(self) -> Any:
        raise AssertionError("its own method was called")


def test_tuples_are_looked_through_without_their_own_methods():
    """Awaitables are found in a tuple of a class of the user's, of any length."""
    refuse_awaitable(Guarded(range(100_000)))

    with pytest.raises(TypeError, match="has to be awaited"):
        refuse_awaitable(Guarded((1, awaited(2))))


class Unhashable(type):
    """A metaclass whose classes have no hash."""

    def __eq__(cls, other: object) -> bool:
        return cls is other


class OfUnhashable(metaclass=Unhashable):
    """An item whose class has no hash."""


def test_tuples_are_looked_through_whatever_the_classes_of_their_items():
    """Also long ones, of which one item of each class is looked at."""
    refuse_awaitable((OfUnhashable(),) * 9)

    with pytest.raises(TypeError, match="has to be awaited"):
        refuse_awaitable((*range(9), OfUnhashable(), awaited(2)))


def test_pairs_of_one_value_are_pairs():
    """As an iterator and as a batch."""
    batch = Pairs(["a", "b"], 1)

    assert list(PairsOfOneValue(iter("ab"), 1)) == list(batch) == [("a", 1), ("b", 1)]
    assert (len(batch), batch[1], list(batch[1:]), list(reversed(batch))) == (2, ("b", 1), [("b", 1)], [*batch][::-1])
