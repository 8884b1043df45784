"""The harness: contestants, how a case measures them, and the table.

A case first checks that all contestants give the same result; that round warms them up, unmeasured
but for the memory. Then every round runs each contestant once, in an order that turns by one from
round to round. A ratio is the median over the rounds of *our CPU / their CPU of the same round*: on
a machine with other users that is steadier than the ratio of two medians.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dstream as ds
from tests.benchmarks.process_tree import cpu_seconds, sampled_memory, settle

__all__ = ["Bench", "Case", "Contestant", "Detail", "measure", "table"]

_HEADINGS = ("case", "contestant", "CPU s", "wall s", "peak MB", "ours / theirs", "goal", "met", "note")
_TICK = 1e-5
"""No figure is taken for smaller, so that a quick run, which measures little, divides by nothing."""


@dataclass(frozen=True)
class Bench:
    """What all cases run on: one JVM, one Python worker pool, and how much to do.

    Attributes:
        ctx: our context on Spark.
        local: our context on the local engine.
        spark: a session of the same Spark for the rivals, with Spark's own SQL settings.
        folder: where generated data are kept.
        quick: small data, to see that everything runs.
    """

    ctx: ds.Context
    local: ds.Context
    spark: Any
    folder: Path
    quick: bool

    def size(self, full: int, quick: int) -> int:
        """Return how many items a case takes."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Detail:
    """Something else than CPU that a contestant is judged by."""

    text: str
    met: bool | None = None


@dataclass(frozen=True)
class Contestant:
    """One way to do the work of a case.

    Attributes:
        run: does the work and returns its result.
        goal: how many times the CPU of this rival ours may take; None is for information.
        jobs: how often one measurement runs it; figures are for one run.
        uses_spark: whether the JVM and its workers are part of the contestant.
        check: gives the result to compare, where `run` gives none; on less data, if it likes.
        detail: another thing to report.
    """

    name: str
    run: Callable[[], Any]
    goal: float | None = None
    jobs: int = 1
    uses_spark: bool = True
    check: Callable[[], Any] | None = None
    detail: Callable[[], Detail] | None = None


@dataclass(frozen=True)
class Case:
    """Our way to do some work, and its rivals."""

    code: str
    title: str
    ours: Contestant
    rivals: Sequence[Contestant]

    @property
    def contestants(self) -> list[Contestant]:
        """Ours first."""
        return [self.ours, *self.rivals]


@dataclass
class _Figures:
    """What was measured of one contestant, for one run of its work."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    peak: int = 0
    detail: Detail | None = None


def measure(case: Case, bench: Bench, runs: int) -> list[tuple[str, ...]]:
    """Run a case and return its rows of the table.

    Raises:
        AssertionError: a contestant gives another result than ours.
    """
    figures = [_Figures() for _ in case.contestants]
    _warm_up(case, figures)
    order = list(range(len(figures)))
    for number in range(runs):
        for index in order:
            _measure_once(case.contestants[index], bench, figures[index])
        order = order[1:] + order[:1]
        print(f"{case.code} {case.title}: run {number + 1} of {runs}", file=sys.stderr)
    return [_row(case, index, figures) for index in range(len(figures))]


def _warm_up(case: Case, figures: Sequence[_Figures]) -> None:
    """Compare the results; watch the memory; the second round of small jobs lets the JVM compile them."""
    expected: Any = None
    for index, contestant in enumerate(case.contestants):
        with sampled_memory(with_jvm=contestant.uses_spark) as memory:
            result = contestant.run()
        figures[index].peak = memory.peak
        if contestant.check is not None:
            result = contestant.check()
        if index == 0:
            expected = result
        assert result == expected, f"{case.code} {case.title}: {contestant.name} gives another result than ours"
        if contestant.detail is not None:
            figures[index].detail = contestant.detail()
        for _ in range(contestant.jobs if contestant.jobs > 1 else 0):
            contestant.run()


def _measure_once(contestant: Contestant, bench: Bench, figures: _Figures) -> None:
    if not bench.quick:
        gc.collect()
        bench.spark._jvm.System.gc()
        settle()
    cpu, wall = cpu_seconds(with_jvm=contestant.uses_spark), time.perf_counter()
    for _ in range(contestant.jobs):
        contestant.run()
    figures.wall.append((time.perf_counter() - wall) / contestant.jobs)
    figures.cpu.append((cpu_seconds(with_jvm=contestant.uses_spark) - cpu) / contestant.jobs)


def _row(case: Case, index: int, figures: Sequence[_Figures]) -> tuple[str, ...]:
    own, contestant = figures[index], case.contestants[index]
    ratio = statistics.median(ours / max(theirs, _TICK) for ours, theirs in zip(figures[0].cpu, own.cpu, strict=True))
    met = None if contestant.goal is None else ratio <= contestant.goal
    if own.detail is not None and own.detail.met is not None:
        met = own.detail.met
    return (
        f"{case.code} {case.title}" if index == 0 else "",
        contestant.name,
        _seconds(own.cpu),
        _seconds(own.wall),
        f"{own.peak / 2**20:,.0f}",
        "" if index == 0 else f"{ratio:.2f}",
        "" if contestant.goal is None else f"{contestant.goal:g}",
        {None: "", True: "yes", False: "NO"}[met],
        "" if own.detail is None else own.detail.text,
    )


def _seconds(figures: Sequence[float]) -> str:
    """Write the median, with how far the runs lay apart."""
    middle, spread = statistics.median(figures), (max(figures) - min(figures)) / 2
    digits = 2 if middle >= 1 else 3 if middle >= 0.01 else 5
    return f"{middle:.{digits}f} ± {spread:.{digits}f}"


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Write the rows as one Markdown table whose columns line up."""
    lines = [_HEADINGS, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    written = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    written.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(written)
