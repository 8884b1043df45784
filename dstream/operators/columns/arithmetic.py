"""Arithmetic, comparison and truth of columns, with the exact values and types of Python.

The bounds of an integer result follow from those of its operands. Only where it may leave 64 bits, the true least and
greatest values of the operands are looked at.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dstream.operators.columns.built_rows import BuiltRows
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.strings import StringLists, Strings
from dstream.operators.columns.values import (
    GREATEST,
    LEAST,
    Bools,
    Column,
    ConstantColumn,
    Floats,
    Ints,
    NotColumnar,
    Objects,
    Tuples,
    column_of,
    items_of,
    numbers,
    size_of_column,
    tight,
)
from dstream.operators.rows.blocks import LazyRows

__all__ = [
    "OPERATORS",
    "by_python",
    "compared",
    "comparisons",
    "contained",
    "extreme",
    "float_operators",
    "float_unaries",
    "floats",
    "int_operators",
    "int_unaries",
    "is_exact",
    "is_none",
    "made",
    "merged_columns",
    "nonzero",
    "quotient_of_ints",
    "truth",
]


def by_python(function: Callable[..., Any], columns: list[Column]) -> Column:
    """Evaluate one value for all rows in Python; each row has a NaN of its own, which equals no other one.

    Raises:
        NotColumnar: Python raises, or the value can be changed.
    """
    values = [each.value for each in columns if isinstance(each, ConstantColumn)]
    try:
        found = function(*values)
        is_itself = found == found  # A signaling NaN of Decimal raises here.
    except Exception as error:
        raise NotColumnar(f"Python raises {type(error).__name__}") from None
    if type(found) in (dict, list, set):
        raise NotColumnar("a container, of which each row has one of its own")
    if is_itself:
        return ConstantColumn(found, size_of_column(columns[0]))
    if type(found) is not float:
        raise NotColumnar("a NaN that is no float")
    return Floats(np.full(size_of_column(columns[0]), found))


def made(values: Callable[[], list[Any]]) -> Column:
    """Return the Python results of each row as a column."""
    try:
        found = values()
    except Exception as error:
        raise NotColumnar(f"Python raises {type(error).__name__}") from None
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


_EXACT = 2**53
"""Up to here each int is a float."""

Interval: TypeAlias = tuple[int, int]
_ANY: Interval = (LEAST - 1, GREATEST + 1)
"""The interval of a result that may be any int."""


def _int_operator(bounds: Callable[[Ints, Ints], Interval], values: Callable[[Any, Any], Any]) -> Any:
    def apply(left: Ints, right: Ints) -> Ints:
        least, greatest = bounds(left, right)
        if least < LEAST or greatest > GREATEST:
            # Bounds that were carried along may be far wider than the values, which are looked at here alone.
            left, right = tight(left), tight(right)
            least, greatest = bounds(left, right)
            if least < LEAST or greatest > GREATEST:
                raise NotColumnar("ints that may need more than 64 bits")
        return Ints(values(left.values, right.values), least, greatest)

    return apply


def _of_sum(left: Ints, right: Ints) -> Interval:
    return left.least + right.least, left.greatest + right.greatest


def _of_difference(left: Ints, right: Ints) -> Interval:
    return left.least - right.greatest, left.greatest - right.least


def _of_product(left: Ints, right: Ints) -> Interval:
    # A product of two intervals has its least and its greatest value at their ends.
    corners = [one * other for one in _ends(left) for other in _ends(right)]
    return min(corners), max(corners)


def _of_floor(left: Ints, right: Ints) -> Interval:
    nonzero(right)
    # On either side of zero the quotient changes in one direction with the divisor.
    divisors = [each for each in (*_ends(right), -1, 1) if each and right.least <= each <= right.greatest]
    corners = [value // divisor for value in _ends(left) for divisor in divisors or [1]]
    return min(corners), max(corners)


def _of_modulo(left: Ints, right: Ints) -> Interval:
    nonzero(right)
    if left.least == LEAST and right.least <= -1 <= right.greatest:
        raise NotColumnar("a division that processors refuse")
    if left.least >= 0 and right.least > left.greatest:
        return left.least, left.greatest
    return min(right.least + 1, 0), max(right.greatest - 1, 0)


def _modulo(left: Any, right: Any) -> Any:
    if np.ndim(right) or right < 1:
        return np.remainder(left, right)
    if not right & (right - 1):
        return left & (right - 1)  # The last bits of a negative int in two's complement are what Python gives.
    # NumPy (2.4) multiplies where it divides by one number, for quotients alone. What wraps here wraps back.
    multiples = np.floor_divide(left, right)
    multiples *= right
    return np.subtract(left, multiples, out=multiples)


def _of_left_shift(left: Ints, right: Ints) -> Interval:
    if right.least < 0 or right.greatest > 63:
        return _ANY
    corners = [value << places for value in _ends(left) for places in _ends(right)]
    return min(corners), max(corners)


def _of_right_shift(left: Ints, right: Ints) -> Interval:
    if right.least < 0 or right.greatest > 63:
        return _ANY
    corners = [value >> places for value in _ends(left) for places in _ends(right)]
    return min(corners), max(corners)


def _of_bits(left: Ints, right: Ints) -> Interval:
    ends = (*_ends(left), *_ends(right))
    # In two's complement no result has more bits than the longest operand; `~` measures negative ones.
    bits = max(each.bit_length() if each >= 0 else (~each).bit_length() for each in ends)
    return (0 if min(ends) >= 0 else -(1 << bits)), (1 << bits) - 1


def _of_power(base: Ints, exponent: Ints) -> Interval:
    most = max(map(abs, _ends(base)))
    # Beyond 128 by this measure the power has more than 64 bits for certain, and to compute it could take minutes.
    if exponent.least < 0 or (most > 1 and most.bit_length() * exponent.greatest > 128):
        return _ANY  # A negative power is a float.
    return min(-(most**exponent.greatest), 0), max(most**exponent.greatest, 1)


def _ends(column: Ints) -> Interval:
    return column.least, column.greatest


int_operators: dict[str, Callable[[Ints, Ints], Ints]] = {
    "+": _int_operator(_of_sum, np.add),
    "-": _int_operator(_of_difference, np.subtract),
    "*": _int_operator(_of_product, np.multiply),
    "//": _int_operator(_of_floor, np.floor_divide),
    "%": _int_operator(_of_modulo, _modulo),
    "<<": _int_operator(_of_left_shift, np.left_shift),
    ">>": _int_operator(_of_right_shift, np.right_shift),
    "&": _int_operator(_of_bits, np.bitwise_and),
    "|": _int_operator(_of_bits, np.bitwise_or),
    "^": _int_operator(_of_bits, np.bitwise_xor),
    "**": _int_operator(_of_power, np.power),
}


def quotient_of_ints(left: Ints, right: Ints) -> Floats:
    """Return `left / right`: floats divide as Python's ints do where each int is a float."""
    nonzero(right)
    for each in (left, right):
        if not is_exact(each):
            raise NotColumnar("a division of ints beyond 2**53")
    return Floats(np.true_divide(left.values, right.values))


