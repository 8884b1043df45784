"""Run an unbounded job for hours of simulated time, as fast as it goes: `python -m tests.soak.hours --hours 1`.

An epoch is 0.2 seconds of a clock that only the source moves. With `--real local` or `--real spark` the job runs by the
clock on the wall, on that engine: `python -m tests.soak.hours --real spark --rate 1000`.

Printed is, again and again, what an epoch costs, what the processes occupy, and how many files there are. The program
ends with 1 if one of them grows with time, or a window is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import dstream as ds
from collectors import counting
from dstream.windows import tumbling
from reducers import to_imap
from tests.benchmarks.process_tree import cpu_seconds
from tests.jobs.unbounded.clocked_events import FRAME, LAG, PARTITIONS, Clocked, expected

__all__ = ["Looked", "run"]

_EPOCH = 0.2
_KEYS = 1000
_WINDOWS = 100
"""Windows of so many times the usual length, since events come so much faster than in the other soaks."""
_LOOKS, _SHOWN = 60, 6
"""How often to look, and each which of these is shown."""
_STARTING = 20.0
"""Seconds in which an engine starts, before there are events."""
_KEEP = 20.0
"""Simulated seconds for which records are kept: an hour is many times as long, as a week is to a day."""
_SETTLED = 2_500
"""Epochs after which nothing may grow: the map has had its first 100 commits, and its first checkpoint."""
_GROWTH = 1.5
"""Times the middle that the end may be, at most."""


@dataclass
class Simulated:
    """A clock that moves by one epoch when the source is asked."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Simulation(Clocked):
    """Events of the clock's time, whose reach moves it."""

    simulated: Simulated = field(default_factory=Simulated)

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Move the clock; say how many events there are then."""
        self.simulated.now += _EPOCH
        return super().reach(offsets, None)


@dataclass(frozen=True)
class Looked:
    """What was seen at some moment.

    Attributes:
        epoch: how many there were.
        events: of each of the last epochs.
        millis: what each of these took, on the clock on the wall and of the processor.
        megabytes: of the driver and all processes below it.
        files: of the storage.
    """

    epoch: int
    events: float
    millis: tuple[float, float]
    megabytes: float
    files: int

    def row(self) -> str:
        """Return a line of a table."""
        wall, cpu = self.millis
        return (
            f"| {self.epoch:,} | {self.events:,.0f} | {wall:.1f} | {cpu:.1f} | {self.megabytes:.0f} | {self.files:,} |"
        )


def run(hours: float, rate: float, real: str | None = None) -> bool:
    """Run so many hours with so many events in a second; say whether all was level and right.

    Args:
        hours: of simulated time, or of the clock.
        rate: events in a second.
        real: the engine, to run by the clock.
    """
    seconds, simulated = hours * 3600, Simulated()
    count, of_each = int(seconds * rate / PARTITIONS), rate / PARTITIONS
    source = (
        Simulation(count, _KEYS, of_each, 0.0, simulated, simulated)
        if real is None
        else Clocked(count, _KEYS, of_each, time.time() + _STARTING)
    )
    config = ds.JobConfig(epoch_length=0.001, clock=simulated, keep=_KEEP)
    config = config if real is None else ds.JobConfig(epoch_length=_EPOCH, keep=3 * _KEEP)
    where = {"engine": "local"} if real != "spark" else {"master": "local[2,4]", "progress": False}
    with tempfile.TemporaryDirectory() as folder, ds.connect(storage=folder, **where) as ctx:
        pipeline = ds.Pipeline()
        events = pipeline.read_from(source).add_timestamps(lambda each: each.timestamp, LAG)
        counts = events.grouping_key(lambda each: each.key).window(tumbling(_WINDOWS * FRAME)).aggregate(counting())
        counts.write_to(
            to_imap("totals", lambda each: each.key, lambda each: each.result, lambda a, b: a + b, on_existing="merge")
        )
        job = ctx.new_job(pipeline, config=config)
        print("| epochs | events | ms | CPU ms | MB | files |\n|---|---|---|---|---|---|", flush=True)
        looks = _looks(job, Path(folder), seconds / _LOOKS if real else 0.0, int(seconds / _EPOCH) // _LOOKS)
        job.join()
        is_right = ctx.get_map("totals").copy() == expected(source.count, _KEYS).totals
    print("all counts are right" if is_right else "WRONG counts")
    return is_right and _is_level(looks)


def _looks(job: ds.Job, folder: Path, every: float, epochs: int) -> list[Looked]:
    """Look at a job until it ends: each so many seconds, or if that is 0, each so many epochs."""
    looks: list[Looked] = []
    began, cpu, before, events = time.monotonic(), cpu_seconds(), 0, 0
    while not job.status.has_ended:
        time.sleep(0.05)
        if job.epoch == before or time.monotonic() < began + every or (not every and job.epoch < before + epochs):
            continue
        done, read = job.epoch - before, sum(each.items_out or 0 for each in _sources(job)) - events
        wall, used, before = time.monotonic() - began, cpu_seconds() - cpu, job.epoch
        files = sum(len(names) for _, _, names in os.walk(folder))  # A folder may go meanwhile.
        megabytes = _resident() / 2**20
        looks.append(Looked(before, read / done, (wall / done * 1000, used / done * 1000), megabytes, files))
        if len(looks) % _SHOWN == 1:
            print(looks[-1].row(), flush=True)
        began, cpu, events = time.monotonic(), cpu_seconds(), events + read
    return looks


def _resident() -> int:
    """Return the bytes that this process and all below it occupy; what they share counts in each."""
    total = 0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def _sources(job: ds.Job) -> list[Any]:
    """Return the counts of the stage that reads."""
    return list(job.metrics().stages.values())[:1]


def _is_level(looks: list[Looked]) -> bool:
    """Say whether the last quarter is about as the second one, once what is kept has filled."""
    looks = [each for each in looks if each.epoch > _SETTLED]
    quarter = len(looks) // 4
    if quarter == 0:
        print(f"too short to say whether it is level: that takes more than {_SETTLED:,} epochs")
        return True
    second, last = looks[quarter : 2 * quarter], looks[-quarter:]
    growing = [
        name
        for name, of in (
            ("CPU", lambda each: each.millis[1]),
            ("memory", lambda each: each.megabytes),
            ("files", lambda each: each.files),
        )
        if _median(list(map(of, last))) > _GROWTH * _median(list(map(of, second)))
    ]
    print(f"grows: {', '.join(growing)}" if growing else "level")
    return not growing


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--hours", type=float, default=1.0, help="of simulated time")
    parser.add_argument("--real", choices=("local", "spark"), help="by the clock, on this engine")
    parser.add_argument("--rate", type=float, default=10_000, help="events in a second")
    given = parser.parse_args()
    return 0 if run(given.hours, given.rate, given.real) else 1


if __name__ == "__main__":
    sys.exit(main())
