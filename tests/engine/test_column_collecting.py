"""Collectors that take blocks: sums of several blocks are exact, groups stand in order, and what may fail is asked."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from collectors import (
    averaging,
    counting,
    filtering,
    grouping_by,
    mapping,
    summarizing,
    summarizing_double,
    summarizing_int,
    summing,
    summing_double,
    summing_int,
)
from dstream.base.memory import Bound
from dstream.engine.compiler.evaluation import collector_read
from dstream.operators.columns.built_rows import BuiltRows
from dstream.operators.columns.collectors import _in_their_places, group_tables
from dstream.operators.columns.groups import GroupTable
from dstream.operators.columns.values import Ints, column_of
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected


def _in_columns(collector: Any, *blocks: list[Any]) -> Any:
    """Collect blocks, which nobody verifies: that would collect their items, too."""
    read = collector_read(collector, is_verified=False)[0]
    assert read.on_columns() is not None
    return read.finisher(collected(read, ColumnItems(iter(map(column_of, blocks)))))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_sums_of_several_blocks_are_exact(sign: int, is_reversed: bool) -> None:
    """Also where one of them has small numbers, which floats would add up exactly, and another one has large ones."""
    blocks = [[(1, sign), (2, sign * 3)], [(1, sign * (2**58 + 1)), (1, sign * (2**58 + 3)), (2, sign)]]
    if is_reversed:
        blocks.reverse()
    collector: Any = grouping_by(itemgetter(0), summing(lambda item: item[1]))

    assert _in_columns(collector, *blocks) == {1: sign * (2**59 + 5), 2: sign * 4}


@pytest.mark.parametrize("numeric", [summing, averaging, summarizing])
def test_a_block_of_which_nothing_is_left_changes_no_container(numeric: Any) -> None:
    """As a filter may leave of one: it has no least number, and counts for nothing."""
    collector = numeric(lambda n: n + 1)
    read = collector_read(collector, is_verified=False)[0]
    for rows in ([range(0)], [range(0), range(5), range(0)]):
        found = read.finisher(collected(read, ColumnItems(iter(map(column_of, rows)))))

        assert repr(found) == repr(collector.collect(number for each in rows for number in each))


def test_extremes_are_those_of_the_numbers() -> None:
    """Not the bounds between which an operator says that they lie."""
    assert repr(_in_columns(summarizing(lambda n: n * n - n), [3, 4, 5])) == repr(summarizing().collect([6, 12, 20]))


@pytest.mark.parametrize("numeric", [summarizing_double, summing_double, summing_int, summarizing_int])
def test_numbers_are_taken_as_of_the_kind_that_a_collector_adds_up(numeric: Any) -> None:
    """Ints as floats, and bools as ints; a float is no int, here as item by item."""
    for items in ([1, 2, 4], [True, False, True], [2**60 + 1, 1]):
        collector = numeric(lambda n: n)
        assert repr(_in_columns(collector, items)) == repr(collector.collect(items))
    if numeric in (summing_int, summarizing_int):
        with pytest.raises(TypeError):
            _in_columns(numeric(lambda n: n / 2), [1, 2])


def test_a_block_that_is_no_column_comes_to_what_was_there() -> None:
    """And what follows it comes to both."""
    read = collector_read(summing(lambda n: n + 1), is_verified=False)[0]
    blocks = [column_of([1, 2]), iter([3, 4]), column_of([5])]

    assert read.finisher(collected(read, ColumnItems(iter(blocks)))) == 20


def test_groups_by_texts_stand_behind_those_by_ints_that_came_before() -> None:
    """And the other way round: the key that was seen first comes first."""
    collector: Any = grouping_by(lambda item: item, counting())

    assert list(_in_columns(collector, [5, 6], ["a", "b"], [7])) == [5, 6, "a", "b", 7]
    assert list(_in_columns(collector, ["a", "b"], [5, 6], ["c"])) == ["a", "b", 5, 6, "c"]


@pytest.mark.parametrize(("inner", "message"), [(lambda row: row, "no hash"), (lambda row: None, "null key")])
def test_inner_keys_that_are_no_keys_are_refused_by_python(inner: Any, message: str) -> None:
    """Columns have no group of them."""
    collector: Any = grouping_by(lambda row: row["n"], grouping_by(inner, counting()))
    read = collector_read(collector, is_verified=False)[0]
    rows = BuiltRows(dict, {"n": column_of([1, 2, 3])}, 3)

    assert read.on_columns() is not None
    with pytest.raises(TypeError, match=message):
        collected(read, ColumnItems(iter([rows])))


def test_bounds_of_filtered_numbers_have_the_zeros_between_them() -> None:
    """A row that does not pass adds 0."""
    found = _in_their_places(Ints(np.array([5, 7]), 5, 7), np.array([0, 2]), 3)

    assert isinstance(found, Ints)
    assert (found.values.tolist(), found.least, found.greatest) == ([5, 0, 7], 0, 7)


def test_a_block_of_which_no_row_passes_is_grouped_in_a_table() -> None:
    """Whatever is added up, which is evaluated for no row: Python parses these, and would have no column of none."""
    collector: Any = grouping_by(lambda n: n % 2, filtering(lambda n: n > 9, summing(lambda n: int(str(n)))))
    known = collector_read(collector, is_verified=False)[0].on_columns()
    assert known is not None

    (table,) = group_tables(collector, known, iter([column_of([3, 4])]), Bound())

    assert isinstance(table, GroupTable)


@pytest.mark.parametrize("behind", [counting(), summing(lambda n: n)])
def test_what_has_one_key_for_all_is_grouped_in_a_table(behind: Any) -> None:
    """A number that stands in all rows is a column of ints."""
    collector = collector_read(grouping_by(lambda item: 1, behind), is_verified=False)[0]
    known = collector.on_columns()
    assert known is not None

    (table,) = group_tables(collector, known, iter([column_of([3, 4])]), Bound())

    assert isinstance(table, GroupTable)


@pytest.mark.parametrize(
    "collector",
    [
        grouping_by(lambda n: n, summing(json.loads)),
        grouping_by(lambda n: divmod(n, 3), counting()),
        mapping(lambda n: divmod(n, 3)[0], summing(lambda n: n)),
        mapping(id, summing(lambda n: n)),
    ],
)
def test_what_one_function_cannot_do_over_columns_takes_items(collector: Any) -> None:
    """One that cannot be read, or that columns have not, be it of the key or of what is added up."""
    assert collector_read(collector, is_verified=False)[0].on_columns() is None
