"""Collectors over squares and products: variance, standard deviation, linear trend, covariance, correlation.

The formulas with sums of squares lose digits by cancellation in floats. In this module every sum is exact:
a finite float is a fraction whose denominator is a power of two, and a `Tally` adds numerators,
separately for each denominator. The result is rounded once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from dstream.arguments import checked_function
from dstream.base.functions import refuse_awaitable
from dstream.collectors.arguments import checked_choice, named, shown
from dstream.spi import Collector
from dstream.values.numbers import rounded

__all__ = ["correlation", "covariance", "linear_trend", "stddev", "variance"]

T = TypeVar("T")

Tally = dict[int, int]
"""The numerators of an exact sum, by denominator."""


@named
def variance(fn: Callable[[T], float] | None = None, *, sample: bool = False) -> Collector[T, object, float]:
    """Take the variance of the results of `fn` for each item, of the population.

    It uses exact sums, so no order, no split and no large mean changes the result.

    Args:
        fn: returns an int or a float; without it the items are the numbers.
        sample: divide by n - 1 instead of n.

    Returns:
        A collector of a float; NaN where it is undefined: without items, for one item with `sample`,
        and if a number is infinite or NaN.

    Raises:
        TypeError: a value is not a number.

    Example:
        >>> variance().collect([1, 2, 3, 4])
        1.25
        >>> variance(sample=True).collect([1e9, 1e9 + 1, 1e9 + 2])
        1.0
    """
    return _spread("variance", fn, partial(_variance, checked_choice(sample, "sample")))


@named
def stddev(fn: Callable[[T], float] | None = None, *, sample: bool = False) -> Collector[T, object, float]:
    """Take the standard deviation of the results of `fn`, the square root of `variance`.

    Example:
        >>> stddev().collect([2, 4, 4, 4, 5, 5, 7, 9])
        2.0
    """
    return _spread("stddev", fn, partial(_deviation, checked_choice(sample, "sample")))


@named
def linear_trend(x: Callable[[T], float], y: Callable[[T], float]) -> Collector[T, object, float]:
    """Take the slope of the straight line through the points (x, y), by least squares.

    The sums are exact, so no order and no split changes the result. The slope is NaN where it is
    undefined: fewer than two different x, or a coordinate that is infinite or NaN.

    Raises:
        TypeError: a coordinate is not a number.

    Example:
        >>> from operator import itemgetter
        >>> linear_trend(itemgetter(0), itemgetter(1)).collect([(0, 1), (1, 3), (2, 5)])
        2.0
    """
    return _of_points(_add_point, "linear_trend", x, y, _slope)


@named
def covariance(x: Callable[[T], float], y: Callable[[T], float]) -> Collector[T, object, float]:
    """Take the covariance of the results of `x` and `y` for each item, of the population.

    The sums are exact, so no order, no split and no large mean changes the result. It is NaN without items, and if a
    coordinate is infinite or NaN. Memory: a few sums.

    Raises:
        TypeError: a coordinate is not a number.

    Example:
        >>> from operator import itemgetter
        >>> covariance(itemgetter(0), itemgetter(1)).collect([(1, 2), (2, 4), (3, 9)])
        2.3333333333333335
    """
    return _of_points(_add_point, "covariance", x, y, _covariance)


@named
def correlation(x: Callable[[T], float], y: Callable[[T], float]) -> Collector[T, object, float]:
    """Take the correlation of the results of `x` and `y` for each item: Pearson's, from -1.0 to 1.0.

    The sums are exact: for points on a straight line the result is 1.0 or -1.0. It is NaN where it is undefined: with
    fewer than two different x or y, or a coordinate that is infinite or NaN. Holds a few sums.

    Raises:
        TypeError: a coordinate is not a number.

    Example:
        >>> from operator import itemgetter
        >>> correlation(itemgetter(0), itemgetter(1)).collect([(0.1, 1), (0.2, 3), (0.4, 2)])
        0.32732683535398854
    """
    return _of_points(_add_point_and_square, "correlation", x, y, _correlation)


def _of_points(
    add: Callable[..., None],
    factory: str,
    x: Callable[[Any], Any],
    y: Callable[[Any], Any],
    finisher: Callable[[_Moments], float],
) -> Collector[Any, Any, float]:
    functions = checked_function(x, "x"), checked_function(y, "y")
    return Collector(_Moments, partial(add, factory, *functions), _Moments.merge, finisher, deducting=_Moments.deduct)


class _Moments:
    """Exact sums of x, y, x*x, x*y and y*y of the finite numbers; others are counted, and make the result undefined."""

    __slots__ = ("count", "undefined", "x", "xx", "xy", "y", "yy")

    def __init__(self) -> None:
        self.count = 0
        self.undefined = 0
        self.x: Tally = {}
        self.y: Tally = {}
        self.xx: Tally = {}
        self.xy: Tally = {}
        self.yy: Tally = {}

    def merge(self, other: _Moments) -> None:
        self.count += other.count
        self.undefined += other.undefined
        for mine, theirs in zip(self.sums(), other.sums(), strict=True):
            for denominator, numerator in theirs.items():
                _tally(mine, numerator, denominator)

    def deduct(self, other: _Moments) -> None:
        """Take out the numbers of `other`, which were merged before."""
        self.count -= other.count
        self.undefined -= other.undefined
        for mine, theirs in zip(self.sums(), other.sums(), strict=True):
            for denominator, numerator in theirs.items():
                _tally(mine, -numerator, denominator)
                if not mine[denominator]:
                    del mine[denominator]  # Those of fractions have no end.

    def sums(self) -> tuple[Tally, ...]:
        """Return the exact sums."""
        return self.x, self.y, self.xx, self.xy, self.yy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Moments):
            return NotImplemented
        if (self.count, self.undefined) != (other.count, other.undefined):
            return False
        return all(map(operator.eq, map(_exact, self.sums()), map(_exact, other.sums())))

    __hash__ = None  # type: ignore[assignment]


def _tally(tally: Tally, numerator: int, denominator: int) -> None:
    tally[denominator] = tally.get(denominator, 0) + numerator


def _exact(tally: Tally) -> Fraction:
    return sum((Fraction(numerator, denominator) for denominator, numerator in tally.items()), Fraction())


def _ratio(factory: str, number: Any, item: Any) -> tuple[int, int] | None:
    """Return the number as a fraction, or None if it is not finite."""
    try:
        numerator, denominator = number.as_integer_ratio()
    # The first is that of an infinity, the second that of a NaN.
    except (OverflowError, ValueError):
        return None
    except AttributeError:
        try:
            return operator.index(number), 1  # An int of NumPy's has no ratio.
        except TypeError:
            refuse_awaitable(number)
            raise TypeError(f"{factory}() needs numbers, but {shown(item)} gave {shown(number)}") from None
    return numerator, denominator


def _spread(
    factory: str, fn: Callable[[Any], Any] | None, finisher: Callable[[_Moments], float]
) -> Collector[Any, Any, float]:
    if fn is not None:
        checked_function(fn, "fn")
    return Collector(_Moments, partial(_add_number, factory, fn), _Moments.merge, finisher, deducting=_Moments.deduct)


def _add_number(factory: str, fn: Callable[[Any], Any] | None, moments: _Moments, item: Any) -> None:
    ratio = _ratio(factory, item if fn is None else fn(item), item)
    moments.count += 1
    if ratio is None:
        moments.undefined += 1
        return
    numerator, denominator = ratio
    _tally(moments.x, numerator, denominator)
    _tally(moments.xx, numerator * numerator, denominator * denominator)


def _add_point(factory: str, x: Callable[[Any], Any], y: Callable[[Any], Any], moments: _Moments, item: Any) -> None:
    _take_point(moments, _ratio(factory, x(item), item), _ratio(factory, y(item), item))


def _add_point_and_square(
    factory: str, x: Callable[[Any], Any], y: Callable[[Any], Any], moments: _Moments, item: Any
) -> None:
    across, up = _ratio(factory, x(item), item), _ratio(factory, y(item), item)
    _take_point(moments, across, up)
    if across is not None and up is not None:
        _tally(moments.yy, up[0] * up[0], up[1] * up[1])


def _take_point(moments: _Moments, across: tuple[int, int] | None, up: tuple[int, int] | None) -> None:
    moments.count += 1
    if across is None or up is None:
        moments.undefined += 1
        return
    _tally(moments.x, *across)
    _tally(moments.y, *up)
    _tally(moments.xx, across[0] * across[0], across[1] * across[1])
    _tally(moments.xy, across[0] * up[0], across[1] * up[1])


def _exact_variance(sample: bool, moments: _Moments) -> Fraction | None:
    freedom = moments.count - sample
    if freedom <= 0 or moments.undefined:
        return None
    total = _exact(moments.x)
    return (_exact(moments.xx) - total * total / moments.count) / freedom


def _variance(sample: bool, moments: _Moments) -> float:
    exact = _exact_variance(sample, moments)
    return math.nan if exact is None else rounded(exact)


def _deviation(sample: bool, moments: _Moments) -> float:
    exact = _exact_variance(sample, moments)
    return math.nan if exact is None else _root(exact)


def _root(exact: Fraction) -> float:
    """Return the square root of a number that is not negative."""
    if not exact:
        return 0.0
    # The root of a number near 1, scaled back: a square may leave the range of floats where its root does not.
    scale = (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2
    try:
        return math.ldexp(math.sqrt(exact / Fraction(4) ** scale), scale)
    except OverflowError:
        return math.inf  # As the variance is, of ints beyond the floats.


def _slope(moments: _Moments) -> float:
    width = _products(moments, moments.x, moments.x, moments.xx)
    if not width or moments.undefined:
        return math.nan
    return rounded(_products(moments, moments.x, moments.y, moments.xy) / width)


def _covariance(moments: _Moments) -> float:
    if not moments.count or moments.undefined:
        return math.nan
    return rounded(_products(moments, moments.x, moments.y, moments.xy) / moments.count**2)


def _products(moments: _Moments, left: Tally, right: Tally, products: Tally) -> Fraction:
    """Return the sum of the products of the rests of two means, times the count."""
    return moments.count * _exact(products) - _exact(left) * _exact(right)


def _correlation(moments: _Moments) -> float:
    across = _products(moments, moments.x, moments.x, moments.xx)
    up = _products(moments, moments.y, moments.y, moments.yy)
    if moments.undefined or not across or not up:
        return math.nan
    together = _products(moments, moments.x, moments.y, moments.xy)
    size = _root(together * together / (across * up))
    return size if together >= 0 else -size
