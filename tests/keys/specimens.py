"""Keys of subclasses, enums and numpy beside the plain keys that they equal; other processes can import them."""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy


class Text(str):
    """A text of a class of its own, as numpy and many libraries have."""


class Number(int):
    pass


class Real(float):
    pass


class Wave(complex):
    pass


class Octets(bytes):
    pass


class Row(tuple):
    pass


class Pair(NamedTuple):
    left: Any
    right: Any


class Bag(frozenset):
    pass


class Day(date):
    pass


class Moment(datetime):
    pass


class Clock(time):
    pass


class Span(timedelta):
    pass


class Money(Decimal):
    pass


class Share(Fraction):
    pass


class Id(uuid.UUID):
    pass


class Mood(enum.StrEnum):
    GLAD = "n"


class Old(str, enum.Enum):  # noqa: UP042 - what was written before `StrEnum`
    GLAD = "n"


class Size(enum.IntEnum):
    ONE = 1


class Real1(float, enum.Enum):
    HALF = 0.5


class Raw(bytes, enum.Enum):
    N = b"n"


class Row1(tuple, enum.Enum):
    A = (1, "n")


class Day1(date, enum.Enum):
    FIRST = (2024, 1, 1)


class Bits(enum.IntFlag):
    A = 1
    B = 2


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Color(enum.Enum):
    RED = 1
    GREEN = "n"


@dataclass(frozen=True)
class Place:
    town: Any
    street: Any = None


@dataclass(frozen=True, slots=True)
class Spot:
    x: Any


class Town(Place):
    """Equals no place: `@dataclass` compares classes."""


ONE_KEY: list[list[Any]] = [
    ["n", Text("n"), numpy.str_("n"), Mood.GLAD, Old.GLAD],
    ["", Text(), numpy.str_("")],
    [1, Number(1), True, 1.0, Real(1), Size.ONE, Bits.A, numpy.int8(1), numpy.uint64(1), numpy.bool_(True)]
    + [numpy.float32(1), Decimal(1), Money(1), Fraction(1), Share(1), 1 + 0j, Wave(1), numpy.complex64(1)],
    [2, Number(2), Bits.B, numpy.int64(2), Real(2)],
    [3, Bits.A | Bits.B, Real(3.0)],
    [0, False, -0.0, Real(-0.0), numpy.bool_(False), Bits(0), numpy.float64(-0.0)],
    [2**70, Number(2**70), float(2**70), Real(2**70), Money(2**70)],
    [0.5, Real(0.5), Real1.HALF, numpy.float64(0.5), numpy.float16(0.5), Decimal("0.50"), Money("0.5"), Share(1, 2)],
    [float("nan"), Real("nan"), numpy.float64("nan"), Money("nan"), numpy.float32("nan")],
    [1j, Wave(1j), numpy.complex128(1j)],
    [b"n", Octets(b"n"), numpy.bytes_(b"n"), Raw.N],
    [(1, "n"), Row((1, "n")), Pair(True, Text("n")), (Number(1), numpy.str_("n")), (Size.ONE, Mood.GLAD), Row1.A],
    [(), Row()],
    [(None, 0.5), Pair(None, Real(0.5))],
    [(1, (float("nan"),)), Row((True, Row((Real("nan"),))))],
    [frozenset([1, "n"]), Bag([1.0, Text("n")])],
    [date(2024, 1, 1), Day(2024, 1, 1), Day1.FIRST],
    [datetime(2024, 1, 1), Moment(2024, 1, 1)],
    [datetime(2024, 1, 1, tzinfo=UTC), Moment(2024, 1, 1, tzinfo=UTC)],
    [time(1), Clock(1)],
    [timedelta(1), Span(1)],
    [Fraction(1, 3), Share(1, 3)],
    [uuid.UUID(int=1), Id(int=1)],
    [PurePosixPath("n")],
    [range(2), range(0, 2, 1)],
    [Rights.READ],
    [Rights.READ | Rights.WRITE],
    [Color.RED],
    [Color.GREEN],
    [Place("n", 1), Place(Text("n"), True), Place(numpy.str_("n"), Size.ONE)],
    [Place(float("nan")), Place(Real("nan"))],
    [Place(float("nan"), 2), Place(numpy.float64("nan"), 2.0)],
    [Place(Place(float("nan"))), Place(Place(Decimal("nan")))],
    [(Spot(float("nan")), 1), (Spot(Real("nan")), True)],
    [Place((float("nan"),)), Place(Row((float("nan"),)))],
    [Town("n", 1)],
    [Spot("n"), Spot(Mood.GLAD)],
]
"""Each list holds what is one key, and no two lists hold one key together."""

KEYS = [key for keys in ONE_KEY for key in keys]
NUMBERS = [number for number, keys in enumerate(ONE_KEY) for _ in keys]
"""Which key each of `KEYS` is."""
