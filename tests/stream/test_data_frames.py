"""`to_df` and `from_df`: streams and Spark's DataFrames, both ways."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from dstream.errors import UnsupportedError


@dataclass(frozen=True)
class Person:
    name: str
    age: int
    born: dt.date | None = None


class Name(NamedTuple):
    name: str


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda ctx: ctx.from_df([1]), "df must be a Spark DataFrame, not list"),
        (lambda ctx: ctx.from_df(ctx.spark.range(1), int), "kind must be a dataclass or a named tuple"),
        (lambda ctx: ctx.from_df(ctx.spark.range(1), Person), "no column for name, age, born of Person"),
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
    with pytest.raises(UnsupportedError, match="Spark engine"):
        local_context.from_df([1])
