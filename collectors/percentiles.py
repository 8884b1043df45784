"""Collectors of exact percentiles, which keep all the numbers: some in memory, the others sorted on disk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from collectors.arguments import checked_function
from collectors.batches import Prepared
from collectors.kept_numbers import KeptNumbers, Ordered
from collectors.naming import named
from collectors.numeric import Numbers, doubles
from dstream.spi import Collector

__all__ = ["median", "percentiles"]

T = TypeVar("T")


@named
def percentiles(ps: Iterable[float], fn: Callable[[T], float] | None = None) -> Collector[T, object, list[float]]:
    """Find exact percentiles of what `fn` gives for each item, as floats; NaN are left out.

    Between two numbers it interpolates linearly, as `numpy.percentile` and `statistics.median` do.

    Every number is kept, in 8 bytes, first where the items are and then in the caller: two million of them in
    memory, the others on disk, sorted. Below another collector, as in a group, the numbers of a container travel
    in one piece. `quantiles` keeps a few KB.

    Args:
        ps: from 0 (the least number) over 50 (the median) to 100 (the greatest).
        fn: gives a number; without it the items are the numbers.

    Returns:
        A collector of one float for each percentile; NaN each if there were no numbers.

    Raises:
        TypeError: an item gave something that is not a number.
        ValueError: a percentile is not between 0 and 100.

    Example:
        >>> percentiles([0, 50, 99]).collect(range(1, 101))
        [1.0, 50.5, 99.01]
    """
    if not isinstance(ps, Iterable):
        raise TypeError(f"ps must be an iterable of numbers, not {type(ps).__name__}")
    return _exact("percentiles", [_checked_percentile(p) for p in ps], fn, _found)


@named
def median(fn: Callable[[T], float] | None = None) -> Collector[T, object, float]:
    """Find the exact median of what `fn` gives for each item, NaN of nothing; otherwise as `percentiles`.

    Example:
        >>> median(len).collect(["a", "bb", "cccc"])
        2.0
    """
    return _exact("median", [50.0], fn, _first_found)


def _checked_percentile(p: float) -> float:
    if not 0 <= p <= 100:
        raise ValueError(f"ps must lie between 0 and 100, but one is {p!r}")
    return float(p)


def _exact(
    factory: str, ps: list[float], fn: Callable[[Any], Any] | None, finish: Callable[..., Any]
) -> Collector[Any, Any, Any]:
    taken = doubles(factory)
    if fn is not None:
        checked_function(fn, "fn")
    return Collector(
        KeptNumbers,
        partial(_add, taken, fn),
        KeptNumbers.take,
        partial(finish, ps),
        accumulate_all=Prepared(partial(taken.every, fn), KeptNumbers.append, _add_all),
        parts=KeptNumbers.parts,
    )


def _add(taken: Numbers, fn: Callable[[Any], Any] | None, kept: KeptNumbers, item: Any) -> None:
    kept.append(taken.one(item if fn is None else fn(item), item))
    kept.spill_many()


def _add_all(kept: KeptNumbers, values: list[float]) -> KeptNumbers:
    kept.fromlist(values)
    kept.spill_many()
    return kept


def _found(ps: list[float], kept: KeptNumbers) -> list[float]:
    ordered = kept.in_order()
    return [_between(ordered, p) for p in ps]


def _between(ordered: Ordered, p: float) -> float:
    if not len(ordered):
        return math.nan
    below, part = divmod(p * (len(ordered) - 1), 100)
    low, high = (ordered[place] for place in (int(below), min(int(below) + 1, len(ordered) - 1)))
    share = part / 100
    return low if share == 0 or low == high else low * (1 - share) + high * share


def _first_found(ps: list[float], kept: KeptNumbers) -> float:
    return _found(ps, kept)[0]
