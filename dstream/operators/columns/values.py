"""Columns of exactly one builtin type, their concatenation, and their items.

A column of ints stores the bounds of its values, so that arithmetic needs no check for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dstream.base.records import record
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.strings import MOST_BYTES, StringLists, Strings, strings_of
from dstream.operators.rows.blocks import Block, LazyRows
from dstream.values.bad_records import EncodedLines

__all__ = [
    "GREATEST",
    "LEAST",
    "Bools",
    "Column",
    "ConstantColumn",
    "Floats",
    "Ints",
    "NotColumnar",
    "Objects",
    "PythonRaises",
    "TooFewRows",
    "Tuples",
    "bytes_of_texts",
    "column_at_hand",
    "column_of",
    "has_objects",
    "items_of",
    "numbers",
    "of_same_type",
    "parts_of",
    "rows_at",
    "rows_behind",
    "rows_of",
    "shape_of",
    "size_of_column",
    "spread",
    "stacked",
    "stacked_or_items",
    "tight",
    "typed",
    "whole",
    "windows_of",
]


LEAST = -(2**63)
GREATEST = 2**63 - 1


class NotColumnar(Exception):
    """A column cannot promise Python's results for these rows."""


class PythonRaises(NotColumnar):
    """Python raises for one of the rows: each larger part of the expression would do so as well."""


class TooFewRows(NotColumnar):
    """These rows are too few to be worth a column; those that follow may be."""


# No `__eq__` here and below: arrays are compared member by member, which has no truth.
@record(eq=False)
class Ints:
    """Exact ints of 64 bits.

    Attributes:
        least: no value is below it.
        greatest: no value is above it.
    """

    values: NDArray[np.int64]
    least: int
    greatest: int


@record(eq=False)
class Floats:
    """Exact floats."""

    values: NDArray[np.float64]


@record(eq=False)
class Bools:
    """`True` and `False`."""

    values: NDArray[np.bool_]


@record(eq=False)
class ConstantColumn:
    """One value of any type in all rows."""

    value: Any
    size: int


@record(eq=False)
class Objects:
    """Any values, which pass as they are.

    Attributes:
        is_plain: all of them, and what they contain, are of builtin types, whose operators have no side effects.
    """

    values: list[Any]
    is_plain: bool = False


@record(eq=False)
class Tuples:
    """Exact tuples of one length, a column for each place.

    Attributes:
        whole: where they are windows, the column over which they slide: a row has its value, and those that follow.
    """

    members: tuple[Column, ...]
    size: int
    whole: Column | None = None


Column: TypeAlias = (
    Ints | Floats | Bools | ConstantColumn | Objects | Tuples | Strings | StringLists | Encoded | LazyRows
)


def column_of(items: Sequence[Any]) -> Column:
    """Return the items of a range or list as a column.

    Raises:
        NotColumnar: they are no numbers, texts or tuples of one exact type, or ints that need more than 64 bits.
    """
    if type(items) is range:
        return _of_range(items)
    if type(items) is EncodedLines:
        return _of_lines(items)
    kinds = set(map(type, items))
    if len(kinds) != 1:
        raise NotColumnar("the items are of several types")
    (kind,) = kinds
    if kind is tuple:
        return _of_tuples(items)
    make = _MAKERS.get(kind)
    if make is None:
        raise NotColumnar(f"the items are {kind.__name__}")
    return make(items)


def _of_range(items: range) -> Column:
    if not items:
        return Ints(np.empty(0, np.int64), 0, 0)
    least, greatest = sorted((items[0], items[-1]))
    if least < LEAST or greatest > GREATEST or not LEAST <= items.step <= GREATEST:
        raise NotColumnar("ints of more than 64 bits")
    # The end of `arange` may exceed 64 bits; a product that wraps around is right again after the addition.
    return Ints(items[0] + np.arange(len(items), dtype=np.int64) * items.step, least, greatest)


def _of_lines(items: EncodedLines) -> Strings:
    if items.are_few:
        raise TooFewRows("few lines")
    if len(items.data) > _MOST_BYTES:
        raise NotColumnar("lines of many bytes")
    return Strings(None, is_ascii=items.is_ascii, joined=items.data)


_MOST_BYTES = 2**30


def column_at_hand(block: Block) -> Column:
    """Return a block as a column, if that costs less than to look at its items.

    Raises:
        NotColumnar: it does not.
    """
    if not isinstance(block, Sequence | Iterator):
        return block
    if type(block) is not EncodedLines:
        raise NotColumnar("items that stand in no column")
    return _of_lines(block)


def _of_texts(items: Sequence[Any]) -> Strings:
    found = strings_of(items)
    if found is None:
        raise NotColumnar("a surrogate, or more bytes than Arrow takes")
    return found


def _of_ints(items: Sequence[Any]) -> Column:
    try:
        values = np.array(items, np.int64)
    except OverflowError:
        raise NotColumnar("ints of more than 64 bits") from None
    return Ints(values, int(values.min()), int(values.max()))


