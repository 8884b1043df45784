"""The first row of each number or string: in a task, after the shuffle, and in the order of the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.keys import stable_hashes
from dstream.operators.columns.groups import numbered, stable_hashes_of_ints
from dstream.operators.columns.ranks import ranks_of_column
from dstream.operators.columns.strings import MOST_BYTES, Strings, numbers_of_array
from dstream.operators.columns.values import (
    GREATEST,
    Column,
    Floats,
    Ints,
    NotColumnar,
    Tuples,
    items_of,
    numbers,
    parts_of,
    rows_at,
    size_of_column,
    spread,
    stacked,
    whole,
)

__all__ = [
    "FirstRows",
    "firsts_met",
    "firsts_of_task",
    "in_places",
    "own_firsts",
    "packed_firsts",
    "sent_back",
    "with_firsts",
]


Int64s = NDArray[np.int64]


@record
class FirstRows:
    """Rows of one task, of which no two are equal.

    Attributes:
        column: their values.
        places: of the rows among those of the task, in order.
    """

    column: Column
    places: Int64s

    def __len__(self) -> int:
        return len(self.places)

    def items(self) -> list[Any]:
        """Return the values."""
        return items_of(self.column)


def firsts_of_task(column: Column, before: int, targets: int) -> tuple[int, Iterator[tuple[int, int, bytes]]] | None:
    """Return how many rows there are, and (target, number of rows, pickled `FirstRows`) of the first ones.

    Args:
        column: neighbouring rows of a task.
        before: how many rows of the task precede them.
        targets: how many there are.

    Returns:
        None if the values are neither numbers nor strings.
    """
    try:
        firsts = _first_places(column)
        found = rows_at(column, firsts)
        found = found if isinstance(found, Strings) else numbers(spread(found))
    except NotColumnar:
        return None
    return size_of_column(column), _sent(found, firsts + before, targets)


def _sent(column: Column, places: Int64s, targets: int) -> Iterator[tuple[int, int, bytes]]:
    targets_of_rows = _hashes(column) % targets
    for target in range(targets):
        chosen = np.flatnonzero(targets_of_rows == target)
        start = 0
        for part, size in parts_of(rows_at(column, chosen), _ROWS_OF_PART):
            if size:
                yield target, size, dumps(FirstRows(part, places.take(chosen[start : start + size])))
            start += size


_ROWS_OF_PART = 2**20
"""A batch has at most as many rows, and fewer with long strings."""


def _hashes(column: Any) -> Int64s:
    if isinstance(column, Strings):
        return np.array(stable_hashes(column.tolist()), np.int64)
    if isinstance(column, Floats):
        # All NaN are one value and meet at one target, whatever their bits.
        values = np.where(column.values == column.values, column.values, np.nan)
        return np.array(stable_hashes(values.tolist()), np.int64)
    return stable_hashes_of_ints(whole(column).values)


def _first_places(column: Column) -> Int64s:
    """Return the place of the first one of each value, in order.

    Raises:
        NotColumnar: the values are neither numbers nor strings.
    """
    if not size_of_column(column):
        return np.empty(0, np.int64)
    if isinstance(column, Strings):
        # Strings of a column have no surrogates, so equal ones, and no others, have equal bytes.
        codes = numbers_of_array(column.values.dictionary_encode().indices)
        found = Ints(codes, 0, int(codes.max()))
    else:
        values = ranks_of_column(column, False).values
        found = Ints(values, int(values.min()), int(values.max()))
    _, first = numbered(found)
    return np.sort(first[first < len(found.values)]).astype(np.int64, copy=False)


def packed_firsts(column: Column) -> Iterator[tuple[int, bytes]] | None:
    """Return (number of rows, pickled column) of the first row of each value; None unless numbers or strings."""
    try:
        found = _first_rows([column])
    except NotColumnar:
        return None
    return ((size, dumps(part)) for part, size in parts_of(found, _ROWS_OF_PART) if size)


def own_firsts(before: Sequence[Column], own: Sequence[Column]) -> Column | None:
    """Return the first row of each value that is in no column before; None if the values are of several types."""
    try:
        found = _first_rows([*before, *own])
        known = size_of_column(_first_rows(before)) if before else 0
    except NotColumnar:
        return None
    return rows_at(found, np.arange(known, size_of_column(found))) if known else found


def with_firsts(known: Column | None, columns: Sequence[Column]) -> tuple[Column, Column] | None:
    """Return rows with the first row of each other value of some columns behind them, and these rows alone.

    Args:
        known: rows of which no two are equal.
        columns: one or more.

    Returns:
        None if the values are of several types.
    """
    before = [] if known is None else [known]
    try:
        found = _first_rows([*before, *columns])
    except NotColumnar:
        return None
    start = sum(map(size_of_column, before))
    if isinstance(found, Strings):
        return found, Strings(found.values.slice(start), is_ascii=found.is_ascii)
    return found, rows_at(found, np.arange(start, size_of_column(found)))


def _first_rows(columns: Sequence[Column]) -> Column:
    """Return the first row of each value of some columns, in order.

    Raises:
        NotColumnar: the values are neither numbers nor strings, or of several types.
    """
    strings = [each for each in columns if isinstance(each, Strings)]
    if len(strings) == len(columns):
        return _first_strings(strings)
    column = stacked(columns)
    return numbers(spread(rows_at(column, _first_places(column))))


def _first_strings(columns: Sequence[Strings]) -> Strings:
    import pyarrow as pa

    if sum(each.nbytes() for each in columns) > MOST_BYTES:
        raise NotColumnar("texts of more bytes than one array has places for")
    # Chunks, since most strings of a column put together would be copied to be dropped.
    found = pa.chunked_array([each.values for each in columns], pa.string()).unique()
    return Strings(found, is_ascii=all(each.is_ascii for each in columns))


def firsts_met(sources: Sequence[int], batches: Sequence[FirstRows]) -> Tuples | None:
    """Return the first row of each value as ((source, place), value).

    Args:
        sources: the task of each batch.
        batches: in the order of the rows that they have of a task, and of the tasks.

    Returns:
        None if they hold values of several types.
    """
    try:
        column = stacked([batch.column for batch in batches])
        firsts = _first_places(column)
    except NotColumnar:
        return None
    places = np.concatenate([batch.places for batch in batches]).take(firsts)
    source = np.repeat(np.array(sources, np.int64), [len(batch) for batch in batches]).take(firsts)
    where = Tuples((Ints(source, 0, GREATEST), Ints(places, 0, GREATEST)), len(firsts))
    return Tuples((where, rows_at(column, firsts)), len(firsts))


def sent_back(column: Column, sources: int, targets: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (target, number of rows, pickled column) of ((source, place), value)."""
    # Sources go to targets in stretches, so that the items of all targets together are in order.
    targets_of_rows = _where(column)[0] * targets // sources
    for target in range(targets):
        rows = np.flatnonzero(targets_of_rows == target)
        for part, size in parts_of(rows_at(column, rows), _ROWS_OF_PART):
            if size:
                yield target, size, dumps(part)


def _where(column: Column) -> tuple[Int64s, Int64s]:
    assert isinstance(column, Tuples), "it has places and values"
    assert isinstance(column.members[0], Tuples), "a place is a source and a position"
    source, place = column.members[0].members
    assert isinstance(source, Ints), "a source is a number"
    assert isinstance(place, Ints), "a position is a number"
    return source.values, place.values


def in_places(columns: Sequence[Column]) -> Column | None:
    """Return the values of ((source, place), value) in the order of their places; None if they are of several types."""
    try:
        column = stacked(columns)
    except NotColumnar:
        return None
    sources, places = _where(column)
    assert isinstance(column, Tuples), "it has places and values"
    return rows_at(column.members[1], np.lexsort((places, sources)))
