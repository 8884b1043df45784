"""Dataclasses as keys: whose hash is over the fields, and what a NaN in a field does."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import dataclass, field
from typing import Any

import pytest

from collectors import frequencies
from dstream.keys import FieldNan, canonical, has_generated_eq, has_generated_hash, stable_hash
from dstream.storage.codec.pickles import Pickles
from dstream.storage.codec.values import ValueEncoding
from tests.keys.specimens import Place, Spot, Town

EXECUTED = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Caseless:
    name: str

    def __eq__(self, other):
        return self.name.lower() == other.name.lower()

    def __hash__(self):
        return hash(self.name.lower())

@dataclass(frozen=True)
class Plain:
    name: str
"""


@dataclass(frozen=True, eq=False)
class Wider(Place):
    """Inherits the equality and the hash of two fields, and has a third."""

    extra: Any = None


@dataclass(frozen=True)
class Noted:
    x: Any
    note: str = field(default="", compare=False)


@dataclass(frozen=True)
class Careful:
    """Has an equality of its own beside the hash that `@dataclass` wrote."""

    x: Any

    def __eq__(self, other):
        return isinstance(other, Careful) and self.x == other.x


@pytest.fixture
def executed():
    """The names of a program that has no file, as in `python -c`."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(EXECUTED, names)
    return names


def test_a_hash_written_in_executed_code_is_the_users(executed):
    """Where a class was defined does not decide who wrote its methods."""
    caseless, plain = executed["Caseless"], executed["Plain"]

    assert (has_generated_hash(caseless), has_generated_eq(caseless)) == (False, False)
    assert (has_generated_hash(plain), has_generated_eq(plain)) == (True, True)
    assert stable_hash(caseless("A")) == stable_hash(caseless("a"))
    assert stable_hash(plain("A")) != stable_hash(plain("a"))


@pytest.mark.parametrize("kind", [Place, Spot, Town, Noted], ids=lambda kind: kind.__name__)
def test_what_dataclass_wrote_is_recognised(kind):
    """With slots, in a subclass, with fields that are not compared."""
    assert has_generated_hash(kind)
    assert has_generated_eq(kind)


def test_a_hash_that_is_inherited_is_not_over_the_fields_of_the_subclass():
    """Equal keys are routed alike although a field differs that equality does not know."""
    left, right = Wider("a", 1, 2), Wider("a", 1, 3)

    assert left == right
    assert stable_hash(canonical(left)) == stable_hash(canonical(right))


@pytest.mark.parametrize("kind", [Place, Spot, Noted, Careful], ids=lambda kind: kind.__name__)
def test_dataclasses_with_a_nan_are_one_key(kind):
    """Also those whose equality compares fields by `==` alone."""
    found = frequencies().collect([kind(float("nan")), kind(math.nan), kind(float("nan")), kind(1)])

    assert list(found.values()) == [3, 1]
    assert repr(found) == repr({kind(math.nan): 3, kind(1): 1}).join(["Counter(", ")"])


def test_the_nan_of_a_field_is_a_float_to_everybody_else():
    """It is not equal by `!=`, is written as others are, and travels as a plain float."""
    nan = canonical(Careful(float("nan"))).x

    assert (math.isnan(nan), nan != nan, nan == 1.0, repr(nan), json.dumps(nan)) == (True, True, False, "nan", "NaN")
    assert [type(found) for found in (pickle.loads(pickle.dumps(nan)), copy.deepcopy(nan), nan + 1)] == [float] * 3
    assert canonical(nan) is math.nan
    assert stable_hash(nan) == stable_hash(math.nan)


def test_the_nan_of_a_field_is_stored_as_a_float():
    """Also where nothing may be pickled."""
    values = ValueEncoding(Pickles("never"))

    assert type(values.decode(values.encode([FieldNan("nan"), 1]))[0]) is float
