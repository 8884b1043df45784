"""U6 and U7: the state of many keys: how soon a job is back whose driver was killed, and what workers need for it.

The job runs in a program of its own, this module. It numbers the events of each key. How many events there are stands
in a file, which whoever asks for more of them rewrites.
"""

from __future__ import annotations

import atexit
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dstream as ds
from reducers import to_ilist
from tests.benchmarks.harness import Bench, Row, yes_or_no
from tests.benchmarks.process_tree import cpu_seconds
from tests.benchmarks.separate import answering, started

__all__ = ["beyond_memory", "recovery"]

_MEGABYTE = 2**20
_PARTITIONS = 2
_TOUCHED = 1000
_MOST_ITEMS = 100_000
_ALLOWANCE = 256
"""MB of a worker besides what it keeps: items on their way, changes, and one shard while its snapshot is written."""
_SOON = 15.0
_LONGEST = 3600.0
_FILLED = "filled"


def recovery(bench: Bench, runs: int) -> list[Row]:
    """Return U6: seconds from the start of a program until it has published an epoch of the job of a killed one."""
    keys = bench.size(1_000_000, 50_000)
    found = sorted(_recovered(bench.folder / "recovery", keys) for _ in range(runs))
    note = "; ".join(f"{took:.1f} s: {phases}" for took, phases in found)
    return [_row(f"U6 recovery after SIGKILL, {keys:,} keys", "", f"{_SOON:g} s", found[-1][0] <= _SOON, note)]


def _recovered(folder: Path, keys: int) -> tuple[float, str]:
    """Return how long it took, and what of that."""
    _emptied(folder)
    with started("keeping") as program:
        program.ask("fill", folder, keys, 512)
        program.process.kill()
    begun = time.perf_counter()
    with started("keeping") as program:
        count, _, wall = program.ask("touch", folder, keys, 512)
        took = time.perf_counter() - begun
        spark, job = program.ask("phases")
    assert count == 2, f"U6: a key was counted {count} times, not 2"
    python = took - wall - spark - job
    return took, f"Python {python:.1f}, Spark {spark:.1f}, the job until it runs {job:.1f}, its first epoch {wall:.1f}"


def beyond_memory(bench: Bench, runs: int) -> list[Row]:
    """Return U7: the peak of a worker whose state outgrows its bound, once, however many `runs` are asked for."""
    keys, bound = bench.size(20_000_000, 2_000_000), bench.size(512, 192)
    folder = bench.folder / "beyond-memory"
    _emptied(folder)
    with started("keeping") as program, program.watching() as peaks:
        _, filling, _ = program.ask("fill", folder, keys, bound)
        count, cpu, wall = program.ask("touch", folder, keys, bound)
    assert count == 2, f"U7: a key was counted {count} times, not 2"
    per_event = f"{filling / keys * 1e6:.0f} microseconds of CPU for each new key"
    later = f"an epoch with {_TOUCHED:,} keys takes {cpu:.2f} s of CPU, {wall:.2f} s"
    goal, peak = bound + _ALLOWANCE, peaks.worker / _MEGABYTE
    note = f"peak of a worker with a bound of {bound} MB, goal {goal} MB; {per_event}; {later}"
    return [_row(f"U7 state beyond memory, {keys:,} keys", f"{peak:,.0f}", f"{goal} MB", peak <= goal, note)]


def _row(title: str, peak: str, goal: str, is_met: bool, note: str) -> Row:
    return (title, "dstream", "", "", peak, "", goal, yes_or_no(is_met), note)


def _emptied(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


# ----------------------------------------------------------------------------------------------- the program of the job


@dataclass(frozen=True)
class _Stretch:
    numbers: range

    def read(self) -> Iterator[int]:
        """Give the numbers."""
        return iter(self.numbers)


@dataclass(frozen=True)
class _Numbers:
    """Numbers from 0 on, in two partitions; a file says how many each of these has."""

    file: str
    label = "numbers()"
    ends = False

    def begin(self) -> Mapping[str, int]:
        """Begin with the first."""
        return {str(partition): 0 for partition in range(_PARTITIONS)}

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Say how many there are."""
        there = int(Path(self.file).read_text())
        return {name: there if most is None else min(there, offset + most) for name, offset in offsets.items()}

    def split(self, partition: str, start: int | None, stop: int) -> _Stretch:
        """Return every second number, or those between."""
        first = int(partition)
        return _Stretch(range((start or 0) * _PARTITIONS + first, stop * _PARTITIONS + first, _PARTITIONS))


def _alone(words: Sequence[str]) -> Sequence[float]:
    """Send an event of each key, or of some, and return how often the last key was seen, and the time.

    Asked for the phases, say how many seconds Spark took to start, and the job to run then.
    """
    if words[0] == "phases":
        return _PHASES
    action, folder, keys, bound = words[0], Path(words[1]), int(words[2]), int(words[3])
    events, is_new = folder / "events", not _RUNNING
    before = 0 if action == "fill" else keys
    _write(events, before)
    if is_new:
        began = time.perf_counter()
        ctx = ds.connect("local[2]", storage=folder / "storage", worker_memory=f"{bound}m", progress=False)
        atexit.register(ctx.close)
        ctx.stream([1]).map(abs).count()
        has_spark = time.perf_counter()
        config = ds.JobConfig(max_items=_MOST_ITEMS, epoch_length=5)
        job = ctx.new_job(_pipeline(str(events), keys), name="keeping", config=config)
        while job.status is not ds.JobStatus.RUNNING:
            time.sleep(0.01)
        _RUNNING.extend((ctx, job))
        _PHASES.extend((has_spark - began, time.perf_counter() - has_spark))
    ctx, job = _RUNNING
    cpu, wall = cpu_seconds(), time.perf_counter()
    _write(events, keys if action == "fill" else keys + _TOUCHED)
    seen = 1 if action == "fill" else 2
    while len(ctx.get_list(_FILLED)) < seen:
        assert wall + _LONGEST > time.perf_counter(), f"the job is {job.status}"
        if job.status.has_ended:
            job.join()
        time.sleep(0.02)
    return ctx.get_list(_FILLED)[-1], cpu_seconds() - cpu, time.perf_counter() - wall


_RUNNING: list[Any] = []
_PHASES: list[float] = []


def _write(file: Path, events: int) -> None:
    part = file.with_suffix(".part")
    part.write_text(str(events // _PARTITIONS))
    part.rename(file)


def _pipeline(file: str, keys: int) -> ds.Pipeline:
    """Return what numbers the events of each key, and tells that of the last one of each filling."""
    pipeline = ds.Pipeline()
    numbers = pipeline.read_from(_Numbers(file))
    counts = numbers.grouping_key(lambda number: number % keys).map_stateful(list, _counted)
    last = (keys - 1, keys + _TOUCHED - 1)
    counts.filter(lambda count: count[0] in last).map(lambda count: count[1]).write_to(to_ilist(_FILLED))
    return pipeline


def _counted(state: list[int], key: int, number: int) -> tuple[int, int]:
    state[:] = [sum(state) + 1]
    return number, state[0]


if __name__ == "__main__":
    answering(_alone)
