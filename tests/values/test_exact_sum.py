"""`ExactSum`: float addition that rounds once."""

from __future__ import annotations

import math
import pickle
import random
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dstream.values import ExactSum

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def summed(numbers):
    """Return the sum of `numbers`."""
    total = ExactSum()
    total.add_all(numbers)
    return total.value()


def rounded(exact):
    """Return a fraction as the nearest float, infinity where there is none."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@given(st.lists(FINITE, max_size=40))
@example([1e308, 1e308, -1e308])
@example([1e308, 1e308])
@example([5e-324, 1.0, -1.0])
@example([1e16, 1.0, 1e-16, -1e16])
def test_the_sum_is_that_of_fractions(numbers):
    """Whatever the numbers, the exact sum rounded once; intermediate overflow does not matter."""
    assert summed(numbers) == rounded(sum(map(Fraction, numbers), Fraction()))


@given(st.lists(st.floats(), max_size=20), st.integers(0, 20))
@example([1e308, 1e308, -1e308], 2)
@example([math.inf, -math.inf], 1)
@example([1e308, 1e308, math.inf, -1e308], 2)
def test_the_sum_does_not_depend_on_the_division(numbers, cut):
    """Merged partial sums, also after they travelled, and single additions give the same as one pass."""
    left, right, single = ExactSum(), ExactSum(), ExactSum()
    left.add_all(numbers[:cut])
    right.add_all(numbers[cut:])
    for number in numbers:
        single.add(number)
    left.merge(pickle.loads(pickle.dumps(right)))

    assert repr(left.value()) == repr(single.value()) == repr(summed(numbers))


@given(st.lists(st.floats(), max_size=10), st.sampled_from([math.inf, -math.inf, math.nan]))
def test_specials_follow_ieee_754(numbers, special):
    """An infinity stays, two of different signs and any NaN are NaN, wherever they stand."""
    numbers = [*numbers, special]
    specials = [number for number in numbers if not math.isfinite(number)]

    assert repr(summed(numbers)) == repr(sum(specials))


def test_nothing_sums_to_zero():
    """The sum of nothing is 0.0, a float."""
    assert repr(ExactSum().value()) == "0.0"


def test_many_numbers_are_added_exactly():
    """More than one chunk, of very different sizes."""
    random_numbers = random.Random(7)
    numbers = [random_numbers.uniform(-1, 1) * 10.0 ** random_numbers.randint(-300, 300) for _ in range(20_000)]

    assert summed(numbers) == float(sum(map(Fraction, numbers)))
    assert summed([0.1] * 10_000) == 1000.0


def test_the_state_stays_small():
    """However many numbers were added, few floats travel; so also where the sum so far overflows."""
    total, overflowing = ExactSum(), ExactSum()
    total.add_all(random.Random(1).random() for _ in range(50_000))
    overflowing.add_all([1e308] * 20_000)

    assert len(pickle.dumps(total)) < 500
    assert len(pickle.dumps(overflowing)) < 5000
    assert overflowing.value() == math.inf


@pytest.mark.parametrize("numbers", [[], [0.1], [math.nan], [math.inf]])
def test_equality_and_text_are_those_of_the_value(numbers):
    """Two sums are equal if their values are, NaN included."""
    left, right = ExactSum(), ExactSum()
    left.add_all(numbers)
    right.add_all(numbers)

    assert left == right
    assert repr(left) == f"ExactSum({left.value()!r})"
