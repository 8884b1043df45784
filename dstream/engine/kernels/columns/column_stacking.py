"""Columns one behind another: the rows of several blocks as one column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from dstream.engine.kernels.columns.column_texts import MOST_BYTES, Texts
from dstream.engine.kernels.columns.column_values import (
    Bools,
    Column,
    Floats,
    Ints,
    Objects,
    Same,
    Tuples,
    Withheld,
    items_of,
    size_of_column,
    spread,
)

__all__ = ["stacked", "stacked_or_items"]


def stacked(columns: Sequence[Column]) -> Column:
    """Return a column with the rows of all of these, of which there is at least one, in order.

    Raises:
        Withheld: their values are of several types.
    """
    first, *others = columns
    if not others:
        return first
    if all(isinstance(each, Same) for each in columns) and len({id(each.value) for each in columns}) == 1:  # type: ignore[union-attr]
        return Same(first.value, sum(map(size_of_column, columns)))  # type: ignore[union-attr]
    columns = list(map(spread, columns))
    if len(set(map(type, columns))) > 1:
        raise Withheld("columns of several types")
    return _of_one_type(columns)


def _of_one_type(columns: Sequence[Any]) -> Column:
    first = columns[0]
    match first:
        case Ints():
            values = np.concatenate([each.values for each in columns])
            return Ints(values, min(each.least for each in columns), max(each.greatest for each in columns))
        case Floats():
            return Floats(np.concatenate([each.values for each in columns]))
        case Bools():
            return Bools(np.concatenate([each.values for each in columns]))
        case Objects():
            return Objects(list(chain.from_iterable(each.values for each in columns)))
        case Texts():
            return _of_texts(columns)
        case Tuples():
            if len({len(each.members) for each in columns}) > 1:
                raise Withheld("tuples of several lengths")
            members = zip(*(each.members for each in columns), strict=True)
            return Tuples(tuple(map(stacked, members)), sum(map(size_of_column, columns)))
    raise Withheld(f"columns of {type(first).__name__}")


def _of_texts(columns: Sequence[Texts]) -> Texts:
    import pyarrow as pa

    if sum(each.nbytes() for each in columns) > MOST_BYTES:
        raise Withheld("texts of more bytes than one array has places for")
    return Texts(pa.concat_arrays([each.values for each in columns]), is_ascii=all(each.is_ascii for each in columns))


def stacked_or_items(columns: Sequence[Column]) -> Column | Iterator[Any]:
    """Return the same column, or the items one after another."""
    try:
        return stacked(columns)
    except Withheld:
        return chain.from_iterable(map(items_of, columns))
