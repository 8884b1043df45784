"""Collections as Spark DataFrames, and as files that Spark reads without us."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

import dstream as ds
from reducers import to_imap


@pytest.fixture
def on_spark(spark_context: ds.Context, tmp_path: Path) -> Iterator[ds.Context]:
    """A context on Spark with an empty storage."""
    spark_context.running_engine()
    with ds.connect(engine="spark", storage=tmp_path / "data") as context:
        yield context


def test_to_df_has_typed_columns(on_spark):
    """Keys and values are columns, and SQL runs over them."""
    frame = on_spark.stream(range(100), 3).collect(to_imap("m", str, lambda n: n)).to_df()

    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("key", "string"),
        ("value", "bigint"),
    ]
    assert frame.where("value >= 90").agg({"value": "sum"}).collect()[0][0] == sum(range(90, 100))


def test_to_df_shows_one_state_of_the_map(on_spark):
    """What is written afterwards is not in it."""
    numbers = on_spark.get_map("m")
    numbers.update({n: n for n in range(10)})
    frame = numbers.to_df()
    numbers[10] = 10

    assert frame.count() == 10
    assert numbers.to_df().count() == 11


def test_to_df_of_a_list_keeps_its_items(on_spark):
    """A list has one column."""
    on_spark.get_list("l").extend([3, 1, 2])

    assert [row.value for row in on_spark.get_list("l").to_df().collect()] == [3, 1, 2]


def test_to_df_of_an_empty_map_with_types(on_spark):
    """No entries, and the columns are there."""
    assert on_spark.get_map("m", key_type=str, value_type=float).to_df().collect() == []


def test_to_df_refuses_values_without_a_column(on_spark):
    """Values of no Arrow type are refused by name."""
    on_spark.get_map("m")["a"] = {"any": object}

    with pytest.raises(ds.errors.UnsupportedError, match="'m'"):
        on_spark.get_map("m").to_df()


def test_local_engine_has_no_data_frames(local_context, tmp_path):
    """The message says what to use."""
    with ds.connect(engine="local", storage=tmp_path) as ctx:
        ctx.get_map("m")["a"] = 1
        with pytest.raises(ds.errors.UnsupportedError, match="to_arrow"):
            ctx.get_map("m").to_df()


def test_spark_reads_the_files_of_a_compacted_map(on_spark):
    """Without a Delta reader: the live files are plain Parquet with one row for each key."""
    numbers = on_spark.get_map("m")
    numbers.update({"a": 1, "b": 2})
    numbers["a"] = 5
    del numbers["b"]
    numbers.compact()
    files = DeltaTable(numbers.location).file_uris()

    assert [(row.key, row.value) for row in on_spark.spark.read.parquet(*files).collect()] == [("a", 5)]
