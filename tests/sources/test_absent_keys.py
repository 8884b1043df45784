"""Keys of a `TypedDict` that may be absent: formats with a value in every column have None in their place."""

from __future__ import annotations

import datetime
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NotRequired, Required, TypedDict

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dstream as ds
from dstream.errors import SourceError
from dstream.schema.decoders import DecodeError
from dstream.schema.factories import maker_of_objects, maker_of_rows
from dstream.schema.record_decoders import BINARY, TEXTS, form_of
from dstream.testing.engines import MASTER, SETTINGS
from reducers import to_files
from sources import avro_records, csv_rows, json_lines, parquet_rows, sql_rows


class Row(TypedDict, total=False):
    id: Required[int]
    name: str
    day: datetime.date
    price: float


class Within(TypedDict):
    id: int
    row: Row
    rows: NotRequired[list[Row]]


class Open(TypedDict, total=False):
    id: int
    note: str | None
    rest: Any


class Mixed(TypedDict, total=False):
    id: Required[int]
    name: str
    price: float | int
    note: str | None


@dataclass
class Default:
    id: int
    name: str = "nobody"


READ: dict[str, Any] = {"csv": csv_rows, "parquet": parquet_rows, "avro": avro_records}
ROWS = [{"id": 1}, {"id": 2, "name": ""}, {"id": 3, "name": "Ada", "day": datetime.date(2026, 1, 1), "price": 0.0}]
NESTED = [
    {"id": 1, "row": ROWS[0]},
    {"id": 2, "row": ROWS[1], "rows": []},
    {"id": 3, "row": ROWS[2], "rows": [ROWS[2], ROWS[0]]},
]


def _written(context, folder, form, items, kind):
    context.stream(items).collect(to_files(str(folder), format=form, columns=kind))
    return READ[form](folder, kind)


@pytest.mark.parametrize("form", READ)
def test_absent_keys_come_back_absent(engine, tmp_path, form):
    """From an empty field or a null; the empty text is a text."""
    source = _written(engine.context, tmp_path / "out", form, ROWS, Row)

    assert engine.context.read(source).to_list() == ROWS


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_absent_keys_within_come_back_absent(engine, tmp_path, form):
    """In records, and in lists of records."""
    source = _written(engine.context, tmp_path / "out", form, NESTED, Within)

    assert engine.context.read(source).to_list() == NESTED


def test_a_key_that_has_to_be_there_is_not_written_as_none(local_context, tmp_path):
    """Within a record; nor is one that the class has not."""
    for row in ({"name": "Ada"}, {"id": 1, "other": 2}):
        with pytest.raises(TypeError, match=r"the column 'row' has no place for dict .*: it holds fields \(id"):
            _written(local_context, tmp_path / "out", "parquet", [{"id": 1, "row": row}], Within)


@pytest.mark.parametrize("form", READ)
def test_a_key_whose_type_has_none_is_none(local_context, tmp_path, form):
    """Nothing tells None from an absent key there."""
    source = _written(local_context, tmp_path / "out", form, [{"id": 1}, {"id": 2, "note": None}], Open)

    assert local_context.read(source).to_list() == [{"id": n, "note": None, "rest": None} for n in (1, 2)]


@pytest.mark.parametrize("form", READ)
def test_other_fields_refuse_none(local_context, tmp_path, form):
    """Keys that have to be there, and fields with a default."""
    rows = [{"id": None, "name": "a"}, {"id": 1, "name": None}]
    for number, (row, kind, name) in enumerate(zip(rows, (Row, Default), ("id", "name"), strict=True)):
        source = _written(local_context, tmp_path / f"{number}", form, [{"id": 7, "name": "b"}, row], Default)
        with pytest.raises(SourceError, match=f"{name}: expected .*, got (an empty field|NoneType None)"):
            local_context.read(READ[form](source.paths[0], kind)).to_list()


