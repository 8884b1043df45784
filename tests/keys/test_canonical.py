"""Which values are one key, and which are none."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Annotated, Literal
from uuid import UUID

import numpy
import pytest

from dstream import Entry
from dstream.errors import UnstableKeyError
from dstream.keys import canonical, stable_hash

NAN = float("nan")
Pair = namedtuple("Pair", "left right")


class Color(enum.Enum):
    RED = 1


class Size(enum.IntEnum):
    SMALL = 1


class Mode(enum.Flag):
    A = 1
    B = 2


@dataclass(frozen=True)
class Place:
    town: object
    street: object = None


@dataclass(frozen=True, slots=True)
class Spot:
    x: object


@dataclass
class Loose:
    x: int


@dataclass(frozen=True, eq=False)
class Lonely:
    x: int


class ById:
    pass


class ByValue:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, ByValue) and self.value == other.value

    def __hash__(self):
        return hash(("ByValue", self.value))


class HashOfType(ByValue):
    def __hash__(self):
        return hash((type(self), self.value))


class HashOfClassInSlots:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, HashOfClassInSlots) and self.value == other.value

    def __hash__(self):
        return hash((self.__class__, self.value))


class HashOfName(ByValue):
    def __hash__(self):
        return hash((type(self).__name__, self.value))


class HashOfBase(ByValue):
    def __hash__(self):
        return super().__hash__() + 1


class HashOfHashedType(HashOfType):
    def __hash__(self):
        return hash((super().__hash__(), 1))


class HashOfTypeInside(ByValue):
    def __hash__(self):
        return hash((1, frozenset([type(self)])))


class HashOfTypeById(ByValue):
    def __hash__(self):
        return id(type(self)) ^ hash(self.value)


class HashOfOverriddenType(HashOfType):
    def __hash__(self):
        return hash((type(self).__name__, type(self).__base__.__name__, type(self) is HashOfType, self.value))


class HashOfCode(ByValue):
    def __hash__(self):
        return hash(({HashOfCode: 1}.get(type(self)), self.value))


class HashOfItself(ByValue):
    """A class that is its only copy, and whose subclasses are counted."""

    subclasses = ()

    def __init_subclass__(cls):
        HashOfItself.subclasses += (cls,)

    def __copy__(self):
        return self

    def __hash__(self):
        return hash((type(self).__name__, self.value))


@dataclass(frozen=True)
class OnlyCopy:
    price: float
    note: str = dataclasses.field(default="", compare=False)

    def __copy__(self):
        return self


class HashOfIdentity:
    """Says that it compares by value, but hashes by where it stands in memory."""

    def __eq__(self, other):
        return isinstance(other, HashOfIdentity)

    def __hash__(self):
        return id(self)


ONE_KEY = [
    [1, 1.0, True, Decimal(1), Fraction(1), numpy.int64(1), numpy.float32(1), numpy.bool_(True), Size.SMALL, 1 + 0j],
    [0, 0.0, -0.0, False, Decimal("-0")],
    [NAN, math.nan, -NAN, Decimal("nan"), numpy.float64("nan"), numpy.float32("nan"), complex(NAN, 1)],
    [(1, NAN), (1.0, math.nan), (True, numpy.float64("nan"))],
    [((NAN,),), ((math.nan,),)],
    [frozenset([NAN, 1]), frozenset([math.nan, 1.0])],
    [Place(NAN), Place(math.nan)],
    [Spot((NAN, 1)), Spot((math.nan, True))],
    [Pair(NAN, None), Pair(math.nan, None), (math.nan, None), Entry(math.nan, None)],
    [(None, 1), (None, 1.0), Pair(None, 1)],
    [Place(None, 1), Place(None, 1.0)],
    [frozenset([None, "a"]), frozenset(["a", None])],
    [range(3), range(0, 3, 1)],
    [range(0), range(5, 5), range(9, 1)],
    [range(4, 5), range(4, 6, 2), range(4, 5, 7)],
    [ByValue(3), ByValue(3.0)],
    [datetime(2026, 1, 1, 12, tzinfo=UTC), datetime.fromisoformat("2026-01-01T13:00+01:00")],
    ["a", numpy.str_("a")],
]


@pytest.mark.parametrize("keys", ONE_KEY, ids=lambda keys: type(keys[0]).__name__)
def test_equal_values_are_one_key(keys):
    """In a dict of canonical keys they have one place, and each is routed to the same target."""
    assert len({canonical(key) for key in keys}) == 1
    assert len({stable_hash(canonical(key)) for key in keys}) == 1


def test_different_values_are_different_keys():
    """What is not equal in Python is not one key either."""
    keys = [
        1,
        "1",
        b"1",
        (1,),
        None,
        (None,),
        frozenset([1]),
        NAN,
        Color.RED,
        Place("a"),
        Place("a", "b"),
        (),
        range(2),
    ]

    assert len({canonical(key) for key in keys}) == len(keys)


@pytest.mark.parametrize(
    "key",
    [
        "text",
        b"bytes",
        None,
        (),
        (1, ("a", None)),
        2**100,
        Color.RED,
        Mode.A | Mode.B,
        int,
        ById,
        Place("a"),
        Spot(1),
        Pair(1, 2),
        Entry("k", 1),
        Decimal("1.5"),
        Fraction(1, 3),
        date(2026, 1, 1),
        timedelta(days=1),
        UUID(int=7),
        PurePosixPath("/a"),
        range(3),
        numpy.int64(7),
    ],
    ids=repr,
)
def test_a_key_that_is_its_own_standard_stays_the_object_that_it_is(key):
    """Nothing is copied that need not be."""
    assert canonical(key) is key


def test_a_rebuilt_key_keeps_its_type():
    """A named tuple, a dataclass and a frozen set stay what they are when a NaN inside is replaced."""
    kinds = [type(canonical(key)) for key in (Pair(NAN, 1), Entry(NAN, 1), Place(NAN), Spot(NAN), frozenset([NAN]))]

    assert kinds == [Pair, Entry, Place, Spot, frozenset]


def test_the_users_own_key_is_not_changed():
    """The canonical key is another object where it differs."""
    nan = float("nan")
    place = Place(nan)

    assert canonical(place) is not place
    assert place.town is nan


@pytest.mark.parametrize(
    "key",
    [[1], {1: 2}, {1}, bytearray(b"a"), numpy.array([1]), Loose(1)],
    ids=lambda key: type(key).__name__,
)
@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: (1, k), lambda k: Place(k), lambda k: Pair(None, (k,))])
def test_a_key_without_a_hash_is_refused(key, wrap):
    """Alone, in a tuple, in a dataclass: the message names the value and its type."""
    with pytest.raises(UnstableKeyError, match=f"cannot be a key: {type(key).__name__} has no hash"):
        canonical(wrap(key))


@pytest.mark.parametrize(
    "key", [object(), ById(), Lonely(1), ValueError("x"), iter([])], ids=lambda key: type(key).__name__
)
@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: (1, k), lambda k: Place(k), lambda k: frozenset([k])])
def test_a_key_that_hashes_by_identity_is_refused(key, wrap):
    """Equal copies in two processes would be two keys: refused, never a silently wrong group."""
    with pytest.raises(UnstableKeyError, match="by identity"):
        canonical(wrap(key))


def test_a_key_whose_hash_does_not_survive_pickle_is_refused():
    """A hash that depends on more than values is found out by a copy."""
    with pytest.raises(UnstableKeyError, match="pickle"):
        canonical(HashOfIdentity())


@pytest.mark.parametrize("kind", [HashOfType, HashOfClassInSlots, HashOfHashedType, HashOfTypeInside, HashOfTypeById])
def test_a_key_that_hashes_its_class_is_refused(kind):
    """A class hashes by its address: what is equal in two processes would be two keys."""
    with pytest.raises(UnstableKeyError, match=f"{kind.__name__}.__hash__ hashes its class"):
        canonical(kind("a"))


def test_a_key_that_hashes_the_name_of_its_class_is_accepted():
    """That is the same in every process, and so is what a base class hashes."""
    for kind in (HashOfName, HashOfBase, HashOfOverriddenType, HashOfCode):
        key = kind("a")
        assert canonical(key) is key


def test_a_check_of_a_key_changes_neither_the_key_nor_its_class():
    """A copy of it may be the key itself, and a class may count its subclasses."""
    key = HashOfItself("a")

    assert canonical(key) is key
    assert type(key) is HashOfItself
    assert not HashOfItself.subclasses


def test_a_key_that_is_its_only_copy_keeps_its_fields():
    """The NaN in its canonical form is the one of all keys, and the key has its own."""
    nan = float("nan")
    key, other = OnlyCopy(nan, "a"), OnlyCopy(float("nan"), "b")

    assert len({canonical(key), canonical(other)}) == 1
    assert key.price is nan
    assert canonical(key).note == "a"


@pytest.mark.parametrize("key", [len, list[int], int | str, Literal["a"], Annotated[int, 1]], ids=repr)
def test_a_key_that_hashes_by_an_address_inside_it_is_refused(key):
    """A built-in function and a type expression hash by where things stand in memory of one process."""
    with pytest.raises(UnstableKeyError):
        stable_hash(canonical(key))


def test_a_key_that_refuses_to_be_hashed_is_refused():
    """A signaling NaN has a hash method that fails: an `UnstableKeyError` as well."""
    with pytest.raises(UnstableKeyError):
        canonical(Decimal("sNaN"))


def test_a_long_key_is_cut_in_the_message():
    """The message shows 200 characters of a key."""
    with pytest.raises(UnstableKeyError) as caught:
        canonical(["x" * 10_000])

    assert len(str(caught.value)) < 400