def _of_tuples(items: Sequence[Any]) -> Column:
    if len(set(map(len, items))) != 1:
        raise NotColumnar("tuples of several lengths")
    # A member that makes no column stays objects: steps may look at the others alone.
    return Tuples(tuple(_member(list(values)) for values in zip(*items, strict=True)), len(items))


def _member(values: list[Any]) -> Column:
    try:
        return column_of(values)
    except NotColumnar:
        return Objects(values)


_MAKERS: dict[type, Callable[[Sequence[Any]], Column]] = {
    int: _of_ints,
    float: lambda items: Floats(np.array(items, np.float64)),
    bool: lambda items: Bools(np.array(items, np.bool_)),
    str: _of_texts,
}


def items_of(column: Column) -> list[Any]:
    """Return the values as objects of Python."""
    if isinstance(column, LazyRows):
        return list(chain.from_iterable(column.portions()))
    if isinstance(column, Strings | StringLists | Encoded):
        return column.tolist()
    if isinstance(column, ConstantColumn):
        return [column.value] * column.size
    if isinstance(column, Tuples) and column.whole is not None:
        return list(windows_of(column))
    if isinstance(column, Tuples):
        return list(zip(*map(items_of, column.members), strict=True)) if column.members else [()] * column.size
    return column.values if isinstance(column, Objects) else column.values.tolist()


def windows_of(column: Tuples) -> Iterator[tuple[Any, ...]]:
    """Return the tuples of a column that has a `whole`: its values are made once for all of them."""
    from more_itertools import sliding_window  # here: few programs gather windows

    assert column.whole is not None, "they are windows"

    return sliding_window(items_of(column.whole), len(column.members))


def size_of_column(column: Column) -> int:
    """Return how many rows there are."""
    if isinstance(column, Strings | Encoded):
        return len(column)
    return column.size if isinstance(column, ConstantColumn | Tuples | StringLists | LazyRows) else len(column.values)


def rows_of(column: Column, rows: NDArray[np.bool_]) -> Column:
    """Return the rows that are chosen, in order."""
    return rows_at(column, np.flatnonzero(rows))  # Taking places is faster than taking by bools (NumPy 2.4).


def rows_at(column: Column, places: NDArray[np.intp]) -> Column:
    """Return the rows at these places, in their order."""
    if isinstance(column, LazyRows):
        return column.at(places)
    if isinstance(column, Ints | Floats | Bools):
        return of_same_type(column, column.values.take(places))
    if isinstance(column, ConstantColumn):
        return ConstantColumn(column.value, len(places))
    if isinstance(column, Tuples):
        return Tuples(tuple(rows_at(each, places) for each in column.members), len(places))
    if isinstance(column, Strings | StringLists | Encoded):
        return column.taken(places)
    return Objects([column.values[place] for place in places.tolist()], column.is_plain)


def rows_behind(column: Column, count: int) -> Column:
    """Return the rows without the first `count`."""
    return rows_at(column, np.arange(count, size_of_column(column)))


def bytes_of_texts(column: Column) -> int:
    """Return about how many bytes the strings of a column have."""
    if isinstance(column, Tuples):
        return sum(map(bytes_of_texts, column.members))
    if isinstance(column, StringLists):
        return column.members.nbytes()
    return column.nbytes() if isinstance(column, Strings) else 0


