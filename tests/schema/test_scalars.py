"""Text forms of scalar types: what is written is read as an equal value, and nothing is guessed."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from uuid import UUID

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dstream.schema.text_forms import TEXT_FORMS, refusal, text_form, text_of
from tests.schema.scalar_values import SCALARS, values_of


@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: kind.__name__)
def test_what_a_form_writes_is_read_as_an_equal_value(kind):
    """The value and its class return, for each class of the table."""

    @given(values_of(kind))
    def check(value):
        text = text_of(value)
        found = TEXT_FORMS[kind].parse(text)
        assert type(text) is str
        assert type(found) is type(value)
        assert repr(found) == repr(value) or found == value

    check()


@given(st.timedeltas())
def test_durations_are_those_of_pydantic(value):
    """Both read what the other one writes."""
    adapter = pydantic.TypeAdapter(timedelta)

    assert adapter.validate_python(text_of(value)) == value
    assert TEXT_FORMS[timedelta].parse(adapter.dump_python(value, mode="json")) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(days=1, hours=2, minutes=3, seconds=4.5), "P1DT2H3M4.5S"),
        (timedelta(0), "PT0S"),
        (timedelta(microseconds=-10), "-PT0.00001S"),
        (timedelta(days=400), "P400D"),
        (datetime(2026, 1, 31, tzinfo=UTC), "2026-01-31T00:00:00+00:00"),
        (Fraction(2), "2"),
        (Fraction(-1, 3), "-1/3"),
        (b"\x00\xff", "AP8="),
        (Path("a/b"), "a/b"),
        (Enum("Mood", {"CALM": Fraction(1, 2)})["CALM"], "1/2"),
    ],
    ids=repr,
)
def test_text_forms(value, text):
    """The notation of each class."""
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((timedelta, text) for text in ("P", "PT", "P1DT", "P1M", "1:00:00", "PT1.1234567S", "P-1D", "P1000000000D")),
        *((Fraction, text) for text in ("1/0", "0.5", " 1/2", "1e9", "1/-2", "")),
        *((UUID, text) for text in ("{12345678-1234-5678-1234-567812345678}", "1234", f"urn:uuid:{UUID(int=1)}")),
        *((bytes, text) for text in ("A", "AP8", "AP 8=", "é")),
        (int, "1_000"),
        (float, "1e999"),
        (bool, "1"),
        (IPv4Address, "10.0.0"),
        (IPv4Address, 7),
        (IPv6Address, 7),
    ],
)
def test_other_notations_are_refused(kind, text):
    """A string that only looks like one is not read."""
    with pytest.raises((ValueError, TypeError, ArithmeticError)):
        TEXT_FORMS[kind].parse(text)


def test_forms_travel_to_workers():
    """A form is pickled by references to its functions."""
    assert pickle.loads(pickle.dumps(TEXT_FORMS)) == TEXT_FORMS


def test_values_without_a_form():
    """A list is no scalar."""
    assert text_form([1]) is None
    with pytest.raises(TypeError, match="list has no text form"):
        text_of([1])


def test_refusal_names_what_is_known():
    """The field, its class, the type, the format, and what to write."""
    assert refusal("JSON", "complex", "map() it to a str before") == (
        "complex cannot be stored in JSON; map() it to a str before"
    )
    assert refusal("CSV", "set[int]", "write format='json'", "v", "Kind") == (
        "field 'v' of Kind: set[int] cannot be stored in CSV; write format='json'"
    )
