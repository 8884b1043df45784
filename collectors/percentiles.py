"""Collectors of exact percentiles, which hold all the numbers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from collectors.arguments import checked_function
from collectors.batches import Prepared
from collectors.naming import named
from collectors.numeric import Numbers, doubles
from dstream.spi import Collector

__all__ = ["median", "percentiles"]

T = TypeVar("T")


@named
def percentiles(ps: Iterable[float], fn: Callable[[T], float] | None = None) -> Collector[T, object, list[float]]:
    """Find exact percentiles of what `fn` gives for each item, as floats; NaN are left out.

    Between two numbers it interpolates linearly, as `numpy.percentile` and `statistics.median` do.

    Every number is held, in 8 bytes, first where the items are and then in the caller, and some three times
    that while the result is made: 240 MB for ten million. Nothing goes to disk; `quantiles` takes a
    few KB, and `stream.map_to_double(fn).sorted()` sorts on disk where memory does not suffice.

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
        partial(array, "d"),
        partial(_add, taken, fn),
        array.extend,
        partial(finish, ps),
        accumulate_all=Prepared(partial(taken.every, fn), array.append, _add_all),
    )


def _add(taken: Numbers, fn: Callable[[Any], Any] | None, held: array[float], item: Any) -> None:
    held.append(taken.one(item if fn is None else fn(item), item))


def _add_all(held: array[float], values: list[float]) -> array[float]:
    held.fromlist(values)
    return held


def _found(ps: list[float], held: array[float]) -> list[float]:
    # pyarrow takes some 200 ms to import, and sorts the numbers where they are, without an object for each.
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pa.Array.from_buffers(pa.float64(), len(held), [None, pa.py_buffer(held)])
    is_nan = pc.call_function("is_nan", [numbers])
    ordered = numbers.filter(pc.call_function("invert", [is_nan])).sort()
    return [_between(ordered, p) for p in ps]


def _between(ordered: Any, p: float) -> float:
    if not len(ordered):
        return math.nan
    below, part = divmod(p * (len(ordered) - 1), 100)
    low, high = (ordered[place].as_py() for place in (int(below), min(int(below) + 1, len(ordered) - 1)))
    share = part / 100
    result: float = low if share == 0 or low == high else low * (1 - share) + high * share
    return result


def _first_found(ps: list[float], held: array[float]) -> float:
    return _found(ps, held)[0]
