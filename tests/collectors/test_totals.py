"""The containers behind sums and averages: one int while all numbers are ints, then what takes floats too."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import averaging, grouping_by, mapping, summarizing, summing
from dstream.collectors.totals import Totals
from dstream.values import ExactSum

INTS = st.one_of(st.integers(-3, 3), st.integers(-(2**80), 2**80))
NUMBERS = st.one_of(INTS, st.sampled_from([0.1, -0.0, 1e100, -1e100, 2.5]))
BATCHES = st.lists(st.lists(st.tuples(st.sampled_from("abc"), NUMBERS), max_size=40), max_size=5)


def exact(numbers):
    """Return the sum, rounded once if a float is among the numbers."""
    if all(type(number) is int for number in numbers):
        return sum(numbers)
    return float(sum(map(Fraction, numbers)))


def grouped(pairs):
    """Return the numbers of each key."""
    groups = defaultdict(list)
    for key, number in pairs:
        groups[key].append(number)
    return groups


@given(BATCHES)
def test_sums_of_groups_are_exact_however_batches_mix_ints_and_floats(batches):
    """A group that has seen ints may see floats later, and ints again."""
    collector = grouping_by(lambda pair: pair[0], mapping(lambda pair: pair[1], summing()))
    groups = collector.supplier()
    for batch in batches:
        groups = collector.accumulated(groups, batch)
    found = collector.finisher(groups)
    expected = {key: exact(numbers) for key, numbers in grouped(chain.from_iterable(batches)).items()}

    assert {key: (value, type(value)) for key, value in found.items()} == {
        key: (value, type(value)) for key, value in expected.items()
    }
    assert list(found) == list(expected)


@given(st.lists(st.lists(NUMBERS, max_size=50), max_size=6))
def test_containers_of_any_kind_merge(parts):
    """An int, a list and a `Total` come together in each order."""
    collector = averaging()
    whole = collector.supplier()
    for part in parts:
        whole = collector.combined(whole, collector.accumulated(collector.supplier(), part))
    numbers = list(chain.from_iterable(parts))
    expected = exact(numbers) / len(numbers) if numbers else 0.0

    assert math.isclose(collector.finisher(whole), expected, rel_tol=0, abs_tol=0)


def test_ints_stay_one_int():
    """Neither a list nor an object of a class is made for them, also where many come together."""
    collector = grouping_by(lambda number: number % 3, averaging())
    groups = collector.accumulated(collector.supplier(), list(range(10_000)))

    assert {type(container) for container in groups.values()} == {int}


def test_no_floats_change_no_container():
    """As those of a group in a block of which no row passes a filter: not even a count."""
    assert Totals().add_floats(7, 0, ExactSum()) == 7


def test_counts_and_sums_do_not_touch_each_other():
    """Sums below zero, and sums that need more bits than the count has, leave the count alone."""
    totals = Totals()
    for values in ([-1], [-5, 3], [2**100, -(2**100)], [-(2**60)]):
        container = totals.add_all(0, values)
        for value in values:
            container = totals.add(container, value)

        assert totals.sum(container) == 2 * sum(values)
        assert totals.average(container) == sum(values) / len(values)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("left", "right"), [([], []), ([], [1.0] * 40), ([1.0] * 40, []), ([1.0] * 40, [1.0] * 40)])
def test_statistics_have_the_first_of_equal_extremes_however_their_parts_meet(left, right, sign):
    """Lists of few numbers and what they become, in the order of the parts: -0.0 equals 0.0."""
    collector = summarizing()
    parts = [[*left, sign * 0.0], [sign * -0.0, *right]]
    once = [collector.accumulated(collector.supplier(), part) for part in parts]
    twice = [collector.accumulated(collector.accumulated(collector.supplier(), part), part) for part in parts]

    assert repr(collector.finisher(collector.combined(*once))) == repr(collector.collect(chain(*parts)))
    assert repr(collector.finisher(collector.combined(*twice))) == repr(collector.collect(chain(*parts, *parts)))