def is_exact(column: Ints) -> bool:
    """Return whether each of the ints is a float."""
    if not -_EXACT <= column.least <= column.greatest <= _EXACT:
        column = tight(column)
    return -_EXACT <= column.least <= column.greatest <= _EXACT


def nonzero(divisor: Ints | Floats | Bools) -> None:
    """Check that no divisor is zero.

    Raises:
        NotColumnar: there is one.
    """
    if isinstance(divisor, Ints) and (divisor.least > 0 or divisor.greatest < 0):
        return
    if not np.all(divisor.values):
        raise NotColumnar("a division by zero")


def _int_unary(bounds: Callable[[Ints], Interval], values: Callable[[Any], Any]) -> Callable[[Ints], Ints]:
    def apply(of: Ints) -> Ints:
        least, greatest = bounds(of)
        # The least int alone leaves 64 bits here, and at the upper end.
        if greatest > GREATEST:
            of = tight(of)
            least, greatest = bounds(of)
            if greatest > GREATEST:
                raise NotColumnar("ints that may need more than 64 bits")
        return Ints(values(of.values), least, greatest)

    return apply


def _of_absolute(of: Ints) -> Interval:
    if of.least <= 0 <= of.greatest:
        return 0, max(-of.least, of.greatest)
    least, greatest = sorted(map(abs, _ends(of)))
    return least, greatest


