"""Records, which are what frozen dataclasses are to those that compare, show, copy and pickle them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import pytest

from dstream.base.records import Remembering, record, remembered
from dstream.expressions import Applied, Argument, Constant
from dstream.plan.captures import attributes_of


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


@record
class Counted(Remembering):
    """A record that counts how often it is asked."""

    asked: list[str]

    @remembered
    def once(self) -> int:
        """Return how often it has been asked, with this time."""
        self.asked.append("once")
        return len(self.asked)


def test_a_remembered_function_runs_once_for_each_object():
    """An equal object, a copy and an unpickled one remember nothing of it."""
    counted = Counted([])

    assert (counted.once(), counted.once()) == (1, 1)
    assert Counted(counted.asked).once() == 2
    assert copy.copy(counted).once() == 3
    assert pickle.loads(pickle.dumps(counted)).once() == 4
    assert dataclasses.replace(counted).once() == 4
    assert counted.once() == 1


def test_what_is_remembered_is_no_part_of_a_value():
    """Neither of its fields, nor of its text and pickles."""
    counted, other = Counted([]), Counted(["once"])
    counted.once()

    assert (counted, repr(counted)) == (other, repr(other))
    assert pickle.dumps(counted) == pickle.dumps(other)


def test_a_hash_that_is_remembered_is_that_of_the_fields():
    """Two expressions that are equal have one hash, before and after it is asked for."""
    one, other = Applied("+", (Argument(0), Constant(1))), Applied("+", (Argument(0), Constant(1)))
    found = hash(one)

    assert (hash(one), hash(other)) == (found, found)
    assert hash(Applied("+", (Argument(0), Constant(True)))) != found
    assert one != Applied("+", (Argument(0), Constant(True)))


@record
class Checked:
    """A field that is no attribute, one with a default that is made, one by keyword, and work behind them."""

    given: dataclasses.InitVar[int]
    parts: list[int] = field(default_factory=list)
    named: str = field(default="n", kw_only=True)
    twice: int = field(init=False, default=0)

    def __post_init__(self, given: int) -> None:
        self.twice = 2 * given


@record
class MoreChecked(Checked):
    """The fields of the class above, and one more."""

    more: int = 5


@record
class Initialized:
    """An `__init__` of its own stays."""

    value: int

    def __init__(self, value: int, factor: int) -> None:
        self.value = value * factor


def test_the_first_object_of_a_record_is_made_as_all_others_are():
    """The first one compiles `__init__`, which takes and refuses what that of a dataclass does."""
    with pytest.raises(TypeError, match=r"^Checked\.__init__\(\) missing 1 required positional argument: 'given'$"):
        Checked()
    for _ in range(2):
        one, other = Checked(3, named="x"), MoreChecked(3, [1], 6)
        assert (one.parts, one.named, one.twice) == ([], "x", 6)
        assert (other.parts, other.more, other.twice, other.named) == ([1], 6, 6, "n")
    assert Checked(1).parts is not Checked(1).parts
    assert (Initialized(2, 3).value, Initialized(2, factor=4).value) == (6, 8)
    assert MoreChecked.__init__ is not Checked.__init__
    assert Checked.__subclasses__() == [MoreChecked]


def test_a_record_that_is_pickled_by_value_before_its_first_object_has_the_same_fields():
    """Its marks of what is missing are copies, which are no defaults."""

    @record
    class Local:
        value: int
        parts: list[int] = field(default_factory=list)
        number: int = 3

    loaded = cloudpickle.loads(cloudpickle.dumps(Local))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'value'"):
        loaded()
    assert (loaded(1).value, loaded(1).parts, loaded(1).number) == (1, [], 3)


def test_a_record_without_a_hash_has_none():
    """As a dataclass that sets it to None."""

    @record
    class Unhashable:
        value: int

        __hash__ = None  # type: ignore[assignment]

    assert Unhashable(1) == Unhashable(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Unhashable(1))


def test_a_record_is_examined_by_its_attributes():
    """It is pickled as these: nothing else has to be pickled to find what it has captured."""
    assert attributes_of(One([1])) == {"only": [1]}
    assert attributes_of(Identity(2)) == {"value": 2}
