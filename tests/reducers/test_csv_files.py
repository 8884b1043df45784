"""CSV: what stands in the files, what comes back of it, and what is refused."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import NamedTuple, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dstream.connectors.files.csv_output import CsvLines
from dstream.errors import SinkError
from reducers import to_files
from sources import csv_rows


class Color(Enum):
    RED = "red, or so"


@dataclass
class Order:
    id: int
    customer: str | None
    paid: bool = False


class Pair(NamedTuple):
    a: int
    b: str


class Row(TypedDict, total=False):
    id: int
    customer: str | None


@pytest.fixture
def written(local_context, tmp_path):
    """Write items into one file, and return its text."""

    def write(items, **options):
        [path] = local_context.stream(items).collect(to_files(tmp_path / "out", format="csv", **options))
        return Path(path).read_bytes().decode()

    return write


def test_csv_has_a_header_in_each_file(engine, tmp_path):
    """One for each partition, so that each file can be read alone; items come back in order."""
    orders = [Order(n, f"Ada\n{n}") for n in range(5)]
    paths = engine.stream(orders, partitions=2).collect(to_files(tmp_path / "out", format="csv"))

    assert [Path(path).read_text().splitlines()[0] for path in paths] == ["id,customer,paid"] * len(paths)
    found = engine.context.read(csv_rows(tmp_path / "out")).to_list()
    assert found == [{"id": str(n), "customer": f"Ada\n{n}", "paid": "false"} for n in range(5)]


def test_none_and_the_empty_text_differ(written):
    """None is an empty field, the empty text a quoted one."""
    assert written([Order(1, None), Order(2, ""), Order(3, 'a "b",\r\n')]) == (
        'id,customer,paid\n1,,false\n2,"",false\n3,"a ""b"",\r\n",false\n'
    )


def test_every_simple_value_has_a_form(written):
    """Of a length that no float would keep."""
    row = {"big": 2**70, "f": 1e-300, "d": Decimal("1.10"), "day": date(2024, 2, 29), "at": datetime(2024, 1, 1, 5)}

    assert written([{**row, "color": Color.RED}]) == (
        'big,f,d,day,at,color\n1180591620717411303424,1e-300,1.10,2024-02-29,2024-01-01T05:00:00,"red, or so"\n'
    )


def test_rows_are_whatever_has_fields(written, tmp_path):
    """Named tuples, dicts in any order of their keys, and tuples whose columns are named."""
    assert written([Pair(1, "x")]) == "a,b\n1,x\n"
    lines = lambda columns: CsvLines(to_files(tmp_path, format="csv", columns=columns).form.of.wanted)  # noqa: E731
    assert lines(None).begun().lines([{"a": 1, "b": 2}, {"b": 4, "a": 3}]) == "1,2\n3,4\n"
    assert lines(["a", "b"]).begun().lines([(1, None), Pair(2, "x")]) == "1,\n2,x\n"
    assert lines(Row).begun().lines([{"id": 1}, {"customer": "c", "id": 2}]) == "1,\n2,c\n"


@pytest.mark.parametrize(
    ("items", "error", "said"),
    [
        ([{"a": [1]}], TypeError, "field 'a' of dict: list cannot be stored in CSV; map"),
        ([Order(1, {})], TypeError, "field 'customer' of Order: dict cannot be stored in CSV; map"),
        ([(1, 2)], TypeError, "a tuple has no names for its columns: give columns="),
        ([7], TypeError, "an item of type int has no columns"),
        ([{"a": 1}, {"a": 1, "b": 2}], TypeError, "it has a field 'b', and the columns are a"),
        ([{"a": 1, "b": 2}, {"a": 1}], TypeError, "it has no field 'b'"),
        ([{1: 2}], TypeError, "must be str, not 1"),
        ([{}], TypeError, "an empty dict says no columns"),
        ([{"a": None}], ValueError, "would be a blank line, which readers skip"),
        ([{"a": "\0"}], ValueError, "field 'a' of dict: str with a NUL character cannot be stored in CSV"),
        (
            [{"a": "x"}, {"a": "\ud800"}],
            UnicodeEncodeError,
            "surrogates not allowed: field 'a' of dict: str .* cannot be stored in CSV",
        ),
        ([Order(1, "x"), Pair(1, "x")], TypeError, "and the columns are id, customer, paid"),
    ],
)
def test_what_csv_has_not_is_refused(written, tmp_path, items, error, said):
    """With the item, and what to do; nothing is left."""
    with pytest.raises(error, match=said) as raised:
        written(items)

    assert f"on the item {items[-1]!r}" in "\n".join(raised.value.__notes__)
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_columns_are_checked_at_the_call(tmp_path):
    """Before anything runs."""

    @dataclass
    class Deep:
        tags: list[str]

    for columns, error, said in [
        ("id", TypeError, r"columns must be several names, or a class with fields: write columns=\['id'\]"),
        (5, TypeError, "columns must be several names, or a class with fields, not int"),
        ([], ValueError, "columns is empty"),
        (["a", 1], TypeError, "columns must hold names, not 1"),
        (["a", "b", "a"], ValueError, "columns holds 'a' more than once"),
        (int, TypeError, "columns must be a dataclass, a named tuple or a TypedDict with fields, not int"),
        (Deep, TypeError, r"field 'tags' of Deep: list\[str\] cannot be stored in CSV; write format='json'"),
    ]:
        with pytest.raises(error, match=said):
            to_files(tmp_path, format="csv", columns=columns)


def test_partitions_with_other_columns_are_refused(tmp_path):
    """Who reads the folder takes all files for one table; `columns=` makes them one."""
    rows = [{"a": 1}, {"b": 2, "a": None}]
    job = to_files(tmp_path, format="csv").open(None).begin(None)
    with pytest.raises(SinkError, match="one partition has columns a, and another one columns b, a: name the columns"):
        job.commit([receipt for row in rows for receipt in job.writer.write(iter([row]))])
    job = to_files(tmp_path, format="csv", columns=["a", "b"]).open(None).begin(None)
    job.commit([receipt for row in rows for receipt in job.writer.write(iter([row]))])

    assert [Path(path).read_text() for path in job.files()] == ["a,b\n1,\n", "a,b\n,2\n"]


def test_no_items_leave_a_header_where_it_is_known(local_context, tmp_path):
    """So that the folder can be read; a second run without items adds no file."""
    sink = to_files(tmp_path / "out", format="csv", columns=Order)
    [path] = local_context.stream([]).collect(sink)

    assert Path(path).read_text() == "id,customer,paid\n"
    assert local_context.stream([]).collect(sink) == []


@settings(max_examples=50)
@given(st.lists(st.tuples(st.text(st.characters(exclude_characters="\0", codec="utf-8")), st.none() | st.integers())))
def test_every_text_comes_back(rows):
    """As the `csv` module of Python reads it."""
    lines = CsvLines(to_files("x", format="csv", columns=["a", "b"]).form.of.wanted).begun().lines(rows) if rows else ""

    found = list(csv.reader(io.StringIO(lines, newline=""), strict=True))
    assert found == [[text, "" if number is None else str(number)] for text, number in rows]
