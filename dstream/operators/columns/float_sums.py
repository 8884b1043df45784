"""Exact sums of floats for many groups at once, as digits that add up in ints.

A float is an int times a power of two. Cut into digits of 32 bits at fixed powers, floats of any size add up digit by
digit in ints of 64 bits, in any order and in any parts, as a superaccumulator does (Kulisch). The sum is rounded once,
at the end: the same float as that of `math.fsum`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.base.records import record
from dstream.operators.columns.values import Floats, NotColumnar
from dstream.values import ExactSum

__all__ = ["FloatSums", "are_added_exactly", "float_sums_of_groups", "merged_float_sums"]


Int64s = NDArray[np.int64]

_BITS = 32
_MASK = 2**_BITS - 1
_MANTISSA = 53
_MOST_DIGITS = 24
"""The most digits of a sum: 768 bits, beyond which floats differ by more than a factor of 1e200."""
_FEW_ROWS = 2**15
"""Rows whose digits fit into the cache of a core together."""
_MOST_ROWS = 2**20
"""The most digits that are added up at once: their sum is below 2**52, so that it is a float exactly."""


@record(eq=False)
class FloatSums:
    """A sum of floats for each group.

    Attributes:
        digits: a row for each digit, the lowest first, and a column for each group. The last digit has the sign; all
            others are from 0 to 2**32 - 1.
        lowest: the lowest digit counts `2**(32 * lowest)`.
    """

    digits: Int64s
    lowest: int

    def __len__(self) -> int:
        return len(self.digits[0])

    def __getitem__(self, chosen: NDArray[Any]) -> FloatSums:
        return FloatSums(self.digits[:, chosen], self.lowest)

    def rounded(self) -> NDArray[np.float64]:
        """Return each sum, rounded once to the nearest float; beyond the floats an infinity."""
        is_negative, digits = _magnitudes(self.digits)
        columns = np.arange(len(self))
        padded = np.concatenate((np.zeros((2, len(self)), np.int64), digits))
        is_some = padded != 0
        highest = len(padded) - 1 - np.argmax(is_some[::-1], axis=0)
        # A sum of 0 has no digit: its first is the lowest one, behind which none follows.
        highest = np.maximum(np.where(is_some.any(axis=0), highest, 0), 2)
        first, second, third = (padded[highest - back, columns].view(np.uint64) for back in range(3))
        blanks = (_BITS - np.frexp(first.astype(np.float64))[1]).astype(np.uint64)
        rest = third << (blanks + np.uint64(_BITS))
        is_inexact = (rest != 0) | (np.argmax(is_some, axis=0) < highest - 2)
        # 64 bits, of which the last one marks that others follow: what rounds them to 53 sees which half they are in.
        leading = ((first << np.uint64(_BITS) | second) << blanks | third >> (np.uint64(_BITS) - blanks)) | is_inexact
        exponents = _BITS * (highest - 3 + self.lowest) - blanks.astype(np.int64)
        with np.errstate(over="ignore"):
            # Sums of floats are multiples of the least one: where they are denormal, they are not rounded.
            found = np.ldexp(leading.astype(np.float64), exponents)
        rounded: NDArray[np.float64] = np.where(is_negative, -found, found)
        return rounded

    def each(self) -> Iterator[ExactSum]:
        """Yield the sum of each group, not rounded."""
        is_negative, digits = _magnitudes(self.digits)
        exponents = _BITS * (np.arange(len(digits)) + self.lowest)
        with np.errstate(over="ignore"):
            parts = np.ldexp(np.where(is_negative, -digits, digits).astype(np.float64), exponents[:, np.newaxis])
        are_floats: list[bool] = np.all(np.isfinite(parts), axis=0).tolist()
        for place, (floats, is_exact) in enumerate(zip(parts.T.tolist(), are_floats, strict=True)):
            yield ExactSum.of(floats) if is_exact else ExactSum.of((), self._fraction(place))

    def _fraction(self, place: int) -> Fraction:
        digits: list[int] = self.digits[:, place].tolist()
        whole = sum(digit << _BITS * number for number, digit in enumerate(digits))
        return whole * Fraction(2) ** (_BITS * self.lowest)


def _magnitudes(digits: Int64s) -> tuple[NDArray[np.bool_], Int64s]:
    """Return which sums are negative, and the digits of their absolute values."""
    is_negative = digits[-1] < 0
    return is_negative, _carried(np.where(is_negative, -digits, digits))


def _carried(digits: Int64s) -> Int64s:
    """Return the sums with digits of 32 bits, and a further one if the last one is larger."""
    found = digits.copy()
    for lower, upper in pairwise(found):
        upper += lower >> _BITS
        lower &= _MASK
    last = found[-1]
    if len(last) and (last.min() < -(2**31) or last.max() >= 2**31):
        found = np.concatenate((found, (last >> _BITS)[np.newaxis]))
        found[-2] &= _MASK
    return found


def are_added_exactly(column: Floats) -> bool:
    """Return whether floats have sums of few digits: no infinities, no NaN, and none far larger than another."""
    least, greatest = _bounds_of(column)
    # NaN too, which `max` of NumPy gives wherever there is one.
    if not math.isfinite(greatest):
        return False
    # Each group has an array of the digits: of many rows there may be many groups.
    most = _MOST_DIGITS // 2 if len(column.values) <= _MANY_ROWS else _MOST_DIGITS_OF_MANY
    return bool(np.frexp(greatest)[1] - np.frexp(least)[1] < _BITS * most)


_MANY_ROWS = 2**18
_MOST_DIGITS_OF_MANY = 6


def float_sums_of_groups(places: NDArray[Any], width: int, numbers: Floats) -> FloatSums:
    """Add floats up, for which `are_added_exactly`.

    Args:
        places: the number of the group of each row.
        width: all of them are below it.
        numbers: of the rows.
    """
    lowest, highest = _digits_of(numbers)
    found = np.zeros((highest - lowest + 3, width), np.int64)
    # Rows that fit into the cache, but not so few that it costs more to add up the groups.
    many = min(max(_FEW_ROWS, 4 * (highest - lowest + 1) * width), _MOST_ROWS)
    for start in range(0, len(places), many):
        rows = slice(start, start + many)
        _add_rows(found, places[rows], numbers.values[rows], lowest)
    return FloatSums(_carried(found), lowest)


def _digits_of(numbers: Floats) -> tuple[int, int]:
    """Return the digits in which the lowest bit of the least and of the greatest float is."""
    least, greatest = (int(np.frexp(each)[1]) - _MANTISSA for each in _bounds_of(numbers))
    return least // _BITS, greatest // _BITS


def _bounds_of(numbers: Floats) -> tuple[float, float]:
    """Return the least and the greatest absolute value of numbers that are not 0."""
    sizes = np.abs(numbers.values)
    greatest = float(sizes.max(initial=0.0))
    return float(np.min(sizes, where=sizes > 0, initial=greatest)), greatest


def _add_rows(found: Int64s, places: NDArray[Any], values: NDArray[np.float64], lowest: int) -> None:
    """Add three digits of each number: its mantissa has 53 bits, which are shifted by at most 31."""
    width, firsts = found.shape[1], len(found) - 2
    fractions, exponents = np.frexp(values)
    mantissas = (fractions * 2.0**_MANTISSA).astype(np.int64)
    exponents -= _MANTISSA
    shifts = exponents & (_BITS - 1)
    lower = (mantissas & _MASK) << shifts
    upper = ((mantissas >> _BITS) << shifts) + (lower >> _BITS)
    # 0 has an exponent of its own: it may be in any digit.
    targets = np.clip((exponents >> 5) - lowest, 0, firsts - 1) * np.int64(width) + places if firsts > 1 else places
    for number, digits in enumerate((lower & _MASK, upper & _MASK, upper >> _BITS)):
        sums = np.bincount(targets, weights=digits, minlength=firsts * width)
        found[number : firsts + number] += sums.astype(np.int64).reshape(-1, width)


def merged_float_sums(sums: Sequence[FloatSums], places: NDArray[Any], width: int) -> FloatSums:
    """Return the sums of groups that several tables have.

    Args:
        sums: of each table.
        places: the number of each of their groups, one table after another, among those of the result.
        width: all of them are below it.

    Raises:
        NotColumnar: the sums differ so much that they need many digits.
    """
    # Zeros fit anywhere.
    others = [each for each in sums if each.digits.any()] or list(sums[:1])
    lowest = min(each.lowest for each in others)
    count = max(each.lowest + len(each.digits) for each in others) - lowest
    if count > _MOST_DIGITS:
        raise NotColumnar("floats of which some are far larger than others")
    digits = np.zeros((count, len(places)), np.int64)
    start = 0
    for each in sums:
        if each in others:
            first = each.lowest - lowest
            digits[first : first + len(each.digits), start : start + len(each)] = each.digits
        start += len(each)
    return FloatSums(_carried(np.stack([_sums_of_digits(places, width, row) for row in digits])), lowest)


def _sums_of_digits(places: NDArray[Any], width: int, digits: Int64s) -> Int64s:
    if len(digits) <= _MOST_ROWS:
        return np.bincount(places, weights=digits, minlength=width).astype(np.int64)
    found = np.zeros(width, np.int64)
    np.add.at(found, places, digits)
    return found
