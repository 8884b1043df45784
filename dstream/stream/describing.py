"""`Description`: what `describe()` tells about numbers, shown as a table in terminals and notebooks."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import collectors  # As a module: whoever imports it first is loading it while this module loads.
from dstream.spi import Collector
from dstream.tables import Rows, html_table
from dstream.values.numbers import exact_float

if TYPE_CHECKING:
    from dstream.values import DoubleSummaryStatistics

__all__ = ["Description", "describing"]

_QUARTILES = (25, 50, 75)
_UNKNOWN = (math.nan,) * 7


@dataclass(frozen=True, slots=True, repr=False)
class Description:
    """How many numbers there were, and how they lie; of no numbers, all but the count are NaN.

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
        return html_table("", Rows([name.replace("_", " ") for name in names], [[_Plain(text) for text in texts]]))

    def _shown(self) -> list[tuple[str, str]]:
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return [(name, str(value) if isinstance(value, int) else f"{value:.6g}") for name, value in values]


class _Plain(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def describing() -> Collector[Any, Any, Description]:
    """Describe numbers in one pass. The quartiles are exact, so that all numbers are kept, as by `percentiles`."""
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
