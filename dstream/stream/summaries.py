"""`Description` and `Histogram`: summaries of numbers, as tables and bars in terminals and notebooks."""

from __future__ import annotations

import itertools
import math
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import Any

from dstream import collectors
from dstream.arguments import kind_of, partition_count
from dstream.spi import Collector
from dstream.values import DoubleSummaryStatistics
from dstream.values.numbers import exact_float
from dstream.values.tables import Rows, Verbatim, html_table

__all__ = ["Description", "Histogram", "checked_bins", "counting_in", "describing", "edges_between", "spanning"]


_QUARTILES = (25, 50, 75)
_UNKNOWN = (math.nan,) * 7


@dataclass(frozen=True, slots=True, repr=False)
class Description:
    """Count, mean, deviation and quartiles of numbers; without numbers, all but the count are NaN.

    Attributes:
        count: how many.
        mean: their mean.
        deviation: the standard deviation of a sample; NaN of fewer than two.
        min: the least one.
        lower_quartile: a quarter of them is not above it.
        median: half of them.
        upper_quartile: three quarters of them.
        max: the greatest one.
    """

    count: int
    mean: float
    deviation: float
    min: float
    lower_quartile: float
    median: float
    upper_quartile: float
    max: float

    def __repr__(self) -> str:
        lines = [(name.replace("_", " "), text) for name, text in self._shown()]
        width = max(len(text) for _, text in lines)
        return "\n".join(f"{name:<16}{text:>{width}}" for name, text in lines)

    def _repr_html_(self) -> str:
        names, texts = zip(*self._shown(), strict=True)
        return html_table("", Rows([name.replace("_", " ") for name in names], [[Verbatim(text) for text in texts]]))

    def _shown(self) -> list[tuple[str, str]]:
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return [(name, str(value) if isinstance(value, int) else f"{value:.6g}") for name, value in values]


def describing() -> Collector[Any, Any, Description]:
    """Describe numbers in one pass. The quartiles are exact, so all numbers are retained, as in `percentiles`."""
    all_of = collectors.all_of(
        collectors.summarizing_double(float),
        collectors.stddev(sample=True),
        collectors.percentiles(_QUARTILES),
        finish=_described,
    )
    return collectors.mapping(exact_float, all_of)


def _described(statistics: DoubleSummaryStatistics, deviation: float, quartiles: list[float]) -> Description:
    least, greatest = statistics.min, statistics.max
    if least is None or greatest is None:
        return Description(0, *_UNKNOWN)
    if math.isnan(least):  # `percentiles` leaves NaN out, and half of an answer would look like a whole one.
        return Description(statistics.count, *_UNKNOWN)
    lower, median, upper = quartiles
    return Description(statistics.count, statistics.average, deviation, least, lower, median, upper, greatest)


_WIDEST = 40
"""The number of characters of the longest bar."""


