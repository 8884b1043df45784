"""Measure our own contestants in two checkouts, in turns: `python -m tests.benchmarks.before ../before B2 B4 --runs 3`.

Each checkout has a program with a Spark of its own, which takes what it measures from the benchmarks of that checkout.
The programs live side by side; in every round each of them runs a contestant once while the other one is idle. A ratio
is the median over the rounds of *CPU here / CPU there in the same round*. Both run with the packages of this
environment. Contestants that one of the two does not have are left out, and named.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from hashlib import sha1
from pathlib import Path
from typing import Any

import dstream as ds
from tests.benchmarks.harness import Bench, Contestant, seconds
from tests.benchmarks.process_tree import cpu_seconds, settle
from tests.benchmarks.separate import Program, answering, started

__all__ = ["main"]

_CASES = {
    "B1": "narrow.cases",
    "B2": "word_count.cases",
    "B3": "grouping.cases",
    "B4": "sorting.cases",
    "B5": "joining.cases",
    "B6": "short_circuit.cases",
    "B7": "small_jobs.cases",
    "B8": "windows.cases",
    "B9": "iterating.cases",
    "B10": "storage.cases",
    "B12": "start.cases",
    "B13": "keys.cases",
    "B14": "columns.cases",
    "C1": "graphs.graphs_of_processors",
    "E1": "everyday.reductions_by_key",
    "E2": "everyday.zips",
    "E3": "everyday.semi_joins",
    "E4": "files_in.cases",
    "E5": "files_out.cases",
    "E6": "indexes.cases",
    "P1": "pipelines.tf_idf",
    "P2": "pipelines.forks",
    "P3": "pipelines.co_groups",
    "P4": "pipelines.small_pipelines",
    "U1": "unbounded.tumbling_counts",
    "U2": "unbounded.sliding_averages",
    "U3": "unbounded.session_counts",
}
"""The function of the benchmarks that makes the contestants of a case."""
_HERE = Path(__file__).parents[2]
_CONFIG = {"spark.driver.memory": "4g", "spark.python.daemon.module": "tests.benchmarks.worker_daemon"}
_WITHIN = 1.05


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask both programs for each case, and print one table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.before", description=__doc__)
    parser.add_argument("before", type=Path, help="the checkout to compare with")
    parser.add_argument("cases", nargs="*", choices=[*_CASES, []], help="all of them by default")
    parser.add_argument("--runs", type=int, default=3, help="how often each contestant is measured")
    parser.add_argument("--quick", action="store_true", help="little data, to see that everything runs")
    options = parser.parse_args(arguments)
    print("| case | contestant | CPU s before | CPU s now | now / before | spread | within 5 % |\n" + "|---" * 7 + "|")
    for code in options.cases or _CASES:
        with ExitStack() as stack:
            roots = (options.before.resolve(), _HERE)
            programs = [stack.enter_context(_measuring(root, code, options.quick)) for root in roots]
            _compare(code, programs, options.runs)


def _measuring(root: Path, code: str, quick: bool) -> Any:
    # What one checkout stores, the other one may refuse to read: each has files of its own.
    files = Path(tempfile.gettempdir()) / "dstream-benchmarks-of" / sha1(bytes(root)).hexdigest()[:8]
    return started("before", "--answering", root, code, int(quick), root=root, files=files)


def _compare(code: str, programs: Sequence[Program], runs: int) -> None:
    """Print a line for each contestant that both have."""
    before, now = (program.ask("names") for program in programs)
    for name in [name for name in [*before, *now] if (name in before) != (name in now)]:
        print(f"{code} {name}: only {'before' if name in before else 'now'}", file=sys.stderr)
    for name in filter(before.__contains__, now):
        indices = (before.index(name), now.index(name))
        figures: tuple[list[float], list[float]] = ([], [])
        for program, index in zip(programs, indices, strict=True):
            program.ask("warm", index)
        for number in range(runs):
            for turn in (0, 1) if number % 2 else (1, 0):
                figures[turn].append(programs[turn].ask("run", indices[turn]))
        print(_line(f"{code} {name}", *figures), flush=True)


def _line(name: str, before: Sequence[float], now: Sequence[float]) -> str:
    ratios = [one / max(other, 1e-5) for one, other in zip(now, before, strict=True)]
    ratio = statistics.median(ratios)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    met = "yes" if ratio <= _WITHIN else "NO"
    return f"| {name} | {seconds(before)} | {seconds(now)} | {ratio:.2f} | {spread} | {met} |"


def _contestants(bench: Bench, code: str) -> Iterator[tuple[str, Contestant]]:
    """Give ours of each case, by the case and its own name."""
    module, _, function = _CASES[code].partition(".")
    for case in getattr(importlib.import_module(f"tests.benchmarks.{module}"), function)(bench):
        for contestant in (case.ours, *case.also):
            yield f"{case.title} | {contestant.name}", contestant


def _answer(bench: Bench, contestants: dict[str, Contestant], words: Sequence[str]) -> Any:
    if words[0] == "names":
        return list(contestants)
    contestant = list(contestants.values())[int(words[1])]
    return _warm_up(contestant) if words[0] == "warm" else _run(bench, contestant)


def _warm_up(contestant: Contestant) -> None:
    for _ in range(max(2, contestant.jobs)):
        contestant.run()


def _run(bench: Bench, contestant: Contestant) -> float:
    """Return the CPU seconds of one run of a contestant."""
    if not bench.quick:
        gc.collect()
        bench.spark._jvm.System.gc()
        settle()
    cpu, until = cpu_seconds(with_jvm=contestant.uses_spark), time.perf_counter() + (0 if bench.quick else 0.5)
    runs = 0
    while runs < contestant.jobs or time.perf_counter() < until:
        contestant.run()
        runs += 1
    return (cpu_seconds(with_jvm=contestant.uses_spark) - cpu) / runs


def _serve(root: str, code: str, quick: str) -> None:
    """Be one of the two programs."""
    assert Path(ds.__file__).is_relative_to(root), f"the package comes from {ds.__file__}"
    folder = Path(tempfile.gettempdir()) / "dstream-benchmarks"
    folder.mkdir(exist_ok=True)
    with (
        ds.connect("local[2]", config=_CONFIG, progress=False) as ctx,
        ds.connect(engine="local", progress=False) as local,
        ds.connect(local_limit=math.inf, progress=False) as inprocess,
    ):
        bench = Bench(ctx, local, inprocess, ctx.spark, folder, quick == "1")
        answering(partial(_answer, bench, dict(_contestants(bench, code))))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answering"]:
        _serve(*sys.argv[2:])
    else:
        main()
