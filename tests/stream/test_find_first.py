"""`find_first` and `find_any`."""

from __future__ import annotations

import pytest

from dstream import Optional
from dstream.errors import NullElementError


def test_find_first_gives_the_first_item_of_the_first_partition_that_has_one(engine):
    """Empty partitions in front are passed over."""
    numbers = engine.stream([1, 2, 3, 9, 8], 5).filter(lambda n: n > 3)

    assert (numbers.find_first(), numbers.find_any().get() in (8, 9)) == (Optional.of(9), True)


def test_find_first_of_nothing_is_empty(engine):
    """No item, an empty `Optional`."""
    nothing = engine.stream([], 2)

    assert (nothing.find_first(), nothing.find_any()) == (Optional.empty(), Optional.empty())


@pytest.mark.parametrize("method", ["find_first", "find_any"])
def test_find_first_of_none_is_refused(engine, method):
    """A None item cannot stand in an `Optional`: a `NullElementError`, as in Java."""
    with pytest.raises(NullElementError, match=method):
        getattr(engine.stream([None], 2), method)()


def test_find_first_passes_a_none_over_that_comes_later(engine):
    """Only the item that is found matters; a false one is found as well."""
    assert engine.stream([0, None], 1).find_first() == Optional.of(0)


def test_find_first_after_sorting_is_the_least(engine):
    """The first item of a sorted stream is the least one."""
    assert engine.stream([3, 1, 2], 3).sorted().find_first() == Optional.of(1)
