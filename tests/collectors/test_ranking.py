import functools
import math

import numpy as np
import pytest

from collectors import all_of, bottom_n, grouping_by, max_by, min_by, sorting, top_n
from dstream.values import Optional

NAN = math.nan


def test_min_by_and_max_by_take_the_first_of_equals():
    """In bulk and item by item."""
    words = ["bb", "a", "c", "dd"]

    assert min_by(len).collect(words) == Optional.of("a")
    assert max_by(len).collect(words) == Optional.of("bb")


def test_the_first_of_equals_wins_across_parts():
    """The left part comes first."""
    collector = max_by(len)
    left, right = (collector.accumulated(collector.supplier(), [word]) for word in ("aa", "bb"))

    assert collector.finisher(collector.combined(left, right)) == Optional.of("aa")


def test_without_a_key_the_items_are_compared():
    """As min() and max() do."""
    assert min_by().collect([3, 1, 2]) == Optional.of(1)
    assert max_by().collect("abc") == Optional.of("c")


@pytest.mark.parametrize("factory", [min_by, max_by])
def test_nothing_and_none_give_an_empty_optional(factory):
    """A selected None is as good as nothing, and does not hide the items after it."""
    assert factory().collect([]) == Optional.empty()
    assert factory(lambda item: 0).collect([None, 1]) == Optional.empty()


def test_a_comparator_serves_as_key():
    """`functools.cmp_to_key` turns one into a key."""
    backwards = functools.cmp_to_key(lambda left, right: right - left)

    assert min_by(backwards).collect([1, 3, 2]) == Optional.of(3)
    assert sorting(backwards).collect([1, 3, 2]) == [3, 2, 1]


def test_nan_is_after_every_other_key():
    """For each of them, wherever the NaN stands."""
    assert repr(min_by().collect([NAN, 2.0, 1.0])) == "Optional[1.0]"
    assert repr(max_by().collect([1.0, NAN, math.inf])) == "Optional[nan]"
    assert repr(sorting().collect([2.0, NAN, 1, NAN, math.inf])) == "[1, 2.0, inf, nan, nan]"
    assert repr(top_n(2).collect([1.0, NAN, 3.0])) == "[nan, 3.0]"
    assert repr(bottom_n(2).collect([NAN, 3.0, 1.0])) == "[1.0, 3.0]"


@pytest.mark.parametrize("nan", [NAN, *(kind("nan") for kind in (np.float64, np.float32, np.float16, np.longdouble))])
def test_a_nan_of_numpy_is_after_every_other_key(nan):
    """As in `sorted()`, in any size: of them only `numpy.float64` is a subclass of `float`."""
    for numbers in ([nan, np.float64(1)], [np.float64(1), nan]):
        assert [min_by().collect(numbers).get(), bottom_n(1).collect(numbers)[0], sorting().collect(numbers)[0]] == [
            1
        ] * 3
        assert math.isnan(max_by().collect(numbers).get())
        assert math.isnan(top_n(1).collect(numbers)[0])


def test_top_n_is_descending_and_stable():
    """The greatest first, of equals the first."""
    assert top_n(3, len).collect(["a", "bb", "cc", "ddd", "ee"]) == ["ddd", "bb", "cc"]


def test_bottom_n_is_ascending_and_stable():
    """The least first, of equals the first."""
    assert bottom_n(3, len).collect(["ccc", "aa", "b", "dd", "e"]) == ["b", "e", "aa"]


def test_fewer_items_than_n():
    """All of them, in order; none for an n of 0."""
    assert top_n(5).collect([1, 3, 2]) == [3, 2, 1]
    assert top_n(0).collect([1, 2]) == []
    assert bottom_n(2).collect([]) == []


def test_top_n_holds_few_items():
    """The container stays small, in bulk and item by item."""
    collector = top_n(3)
    one_by_one = collector.supplier()
    for number in range(10_000):
        collector.accumulator(one_by_one, number)

    assert len(one_by_one) <= 2 * 3 + 64
    assert len(collector.accumulated(collector.supplier(), range(10_000))) == 3


@pytest.mark.parametrize("factory", [top_n, bottom_n])
def test_n_must_be_a_count(factory):
    """A negative n and one that is not an int are refused at the call."""
    with pytest.raises(ValueError, match="n must not be negative, but is -1"):
        factory(-1)
    with pytest.raises(TypeError, match="n must be an int, not float"):
        factory(2.0)


def test_sorting_is_stable():
    """Equal keys keep their encounter order."""
    assert sorting(len).collect(["ccc", "b", "aaa", "a"]) == ["b", "a", "ccc", "aaa"]
    assert sorting().collect([]) == []


COMPARED = functools.cmp_to_key(lambda left, right: (left > right) - (left < right))
BY_COMPARATOR = {
    "min_by": (min_by(COMPARED), Optional.of(0)),
    "max_by": (max_by(COMPARED), Optional.of(9)),
    "top_n": (top_n(2, lambda n: (COMPARED(n % 3), n)), [8, 5]),
    "bottom_n": (bottom_n(2, COMPARED), [0, 1]),
    "grouping_by": (grouping_by(lambda n: n % 2, max_by(COMPARED)), {0: Optional.of(8), 1: Optional.of(9)}),
    "all_of": (all_of(min_by(COMPARED), top_n(1, COMPARED)), (Optional.of(0), [9])),
}


@pytest.mark.parametrize("name", BY_COMPARATOR)
def test_keys_of_a_comparator_need_not_travel(engine, name):
    """Items of several partitions are ranked by keys that no process could send to another."""
    collector, expected = BY_COMPARATOR[name]

    assert engine.stream(range(10), 3).collect(collector) == expected
