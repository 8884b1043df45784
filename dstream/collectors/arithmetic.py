"""Collectors that count, sum, average and summarize, with exact sums.

`Numbers` checks which numbers a collector takes. `totals` contains the containers, `moments` variance, standard
deviation and linear trend.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar, overload

from dstream.arguments import checked_function
from dstream.base.records import record
from dstream.collectors.arguments import named, shown
from dstream.collectors.batches import Waiting, applied, kinds
from dstream.collectors.totals import Summaries, Summary, Totals
from dstream.failures.attribution import each
from dstream.spi import Collector, InColumns
from dstream.values import DoubleSummaryStatistics, IntSummaryStatistics, SummaryStatistics
from dstream.values.numbers import is_complex

__all__ = [
    "Numbers",
    "averaging",
    "averaging_double",
    "averaging_int",
    "averaging_long",
    "count_all",
    "counting",
    "doubles",
    "exact_numbers",
    "ints",
    "numbers",
    "summarizing",
    "summarizing_double",
    "summarizing_int",
    "summarizing_long",
    "summing",
    "summing_double",
    "summing_int",
    "summing_long",
]


@record(slots=False)
class Numbers:
    """The numbers that a factory accepts.

    Attributes:
        factory: the name of the factory in messages.
        wanted: the description of the numbers.
        types: the types whose instances are not converted.
        convert: converts another value to one of these types, or raises TypeError.
        kind: `int` or `float` if all numbers are converted to it.
    """

    factory: str
    wanted: str
    types: frozenset[type]
    convert: Callable[[Any], Any]
    kind: type | None = None

    def one(self, value: Any, item: Any) -> Any:
        """Return the value of an item as a number.

        Raises:
            TypeError: the factory does not accept it.
        """
        if type(value) in self.types:
            return value
        try:
            return self.convert(value)
        except TypeError:
            given = "" if value is item else f" gave {shown(value)}, which"
            raise TypeError(f"{self.factory}() needs {self.wanted}, but {shown(item)}{given} is not") from None

    def every(self, fn: Callable[[Any], Any] | None, batch: list[Any]) -> list[Any]:
        """Return the number of each item of the batch; `fn` runs once for each.

        Raises:
            TypeError: the value of an item is of another type.
        """
        values = applied(fn, batch)
        return values if self.types >= kinds(values) else each(self.one, batch, values)


def ints(factory: str) -> Numbers:
    """Accept ints and objects that Python itself accepts as an index."""
    return Numbers(factory, "ints", frozenset({int}), operator.index, int)


def doubles(factory: str) -> Numbers:
    """Take real numbers, as floats."""
    return Numbers(factory, "numbers", frozenset({float}), _as_float, float)


def numbers(factory: str) -> Numbers:
    """Take ints and floats, each as it is."""
    return Numbers(factory, "ints or floats", frozenset({int, float}), _as_number)


def exact_numbers(factory: str) -> Numbers:
    """Take ints, floats, complex numbers, and the exact numbers of Python's library, each as it is."""
    taken = frozenset({int, float, complex, Decimal, Fraction})
    return Numbers(factory, "ints, floats, Decimals, Fractions or complex numbers", taken, _as_exact_number)


def _as_float(value: Any) -> float:
    if isinstance(value, str | bytes | bytearray):  # `float` would read a number out of a string.
        raise TypeError("text is not a number")
    if is_complex(value):
        raise TypeError("not real")  # A complex of NumPy's would lose its imaginary part.
    return float(value)


def _as_number(value: Any) -> int | float:
    if hasattr(value, "__index__"):
        return operator.index(value)
    if isinstance(value, Decimal | Fraction):
        raise TypeError("not a float")  # A float would lose their exactness.
    return _as_float(value)


def _as_exact_number(value: Any) -> int | float | Decimal | Fraction | complex:
    if is_complex(value):
        return complex(value)
    if isinstance(value, Decimal):
        return Decimal(value)
    return Fraction(value) if isinstance(value, Fraction) else _as_number(value)


T = TypeVar("T")
N = TypeVar("N", int, float)
X = TypeVar("X", int, float, Decimal, Fraction, complex)
E = TypeVar("E", Decimal, Fraction)

_TOTALS = Totals()
_SUMMARIES = Summaries()


