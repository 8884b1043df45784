"""B11: what counting words costs as the text and the cores grow: 30, 120 and 480 MB, on one core and on two.

Each number of cores has a program with a Spark of its own: this module. The programs live side by side, and in every
round each of them counts each text once, while the others are idle.
"""

from __future__ import annotations

import gc
import hashlib
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dstream as ds
from tests.benchmarks import second_core
from tests.benchmarks.corpus import corpus
from tests.benchmarks.harness import Bench, Row, seconds, yes_or_no
from tests.benchmarks.process_tree import cpu_seconds, sampled_memory, settle
from tests.benchmarks.separate import Program, answering, started
from tests.benchmarks.word_count import count_words

__all__ = ["rows"]

_CORES = (1, 2)
_SPEED_UP = 1.7
_ABOVE_LINEAR = 1.1


@dataclass
class _Point:
    """What was measured of one size on one number of cores."""

    megabytes: int
    cores: int
    path: Path
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    peak: int = 0

    @property
    def size(self) -> int:
        """The bytes of the text."""
        return self.path.stat().st_size

    def take(self, answer: dict[str, Any]) -> None:
        """Note what one run took."""
        self.cpu.append(answer["cpu"])
        self.wall.append(answer["wall"])


def rows(bench: Bench, runs: int) -> list[Row]:
    """Measure all points, compare their results, and return the rows of the table."""
    sizes = (2, 8, 16) if bench.quick else (30, 120, 480)
    points = [_Point(size, cores, corpus(bench.folder, size)) for cores in _CORES for size in sizes]
    with ExitStack() as stack:
        programs = {cores: stack.enter_context(started("growth", cores)) for cores in _CORES}
        _warm_up(points, programs)
        for number in range(runs):
            for point in points[number % len(points) :] + points[: number % len(points)]:
                point.take(programs[point.cores].ask("run", point.path))
            print(f"B11 growth: run {number + 1} of {runs}", file=sys.stderr)
    return [*(_row(point, points) for point in points), second_core.row(bench, runs)]


def _warm_up(points: Sequence[_Point], programs: dict[int, Program]) -> None:
    """Compare the results, and watch the memory."""
    digests: dict[int, str] = {}
    for point in points:
        answer = programs[point.cores].ask("look", point.path)
        point.peak = answer["peak"]
        same = digests.setdefault(point.megabytes, answer["digest"]) == answer["digest"]
        assert same, f"B11: {point.megabytes} MB give another result on {point.cores} cores"


def _row(point: _Point, points: Sequence[_Point]) -> Row:
    notes = [*_growth(point, points), *_speed_up(point, points)]
    met = [is_met for _, is_met in notes if is_met is not None]
    return (
        "B11 growth of B2" if point is points[0] else "",
        f"{point.megabytes} MB, {point.cores} core{'s' * (point.cores > 1)}",
        seconds(point.cpu),
        seconds(point.wall),
        f"{point.peak / 2**20:,.0f}",
        "",
        "",
        yes_or_no(all(met)) if met else "",
        "; ".join(text for text, _ in notes),
    )


Note = tuple[str, bool | None]
"""What is said of a point, and whether a goal is met."""


def _growth(point: _Point, points: Sequence[_Point]) -> list[Note]:
    """Say how CPU grows from the next smaller text to this one; a job costs something of its own, so rather less."""
    smaller = [other for other in points if other.cores == point.cores and other.size < point.size]
    if not smaller:
        return []
    before = max(smaller, key=lambda other: other.size)
    data, cpu = point.size / before.size, _ratio(point.cpu, before.cpu)
    return [(f"{data:.1f} times the data, {cpu:.2f} times the CPU", cpu <= data * _ABOVE_LINEAR)]


def _speed_up(point: _Point, points: Sequence[_Point]) -> list[Note]:
    """Say what the second core is worth; the goal is for the largest text."""
    if point.cores == 1:
        return []
    alone = next(other for other in points if other.cores == 1 and other.megabytes == point.megabytes)
    worth = _ratio(alone.wall, point.wall)
    is_largest = point.size == max(other.size for other in points)
    goal = f", goal {_SPEED_UP:g}" if is_largest else ""
    return [(f"the second core is worth {worth:.2f}{goal}", worth >= _SPEED_UP if is_largest else None)]


def _ratio(ones: Sequence[float], others: Sequence[float]) -> float:
    """Return the median over the rounds of what one point took for each second of another one."""
    return statistics.median(one / max(other, 1e-5) for one, other in zip(ones, others, strict=True))


def _answer(ctx: ds.Context, words: Sequence[str]) -> dict[str, Any]:
    what, path = words
    return _look(ctx, Path(path)) if what == "look" else _run(ctx, Path(path))


def _look(ctx: ds.Context, path: Path) -> dict[str, Any]:
    with sampled_memory() as memory:
        counts = count_words(ctx, path)
    return {"peak": memory.peak, "digest": hashlib.sha256(repr(sorted(counts.items())).encode()).hexdigest()}


def _run(ctx: ds.Context, path: Path) -> dict[str, Any]:
    gc.collect()
    ctx.spark._jvm.System.gc()
    settle()
    cpu, wall = cpu_seconds(), time.perf_counter()
    count_words(ctx, path)
    return {"wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu}


if __name__ == "__main__":
    config = {"spark.driver.memory": "2g", "spark.python.daemon.module": "tests.benchmarks.worker_daemon"}
    with ds.connect(f"local[{sys.argv[1]}]", config=config, progress=False) as connected:
        answering(partial(_answer, connected))
