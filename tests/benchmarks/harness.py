"""The harness: contestants, how a case measures them, and the table.

A case first checks that all contestants give the same result; that round warms them up, unmeasured
but for the memory. Then every round runs each contestant once, in an order that turns by one from
round to round. A ratio is the median over the rounds of *our CPU / their CPU of the same round*: on
a machine with other users that is steadier than the ratio of two medians.

There may be several ways to do the work with dstream. They have letters in the table, and each is
compared with each rival, which runs but once in a round.
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

__all__ = ["Bench", "Case", "Contestant", "Detail", "Row", "measure", "seconds", "table", "yes_or_no"]

Row = tuple[str, ...]
"""A row of the table: a cell for each of the headings."""

_HEADINGS = ("case", "contestant", "CPU s", "wall s", "peak MB", "ours / theirs", "goal", "met", "note")
_TICK = 1e-5
"""No figure is taken for smaller, so that a quick run, which measures little, divides by nothing."""


@dataclass(frozen=True)
class Bench:
    """What all cases run on: one JVM, one Python worker pool, and how much to do.

    Attributes:
        ctx: our context on Spark.
        local: our context on the local engine.
        inprocess: our context that runs each plan in this process, in columns where `connect()` does.
        spark: a session of the same Spark for the rivals, with Spark's own SQL settings.
        folder: where generated data are kept.
        quick: small data, to see that everything runs.
        scale: how many times as much data cases take that can.
    """

    ctx: ds.Context
    local: ds.Context
    inprocess: ds.Context
    spark: Any
    folder: Path
    quick: bool
    scale: int = 1

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
        warm_ups: how often it runs before it is measured, at least: the JVM compiles a query while that runs again.
        check: gives the result to compare, where `run` gives none; on less data, if it likes.
        detail: another thing to report.
    """

    name: str
    run: Callable[[], Any]
    goal: float | None = None
    jobs: int = 1
    uses_spark: bool = True
    warm_ups: int = 1
    check: Callable[[], Any] | None = None
    detail: Callable[[], Detail] | None = None


@dataclass(frozen=True)
class Case:
    """Our way to do some work, and its rivals.

    Attributes:
        also: other ways of ours to do the same.
    """

    code: str
    title: str
    ours: Contestant
    rivals: Sequence[Contestant]
    also: Sequence[Contestant] = ()

    @property
    def contestants(self) -> list[Contestant]:
        """Ours first."""
        return [self.ours, *self.also, *self.rivals]

    @property
    def letters(self) -> list[str]:
        """What our ways are called in the table; nothing if there is one."""
        return [""] if not self.also else [chr(ord("A") + number) for number in range(1 + len(self.also))]


@dataclass
class _Figures:
    """What was measured of one contestant, for one run of its work."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    peak: int = 0
    detail: Detail | None = None


def measure(case: Case, bench: Bench, runs: int) -> list[Row]:
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
    """Compare the results; watch the memory; let the JVM compile small jobs, and what says that it needs that."""
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
        for _ in range(contestant.jobs if contestant.jobs > 1 else contestant.warm_ups - 1):
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


def _row(case: Case, index: int, figures: Sequence[_Figures]) -> Row:
    own, contestant, ways = figures[index], case.contestants[index], len(case.letters)
    is_ours = index < ways
    ratios = [] if is_ours else [_ratio(figures[way], own) for way in range(ways)]
    met = [] if contestant.goal is None else [ratio <= contestant.goal for ratio in ratios]
    if own.detail is not None and own.detail.met is not None:
        met = [own.detail.met]
    return (
        f"{case.code} {case.title}" if index == 0 else "",
        f"{case.letters[index]} {contestant.name}".strip() if is_ours else contestant.name,
        seconds(own.cpu),
        seconds(own.wall),
        f"{own.peak / 2**20:,.0f}",
        _by_letter(case, [f"{ratio:.2f}" for ratio in ratios]),
        "" if contestant.goal is None else f"{contestant.goal:g}",
        _by_letter(case, list(map(yes_or_no, met))),
        "" if own.detail is None else own.detail.text,
    )


def _ratio(ours: _Figures, theirs: _Figures) -> float:
    return statistics.median(our / max(their, _TICK) for our, their in zip(ours.cpu, theirs.cpu, strict=True))


def _by_letter(case: Case, cells: Sequence[str]) -> str:
    """Write what belongs to each of our ways behind its letter."""
    if len(cells) != len(case.letters):
        return ", ".join(cells)
    return ", ".join(f"{letter} {cell}".strip() for letter, cell in zip(case.letters, cells, strict=True))


def yes_or_no(met: bool) -> str:
    """Write whether a goal is met."""
    return "yes" if met else "NO"


def seconds(figures: Sequence[float]) -> str:
    """Write the median, with how far the runs lay apart."""
    middle, spread = statistics.median(figures), (max(figures) - min(figures)) / 2
    digits = 2 if middle >= 1 else 3 if middle >= 0.01 else 5
    return f"{middle:.{digits}f} ± {spread:.{digits}f}"


def table(rows: Iterable[Row]) -> str:
    """Write the rows as one Markdown table whose columns line up."""
    lines = [_HEADINGS, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    written = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    written.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(written)
