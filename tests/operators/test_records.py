"""Records, which are what frozen dataclasses are to those that compare, show, copy and pickle them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field
from typing import Any

import pytest

from dstream.base.records import record


def _fields(cls: Any) -> Any:
    """Return a class with fields of all kinds."""
    namespace = {"__module__": __name__, "__qualname__": cls.__name__, "sized": field(default=3, compare=False)}
    namespace |= {"hidden": field(default="h", repr=False), "made": field(init=False, default=1)}
    return type(
        cls.__name__, (), {**namespace, "__annotations__": {"first": Any, "sized": int, "hidden": str, "made": int}}
    )


class Made:
    """The fields."""


Frozen = dataclass(frozen=True, slots=True)(_fields(Made))
Record = record(_fields(Made))
Made = Record  # type: ignore[misc]


@record
class One:
    """One field: a NaN is compared by identity first, as a tuple with it."""

    only: Any


@record
class Empty:
    """No field."""


@record(slots=False, eq=False)
class Identity:
    """Compared by identity, with attributes of its own."""

    value: int


@record
class Own:
    """Methods of its own stay."""

    value: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own)

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


@record
class Below(One):
    """A record below another one."""

    second: int = 2


def test_a_record_is_what_a_frozen_dataclass_is():
    """Fields, equality, hash, text and copies."""
    one, other = Record(1), Frozen(1)

    assert (repr(one), hash(one)) == (repr(other), hash(other))
    assert one == Record(1, sized=9)
    assert one != Record(2)
    assert one != other
    assert dataclasses.replace(one, first=4) == Record(4)
    assert dataclasses.astuple(one) == dataclasses.astuple(other)
    assert one.__getstate__() == other.__getstate__()
    assert Record.__match_args__ == Frozen.__match_args__
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        hash(Record([1]))


@pytest.mark.parametrize("value", [Record(1, 2, "x"), One(float("nan")), Empty(), Below(1, 3)])
def test_a_record_is_pickled_and_copied(value):
    """By its fields."""
    found = pickle.loads(pickle.dumps(value))

    assert repr(found) == repr(value)
    assert copy.copy(value) == value
    assert not hasattr(value, "__dict__")


def test_records_are_compared_within_their_class_alone():
    """As dataclasses are."""
    not_a_number = float("nan")

    assert One(not_a_number) == One(not_a_number)
    assert One(float("nan")) != One(not_a_number)
    assert Empty() == Empty()
    assert hash(Empty()) == hash(())
    assert Below(1) != One(1)
    assert Below(1) == Below(1, 2)


def test_methods_of_its_own_stay():
    """Methods of the class come first; without `eq` it is compared by identity."""
    assert (Own(1), hash(Own(1)), repr(Own(1))) == (Own(2), 7, "own")
    assert Identity(1) != Identity(1)
    assert repr(Identity(1)) == "Identity(value=1)"
    assert vars(Identity(1)) == {"value": 1}