def test_null_of_json_is_no_absent_key(local_context, tmp_path):
    """JSON has absent keys."""
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id": 2, "name": null}\n')

    with pytest.raises(SourceError, match="line 2: field name: expected str, got NoneType None"):
        local_context.read(json_lines(tmp_path / "a.jsonl", Row)).to_list()


def test_what_does_not_fit_is_refused_as_before(local_context, tmp_path):
    """With the field and the value."""
    (tmp_path / "a.csv").write_text("id,name,day,price\n1,,2026-01-01,\n2,,soon,1\n")
    pyarrow.parquet.write_table(pa.table({"id": [1, 2], "price": [None, "x"]}), tmp_path / "a.parquet")

    with pytest.raises(SourceError, match="line 3: column day: expected a date such as 2026-01-31, got 'soon'"):
        local_context.read(csv_rows(tmp_path / "a.csv", Row)).to_list()
    with pytest.raises(SourceError, match="row 2: column price: expected float, got str 'x'"):
        local_context.read(parquet_rows(tmp_path / "a.parquet", Row)).to_list()


def test_csv_with_quotes_around_nothing(local_context, tmp_path):
    """A number has none."""
    (tmp_path / "a.csv").write_text('id,name,price\n1,"",\n2,,""\n')

    with pytest.raises(SourceError, match=r"line 3: column price: expected a float such as 1\.5, got ''"):
        local_context.read(csv_rows(tmp_path / "a.csv", Row)).to_list()


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.sampled_from([None, 1, "x"]),
            "name": st.sampled_from([None, "", "a", 1]),
            "price": st.sampled_from([None, 1.5, 2, "x"]),
            "note": st.sampled_from([None, "b", 3]),
        },
    )
)
def test_generated_functions_do_what_forms_do(row):
    """Whatever is there, and whatever fits."""
    form = form_of(Mixed, BINARY)
    expected = _outcome(form.made, row)

    assert _outcome(maker_of_objects(form), row) == expected
    assert _outcome(maker_of_rows(form, list(row)), list(row.values())) == expected
    texts, of_texts = {name: "" if value is None else str(value) for name, value in row.items()}, form_of(Mixed, TEXTS)
    read = {name: text or None for name, text in texts.items()}
    from_texts = maker_of_rows(of_texts, list(texts), empty_is_none=True)
    assert _outcome(from_texts, list(texts.values())) == _outcome(of_texts.made, read)


def _outcome(make, given):
    try:
        return make(given)
    except DecodeError as error:
        return str(error)


def test_tables_and_queries_have_nulls_in_their_place(local_context, tmp_path):
    """As Parquet has."""
    pytest.importorskip("sqlalchemy")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("create table t (id int, name text, day text, price real)")
        connection.execute("insert into t values (1, null, null, null), (2, 'Ada', '2026-01-01', 1.5)")
    connection.close()
    found = [{"id": 1}, {"id": 2, "name": "Ada", "day": datetime.date(2026, 1, 1), "price": 1.5}]

    assert local_context.read(sql_rows(f"sqlite:///{tmp_path}/a.db", "select * from t", kind=Row)).to_list() == found
    table = pa.table({"id": [1, 2], "name": [None, "Ada"], "day": [None, "2026-01-01"], "price": [None, 1.5]})
    assert local_context.from_df(table, Row).to_list() == found


def test_rows_in_columns_lack_the_same_keys(tmp_path, data):
    """Blocks without a null stand in columns, others do not."""
    rows = [{"id": n, "price": n / 2} for n in range(6)] + [{"id": 6}] + [{"id": n, "price": 0.0} for n in range(7, 9)]
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=3)
    with ds.connect(MASTER, config=SETTINGS, storage=data, columns="verify") as ctx:
        stream = ctx.read(parquet_rows(tmp_path / "a.parquet", Row))

        assert stream.filter(lambda row: row["id"] > 1).to_list() == rows[2:]
        assert stream.limit(6).map(lambda row: row["price"] * 2).to_list() == [float(n) for n in range(6)]
        with pytest.raises(KeyError, match="price"):
            stream.map(lambda row: row["price"]).to_list()
