"""A hundred kinds of keys as data have them, some hundreds of each."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from ipaddress import IPv4Address
from itertools import product
from typing import Any, NamedTuple

__all__ = ["REAL_KEYS"]

_MANY = 512
_DAY = dt.date(2026, 1, 1)
_NOON = dt.datetime(2026, 1, 1, 12)
_SECOND = 1_767_225_600
_UTC = dt.UTC


class Cell(NamedTuple):
    """A place of a grid."""

    x: int
    y: int


@dataclass(frozen=True)
class Sensor:
    """A device in a room."""

    room: int
    device: int


@dataclass(frozen=True)
class Account:
    """A number at a bank."""

    bank: str
    number: int


_Code = IntEnum("_Code", {f"code_{number}": number * 64 for number in range(_MANY)})  # type: ignore[misc]  # its members are computed
_City = Enum("_City", {f"city_{number}": number for number in range(_MANY)})  # type: ignore[misc]  # its members are computed

_INTS: dict[str, Callable[[int], Any]] = {
    "ints in a row": lambda n: n,
    "negative ints": lambda n: -n,
    "even ints": lambda n: 2 * n,
    "multiples of 3": lambda n: 3 * n,
    "multiples of 10": lambda n: 10 * n,
    "multiples of 16": lambda n: 16 * n,
    "multiples of 64": lambda n: 64 * n,
    "multiples of 100": lambda n: 100 * n,
    "multiples of 1000": lambda n: 1000 * n,
    "multiples of 1024": lambda n: 1024 * n,
    "multiples of 65536": lambda n: n << 16,
    "multiples of 2**32": lambda n: n << 32,
    "multiples of 2**50": lambda n: n << 50,
    "multiples of 2**61": lambda n: n << 61,
    "multiples of 2**61 - 1, and one": lambda n: n * (2**61 - 1) + n,
    "ints from 1,000,000": lambda n: 1_000_000 + n,
    "ints from 2**62": lambda n: 2**62 + n,
    "ints from 2**64": lambda n: 2**64 + n,
    "ints around -2**63": lambda n: -(2**63) + n,
    "squares": lambda n: n * n,
    "cubes": lambda n: n**3,
    "triangular numbers": lambda n: n * (n + 1) // 2,
    "powers of 3": lambda n: 3**n,
    "powers of 10": lambda n: 10**n,
    "full hours in milliseconds": lambda n: 3_600_000 * n,
    "full hours of 2026 in milliseconds": lambda n: 1000 * _SECOND + 3_600_000 * n,
    "full minutes in seconds": lambda n: _SECOND + 60 * n,
    "days in seconds": lambda n: _SECOND + 86_400 * n,
    "days in milliseconds": lambda n: 1000 * (_SECOND + 86_400 * n),
    "days in microseconds": lambda n: 10**6 * (_SECOND + 86_400 * n),
    "days in nanoseconds": lambda n: 10**9 * (_SECOND + 86_400 * n),
    "windows of 10 s in milliseconds": lambda n: 1000 * _SECOND + 10_000 * n,
    "dates as 20260131": lambda n: int((_DAY + dt.timedelta(n)).strftime("%Y%m%d")),
    "months as 202601": lambda n: 100 * (1980 + n // 12) + n % 12 + 1,
    "order numbers of ten shards": lambda n: n * 10 + 7,
    "snowflake ids": lambda n: ((1_000_000 + 977 * n) << 22) | (3 << 12),
    "phone numbers": lambda n: 49_170_000_000 + 100 * n,
    "postcodes": lambda n: 10_000 + 13 * n,
    "IPv4 addresses as ints": lambda n: (10 << 24) + (n << 8) + 1,
    "multiples of a page": lambda n: 4096 * n,
    "addresses of objects": lambda n: 0x7F00_0000_0000 + 48 * n,
}

_NUMBERS: dict[str, Callable[[int], Any]] = {
    "whole floats": lambda n: float(n),
    "halves": lambda n: n / 2,
    "eighths": lambda n: n / 8,
    "1/512ths": lambda n: n / 512,
    "1/2**40ths": lambda n: n / 2**40,
    "tenths": lambda n: n / 10,
    "prices": lambda n: round(n * 0.05, 2),
    "seconds with milliseconds": lambda n: _SECOND + n / 1000,
    "full hours as floats": lambda n: float(_SECOND + 3600 * n),
    "large floats": lambda n: n * 1e300,
    "small floats": lambda n: n * 1e-300,
    "degrees": lambda n: -90 + n * 0.25,
    "Decimals of cents": lambda n: Decimal(n) / 100,
    "whole Decimals": lambda n: Decimal(64 * n),
    "fractions": lambda n: Fraction(n, 7),
    "complex numbers": lambda n: complex(n, -n),
}

_TIMES: dict[str, Callable[[int], Any]] = {
    "dates": lambda n: _DAY + dt.timedelta(n),
    "first days of months": lambda n: dt.date(1980 + n // 12, n % 12 + 1, 1),
    "Mondays": lambda n: _DAY + dt.timedelta(7 * n),
    "full hours": lambda n: _NOON + dt.timedelta(hours=n),
    "noons": lambda n: _NOON + dt.timedelta(n),
    "noons of UTC": lambda n: _NOON.replace(tzinfo=_UTC) + dt.timedelta(n),
    "minutes of UTC": lambda n: _NOON.replace(tzinfo=_UTC) + dt.timedelta(minutes=n),
    "microseconds": lambda n: _NOON + dt.timedelta(microseconds=n),
    "times of a day": lambda n: (_NOON + dt.timedelta(minutes=n)).time(),
    "durations of seconds": lambda n: dt.timedelta(seconds=n),
    "durations of days": lambda n: dt.timedelta(n),
}

_TEXTS: dict[str, Callable[[int], Any]] = {
    "decimal texts": str,
    "padded texts": lambda n: f"{n:08d}",
    "hexadecimal texts": lambda n: f"{n:x}",
    "user-7": lambda n: f"user-{n}",
    "device/0007/temperature": lambda n: f"device/{n:04d}/temperature",
    "texts with a long head": lambda n: "x" * 200 + str(n),
    "texts with a long tail": lambda n: str(n) + "x" * 200,
    "letters": lambda n: chr(0x4E00 + n),
    "two letters": lambda n: chr(97 + n % 26) + chr(97 + n // 26),
    "texts of one letter": lambda n: "a" * n,
    "dates as texts": lambda n: (_DAY + dt.timedelta(n)).isoformat(),
    "hours as texts": lambda n: (_NOON + dt.timedelta(hours=n)).isoformat(),
    "mail addresses": lambda n: f"a.{n}@example.org",
    "URLs": lambda n: f"https://example.org/articles/{n}?page=1",
    "IPv4 addresses as texts": lambda n: f"10.0.{n // 256}.{n % 256}",
    "paths": lambda n: f"/data/2026/{n % 12 + 1:02d}/part-{n:05d}.parquet",
    "licence plates": lambda n: f"B-{chr(65 + n % 26)}{chr(65 + n // 26)} {n:04d}",
    "UUIDs as texts": lambda n: str(uuid.UUID(int=n)),
    "texts of bits": lambda n: f"{n:012b}",
    "half surrogates": lambda n: chr(0xD800 + n),
    "bytes of 8": lambda n: n.to_bytes(8, "big"),
    "bytes of 8, little end first": lambda n: (64 * n).to_bytes(8, "little"),
    "bytes of texts": lambda n: f"key{n}".encode(),
}

_OTHERS: dict[str, Callable[[int], Any]] = {
    "UUIDs in a row": lambda n: uuid.UUID(int=n),
    "UUIDs with a head in a row": lambda n: uuid.UUID(int=n << 64),
    "UUIDs of names": lambda n: uuid.uuid5(uuid.NAMESPACE_URL, str(n)),
    "IPv4 addresses": lambda n: IPv4Address((10 << 24) + (n << 8)),
    "pairs of ints": lambda n: (n % 23, n // 23),
    "pairs of equal ints": lambda n: (n, n),
    "an int in a tuple": lambda n: (64 * n,),
    "pairs of an int and 0": lambda n: (n, 0),
    "pairs of None and an int": lambda n: (None, 64 * n),
    "pairs of a text and an int": lambda n: (f"room-{n % 8}", n // 8),
    "pairs of a date and a text": lambda n: (_DAY + dt.timedelta(n // 8), "abcdefgh"[n % 8]),
    "windows with a key": lambda n: (10_000 * (n // 8), 10_000 * (n // 8) + 10_000, n % 8),
    "nested tuples": lambda n: ((n // 16, 0), (n % 16, 0)),
    "cells of a grid": lambda n: Cell(n % 32, n // 32),
    "cells of a coarse grid": lambda n: Cell(64 * (n % 32), 64 * (n // 32)),
    "dataclasses of ints": lambda n: Sensor(n // 8, n % 8),
    "dataclasses of a text and an int": lambda n: Account("DE" + str(n % 4), 64 * (n // 4)),
    "sets of an int": lambda n: frozenset({64 * n}),
    "sets of two ints": lambda n: frozenset({n, n + 1}),
    "ranges": lambda n: range(n + 1),
    "members of an IntEnum": lambda n: list(_Code)[n],
    "members of an Enum": lambda n: list(_City)[n],
}

REAL_KEYS: dict[str, list[Any]] = {
    **{name: [make(n) for n in range(_MANY)] for kinds in (_INTS, _NUMBERS) for name, make in kinds.items()},
    **{name: [make(n) for n in range(_MANY)] for kinds in (_TIMES, _TEXTS, _OTHERS) for name, make in kinds.items()},
    "ints and floats in turn": [n if n % 2 else n + 0.5 for n in range(_MANY)],
    "ints and texts in turn": [64 * n if n % 2 else str(n) for n in range(_MANY)],
    "points of a cube": list(product(range(8), range(8), range(8))),
}
"""Different keys, by the words for their kind."""
