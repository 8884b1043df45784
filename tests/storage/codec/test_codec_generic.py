"""Generic named tuples: what their type variables stand for is part of the type."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import pytest

from dstream.schema.classes import reference
from dstream.schema.type_inference import stored_type

V = TypeVar("V")


class Stamped(NamedTuple, Generic[V]):
    value: V
    at: float


def test_the_argument_decides_the_field():
    """The column of the field has the type of the argument."""
    assert str(stored_type(Stamped[int]).arrow.field("value").type) == "int64"


@pytest.mark.parametrize("argument", [int, str, list[float]])
def test_the_hint_comes_back(argument):
    """A declared type gives its hint and its name with the argument."""
    found = stored_type(Stamped[argument])

    assert found.hint == Stamped[argument]
    assert found.name == f"{reference(Stamped)}[{stored_type(argument).name}]"


def test_the_first_value_decides_what_is_open():
    """Without an argument the field is open, and the first value decides it."""
    assert stored_type(Stamped).is_open
    assert stored_type(Stamped).refined([Stamped("x", 1.0)]) == stored_type(Stamped[str])
    assert stored_type(Stamped).refined([Stamped("x", 1.0)]).hint == Stamped[str]


def test_a_value_of_another_argument_does_not_fit():
    """Fields are checked one by one."""
    assert stored_type(Stamped[int]).fits(Stamped(1, 1.0))
    assert not stored_type(Stamped[int]).fits(Stamped("x", 1.0))
