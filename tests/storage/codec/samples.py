"""Classes and strategies that the tests of the codec share; they can be imported by another process."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID

from hypothesis import strategies as st

NAN = float("nan")
ZONE = timezone(timedelta(hours=5, minutes=30))


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Size(enum.IntEnum):
    ONE = 1


class Mood(enum.StrEnum):
    GLAD = "glad"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class Place:
    town: Any
    street: Any = None


@dataclass(frozen=True, slots=True)
class Spot:
    x: float
    y: float


@dataclass
class Order:
    id: int
    total: Decimal
    lines: list[str] = field(default_factory=list)
    note: str | None = None


@dataclass(frozen=True)
class Labelled:
    """Compares by its number alone."""

    number: int
    label: str = field(default="", compare=False)


@dataclass
class Loose:
    x: int


@dataclass
class Closing:
    """Does something when it goes."""

    path: str

    def __del__(self) -> None:
        CLOSED.append(self.path)


CLOSED: list[str] = []


class Plain:
    """Has no form of its own: it must be pickled."""

    def __init__(self, x: int) -> None:
        self.x = x

    def __repr__(self) -> str:
        return f"Plain({self.x})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and self.x == other.x

    def __hash__(self) -> int:
        return hash(self.x)


_small = st.integers(-3, 3)
numbers = st.one_of(
    _small,
    st.booleans(),
    st.integers(),
    st.integers(-(2**80), 2**80),
    _small.map(float),
    st.floats(),
    st.sampled_from([0.5, -0.0, NAN, Decimal("0.5"), Fraction(1, 2), Decimal("0.1"), 0.1, Fraction(1, 10), 0.5 + 0j]),
    st.sampled_from([Decimal("NaN"), Decimal("Infinity"), Decimal("1E+3"), 1000, Decimal("1.50"), 1.5, Size.ONE, 1j]),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9),
    st.fractions(max_denominator=1000),
    st.complex_numbers(max_magnitude=3),
)
_moments = st.one_of(
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([UTC, ZONE, timezone(-timedelta(hours=23, minutes=59))])),
    st.times(timezones=st.sampled_from([None, UTC, ZONE])),
    st.timedeltas(),
    st.sampled_from(
        [
            date(2024, 1, 1),
            datetime(2024, 1, 1),
            datetime(2024, 1, 1, fold=1),
            datetime(2024, 1, 1, 12, tzinfo=UTC),
            datetime(2024, 1, 1, 17, 30, tzinfo=ZONE),
            time(12, tzinfo=UTC),
            time(17, 30, tzinfo=ZONE),
            time(12),
        ]
    ),
)
_texts = st.one_of(
    st.text(st.characters(exclude_categories=[]), max_size=4),
    st.sampled_from(["glad", "a", "1", "\ud800", "\ud83d\ude00", "😀", Mood.GLAD]),
    st.binary(max_size=4),
)
_others = st.one_of(
    st.uuids().map(lambda found: UUID(int=found.int)),
    st.sampled_from([Color.RED, Color.GREEN, Rights.READ, Rights.READ | Rights.WRITE, Labelled(1), Labelled(1, "one")]),
    st.builds(range, _small, _small, st.sampled_from([1, 2, -1])),
    st.sampled_from([PurePosixPath("a"), PurePosixPath("a/"), PureWindowsPath("A"), PureWindowsPath("a")]),
)
_leaves = st.one_of(numbers, _texts, _moments, _others)


def _nested(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    inner = st.none() | parts
    return st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Point, inner, inner),
        st.builds(Place, inner, inner),
    )


keys = st.recursive(_leaves, _nested, max_leaves=5)
"""Keys of every kind, with many that are equal though they differ in type."""


def shown(value: Any) -> str:
    """Return the repr of a key with its sets in one order.

    `Decimal("NaN")` is hashed by identity, so two equal frozensets that hold one may be iterated differently.
    """
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(shown, value))})"
    if isinstance(value, tuple):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    if isinstance(value, Place):
        return f"Place({shown(value.town)}, {shown(value.street)})"
    return repr(value)
