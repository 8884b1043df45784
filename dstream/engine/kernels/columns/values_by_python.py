"""What Python itself says: of one value that stands in all rows, and row by row where others find other digits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dstream.engine.kernels.columns.column_values import Column, Floats, Same, Withheld, column_of, size_of_column

__all__ = ["OPERATORS", "by_python", "made"]


def by_python(function: Callable[..., Any], columns: list[Column]) -> Column:
    """Let Python say what one value in all rows gives; each row has a NaN of its own, which equals no other one.

    Raises:
        Withheld: Python raises.
    """
    values = [each.value for each in columns if isinstance(each, Same)]
    try:
        found = function(*values)
    except Exception as error:
        raise Withheld(f"Python raises {type(error).__name__}") from None
    if found == found:
        return Same(found, size_of_column(columns[0]))
    if type(found) is not float:
        raise Withheld("a NaN that is no float")
    return Floats(np.full(size_of_column(columns[0]), found))


def made(values: Callable[[], list[Any]]) -> Column:
    """Return what Python gives for each row as a column."""
    try:
        found = values()
    except Exception as error:
        raise Withheld(f"Python raises {type(error).__name__}") from None
    return column_of(found)


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "not": operator.not_,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda one, among: one in among,
    "not in": lambda one, among: one not in among,
}
