"""B12: how long it takes until something is there: the package, the first result, the words of the doctor.

Each run is a process of its own, with its byte code written before, as an installation does. What counts is the time on
the clock of the best run, since whoever types a command waits for that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.harness import Bench, Case, Contestant, Detail

__all__ = ["cases"]

_ROOT = Path(__file__).parents[2]
_FIRST = "import dstream as ds; print(ds.connect(engine='local').stream([1, 2, 3]).map(lambda n: n * n).to_list())"
_SPARK = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
print(spark.range(2).count())
"""


def cases(bench: Bench) -> list[Case]:
    """Return a case for each of the three."""
    runs = bench.size(10, 1)
    nothing = _process(bench, "-c", "pass")
    return [
        Case(
            "B12",
            "start, import dstream",
            _contestant("dstream", _process(bench, "-c", "import dstream"), runs, seconds=0.15),
            [
                _contestant("nothing, python -c pass", nothing, runs),
                _contestant("import pyspark.sql", _process(bench, "-c", "import pyspark.sql"), runs),
            ],
        ),
        Case(
            "B12",
            "start, first result on the local engine",
            _contestant("dstream", _process(bench, "-c", _FIRST), runs, seconds=0.3),
            [
                _contestant("nothing, python -c pass", nothing, runs),
                _contestant("import pandas", _process(bench, "-c", "import pandas"), runs),
            ],
        ),
        Case(
            "B12",
            "start, dstream doctor",
            _contestant("dstream", _process(bench, "-m", "dstream", "doctor"), 1, seconds=10),
            [_contestant("a session and a count, plain PySpark", _process(bench, "-c", _SPARK), 1)],
        ),
    ]


def _contestant(name: str, run: Callable[[], bool], runs: int, seconds: float | None = None) -> Contestant:
    """Return a contestant whose best time on the clock is told, and judged if `seconds` are given."""

    def best() -> Detail:
        times = []
        for _ in range(runs):
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
        met = None if seconds is None else min(times) <= seconds
        goal = "" if seconds is None else f", goal {seconds:g} s"
        return Detail(f"best of {runs}: {min(times):.3f} s{goal}", met)

    return Contestant(name, run, jobs=runs, uses_spark=False, detail=best)


def _process(bench: Bench, *arguments: str) -> Callable[[], bool]:
    """Return what runs Python with these arguments, and says that it ended well."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    byte_code = str(bench.folder / "byte-code")
    environment = {**kept, "PYTHONPATH": str(_ROOT), "PYTHONPYCACHEPREFIX": byte_code, "DSTREAM_MASTER": "local[2]"}

    def run() -> bool:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, cwd=bench.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{arguments} failed: {done.stdout}{done.stderr}")
        return True

    return run
