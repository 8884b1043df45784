"""The fields of classes that are values with names."""

from __future__ import annotations

import dataclasses
import traceback
import typing
from types import SimpleNamespace

import pytest

from dstream.failures.attribution import is_ours
from dstream.values.fields import columns_of_fields, hints_of


def test_columns_hold_the_values_of_each_field():
    """In the order of the names; names that Python code cannot write among them."""
    items = [SimpleNamespace(**{"a": 1, "__b": 2, "class": 3}), SimpleNamespace(**{"a": 4, "__b": 5, "class": 6})]

    assert columns_of_fields(("class", "a", "__b"), items) == [[3, 6], [1, 4], [2, 5]]
    assert columns_of_fields(("a",), []) == [[]]


def test_a_field_that_is_missing_is_an_attribute_error():
    """As everywhere in Python."""
    with pytest.raises(AttributeError):
        columns_of_fields(("a", "b"), [SimpleNamespace(a=1)])


def test_a_name_that_code_would_normalise_is_read_as_it_is():
    """Python makes `fi` of the ligature in code, and two fields would be one."""
    items = [SimpleNamespace(**dict(zip(("\ufb01", "fi"), values, strict=True))) for values in ((1, 2), (3, 4))]

    assert columns_of_fields(("fi", "\ufb01"), items) == [[2, 4], [1, 3]]


def test_a_field_that_fails_shows_no_code_that_was_generated():
    """A traceback ends in the user's property, and the frames before it are those of dstream."""

    class Failing:
        @property
        def a(self):
            raise ValueError("no a")

    with pytest.raises(ValueError, match="no a") as caught:
        columns_of_fields(("a",), [Failing()])

    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert [is_ours(frame) for frame in frames] == [False, *[True] * (len(frames) - 2), False]


@pytest.mark.parametrize("module", ["types", "collections"])
def test_fields_without_a_type_are_any(module):
    """`make_dataclass` writes their annotation as a string that no module of these knows."""
    kind = dataclasses.make_dataclass("Made", ["price", ("n", int)])
    kind.__module__ = module

    assert hints_of(kind) == {"price": typing.Any, "n": int}


def test_annotations_of_names_that_are_not_there_are_refused():
    """Only `typing` is known anywhere."""
    kind = dataclasses.make_dataclass("Made", [("n", "Nowhere")])

    with pytest.raises(NameError, match="Nowhere"):
        hints_of(kind)
