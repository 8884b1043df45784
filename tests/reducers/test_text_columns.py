"""Columns of texts: which values they take."""

from __future__ import annotations

from enum import StrEnum

import pytest

from dstream.schema.scalar_types import ScalarType
from dstream.schema.types import ColumnTypeError


class Name(str):
    """A text of a class of its own."""


class Color(StrEnum):
    RED = "red"


@pytest.mark.parametrize("values", [[], ["a", "ä"], ["a", None], [None], [Name("a"), Color.RED, "b"]])
def test_a_column_of_texts_takes_texts_and_none(values):
    """Also of classes that are texts."""
    assert ScalarType("str").array(values).to_pylist() == values


@pytest.mark.parametrize("odd", [b"a", 1, bytearray(b"a"), ["a"]])
def test_a_column_of_texts_takes_nothing_else(odd):
    """However many texts stand around it: Arrow alone would take bytes."""
    with pytest.raises(ColumnTypeError, match="it holds str"):
        ScalarType("str").array(["a", odd, "b"])
