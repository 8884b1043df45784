"""`Range`, `Iterate` and `Generate`: items that are made where they are needed."""

from __future__ import annotations

import itertools

import pytest

from dstream.spi.source import Source
from sources import Generate, Iterate, Range


def test_range_is_cut_into_ranges():
    """Sizes differ by one at most, and nothing is built."""
    source = Range(0, 10)

    assert isinstance(source, Source)
    assert (source.ordered, source.bounded, source.in_caller) == (True, True, False)
    assert [split.items for split in source.splits(3)] == [range(3), range(3, 6), range(6, 10)]


def test_range_can_be_longer_than_len_allows():
    """Only the machine's patience bounds a range."""
    first, second = Range(0, 2 * 10**30).splits(2)

    assert next(first.read()) == 0
    assert next(second.read()) == 10**30


def test_range_start_at_or_above_stop_is_empty(read):
    """As `range` does, and with one split to run."""
    assert read(Range(5, 5)) == []
    assert read(Range(5, 1)) == []
    assert len(Range(5, 1).splits(4)) == 1


def test_range_partitions_gives_exactly_that_many_splits():
    """Some are empty if there are fewer numbers."""
    assert [list(split.read()) for split in Range(0, 2, partitions=3).splits(1)] == [[], [0], [1]]


def test_range_refuses_what_is_no_int():
    """Floats and strings are refused at the call."""
    with pytest.raises(TypeError, match="stop must be an int, not float"):
        Range(0, 1.5)
    with pytest.raises(TypeError, match="start must be an int, not str"):
        Range("0", 1)
    with pytest.raises(ValueError, match="partitions must be at least 1"):
        Range(0, 1, partitions=-1)


def test_iterate_makes_items_lazily():
    """`next` is called only for items that somebody asked for."""
    calls = []

    def doubled(number):
        calls.append(number)
        return number * 2

    [split] = Iterate(1, doubled).splits(4)

    assert list(itertools.islice(split.read(), 3)) == [1, 2, 4]
    assert calls == [1, 2]


def test_iterate_stops_when_has_next_fails(read):
    """The seed is tested too, as in Java."""
    assert read(Iterate(1, lambda n: n + 1, lambda n: n < 4)) == [1, 2, 3]
    assert read(Iterate(9, lambda n: n + 1, lambda n: n < 4)) == []


def test_iterate_never_makes_the_item_after_the_last():
    """An item that has_next refused is made, the one behind it is not."""
    source = Iterate([1, 2], lambda rest: rest[1:], lambda rest: rest[0] < 9)

    [split] = source.splits(1)

    assert list(itertools.islice(split.read(), 2)) == [[1, 2], [2]]


def test_iterate_is_bounded_only_with_has_next():
    """It is ordered either way."""
    endless, ending = Iterate(0, abs), Iterate(0, abs, bool)

    assert isinstance(endless, Source)
    assert (endless.ordered, endless.bounded, endless.in_caller) == (True, False, False)
    assert (ending.ordered, ending.bounded, ending.in_caller) == (True, True, False)


def test_generate_calls_the_supplier_once_for_each_item():
    """Nothing is made ahead."""
    numbers = itertools.count()
    source = Generate(lambda: next(numbers))

    assert list(itertools.islice(source.splits(1)[0].read(), 3)) == [0, 1, 2]
    assert next(numbers) == 3


def test_generate_is_endless_unordered_and_parallel():
    """Each task has a split of its own."""
    source = Generate(int)

    assert isinstance(source, Source)
    assert (source.ordered, source.bounded, source.in_caller) == (False, False, False)
    assert len(source.splits(5)) == 5


def test_makers_refuse_what_is_not_callable():
    """A `TypeError` at the call names the argument."""
    with pytest.raises(TypeError, match="next must be a function, not int"):
        Iterate(0, 1)
    with pytest.raises(TypeError, match="has_next must be a function, not int"):
        Iterate(0, abs, 1)
    with pytest.raises(TypeError, match="supplier must be a function, not int"):
        Generate(1)
