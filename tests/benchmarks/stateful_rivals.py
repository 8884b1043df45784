"""The rivals of U1 to U3: Structured Streaming as its users write it in Python, and native SQL windows.

`applied` gives the state of a group to a function (`applyInPandasWithState`), `transformed` to an object with timers
(`transformWithState`). What becomes of the state of one key is left to a `Folding`. A group is one key, or, for those
who look for speed, all keys of a shard.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.streaming.state import GroupStateTimeout

from tests.benchmarks.event_files import LAG, PARTITIONS
from tests.benchmarks.folding import Folding

__all__ = ["applied", "native_counts", "run", "transformed"]

_SHARDS = 64
_RESULTS = "start long, key long, result double"
_STATE = "state binary"
_ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

Columns = tuple[Sequence[int], Sequence[int]]
"""Timestamps and values."""


def run(spark: Any, events: Path, results: Path, of: Callable[[DataFrame], DataFrame]) -> None:
    """Run a query over all files, two in each batch, into Parquet files; `results` is new."""
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKS_DB if of in _WITH_ROCKS_DB else _IN_MEMORY)
    read = spark.readStream.schema("ts long, key long, value long").option("maxFilesPerTrigger", PARTITIONS)
    stream = read.parquet(str(events)).withColumn("time", F.timestamp_millis("ts"))
    query = of(stream.withWatermark("time", f"{LAG} milliseconds")).writeStream
    query = query.format("parquet").outputMode("append").trigger(availableNow=True)
    query.option("checkpointLocation", f"{results}-log").start(str(results)).awaitTermination()


_WITH_ROCKS_DB: set[Any] = set()


def native_counts(size: int) -> Callable[[DataFrame], DataFrame]:
    """Return the query of tumbling counts in SQL."""

    def query(events: DataFrame) -> DataFrame:
        counted = events.groupBy(F.window("time", f"{size} milliseconds"), "key").count()
        return counted.select(
            F.unix_millis("window.start").alias("start"), "key", F.col("count").cast("double").alias("result")
        )

    return query


def applied(folding: Folding, *, by_shard: bool = False) -> Callable[[DataFrame], DataFrame]:
    """Return a query with `applyInPandasWithState`."""

    def fold(group: tuple[int], batches: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        states = pickle.loads(state.get[0]) if state.exists else {}
        for batch in batches:
            _take(folding, states, group[0], batch["key"], batch["ts"].tolist(), batch["value"].tolist(), by_shard)
        watermark = state.getCurrentWatermarkMs()
        results, wakes = _closed(folding, states, watermark)
        if states:
            state.update((pickle.dumps(states),))
            state.setTimeoutTimestamp(wakes)
        elif state.exists:
            state.remove()
        yield pd.DataFrame(results, columns=["start", "key", "result"])

    def query(events: DataFrame) -> DataFrame:
        return _grouped(events, by_shard).applyInPandasWithState(
            fold, _RESULTS, _STATE, "append", GroupStateTimeout.EventTimeTimeout
        )

    return query


def transformed(folding: Folding, *, by_shard: bool = False) -> Callable[[DataFrame], DataFrame]:
    """Return a query with `transformWithState`."""

    def query(events: DataFrame) -> DataFrame:
        return _grouped(events, by_shard).transformWithState(
            _Processor(folding, by_shard), _RESULTS, "Append", "EventTime"
        )

    _WITH_ROCKS_DB.add(query)
    return query


class _Processor(StatefulProcessor):
    def __init__(self, folding: Folding, by_shard: bool) -> None:
        self._folding = folding
        self._by_shard = by_shard

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState("state", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        states, timer = self._held()
        columns = list(zip(*((row.key, row.ts, row.value) for row in rows), strict=True))
        _take(self._folding, states, key[0], *columns, self._by_shard)
        return self._close(states, timer, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        states, timer = self._held()
        return self._close(states, None if timer == expiredTimerInfo.getExpiryTimeInMs() else timer, timerValues)

    def close(self) -> None:
        pass

    def _held(self) -> tuple[dict[int, Any], int | None]:
        held = self._state.get()
        return ({}, None) if held is None else pickle.loads(held[0])

    def _close(self, states: dict[int, Any], timer: int | None, times: Any) -> Iterator[Row]:
        results, wakes = _closed(self._folding, states, times.getCurrentWatermarkInMs())
        if states and (timer is None or wakes < timer):
            self._handle.registerTimer(wakes)
            timer = wakes
        if states or timer is not None:
            self._state.update((pickle.dumps((states, timer)),))
        else:
            self._state.clear()
        return (Row(start=start, key=key, result=result) for start, key, result in results)

    def __reduce__(self) -> Any:
        return _Processor, (self._folding, self._by_shard)


def _grouped(events: DataFrame, by_shard: bool) -> Any:
    return events.withColumn("shard", F.col("key") % _SHARDS).groupBy("shard") if by_shard else events.groupBy("key")


def _take(
    folding: Folding,
    states: dict[int, Any],
    group: int,
    keys: Iterable[int],
    timestamps: Sequence[int],
    values: Sequence[int],
    by_shard: bool,
) -> None:
    """Fold the events of a group into the states of their keys."""
    of_keys: dict[int, tuple[Any, Any]] = {} if by_shard else {group: (timestamps, values)}
    if by_shard:
        for key, timestamp, value in zip(keys, timestamps, values, strict=True):
            of_key = of_keys.setdefault(int(key), ([], []))
            of_key[0].append(timestamp)
            of_key[1].append(value)
    for key, columns in of_keys.items():
        if key not in states:
            states[key] = folding.new()
        folding.fold(states[key], *columns)


def _closed(folding: Folding, states: dict[int, Any], watermark: int) -> tuple[list[tuple[int, int, float]], int]:
    """Return results, and when there are more of them; forget the keys of which nothing is left."""
    results = []
    for key in list(states):
        results += [(start, key, float(result)) for start, result in folding.close(states[key], watermark)]
        if folding.is_over(states[key]):
            del states[key]
    return results, min(map(folding.wakes, states.values()), default=0)
