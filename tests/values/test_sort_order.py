"""The order of `sorted`, `min` and `max`: Python's own, NaN last."""

from __future__ import annotations

import functools
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dstream.values.order import NanLast, before, choose, holds_nan, sort

NAN = math.nan


@pytest.mark.parametrize(
    ("reverse", "expected"), [(False, "[-inf, 1, 2.0, inf, nan, nan]"), (True, "[nan, nan, inf, 2.0, 1, -inf]")]
)
def test_nan_comes_after_all_other_numbers(reverse, expected):
    """Wherever it stands, after infinity; in reverse before it."""
    items = [NAN, 2.0, math.inf, NAN, 1, -math.inf]
    sort(items, None, reverse)

    assert repr(items) == expected


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_a_nan_of_numpy_comes_after_all_other_numbers(kind):
    """Of any size, by key or alone."""
    items = [kind("nan"), kind(2), 3, np.int8(1)]
    sort(items, None, False)

    assert items[:3] == [1, 2, 3]
    assert NanLast(None)(items[3]) is NanLast(None)(NAN)
    assert choose(max, items, abs) is items[3]


class Odd(float):
    """A number that refuses to say which one it is."""

    def __float__(self) -> float:
        raise ArithmeticError("odd")


MIXTURES = [
    [1.0, 2, True, Fraction(1, 3), Decimal(2)],
    [1.0, "text", None],
    [1.0, 10**400],
    [1e308] * 5,
    [math.inf, -math.inf, 5e-324],
    [1.0, Odd(1.0)],
    [1.0, Decimal("sNaN")],
    [2, 1.0],
    [0.5] * 3000,
    [2**70, -(2**70), True],
    [1, Fraction(1, 3), Decimal(2)],
    [1, "text", None],
    [1, math.inf, -math.inf],
    [7] * 3000,
]


@pytest.mark.parametrize("others", MIXTURES, ids=lambda others: repr(others)[:40])
def test_a_nan_is_found_wherever_it_stands(others):
    """Among floats of any size, and among keys that are no floats or no numbers; none is found where none is."""
    places = {0, 1, len(others) // 2, len(others)}

    assert not holds_nan(others)
    assert all(holds_nan([*others[:place], NAN, *others[place:]]) for place in places)


def test_sorting_is_stable_and_asks_for_each_key_once():
    """Equal keys keep their order, NaN keys too."""
    calls = []
    items = [("a", NAN), ("b", 1.0), ("c", NAN), ("d", 1.0)]
    sort(items, lambda item: calls.append(item) or item[1], False)

    assert ("".join(name for name, _ in items), len(calls)) == ("bdac", 4)


def test_comparators_sort():
    """A key made by `cmp_to_key` has an order of its own."""
    items = [1, 3, 2]
    sort(items, functools.cmp_to_key(lambda left, right: right - left), False)

    assert items == [3, 2, 1]


def test_choose_gives_the_first_of_equals():
    """By key or by the items themselves; NaN is the greatest."""
    words = ["bb", "a", "c", "dd"]

    assert (choose(min, words, len), choose(max, words, len)) == ("a", "bb")
    assert (choose(min, [NAN, 2.0], None), repr(choose(max, [2.0, NAN], None))) == (2.0, "nan")


def test_single_comparisons_agree_with_sorting():
    """What stands for NaN is after every key, equal to itself only, also after it travelled."""
    last = pickle.loads(pickle.dumps(NanLast(None)(NAN)))

    assert (math.inf < last, last < math.inf, last > math.inf, last < last, last > last) == (
        True,
        False,
        True,
        False,
        False,
    )


@pytest.mark.parametrize(
    ("bound", "reverse", "expected"),
    [
        (1, False, []),
        (2, False, [1]),
        (2, True, [3, 2.5, NAN, 2.5]),
        (2.5, False, [2, 1]),
        (2.5, True, [3, NAN]),
        (NAN, False, [3, 2.5, 2, 1, 2.5]),
        (NAN, True, []),
    ],
)
def test_before_gives_what_a_sort_puts_in_front(bound, reverse, expected):
    """What stands beside the bound is left out; NaN stands behind all other keys."""
    assert before([3, 2.5, NAN, 2, 1, 2.5], bound, None, reverse) == expected


class Natural(str):
    """Text whose `<` is that of numbers; its `>` stays that of text."""

    def __lt__(self, other: str) -> bool:
        return int(self) < int(other)


@pytest.mark.parametrize(("reverse", "expected"), [(False, ["9"]), (True, ["100", "11"])])
def test_before_asks_for_less_only_as_a_sort_does(reverse, expected):
    """A class may say no more than what is less."""
    keys = [Natural(text) for text in ("9", "100", "10", "11")]

    assert before(keys, Natural("10"), None, reverse) == expected


@pytest.mark.parametrize(("reverse", "bound", "expected"), [(False, 5.0, 1.0), (True, 0.5, 1.0)])
def test_before_is_not_stopped_by_a_key_that_is_less_than_nothing(reverse, bound, expected):
    """A NaN inside of a key is not seen as one; it hides no other item."""
    found = before([(NAN, 0), (expected, 0)], (bound, 0), None, reverse)

    assert (expected, 0) in found
