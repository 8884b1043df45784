"""Windows that slide over columns, and what functions make of them."""

from __future__ import annotations

import math
import sys

import pytest

from dstream.gatherers import window_sliding
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.values import NotColumnar, Tuples, column_of, items_of
from dstream.operators.rows.batches import Batcher, loads
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.gatherers import gathered_ahead
from tests.differential.written_expressions import expression_of


def windows(*blocks, size, behind=(), is_first=True):
    """Return the windows over items that stand in columns, but for iterators."""
    columns = ColumnItems(iter([column_of(block) if isinstance(block, list) else block for block in blocks]))
    return gathered_ahead(window_sliding(size).parallel, columns, behind, lambda: is_first)


def test_windows_lie_across_blocks():
    """Each block goes on where the last one ended; the last windows take items from behind."""
    found = windows([1, 2], [3], [4, 5, 6], size=3, behind=[7, 8, 9])

    assert list(found) == [(n, n + 1, n + 2) for n in range(1, 7)]


def test_a_window_is_a_row_of_columns_over_the_same_memory():
    """Nothing is copied, and items that are needed are made once for all windows."""
    block, rest = windows([1.5, 2.5, 3.5], size=2).blocks()
    assert isinstance(block, Tuples)
    assert list(rest) == []

    assert all(member.values.base is not None for member in block.members)
    first, second = items_of(block)
    assert first[1] is second[0]


def test_other_items_are_gathered_one_by_one():
    """From the first block that is no column of the same type; the windows before stay."""
    found = windows([1, 2, 3], iter(["a"]), [4], size=2)

    assert list(found) == [(1, 2), (2, 3), (3, "a"), ("a", 4)]
    assert list(windows([1], [2.0], [3], size=3)) == [(1, 2.0, 3)]


@pytest.mark.parametrize(("is_first", "expected"), [(True, [(1, 2)]), (False, [])])
def test_a_short_stream_gives_one_short_window(is_first, expected):
    """If nothing stands before it; where windows were there before, none follows that is too short."""
    assert list(windows([1], [2], size=3, is_first=is_first)) == expected
    assert list(windows([1, 2, 3], iter(()), size=3, is_first=is_first)) == [(1, 2, 3)]


def test_windows_travel_as_the_numbers_under_them():
    """What is pickled holds each number once."""
    ((size, data),) = Batcher().batches(windows([*range(1000)], size=10))
    assert size == 991
    assert len(data) < 10_000
    assert loads(data) == [tuple(range(n, n + 10)) for n in range(991)]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the sum of floats is compensated there")
@pytest.mark.parametrize(
    "items",
    [
        [(1, 2), (3, -4)],
        [(True, False)],
        [(-0.0, -0.0), (0.1, 0.2), (math.inf, -math.inf)],
        [(1e16, 1.0, -1e16)],
        [(2, 0.5)],
    ],
)
def test_sums_are_those_of_python(items):
    """From 0 and the first member on, in value and type; -0.0 becomes 0.0."""
    found = items_of(evaluated(expression_of("lambda x: sum(x)"), [column_of(items)]))

    assert [(type(each), repr(each)) for each in found] == [(type(sum(each)), repr(sum(each))) for each in items]


def test_sums_beyond_64_bits_are_left_to_python():
    """As is what cannot be added up, and what is no tuple."""
    for items in ([(2**62, 2**62)], [("a", 1)], [1, 2]):
        with pytest.raises(NotColumnar):
            evaluated(expression_of("lambda x: sum(x)"), [column_of(items)])
