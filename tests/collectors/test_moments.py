import math
import statistics
from operator import itemgetter
from random import Random

import pytest

from collectors import correlation, covariance, linear_trend, stddev, variance

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
    assert stddev().collect([0, 10**400]) == math.inf


def test_numbers_of_numpy_are_numbers():
    """Ints too, which have no ratio."""
    numpy = pytest.importorskip("numpy")

    assert variance().collect([numpy.int64(1), numpy.uint8(3), numpy.float32(2)]) == variance().collect([1, 3, 2])
    points = [(1, 2), (3, 5), (4, 4)]
    for collector in (correlation(x, y), covariance(x, y), linear_trend(x, y)):
        assert collector.collect([tuple(map(numpy.int64, point)) for point in points]) == collector.collect(points)


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


def test_covariance_and_correlation_equal_those_of_the_standard_library():
    """The covariance is that of the population, where the library takes a sample."""
    chance = Random(6)
    points = [(chance.gauss(1e6, 1.0), chance.gauss(0, 5.0)) for _ in range(500)]
    left, right = zip(*points, strict=True)

    sample = covariance(x, y).collect(points) * 500 / 499
    assert sample == pytest.approx(statistics.covariance(left, right), rel=1e-6)
    assert correlation(x, y).collect(points) == pytest.approx(statistics.correlation(left, right), rel=1e-6)


def test_points_on_a_line_correlate_exactly():
    """Also where their squares leave the range of floats, or hardly differ from each other."""
    assert correlation(x, y).collect([(1e200, 3.0), (2e200, 2.0), (3e200, 1.0)]) == -1.0
    assert correlation(x, y).collect([(1e16, 0), (1e16 + 2, 1), (1e16 + 4, 2)]) == 1.0
    assert covariance(x, y).collect([(1, 2), (2, 4), (3, 9)]) == pytest.approx(7 / 3)


@pytest.mark.parametrize("points", [[], [(1, 1)], [(1, 2), (1, 3)], [(1, 2), (3, 2)], [(1, 1), (2, math.nan)]])
def test_correlation_is_nan_where_undefined(points):
    """Of fewer than two points, without any spread in one direction, and with what is not finite."""
    assert math.isnan(correlation(x, y).collect(points))


def test_covariance_where_little_is_known():
    """One point does not vary; nothing, and what is not finite, have none."""
    assert covariance(x, y).collect([(1, 2)]) == 0.0
    assert math.isnan(covariance(x, y).collect([]))
    assert math.isnan(covariance(x, y).collect([(math.inf, 2), (1, 2)]))


def test_a_coordinate_that_is_no_number_is_refused_by_name():
    """The message names the collector and the item."""
    with pytest.raises(TypeError, match=r"correlation\(\) needs numbers, but \(1, 'a'\) gave 'a'"):
        correlation(x, y).collect([(1, "a")])