@dataclass(frozen=True, slots=True, repr=False)
class Histogram:
    """The number of numbers in each bin, from its lower edge up to, not including, the upper one; the last has both.

    Attributes:
        edges: the edges of the bins, ascending: one more than there are bins.
        counts: how many numbers lie in each bin.
        outside: how many lie in none; NaN lies in none.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    outside: int = 0

    def __repr__(self) -> str:
        lines = [(f"{low} .. {high}", str(count), _bar(share)) for low, high, count, share in self._rows()]
        first, second = (max(len(line[index]) for line in lines) for index in (0, 1))
        drawn = [f"{bounds:>{first}} {count:>{second}} {bar}".rstrip() for bounds, count, bar in lines]
        return "\n".join([*drawn, *self._note()])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td>{low} .. {high}</td><td>{count}</td><td style="width:20em;text-align:left">'
            f'<div style="background:#4c78a8;height:1em;width:{share:.1%}"></div></td></tr>'
            for low, high, count, share in self._rows()
        )
        foot = "".join(f'<tfoot><tr><td colspan="3">{note}</td></tr></tfoot>' for note in self._note())
        return f"<table><thead><tr><th>bin</th><th>count</th><th></th></tr></thead><tbody>{rows}</tbody>{foot}</table>"

    def _rows(self) -> list[tuple[str, str, int, float]]:
        """Return the edges of each bin in words, its count, and its share of the greatest count."""
        most = max(self.counts) or 1  # Each bin may be empty.
        edges = _told_apart(self.edges)
        return [
            (low, high, count, count / most)
            for (low, high), count in zip(itertools.pairwise(edges), self.counts, strict=True)
        ]

    def _note(self) -> list[str]:
        return [f"({self.outside} outside)"] if self.outside else []


def _bar(share: float) -> str:
    return "█" * math.ceil(share * _WIDEST)


def _told_apart(edges: Sequence[float]) -> list[str]:
    """Return the edges with the fewest digits that distinguish them."""
    for digits in range(4, 17):
        texts = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(texts)) == len(texts):
            return texts
    return list(map(repr, edges))


def checked_bins(bins: Any) -> int | tuple[float, ...]:
    """Return how many bins there are to be, or their edges.

    Raises:
        TypeError: it is neither an int nor an iterable of numbers.
        ValueError: there is no bin, or the edges do not ascend.
    """
    if isinstance(bins, str | bytes) or not isinstance(bins, Iterable):
        if isinstance(bins, bool) or not hasattr(type(bins), "__index__"):
            raise TypeError(f"bins must be an int or edges in ascending order, not {kind_of(bins)}")
        return partition_count(bins, "bins")
    edges = tuple(map(exact_float, bins))
    if len(edges) < 2 or not all(low < high for low, high in itertools.pairwise(edges)):
        raise ValueError(f"bins must be at least two edges in ascending order, not {list(edges)}")
    return edges


def spanning() -> Collector[Any, Any, DoubleSummaryStatistics]:
    """Find the least and the greatest number; NaN is left out."""
    statistics: Collector[float, Any, DoubleSummaryStatistics] = collectors.summarizing_double(float)
    return collectors.mapping(exact_float, collectors.filtering(_is_no_nan, statistics))


def _is_no_nan(number: float) -> bool:
    return number == number


def edges_between(least: float | None, greatest: float | None, bins: int) -> tuple[float, ...]:
    """Return the edges of `bins` bins of equal width: from 0 to 1 of no numbers, and around one number alone.

    Raises:
        ValueError: a number is infinite, or there are fewer floats between the two than bins.
    """
    if least is None or greatest is None:
        least, greatest = 0.0, 1.0
    if math.isinf(least) or math.isinf(greatest):
        raise ValueError("histogram() found an infinite number, for which no bins are wide enough: give the edges")
    if least == greatest:
        # The floats around a large number are more than a half apart.
        around = max(0.5, math.ulp(least) * bins)
        least, greatest = max(least - around, -sys.float_info.max), min(greatest + around, sys.float_info.max)
    # In fractions: the difference of two large floats may be infinite.
    width = (Fraction(greatest) - Fraction(least)) / bins
    edges = tuple(float(Fraction(least) + width * index) for index in range(bins + 1))
    if len(set(edges)) <= bins:
        raise ValueError(f"there are too few floats between {least} and {greatest} for {bins} bins")
    return edges


def counting_in(edges: tuple[float, ...]) -> Collector[Any, Any, Histogram]:
    """Count the numbers in each bin."""
    decimals: Collector[int, Any, Counter[int]] = collectors.frequencies()
    histogram = collectors.collecting_and_then(decimals, partial(_histogram, edges))
    return collectors.mapping(partial(_place, edges), histogram)


def _place(edges: tuple[float, ...], item: Any) -> int:
    """Return the number of the bin that an item lies in, from 0; -1 if it lies in none."""
    number = exact_float(item)
    if not edges[0] <= number <= edges[-1]:
        return -1
    return min(bisect_right(edges, number), len(edges) - 1) - 1


def _histogram(edges: tuple[float, ...], decimals: Counter[int]) -> Histogram:
    return Histogram(edges, tuple(decimals[index] for index in range(len(edges) - 1)), decimals[-1])
