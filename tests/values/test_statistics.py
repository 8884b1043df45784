"""Summary statistics: count, sum, min, max, average."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dstream.values import DoubleSummaryStatistics, IntSummaryStatistics

BOTH = [IntSummaryStatistics, DoubleSummaryStatistics]


@pytest.mark.parametrize("kind", BOTH)
def test_statistics_of_nothing(kind):
    """Of nothing: 0, 0, None, None, 0.0."""
    nothing = kind()

    assert (nothing.count, nothing.sum, nothing.min, nothing.max, nothing.average) == (0, 0, None, None, 0.0)


@pytest.mark.parametrize("kind", BOTH)
def test_statistics_of_numbers(kind):
    """One at a time or all together: the same."""
    one_by_one = kind()
    for number in (3, -1, 4):
        one_by_one.accept(number)

    assert one_by_one == kind().accept_all(iter([3, -1, 4]))
    assert (one_by_one.count, one_by_one.sum, one_by_one.min, one_by_one.max, one_by_one.average) == (3, 6, -1, 4, 2.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_average_of_ints_beyond_the_floats_is_infinite(sign):
    """As their variance is: the statistics can be shown and compared."""
    huge = IntSummaryStatistics().accept_all([sign * 10**400])

    assert (huge.average, huge) == (sign * math.inf, IntSummaryStatistics().accept_all([sign * 10**400]))
    assert repr(huge).endswith(f"average={sign * math.inf})")


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("cut", [0, 1, 4999, 5000])
def test_statistics_combine(kind, cut):
    """However the numbers are divided, empty parts among them."""
    numbers = [n * 37 % 101 for n in range(5000)]
    combined = kind().accept_all(numbers[:cut]).combine(kind().accept_all(numbers[cut:]))

    assert combined == kind().accept_all(numbers)
    assert (combined.count, combined.min, combined.max) == (5000, 0, 100)


@pytest.mark.parametrize("position", [0, 1, 4095, 4096, 5000])
def test_one_nan_makes_doubles_nan(position):
    """Wherever it stands, also after combining; the count counts it."""
    numbers = [1.0] * 5001
    numbers[position] = math.nan
    statistics = DoubleSummaryStatistics().accept_all(numbers)

    assert repr(statistics) == "DoubleSummaryStatistics(count=5001, sum=nan, min=nan, max=nan, average=nan)"
    for combined in (
        DoubleSummaryStatistics().accept_all([2.0]).combine(statistics),
        DoubleSummaryStatistics().combine(statistics).combine(DoubleSummaryStatistics().accept_all([2.0])),
    ):
        assert (repr(combined.min), repr(combined.max)) == ("nan", "nan")


def test_infinities_have_a_nan_sum_and_true_extremes():
    """`inf - inf` is NaN, but no number was."""
    statistics = DoubleSummaryStatistics().accept_all([math.inf, -math.inf, 0.0])

    assert repr(statistics) == "DoubleSummaryStatistics(count=3, sum=nan, min=-inf, max=inf, average=nan)"


def test_ints_do_not_overflow():
    """The sum of large ints is exact."""
    assert IntSummaryStatistics().accept_all([2**62] * 4).sum == 2**64


@pytest.mark.parametrize("kind", BOTH)
def test_statistics_travel(kind):
    """They are the containers of a collector, so they can be pickled and go on."""
    travelled = pickle.loads(pickle.dumps(kind().accept_all([1, 2])))
    travelled.accept(6)

    assert (travelled.count, travelled.average) == (3, 3.0)


@given(st.lists(st.lists(st.floats(allow_subnormal=False), max_size=5), max_size=5))
def test_doubles_do_not_depend_on_how_they_are_divided(parts):
    """Any division of the numbers gives the same statistics, bit for bit, NaN and infinities among them."""
    combined = DoubleSummaryStatistics()
    for part in parts:
        combined.combine(DoubleSummaryStatistics().accept_all(part))
    together = DoubleSummaryStatistics().accept_all([number for part in parts for number in part])

    assert (combined.count, repr(combined.sum), combined.average == combined.average) == (
        together.count,
        repr(together.sum),
        together.average == together.average,
    )
    assert repr(combined.min).lstrip("-") == repr(together.min).lstrip("-")
