"""Comparisons of columns, the truth of their values, and what depends on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.engine.kernels.columns.column_texts import Lists, Texts
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
    numbers,
    size_of_column,
)
from dstream.engine.kernels.columns.int_arithmetic import is_exact
from dstream.engine.kernels.columns.unmade import Unmade

__all__ = ["compared", "comparisons", "contained", "extreme", "is_none", "merged_columns", "truth"]

comparisons: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def compared(operator: str, left: Column, right: Column) -> Bools:
    """Compare numbers.

    Raises:
        Withheld: others, or an int that is no float with floats: Python compares their exact values.
    """
    one, other = numbers(left), numbers(right)
    if isinstance(one, Floats) != isinstance(other, Floats) and not all(map(_is_float, (one, other))):
        raise Withheld("an int beyond 2**53 beside floats")
    return Bools(comparisons[operator](one.values, other.values))


def _is_float(column: Ints | Floats | Bools) -> bool:
    return is_exact(column) if isinstance(column, Ints) else True


def truth(column: Column) -> NDArray[np.bool_]:
    """Return for each row whether Python takes the value for true.

    Raises:
        Withheld: its values are objects.
    """
    if isinstance(column, Bools):
        return column.values
    if isinstance(column, Ints | Floats):
        values: NDArray[np.bool_] = column.values != 0
        return values
    if isinstance(column, Texts | Lists):
        return column.are_filled()
    if isinstance(column, Objects | Unmade):
        raise Withheld("the truth of an object")
    return np.full(column.size, bool(column.value if isinstance(column, Same) else column.members))


def contained(column: Column, among: Column) -> Bools:
    """Say for each row whether a number is among those of a tuple.

    Raises:
        Withheld: it is no tuple of numbers, or a number is NaN: Python finds one that is the same object.
    """
    if isinstance(among, Same) and type(among.value) is frozenset and len(among.value) > _MANY_MEMBERS:
        return _found_by_hash(column, among.value)
    if isinstance(among, Same) and type(among.value) in (tuple, frozenset):
        among = Tuples(tuple(Same(each, among.size) for each in among.value), among.size)
    if not isinstance(among, Tuples):
        raise Withheld("a container that is no tuple")
    for each in (column, *among.members):
        if isinstance(one := numbers(each), Floats) and np.any(one.values != one.values):
            raise Withheld("a NaN that may be the same object")
    nobody = np.zeros(size_of_column(column), np.bool_)
    return Bools(reduce(np.logical_or, (compared("==", each, column).values for each in among.members), nobody))


_MANY_MEMBERS = 64
"""To compare so many members with 32,768 ints takes as long as to look each int up by its hash (NumPy 2.4)."""


def _found_by_hash(column: Column, among: frozenset[Any]) -> Bools:
    found = numbers(column)
    if isinstance(found, Floats) and np.any(found.values != found.values):
        raise Withheld("a NaN that may be the same object")
    return Bools(np.fromiter(map(among.__contains__, found.values.tolist()), np.bool_))


def is_none(column: Column, none: Column, *, is_wanted: bool) -> Column:
    """Say for each row whether its value is None, or whether it is not."""
    if not isinstance(none, Same) or none.value is not None:
        raise Withheld("an identity")
    if isinstance(column, Objects):
        return Bools(np.fromiter(((each is None) is is_wanted for each in column.values), np.bool_))
    return Same((isinstance(column, Same) and column.value is None) is is_wanted, size_of_column(column))


def extreme(function: str, columns: tuple[Column, ...]) -> Column:
    """Return the least or the greatest of numbers of one type, the first of equals.

    Raises:
        Withheld: they are of several types, so that the type of the result depends on the row.
    """
    better = comparisons["<" if function == "min" else ">"]
    found, *others = map(numbers, columns)
    for each in others:
        if type(each) is not type(found):
            raise Withheld("the least of numbers of several types")
        values: Any = np.where(better(each.values, found.values), each.values, found.values)
        if isinstance(found, Ints) and isinstance(each, Ints):
            choose = min if function == "min" else max
            found = Ints(values, choose(found.least, each.least), choose(found.greatest, each.greatest))
        else:
            found = Floats(values) if isinstance(found, Floats) else Bools(values)
    return found


def merged_columns(chosen: NDArray[np.bool_], first: Column, second: Column) -> Column:
    """Return a column that has the values of `first` in the chosen rows, in order, and those of `second` in the others.

    Raises:
        Withheld: they are of several types.
    """
    if isinstance(first, Same) and isinstance(second, Same) and _are_alike(first.value, second.value):
        return Same(first.value, len(chosen))
    if isinstance(first, Tuples) and isinstance(second, Tuples) and len(first.members) == len(second.members):
        pairs = zip(first.members, second.members, strict=True)
        return Tuples(tuple(merged_columns(chosen, *pair) for pair in pairs), len(chosen))
    if isinstance(first, Texts) or isinstance(second, Texts):
        from dstream.engine.kernels.columns.text_functions import merged_texts  # loads Arrow

        return merged_texts(chosen, first, second)
    if isinstance(first, Objects) and isinstance(second, Objects):
        left, right = iter(items_of(first)), iter(items_of(second))
        return Objects([next(left if each else right) for each in chosen.tolist()])
    return _merged_numbers(chosen, numbers(first), numbers(second))


def _merged_numbers(chosen: NDArray[np.bool_], first: Any, second: Any) -> Column:
    if type(first) is not type(second):
        raise Withheld("values of several types")
    values: Any = np.empty(len(chosen), first.values.dtype)
    values[chosen] = first.values
    values[~chosen] = second.values
    if isinstance(first, Ints):
        return Ints(values, min(first.least, second.least), max(first.greatest, second.greatest))
    return Floats(values) if isinstance(first, Floats) else Bools(values)


def _are_alike(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and type(one) in _PLAIN and repr(one) == repr(other))


_PLAIN = (int, float, bool, str, bytes, type(None))
