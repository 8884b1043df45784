import math
import statistics
from operator import itemgetter
from random import Random

import pytest

from collectors import linear_trend, stddev, variance

x, y = itemgetter(0), itemgetter(1)


def test_variance_is_of_the_population():
    """It divides by n; with `sample` by n - 1."""
    assert variance().collect([1, 2, 3, 4]) == 1.25
    assert variance(sample=True).collect([1, 2, 3, 4]) == pytest.approx(5 / 3, rel=1e-15)
    assert variance(len).collect(["", "ab"]) == 1.0


def test_stddev_is_the_root_of_the_variance():
    """Of the population, or with `sample` of the sample."""
    assert stddev().collect([2, 4, 4, 4, 5, 5, 7, 9]) == 2.0
    assert stddev(sample=True).collect([1, 3]) == math.sqrt(2)


def test_a_large_mean_cancels_nothing():
    """The spread of three numbers near 1e16 is exact."""
    assert variance().collect([1e16, 1e16 + 2, 1e16 + 4]) == pytest.approx(8 / 3, rel=1e-15)
    assert variance().collect([0.1] * 1000) == 0.0


def test_variance_equals_that_of_the_standard_library():
    """Random floats of many sizes agree with exact fractions to the last bit."""
    chance = Random(5)
    numbers = [chance.gauss(1e6, 1.0) * 10 ** chance.randrange(-3, 3) for _ in range(500)]

    assert variance().collect(numbers) == statistics.pvariance(numbers)
    assert stddev(sample=True).collect(numbers) == pytest.approx(statistics.stdev(numbers), rel=1e-15)


def test_squares_beyond_floats_do_no_harm():
    """The squares of large and of tiny numbers leave the range of floats, their deviation does not."""
    assert stddev().collect([1e200, 3e200]) == pytest.approx(1e200, rel=1e-15)
    assert stddev().collect([1e-200, 3e-200]) == pytest.approx(1e-200, rel=1e-15)
    assert variance().collect([1e200, -1e200]) == math.inf


@pytest.mark.parametrize("numbers", [[], [math.inf, 1.0], [1.0, math.nan]])
def test_spread_is_nan_where_undefined(numbers):
    """Of nothing, and with a number that is not finite."""
    assert math.isnan(variance().collect(numbers))
    assert math.isnan(stddev().collect(numbers))


def test_spread_of_one_number():
    """One number does not spread; as a sample it says nothing."""
    assert variance().collect([5]) == 0.0
    assert math.isnan(variance(sample=True).collect([5]))
    assert math.isnan(stddev(sample=True).collect([5]))


@pytest.mark.parametrize("item", ["1", None])
def test_spread_refuses_what_is_not_a_number(item):
    """The message names the item."""
    with pytest.raises(TypeError, match=rf"variance\(\) needs numbers, but {item!r}"):
        variance().collect([1, item])


def test_linear_trend_is_the_slope():
    """Of a line it is the line's; of points around it, the least squares."""
    assert linear_trend(x, y).collect([(0, 1), (1, 3), (2, 5)]) == 2.0
    assert linear_trend(x, y).collect([(0, 0), (1, 1), (2, 1)]) == 0.5


def test_linear_trend_is_exact_far_from_zero():
    """Time stamps in nanoseconds do not cancel."""
    start = 1_700_000_000_000_000_000

    assert linear_trend(x, y).collect([(start + n, 0.5 * n) for n in range(9)]) == 0.5


@pytest.mark.parametrize("points", [[], [(1, 2)], [(1, 2), (1, 3)], [(0, 0), (1, math.inf)], [(math.nan, 0), (1, 1)]])
def test_linear_trend_is_nan_where_undefined(points):
    """Fewer than two different x, or a coordinate that is not finite."""
    assert math.isnan(linear_trend(x, y).collect(points))


def test_linear_trend_refuses_what_is_not_a_number():
    """The message names the point."""
    with pytest.raises(TypeError, match=r"linear_trend\(\) needs numbers, but \(1, 'a'\) gave 'a'"):
        linear_trend(x, y).collect([(1, "a")])
