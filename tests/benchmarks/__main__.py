"""Measure all cases, or those that are named, and print one table: `python -m tests.benchmarks B2 --runs 7`.

The cases and their goals are in `docs/reference/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

import dstream as ds
from tests.benchmarks import (
    columns,
    event_lines,
    everyday,
    files_in,
    files_out,
    graphs,
    grouping,
    growth,
    indexes,
    iterating,
    joining,
    kafka,
    keeping,
    keys,
    living,
    memory,
    narrow,
    pipelines,
    short_circuit,
    small_jobs,
    sorting,
    start,
    storage,
    unbounded,
    usual,
    windows,
    word_count,
)
from tests.benchmarks.harness import Bench, Case, Row, measure, table
from tests.benchmarks.process_tree import check_accounts, check_worker_accounts

__all__ = ["main"]

Rows = Callable[[Bench, int], list[Row]]
"""Measures so many runs and returns what the table says of them."""


def _compared(cases: Callable[[Bench], list[Case]]) -> Rows:
    """Return what measures contestants beside each other."""
    return lambda bench, runs: [row for case in cases(bench) for row in measure(case, bench, runs)]


_CASES: dict[str, tuple[str, Rows]] = {
    "B1": ("narrow", _compared(narrow.cases)),
    "B2": ("wordcount", _compared(word_count.cases)),
    "B3": ("grouping", _compared(grouping.cases)),
    "B4": ("sort", _compared(sorting.cases)),
    "B5": ("join", _compared(joining.cases)),
    "B6": ("shortcircuit", _compared(short_circuit.cases)),
    "B7": ("smalljobs", _compared(small_jobs.cases)),
    "B8": ("windows", _compared(windows.cases)),
    "B9": ("iterate", _compared(iterating.cases)),
    "B10": ("storage", _compared(storage.cases)),
    "B11": ("growth", growth.rows),
    "B12": ("start", _compared(start.cases)),
    "B13": ("keys", _compared(keys.cases)),
    "B14": ("columns", _compared(columns.cases)),
    "E4": ("filesin", _compared(files_in.cases)),
    "E6": ("indexes", _compared(indexes.cases)),
    "C1": ("graphs", _compared(graphs.graphs_of_processors)),
    "P1": ("tfidf", _compared(pipelines.tf_idf)),
    "P2": ("forks", _compared(pipelines.forks)),
    "P3": ("cogroup", _compared(pipelines.co_groups)),
    "P4": ("smallpipelines", _compared(pipelines.small_pipelines)),
    "E1": ("reducebykey", _compared(everyday.reductions_by_key)),
    "E2": ("zip", _compared(everyday.zips)),
    "E3": ("semijoin", _compared(everyday.semi_joins)),
    "E5": ("filesout", _compared(files_out.cases)),
    "K1": ("kafka", kafka.rows),
    "U1": ("tumbling", _compared(unbounded.tumbling_counts)),
    "U2": ("sliding", _compared(unbounded.sliding_averages)),
    "U3": ("sessions", _compared(unbounded.session_counts)),
    "U4": ("latency", living.lateness),
    "U5": ("idle", living.idleness),
    "U6": ("recovery", keeping.recovery),
    "U7": ("beyondmemory", keeping.beyond_memory),
    "U8": ("eventlines", _compared(event_lines.cases)),
    "memory": ("memory", memory.rows),
    **{code: (code.lower(), _compared(usual.cases(code))) for code in usual.CODES},
}
_CONFIG = {"spark.driver.memory": "4g", "spark.python.daemon.module": "tests.benchmarks.worker_daemon"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks."""
    options = _options(arguments)
    measured, true = check_accounts()
    if abs(measured - true) > 0.1:
        raise SystemExit(f"the CPU accounts are off: {measured:.2f} s measured, {true:.2f} s burnt")
    folder = Path(tempfile.gettempdir()) / "dstream-benchmarks"
    folder.mkdir(exist_ok=True)
    rows: list[Row] = []
    with (
        ds.connect(options.master, config=_CONFIG, class_archive=False) as ctx,
        ds.connect(engine="local") as local,
        ds.connect(local_limit=math.inf) as inprocess,
    ):
        bench = Bench(ctx, local, inprocess, _session_of_rivals(ctx), folder, options.quick, options.scale)
        for code in options.cases:
            rows += _CASES[code][1](bench, options.runs)
        least, worker = check_worker_accounts(ctx)
        if worker < least:
            raise SystemExit(f"the CPU accounts lose workers: {worker:.2f} s measured, {least:.2f} s burnt in one")
    print(table(rows))
    print(f"\n{_machine()}\nmedian of {options.runs} interleaved runs")
    print(f"CPU accounts checked: {measured:.2f} of {true:.2f} s")


def _session_of_rivals(ctx: ds.Context) -> Any:
    """Return a session of the same Spark where every SQL setting that our context chose is Spark's own again."""
    session = ctx.spark.newSession()
    for name, _ in session.sparkContext.getConf().getAll():
        if name.startswith("spark.sql.") and session.conf.isModifiable(name):
            session.conf.unset(name)
    return session


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", type=_case, help=f"of {', '.join(_CASES)}; all of them by default")
    parser.add_argument("--runs", type=int, default=5, help="how often each contestant is measured")
    parser.add_argument("--quick", action="store_true", help="little data, to see that everything runs")
    parser.add_argument("--scale", type=int, default=1, help="how many times as much data; of W1 to W10")
    parser.add_argument("--master", default="local[2]", help="the Spark master")
    options = parser.parse_args(arguments)
    options.cases = options.cases or list(_CASES)
    return options


def _case(text: str) -> str:
    """Return the code of a case that was given by its code or its name."""
    wanted = text.removeprefix("CASE=").lower()
    for code, (name, _) in _CASES.items():
        if wanted in (code.lower(), name):
            return code
    raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(_CASES)}")


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pyarrow", "dask", "pyfunctional"))
    memory = psutil.virtual_memory().total / 2**30
    return f"Python {platform.python_version()}, {packages}; {os.cpu_count()} cores, {memory:.0f} GB"


if __name__ == "__main__":
    main()
