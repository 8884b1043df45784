"""`limit`: the first items."""

from __future__ import annotations

import sys

import pytest

from collectors import bottom_n, top_n
from dstream.gatherers import window_sliding


def test_limit_counts_over_partitions(engine):
    """The first items in encounter order, from as many partitions as it takes; None counts."""
    assert engine.stream([7, None, 5, 1, 2], 3).limit(3).to_list() == [7, None, 5]


def test_limit_of_more_than_there_are_gives_all(engine):
    """A limit behind the end changes nothing, in the middle of a chain neither."""
    assert engine.stream([2, 1], 3).limit(5).map(str).to_list() == ["2", "1"]


def test_limit_of_nothing_and_limit_to_nothing(engine):
    """Nothing stays nothing; a limit of 0 leaves nothing and runs no function."""
    failing = engine.stream([0], 2).map(lambda n: 1 // n).limit(0)

    assert (engine.stream([], 2).limit(3) + failing).map(str).to_list() == []
    assert failing.to_list() == []


def test_limit_behind_skip_is_a_page(engine):
    """`skip(n).limit(m)` is a slice."""
    assert engine.stream(range(10), 4).skip(3).limit(4).count() == 4
    assert engine.stream(range(10), 4).skip(3).limit(4).to_list() == [3, 4, 5, 6]


def test_limit_of_limits_is_the_least_of_them(engine):
    """The order of two limits does not matter."""
    letters = engine.stream("abcde", 3)

    assert (letters.limit(4).limit(2) + letters.limit(2).limit(4)).to_list() == ["a", "b", "a", "b"]


@pytest.mark.parametrize("method", ["limit", "skip"])
@pytest.mark.parametrize(("n", "error"), [(-1, ValueError), (None, TypeError), (1.5, TypeError), ("2", TypeError)])
def test_limit_and_skip_refuse_what_is_no_count(local_context, method, n, error):
    """A count is an int that is not negative, checked at the call."""
    with pytest.raises(error, match=r"^n must"):
        getattr(local_context.stream([1]), method)(n)


HUGE = {
    "limit": lambda s, n: s.limit(n).to_list(),
    "top": lambda s, n: s.top(n).to_list(),
    "sorted limit": lambda s, n: s.sorted(reverse=True).limit(n).to_list(),
    "skip": lambda s, n: s.limit(2).skip(n).to_list(),
    "page": lambda s, n: s.skip(1).limit(n).to_list(),
    "limit of a limit": lambda s, n: s.limit(n).skip(1).limit(n).to_list(),
    "map and limit": lambda s, n: list(s.map(abs).limit(n)),
    "top_n": lambda s, n: s.collect(top_n(n)),
    "bottom_n": lambda s, n: s.collect(bottom_n(n)),
    "chunked": lambda s, n: s.chunked(n).to_list(),
    "window_sliding": lambda s, n: s.gather(window_sliding(n)).to_list(),
}


@pytest.mark.parametrize("operation", HUGE)
@pytest.mark.parametrize("n", [sys.maxsize - 1, 2**63, 2**80])
def test_any_number_will_do(engine, operation, n):
    """Numbers beyond 64 bits mean what smaller ones do that are larger than the number of items."""
    assert HUGE[operation](engine.stream([3, 1, 2], 2), n) == HUGE[operation](engine.stream([3, 1, 2], 2), 10**6)
