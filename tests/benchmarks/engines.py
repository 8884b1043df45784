"""Compare the choice of the engine with both engines: `python -m tests.benchmarks.engines --sizes 10kB 1MB`.

30 plans run over data of several sizes in this process, on a Spark that runs already, and with `engine="auto"` on that
Spark. The table has the seconds of all three, and those that were estimated of the first two before any run. A choice
is WRONG if the other engine is quicker by more than a fifth, and SLOW if "auto" took longer than the better engine by
more than that. Each plan runs once before it is measured, so that "auto" knows what functions cost.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

import dstream as ds
import sources
from collectors import averaging, counting, grouping_by, max_by, summing, to_list
from dstream.engine.auto.cost_model import machine_scale
from dstream.engine.auto.engine import AutoEngine
from dstream.engine.auto.estimates import Machine, MeasuredCosts, PlanEstimate, estimated
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.inprocess import InProcessEngine
from dstream.plan.operations.ends import Several
from dstream.plan.walk import of_one_run

__all__ = ["PLANS", "main"]

_CORES = 2
_TOLERANCE = 1.2
_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}
_TICK = 0.002
"""Seconds that do not count."""
_ENOUGH = 20.0
"""Seconds of a plan after which larger sizes of it are left out."""


@dataclass(frozen=True)
class Data:
    """Data of one size in several formats, each made when a plan asks for it."""

    folder: Path
    size: int

    def path(self, name: str, content: Callable[[Path], object]) -> str:
        """Return the path of a file, which is written once."""
        path = self.folder / f"{self.size}-{name}"
        if not path.exists():
            content(path)
        return str(path)

    def text(self, ctx: ds.Context) -> Any:
        """Return the lines of a text."""
        return ctx.read(sources.text_files(self.path("text", self._write_text)))

    def csv(self, ctx: ds.Context) -> Any:
        """Return the rows of a CSV file."""
        return ctx.read(sources.csv_rows(self.path("csv", self._write_csv)))

    def json(self, ctx: ds.Context) -> Any:
        """Return the values of lines of JSON."""
        return ctx.read(sources.json_lines(self.path("json", self._write_json)))

    def parquet(self, ctx: ds.Context) -> Any:
        """Return the rows of a Parquet file."""
        return ctx.read(sources.parquet_rows(self.path("parquet", self._write_parquet)))

    def objects(self, ctx: ds.Context) -> Any:
        """Return tuples of this process."""
        return ctx.stream(self._objects)

    def numbers(self, ctx: ds.Context) -> Any:
        """Return whole numbers, of which a list would have the size."""
        return ctx.stream(range(self.size // 8))

    @cached_property
    def _objects(self) -> list[tuple[int, str]]:
        return [(number % 5_000, f"name {number}") for number in range(self.size // 20)]

    def _write_text(self, path: Path) -> None:
        lines = (f"line {number} has some words of {number % 977} kinds\n" for number in range(self.size // 36 + 1))
        path.write_text("".join(lines))

    def _rows(self, bytes_of_row: int) -> Iterable[dict[str, Any]]:
        count = self.size // bytes_of_row + 1
        return ({"a": number, "b": number * 0.5, "c": f"name{number % 100}"} for number in range(count))

    def _write_csv(self, path: Path) -> None:
        path.write_text("a,b,c\n" + "".join(f"{row['a']},{row['b']},{row['c']}\n" for row in self._rows(21)))

    def _write_json(self, path: Path) -> None:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in self._rows(42)))

    def _write_parquet(self, path: Path) -> None:
        pq.write_table(pa.Table.from_pylist(list(self._rows(10))), path, row_group_size=100_000)


def opaque(item: Any) -> Any:
    """Return the item, in a way that is no expression."""
    while True:
        return item


def slow(item: Any) -> Any:
    """Take 50 microseconds for an item."""
    end = time.perf_counter() + 50e-6
    while time.perf_counter() < end:
        pass
    return item


def number_in(line: str) -> int:
    """Return the number in a line of the text."""
    found = re.search(r"\d+", line)
    return int(found[0]) if found else 0


Plan = Callable[[Data, ds.Context], Any]

PLANS: dict[str, Plan] = {
    "text: count words": lambda data, ctx: (
        data.text(ctx).flat_map(lambda line: line.split()).collect(grouping_by(lambda word: word, counting()))
    ),
    "text: count some lines": lambda data, ctx: data.text(ctx).filter(lambda line: "99" in line).count(),
    "text: longest line": lambda data, ctx: data.text(ctx).collect(max_by(lambda line: len(line))),
    "text: parse by pattern": lambda data, ctx: data.text(ctx).map(number_in).collect(summing(lambda n: n)),
    "text: distinct words": lambda data, ctx: data.text(ctx).flat_map(lambda line: line.split()).distinct().count(),
    "text: first lines": lambda data, ctx: data.text(ctx).limit(10).to_list(),
    "text: first sorted": lambda data, ctx: data.text(ctx).sorted().limit(10).to_list(),
    "text: all lines": lambda data, ctx: len(data.text(ctx).map(opaque).to_list()),
    "csv: count some": lambda data, ctx: data.csv(ctx).filter(lambda row: row["c"] == "name1").count(),
    "csv: group": lambda data, ctx: data.csv(ctx).collect(grouping_by(lambda row: row["c"], counting())),
    "csv: sum": lambda data, ctx: data.csv(ctx).map(lambda row: int(row["a"])).collect(summing(lambda n: n)),
    "json: sum": lambda data, ctx: data.json(ctx).map(lambda row: row["a"]).collect(summing(lambda n: n)),
    "json: group": lambda data, ctx: data.json(ctx).collect(
        grouping_by(lambda row: row["c"], averaging(lambda row: row["b"]))
    ),
    "json: slow calls": lambda data, ctx: data.json(ctx).map(slow).count(),
    "parquet: sum": lambda data, ctx: data.parquet(ctx).collect(summing(lambda row: row["a"])),
    "parquet: some": lambda data, ctx: (
        data.parquet(ctx).filter(lambda row: row["c"] == "name1").collect(summing(lambda row: row["b"]))
    ),
    "parquet: group": lambda data, ctx: data.parquet(ctx).collect(
        grouping_by(lambda row: row["c"], summing(lambda row: row["a"]))
    ),
    "parquet: called": lambda data, ctx: data.parquet(ctx).map(opaque).count(),
    "parquet: first sorted": lambda data, ctx: data.parquet(ctx).sorted(key=lambda row: -row["a"]).limit(5).to_list(),
    "objects: called": lambda data, ctx: len(data.objects(ctx).map(opaque).to_list()),
    "objects: group": lambda data, ctx: data.objects(ctx).collect(grouping_by(lambda pair: pair[0], counting())),
    "objects: lists": lambda data, ctx: len(data.objects(ctx).collect(grouping_by(lambda pair: pair[0], to_list()))),
    "objects: sort": lambda data, ctx: len(data.objects(ctx).sorted(key=lambda pair: pair[1]).to_list()),
    "objects: distinct": lambda data, ctx: data.objects(ctx).map(lambda pair: pair[0]).distinct().count(),
    "objects: join": lambda data, ctx: (
        data.objects(ctx).join(data.objects(ctx), on=lambda pair: pair[1]).map(opaque).count()
    ),
    "objects: slow calls": lambda data, ctx: data.objects(ctx).map(slow).count(),
    "numbers: sum": lambda data, ctx: data.numbers(ctx).map(lambda n: n * n + 1).collect(summing(lambda n: n)),
    "numbers: group": lambda data, ctx: data.numbers(ctx).collect(grouping_by(lambda n: n % 1000, counting())),
    "numbers: called": lambda data, ctx: data.numbers(ctx).map(opaque).collect(summing(lambda n: n)),
    "numbers: sort": lambda data, ctx: len(data.numbers(ctx).map(lambda n: -n).sorted().to_list()),
}


@dataclass
class Recording(InProcessEngine):
    """An engine of this process that remembers the last plan."""

    plan: Any = field(default=None)

    def __init__(self) -> None:
        super().__init__(2**30)
        self.plan = None

    def submit(self, end: Any) -> Any:
        """Run the plan, and remember it."""
        self.plan = end
        return super().submit(end)


def main(arguments: list[str] | None = None) -> None:
    """Run all plans, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["1kB", "100kB", "1MB", "10MB"])
    parser.add_argument("--only", default="", help="plans with these words in their names")
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="dstream-engines-") as folder, contexts() as three:
        outcomes = [
            outcome
            for name, plan in PLANS.items()
            if given.only in name
            for outcome in _outcomes(
                name, plan, [Data(Path(folder), _bytes(size)) for size in given.sizes], three, given
            )
        ]
    right = sum(outcome.is_right for outcome in outcomes)
    quick = sum(outcome.is_quick for outcome in outcomes)
    print(f"\n{right} of {len(outcomes)} choices were right or within a fifth; {quick} took as long with their choice")


