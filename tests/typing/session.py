"""Contexts, sources, failures and errors; two type checkers read this file, nothing runs it."""

from __future__ import annotations

import re
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypedDict, assert_type

import pandas as pd

import dstream as ds
from dstream import Context, Entry, Stream, connect, default_context, errors, failure, set_default_context
from dstream.collections import IStreamCache, IStreamList, IStreamMap
from dstream.failures import Failure
from dstream.jobs import Job
from dstream.jobs.snapshots import Snapshot
from dstream.pipeline.plan import PipelinePlan
from dstream.session import CollectionName
from dstream.session.streaming import StreamingFrame
from dstream.spi import Source
from dstream.spi.source import StreamSource
from reducers import to_ilist
from sources import (
    Generate,
    Items,
    ItemsSplit,
    Iterate,
    KafkaRecord,
    Range,
    avro_records,
    csv_rows,
    files,
    icache,
    ilist,
    imap,
    items,
    json_lines,
    kafka,
    parquet_rows,
    text_files,
)


class Row(TypedDict):
    """A line of a file."""

    name: str


def connected() -> None:
    """How a context is made, and chosen."""
    assert_type(connect("local[2]", config={"spark.driver.memory": "1g"}), Context)
    assert_type(connect(engine="local", storage="memory:", worker_memory="512m", broadcast_limit=2**26), Context)
    assert_type(default_context(), Context)
    set_default_context(None)
    with ds.connect() as ctx:
        assert_type(ctx, Context)


def context(ctx: Context) -> None:
    """Every method of `Context`."""
    assert_type(ctx.engine, str)
    assert_type(ctx.spark, Any)
    assert_type(ctx.stream([1, 2], partitions=3), Stream[int])
    assert_type(ctx.stream({"a": 1}.items()).map(lambda pair: pair[1]), Stream[int])
    assert_type(ctx.read(text_files("*.txt")), Stream[str])
    assert_type(ctx.from_df(ctx.spark.range(3)), Stream[Any])
    assert_type(ctx.from_df(ctx.spark.range(3), CollectionName), Stream[CollectionName])
    assert_type(ctx.from_df(pd.DataFrame()), Stream[Any])
    assert_type(ctx.from_df(pd.DataFrame(), CollectionName), Stream[CollectionName])
    assert_type(ctx.collections(), list[CollectionName])
    assert_type(ctx.get_map("m", key_type=str, value_type=int), IStreamMap[str, int])
    assert_type(ctx.get_list("l", value_type=str), IStreamList[str])
    assert_type(ctx.get_cache("c", key_type=str, value_type=float, ttl=1), IStreamCache[str, float])
    assert_type(ctx.get_set("s", value_type=str), ds.IStreamSet[str])
    assert_type(ctx.get_counter("c"), ds.IStreamCounter)
    assert_type(ctx.get_queue("q"), ds.IStreamQueue[Any])
    assert_type(ctx.existing("map", "m"), Any)
    assert_type(ctx.vacuum(older_than=60), int)
    assert_type(ctx.jobs("sales"), list[Job])
    assert_type(ctx.job("sales"), Job | None)
    assert_type(ctx.snapshots(), list[Snapshot])
    assert_type(ctx.remove_snapshot("s"), bool)
    assert_type(ctx.from_streaming_df(object()), StreamingFrame[Any])
    assert_type(ctx.from_streaming_df(object(), dict), StreamingFrame[dict[Any, Any]])
    ctx.close()


