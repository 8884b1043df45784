"""The containers behind sums, averages and statistics: exact, mergeable in any order, small to send."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

from collectors.batches import Batched, kinds
from dstream.values import DoubleSummaryStatistics, ExactSum, IntSummaryStatistics

__all__ = ["Summary", "Total"]

_INTS = frozenset({int})
_FLOATS = frozenset({float})


class Total(Batched[int | float]):
    """The count and the exact sum of ints and floats.

    Ints add up as an int, floats as an `ExactSum`; the two meet when the sum is asked for, and are
    then rounded once.
    """

    __slots__ = ("_count", "_fraction", "_whole")

    def __init__(
        self, pending: list[int | float] | None = None, count: int = 0, whole: int = 0, fraction: ExactSum | None = None
    ) -> None:
        self._pending = [] if pending is None else pending
        self._count = count
        self._whole: int = whole
        self._fraction = fraction

    def sum(self) -> int | float:
        """Return the sum: an int unless a float was among the numbers."""
        held = set() if self._count else kinds(self._pending)
        if held == _INTS:
            return sum(self._pending)
        if held == _FLOATS:
            with suppress(OverflowError, ValueError):  # infinities: `ExactSum` knows what becomes of them
                return math.fsum(self._pending)
        self.settle()
        if self._fraction is None:
            return self._whole
        total = ExactSum()
        total.merge(self._fraction)
        total.add_all(_exact_floats(self._whole))
        return total.value()

    def average(self) -> float:
        """Return the mean, 0.0 of nothing."""
        count = self._count + len(self._pending)
        return self.sum() / count if count else 0.0

    def _take(self, values: list[int | float]) -> None:
        self._count += len(values)
        held = kinds(values)
        if held == _INTS:
            self._whole += sum(values)  # type: ignore[assignment]
        elif held == _FLOATS:
            self._floats().add_all(values)
        else:
            self._whole += sum(value for value in values if type(value) is int)
            self._floats().add_all(value for value in values if type(value) is float)

    def _floats(self) -> ExactSum:
        if self._fraction is None:
            self._fraction = ExactSum()
        return self._fraction

    def _take_from(self, other: Total) -> None:
        self._count += other._count
        self._whole += other._whole
        if other._fraction is not None:
            self._floats().merge(other._fraction)

    def __reduce__(self) -> tuple[type[Total], tuple[object, ...]]:
        # A few numbers in place of nested objects: a grouping sends one container for each key.
        settled = (self._count, self._whole, self._fraction) if self._count else ()
        return Total, (self._pending, *settled)


def _exact_floats(whole: int) -> Iterator[float]:
    """Give floats whose exact sum is `whole`."""
    while whole:
        part = float(whole)
        yield part
        whole -= int(part)


class Summary(Batched[int | float]):
    """The statistics of ints, and apart from them those of floats, until they are asked for."""

    __slots__ = ("_doubles", "_ints")

    def __init__(self) -> None:
        super().__init__()
        self._ints = IntSummaryStatistics()
        self._doubles = DoubleSummaryStatistics()

    def of_ints(self) -> IntSummaryStatistics:
        """Return the statistics of the ints."""
        self.settle()
        return self._ints

    def of_doubles(self) -> DoubleSummaryStatistics:
        """Return the statistics of all the numbers, as floats."""
        self.settle()
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
