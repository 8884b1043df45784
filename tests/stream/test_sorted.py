"""`sorted`: the items in the order of their keys."""

from __future__ import annotations

import functools
import math

import numpy
import pytest

from dstream import DoubleStream, IntStream, Stream


def test_sorted_orders_items_over_all_partitions(engine):
    """The natural order, over more partitions than items."""
    assert engine.stream([3, 1, 2, 1], 6).sorted().to_list() == [1, 1, 2, 3]


@pytest.mark.parametrize(("reverse", "expected"), [(False, "a c bb dd ccc"), (True, "ccc bb dd a c")])
def test_sorted_by_key_is_stable_also_in_reverse(engine, reverse, expected):
    """Items with equal keys keep their encounter order, as `sorted()` in Python does."""
    words = engine.stream(["bb", "a", "ccc", "dd", "c"], 3)

    assert words.sorted(key=len, reverse=reverse).to_list() == expected.split()


def test_sorted_takes_a_comparator(engine):
    """`functools.cmp_to_key` serves comparators."""
    backwards = functools.cmp_to_key(lambda left, right: (right > left) - (right < left))

    assert engine.stream([2, 3, 1], 3).sorted(key=backwards).to_list() == [3, 2, 1]


def test_sorted_of_nothing_and_of_one_item(engine):
    """Nothing stays nothing; one item needs no comparison, a None neither."""
    assert (engine.stream([], 2).sorted().to_list(), engine.stream([None], 2).sorted().to_list()) == ([], [None])


@pytest.mark.parametrize("partitions", [1, 3])
def test_sorted_refuses_items_that_cannot_be_compared(engine, partitions):
    """None and a number have no order: Python's `TypeError`."""
    with pytest.raises(TypeError, match="not supported between"):
        engine.stream([2, None, 1], partitions).sorted().to_list()


def test_sorted_doubles_have_nan_last(default_engine):
    """NaN comes after infinity, wherever it stood; ints of an `IntStream` sort as ints."""
    doubles = DoubleStream.of(math.nan, 2.0, math.inf, math.nan, -1.0).sorted()

    assert repr(doubles.to_list()) == "[-1.0, 2.0, inf, nan, nan]"
    assert IntStream.of(2, 3, 1).sorted(reverse=True).to_list() == [3, 2, 1]


def test_sorted_stream_is_ordered_from_there_on(engine):
    """After an unordered stream was sorted, `limit` takes the least items."""
    assert engine.stream({5, 3, 4, 1, 2}, 3).sorted().skip(1).limit(2).map(str).to_list() == ["2", "3"]


@pytest.mark.parametrize("reverse", [False, True])
def test_sorted_in_several_ranges_is_stable(engine, reverse):
    """So many items that each range of keys has a partition of its own: the result is that of `sorted()`."""
    items = [(n * 7919 % 13, n) for n in range(45_000)]
    expected = sorted(items, key=lambda item: item[0], reverse=reverse)

    assert engine.stream(items, 4).sorted(key=lambda item: item[0], reverse=reverse).to_list() == expected


def test_sorted_then_limited_gives_the_first_of_all(engine):
    """`sorted().limit(n)` is that of all items, stable, also for more than there are and for none."""
    words = engine.stream(["bb", "a", "ccc", "dd", "c"], 3)

    assert words.sorted(key=len).limit(3).to_list() == ["a", "c", "bb"]
    assert words.sorted(key=len, reverse=True).limit(9).to_list() == ["ccc", "bb", "dd", "a", "c"]
    assert words.sorted().limit(0).to_list() == []


def test_sorted_takes_no_positional_reverse(local_context):
    """`reverse` is a keyword, as in Python."""
    with pytest.raises(TypeError):
        local_context.stream([1]).sorted(None, True)


@pytest.mark.parametrize("stream", [Stream.of(1), IntStream.of(1)])
def test_reverse_is_true_or_false(stream):
    """A text that says no would be true."""
    with pytest.raises(TypeError, match="reverse must be True or False, not str"):
        stream.sorted(reverse="no")


@pytest.mark.parametrize("stream", [Stream, IntStream, DoubleStream])
def test_reverse_may_be_a_bool_of_numpy(stream):
    """A comparison of its values gives one."""
    assert stream.of(1, 2).sorted(reverse=numpy.int64(2) > 1).to_list() == [2, 1]
    assert stream.of(2, 1).sorted(reverse=numpy.False_).to_list() == [1, 2]