@dataclass(frozen=True)
class Three:
    """Contexts for the same plans.

    Attributes:
        here: runs all plans in this process.
        there: runs all plans on Spark.
        auto: chooses.
        engine: that of `here`.
    """

    here: ds.Context
    there: ds.Context
    auto: ds.Context
    engine: Recording


@contextmanager
def contexts() -> Iterator[Three]:
    """Give the contexts, with a Spark that runs."""
    master = f"local[{_CORES}]"
    with (
        ds.connect(engine="local", storage="memory:") as here,
        ds.connect(master) as there,
        ds.connect(master, engine="auto") as auto,
    ):
        engine = Recording()
        here._engine, here._engine_name = engine, InProcessEngine.name
        for context in (there, auto):
            assert context.spark is not None
            for _ in range(10):
                context.stream(range(1000)).parallel(2).map(opaque).distinct().count()
        yield Three(here, there, auto, engine)


def _bytes(size: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w+)", size).groups()  # type: ignore[union-attr]
    return int(number) * _UNITS[unit]


@dataclass(frozen=True)
class Outcome:
    """The seconds of one plan over data of one size: in this process, on Spark, and by the choice."""

    name: str
    size: int
    here: float
    there: float
    auto: float
    estimate: PlanEstimate
    reason: str

    @property
    def is_right(self) -> bool:
        """Whether the chosen engine is the better one, or about as good."""
        chosen = self.here if self.reason.startswith("runs in this process") else self.there
        return _is_about(chosen, min(self.here, self.there))

    @property
    def is_quick(self) -> bool:
        """Whether "auto", with its choice and its moves, took about as long as the better engine at most."""
        return _is_about(self.auto, min(self.here, self.there))


