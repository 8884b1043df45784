"""Annotations of fields, which decoders of files and types of columns read alike."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from datetime import date, datetime, tzinfo
from enum import Enum
from typing import Annotated, NewType

import pyarrow
import pytest

from dstream.schema.decoders import Anything, DecodeError, DictDecoder, ListDecoder, ScalarDecoder
from dstream.schema.record_decoders import BINARY, JSON, TEXTS, decoder_of, form_of
from dstream.schema.type_inference import Layout, type_of, types_of_fields
from dstream.schema.types import ColumnTypeError, array_of


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


@pytest.mark.parametrize("vocabulary", [JSON, BINARY])
def test_the_first_part_of_a_dict_that_nothing_becomes_is_named(vocabulary):
    """Its keys are first."""
    with pytest.raises(TypeError, match="becomes a range"):
        decoder_of(dict[range, memoryview], vocabulary)
    with pytest.raises(TypeError, match="becomes a memoryview"):
        decoder_of(dict[int, memoryview], vocabulary)


class Key:
    """A key that must not be shown."""

    def __repr__(self):
        pytest.fail("its text is not needed")


def test_keys_are_shown_in_errors_alone():
    """The texts of all keys would cost as much as the values."""
    assert len(DictDecoder(ScalarDecoder(int), Anything()).made({Key(): 1})) == 1
    with pytest.raises(DecodeError, match=r"field \['a'\]\[1\]: expected int, got str 'b'"):
        DictDecoder(ListDecoder(list, ScalarDecoder(int)), Anything()).made({"a": [1, "b"]})


class FailingZone(tzinfo):
    """A zone that fails."""

    def utcoffset(self, moment):
        raise OverflowError("the zone fails")

    def tzname(self, moment):
        return "failing"


def test_an_overflow_is_one_of_an_int_or_shown():
    """A class of the user's may raise one, too."""
    with pytest.raises(ColumnTypeError, match=r"^this is no list<item: int64>: it has more than 64 bits$"):
        array_of([[2**64]], pyarrow.list_(pyarrow.int64()))
    with pytest.raises(ColumnTypeError, match=r"^the zone fails$"):
        array_of([datetime(2026, 1, 1, tzinfo=FailingZone())])
