"""Exact comparison, and how a difference is written."""

from __future__ import annotations

import datetime
import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import attrs
import numpy as np
import pytest

from dstream import Entry, Optional
from dstream.testing.comparison import difference, difference_in_any_order, exact


class Plain:
    def __init__(self, held: Any) -> None:
        self.held = held


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


class CaseBlind:
    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CaseBlind) and other.text.lower() == self.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())


@dataclass
class Order:
    price: float
    seen: int = field(default=0, compare=False)


@attrs.frozen
class Frozen:
    held: Any
    seen: int = attrs.field(eq=False)


@attrs.frozen
class Folded:
    text: str = attrs.field(eq=str.lower)


@attrs.frozen(eq=False)
class CaseBlindAttrs(CaseBlind):
    text: str


@dataclass(frozen=True, eq=False)
class CaseBlindData(CaseBlind):
    text: str


def circle() -> list[Any]:
    """Return a list that contains itself."""
    made: list[Any] = [1]
    made.append(made)
    return made


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (math.nan, float("nan")),
        ([1, {"a": {2, 3}}], [1, {"a": {3, 2}}]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (0.0, -0.0),
        (Plain([1]), Plain([1])),
        (Slotted(math.nan), Slotted(math.nan)),
        (Order(math.nan, seen=1), Order(math.nan, seen=2)),
        (CaseBlind("A"), CaseBlind("a")),
        (Optional.of(math.nan), Optional.of(math.nan)),
        (Decimal("1.0"), Decimal("1.00")),
        (datetime.date(2020, 1, 1), datetime.date(2020, 1, 1)),
        (circle(), circle()),
        (len, len),
        (bytearray(b"a"), bytearray(b"a")),
        (Decimal("NaN"), Decimal("NaN")),
        (Decimal("sNaN"), Decimal("sNaN")),
        (np.float32("nan"), np.float32("nan")),
        (np.datetime64("NaT"), np.datetime64("NaT")),
        (Frozen([math.nan], 1), Frozen([math.nan], 2)),
        (Folded("A"), Folded("a")),
        (CaseBlindAttrs("A"), CaseBlindAttrs("a")),
        (CaseBlindData("A"), CaseBlindData("a")),
    ],
)
def test_equal_values_are_the_same(left, right):
    """As Python says, all NaN alike, and objects without an equality by what they hold."""
    assert exact(left) == exact(right)
    assert difference(left, right) is None
    assert difference_in_any_order([left], [right]) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, True),
        ([1], (1,)),
        ({1: "a"}, {1.0: "a"}),
        ({1}, {True}),
        ({1}, frozenset({1})),
        ({"a": 1}, OrderedDict(a=1)),
        ([1], deque([1])),
        (Plain(1), Plain(True)),
        (Plain(1), Slotted(1)),
        (Order(1.0), Order(2.0)),
        (Optional.of(1), Optional.of(1.0)),
        (Optional.of(0), Optional.empty()),
        (Entry("a", 1), ("a", 1)),
        (len, abs),
        (None, math.nan),
        (Decimal("NaN"), Decimal("sNaN")),
        (np.float32("nan"), np.float64("nan")),
        (Frozen(1, 0), Frozen(1.0, 0)),
        (Folded("A"), Folded("b")),
        (CaseBlindAttrs("A"), CaseBlindAttrs("b")),
    ],
)
def test_other_values_differ(left, right):
    """The type counts, at every depth."""
    assert exact(left) != exact(right)
    assert difference(left, right) is not None
    assert difference_in_any_order([left], [right]) is not None


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        (1, 2, "expected 1, got 2"),
        (1, True, "expected 1 (int), got True (bool)"),
        ([1, [2, 3]], [1, [2, 4]], "at [1][1]: expected 3, got 4"),
        ([1, 2], [1], "at [1]: expected 2, got nothing more"),
        ([1], [1, 2], "at [1]: expected nothing more, got 2"),
        ({"a": [1]}, {"a": [2]}, "at ['a'][0]: expected 1, got 2"),
        ({"a": 1}, {}, "the key 'a' is missing"),
        ({}, {"a": 1}, "the key 'a' is unexpected"),
        ({1, 2}, {2, 3}, "missing: 1; unexpected: 3"),
        ([{1}], [set()], "at [0]: missing: 1"),
    ],
)
def test_the_first_difference_is_written_with_its_place(expected, actual, said):
    """One line says where, what was expected and what came."""
    assert difference(expected, actual) == said


def test_without_order_items_are_counted():
    """Missing and unexpected items come with their numbers, five of them at most."""
    assert difference_in_any_order([[1], [1], [2]], [[2], [3]]) == "missing: [1] (2 times); unexpected: [3]"
    assert difference_in_any_order([], range(7)) == "unexpected: 0, 1, 2, 3, 4, and 2 others"
