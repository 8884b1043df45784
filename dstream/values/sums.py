"""`ExactSum`: float addition whose result does not depend on how the items were split.

The exact sum of floats is kept as a few floats that do not overlap (an expansion, Shewchuk 1997,
the method behind `math.fsum`). Each round of `math.fsum` gives the rounded rest; the rounds end
when the rest is zero, so no bit is lost and partial sums combine in any grouping.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain, islice

__all__ = ["ExactSum"]

_CHUNK = 4096
_MOST_WAITING = 32


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
        self._special: float | None = None
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
            self._parts.append(other._special)
        self._compress()

    def add_fraction(self, number: Fraction) -> None:
        """Add a number that need not be a float."""
        self._huge += number

    def value(self) -> float:
        """Return the sum, rounded once to the nearest float."""
        self._compress()
        if self._special is not None:
            return self._special
        return _rounded(self._huge + sum(map(Fraction, self._parts))) if self._huge else math.fsum(self._parts)

    def _compress(self) -> None:
        if self._special is not None:
            self._special += sum(number for number in self._parts if not math.isfinite(number))
            self._parts = []
            return
        try:
            self._parts = _expansion(self._parts)
        except (OverflowError, ValueError):
            self._settle_specials()

    def _settle_specials(self) -> None:
        specials = [number for number in self._parts if not math.isfinite(number)]
        if specials:
            self._special = sum(specials)
        else:
            self._huge += sum(map(Fraction, self._parts))
        self._parts = []

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactSum):
            return NotImplemented
        mine, theirs = self.value(), other.value()
        return mine == theirs or (mine != mine and theirs != theirs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ExactSum({self.value()!r})"

    def __getstate__(self) -> tuple[list[float], float | None, Fraction]:
        self._compress()
        return self._parts, self._special, self._huge

    def __setstate__(self, state: tuple[list[float], float | None, Fraction]) -> None:
        self._parts, self._special, self._huge = state


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
