"""Steps over columns: a chain's first steps that have expressions, block by block, with a way back for each block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, takewhile
from typing import Any

from dstream.engine.kernels.columns.column_comparing import truth
from dstream.engine.kernels.columns.column_counting import OpenBlock, Passed, counted_items
from dstream.engine.kernels.columns.column_items import Block, ColumnItems, given, stretches
from dstream.engine.kernels.columns.column_texts import Lists
from dstream.engine.kernels.columns.column_values import (
    Bools,
    Column,
    NotYet,
    Withheld,
    column_of,
    rows_of,
    size_of_column,
    typed,
)
from dstream.engine.kernels.columns.evaluating import evaluated
from dstream.engine.kernels.columns.steps_in_columns import expression_of_step, is_in_columns, work_of
from dstream.engine.kernels.columns.verifying_columns import compare_step
from dstream.engine.kernels.fused_steps import run_chain
from dstream.engine.kernels.item_count import one_by_one
from dstream.plan.steps import Op

__all__ = ["as_column", "column_chain"]

_MOST_WITHHELD = 3
"""After so many blocks in a row that were withheld, the rest is no longer tried."""


def column_chain(ops: Sequence[Op], items: Iterator[Any]) -> Iterator[Any] | None:
    """Return what steps make of items, in columns as far as these go; None if they do not go at all."""
    first = list(takewhile(is_in_columns, ops))
    if all(op.action == "count" for op in ops):
        return counted_items(ops, items) if isinstance(items, ColumnItems) else None
    if all(op.expression is None for op in first):
        return None
    blocks = items.blocks() if isinstance(items, ColumnItems) else stretches(items, work_of(first))
    if blocks is None:
        return None
    open_block = OpenBlock(first) if any(op.action == "count" for op in first) else None
    made = ColumnItems(_through(first, blocks, open_block), taking=None if open_block is None else open_block.items)
    if len(first) < len(ops):
        return run_chain(one_by_one(ops[len(first) :]), made)
    return made


def _through(ops: Sequence[Op], blocks: Iterator[Block], open_block: OpenBlock | None) -> Iterator[Block]:
    """Give each block as a column, or its items; it is used up before the next one is made."""
    withheld = 0
    by_items = partial(run_chain, one_by_one(ops))
    for block in blocks:
        passed: list[Passed] = []
        try:
            made: Block = _passed(ops, block, passed)
            withheld = 0
        except NotYet:
            made, passed = by_items(given(block)), []
        except Withheld:
            made, passed = by_items(given(block)), []
            withheld += 1
        if open_block is not None:
            open_block.begin(passed)
        yield made
        if open_block is not None:
            open_block.end()
        if withheld == _MOST_WITHHELD:
            yield by_items(chain.from_iterable(map(given, blocks)))


def _passed(ops: Sequence[Op], block: Block, passed: list[Passed]) -> Column:
    """Return what steps make of a block, and append what those did that give another number of rows, or count."""
    column = as_column(block)
    for op in ops:
        if (size := size_of_column(column)) == 0:  # Python never reaches the step, nor what it does for any item.
            break
        if op.action == "count":
            passed.append(size)
            continue
        expression = expression_of_step(op)
        assert expression is not None, "only such steps are taken"
        found = evaluated(expression, (column,))
        if op.action == "flat_map":
            passed.append(lists := _lists(op, column, found))
            column = lists.members
            continue
        found = typed(found, op.kind) if op.action == "map" else Bools(truth(found))
        if op.is_verified:
            compare_step(op, column, found)
        if op.action == "map":
            column = found
            continue
        passed.append(rows := truth(found))
        column = rows_of(column, rows)
    return column


def _lists(op: Op, column: Column, found: Column) -> Lists:
    """Return the lists that a `flat_map` takes apart."""
    if not isinstance(found, Lists):
        raise Withheld("items that are no lists")
    if op.is_verified:
        compare_step(replace(op, action="map"), column, found)
    return found


def as_column(block: Block) -> Column:
    """Return a block as a column.

    Raises:
        Withheld: it is none, and its items make none.
    """
    if isinstance(block, Iterator):
        raise Withheld("the items before did not stand in columns")
    return column_of(block) if isinstance(block, Sequence) else block
