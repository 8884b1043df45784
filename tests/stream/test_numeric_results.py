"""`sum`, `average`, `min`, `max`, `summary_statistics` of the streams of numbers."""

from __future__ import annotations

import math

import pytest

from dstream import DoubleStream, IntStream, LongStream, Optional, failure

NAN = math.nan


def test_results_of_ints(engine):
    """Sum, average and extremes over partitions, empty ones among them."""
    ints = engine.stream([4, -1, 6], 5).map_to_int(lambda n: n)

    assert (ints.sum(), ints.average()) == (9, Optional.of(3.0))
    assert (ints.min(), ints.max()) == (Optional.of(-1), Optional.of(6))


@pytest.mark.parametrize("kind", [IntStream, LongStream, DoubleStream])
def test_results_of_no_numbers(default_engine, kind):
    """The sum of nothing is 0, its average and extremes are empty, its statistics 0, 0, None, None, 0.0."""
    nothing = kind.from_iterable([], partitions=2)
    statistics = nothing.summary_statistics()

    assert (nothing.sum(), nothing.average(), nothing.min(), nothing.max()) == (0, *[Optional.empty()] * 3)
    assert (statistics.count, statistics.sum) == (0, 0)
    assert (statistics.min, statistics.max, statistics.average) == (None, None, 0.0)


def test_sum_of_ints_does_not_overflow(default_engine):
    """Python's ints have no end, where Java's wrap around."""
    assert IntStream.of(2**63 - 1, 2**63 - 1).sum() == 2**64 - 2


@pytest.mark.parametrize("sign", [1, -1])
def test_average_of_ints_beyond_the_floats_is_an_error(engine, sign):
    """As in Python, in place of an infinity, which is what floats have; the attribute of statistics is infinite."""
    ints = engine.stream([sign * 2**2000] * 2, 2).map_to_int(lambda n: n)

    with pytest.raises(OverflowError) as caught:
        ints.average()
    assert "average()" in str(failure(caught.value).step)
    assert ints.summary_statistics().average == sign * math.inf
    assert engine.stream([sign * 1e308] * 2, 2).map_to_double(float).average() == Optional.of(sign * math.inf)
    assert engine.stream([2**1023] * 2, 2).map_to_int(lambda n: n).average() == Optional.of(2.0**1023)


def test_sum_of_doubles_is_compensated_over_partitions(engine):
    """The sum is rounded once, however the numbers are divided."""
    tenths = engine.stream([0.1] * 10 + [1e100, 1.0, -1e100], 4).map_to_double(lambda n: n)

    assert (tenths.sum(), tenths.average()) == (2.0, Optional.of(2.0 / 13))
    assert repr(DoubleStream.of(3).sum()) == "3.0"


@pytest.mark.parametrize("position", [0, 2])
def test_one_nan_makes_all_results_nan(engine, position):
    """A NaN anywhere makes sum, average, min and max NaN."""
    numbers = [1.0, 2.0, -math.inf]
    numbers[position] = NAN
    doubles = engine.stream(numbers, 3).map_to_double(lambda n: n)

    results = [doubles.sum(), doubles.average().get(), doubles.min().get(), doubles.max().get()]
    assert repr(results) == "[nan, nan, nan, nan]"


def test_summary_statistics_of_ints(engine):
    """Count, sum, min, max and average in one pass."""
    statistics = engine.stream([3, 1, 2], 5).map_to_long(lambda n: n).summary_statistics()

    assert repr(statistics) == "IntSummaryStatistics(count=3, sum=6, min=1, max=3, average=2.0)"


def test_summary_statistics_of_doubles(engine):
    """Floats, from one item and from several partitions, and with a NaN."""
    doubles = engine.stream([0.5, 2.5, 0.0], 3).map_to_double(lambda n: n)
    with_nan = (doubles + DoubleStream.empty()).map(lambda n: n or NAN).summary_statistics()

    assert repr(doubles.summary_statistics()) == (
        "DoubleSummaryStatistics(count=3, sum=3.0, min=0.0, max=2.5, average=1.0)"
    )
    assert repr(with_nan) == "DoubleSummaryStatistics(count=3, sum=nan, min=nan, max=nan, average=nan)"


def test_infinities_add_up_as_in_ieee_754(default_engine):
    """Infinity stays; two of different signs are NaN, which the extremes are not."""
    both = DoubleStream.of(math.inf, -math.inf)

    assert DoubleStream.of(math.inf, 1.0).sum() == math.inf
    assert (repr(both.sum()), both.min().get(), both.max().get()) == ("nan", -math.inf, math.inf)
