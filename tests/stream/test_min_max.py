"""`min` and `max` of a stream of objects."""

from __future__ import annotations

import pytest

from dstream import Optional
from dstream.errors import NullElementError


def test_min_and_max_are_optionals(engine):
    """The extreme item over all partitions, empty ones among them; nothing for no items."""
    numbers, nothing = engine.stream([4, 2, 9, 3], 6), engine.stream([], 2)

    assert (numbers.min(), numbers.max()) == (Optional.of(2), Optional.of(9))
    assert (nothing.min(), nothing.max()) == (Optional.empty(), Optional.empty())


def test_min_and_max_by_key_give_the_first_of_equals(engine):
    """As `min()` and `max()` do in Python, and as the JDK does for `min`."""
    words = engine.stream(["bb", "aa", "c", "d", "ee"], 3)

    assert (words.min(key=len).get(), words.max(key=len).get()) == ("c", "bb")


def test_min_of_one_item_compares_nothing(engine):
    """One item is the least and the greatest one, whatever it is."""
    assert engine.stream([{}], 2).min().get() == {}


def test_min_that_is_none_is_refused(engine):
    """An `Optional` cannot hold None: a `NullElementError`, as in Java."""
    with pytest.raises(NullElementError, match="min"):
        engine.stream([None], 2).min()


def test_max_of_items_that_cannot_be_compared_is_a_type_error(engine):
    """None and a number have no order, in one partition or in two."""
    with pytest.raises(TypeError, match="not supported between"):
        engine.stream([None, 1], 2).max()
