"""`describe` and `histogram`: what numbers are like."""

from __future__ import annotations

import itertools
import math
import statistics
import sys

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dstream as ds
from dstream import IntStream
from dstream.errors import IllegalStateError
from dstream.testing import same_everywhere

NUMBERS = st.lists(st.floats(-1e6, 1e6) | st.integers(-9, 9), min_size=2, max_size=30)


def test_describe_is_the_same_on_both_engines():
    """However the numbers are divided; a description is a value."""
    found = same_everywhere(lambda s: s.describe(), [4, 1, 3.5, True], partitions=(1, 3))

    assert (found.count, found.mean, found.min, found.max) == (4, 2.375, 1.0, 4.0)
    assert found == ds.Stream.of(1, 1, 3.5, 4).describe()


@settings(max_examples=50)
@given(NUMBERS)
def test_describe_says_what_the_standard_library_says(numbers):
    """The deviation is that of a sample, the quartiles are interpolated between the numbers."""
    with ds.connect(engine="local") as ctx:
        found = ctx.stream(numbers, 2).describe()
    quartiles = statistics.quantiles(numbers, n=4, method="inclusive")

    assert found.mean == pytest.approx(statistics.mean(numbers), abs=1e-9)
    assert found.deviation == pytest.approx(statistics.stdev(numbers), abs=1e-9)
    assert [found.lower_quartile, found.median, found.upper_quartile] == pytest.approx(quartiles, abs=1e-9)


def test_describe_of_little(local_context):
    """Nothing has a count alone, one number no deviation, and one NaN leaves the count."""
    nothing, one, unknown = (local_context.stream(items).describe() for items in ([], [7], [1.0, math.nan]))

    assert nothing.count == 0
    assert math.isnan(nothing.min)
    assert math.isnan(nothing.mean)
    assert (one.mean, one.median) == (7.0, 7.0)
    assert math.isnan(one.deviation)
    assert unknown.count == 2
    assert math.isnan(unknown.median)
    assert math.isnan(unknown.max)


def test_describe_shows_a_table():
    """In a terminal as lines, in a notebook as HTML."""
    description = IntStream.range_closed(1, 4).describe()

    assert repr(description).splitlines()[1] == "mean                2.5"
    assert "<th>lower quartile</th>" in description._repr_html_()
    assert "<td>1.29099</td>" in description._repr_html_()


def test_histogram_is_the_same_on_both_engines():
    """Each bin holds its lower edge, the last one both."""
    found = same_everywhere(lambda s: s.histogram(4), [1, 2, 2, 3, 3, 3, 9], partitions=(1, 3))

    assert (found.edges, found.counts, found.outside) == ((1.0, 3.0, 5.0, 7.0, 9.0), (3, 3, 0, 1), 0)


@settings(max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), max_size=30), st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6, unique=True))
@example([0.0, 1.0, 2.0, 2.5], [0.0, 1.0, 2.0])
def test_histogram_counts_as_plain_python_does(numbers, edges):
    """Between edges that are given; what lies beyond them, and NaN, is counted apart."""
    edges = sorted(edges)
    with ds.connect(engine="local") as ctx:
        found = ctx.stream([*numbers, math.nan], 2).histogram(edges)
    bins = list(itertools.pairwise(edges))
    counts = [sum(low <= n < high or n == high == edges[-1] for n in numbers) for low, high in bins]

    assert (list(found.counts), found.outside) == (counts, len(numbers) + 1 - sum(counts))


def test_histogram_between_the_least_and_the_greatest(local_context):
    """Every number lies in a bin, also where there is one number, or none."""
    assert sum(local_context.stream(i / 7 for i in range(1000)).histogram(13).counts) == 1000
    assert local_context.stream([3, 3]).histogram(2).counts == (0, 2)
    assert local_context.stream([]).histogram(2) == local_context.stream([]).histogram([0, 0.5, 1])
    assert local_context.stream([1e308, -1e308]).histogram(2).edges == (-1e308, 0.0, 1e308)
    for utmost in (sys.float_info.max, -sys.float_info.max):
        assert sum(local_context.stream([utmost, utmost]).histogram(2).counts) == 2


def test_histogram_of_a_stream_that_changes_is_refused(local_context):
    """It runs twice, and edges of other numbers would be a wrong answer."""
    numbers = iter(range(100))
    changing = local_context.stream(range(3)).map(lambda n: next(numbers))

    with pytest.raises(IllegalStateError, match=r"cache\(\) keeps them"):
        changing.histogram(2)


def test_histogram_draws_itself(local_context):
    """Bars in a terminal, which are at least one character long; HTML in a notebook."""
    found = local_context.stream([1, *[9] * 200, math.nan]).histogram(2)

    assert repr(found).splitlines() == ["1 .. 5   1 █", f"5 .. 9 200 {'█' * 40}", "(1 outside)"]
    assert 'width:100.0%"' in found._repr_html_()
    assert "<td>5 .. 9</td>" in found._repr_html_()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.describe(), TypeError, "a real number is needed here, not str"),
        (lambda s: s.histogram(), TypeError, "a real number is needed here, not str"),
        (lambda s: s.histogram(0), ValueError, "bins must be at least 1: 0"),
        (lambda s: s.histogram(2.5), TypeError, "bins must be an int or edges in ascending order, not float"),
        (lambda s: s.histogram("ab"), TypeError, "bins must be an int or edges in ascending order, not str"),
        (lambda s: s.histogram([2, 1]), ValueError, "bins must be at least two edges in ascending order"),
        (lambda s: s.histogram([1, math.nan]), ValueError, "bins must be at least two edges in ascending order"),
        (lambda s: s.map(lambda word: math.inf).histogram(), ValueError, "give the edges"),
        (lambda s: s.map_to_double(len).map(lambda n: 1e16 + 2 * n).histogram(9), ValueError, "too few floats"),
    ],
)
def test_what_has_no_numbers_is_refused_in_words(local_context, call, error, message):
    """The argument or the item is named."""
    with pytest.raises(error, match=message):
        call(local_context.stream(["a", "bb"]))


@pytest.mark.parametrize("call", [lambda s: s.describe(), lambda s: s.histogram(), lambda s: s.histogram([0, 1, 2])])
def test_summaries_refuse_complex_numbers_of_numpy(local_context, call):
    """Python's `float` would drop the imaginary part."""
    with pytest.raises(TypeError, match="a real number is needed here, not complex128"):
        call(local_context.stream([1.0, numpy.complex128(1 + 2j)]))
