"""SQL: records return equal from a table of SQLite, and what would return as another value is refused."""

from __future__ import annotations

import datetime
import enum
import sqlite3
import uuid
from contextlib import closing
from dataclasses import dataclass, make_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import attrs
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.errors import SinkError
from dstream.values.fields import is_same
from reducers import to_sql
from sources import sql_rows
from tests.schema.scalar_values import SCALARS, values_of

COLUMNS = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    bytes: "BLOB",
    datetime.date: "DATE",
    datetime.datetime: "TIMESTAMP",
    datetime.time: "TIME",
}
FITS = {int: lambda value: abs(value) < 2**63, float: lambda value: value == value, str: lambda text: text.isascii()}


class Mood(enum.Enum):
    """Members whose values are no strings."""

    CALM = Fraction(1, 3)


class Point(NamedTuple):
    """A named tuple with a value that JSON has no type for."""

    x: int
    at: uuid.UUID


class Ship(pydantic.BaseModel):
    """A model with lists and models in it."""

    name: str
    masts: list[int]
    parts: list[Ship] = []
    built: datetime.date | None = None


@attrs.define
class Whale:
    """A class of attrs."""

    name: str
    _teeth: dict[int, Decimal]


@dataclass
class Crew:
    """A dataclass that holds itself."""

    names: set[str]
    boat: Crew | None = None


def returned(folder, columns, items, kind):
    """Return the items of a table into which some items were written."""
    path = folder / f"{uuid.uuid4().hex}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE rows ({columns})")
    job = to_sql(f"sqlite:///{path}", "rows").open(None).begin(None)
    job.commit(list(job.writer.write(iter(items))))
    [split] = sql_rows(f"sqlite:///{path}", "SELECT * FROM rows ORDER BY rowid", kind=kind).splits(1)
    return list(split.read())


def record(hint):
    """Return a class with a field of a type."""
    return make_dataclass("Kind", [("v", hint)])


@pytest.mark.parametrize("kind", [kind for kind in SCALARS if kind is not Decimal], ids=lambda kind: kind.__name__)
def test_scalars_return_equal(kind, tmp_path_factory):
    """Each class of the table, also beside None; a zone of a moment as its offset."""
    folder, of = tmp_path_factory.mktemp("sql"), record(kind | None)

    @settings(max_examples=8, deadline=None)
    @given(st.lists(st.none() | values_of(kind).filter(FITS.get(kind, lambda value: True)), min_size=1))
    def check(values):
        items = [of(value) for value in values]
        assert is_same(returned(folder, f"v {COLUMNS.get(kind, 'TEXT')}", items, of), items)

    check()


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (list[datetime.date], [datetime.date(2026, 1, 31)]),
        (dict[int, Mood], {1: Mood.CALM}),
        (set[uuid.UUID] | None, {uuid.UUID(int=7)}),
        (tuple[int, bytes], (1, b"\xff")),
        (list[Point], [Point(1, uuid.UUID(int=7))]),
        (Crew, Crew({"Ahab"}, Crew(set()))),
        (Whale, Whale("Moby", {1: Decimal("1.50")})),
        (Ship, Ship(name="Pequod", masts=[1], parts=[Ship(name="boat", masts=[])])),
    ],
    ids=str,
)
def test_values_with_parts_return_from_columns_of_json(hint, value, tmp_path):
    """As their annotations have them."""
    of = record(hint)
    items = [of(value)]

    assert is_same(returned(tmp_path, "v JSON", items, of), items)


@pytest.mark.parametrize(
    ("columns", "item"),
    [
        ("name TEXT, masts JSON, parts JSON, built DATE", Ship(name="Pequod", masts=[3], built=datetime.date.max)),
        ("name TEXT, _teeth JSON", Whale("Moby", {7: Decimal("0.10")})),
        ("x BIGINT, at TEXT", Point(1, uuid.UUID(int=7))),
    ],
    ids=["pydantic", "attrs", "NamedTuple"],
)
def test_classes_with_fields_are_rows(columns, item, tmp_path):
    """Each field is a column."""
    assert returned(tmp_path, columns, [item], type(item)) == [item]


def test_members_are_written_by_their_values(tmp_path):
    """Scalars without a type in databases are stored by their text."""
    of = record(Mood)

    assert returned(tmp_path, "v TEXT", [of(Mood.CALM)], None) == [("1/3",)]
    assert returned(tmp_path, "v TEXT", [of(Mood.CALM)], of) == [of(Mood.CALM)]


@pytest.mark.parametrize(
    ("column", "hint", "value"),
    [
        ("NUMERIC", int | float, 7.0),
        ("DOUBLE", int | float, 7),
        ("TEXT", uuid.UUID | str, uuid.UUID(int=7)),
        ("JSON", list[datetime.date | str], [datetime.date(2026, 1, 31)]),
    ],
)
def test_values_that_would_return_as_others_are_refused(column, hint, value, tmp_path):
    """By their annotations, in the words of the other formats."""
    with pytest.raises(SinkError, match=r"field 'v' of Kind: .* cannot be stored in .*; it would be read as"):
        returned(tmp_path, f"v {column}", [record(hint)(value)], None)


@pytest.mark.parametrize(("column", "hint", "value"), [("NUMERIC", int | float, 7), ("DOUBLE", int | float, 7.5)])
def test_values_that_return_as_they_are_are_taken(column, hint, value, tmp_path):
    """Also of a union."""
    of = record(hint)

    assert is_same(returned(tmp_path, f"v {column}", [of(value)], of), [of(value)])


def test_a_column_of_json_refuses_what_json_cannot_store(tmp_path):
    """With the column, and in the words of `to_files`."""
    with pytest.raises(SinkError, match="field 'v' of Kind: complex cannot be stored in JSON; map"):
        returned(tmp_path, "v JSON", [record(Any)(1j)], None)


def test_text_that_is_no_json_is_an_error(tmp_path):
    """Which names the row and the field."""
    with pytest.raises(Exception, match=r"row 1: field v: expected array as JSON, got 'x'"):
        returned(tmp_path, "v TEXT", [("x",)], record(list[int]))