@named
def counting() -> Collector[Any, object, int]:
    """Count the items, None among them; 0 of nothing.

    Example:
        >>> counting().collect("abc")
        3
    """
    collector: Collector[Any, Any, Any] = Collector(
        int,
        _count_one,
        operator.add,
        accumulate_all=count_all,
        deducting=operator.sub,
        in_columns=InColumns("count", operator.add, same_as=count_all),
    )
    return collector


def _count_one(count: int, item: object) -> int:
    return count + 1


def count_all(count: int, items: Iterable[object]) -> int:
    """Add the number of `items`; a grouping that counts recognizes this function."""
    if type(items) is list:
        return count + len(items)
    from more_itertools import ilen  # lazily: few programs need this package

    return count + ilen(items)


@overload
def summing() -> Collector[X, object, X]: ...
@overload
def summing(fn: Callable[[T], X]) -> Collector[T, object, X]: ...
@named
def summing(fn: Callable[[Any], Any] | None = None) -> Collector[Any, Any, Any]:
    """Sum the results of `fn` for each item: an int if all are ints, exactly; 0 without items.

    Floats are added without loss and rounded once, so no split and no order changes the result. The
    sum of Fractions is exact; the sum of Decimals is rounded once, to the precision of the decimal context.
    Ints may be mixed with all other numbers, Fractions with floats, which make the sum a float, and all but
    Decimals with complex numbers. Holds a sum in memory.

    Args:
        fn: returns an int, a float, a Decimal, a Fraction or a complex; without it the items are the numbers.

    Raises:
        TypeError: a value is of another type, or Decimals are mixed with floats, Fractions or complex numbers.

    Example:
        >>> summing(len).collect(["a", "bc"])
        3
        >>> summing().collect([0.1] * 10)
        1.0
    """
    return _numeric(_TOTALS, exact_numbers("summing"), _optional(fn), _TOTALS.sum)


@overload
def averaging(fn: Callable[[T], float] | None = None) -> Collector[T, object, float]: ...
@overload
def averaging(fn: Callable[[T], E]) -> Collector[T, object, E]: ...
@named
def averaging(fn: Callable[[Any], Any] | None = None) -> Collector[Any, Any, Any]:
    """Average the results of `fn` for each item; 0.0 without items.

    The mean of ints and floats is a float, of Decimals a Decimal, of Fractions a Fraction, and of complex
    numbers a complex; numbers may be mixed as in `summing`. It is the rounded sum, divided: if the
    sum of floats is beyond 1.8e308 it is infinite, as in Java. Holds a sum and a count.

    Raises:
        TypeError: as `summing`.
        OverflowError: the mean of ints is too large for a float.

    Example:
        >>> averaging(len).collect(["a", "bc"])
        1.5
    """
    return _numeric(_TOTALS, exact_numbers("averaging"), _optional(fn), _TOTALS.average)


@overload
def summarizing() -> Collector[N, object, SummaryStatistics[N]]: ...
@overload
def summarizing(fn: Callable[[T], N]) -> Collector[T, object, SummaryStatistics[N]]: ...
@named
def summarizing(fn: Callable[[Any], Any] | None = None) -> Collector[Any, Any, Any]:
    """Take count, sum, least, greatest and average; of ints unless a float is among the numbers.

    Example:
        >>> summarizing(len).collect(["a", "bcd"])
        IntSummaryStatistics(count=2, sum=4, min=1, max=3, average=2.0)
    """
    return _numeric(_SUMMARIES, numbers("summarizing"), _optional(fn), partial(_SUMMARIES.finished, Summary.of_all))


@named
def summing_int(fn: Callable[[T], int]) -> Collector[T, object, int]:
    """Sum the ints that `fn` returns; 0 without items. Sums do not overflow.

    Raises:
        TypeError: a value is not an int; the message names the item.

    Example:
        >>> summing_int(len).collect(["a", "bc"])
        3
    """
    return _numeric(_TOTALS, ints("summing_int"), checked_function(fn, "fn"), _TOTALS.sum)


@named
def summing_long(fn: Callable[[T], int]) -> Collector[T, object, int]:
    """Sum the ints that `fn` returns, as `summing_int`: Python has one kind of int.

    Example:
        >>> summing_long(len).collect([])
        0
    """
    return _numeric(_TOTALS, ints("summing_long"), checked_function(fn, "fn"), _TOTALS.sum)


