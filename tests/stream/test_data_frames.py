"""`to_df` and `from_df`: streams and Spark's DataFrames, both ways."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
import uuid
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pytest

from dstream.connectors.dataframes import rows_of_table
from dstream.errors import UnsupportedError


@dataclass(frozen=True)
class Person:
    name: str
    age: int
    born: dt.date | None = None


class Name(NamedTuple):
    name: str


@dataclass(frozen=True)
class Moment:
    at: dt.datetime


PEOPLE = [Person("Ada", 36), Person("Bob", 7, dt.date(2019, 5, 1))]


def test_to_df_has_typed_columns(spark_context):
    """By the fields of the items."""
    df = spark_context.stream(PEOPLE, 2).to_df()

    assert df.dtypes == [("name", "string"), ("age", "bigint"), ("born", "date")]
    assert sorted(tuple(row) for row in df.collect()) == [("Ada", 36, None), ("Bob", 7, dt.date(2019, 5, 1))]


def test_to_df_runs_the_stream_once(spark_context):
    """Whatever the DataFrame is used for."""
    seen = []
    df = spark_context.stream([1, 2], 2).peek(seen.append).to_df()

    assert (df.count(), df.agg({"value": "sum"}).first()[0], seen) == (2, 3, [1, 2])


@pytest.mark.parametrize(
    ("value", "kind", "instead"),
    [
        (uuid.UUID(int=7), "extension<arrow.uuid>", "str"),
        (dt.time(1, 2), r"time64\[us\]", "str"),
        ([dt.time(1, 2)], r"time64\[us\]", "str"),
        ({"a": {"b": decimal.Decimal(10) ** 50}}, r"decimal256\(51, 0\)", "str, or to Decimals of 38 digits at most"),
    ],
)
def test_to_df_names_a_column_that_spark_has_no_type_for(spark_context, value, kind, instead):
    """In our words, and with the step."""
    words = (
        f"column 'x' holds {kind}, and DataFrames of Spark have no such type: map\\(\\) it before, as to {instead}\n"
    )
    with pytest.raises(TypeError, match=words) as caught:
        spark_context.stream([{"n": 1, "x": value}]).to_df()
    assert ".to_df() at " in "".join(caught.value.__notes__)


def test_to_df_of_nothing_has_no_columns(spark_context):
    """And no rows."""
    assert (spark_context.stream([]).to_df().columns, spark_context.stream([]).to_df().count()) == ([], 0)


def test_from_df_gives_rows(spark_context):
    """Spark's own, with their types, from a DataFrame with a shuffle inside."""
    df = spark_context.spark.sql("select id % 2 as odd, count(*) as n from range(10) group by 1")

    assert spark_context.from_df(df).map(lambda row: (row.odd, row.n)).sorted().to_list() == [(0, 5), (1, 5)]


@pytest.mark.parametrize(("kind", "expected"), [(Person, PEOPLE), (Name, [Name("Ada"), Name("Bob")])])
def test_from_df_makes_items_of_a_class(spark_context, kind, expected):
    """By the names of its fields; other columns are left out."""
    df = spark_context.stream(PEOPLE, 2).to_df().select("born", "age", "name")

    assert spark_context.from_df(df, kind).sorted(key=lambda item: item.name).to_list() == expected


def test_from_df_serves_every_operation(spark_context):
    """Those that look at places too."""
    stream = spark_context.from_df(spark_context.spark.range(0, 100, 1, 5)).map(lambda row: row.id)

    assert (stream.count(), len(stream.limit(7).to_list()), stream.skip(98).count()) == (100, 7, 2)
    assert stream.distinct(key=lambda n: n % 3).count() == 3
    assert stream.sorted().limit(2).to_list() == [0, 1]


def test_from_df_is_not_run_before_it_is_needed(spark_context):
    """A plan can be explained without it."""
    df = spark_context.spark.range(3).selectExpr("raise_error('too early') as x")

    spark_context.from_df(df).map(str).explain("dot")


def test_from_df_keeps_the_zone_of_moments(spark_context):
    """Two moments of an hour that comes twice stay two, also inside of other values; what has no zone gets none."""
    hours = [dt.datetime(2026, 11, 1, hour, 30, tzinfo=dt.UTC) for hour in (5, 6)]
    local = dt.datetime(2026, 11, 1, 1, 30)
    items = [{"at": hour, "list": [hour], "within": {"at": hour}, "local": local} for hour in hours]
    spark_context.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        df = spark_context.stream(items).to_df()
        as_map = df.selectExpr("map(at, at) as m")
        found = spark_context.from_df(df).sorted(key=lambda row: row["at"]).map(lambda row: row.asDict(True)).to_list()
        maps = spark_context.from_df(as_map).map(lambda row: row.m).to_list()
        moments = spark_context.from_df(df, Moment).map(lambda each: each.at).distinct().sorted().to_list()
    finally:
        spark_context.spark.conf.unset("spark.sql.session.timeZone")
    assert found == items
    assert sorted(maps, key=list) == [{hour: hour} for hour in hours]
    assert moments == hours
    assert {str(moment.tzinfo) for moment in moments} == {"UTC"}


