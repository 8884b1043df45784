"""U4 and U5: jobs that go on: how late their results are, what they cost, and what it costs to wait for events."""

from __future__ import annotations

import logging
import operator
import shutil
import statistics
import time
from collections.abc import Callable, Sequence

import dstream as ds
from collectors import counting
from reducers import to_logger, to_nothing
from sources import item_stream
from tests.benchmarks.harness import Bench, Row, yes_or_no
from tests.benchmarks.process_tree import cpu_seconds

__all__ = ["idleness", "lateness"]

_RATES = {200: 2, 1_000: 10, 10_000: 100}
"""Events a second, and one of how many of them is logged."""
_WARMING_UP = 10.0
_FIRST_EPOCHS = 5
"""Spark needs seconds for them, in which events wait."""
_HOUR = 3600.0
_PLACES = ("local", "auto", "Spark")
_GOALS = {
    ("local", 10_000): (0.020, 0.020),
    ("auto", 200): (0.012, 0.060),
    ("auto", 1_000): (0.015, 0.060),
    ("auto", 10_000): (0.025, 0.060),
    ("Spark", 10_000): (0.300, 0.900),
}
"""The median and the 99th of a hundred, in seconds, by engine and events a second."""
_IDLE = 0.02
_LOGGER = "tests.benchmarks.living"


def lateness(bench: Bench, runs: int) -> list[Row]:
    """Return U4: the time from when an event is due until the epoch that counted it is published."""
    return [_late_row(where, rate, *_seen(bench, where, rate, bench.size(30, 10))) for where, rate in _GOALS]


def idleness(bench: Bench, runs: int) -> list[Row]:
    """Return U5: what a job takes of a core whose next event is due in an hour."""
    return [_idle_row(bench, where, bench.size(20, 10)) for where in _PLACES]


class _Watch(logging.Handler):
    """Notes how late each logged event is."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.late.append(time.time() - float(record.getMessage()))


def _seen(bench: Bench, where: str, rate: int, seconds: float) -> tuple[Sequence[float], float]:
    """Return how late each logged event was, and the share of a core that the process and its Spark took."""
    watch, logger = _Watch(), logging.getLogger(_LOGGER)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(logging.NullHandler())  # Without one, the lines would be shown.
    pipeline = ds.Pipeline()
    events = pipeline.read_from(item_stream(rate, _event, partitions=2))
    counted = events.grouping_key(operator.itemgetter(1)).map_stateful(list, _counted)
    counted.filter(_sampled(_RATES[rate])).map(_due).write_to(to_logger(str, logger=_LOGGER))
    with _context(bench, where) as ctx:
        job = ctx.new_job(pipeline)
        while job.epoch < _FIRST_EPOCHS:
            time.sleep(0.1)
        time.sleep(_WARMING_UP)
        logger.addHandler(watch)
        share = _share(where, seconds)
        logger.removeHandler(watch)
        job.cancel()
    return watch.late, share


def _event(timestamp: int, number: int) -> tuple[int, int, int]:
    return timestamp, number % 1000, number


def _counted(count: list[int], key: int, event: tuple[int, int, int]) -> tuple[int, int, int]:
    count[:] = [sum(count) + 1]
    return event[0], count[0], event[2]


def _sampled(one_of: int) -> Callable[[tuple[int, int, int]], bool]:
    return lambda event: event[2] % one_of == 0


def _due(event: tuple[int, int, int]) -> float:
    return event[0] / 1000


def _late_row(where: str, rate: int, seen: Sequence[float], share: float) -> Row:
    late = sorted(seen)
    middle, high = statistics.median(late), late[int(0.99 * len(late))]
    goal = _GOALS[where, rate]
    note = f"p50 {middle * 1000:.0f} ms, p99 {high * 1000:.0f} ms of {len(late):,} events; {share:.2f} of a core"
    met = yes_or_no(middle <= goal[0] and high <= goal[1])
    wanted = " and ".join(f"{each * 1000:.0f} ms" for each in goal)
    return (f"U4 latency, {rate:,} events a second, {where}", "dstream", "", "", "", "", wanted, met, note)


def _idle_row(bench: Bench, where: str, seconds: float) -> Row:
    pipeline = ds.Pipeline()
    stage = pipeline.read_from(item_stream(1 / _HOUR)).grouping_key(operator.itemgetter(1))
    stage.rolling_aggregate(counting()).write_to(to_nothing())
    with _context(bench, where) as ctx:
        without = _share(where, seconds)
        job = ctx.new_job(pipeline)
        time.sleep(_WARMING_UP)
        share = _share(where, seconds)
        job.cancel()
    note = f"{share * 100:.1f} % of a core; {without * 100:.1f} % before the job"
    return (
        f"U5 idle, {where}",
        "dstream",
        "",
        "",
        "",
        "",
        f"{_IDLE * 100:g} %",
        yes_or_no(share - without <= _IDLE),
        note,
    )


def _share(where: str, seconds: float) -> float:
    cpu = cpu_seconds(with_jvm=where == "Spark")
    time.sleep(seconds)
    return (cpu_seconds(with_jvm=where == "Spark") - cpu) / seconds


def _context(bench: Bench, where: str) -> ds.Context:
    folder = bench.folder / f"living-{where}"
    shutil.rmtree(folder, ignore_errors=True)
    return ds.connect(engine="spark" if where == "Spark" else where, storage=folder)
