"""Accumulators of sums, averages and statistics: exact, mergeable in any order, compact."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Self

from dstream.base.records import record
from dstream.collectors.batches import Batched, Prepared, Waiting, kinds
from dstream.values import DoubleSummaryStatistics, ExactSum, IntSummaryStatistics

__all__ = ["DecimalSum", "Summaries", "Summary", "Total", "Totals"]


_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
"""Context that adds decimals without rounding: a sum has as many digits as it needs."""


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
            # `float` of a signaling NaN raises a ValueError.
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


_INTS = frozenset({int})
_FLOATS = frozenset({float})
_COUNT_BITS = 48
_COUNT = (1 << _COUNT_BITS) - 1

Number = int | float | Decimal | Fraction | complex


class Total(Batched[Number]):
    """The count and the exact sum of numbers.

    Each kind adds up in its own arithmetic: ints, floats as an `ExactSum`, decimals as a `DecimalSum`, fractions; the
    real parts of complex numbers are floats, and their imaginary parts add up apart. They meet when the sum is asked
    for, which is then rounded once. All but ints are counted too, so that a kind is gone when the last number of it
    was taken out.
    """

    __slots__ = (
        "_count",
        "_decimal",
        "_decimal_count",
        "_fraction",
        "_fraction_count",
        "_imaginary",
        "_imaginary_count",
        "_ratio",
        "_ratio_count",
        "_whole",
    )

    def __init__(
        self,
        pending: list[Number] | None = None,
        count: int = 0,
        whole: int = 0,
        fraction: ExactSum | None = None,
        fraction_count: int = 0,
        decimal: DecimalSum | None = None,
        decimal_count: int = 0,
        ratio: Fraction | None = None,
        ratio_count: int = 0,
        imaginary: ExactSum | None = None,
        imaginary_count: int = 0,
    ) -> None:
        self._pending = [] if pending is None else pending
        self._count = count
        self._whole: int = whole
        self._fraction = fraction
        self._fraction_count = fraction_count
        self._decimal = decimal
        self._decimal_count = decimal_count
        self._ratio = ratio
        self._ratio_count = ratio_count
        self._imaginary = imaginary
        self._imaginary_count = imaginary_count

    def sum(self) -> Number:
        """Return the sum: an int unless other numbers were there.

        Raises:
            TypeError: there were decimals, and floats, fractions or complex numbers.
        """
        # Numbers that were added up before may be of any kind.
        held = set() if self._count else kinds(self._pending)
        if held == _INTS:
            return sum(self._pending)
        if held == _FLOATS:
            with suppress(OverflowError, ValueError):  # infinities: `ExactSum` adds them
                return math.fsum(self._pending)  # type: ignore[arg-type]
        self.settle()
        if self._decimal is not None:
            return decimal.getcontext().plus(self._of_decimals(self._decimal))
        if self._fraction is None:
            return self._whole if self._ratio is None else self._ratio + self._whole
        total = ExactSum()
        total.merge(self._fraction)
        exact = self._ratio or Fraction()
        try:
            total.add_all(_exact_floats(self._whole))
        except OverflowError:  # At its first part: it is beyond the floats.
            exact += self._whole
        total.add_fraction(exact)
        return total.value() if self._imaginary is None else complex(total.value(), self._imaginary.value())

    def _of_decimals(self, total: DecimalSum) -> Decimal:
        """Return the sum of decimals and ints, not rounded."""
        if self._fraction is not None or self._ratio is not None:
            other = "Fraction" if self._fraction is None else "float" if self._imaginary is None else "complex"
            raise TypeError(f"a Decimal and a {other} cannot be added: give numbers of one kind")
        return total.plus(self._whole)

    def average(self) -> Number:
        """Return the mean, 0.0 of nothing; that of floats is their rounded sum, divided.

        Raises:
            OverflowError: the mean of ints is too large for a float.
        """
        count = self._count + len(self._pending)
        if not count:
            return 0.0
        total = self.sum()
        if isinstance(total, complex):
            return complex(total.real / count, total.imag / count)
        return (total if self._decimal is None else self._of_decimals(self._decimal)) / count

    def _take(self, values: list[Number]) -> None:
        self._count += len(values)
        held = kinds(values)
        if held == _INTS:
            self._whole += sum(values)  # type: ignore[assignment]
        elif held == _FLOATS:
            self._fraction_count += len(values)
            self._floats().add_all(values)  # type: ignore[arg-type]
        else:
            self._take_mixed(values, held)

    def _take_mixed(self, values: list[Number], held: set[type]) -> None:
        self._whole += sum(value for value in values if type(value) is int)
        if float in held:
            floats = [value for value in values if type(value) is float]
            self._fraction_count += len(floats)
            self._floats().add_all(floats)
        if complex in held:
            self._take_complex([value for value in values if type(value) is complex])
        if Decimal in held:
            decimals = [value for value in values if type(value) is Decimal]
            self._decimal_count += len(decimals)
            self._decimals().add_all(decimals)
        if Fraction in held:
            ratios = [value for value in values if type(value) is Fraction]
            self._ratio_count += len(ratios)
            self._ratio = sum(ratios, self._ratio or Fraction())

    def _take_complex(self, values: list[complex]) -> None:
        self._fraction_count += len(values)
        self._floats().add_all(value.real for value in values)
        self._imaginary_count += len(values)
        self._imaginaries().add_all(value.imag for value in values)

    def _imaginaries(self) -> ExactSum:
        if self._imaginary is None:
            self._imaginary = ExactSum()
        return self._imaginary

    def _floats(self) -> ExactSum:
        if self._fraction is None:
            self._fraction = ExactSum()
        return self._fraction

    def _decimals(self) -> DecimalSum:
        if self._decimal is None:
            self._decimal = DecimalSum()
        return self._decimal

    def _take_from(self, other: Total) -> None:
        self._count += other._count
        self._whole += other._whole
        self._fraction_count += other._fraction_count
        self._decimal_count += other._decimal_count
        self._ratio_count += other._ratio_count
        self._imaginary_count += other._imaginary_count
        if other._fraction is not None:
            self._floats().merge(other._fraction)
        if other._decimal is not None:
            self._decimals().merge(other._decimal)
        if other._ratio is not None:
            self._ratio = (self._ratio or Fraction()) + other._ratio
        if other._imaginary is not None:
            self._imaginaries().merge(other._imaginary)

    def deduct(self, other: Total) -> None:
        """Take out the numbers of `other`, which were taken in before."""
        self.settle()
        other.settle()
        self._count -= other._count
        self._whole -= other._whole
        self._fraction_count -= other._fraction_count
        self._decimal_count -= other._decimal_count
        self._ratio_count -= other._ratio_count
        self._imaginary_count -= other._imaginary_count
        if other._fraction is not None:
            self._floats().deduct(other._fraction)
        if other._decimal is not None:
            self._decimals().deduct(other._decimal)
        if other._ratio is not None:
            self._ratio = (self._ratio or Fraction()) - other._ratio
        if other._imaginary is not None:
            self._imaginaries().deduct(other._imaginary)
        self._forget_what_is_gone()

    def _forget_what_is_gone(self) -> None:
        self._fraction = self._fraction if self._fraction_count else None
        self._decimal = self._decimal if self._decimal_count else None
        self._ratio = self._ratio if self._ratio_count else None
        self._imaginary = self._imaginary if self._imaginary_count else None

    def of_ints_alone(self) -> tuple[int, int] | None:
        """Return the count and the sum if there are no other numbers than ints."""
        self.settle()
        # Complex numbers are counted among the floats, too.
        others = self._fraction_count or self._decimal_count or self._ratio_count
        return None if others else (self._count, self._whole)

    def __eq__(self, other: object) -> bool:
        """Compare the accumulated numbers, also with the forms that `Totals` give a container of few numbers."""
        if not isinstance(other, int | list | Total):
            return NotImplemented
        return self._parts() == _as_total(other)._parts()

    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> tuple[object, ...]:
        self.settle()
        counts = (self._count, self._fraction_count, self._decimal_count, self._ratio_count, self._imaginary_count)
        return counts, self._whole, self._fraction, self._decimal, self._ratio, self._imaginary

    def __reduce__(self) -> tuple[type[Total], tuple[object, ...]]:
        # A few numbers in place of nested objects: a grouping sends one container for each key.
        if not self._count:
            return Total, (self._pending,)
        settled: tuple[object, ...] = (self._count, self._whole, self._fraction, self._fraction_count)
        others = (self._decimal, self._decimal_count, self._ratio, self._ratio_count)
        if self._decimal is not None or self._ratio is not None or self._imaginary is not None:
            settled += (*others, self._imaginary, self._imaginary_count)
        return Total, (self._pending, *settled)


def _exact_floats(whole: int) -> Iterator[float]:
    """Yield floats whose exact sum is `whole`."""
    while whole:
        # A float has 53 bits, so that a large int needs several.
        part = float(whole)
        yield part
        whole -= int(part)


@record(slots=False)
class Totals(Waiting[Number]):
    """Containers of the count and the sum of numbers, of which a grouping holds many.

    While all numbers are ints, a container is one int: their sum, shifted to leave the low 48 bits to their count.
    Two such ints add up to that of both. An int takes less memory than a list, is sent and read faster, and the
    collector of cyclic garbage does not look at it. With the first float the container becomes a list, then a `Total`.
    """

    kind: type[Batched[Number]] = Total

    supplier: ClassVar[type] = int

    def steps(self, prepare: Callable[[list[Any]], list[Any]]) -> Prepared:
        """Return how batches get into containers, also into those of many keys at once."""
        return Prepared(prepare, self.add, self.add_all, self.add_each, changes=_changes_of_ints)

    def add(self, container: Any, value: Number) -> Any:
        """Take one number in; return the container."""
        if type(container) is not int:
            return super().add(container, value)
        if type(value) is int:
            return container + (value << _COUNT_BITS) + 1
        return super().add(_opened(container), value)

    def add_all(self, container: Any, values: Iterable[Number]) -> Any:
        """Take numbers in; return the container."""
        if type(container) is not int:
            return super().add_all(container, values)
        values = list(values)
        if kinds(values) <= _INTS:
            return container + (sum(values) << _COUNT_BITS) + len(values)  # type: ignore[operator]
        return super().add_all(_opened(container), values)

    def add_ints(self, container: Any, count: int, total: int) -> Any:
        """Take ints in of which count and sum are known; return the container."""
        if type(container) is int:
            return container + (total << _COUNT_BITS) + count
        return self.merge(container, (total << _COUNT_BITS) + count)

    def add_floats(self, container: Any, count: int, total: ExactSum) -> Any:
        """Take floats in of which count and sum are known; return the container."""
        if count < 2:
            # One float takes less memory in a list than as a sum.
            return self.add(container, total.value()) if count else container
        return self.merge(container, Total(None, count, 0, total, count))

    def add_each(self, groups: dict[Any, Any], keys: list[Any], values: list[Any]) -> bool:
        """Take each number into the container of its key if all are ints; return whether they are."""
        if not kinds(values) <= _INTS:
            return False
        container_of = groups.get
        for key, value in zip(keys, values, strict=True):
            try:
                groups[key] = container_of(key, 0) + (value << _COUNT_BITS) + 1
            except TypeError:  # A list or a `Total`, since a float was among its numbers.
                groups[key] = self.add(groups[key], value)
        return True

    def merge(self, left: Any, right: Any) -> Any:
        """Return a container with the numbers of both."""
        if type(left) is int and type(right) is int:
            return left + right
        return super().merge(*(_opened(each) if type(each) is int else each for each in (left, right)))

    def deduct(self, left: Any, right: Any) -> Any:
        """Return `left` without the numbers of `right`, which was merged into it: one int if ints are left."""
        if type(left) is int and type(right) is int:
            return left - right
        total = _as_total(left)
        total.deduct(_as_total(right))
        ints = total.of_ints_alone()
        return total if ints is None else (ints[1] << _COUNT_BITS) + ints[0]

    def sum(self, container: Any) -> Any:
        """Return the sum: an int unless other numbers were there."""
        return container >> _COUNT_BITS if type(container) is int else self.finished(Total.sum, container)

    def average(self, container: Any) -> Any:
        """Return the mean, 0.0 of nothing.

        Raises:
            OverflowError: the mean of ints is too large for a float.
        """
        if type(container) is not int:
            return self.finished(Total.average, container)
        count = container & _COUNT
        return (container >> _COUNT_BITS) / count if count else 0.0


def _changes_of_ints(values: Sequence[Number]) -> list[int] | None:
    """Return what each of some ints adds to a container of ints; None if some are none."""
    return [(value << _COUNT_BITS) + 1 for value in values] if kinds(values) <= _INTS else None  # type: ignore[operator]


def _opened(container: int) -> list[Number] | Total:
    """Return a container of ints as one that takes floats too."""
    return Total(None, container & _COUNT, container >> _COUNT_BITS) if container else []


def _as_total(container: Any) -> Total:
    if type(container) is int:
        return Total(None, container & _COUNT, container >> _COUNT_BITS)
    return Total(container) if type(container) is list else container


class Summary(Batched[int | float]):
    """The statistics of ints, and apart from them those of floats, until they are asked for."""

    __slots__ = ("_doubles", "_ints")

    def __init__(self) -> None:
        super().__init__()
        self._ints = IntSummaryStatistics()
        self._doubles = DoubleSummaryStatistics()

    def add_ints(self, count: int, total: int, least: int, greatest: int) -> Self:
        """Take ints in of which these are known; return this container."""
        self._ints.combine(IntSummaryStatistics.of(count, total, least, greatest))
        return self

    def merge(self, other: Self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (both say Self)
        """Add the numbers of `other` behind the present ones: of 0.0 and -0.0 the first one is least or greatest."""
        self.settle()
        super().merge(other)

    def of_ints(self) -> IntSummaryStatistics:
        """Return the statistics of the ints."""
        self.settle()
        return self._ints

    def of_doubles(self) -> DoubleSummaryStatistics:
        """Return the statistics of all the numbers, as floats."""
        self.settle()
        # Floats that add up to the sum are no numbers of their own: count, least and greatest are replaced.
        result = DoubleSummaryStatistics().accept_all(_exact_floats(self._ints.sum))
        result.count = self._ints.count
        result.min = None if self._ints.min is None else float(self._ints.min)
        result.max = None if self._ints.max is None else float(self._ints.max)
        return result.combine(self._doubles)

    def of_all(self) -> IntSummaryStatistics | DoubleSummaryStatistics:
        """Return the statistics of ints unless a float was among the numbers."""
        self.settle()
        return self.of_doubles() if self._doubles.count else self._ints

    def _take(self, values: list[int | float]) -> None:
        held = kinds(values)
        if held != _FLOATS:
            self._ints.accept_all(value for value in values if type(value) is int)
        if held != _INTS:
            self._doubles.accept_all(value for value in values if type(value) is float)

    def _take_from(self, other: Summary) -> None:
        self._ints.combine(other._ints)
        self._doubles.combine(other._doubles)


@record(slots=False)
class Summaries(Waiting[int | float]):
    """Containers of statistics, of which a grouping holds many."""

    kind: type[Batched[int | float]] = Summary

    def merge(self, left: Any, right: Any) -> Any:
        """Return a container with the numbers of both, those of `left` first."""
        # Otherwise `right` would take the list of `left` in, and its numbers come first.
        return super().merge(Summary.of(left) if type(left) is list and type(right) is Summary else left, right)
