"""Let a job without an end run for hours of simulated time, as fast as it goes: `python -m tests.soak.hours --hours 1`.

An epoch is 0.2 seconds of a clock that only the source moves. Printed is, again and again, what an epoch costs, what
the driver occupies, and how many files there are. The program ends with 1 if one of them grows with time, or a window
is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import dstream as ds
from collectors import counting
from dstream.windows import tumbling
from reducers import to_imap
from tests.jobs.unbounded.clocked_events import FRAME, LAG, PARTITIONS, Clocked, expected

__all__ = ["Looked", "run"]

_EPOCH = 0.2
_KEYS = 1000
_WINDOWS = 100
"""Windows of so many times the usual length, since events come so much faster than in the other soaks."""
_LOOKS, _SHOWN = 60, 6
"""How often to look, and each which of these is shown."""
_KEEP = 20.0
"""Simulated seconds for which records are kept: an hour is many times as long, as a week is to a day."""
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
        megabytes: of the driver.
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


def run(hours: float, rate: float) -> bool:
    """Run so many hours with so many events in a second; say whether all was level and right."""
    seconds, simulated = hours * 3600, Simulated()
    source = Simulation(int(seconds * rate / PARTITIONS), _KEYS, rate / PARTITIONS, 0.0, simulated, simulated)
    with tempfile.TemporaryDirectory() as folder, ds.connect(engine="local", storage=folder) as ctx:
        pipeline = ds.Pipeline()
        events = pipeline.read_from(source).add_timestamps(lambda each: each.timestamp, LAG)
        counts = events.grouping_key(lambda each: each.key).window(tumbling(_WINDOWS * FRAME)).aggregate(counting())
        counts.write_to(
            to_imap("totals", lambda each: each.key, lambda each: each.result, lambda a, b: a + b, on_existing="merge")
        )
        config = ds.JobConfig(epoch_length=0.001, clock=simulated, keep=_KEEP)
        job = ctx.new_job(pipeline, config=config)
        print("| epochs | events | ms | CPU ms | driver MB | files |\n|---|---|---|---|---|---|", flush=True)
        looks = _looks(job, Path(folder), int(seconds / _EPOCH))
        job.join()
        is_right = ctx.get_map("totals").copy() == expected(source.count, _KEYS).totals
    print("all counts are right" if is_right else "WRONG counts")
    return is_right and _is_level(looks)


def _looks(job: ds.Job, folder: Path, epochs: int) -> list[Looked]:
    """Look at a job again and again, until it ends."""
    driver, looks = psutil.Process(), []
    began, cpu, before, events = time.monotonic(), time.process_time(), 0, 0
    while not job.status.has_ended:
        time.sleep(0.05)
        if job.epoch < before + max(1, epochs // _LOOKS):
            continue
        done, read = job.epoch - before, sum(each.items_out or 0 for each in _sources(job)) - events
        wall, used, before = time.monotonic() - began, time.process_time() - cpu, job.epoch
        files = sum(len(names) for _, _, names in os.walk(folder))  # A folder may go meanwhile.
        megabytes = driver.memory_info().rss / 2**20
        looks.append(Looked(before, read / done, (wall / done * 1000, used / done * 1000), megabytes, files))
        if len(looks) % _SHOWN == 1:
            print(looks[-1].row(), flush=True)
        began, cpu, events = time.monotonic(), time.process_time(), events + read
    return looks


def _sources(job: ds.Job) -> list[Any]:
    """Return the counts of the stage that reads."""
    return list(job.metrics().stages.values())[:1]


def _is_level(looks: list[Looked]) -> bool:
    """Say whether the last quarter is about as the second one, since the first one fills what is kept."""
    quarter = len(looks) // 4
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
    parser.add_argument("--rate", type=float, default=10_000, help="events in a second")
    given = parser.parse_args()
    return 0 if run(given.hours, given.rate) else 1


if __name__ == "__main__":
    sys.exit(main())
