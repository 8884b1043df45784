"""Hashes that are the same in every worker."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from ipaddress import IPv4Address
from uuid import UUID

import pytest

from dstream.errors import EngineError, UnstableKeyError
from dstream.keys import canonical, check_hash_seed, stable_hash
from dstream.keys.hashing import SPREADERS


class Slotted:
    """A value with slots and a hash of its own."""

    __slots__ = ("__weakref__", "x")

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return isinstance(other, Slotted) and self.x == other.x

    def __hash__(self):
        return hash(("Slotted", self.x))


class OneSlot:
    """A value whose only slot is named by a string."""

    __slots__ = "value"

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return isinstance(other, OneSlot) and self.value == other.value


class PrivateSlot:
    """A value whose slot has a name that Python mangles, and another one that is not set."""

    __slots__ = ("__value", "unset")

    def __init__(self, value):
        self.__value = value

    def __hash__(self):
        return hash(self.__value)

    def __eq__(self, other):
        return isinstance(other, PrivateSlot) and self.__value == other.__value


class SlotOfBase(PrivateSlot):
    """A value whose base class has the slot."""

    __slots__ = ()


_KEYS = """
import enum, numpy
from collections import namedtuple
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from dstream import Entry, Optional
from dstream.keys import canonical, stable_hash

class Color(enum.Enum):
    RED = "red"

class Size(enum.IntEnum):
    SMALL = 1

class Level(enum.StrEnum):
    LOW = "low"

class Mode(enum.Flag):
    A = 1
    B = 2

class Mine: pass

Pair = namedtuple("Pair", "left right")

@dataclass(frozen=True)
class Place:
    town: object
    street: object = None

@dataclass(frozen=True, order=True, slots=True)
class Spot:
    x: object

nan = float("nan")
KEYS = [
    None, True, 7, 2**70, 1.5, nan, -0.0, 1j, "text", b"bytes", (), (None,), (1, (None, nan)), frozenset(),
    frozenset([None, "a", 1]), frozenset([(None, "b")]), Color.RED, Size.SMALL, Level.LOW, Mode.A | Mode.B,
    (Color.RED, None), int, Mine, (Mine, None), Pair(None, "x"), Entry("k", None), Place("a"), Place(None, nan),
    Place(Place(None), Color.RED),
    Spot("a"), Spot(None), Decimal("1.10"), Fraction(1, 3), date(2026, 1, 1), datetime(2026, 1, 1),
    datetime(2026, 1, 1, tzinfo=timezone.utc), timedelta(1), PurePosixPath("/a/b"), range(3), range(0),
    range(5, 6), (range(0), None), numpy.int64(3), numpy.float64(2.5), numpy.str_("s"), numpy.datetime64("2026-01-01"),
    type(None), Optional.of(1), Optional.of("text"), Optional.empty(), (Optional.of(2), None),
]
print([(repr(key), stable_hash(canonical(key))) for key in KEYS])
"""


def hashes(seed: str, prefix: str = "") -> str:
    """Return what a fresh process prints for the keys."""
    env = {**os.environ, "PYTHONHASHSEED": seed}
    code = prefix + _KEYS
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout


def test_hashes_agree_between_two_processes():
    """With one seed every kind of key hashes alike, None inside of them too, wherever objects stand in memory."""
    first = hashes("0")
    second = hashes("0", "ballast = [object() for _ in range(10**6)]\nimport json, decimal\n")

    assert first == second
    assert len(first) > 1000


@pytest.mark.parametrize(
    "key",
    [UUID(int=5), IPv4Address("10.0.0.1"), Fraction(1, 3), Slotted(1), OneSlot(1), PrivateSlot(1), SlotOfBase(1)],
    ids=lambda key: type(key).__name__,
)
def test_a_key_with_slots_and_a_hash_of_its_own_has_a_stable_hash(key):
    """A value class that holds no None is routed by its own hash, whatever slots it has."""
    assert stable_hash(canonical(key)) == hash((key, *SPREADERS))


@pytest.mark.parametrize("kind", [Slotted, OneSlot, PrivateSlot, SlotOfBase])
def test_a_key_that_hashes_a_none_in_its_own_way_is_refused_on_old_pythons(kind):
    """Where `hash(None)` differs from process to process it cannot be seen what such a hash makes of it."""
    if sys.version_info >= (3, 12):
        assert stable_hash(kind(None)) == hash((kind(None), *SPREADERS))
        return
    with pytest.raises(UnstableKeyError, match="None"):
        stable_hash(kind(None))


def test_hashes_agree_with_equality():
    """Equal keys of different types hash alike."""
    assert stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    assert stable_hash((1, None)) == stable_hash((1.0, None))


@pytest.mark.parametrize("seed", ["random", "", None])
def test_a_worker_with_random_hashes_is_refused(monkeypatch, seed):
    """Equal strings would be routed to different targets; the message says which setting is missing."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if seed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", seed)

    with pytest.raises(EngineError, match="PYTHONHASHSEED"):
        check_hash_seed()


def test_a_worker_with_a_fixed_seed_is_accepted(monkeypatch):
    """Any number will do."""
    monkeypatch.setenv("PYTHONHASHSEED", "42")

    assert check_hash_seed() is None


@pytest.mark.parametrize("keys", ["['a', b'b', 3, None, 1.5]", "[('a', 'b', 1)]", "[frozenset('abc')]"])
def test_hashes_without_seed_are_those_of_processes_with_another_seed(keys):
    """So a key is sent to one target by processes that have nothing in common."""
    code = (
        "from dstream.keys.hashing import hash_without_seed, stable_hash, stable_hashes\n"
        f"hash_without_seed(True); keys = {keys}\n"
        "assert stable_hashes(keys) == list(map(stable_hash, keys)); print(stable_hashes(keys))"
    )
    found = {
        subprocess.check_output([sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed})
        for seed in ("0", "1", "random")
    }
    assert len(found) == 1