def test_from_df_takes_any_names_of_columns(spark_context):
    """Those that Spark writes in quotes, and those that differ in capitals alone."""
    df = spark_context.spark.sql("select 1 as `a.b`, 2 as `c``d`, 3 as `two words`, 'Ada' as name, 'Bob' as NAME")

    assert spark_context.from_df(df).map(lambda row: row.asDict()).to_list() == [
        {"a.b": 1, "c`d": 2, "two words": 3, "name": "Ada", "NAME": "Bob"}
    ]
    assert spark_context.from_df(df, Name).to_list() == [Name("Ada")]


def test_from_df_refuses_two_columns_of_one_name(spark_context):
    """As of the tables of other libraries."""
    with pytest.raises(ValueError, match="the DataFrame has more than one column 'a': rename them before"):
        spark_context.from_df(spark_context.spark.sql("select 1 as a, 2 as a, 3 as b"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda ctx: ctx.from_df([1]), r"df must be a DataFrame of Spark or pandas, .* not list: stream\(...\) takes"),
        (
            lambda ctx: ctx.from_df(ctx.spark.range(1), int),
            "kind must be a dataclass, a named tuple, a TypedDict, an attrs",
        ),
        (
            lambda ctx: ctx.from_df(ctx.spark.range(1), Person),
            r"from_df\(DataFrame, Person\): the table has no column for name, age of Person; there are id",
        ),
    ],
)
def test_from_df_refuses_at_the_call(spark_context, make, message):
    """What is no DataFrame, no class with fields, or has fields without columns."""
    with pytest.raises(TypeError, match=message):
        make(spark_context)


def test_the_local_engine_has_no_data_frames(local_context):
    """It says what to use."""
    with pytest.raises(UnsupportedError, match="to_arrow"):
        local_context.stream([1]).to_df()
    of_spark = SimpleNamespace(columns=["a"], mapInArrow=None)
    with pytest.raises(UnsupportedError, match="Spark engine"):
        local_context.from_df(of_spark)


class Columnar:
    """What another library of tables is to Arrow."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


ROWS = [{"name": f"n{n}", "age": n, "score": None if n == 2 else n / 2} for n in range(5)]
TABLES = {
    "pandas": pd.DataFrame(ROWS, index=list("vwxyz")),
    "a table": pa.Table.from_pylist(ROWS),
    "a batch": pa.RecordBatch.from_pylist(ROWS),
    "another library's": Columnar(pa.Table.from_pylist(ROWS)),
}


@pytest.mark.on_spark("name")
@pytest.mark.parametrize("name", TABLES)
def test_from_df_takes_tables_of_this_process(engine, name):
    """In order, as dictionaries or as a class, with None for what is missing."""
    context, table = engine.context, TABLES[name]

    assert context.from_df(table).to_list() == ROWS
    assert context.from_df(table, Name).limit(2).to_list() == [Name("n0"), Name("n1")]
    assert context.from_df(table).count() == 5
    assert context.from_df(table, Person).limit(1).to_list() == [Person("n0", 0)]
    with pytest.raises(TypeError, match="no column for at of Moment; there are name, age, score"):
        context.from_df(table, Moment)
    with pytest.raises(TypeError, match=r"is a table, not an iterable of rows: ctx\.from_df"):
        context.stream(table)


def test_a_slice_of_a_table_travels_alone():
    """Each task gets its rows, not the whole table."""
    table = pa.table({"n": range(100_000)})
    first, *_ = rows_of_table(table).splits(100)

    assert len(pickle.dumps(first)) < 20_000
    assert len(list(pickle.loads(pickle.dumps(first)).read())) == 1_000


def test_from_df_refuses_what_is_no_table(engine):
    """By what it needs."""
    with pytest.raises(TypeError, match="must be a DataFrame of Spark or pandas, or have Arrow's"):
        engine.context.from_df([1])
    with pytest.raises(ValueError, match="more than one column 'a'"):
        engine.context.from_df(pa.table([[1], [2]], ["a", "a"]))
    with pytest.raises(TypeError, match="does not become an Arrow table"):
        engine.context.from_df(pd.DataFrame({"a": [1, "b"]}))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.period_range("2020", periods=2, freq="M"), "column 'a' holds values of pandas"),
        (pd.interval_range(0, 2), "column 'a' holds values of pandas"),
        ([2**70, 1], "this DataFrame does not become an Arrow table"),
    ],
)
def test_from_df_refuses_values_that_would_change(local_context, column, message):
    """A period would become an int, in silence."""
    with pytest.raises(TypeError, match=message):
        local_context.from_df(pd.DataFrame({"a": column}))
