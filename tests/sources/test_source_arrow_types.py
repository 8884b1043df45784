"""Items come from columns of every type of Arrow, whichever of its functions take such a column."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from dstream.connectors.dataframes import rows_of_table
from dstream.operators.columns.arrow_rows import Records, blocks_of_rows
from dstream.operators.columns.values import items_of
from dstream.plan.steps import Step
from dstream.schema.times import in_usual_layout, usual_type
from dstream.spi import ArrowRows
from sources import parquet_rows
from tests.sources.arrow_types import ARRAYS, INTERVALS, WITHOUT_VALUES

each_type = pytest.mark.parametrize("name", ARRAYS)
STEP = Step("from_df(table)", None, 1, 1)


def rows_at(places: list[int], source: Any) -> list[Any]:
    """Return the items of a source at some places, of columns as a step makes them."""
    [split] = source.splits(1)
    [records] = blocks_of_rows(split.arrow_rows(), STEP)
    assert isinstance(records, Records)
    return list(chain.from_iterable(records.at(np.array(places)).portions()))


def test_the_table_has_every_type():
    """A new one of Arrow is missing until it has a line."""
    types = {getattr(pa.lib, name) for name in dir(pa.lib) if name.startswith("Type_")}

    assert {array.type.id for array in (ARRAYS | INTERVALS).values()} | WITHOUT_VALUES >= types


@each_type
def test_rows_of_a_table_are_chosen(name):
    """As `filter`, `sorted`, `top`, `max` and `grouping_by` choose them, the same as all."""
    table = pa.table({"n": [1, 2, 3], "a": ARRAYS[name]})
    rows = table.to_pylist()

    assert rows_at([2, 0, 0], rows_of_table(table)) == [rows[2], rows[0], rows[0]]
    assert rows_at([1], rows_of_table(table.slice(1))) == [rows[2]]


@each_type
def test_rows_of_a_file_are_chosen(tmp_path, name, monkeypatch):
    """Of Parquet, as far as it has the type, of row groups that are read as a whole and in batches."""
    table = pa.table({"n": [1, 2, 3], "a": ARRAYS[name]})
    try:
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    except pa.ArrowNotImplementedError:
        return
    rows = table.to_pylist()

    assert rows_at([2, 0, 0], parquet_rows(tmp_path)) == [rows[2], rows[0], rows[0]]
    monkeypatch.setattr("dstream.connectors.files.parquet._GROUP_BYTES", 0)
    assert rows_at([2, 0, 0], parquet_rows(tmp_path)) == [rows[2], rows[0], rows[0]]


@each_type
@pytest.mark.parametrize("part", [slice(0, 3), slice(1, 3), slice(0, 2), slice(1, 1)])
def test_an_array_in_the_usual_layout_has_the_same_values(name, part):
    """Also one that is a part of another; it is of the type that is expected, and valid."""
    array = ARRAYS[name].slice(part.start, part.stop - part.start)
    usual = in_usual_layout(array)
    usual.validate(full=True)

    assert usual.to_pylist() == array.to_pylist()
    assert usual.type == (array.type if name == "list of runs" and len(array) else usual_type(array.type))
    assert ArrowRows.chosen(array, np.arange(len(array))[::-1]).to_pylist() == array.to_pylist()[::-1]


def test_views_stand_in_columns():
    """Texts of Polars are compared as columns, and become fields of a class."""
    [split] = rows_of_table(pa.table({"a": ARRAYS["string_view"], "r": ARRAYS["run_end_encoded of ints"]})).splits(1)
    [records] = blocks_of_rows(split.arrow_rows(), STEP)

    assert list(items_of(records.part("a"))) == ["x", None, "é" * 20]
    assert records.part("r").values.tolist() == [7, 7, 8]


def test_a_batch_whose_rows_arrow_does_not_choose_is_cut_and_joined():
    """As tables of sources by others may have some."""
    batch = pa.RecordBatch.from_pydict({"a": ARRAYS["string_view"], "b": ARRAYS["struct of runs"]})

    assert ArrowRows.chosen(batch, np.array([2, 1])).to_pylist() == batch.to_pylist()[:0:-1]
    assert ArrowRows.chosen(batch, np.array([], int)).to_pylist() == []


def test_tables_of_every_type_run_on_both_engines(engine):
    """A filter and a sort, of a table that travels, and of the file that holds it."""
    table = pa.table({"n": [1, 2, 3], **ARRAYS})
    rows = engine.context.from_df(table).filter(lambda row: row["n"] != 2).sorted(key=lambda row: -row["n"])

    assert rows.to_list() == table.to_pylist()[::-2]