@named
def summing_double(fn: Callable[[T], float]) -> Collector[T, object, float]:
    """Sum the results of `fn` as floats, without loss, rounded once; 0.0 without items.

    Raises:
        TypeError: a value is not a number, such as a string.

    Example:
        >>> summing_double(float).collect(["0.5", "2"])
        2.5
    """
    return _numeric(_TOTALS, doubles("summing_double"), checked_function(fn, "fn"), _float_sum)


@named
def averaging_int(fn: Callable[[T], int]) -> Collector[T, object, float]:
    """Average the ints that `fn` returns; 0.0 without items.

    Raises:
        TypeError: a value is not an int; the message names the item.
        OverflowError: the mean is too large for a float.

    Example:
        >>> averaging_int(len).collect(["a", "bc"])
        1.5
    """
    return _numeric(_TOTALS, ints("averaging_int"), checked_function(fn, "fn"), _TOTALS.average)


@named
def averaging_long(fn: Callable[[T], int]) -> Collector[T, object, float]:
    """Average the ints that `fn` returns, as `averaging_int`.

    Example:
        >>> averaging_long(len).collect([])
        0.0
    """
    return _numeric(_TOTALS, ints("averaging_long"), checked_function(fn, "fn"), _TOTALS.average)


@named
def averaging_double(fn: Callable[[T], float]) -> Collector[T, object, float]:
    """Average the results of `fn` as floats; 0.0 of nothing.

    Example:
        >>> averaging_double(float).collect(["0.5", "2"])
        1.25
    """
    return _numeric(_TOTALS, doubles("averaging_double"), checked_function(fn, "fn"), _TOTALS.average)


@named
def summarizing_int(fn: Callable[[T], int]) -> Collector[T, object, IntSummaryStatistics]:
    """Take the statistics of the ints that `fn` returns; 0, 0, None, None, 0.0 without items.

    Example:
        >>> summarizing_int(len).collect(["a", "bcd"]).max
        3
    """
    return _numeric(
        _SUMMARIES, ints("summarizing_int"), checked_function(fn, "fn"), partial(_SUMMARIES.finished, Summary.of_ints)
    )


@named
def summarizing_long(fn: Callable[[T], int]) -> Collector[T, object, IntSummaryStatistics]:
    """Take the statistics of the ints that `fn` returns, as `summarizing_int`.

    Example:
        >>> summarizing_long(len).collect(["a", "bcd"]).min
        1
    """
    return _numeric(
        _SUMMARIES, ints("summarizing_long"), checked_function(fn, "fn"), partial(_SUMMARIES.finished, Summary.of_ints)
    )


@named
def summarizing_double(fn: Callable[[T], float]) -> Collector[T, object, DoubleSummaryStatistics]:
    """Take the statistics of the results of `fn` as floats; one NaN makes all but the count NaN.

    Example:
        >>> summarizing_double(len).collect(["a", "bcd"]).sum
        4.0
    """
    return _numeric(
        _SUMMARIES,
        doubles("summarizing_double"),
        checked_function(fn, "fn"),
        partial(_SUMMARIES.finished, Summary.of_doubles),
    )


def _optional(fn: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    return None if fn is None else checked_function(fn, "fn")


def _float_sum(container: Any) -> float:
    return float(_TOTALS.sum(container))


def _numeric(
    containers: Waiting[Any],
    taken: Numbers,
    fn: Callable[[Any], Any] | None,
    finisher: Callable[[Any], Any],
) -> Collector[Any, Any, Any]:
    steps = containers.steps(partial(taken.every, fn))
    in_columns = InColumns("statistics", _add_ints, containers.add_all, of=fn, kind=taken.kind, same_as=steps)
    if isinstance(containers, Totals):
        in_columns = replace(
            in_columns,
            finds="sum",
            take=containers.add_ints,
            take_floats=containers.add_floats,
            total=_float_sum if taken.kind is float else containers.sum,
            average=containers.average,
        )
    return Collector(
        containers.supplier,
        partial(_add, taken, fn, containers),
        containers.merge,
        finisher,
        accumulate_all=steps,
        deducting=containers.deduct if isinstance(containers, Totals) else None,
        in_columns=in_columns,
    )


def _add_ints(container: Any, count: int, total: int, least: int, greatest: int) -> Any:
    summary = Summary.of(container) if type(container) is list else container
    return summary.add_ints(count, total, least, greatest)


def _add(taken: Numbers, fn: Callable[[Any], Any] | None, containers: Waiting[Any], container: Any, item: Any) -> Any:
    return containers.add(container, taken.one(item if fn is None else fn(item), item))
