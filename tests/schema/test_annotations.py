"""Annotations of fields, which decoders of files and types of columns read alike."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from datetime import date
from enum import Enum
from typing import Annotated, NewType

import pytest

from dstream.schema.record_decoders import BINARY, JSON, TEXTS, decoder_of, form_of
from dstream.schema.type_inference import Layout, type_of, types_of_fields


class Day(Enum):
    """Days with names."""

    FIRST = date(2026, 1, 1)


@dataclass
class Unknown:
    """The class of a field is nowhere."""

    day: Nowhere  # type: ignore[name-defined]  # noqa: F821


Failing = make_dataclass("Failing", [("day", "1 / 0")])
Number = NewType("Number", int)


@pytest.mark.parametrize("read", [lambda kind: form_of(kind, JSON), lambda kind: types_of_fields(kind, Layout.FILES)])
def test_annotations_that_cannot_be_looked_up_are_refused_with_their_class(read):
    """So are those that fail otherwise, for readers and writers, at the call."""
    with pytest.raises(TypeError, match=r"an annotation of Unknown .*'Nowhere'.* must stand at the top of a module"):
        read(Unknown)
    with pytest.raises(TypeError, match=r"an annotation of Failing cannot be looked up \(division by zero\)$"):
        read(Failing)


@pytest.mark.parametrize("hint", [Number, Annotated[int, "of pieces"], Annotated[Number, "of pieces"]])
def test_marks_around_a_type_and_new_types_of_it_mean_the_type(hint):
    """Decoders and columns of it are those of the type."""
    assert [decoder_of(hint, each) for each in (JSON, TEXTS)] == [decoder_of(int, each) for each in (JSON, TEXTS)]
    assert [type_of(hint, layout) for layout in Layout] == [type_of(int, layout) for layout in Layout]


def test_a_value_of_a_class_of_a_union_stays_as_it_is():
    """Also where an enumeration before it has a member with this value."""
    assert decoder_of(Day | date, BINARY).made(date(2026, 1, 1)) == date(2026, 1, 1)
    assert decoder_of(Day | date, JSON).made("2026-01-01") is Day.FIRST
