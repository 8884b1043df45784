"""What others see who read the tables as Delta: deltalake, pandas, DuckDB."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import uuid
from typing import NamedTuple

import duckdb
import pytest
from deltalake import DeltaTable

from tests.storage.lake.writing import written

NEWEST = "select key, value from (select key, arg_max(value, _v) as value, arg_max(_del, _v) as d from t group by key)"


def _rows(store):
    return DeltaTable(store.log.folder.url).to_pyarrow_table()


def test_delta_readers_see_the_map_after_compact(lake):
    """One row per key, no removed entry, typed columns."""
    store = lake.map(buckets=4)
    for n in range(100):
        lake.put(store, **{f"k{n % 30}": n})
    lake.put(store, k3=None, k29=None)
    store.compact()
    frame = DeltaTable(store.log.folder.url).to_pandas()

    assert dict(zip(frame.key, frame.value, strict=True)) == lake.content(store)
    assert len(frame) == 28
    assert not frame["_del"].any()


def test_delta_readers_find_the_newest_rows_before_compact(lake):
    """`_v` orders the rows, so the newest one of a key is plain SQL."""
    store = lake.map(buckets=2)
    for n in range(150):
        lake.put(store, **{f"k{n % 7}": n})
    lake.put(store, k0=None)
    t = _rows(store)  # noqa: F841 (DuckDB finds it by name)

    assert dict(duckdb.sql(f"{NEWEST} where not d").fetchall()) == lake.content(store)


class Point(NamedTuple):
    x: float
    y: int


@dataclasses.dataclass(frozen=True)
class Order:
    at: datetime.datetime
    took: datetime.timedelta
    id: uuid.UUID
    tags: list[str]


ARROW = {
    bool: "bool",
    int: "int64",
    float: "double",
    str: "string",
    bytes: "binary",
    datetime.date: "date32[day]",
    datetime.datetime: "timestamp[us, tz=UTC]",
    datetime.timedelta: "int64",
    decimal.Decimal: "string",
    uuid.UUID: "binary",
    list: "list<element: int64>",
    Point: "struct<x: double, y: int64>",
    Order: "struct<at: timestamp[us, tz=UTC], took: int64, id: binary, tags: list<element: string>>",
    dict: "None",
}


@pytest.mark.parametrize(
    "value",
    [
        True,
        7,
        1.5,
        "text",
        b"bytes",
        datetime.date(2020, 2, 29),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime.timedelta(days=-1, microseconds=1),
        decimal.Decimal("1.10"),
        uuid.UUID(int=5),
        [1, 2],
        [datetime.timedelta(1)],
        Point(1.0, 2),
        Order(datetime.datetime(2020, 1, 1), datetime.timedelta(1), uuid.UUID(int=1), ["a"]),
        {"not": "typed"},
    ],
    ids=lambda value: type(value).__name__,
)
def test_delta_readers_read_every_type(lake, value):
    """The schema of the table and the Parquet files agree, and the value comes back exactly."""
    store = lake.map()
    lake.put(store, k=value)
    store.compact()

    rows = _rows(store)
    assert rows.num_rows == 1
    assert str(rows.schema.field("value").type if "value" in rows.schema.names else None) == ARROW[type(value)]
    assert rows.column("key").to_pylist() == ["k"]
    assert duckdb.sql("select count(*) from rows").fetchall() == [(1,)]
    assert lake.map().get_many(["k"]) == [value]
    assert type(lake.content(lake.map())["k"]) is type(value)


def test_delta_readers_see_a_list_in_order(lake):
    """`_v` and `_i` order the files of a list."""
    items = lake.list()
    for n in range(5):
        items.extend([n * 2, n * 2 + 1])
    frame = DeltaTable(items.log.folder.url).to_pandas().sort_values(["_v", "_i"], kind="stable")

    assert frame.value.tolist() == list(range(10))


def test_delta_readers_see_an_empty_collection_of_known_types(lake):
    """A collection whose types are given is a table from the start."""
    store = lake.map(key_type=str, value_type=int)

    assert _rows(store).schema.field("value").type == "int64"
    assert _rows(store).num_rows == 0


def test_delta_optimize_by_another_program_changes_nothing(lake):
    """Small files that delta-rs itself has folded are read as before, also by a handle from before."""
    store = lake.map(buckets=1)
    job = store.begin(None)
    job.commit([*written(job.writer, [("a", 1)]), *written(job.writer, [("b", 2)])])
    lake.put(store, a=3)
    DeltaTable(store.log.folder.url).optimize.compact()

    assert store.get_many(["a", "b"]) == [3, 2]
    assert lake.content(store) == lake.content(lake.map()) == {"a": 3, "b": 2}
