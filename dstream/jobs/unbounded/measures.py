"""`Measures`: what is known of the epochs of a job in numbers."""

from __future__ import annotations

from collections import deque
from typing import Any

from dstream.jobs.unbounded.log_record import LogRecord
from dstream.values.event_time import END_OF_TIME

__all__ = ["Measures"]

_LAST = 1000
"""Epochs of which the times are remembered."""


class Measures:
    """The times of the last epochs, and the watermarks of the last record."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_LAST)
        self._engine: deque[float] = deque(maxlen=_LAST)

    def take(self, seconds: float, engine: float) -> None:
        """Remember how long an epoch took, and the engine for it."""
        self._seconds.append(seconds)
        self._engine.append(engine)

    def of(self, record: LogRecord) -> dict[str, Any]:
        """Return all of it as plain data, as the state of a job has it."""
        return {
            "stages": {stage: dict(counts) for stage, counts in record.counts.items()},
            "watermarks": {**_watermarks_of_sources(record), **{step: m.watermark for step, m in record.steps.items()}},
            "clock": record.clock,
            "epoch_seconds": _percentiles(self._seconds),
            "engine_seconds": _percentiles(self._engine),
        }


def _watermarks_of_sources(record: LogRecord) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, time in record.times.items():
        if place.partition in record.sources[place.source].left_out:
            continue
        found[place.source] = min(found.get(place.source, END_OF_TIME), time.watermark)
    return found


def _percentiles(seconds: deque[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {f"p{each}": ordered[min(len(ordered) - 1, len(ordered) * each // 100)] for each in (50, 99) if ordered}