int_unaries: dict[str, Callable[[Ints], Ints]] = {
    "neg": _int_unary(lambda of: (-of.greatest, -of.least), np.negative),
    "pos": lambda of: of,
    "invert": _int_unary(lambda of: (~of.greatest, ~of.least), np.invert),
    "abs": _int_unary(_of_absolute, np.abs),
}


def floats(column: Ints | Floats | Bools) -> Floats:
    """Return numbers as floats: both processors and Python round an int to the nearest, half to even."""
    return Floats(column.values.astype(np.float64, copy=False))


def _float_operator(values: Callable[[Any, Any], Any]) -> Callable[[Floats, Floats], Floats]:
    return lambda left, right: Floats(values(left.values, right.values))


def _division(values: Callable[[Any, Any], Any]) -> Callable[[Floats, Floats], Floats]:
    def apply(left: Floats, right: Floats) -> Floats:
        nonzero(right)
        return Floats(values(left.values, right.values))

    return apply


float_operators: dict[str, Callable[[Floats, Floats], Floats]] = {
    "+": _float_operator(np.add),
    "-": _float_operator(np.subtract),
    "*": _float_operator(np.multiply),
    "/": _division(np.true_divide),
    # NumPy computes both as CPython does: 118,335 pairs of odd floats gave no difference.
    "//": _division(np.floor_divide),
    "%": _division(np.remainder),
}