def jobs(ctx: Context, plan: PipelinePlan) -> None:
    """A job, and what is known of it."""
    config = ds.JobConfig(name="sales", guarantee="exactly-once", auto_restart=(3, 0.5), files={"a": "a.txt"})
    assert_type(ds.attached("a"), Path)
    assert_type(ctx.new_job_if_absent(plan, config=config), Job)
    with ctx.new_job(plan, name="sales") as job:
        assert_type(job, Job)
    assert_type(job.status, ds.JobStatus)
    assert_type(job.failure, BaseException | None)
    assert_type(job.future(), Future[None])
    assert_type(job.cancel(), bool)
    assert_type(job.metrics().stages["a"].items_out, int | None)
    ds.JobConfig(guarantee="twice")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def sources(ctx: Context) -> None:
    """Every source knows its items."""
    assert_type(text_files("*.txt"), Source[str])
    assert_type(text_files("*.txt", with_path=True), Source[tuple[str, str]])
    assert_type(text_files("a.txt", Path("b.txt"), encoding="ascii"), Source[str])
    assert_type(text_files("a.txt", "b.txt", with_path=True), Source[tuple[str, str]])
    assert_type(csv_rows("a.csv", "b.csv"), Source[dict[str, Any]])
    assert_type(json_lines("a.jsonl", "b.jsonl"), Source[Any])
    assert_type(parquet_rows("a.parquet", "b.parquet"), Source[dict[str, Any]])
    assert_type(csv_rows("*.csv", delimiter=";"), Source[dict[str, Any]])
    assert_type(json_lines("*.jsonl"), Source[Any])
    assert_type(json_lines("*.jsonl", CollectionName), Source[CollectionName])
    assert_type(json_lines("a.jsonl", "b.jsonl", kind=CollectionName), Source[CollectionName])
    assert_type(json_lines("*.jsonl", Row), Source[Row])
    assert_type(csv_rows("*.csv", Row, delimiter=";"), Source[Row])
    assert_type(csv_rows("*.csv", CollectionName, with_path=True), Source[tuple[str, CollectionName]])
    assert_type(csv_rows("a.csv", "b.csv", kind=CollectionName, on_bad="skip"), Source[CollectionName])
    assert_type(csv_rows("*.csv", with_path=True), Source[tuple[str, dict[str, Any]]])
    assert_type(json_lines("*.jsonl", CollectionName, with_path=True), Source[tuple[str, CollectionName]])
    assert_type(parquet_rows("*.parquet", CollectionName, into=to_ilist("bad")), Source[CollectionName])
    assert_type(avro_records("*.avro"), Source[Any])
    assert_type(avro_records("*.avro", Row), Source[Row])
    assert_type(files("in", glob="*.bin"), Source[tuple[str, bytes]])
    assert_type(files("in", read=lambda path, open_file: [len(open_file.read())]), Source[int])
    assert_type(ctx.read(csv_rows("*.csv", CollectionName)).ignore(ValueError), Stream[CollectionName])
    csv_rows("*.csv", on_bad="drop")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    assert_type(imap("ages"), Source[Entry[Any, Any]])
    assert_type(imap("ages", projection=lambda entry: str(entry.key)), Source[str])
    assert_type(icache("ages", lambda entry: entry.value), Source[Entry[Any, Any]])
    assert_type(ilist("names"), Source[Any])
    assert_type(ctx.read(items(1, 2)), Stream[int])
    assert_type(parquet_rows("*.parquet", columns=["a"]), Source[dict[str, Any]])
    assert_type(ctx.read(Items("abc")), Stream[str])
    assert_type(ctx.read(Range(0, 3)), Stream[int])
    assert_type(ctx.read(Iterate(1, lambda n: n * 2)), Stream[int])
    assert_type(ctx.read(Generate(lambda: "x")), Stream[str])
    assert_type(list(ItemsSplit([1, 2]).read()), list[int])


def topics(ctx: Context) -> None:
    """A topic has an end or none, and records of what its functions make."""
    config = {"bootstrap.servers": "host:9092", "fetch.min.bytes": 1}
    assert_type(kafka("a", config), StreamSource[KafkaRecord[bytes, bytes]])
    assert_type(kafka("a", config, key=bytes.decode), StreamSource[KafkaRecord[str, bytes]])
    assert_type(kafka(["a", "b"], config, value=int, until="latest"), Source[KafkaRecord[bytes, int]])
    both = kafka(re.compile("a.*"), config, key=int, value=bytes.decode, start={("a", 0): 7}, until="latest")
    assert_type(ctx.read(both), Stream[KafkaRecord[int, str]])
    assert_type(ctx.read(both).map(lambda record: record.value), Stream[str | None])
    assert_type(kafka("a", config, projection=lambda record: record.offset, until="latest"), Source[int])
    assert_type(kafka("a", config, projection=lambda record: record.topic), StreamSource[str])
    ctx.read(kafka("a", config))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def failed(error: ZeroDivisionError) -> None:
    """What is known about a failure, and the errors of our own."""
    assert_type(failure(error), Failure | None)
    raise errors.SourceError(str(Entry("a", 1)))
