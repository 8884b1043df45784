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
_FIRST_ON_SPARK = """
import dstream as ds
with ds.connect(engine="spark", storage="memory:", progress=False) as ctx:
    print(ctx.stream([1, 2, 3]).map(lambda n: n * n).to_list(), flush=True)
"""
_LONGEST_MAKING = 600
_SPARK = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
print(spark.range(2).count(), flush=True)
"""


def cases(bench: Bench) -> list[Case]:
    """Return a case for each of the four."""
    runs = bench.size(10, 1)
    spark_runs = bench.size(3, 1)
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
            "start, first result on Spark",
            _until_result("dstream, with an archive of classes", bench, _FIRST_ON_SPARK, spark_runs, seconds=3.0),
            [
                _until_result("dstream without it", bench, _FIRST_ON_SPARK, spark_runs, DSTREAM_CLASS_ARCHIVE="0"),
                _until_result("a session and a count, plain PySpark", bench, _SPARK, spark_runs),
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


def _until_result(
    name: str, bench: Bench, script: str, runs: int, seconds: float | None = None, **changes: str
) -> Contestant:
    """Return a contestant whose best time until its first line is told; the archive is made before it is measured.

    CPU of Java is not counted: nobody awaits it, so the kernel forgets it with the process.
    """
    environment = {**_environment(bench), **changes}

    def run() -> bool:
        _until_line(script, environment)
        if seconds is not None and not bench.quick:
            _wait_for_archive(Path(environment["XDG_CACHE_HOME"]) / "dstream" / "classes")
        return True

    def best() -> Detail:
        times = [_until_line(script, environment) for _ in range(runs)]
        met = None if seconds is None else min(times) <= seconds
        goal = "" if seconds is None else f", goal {seconds:g} s"
        return Detail(f"first line, best of {runs}: {min(times):.2f} s{goal}", met)

    return Contestant(name, run, uses_spark=False, detail=best)


def _until_line(script: str, environment: dict[str, str]) -> float:
    """Run a script; return how many seconds it took until its first line was there."""
    started = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        taken = time.perf_counter() - started
    if process.returncode or not line:
        raise RuntimeError("a program that starts Spark failed")
    return taken


def _wait_for_archive(folder: Path) -> None:
    """Wait until the archive of classes is made that a program has begun as it ended."""
    until = time.monotonic() + _LONGEST_MAKING
    while not any(folder.glob("*.jsa")) and time.monotonic() < until:
        time.sleep(1)


def _environment(bench: Bench) -> dict[str, str]:
    """Return the environment of programs that are measured, with byte code and an archive of classes of their own."""
    left_out = ("PYTHONDONTWRITEBYTECODE", "SPARK_SUBMIT_OPTS")
    return {
        **{name: value for name, value in os.environ.items() if name not in left_out},
        "PYTHONPATH": str(_ROOT),
        "PYTHONPYCACHEPREFIX": str(bench.folder / "byte-code"),
        "XDG_CACHE_HOME": str(bench.folder / "caches"),
        "DSTREAM_CLASS_ARCHIVE": "0" if bench.quick else "1",
        "DSTREAM_MASTER": "local[2]",
    }


def _process(bench: Bench, *arguments: str) -> Callable[[], bool]:
    """Return what runs Python with these arguments, and says that it ended well."""
    environment = _environment(bench)

    def run() -> bool:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, cwd=bench.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{arguments} failed: {done.stdout}{done.stderr}")
        return True

    return run