float_unaries: dict[str, Callable[[Floats], Floats]] = {
    "neg": lambda of: Floats(np.negative(of.values)),
    "pos": lambda of: of,
    "abs": lambda of: Floats(np.abs(of.values)),
}


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
        NotColumnar: others, or an int that is no float with floats: Python compares their exact values.
    """
    one, other = numbers(left), numbers(right)
    if isinstance(one, Floats) != isinstance(other, Floats) and not all(map(_is_float, (one, other))):
        raise NotColumnar("an int beyond 2**53 beside floats")
    return Bools(comparisons[operator](one.values, other.values))


def _is_float(column: Ints | Floats | Bools) -> bool:
    return is_exact(column) if isinstance(column, Ints) else True


def truth(column: Column) -> NDArray[np.bool_]:
    """Return for each row whether Python takes the value for true.

    Raises:
        NotColumnar: its values are objects.
    """
    if isinstance(column, Bools):
        return column.values
    if isinstance(column, Ints | Floats):
        values: NDArray[np.bool_] = column.values != 0
        return values
    if isinstance(column, Strings | StringLists):
        return column.are_filled()
    if isinstance(column, Encoded):
        return column.truth()
    if isinstance(column, Objects) and column.is_plain:
        return np.fromiter(map(bool, column.values), np.bool_, len(column.values))
    if isinstance(column, Objects | LazyRows):
        raise NotColumnar("the truth of an object")
    return np.full(column.size, bool(column.value if isinstance(column, ConstantColumn) else column.members))


def contained(column: Column, among: Column) -> Bools:
    """Return for each row whether a number is among those of a tuple.

    Raises:
        NotColumnar: it is no tuple of numbers, or a number is NaN: Python finds one that is the same object.
    """
    if isinstance(among, ConstantColumn) and _has_hashes(among.value):
        return _found_by_hash(column, among.value)
    if isinstance(among, ConstantColumn) and type(among.value) in (tuple, frozenset, list):
        among = Tuples(tuple(ConstantColumn(each, among.size) for each in among.value), among.size)
    if not isinstance(among, Tuples):
        raise NotColumnar("a container that is no tuple")
    for each in (column, *among.members):
        if isinstance(one := numbers(each), Floats) and np.any(one.values != one.values):
            raise NotColumnar("a NaN that may be the same object")
    nobody = np.zeros(size_of_column(column), np.bool_)
    return Bools(reduce(np.logical_or, (compared("==", each, column).values for each in among.members), nobody))


_MANY_MEMBERS = 64
"""The number of members whose comparison with 32,768 ints takes as long as a hash lookup of each int (NumPy 2.4)."""


def _has_hashes(value: Any) -> bool:
    """Return whether members of a constant are found by their hashes, as fast as by comparisons."""
    return type(value) in (dict, set) or (type(value) is frozenset and len(value) > _MANY_MEMBERS)


def _found_by_hash(column: Column, among: Container[Any]) -> Bools:
    found = numbers(column)
    if isinstance(found, Floats) and np.any(found.values != found.values):
        raise NotColumnar("a NaN that may be the same object")
    return Bools(np.fromiter(map(among.__contains__, found.values.tolist()), np.bool_))


def is_none(column: Column, none: Column, *, is_wanted: bool) -> Column:
    """Return for each row whether its value is None, or whether it is not."""
    if not isinstance(none, ConstantColumn) or none.value is not None:
        raise NotColumnar("an identity")
    if isinstance(column, Encoded):
        return Bools(column.are_none() == is_wanted)
    if isinstance(column, Objects):
        return Bools(np.fromiter(((each is None) is is_wanted for each in column.values), np.bool_))
    return ConstantColumn(
        (isinstance(column, ConstantColumn) and column.value is None) is is_wanted, size_of_column(column)
    )


def extreme(function: str, columns: tuple[Column, ...]) -> Column:
    """Return the least or the greatest of numbers of one type, the first of equals.

    Raises:
        NotColumnar: there are none, or they are of several types, so that the type of the result depends on the row.
    """
    if not columns:
        raise NotColumnar("the least of nothing")
    better = comparisons["<" if function == "min" else ">"]
    found, *others = map(numbers, columns)
    for each in others:
        if type(each) is not type(found):
            raise NotColumnar("the least of numbers of several types")
        # Not `np.minimum`, which returns NaN for any NaN (NumPy 2.4): Python's stays unless another value is less.
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
        NotColumnar: they are of several types.
    """
    if (
        isinstance(first, ConstantColumn)
        and isinstance(second, ConstantColumn)
        and _are_alike(first.value, second.value)
    ):
        return ConstantColumn(first.value, len(chosen))
    if isinstance(first, Tuples) and isinstance(second, Tuples) and len(first.members) == len(second.members):
        pairs = zip(first.members, second.members, strict=True)
        return Tuples(tuple(merged_columns(chosen, *pair) for pair in pairs), len(chosen))
    if isinstance(first, Encoded) or isinstance(second, Encoded):
        from dstream.operators.columns.encoded_calls import merged_values  # loads Arrow

        return merged_values(chosen, first, second)
    if isinstance(first, BuiltRows) and isinstance(second, BuiltRows) and first.has_layout_of(second):
        members = {name: merged_columns(chosen, each, second.members[name]) for name, each in first.members.items()}
        return BuiltRows(first.kind, members, len(chosen))
    if isinstance(first, Strings) or isinstance(second, Strings) or _are_strings(first, second):
        from dstream.operators.columns.string_methods import merged_texts  # loads Arrow

        return merged_texts(chosen, first, second)
    if isinstance(first, Objects) and isinstance(second, Objects):
        left, right = iter(items_of(first)), iter(items_of(second))
        merged = [next(left if each else right) for each in chosen.tolist()]
        return Objects(merged, first.is_plain and second.is_plain)
    return _merged_numbers(chosen, numbers(first), numbers(second))


def _are_strings(*columns: Column) -> bool:
    return all(isinstance(each, ConstantColumn) and type(each.value) is str for each in columns)


def _merged_numbers(chosen: NDArray[np.bool_], first: Any, second: Any) -> Column:
    if type(first) is not type(second):
        raise NotColumnar("values of several types")
    values: Any = np.empty(len(chosen), first.values.dtype)
    values[chosen] = first.values
    values[~chosen] = second.values
    if isinstance(first, Ints):
        return Ints(values, min(first.least, second.least), max(first.greatest, second.greatest))
    return Floats(values) if isinstance(first, Floats) else Bools(values)


def _are_alike(one: Any, other: Any) -> bool:
    # By `repr`, which distinguishes 0.0 from -0.0, and by type, which distinguishes 1 from True.
    return one is other or (type(one) is type(other) and type(one) in _PLAIN and repr(one) == repr(other))


_PLAIN = (int, float, bool, str, bytes, type(None))