def parts_of(column: Column, rows: int) -> Iterator[tuple[Column, int]]:
    """Yield a column in parts of `rows` rows, or fewer with long strings, and how many each has."""
    size = size_of_column(column)
    # A part is pickled as a whole: with long strings it has fewer rows.
    rows = min(rows, max(1, _MOST_OF_PART * size // max(bytes_of_texts(column), 1)))
    if size <= rows:
        yield column, size
        return
    for start in range(0, size, rows):
        places = np.arange(start, min(start + rows, size))
        yield rows_at(column, places), len(places)


_MOST_OF_PART = 4 * 2**20


def numbers(column: Column) -> Ints | Floats | Bools:
    """Return a column of numbers; one value in all rows becomes a scalar, which NumPy combines with arrays.

    Raises:
        NotColumnar: it holds something else.
    """
    if isinstance(column, Ints | Floats | Bools):
        return column
    if isinstance(column, ConstantColumn):
        if type(column.value) is int and LEAST <= column.value <= GREATEST:
            return Ints(np.int64(column.value), column.value, column.value)  # type: ignore[arg-type]
        if type(column.value) is float:
            return Floats(np.float64(column.value))  # type: ignore[arg-type]
        if type(column.value) is bool:
            return Bools(np.bool_(column.value))  # type: ignore[arg-type]
    raise NotColumnar("a value that is no number of 64 bits")


def tight(column: Ints) -> Ints:
    """Return a column of ints with its true least and greatest value."""
    if not np.size(column.values):
        return Ints(column.values, 0, 0)
    return Ints(column.values, int(np.min(column.values)), int(np.max(column.values)))


def typed(column: Column, kind: type | None) -> Column:
    """Return the result column of a step of this kind: the column as it is, or exact ints or floats.

    Raises:
        NotColumnar: it holds something that becomes no int, or no float.
    """
    if kind is None:
        return column
    found = numbers(spread(column))
    if kind is int:
        # Python refuses a float there, with the item.
        if isinstance(found, Floats):
            raise NotColumnar("floats where ints are needed")
        return whole(found)
    return Floats(found.values.astype(np.float64, copy=False))


def spread(column: Column) -> Column:
    """Return the number of all rows as an array."""
    if not isinstance(column, ConstantColumn):
        return column
    one = numbers(column)
    return of_same_type(one, np.full(column.size, one.values))


def of_same_type(column: Ints | Floats | Bools, values: Any) -> Ints | Floats | Bools:
    """Return some values of a column of numbers, none of which is another one, as a column."""
    if isinstance(column, Ints):
        # The bounds stay those of all rows: narrower ones would cost a look at each value.
        return Ints(values, column.least, column.greatest)
    return Floats(values) if isinstance(column, Floats) else Bools(values)


def whole(column: Ints | Bools) -> Ints:
    """Return bools as the ints that they are."""
    return Ints(column.values.astype(np.int64), 0, 1) if isinstance(column, Bools) else column


def stacked(columns: Sequence[Column]) -> Column:
    """Return a column with the rows of all of these, of which there is at least one, in order.

    Raises:
        NotColumnar: their values are of several types.
    """
    first, *others = columns
    if not others:
        return first
    # By identity: equal values may have several types, and a NaN equals none.
    if all(isinstance(each, ConstantColumn) for each in columns) and len({id(each.value) for each in columns}) == 1:  # type: ignore[union-attr]
        return ConstantColumn(first.value, sum(map(size_of_column, columns)))  # type: ignore[union-attr]
    columns = list(map(spread, columns))
    if len(set(map(type, columns))) > 1:
        raise NotColumnar("columns of several types")
    return _of_one_type(columns)


def _of_one_type(columns: Sequence[Any]) -> Column:
    first = columns[0]
    match first:
        case Ints():
            ints = np.concatenate([each.values for each in columns])
            return Ints(ints, min(each.least for each in columns), max(each.greatest for each in columns))
        case Floats():
            return Floats(np.concatenate([each.values for each in columns]))
        case Bools():
            return Bools(np.concatenate([each.values for each in columns]))
        case Objects():
            values = list(chain.from_iterable(each.values for each in columns))
            return Objects(values, all(each.is_plain for each in columns))
        case Strings():
            return _stacked_strings(columns)
        case Encoded():
            return Encoded.stacked(columns)
        case Tuples():
            if len({len(each.members) for each in columns}) > 1:
                raise NotColumnar("tuples of several lengths")
            members = zip(*(each.members for each in columns), strict=True)
            return Tuples(tuple(map(stacked, members)), sum(map(size_of_column, columns)))
    raise NotColumnar(f"columns of {type(first).__name__}")


def _stacked_strings(columns: Sequence[Strings]) -> Strings:
    import pyarrow as pa

    if sum(each.nbytes() for each in columns) > MOST_BYTES:
        raise NotColumnar("texts of more bytes than one array has places for")
    return Strings(pa.concat_arrays([each.values for each in columns]), is_ascii=all(each.is_ascii for each in columns))


def stacked_or_items(columns: Sequence[Column]) -> Column | Iterator[Any]:
    """Return `stacked` of the columns, or the items one after another if their types differ."""
    try:
        return stacked(columns)
    except NotColumnar:
        return chain.from_iterable(map(items_of, columns))


def shape_of(keys: Column, *, are_keys: bool = True) -> Any:
    """Return a description of the types of keys, or of values of lists, that can be put together.

    Raises:
        NotColumnar: they are no numbers, texts or tuples of these, or keys that are objects or None.
    """
    if isinstance(keys, Tuples):
        return Tuples, *(shape_of(each, are_keys=are_keys) for each in keys.members)
    if isinstance(keys, ConstantColumn) and type(keys.value) in (_OF_KEYS if are_keys else _OF_VALUES):
        # By `repr`, which distinguishes 0.0 from -0.0 and finds a NaN equal to itself.
        return ConstantColumn, type(keys.value), repr(keys.value)
    if are_keys and isinstance(keys, Encoded) and keys.are_none().any():
        raise NotColumnar("keys that are None, which Python refuses")
    if isinstance(keys, Ints | Floats | Bools | Strings | Encoded) or (isinstance(keys, Objects) and not are_keys):
        return type(keys)
    raise NotColumnar("keys that are no numbers, texts or tuples of these")


_OF_KEYS = frozenset({int, float, bool, str})
_OF_VALUES = _OF_KEYS | {type(None)}


def has_objects(column: Column) -> bool:
    """Return whether values, or members of tuples, are objects, of which some may be changed, or have no hash."""
    return any(map(has_objects, column.members)) if isinstance(column, Tuples) else isinstance(column, Objects)
