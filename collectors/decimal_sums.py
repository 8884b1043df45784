"""`DecimalSum`: the exact sum of decimals, from which numbers can be taken out again."""

from __future__ import annotations

import decimal
from decimal import Decimal

from dstream.values import ExactSum
from dstream.values.state_values import state_value

__all__ = ["DecimalSum"]

_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
"""Adds decimals without rounding: a sum has as many digits as it needs."""


@state_value
class DecimalSum:
    """The sum of decimals; infinities and NaN follow IEEE 754, and are kept apart.

    What is left after a `deduct` is the same number as if the others had never been there. It may show more zeros at
    its end: a sum has as many decimal places as the longest number that was ever in it.
    """

    __slots__ = ("_finite", "_special")

    def __init__(self, finite: Decimal | None = None, special: ExactSum | None = None) -> None:
        self._finite = finite
        self._special = special

    def add_all(self, numbers: list[Decimal]) -> None:
        """Add numbers."""
        total = self._added(numbers)
        if total is not None and not total.is_finite():
            self._specials().add_all(
                float("nan" if each.is_nan() else each) for each in numbers if not each.is_finite()
            )
            total = self._added([each for each in numbers if each.is_finite()])
        self._finite = total

    def _added(self, numbers: list[Decimal]) -> Decimal | None:
        total = self._finite
        for number in numbers:
            total = number if total is None else _EXACT.add(total, number)
        return total

    def merge(self, other: DecimalSum) -> None:
        """Add the sum that `other` holds."""
        if other._finite is not None:
            self.add_all([other._finite])
        if other._special is not None:
            self._specials().merge(other._special)

    def deduct(self, other: DecimalSum) -> None:
        """Take out the numbers that `other` has added up, which were added here before."""
        if other._finite is not None:
            self._finite = _EXACT.subtract(self._finite or Decimal(), other._finite)
        if other._special is not None:
            self._specials().deduct(other._special)

    def plus(self, whole: int) -> Decimal:
        """Return the sum of the numbers and an int, not rounded."""
        special = 0.0 if self._special is None else self._special.value()
        if special:
            return Decimal(special)
        finite = Decimal() if self._finite is None else self._finite
        return _EXACT.add(finite, Decimal(whole)) if whole else finite

    def _specials(self) -> ExactSum:
        if self._special is None:
            self._special = ExactSum()
        return self._special

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DecimalSum):
            return NotImplemented
        if (self._special or _NONE) != (other._special or _NONE):
            return False
        return (self._finite or Decimal()) == (other._finite or Decimal())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[DecimalSum], tuple[Decimal | None, ExactSum | None]]:
        return DecimalSum, (self._finite, self._special)


_NONE = ExactSum()
