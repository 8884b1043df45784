"""Parts of Spark that older versions lack: what is done in their place gives the same."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import pyarrow as pa
from pyspark.sql import types

from dstream.engine.spark.port import classic
from dstream.engine.spark.port.classic import ClassicJobs
from dstream.engine.tasks import frames
from dstream.engine.tasks.frames import rows_of_frame
from dstream.engine.versions import Feature, has

SCHEMA = types.StructType(
    [
        types.StructField("n", types.IntegerType()),
        types.StructField("inner", types.StructType([types.StructField("a", types.StringType())])),
        types.StructField("inners", types.ArrayType(types.StructType([types.StructField("b", types.LongType())]))),
        types.StructField("map", types.MapType(types.StringType(), types.BinaryType())),
        types.StructField("at", types.TimestampType()),
        types.StructField("none", types.NullType()),
    ]
)
BATCH = pa.RecordBatch.from_arrays(
    [
        pa.array([1, None], pa.int32()),
        pa.array([{"a": "x"}, None]),
        pa.array([[{"b": 1}, None], []]),
        pa.array([[("k", b"v")], None], pa.map_(pa.string(), pa.binary())),
        pa.array([dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC), None], pa.timestamp("us", "Europe/Berlin")),
        pa.nulls(2),
    ],
    list("abcdef"),
)


def test_rows_are_those_of_the_conversion_of_pyspark(monkeypatch):
    """In names, values and types, at any depth."""
    expected = rows_of_frame(BATCH, SCHEMA)
    monkeypatch.setattr(frames, "has", lambda part: part is not Feature.ROW_CONVERSION)
    rows = rows_of_frame(BATCH, SCHEMA)

    assert rows == expected
    assert repr(rows) == repr(expected)
    assert rows[0].inner.a == "x"


def test_rows_without_columns_are_counted(monkeypatch):
    """As many empty ones as there are."""
    monkeypatch.setattr(frames, "has", lambda part: False)
    batch = BATCH.select([])

    assert [len(row) for row in rows_of_frame(batch, types.StructType([]))] == [0] * batch.num_rows


def test_a_group_is_cancelled_until_one_of_its_jobs_ran(monkeypatch):
    """Without `cancelJobGroupAndFutureJobs`, which also ends a job that Spark does not know yet."""
    monkeypatch.setattr(classic, "_has", lambda part: part is not Feature.FUTURE_JOBS)
    running, cancelled, waited = iter([[], [7], [7, 8]]), [], []
    tracker = SimpleNamespace(getActiveJobsIds=lambda: next(running), getJobIdsForGroup=lambda group: [8])
    context = SimpleNamespace(
        statusTracker=lambda: tracker,
        cancelJobGroup=cancelled.append,
        getLocalProperty=lambda name: None,
        setLocalProperty=lambda name, value: None,
    )
    monkeypatch.setattr(classic.time, "sleep", waited.append)
    jobs = ClassicJobs(context, "tag")
    with jobs.named("words"):
        jobs.cancel()

    assert (cancelled, len(waited)) == (["tag"] * 3, 2)


def test_a_frame_of_a_table_needs_no_arrow_in_spark(spark_context, monkeypatch):
    """Java reads the stream of Arrow; all rows arrive."""
    monkeypatch.setattr(classic, "_has", lambda part: part is not Feature.ARROW_TABLES)
    [port] = [classic.ClassicPort(spark_context.spark)]
    frame = port.frame_of(pa.table({"n": range(200), "payload": [b"x"] * 200}))

    assert sorted(row.n for row in frame.collect()) == list(range(200))
    assert has(Feature.ARROW_TABLES)
