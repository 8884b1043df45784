"""`EpochMetrics`: the metrics of the epochs of a job."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from dstream.failures import shown
from dstream.jobs.unbounded.log import LogRecord, SourceMark
from dstream.jobs.unbounded.ranges import EpochInput
from dstream.jobs.unbounded.state import StatesOfSteps
from dstream.spi.runtime import EngineOfEpoch
from dstream.spi.source import OffsetShowing, StreamSource
from dstream.values.time import END_OF_TIME

__all__ = ["EpochMetrics"]


_LAST = 1000
"""Epochs of which the times are remembered."""


class EpochMetrics:
    """The times of the last epochs, the backlog of sources after them, and the data of the last record."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_LAST)
        self._engine: deque[float] = deque(maxlen=_LAST)
        self._left: dict[str, int | None] = {}
        self._epochs = Counter[str]()

    def take(
        self, seconds: float, of_engine: float, news: Mapping[str, EpochInput], engine: EngineOfEpoch | None = None
    ) -> None:
        """Add an epoch.

        Args:
            seconds: how long it took.
            of_engine: how long its engine took.
            news: its input.
            engine: that engine, if the context has several.
        """
        if engine is not None:
            self._epochs[engine] += 1
        self._seconds.append(seconds)
        self._engine.append(of_engine)
        self._left = {stage: some.left for stage, some in news.items()}

    def of(
        self, record: LogRecord, states: StatesOfSteps, sources: Mapping[str, StreamSource[Any]] | None = None
    ) -> dict[str, Any]:
        """Return all of it as plain data, as the state of a job has it.

        Args:
            record: the last one.
            states: the states of steps.
            sources: of the stages that are open.
        """
        opened = sources or {}
        return {
            "stages": _stages(record, states),
            "sources": {
                stage: _source(mark, self._left.get(stage), opened.get(stage)) for stage, mark in record.sources.items()
            },
            "watermarks": {**_watermarks_of_sources(record), **{step: m.watermark for step, m in record.steps.items()}},
            "clock": record.clock,
            "epoch_seconds": _percentiles(self._seconds),
            "engine_seconds": _percentiles(self._engine),
            "epochs_by_engine": dict(self._epochs),
        }


def _stages(record: LogRecord, states: StatesOfSteps) -> dict[str, dict[str, Any]]:
    """Return the counts and the sizes of state, which the driver has without reading the state."""
    stages = {stage: dict(counts) for stage, counts in record.counts.items()}
    for step, index in states.indexes.items():
        stages.setdefault(step, {}).update(keys=index.keys, state_bytes=index.size_in_bytes)
    return stages


_MOST_OFFSETS = 100
"""The most offsets of a source; a folder may have 100,000 files, and the state of a job is written every second."""


def _source(mark: SourceMark, left: int | None, source: StreamSource[Any] | None) -> dict[str, Any]:
    there = [partition for partition in mark.offsets if mark.goes_on(partition)]
    offsets = {partition: _in_json(mark.offsets[partition]) for partition in islice(there, _MOST_OFFSETS)}
    shown = {partition: _shown(source, mark.offsets[partition]) for partition in offsets}
    return {
        "partitions": len(there),
        "offsets": offsets,
        "left": left,
        "has_ended": mark.has_ended,
        "shown": {partition: text for partition, text in shown.items() if text is not None},
    }


def _shown(source: StreamSource[Any] | None, offset: Any) -> str | None:
    """Return an offset as its source shows it; None if it does not."""
    if isinstance(source, OffsetShowing):
        with suppress(Exception):  # A table of numbers is no reason for which a job fails.
            return str(source.shown_offset(offset))
    return None


def _in_json(offset: Any) -> Any:
    """Return an offset as JSON has it; one of a user's source may be plain data that JSON has not, such as bytes."""
    if type(offset) is int:
        return offset
    try:
        # Encoded and decoded: metrics are reported as JSON, whose tuples are lists.
        return json.loads(json.dumps(offset))
    except (TypeError, ValueError, RecursionError):
        with suppress(Exception):  # `repr` recurses as deep as JSON does.
            return repr(offset)
        return shown(offset)


def _watermarks_of_sources(record: LogRecord) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, time in record.times.items():
        # The source does not report it any more, so its time does not advance, and nothing waits for it.
        if place.partition in record.sources[place.source].left_out:
            continue
        found[place.source] = min(found.get(place.source, END_OF_TIME), time.watermark)
    return found


def _percentiles(seconds: deque[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {f"p{each}": ordered[min(len(ordered) - 1, len(ordered) * each // 100)] for each in (50, 99) if ordered}
