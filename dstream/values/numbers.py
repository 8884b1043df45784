"""`ExactSum`, summary statistics, and conversions to the numbers of numeric streams.

The exact sum of floats is stored as a few floats that do not overlap (an expansion, Shewchuk 1997,
the method behind `math.fsum`). Each round of `math.fsum` returns the rounded remainder; the rounds end when the
remainder is zero, so no bit is lost and partial sums combine in any grouping. These floats depend only on the sum, and
NaN and infinities are counted, so every addition can be undone exactly.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import chain, islice
from numbers import Complex, Real
from typing import Any, ClassVar, Generic, Self, TypeVar

from dstream.base.functions import refuse_awaitable
from dstream.failures import shown

__all__ = [
    "DoubleSummaryStatistics",
    "ExactSum",
    "IntSummaryStatistics",
    "SummaryStatistics",
    "exact_float",
    "exact_int",
    "is_complex",
    "mean",
    "rounded",
]


_CHUNK = 4096
_MOST_WAITING = 32
_NOTHING = Fraction()

Specials = tuple[int, int, int]
"""The numbers of positive infinities, negative ones, and NaN."""


class ExactSum:
    """The exact sum of floats; infinities and NaN follow IEEE 754, as `+` does.

    Example:
        >>> total = ExactSum()
        >>> total.add_all([1e100, 1.0, -1e100])
        >>> total.value()
        1.0
    """

    __slots__ = ("_huge", "_parts", "_special")

    def __init__(self) -> None:
        self._parts: list[float] = []
        self._special: Specials | None = None
        self._huge = _NOTHING  # Values that the floats cannot represent.

    @classmethod
    def of(cls, numbers: Iterable[float], exact: Fraction | None = None) -> ExactSum:
        """Return the sum of a few finite floats, and of a number of any numeric type."""
        made = cls()
        made._parts.extend(numbers)
        if exact is not None:
            made.add_fraction(exact)
        return made

    def add(self, number: float) -> None:
        """Add one number."""
        self._parts.append(number)
        if len(self._parts) > _MOST_WAITING:
            self._compress()

    def add_all(self, numbers: Iterable[float]) -> None:
        """Add `numbers`, a few thousand in memory at a time."""
        numbers = iter(numbers)
        while chunk := list(islice(numbers, _CHUNK)):
            self._parts.extend(chunk)
            self._compress()

    def merge(self, other: ExactSum) -> None:
        """Add the sum of `other`."""
        self._parts.extend(other._parts)
        self._huge += other._huge
        if other._special is not None:
            self._special = _each_of(operator.add, self._special, other._special)
        self._compress()

    def deduct(self, other: ExactSum) -> None:
        """Subtract the numbers in the sum of `other`, which were added before."""
        other._compress()
        # These are finite: infinities and NaN are counted, since they have no opposite.
        self._parts.extend(-part for part in other._parts)
        self._huge -= other._huge
        if other._special is not None:
            self._special = _each_of(operator.sub, self._special, other._special)
        self._compress()

    def add_fraction(self, number: Fraction) -> None:
        """Add a number that need not be a float."""
        self._huge += number

    def value(self) -> float:
        """Return the sum, rounded once to the nearest float."""
        self._compress()
        if self._special is not None:
            return _sum_of_specials(*self._special)
        return rounded(self._exact()) if self._huge else math.fsum(self._parts)

    def _exact(self) -> Fraction:
        return self._huge + sum(map(Fraction, self._parts))

    def _compress(self) -> None:
        try:
            self._parts = _expansion(self._parts)
        # `math.fsum` raises the first for a sum beyond floats, the second for infinities of both signs.
        except (OverflowError, ValueError):
            self._settle_specials()

    def _settle_specials(self) -> None:
        specials = [number for number in self._parts if not math.isfinite(number)]
        if specials:
            self._special = _each_of(operator.add, self._special, _counted(specials))
            self._parts = [number for number in self._parts if math.isfinite(number)]
            self._compress()
        else:
            self._huge = self._exact()
            self._parts = []

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactSum):
            return NotImplemented
        self._compress()
        other._compress()
        if self._special != other._special:
            return False
        return self._exact() == other._exact() if self._huge or other._huge else self._parts == other._parts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ExactSum({self.value()!r})"

    def __getstate__(self) -> tuple[list[float], Specials | None, Fraction]:
        self._compress()
        return self._parts, self._special, self._huge

    def __setstate__(self, state: tuple[list[float], Specials | None, Fraction]) -> None:
        self._parts, self._special, self._huge = state


def _counted(specials: list[float]) -> Specials:
    plus, minus = specials.count(math.inf), specials.count(-math.inf)
    return plus, minus, len(specials) - plus - minus


def _each_of(operation: Callable[[int, int], int], left: Specials | None, right: Specials) -> Specials | None:
    plus, minus, nans = map(operation, left or (0, 0, 0), right)
    # None as at first, so that no trace remains of numbers that were deducted.
    return (plus, minus, nans) if plus or minus or nans else None


def _sum_of_specials(plus: int, minus: int, nans: int) -> float:
    if nans or (plus and minus):
        return math.nan
    return math.inf if plus else -math.inf


def _expansion(numbers: list[float]) -> list[float]:
    """Return few floats with the same exact sum, the largest first."""
    parts: list[float] = []
    while rest := math.fsum(chain(numbers, (-part for part in parts))):
        if not math.isfinite(rest):
            raise ValueError("a sum of specials")
        parts.append(rest)
    return parts


def rounded(exact: Fraction) -> float:
    """Return the nearest float; beyond the floats an infinity, as the sum of floats is."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def mean(total: float, count: int) -> float:
    """Return a sum divided by a count above 0."""
    try:
        return total / count
    except OverflowError:  # For ints beyond the range of floats; statistics that raised could not even be displayed.
        return rounded(Fraction(total) / count)


