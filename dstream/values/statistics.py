"""Count, sum, least, greatest and average in one pass, as `java.util.IntSummaryStatistics`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import islice
from typing import Any, ClassVar, Generic, Self, TypeVar

from dstream.values.sums import ExactSum

__all__ = ["DoubleSummaryStatistics", "IntSummaryStatistics", "SummaryStatistics"]

N = TypeVar("N", int, float)

_CHUNK = 4096


class SummaryStatistics(ABC, Generic[N]):
    """The statistics of numbers; of nothing they are 0, 0, None, None, 0.0.

    Attributes:
        count: how many numbers there were.
        min: the least one, NaN if any is NaN, None if there were none.
        max: the greatest one, NaN if any is NaN, None if there were none.
        sum: their sum.
        average: their mean, 0.0 if there were none.
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
        """The mean of the numbers; 0.0 if there were none."""
        return self.sum / self.count if self.count else 0.0

    def accept(self, number: N) -> None:
        """Take one number in."""
        self.accept_all((number,))

    def accept_all(self, numbers: Iterable[N]) -> Self:
        """Take `numbers` in, a few thousand in memory at a time, and return these statistics."""
        numbers = iter(numbers)
        while chunk := list(islice(numbers, _CHUNK)):
            self._accept_chunk(chunk)
        return self

    def combine(self, other: Self) -> Self:
        """Take in what `other` has seen, and return these statistics."""
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
