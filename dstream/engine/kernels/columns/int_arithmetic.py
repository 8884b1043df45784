"""Arithmetic of ints in 64 bits, where it gives what Python's ints of any size give.

Between which two values a result lies follows from those of its operands. Only where it may leave 64 bits, the true
least and greatest values of the operands are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from dstream.engine.kernels.columns.column_values import GREATEST, LEAST, Bools, Floats, Ints, Withheld, tight

__all__ = ["int_operators", "int_unaries", "is_exact", "nonzero", "quotient_of_ints"]

_EXACT = 2**53
"""Up to here each int is a float."""

Interval: TypeAlias = tuple[int, int]
_ANY: Interval = (LEAST - 1, GREATEST + 1)
"""Where nothing can be said."""


def _operator(bounds: Callable[[Ints, Ints], Interval], values: Callable[[Any, Any], Any]) -> Any:
    def apply(left: Ints, right: Ints) -> Ints:
        least, greatest = bounds(left, right)
        if least < LEAST or greatest > GREATEST:
            left, right = tight(left), tight(right)
            least, greatest = bounds(left, right)
            if least < LEAST or greatest > GREATEST:
                raise Withheld("ints that may need more than 64 bits")
        return Ints(values(left.values, right.values), least, greatest)

    return apply


def _of_sum(left: Ints, right: Ints) -> Interval:
    return left.least + right.least, left.greatest + right.greatest


def _of_difference(left: Ints, right: Ints) -> Interval:
    return left.least - right.greatest, left.greatest - right.least


def _of_product(left: Ints, right: Ints) -> Interval:
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
        raise Withheld("a division that processors refuse")
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
    bits = max(each.bit_length() if each >= 0 else (~each).bit_length() for each in ends)
    return (0 if min(ends) >= 0 else -(1 << bits)), (1 << bits) - 1


def _of_power(base: Ints, exponent: Ints) -> Interval:
    most = max(map(abs, _ends(base)))
    if exponent.least < 0 or (most > 1 and most.bit_length() * exponent.greatest > 128):
        return _ANY  # A negative power is a float.
    return min(-(most**exponent.greatest), 0), max(most**exponent.greatest, 1)


def _ends(column: Ints) -> Interval:
    return column.least, column.greatest


int_operators: dict[str, Callable[[Ints, Ints], Ints]] = {
    "+": _operator(_of_sum, np.add),
    "-": _operator(_of_difference, np.subtract),
    "*": _operator(_of_product, np.multiply),
    "//": _operator(_of_floor, np.floor_divide),
    "%": _operator(_of_modulo, _modulo),
    "<<": _operator(_of_left_shift, np.left_shift),
    ">>": _operator(_of_right_shift, np.right_shift),
    "&": _operator(_of_bits, np.bitwise_and),
    "|": _operator(_of_bits, np.bitwise_or),
    "^": _operator(_of_bits, np.bitwise_xor),
    "**": _operator(_of_power, np.power),
}


def quotient_of_ints(left: Ints, right: Ints) -> Floats:
    """Return `left / right`: floats divide as Python's ints do where each int is a float."""
    nonzero(right)
    for each in (left, right):
        if not is_exact(each):
            raise Withheld("a division of ints beyond 2**53")
    return Floats(np.true_divide(left.values, right.values))


def is_exact(column: Ints) -> bool:
    """Say whether each of the ints is a float."""
    if not -_EXACT <= column.least <= column.greatest <= _EXACT:
        column = tight(column)
    return -_EXACT <= column.least <= column.greatest <= _EXACT


def nonzero(divisor: Ints | Floats | Bools) -> None:
    """Look for a zero among divisors.

    Raises:
        Withheld: there is one.
    """
    if isinstance(divisor, Ints) and (divisor.least > 0 or divisor.greatest < 0):
        return
    if not np.all(divisor.values):
        raise Withheld("a division by zero")


def _unary(bounds: Callable[[Ints], Interval], values: Callable[[Any], Any]) -> Callable[[Ints], Ints]:
    def apply(of: Ints) -> Ints:
        least, greatest = bounds(of)
        if greatest > GREATEST:
            of = tight(of)
            least, greatest = bounds(of)
            if greatest > GREATEST:
                raise Withheld("ints that may need more than 64 bits")
        return Ints(values(of.values), least, greatest)

    return apply


def _of_absolute(of: Ints) -> Interval:
    if of.least <= 0 <= of.greatest:
        return 0, max(-of.least, of.greatest)
    least, greatest = sorted(map(abs, _ends(of)))
    return least, greatest


int_unaries: dict[str, Callable[[Ints], Ints]] = {
    "neg": _unary(lambda of: (-of.greatest, -of.least), np.negative),
    "pos": lambda of: of,
    "invert": _unary(lambda of: (~of.greatest, ~of.least), np.invert),
    "abs": _unary(_of_absolute, np.abs),
}
