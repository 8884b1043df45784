"""U1 to U3: windows by key over events that arrive file by file, beside Structured Streaming with equal results."""

from __future__ import annotations

import atexit
import functools
import operator
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.dataset

import dstream as ds
from collectors import averaging_long, counting
from dstream.windows import session, sliding, tumbling
from reducers import to_ilist
from tests.benchmarks import stateful_rivals as rivals
from tests.benchmarks.event_files import LAG, LAST, EventFiles, event_files
from tests.benchmarks.folding import Averages, Counts, Folding, Sessions
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["session_counts", "sliding_averages", "tumbling_counts"]

_SIZE, _FRAME, _FRAMES, _TIMEOUT = 10_000, 1_000, 60, 2_000
_OF_EPOCH = 200_000
_AS_USUAL, _BY_SHARD = 1 / 4, 1 / 1.5
"""Our share of the CPU of rivals with a state for each key, and for each shard."""


def tumbling_counts(bench: Bench) -> list[Case]:
    """Return U1: events of each key in windows of 10 seconds, of few keys and of many."""
    rolled = _Ours(bench, tumbling(_SIZE), counting())
    few = _case(bench, "U1", "tumbling count", rolled, Counts(_SIZE), 10_000, rivals.native_counts(_SIZE))
    many = _case(bench, "U1", "tumbling count", rolled, Counts(_SIZE), 1_000_000, rivals.native_counts(_SIZE))
    return [few] if bench.quick else [few, many]


def sliding_averages(bench: Bench) -> list[Case]:
    """Return U2: the average of each key in windows of 60 frames of a second."""
    window = sliding(_FRAMES * _FRAME, _FRAME)
    ours = _Ours(bench, window, averaging_long(operator.itemgetter(2)))
    return [_case(bench, "U2", "sliding average, 60 frames", ours, Averages(_FRAMES * _FRAME, _FRAME), 10_000)]


def session_counts(bench: Bench) -> list[Case]:
    """Return U3: events in each session of a key, with pauses of at most 2 seconds."""
    return [_case(bench, "U3", "sessions", _Ours(bench, session(_TIMEOUT), counting()), Sessions(_TIMEOUT), 10_000)]


def _case(bench: Bench, code: str, title: str, ours: _Ours, folding: Folding, keys: int, native: Any = None) -> Case:
    """Return our job beside rivals with a state for each key and for each shard.

    Of a million keys there is one epoch: a state for each of them takes minutes there.
    """
    epochs, of_epoch = bench.size(5, 1) if keys < 1_000_000 else 1, bench.size(_OF_EPOCH, 100_000)
    events = event_files(bench.folder, epochs, of_epoch, keys)
    queries = {
        "applyInPandasWithState, a state per key": (rivals.applied(folding), _AS_USUAL),
        "transformWithState, a state per key": (rivals.transformed(folding), _AS_USUAL),
        "applyInPandasWithState, a state per shard": (rivals.applied(folding, by_shard=True), _BY_SHARD),
        "transformWithState, a state per shard": (rivals.transformed(folding, by_shard=True), _BY_SHARD),
        **({} if native is None else {"native SQL window": (native, None)}),
    }
    spark, number = bench.spark.newSession(), count()
    return Case(
        code,
        f"{title}, {keys:,} keys, {epochs} x {of_epoch:,} events",
        Contestant("dstream", functools.partial(ours.run, events), check=ours.results),
        [_rival(spark, name, events, bench.folder / f"{code}-{next(number)}", *each) for name, each in queries.items()],
    )


class _Ours:
    """A job with a window by key, into a list."""

    def __init__(self, bench: Bench, window: Any, operation: Any) -> None:
        folder = bench.folder / "unbounded"
        shutil.rmtree(folder, ignore_errors=True)
        self._ctx = ds.connect(engine="spark", storage=folder)
        atexit.register(self._ctx.close)
        self._window, self._operation, self._runs = window, operation, 0

    def run(self, events: Path) -> None:
        """Run a job over all files."""
        self._runs += 1
        pipeline = ds.Pipeline()
        stage = pipeline.read_from(EventFiles(str(events))).add_timestamps(operator.itemgetter(0), LAG)
        windows = stage.grouping_key(operator.itemgetter(1)).window(self._window)
        windows.aggregate(self._operation, _result).write_to(to_ilist(f"results-{self._runs}"))
        self._ctx.new_job(pipeline, config=ds.JobConfig(epoch_length=0.001)).join()

    def results(self) -> Any:
        """Return what tells the results of the last run from others."""
        return _told_apart(pd.DataFrame(list(self._ctx.get_list(f"results-{self._runs}")), columns=_COLUMNS))


_COLUMNS = ["start", "key", "result"]


def _result(start: int, end: int, key: int, result: Any) -> tuple[int, int, float]:
    return start, key, float(result)


def _rival(
    spark: Any, name: str, events: Path, results: Path, query: Callable[..., Any], goal: float | None
) -> Contestant:
    def run() -> None:
        for path in (results, Path(f"{results}-log")):
            shutil.rmtree(path, ignore_errors=True)
        rivals.run(spark, events, results, query)

    def found() -> Any:
        return _told_apart(pyarrow.dataset.dataset(results, format="parquet").to_table(columns=_COLUMNS).to_pandas())

    return Contestant(name, run, goal, check=found)


def _told_apart(results: pd.DataFrame) -> tuple[int, int]:
    """Return how many results there are, and a sum over all of them that does not ask for their order.

    Those of `LAST` are left out: some are open at the end, where Structured Streaming closes nothing.
    """
    results = results[results["key"] != LAST]
    return len(results), int(pd.util.hash_pandas_object(results, index=False).sum())
