"""Sliding windows over numbers in columns, as views of one memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from dstream.operators.columns.values import (
    Bools,
    Column,
    Floats,
    Ints,
    NotColumnar,
    Tuples,
    items_of,
    numbers,
    of_same_type,
    rows_at,
    size_of_column,
    spread,
    stacked,
)
from dstream.operators.rows.blocks import Block, given
from dstream.spi import ByPlace

__all__ = ["ends_of_column", "sliding_windows"]


def sliding_windows(
    kind: ByPlace[Any, Any], blocks: Iterator[Block], behind: Iterable[Any], is_first: Callable[[], bool]
) -> Iterator[Block]:
    """Give the windows that begin in a partition.

    Args:
        kind: a gatherer with a `window`.
        blocks: the items of the partition.
        behind: all items behind it, read as far as needed.
        is_first: says whether no item is before the partition.
    """
    size, first = kind.window, is_first
    assert size is not None, "whoever has none slides over items"
    assert kind.gather_ahead is not None, "windows know how to read ahead"
    tail: Column | None = None
    for block in blocks:
        column = _behind(tail, block)
        if column is None:
            rest = chain(() if tail is None else items_of(tail), given(block), chain.from_iterable(map(given, blocks)))
            yield kind.gather_ahead(rest, behind, first)
            return
        rows = len(column.values)
        if rows < size:
            tail = column
            continue
        yield _windows(column, size)
        # The last rows, one fewer than a window has, begin windows that end in the next block.
        tail, first = rows_at(column, np.arange(rows - size + 1, rows)), _is_not_first
    if tail is not None:
        yield kind.gather_ahead(items_of(tail), behind, first)


def _is_not_first() -> bool:
    """Say that there was a window before, so that no short one follows."""
    return False


def _behind(tail: Column | None, block: Block) -> Ints | Floats | Bools | None:
    """Return the rows of a block behind those of `tail`; None if they are no numbers of one type."""
    if isinstance(block, Sequence | Iterator):
        return None
    try:
        return numbers(spread(stacked([block] if tail is None else [tail, block])))
    except NotColumnar:
        return None


def _windows(column: Ints | Floats | Bools, size: int) -> Tuples:
    rows = len(column.values) - size + 1
    members = (of_same_type(column, column.values[place : place + rows]) for place in range(size))
    return Tuples(tuple(members), rows, column)


def ends_of_column(column: Column, count: int) -> tuple[int, list[Any], list[Any]]:
    """Return how many rows there are, and the items of the first and of the last `count` of them."""
    rows = size_of_column(column)
    first, last = np.arange(min(count, rows)), np.arange(max(rows - count, 0), rows)
    return rows, items_of(rows_at(column, first)), items_of(rows_at(column, last))
