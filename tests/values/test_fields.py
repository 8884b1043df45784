"""The fields of classes that are values with names."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dstream.values.fields import columns_of_fields


def test_columns_hold_the_values_of_each_field():
    """In the order of the names; names that Python code cannot write among them."""
    items = [SimpleNamespace(**{"a": 1, "__b": 2, "class": 3}), SimpleNamespace(**{"a": 4, "__b": 5, "class": 6})]

    assert columns_of_fields(("class", "a", "__b"), items) == [[3, 6], [1, 4], [2, 5]]
    assert columns_of_fields(("a",), []) == [[]]


def test_a_field_that_is_missing_is_an_attribute_error():
    """As everywhere in Python."""
    with pytest.raises(AttributeError):
        columns_of_fields(("a", "b"), [SimpleNamespace(a=1)])
