"""The first items of each group in the order of their ranks: of a block only those become items that may be first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.engine.kernels.columns.column_items import Block, given
from dstream.engine.kernels.columns.column_row_groups import GroupedRows, shape_of
from dstream.engine.kernels.columns.column_sorting import ranks_of_rows
from dstream.engine.kernels.columns.column_steps import as_column
from dstream.engine.kernels.columns.column_values import Column, Withheld, items_of, rows_at, size_of_column
from dstream.engine.kernels.columns.evaluating import evaluated
from dstream.engine.kernels.columns.verifying_columns import compare_results
from dstream.spi import Collector, InColumns

__all__ = ["first_of_groups"]


def first_of_groups(collector: Collector[Any, Any, Any], known: InColumns, blocks: Iterator[Block]) -> Iterator[Any]:
    """Give the items that a collector of the first ones of each key needs, in order: of columns with ranks no others.

    Raises:
        EngineError: what is verified is not what Python gives.
    """
    return chain.from_iterable(_needed(collector, known, block) for block in blocks)


def _needed(collector: Collector[Any, Any, Any], known: InColumns, block: Block) -> Iterable[Any]:
    try:
        column = as_column(block)
        if not size_of_column(column):
            return ()
        places = _places(known, column)
    except Withheld:
        return given(block)
    found = items_of(rows_at(column, places))
    if known.is_verified:
        one, other = (_finished(collector, each) for each in (found, given(block)))
        compare_results(repr(collector), one, other, lambda: f"a block of {size_of_column(column):,} items")
    return found


def _finished(collector: Collector[Any, Any, Any], items: Iterable[Any]) -> list[Any]:
    assert collector.keyed is not None, "it makes groups"
    return list(collector.keyed.downstream.finished(collector.accumulated(collector.supplier(), items).items()))


def _places(known: InColumns, column: Column) -> NDArray[np.intp]:
    """Return the rows that matter: the first ones of each group, and its first row, whose key stays.

    Raises:
        Withheld: the keys have no shape, or there are no ranks.
    """
    downstream = known.downstream
    assert known.expression is not None, "only such collectors are taken"
    assert downstream is not None, "groups have one"
    keys = evaluated(known.expression, (column,))
    shape_of(keys)
    ranks = ranks_of_rows(downstream.expression, column, downstream.reverse).values
    rows = GroupedRows.of(keys)
    chosen = _least(rows, ranks) if downstream.first == 1 else _leading(rows, ranks, downstream.first)
    return np.union1d(chosen, rows.firsts)


def _least(rows: GroupedRows, ranks: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return of each group the first row that has its least rank."""
    side_by_side = ranks.take(rows.order)
    least = np.minimum.reduceat(side_by_side, rows.starts)
    found = np.flatnonzero(side_by_side == np.repeat(least, rows.counts))
    groups = rows.numbers.take(rows.order.take(found))
    is_first = np.concatenate(([True], groups[1:] != groups[:-1]))
    return rows.order.take(found[is_first])


def _leading(rows: GroupedRows, ranks: NDArray[np.int64], count: int) -> NDArray[np.intp]:
    """Return of each group the first rows in the order of their ranks, of equal ones the earlier."""
    order = np.lexsort((ranks, rows.numbers))
    place_in_group = np.arange(len(order)) - np.repeat(rows.starts, rows.counts)
    return order[place_in_group < count]