def _is_about(seconds: float, best: float) -> bool:
    return seconds <= _TOLERANCE * best + _TICK


def _outcomes(name: str, plan: Plan, all_data: list[Data], three: Three, given: argparse.Namespace) -> list[Outcome]:
    found = []
    for data in all_data:
        plan(data, three.here)
        estimate, engine = _estimate(three.engine), cast("AutoEngine", three.auto.running_engine())
        here, there, auto = _seconds(plan, data, (three.here, three.there, three.auto), given.times)
        reason = engine.placement(three.engine.plan).reason
        found.append(Outcome(name, data.size, here, there, auto, estimate, reason))
        print(_line(found[-1]), flush=True)
        if here + there > _ENOUGH:
            break
    return found


def _seconds(plan: Plan, data: Data, all_contexts: Sequence[ds.Context], times: int) -> list[float]:
    """Return the seconds of the quickest run in each context, which take turns: the machine may be busy for a while."""
    best = [float("inf")] * len(all_contexts)
    for number in range(times + 1):
        for place, context in enumerate(all_contexts):
            seconds = _once(plan, data, context)
            best[place] = min(best[place], seconds if number else float("inf"))
    return best


def _once(plan: Plan, data: Data, ctx: ds.Context) -> float:
    start = time.perf_counter()
    plan(data, ctx)
    return time.perf_counter() - start


def _estimate(engine: Recording) -> PlanEstimate:
    end = engine.plan
    assert not isinstance(end, Several), "plans have one end"
    graph, _ = compiled(of_one_run(end), ClusterFacts(_CORES, _CORES, 4 * 2**20))
    return estimated(graph, Machine(_CORES, machine_scale(), "running"), MeasuredCosts())


def _line(outcome: Outcome) -> str:
    estimate = outcome.estimate
    mark = ("" if outcome.is_right else "  WRONG") + ("" if outcome.is_quick else "  SLOW")
    return (
        f"{outcome.name:<24}{outcome.size:>12,} {outcome.here:>9.4f} {outcome.there:>9.4f} {outcome.auto:>9.4f} | "
        f"{estimate.seconds_here:>9.4f} {estimate.seconds_there:>9.4f} | {outcome.reason}{mark}"
    )


if __name__ == "__main__":
    main()
