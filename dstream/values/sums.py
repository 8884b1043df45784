"""`ExactSum`: float addition whose result does not depend on how the items were split.

The exact sum of floats is kept as a few floats that do not overlap (an expansion, Shewchuk 1997,
the method behind `math.fsum`). Each round of `math.fsum` gives the rounded rest; the rounds end
when the rest is zero, so no bit is lost and partial sums combine in any grouping. These floats follow from the
sum alone, and NaN and infinities are counted, so whatever was added can be taken out again without a trace.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import chain, islice

from dstream.values.state_values import state_value

__all__ = ["ExactSum"]

_CHUNK = 4096
_MOST_WAITING = 32

Specials = tuple[int, int, int]
"""How many positive infinities there are, negative ones, and NaN."""


@state_value
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
        self._huge = Fraction()  # What no few floats can hold.

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
        """Add the sum that `other` holds."""
        self._parts.extend(other._parts)
        self._huge += other._huge
        if other._special is not None:
            self._special = _each_of(operator.add, self._special, other._special)
        self._compress()

    def deduct(self, other: ExactSum) -> None:
        """Take out the numbers that `other` has added up, which were added here before."""
        other._compress()
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
        return _rounded(self._exact()) if self._huge else math.fsum(self._parts)

    def _exact(self) -> Fraction:
        return self._huge + sum(map(Fraction, self._parts))

    def _compress(self) -> None:
        try:
            self._parts = _expansion(self._parts)
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


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
