"""CSV and JSON: records return equal, and what would return as another value is refused."""

from __future__ import annotations

import datetime
import enum
import io
import uuid
from dataclasses import make_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import attrs
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.connectors.files.format_choice import checked_format
from dstream.connectors.files.formats import NO_LIMIT
from dstream.connectors.files.writers import PartitionFolders
from dstream.values.fields import is_same
from sources import csv_rows, json_lines
from tests.schema.scalar_values import SCALARS, values_of

READERS = {"csv": csv_rows, "json": json_lines}


class Mood(enum.Enum):
    """Members whose values are no strings."""

    CALM = datetime.date(2026, 1, 31)
    WILD = Decimal("1.50")


class Twins(enum.Enum):
    """Members whose texts are one."""

    NUMBER = 1
    TEXT = "1"


class Ship(pydantic.BaseModel):
    """A model with a name of its own for a field, and a field that it computes."""

    model_config = pydantic.ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    name: str = pydantic.Field(alias="called")
    built: datetime.date | None = None
    cargo: bytes = b""

    @pydantic.computed_field
    def length(self) -> int:
        """The length of the name."""
        return len(self.name)


@attrs.define
class Whale:
    """A class whose constructor calls a field otherwise."""

    _name: str
    seen: datetime.timedelta = datetime.timedelta(0)


def written(format, items, columns=None):
    """Return the bytes of a file with some items."""
    form, file = checked_format(format, None, columns, "utf-8", None, PartitionFolders(())), io.BytesIO()
    content = form.content(file, NO_LIMIT, 0, {})
    content.write(items)
    content.finish()
    return file.getvalue()


def returned(format, kind, items, folder):
    """Return the items that a file with some items is read as."""
    path = Path(folder) / "file"
    path.write_bytes(written(format, items))
    return [item for split in READERS[format](str(path), kind).splits(1) for item in split.read()]


def record(hint):
    """Return a class with a field of a type."""
    return make_dataclass("Kind", [("n", int), ("v", hint)])


@pytest.mark.parametrize("format", READERS)
@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: kind.__name__)
def test_scalars_return_equal(format, kind, tmp_path_factory):
    """Each class of the table, also beside None, in both formats."""
    folder, of = tmp_path_factory.mktemp(format), record(kind | None)
    # A NUL is refused in CSV, and so are half characters.
    fit = lambda value: format == "json" or not {"\0", "\ud800"} & set(str(value))  # noqa: E731

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.none() | values_of(kind).filter(fit), min_size=1))
    def check(values):
        items = [of(n, value) for n, value in enumerate(values)]
        assert is_same(returned(format, of, items, folder), items)

    check()


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (set[datetime.date], {datetime.date(2026, 1, 31)}),
        (dict[int, list[uuid.UUID]], {1: [uuid.UUID(int=7)]}),
        (dict[datetime.date, Mood], {datetime.date(2026, 1, 31): Mood.WILD}),
        (dict[Mood, bytes], {Mood.CALM: b"\xff"}),
        (dict[bool, tuple[Decimal, ...]], {True: (Decimal("0.10"),)}),
        (dict[int | None, int], {1: 2}),
        (list[datetime.date | int], [1, datetime.date(2026, 1, 31)]),
        (Ship, Ship(called="Pequod", built=datetime.date(1820, 1, 1), cargo=b"\xff")),
        (list[Whale], [Whale("Moby", datetime.timedelta(days=400))]),
        (Mood, Mood.CALM),
    ],
    ids=str,
)
def test_nested_values_return_from_json(hint, value, tmp_path):
    """With their types, and so do the keys of dicts."""
    of = record(hint)

    assert is_same(returned("json", of, [of(1, value)], tmp_path), [of(1, value)])


@pytest.mark.parametrize("format", READERS)
@pytest.mark.parametrize("items", [[Ship(called="a,b")], [Whale("a,b", datetime.timedelta(-1)), Whale("")]], ids=str)
def test_models_and_attrs_classes_are_records(format, items, tmp_path):
    """With the names that they are read by."""
    assert returned(format, type(items[0]), items, tmp_path) == items


def test_a_model_as_columns_has_its_aliases():
    """As each of its rows."""
    header, *rows = written("csv", [Ship(called="Pequod")], Ship).decode().splitlines()

    assert (header, rows) == ("called,built,cargo", ['Pequod,,""'])


@pytest.mark.parametrize(
    ("format", "hint", "fits", "value"),
    [
        ("csv", int | str, [7, "a"], "7"),
        ("csv", datetime.date | str, [datetime.date(2026, 1, 31), "a"], "2026-01-31"),
        ("csv", Literal[1, "1"], [1], "1"),
        ("csv", Twins, [Twins.NUMBER], Twins.TEXT),
        ("json", datetime.date | str, ["2026-01-31"], datetime.date(2026, 1, 31)),
        ("json", list[uuid.UUID | str], [["a"]], [uuid.UUID(int=7)]),
        ("json", dict[int | str, Any], [{1: 2}], {"1": 2}),
        ("json", Decimal | float, [Decimal("0.5")], 0.5),
    ],
)
def test_values_that_would_return_as_others_are_refused(format, hint, fits, value, tmp_path):
    """Others of the same field return as they are."""
    of = record(hint)
    items = [of(n, each) for n, each in enumerate(fits)]
    assert is_same(returned(format, of, items, tmp_path), items)

    with pytest.raises(
        TypeError, match=f"field 'v' of Kind: .* cannot be stored in {format.upper()}; it would be read"
    ):
        written(format, [of(0, value)])


@pytest.mark.parametrize("columns", [True, False])
def test_csv_refuses_what_has_parts_by_its_field(columns):
    """At the call with `columns=`, or at the item."""
    of = record(list[int])

    with pytest.raises(TypeError, match=r"field 'v' of Kind: list.* cannot be stored in CSV; .*write format='json'"):
        written("csv", [of(1, [2])], of if columns else None)
