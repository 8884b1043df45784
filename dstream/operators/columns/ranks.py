"""Ranks of rows: numeric keys as 64-bit integers, which NumPy sorts; sorted batches and their merge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.expressions import Expression
from dstream.failures.attribution import each
from dstream.operators.columns.chain_evaluation import compare_results
from dstream.operators.columns.entries import are_unmade
from dstream.operators.columns.evaluation import evaluated
from dstream.operators.columns.values import (
    GREATEST,
    Column,
    Floats,
    NotColumnar,
    column_of,
    items_of,
    numbers,
    parts_of,
    rows_at,
    size_of_column,
    spread,
    stacked,
    whole,
)
from dstream.operators.rows.batches import Batcher, loads_items
from dstream.operators.rows.blocks import Block
from dstream.plan.steps import EarlyCheck, KeyInColumns
from dstream.values.order import sort

__all__ = [
    "Ranks",
    "SortedBatch",
    "batches_of_run",
    "column_in_order",
    "cut_at",
    "merged_batches",
    "ranks_of_items",
    "ranks_of_rows",
    "run_in_order",
    "sample_of_column",
]


Int64s = NDArray[np.int64]
Rows: TypeAlias = "list[Any] | Column"

_NUMBERS = (int, float, bool)
_ROWS = 32_768
_MOST_HEADS = 48 * 2**20
"""Bytes that the largest batches of all runs may have together, since a merge holds the items of one of each."""
_MOST_COLUMNS = 128 * 2**20
"""Bytes that columns may have to be put together at once."""


@record
class Ranks:
    """Keys of rows as ints that have their order.

    Attributes:
        kind: only ranks of one kind can be compared.
        values: the smallest is first; equal keys have equal ones.
    """

    kind: Literal["ints", "floats"]
    values: Int64s


@record
class SortedBatch:
    """Some rows of a run, in order.

    Attributes:
        ranks: of their keys.
        data: their items, pickled: a list or, if it `is_column`, a column.
    """

    ranks: Ranks
    data: bytes
    is_column: bool

    def __len__(self) -> int:
        return len(self.ranks.values)

    def block(self) -> Rows:
        """Return the items as they were packed."""
        found: Rows = loads_items(self.data)
        return found

    def items(self) -> list[Any]:
        """Return the items."""
        return _listed(self.block())


def ranks_of_items(items: list[Any], key: Callable[[Any], Any] | None, reverse: bool) -> Ranks | None:
    """Return the ranks of some items; None if their keys are no numbers of one exact type, or too long ints."""
    try:
        return _ranks_of_keys(items if key is None else each(key, items), reverse)
    except NotColumnar:
        return None


def _ranks_of_keys(keys: Sequence[Any], reverse: bool) -> Ranks:
    if not keys or type(keys[0]) not in _NUMBERS:
        raise NotColumnar("keys that are no numbers")
    return ranks_of_column(column_of(keys), reverse)


def ranks_of_column(column: Column, reverse: bool) -> Ranks:
    """Return the ranks of the values of a column: NaN is the greatest, -0.0 equals 0.0, True equals 1.

    Raises:
        NotColumnar: it holds no numbers.
    """
    found = numbers(spread(column))
    if isinstance(found, Floats):
        return Ranks("floats", _directed(_bits(found.values), reverse))
    return Ranks("ints", _directed(whole(found).values, reverse))


def _directed(values: Int64s, reverse: bool) -> Int64s:
    # The complement, unlike the negative value, is there for each int. Equal keys keep their order either way.
    return ~values if reverse else values


def _bits(values: NDArray[np.float64]) -> Int64s:
    """Return ints with the order of floats: their bits, those behind the sign inverted below zero."""
    with np.errstate(invalid="ignore"):
        bits = (values + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0.
    bits = np.where(bits < 0, bits ^ np.int64(GREATEST), bits)
    bits[values != values] = GREATEST
    return bits


def run_in_order(
    run: Rows, key: Callable[[Any], Any] | None, reverse: bool, columns: KeyInColumns, step: str
) -> tuple[Rows, Ranks] | None:
    """Return the rows of a run in the order of their keys, and their ranks; None if Python has to compare the keys.

    Args:
        run: it stays as it is.
        key: gives the key of an item; None if the item is it.
        reverse: the greatest key comes first.
        columns: what is known of the key function.
        step: the call of the user's, for messages.

    Raises:
        EngineError: what is verified is in another order than Python gives.
    """
    run, ranks = _ranked(run, key, reverse, columns)
    if ranks is None:
        return None
    places = np.argsort(ranks.values, kind="stable")
    found = [*map(run.__getitem__, places.tolist())] if isinstance(run, list) else rows_at(run, places)
    if not isinstance(found, list) and are_unmade(found):
        found = items_of(found)  # They travel as such: some at a time, as many as fit.
    if columns.is_verified:
        _compare_order(step, run, key, reverse, found)
    return found, Ranks(ranks.kind, ranks.values.take(places))


def column_in_order(
    columns: Sequence[Column],
    key: Callable[[Any], Any] | None,
    reverse: bool,
    known: KeyInColumns,
    step: str,
    looks: Sequence[EarlyCheck] = (),
) -> Iterator[Block] | None:
    """Return the rows of columns, one behind the other, in the order of their keys; None if Python has to compare them.

    Args:
        columns: they stay as they are.
        key: gives the key of an item; None if the item is it.
        reverse: the greatest key comes first.
        known: what is known of the key function.
        step: the call of the user's, for messages.
        looks: refuse the first item, in the name of what takes the items later.
    """
    try:
        column = stacked(columns) if columns else None
    except NotColumnar:
        return None
    if column is None or not size_of_column(column):
        return iter(())
    for look in looks:
        look.at(items_of(rows_at(column, np.arange(1)))[0])
    found = run_in_order(column, key, reverse, known, step)
    if found is None:
        return None
    rows = found[0]
    return iter((rows,)) if isinstance(rows, list) else (part for part, _ in parts_of(rows, _ROWS))


def _ranked(
    run: Rows, key: Callable[[Any], Any] | None, reverse: bool, columns: KeyInColumns
) -> tuple[Rows, Ranks | None]:
    if not isinstance(run, list):
        try:
            return run, ranks_of_rows(columns.expression, run, reverse)
        except NotColumnar:
            run = _listed(run)
    if key is not None:
        return run, ranks_of_items(run, key, reverse)
    try:
        column = column_of(run)
        return column, ranks_of_column(column, reverse)
    except NotColumnar:
        return run, None


def ranks_of_rows(expression: Expression | None, column: Column, reverse: bool) -> Ranks:
    """Return the ranks of the rows of a column, whose keys an expression gives.

    Raises:
        NotColumnar: there is no expression, or it cannot be evaluated over these rows, or gives no numbers.
    """
    if expression is None:
        raise NotColumnar("a key function that Python runs")
    return ranks_of_column(evaluated(expression, (column,)), reverse)


def _compare_order(step: str, run: Rows, key: Callable[[Any], Any] | None, reverse: bool, found: Rows) -> None:
    expected = list(_listed(run))
    sort(expected, key, reverse)
    compare_results(step, _listed(found), expected, lambda: f"a run of {len(expected):,} items")


def _listed(rows: Rows) -> list[Any]:
    return rows if isinstance(rows, list) else items_of(rows)


def sample_of_column(column: Column, apart_of: Callable[[int], int]) -> tuple[list[Any], int]:
    """Return the items of rows at the distance `apart_of(rows)`, and the number of rows."""
    size = size_of_column(column)
    apart = apart_of(size)
    return items_of(rows_at(column, np.arange(apart // 2, size, apart))), size


def batches_of_run(rows: Rows, ranks: Ranks, batcher: Batcher) -> Iterator[tuple[int, bytes]]:
    """Yield (number of rows, pickled `SortedBatch`) of rows that are in order."""
    start = 0
    for size, data in batcher.batches(rows) if isinstance(rows, list) else _packed(rows):
        some = Ranks(ranks.kind, ranks.values[start : start + size])
        yield size, dumps(SortedBatch(some, data, not isinstance(rows, list)))
        start += size


def _packed(column: Column) -> Iterator[tuple[int, bytes]]:
    if not size_of_column(column):
        return
    for part, size in parts_of(column, _ROWS):
        yield size, dumps(part)


def cut_at(batch: SortedBatch, borders: Ranks) -> Iterator[SortedBatch]:
    """Yield the part of a batch before each border, and that behind the last one; equal rows are behind a border.

    The items are looked at only where a border is between them.
    """
    values, kind = batch.ranks.values, batch.ranks.kind
    places = [0, *np.searchsorted(values, borders.values, side="left").tolist(), len(values)]
    block: Rows | None = None
    for start, end in pairwise(places):
        # No border lies inside of the batch: it is passed on without being unpickled.
        if end - start == len(values):
            yield batch
            continue
        if start < end:
            block = batch.block() if block is None else block
        data = b"" if block is None or start == end else dumps(_between(block, start, end))
        yield SortedBatch(Ranks(kind, values[start:end]), data, batch.is_column)


def _between(block: Rows, start: int, end: int) -> Rows:
    return block[start:end] if isinstance(block, list) else rows_at(block, np.arange(start, end))


def merged_batches(batches: Sequence[SortedBatch]) -> Iterator[Block] | None:
    """Return the rows of batches in the order of their ranks, which are of one kind; stable.

    Args:
        batches: those of a run one after another.

    Returns:
        Blocks, each made when it is asked for; None if too much memory would be needed.
    """
    column = _stacked_rows(batches)
    if column is None and _heads(batches) > _MOST_HEADS:
        return None
    places = np.argsort(np.concatenate([batch.ranks.values for batch in batches]), kind="stable")
    if column is None:
        return _merged(list(batches), places)
    return (rows_at(column, places[start : start + _ROWS]) for start in range(0, len(places), _ROWS))


def _stacked_rows(batches: Sequence[SortedBatch]) -> Column | None:
    """Return the rows of all batches as one column; None if they are lists, of several types, or too many bytes."""
    if not all(batch.is_column for batch in batches) or sum(len(batch.data) for batch in batches) > _MOST_COLUMNS:
        return None
    try:
        return stacked([cast(Column, batch.block()) for batch in batches])
    except NotColumnar:
        return None


def _heads(batches: Sequence[SortedBatch]) -> int:
    """Return how many bytes the largest batch of each run has, of all runs together."""
    total = largest = 0
    last: Any = GREATEST
    for batch in batches:
        # Batches do not name their run: where ranks fall, the next one begins.
        if batch.ranks.values[0] < last:
            total, largest = total + largest, 0
        largest, last = max(largest, len(batch.data)), batch.ranks.values[-1]
    return total + largest


def _merged(batches: list[SortedBatch | None], places: NDArray[np.intp]) -> Iterator[Block]:
    """Yield the rows as lists; the items of a batch are there from its first row to its last one."""
    sizes = [len(batch) for batch in batches if batch is not None]
    owner_of_row = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    first_row = np.cumsum([0, *sizes[:-1]])
    opened: dict[int, list[Any]] = {}
    done = [0] * len(sizes)
    for start in range(0, len(places), _ROWS):
        rows = places[start : start + _ROWS]
        owners = owner_of_row.take(rows)
        counts = np.bincount(owners, minlength=len(sizes))
        pool: list[Any] = []
        shifts = np.zeros(len(sizes), np.int64)
        for owner in np.flatnonzero(counts).tolist():
            if (batch := batches[owner]) is not None:
                # None lets go of the pickle, whose items are in memory from now on.
                opened[owner], batches[owner] = batch.items(), None
            first, end = done[owner], done[owner] + int(counts[owner])
            # The rows of a batch are in order, so those of one block are side by side.
            shifts[owner] = len(pool) - first
            pool += opened[owner][first:end]
            done[owner] = end
            if end == sizes[owner]:
                del opened[owner]
        chosen = rows - first_row.take(owners) + shifts.take(owners)
        yield map(pool.__getitem__, chosen.tolist())