N = TypeVar("N", int, float)


class SummaryStatistics(ABC, Generic[N]):
    """The statistics of numbers; of nothing they are 0, 0, None, None, 0.0.

    Attributes:
        count: the number of numbers.
        min: the minimum, NaN if any is NaN, None if there are no numbers.
        max: the maximum, NaN if any is NaN, None if there are no numbers.
        sum: their sum.
        average: their mean, 0.0 if there are no numbers, infinite if it is beyond the floats.
    """

    _names: ClassVar[tuple[str, ...]] = ("count", "sum", "min", "max", "average")

    def __init__(self) -> None:
        self.count = 0
        self.min: N | None = None
        self.max: N | None = None

    @property
    @abstractmethod
    def sum(self) -> N:
        """The sum of the numbers."""

    @property
    def average(self) -> float:
        """The mean of the numbers; 0.0 if there are none."""
        return mean(self.sum, self.count) if self.count else 0.0

    def accept(self, number: N) -> None:
        """Add one number."""
        self.accept_all((number,))

    def accept_all(self, numbers: Iterable[N]) -> Self:
        """Add `numbers`, a few thousand in memory at a time, and return these statistics."""
        numbers = iter(numbers)
        while chunk := list(islice(numbers, _CHUNK)):
            self._accept_chunk(chunk)
        return self

    def combine(self, other: Self) -> Self:
        """Add the numbers of `other`, and return these statistics."""
        self.count += other.count
        self._add_sum(other)
        for extreme in (other.min, other.max):
            if extreme is not None:
                self._widen(extreme, extreme)
        return self

    def _accept_chunk(self, chunk: list[N]) -> None:
        self.count += len(chunk)
        self._add(chunk)
        self._widen(min(chunk), max(chunk))

    def _widen(self, least: N, greatest: N) -> None:
        self.min = least if self.min is None or least < self.min else self.min
        self.max = greatest if self.max is None or greatest > self.max else self.max

    @abstractmethod
    def _add(self, chunk: list[N]) -> None:
        """Add numbers to the sum."""

    @abstractmethod
    def _add_sum(self, other: Any) -> None:
        """Add the sum of other statistics of the same class to this one."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        # A NaN equals a NaN in this comparison, and 1 differs from 1.0.
        return repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
        return f"{type(self).__name__}({shown})"


class IntSummaryStatistics(SummaryStatistics[int]):
    """Statistics of ints, which do not overflow.

    Example:
        >>> IntSummaryStatistics().accept_all([3, 1, 2])
        IntSummaryStatistics(count=3, sum=6, min=1, max=3, average=2.0)
    """

    def __init__(self) -> None:
        super().__init__()
        self._sum = 0

    @classmethod
    def of(cls, count: int, total: int, least: int, greatest: int) -> IntSummaryStatistics:
        """Return the statistics of one int or more of which these are known."""
        made = cls()
        made.count, made._sum, made.min, made.max = count, total, least, greatest
        return made

    @property
    def sum(self) -> int:
        """The sum of the ints."""
        return self._sum

    def _add(self, chunk: list[int]) -> None:
        self._sum += sum(chunk)

    def _add_sum(self, other: IntSummaryStatistics) -> None:
        self._sum += other._sum


class DoubleSummaryStatistics(SummaryStatistics[float]):
    """Statistics of floats, summed with compensation; one NaN makes sum, min, max and average NaN.

    Example:
        >>> DoubleSummaryStatistics().accept_all([0.1] * 10).sum
        1.0
    """

    def __init__(self) -> None:
        super().__init__()
        self._sum = ExactSum()

    @property
    def sum(self) -> float:
        """The sum of the floats, rounded once; the int 0 becomes 0.0."""
        return self._sum.value()

    def _add(self, chunk: list[float]) -> None:
        self._sum.add_all(chunk)

    def _accept_chunk(self, chunk: list[float]) -> None:
        super()._accept_chunk(chunk)
        # A NaN makes the sum NaN, so that other chunks are not searched for a NaN.
        if self._sum.value() != self._sum.value():
            self._widen_by_nan(chunk)

    def _widen_by_nan(self, chunk: list[float]) -> None:
        nan = next((number for number in chunk if number != number), None)
        if nan is not None:
            self.min = self.max = nan

    def _widen(self, least: float, greatest: float) -> None:
        if least != least or (self.min is not None and self.min != self.min):
            self.min = self.max = float("nan")
        else:
            super()._widen(least, greatest)

    def _add_sum(self, other: DoubleSummaryStatistics) -> None:
        self._sum.merge(other._sum)


def exact_int(value: Any) -> int:
    """Return `value` if it is an int (a bool or a numpy int becomes one).

    Raises:
        TypeError: it is anything else; the message names it.
    """
    if type(value) is int:
        return value
    try:
        return int(operator.index(value))
    except TypeError:
        refuse_awaitable(value)
        raise TypeError(f"an int is needed here, not {type(value).__name__}: {shown(value)}") from None


def exact_float(value: Any) -> float:
    """Return `value` as a float if it is a number.

    Raises:
        TypeError: it is no real number; the message names it.
    """
    if type(value) is float:
        return value
    # `float` would read a number out of a string, and drop the imaginary part of a complex number of NumPy.
    is_number = hasattr(value, "__float__") or hasattr(value, "__index__")
    if not is_number or isinstance(value, str | bytes | bytearray) or is_complex(value):
        refuse_awaitable(value)
        raise TypeError(f"a real number is needed here, not {type(value).__name__}: {shown(value)}")
    return float(value)


def is_complex(value: Any) -> bool:
    """Return whether `value` is a complex number and no real one; its imaginary part may be 0."""
    return isinstance(value, Complex) and not isinstance(value, Real)
