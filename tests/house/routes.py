"""How Spark evaluates the functions on the pages and in the samples: `python -m tests.house.routes`.

Pages and samples run as their tests run them, most of them on the local engine. Each plan that they submit is drawn as
Spark with two cores would run it. What the drawing says of the functions of a call counts once for the place of the
call, however often its plan runs. Calls without functions, and those of processors and sinks, have no route.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from dstream.engine.explaining.spark_stages import stages
from dstream.engine.local.local_engine import LocalEngine
from dstream.engine.memory_bound import DEFAULT_BROADCAST
from dstream.engine.spark.spark_engine import SparkEngine
from dstream.plan import nothing_kept
from dstream.plan.stages import Call, Stages
from tests.house.conftest import ROOT, Page, script_of
from tests.house.test_docs import PAGES

__all__ = ["main", "routes_of"]

_ROUTE = re.compile(r"(?:^|[;:] )(columns|inlined|Python)(?=$|:| if | or |;)(?:: ([^;]*))?")
_REASONS = 12
_SECONDS = 90.0
"""Longer than any of them takes that needs no server."""


def routes_of(note: str) -> list[tuple[str, str]]:
    """Return the routes that the note of a call has, and the reason of each that stays Python."""
    return [(match[1], match[2] or "") for match in _ROUTE.finditer(note)]


def main() -> None:
    """Print a table of all routes, and the most frequent reasons for which functions are called."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    silent = []
    with tempfile.TemporaryDirectory() as folder:
        for name, script in _scripts(Path(folder)):
            calls = _recorded(script, Path(folder))
            silent += [] if calls is not None else [name]
            for place, label, note in calls or []:
                for number, route in enumerate(routes_of(note)):
                    found.setdefault((f"{name}:{place}", f"{label} {number}"), route)
    _print(list(found.values()), silent)


def _print(routes: list[tuple[str, str]], silent: Iterable[str]) -> None:
    counts = Counter(name for name, _ in routes)
    print("| route | functions | share |\n|---|---|---|")
    for name in ("columns", "inlined", "Python"):
        print(f"| {name} | {counts[name]:,} | {counts[name] / max(1, len(routes)):.0%} |")
    print("\n| why it is called for each item | functions |\n|---|---|")
    for reason, count in Counter(_general(reason) for name, reason in routes if name == "Python").most_common(_REASONS):
        print(f"| {reason} | {count} |")
    print("\nWithout a plan that ran: " + (", ".join(silent) or "none"))


def _general(reason: str) -> str:
    """Return a reason without the name that only one function has."""
    return re.sub(r"^calls .*", "calls a function that is not read", reason)


def _scripts(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in PAGES:
        if blocks := Page(ROOT / path).python():
            script = folder / f"{path.replace('/', '_')}.py"
            script.write_text(script_of(blocks), encoding="utf-8")
            yield path, script
    for sample in sorted((ROOT / "docs" / "samples").glob("*.py")):
        yield f"docs/samples/{sample.name}", sample


def _recorded(script: Path, folder: Path) -> list[list[Any]] | None:
    """Run a script in an empty folder; return its calls with their places and notes, None if it submitted no plan."""
    with tempfile.TemporaryDirectory(dir=folder) as empty:
        record = Path(empty) / "record.json"
        command = [sys.executable, "-m", "tests.house.routes", str(script), str(record)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DSTREAM_MASTER": "local[1]"}
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, cwd=empty, env=environment, capture_output=True, timeout=_SECONDS, check=False)
        found: list[list[Any]] | None = json.loads(record.read_text("utf-8")) if record.exists() else None
        return found or None


def _record(script: str, record: str) -> None:
    """Run a script in this process, and write down what drawings of its plans say."""
    calls: dict[tuple[str, str, str], None] = {}
    for engine in (LocalEngine, SparkEngine):
        _watch(engine, calls)
    sys.argv = [script]
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        Path(record).write_text(json.dumps(list(calls)), encoding="utf-8")


def _watch(engine: Any, calls: dict[tuple[str, str, str], None]) -> None:
    run = engine._run

    def watched(self: Any, plan: Any, *arguments: Any) -> Any:
        with suppress(Exception):  # What Spark does not run has no routes there.
            drawn = stages(plan, 2, DEFAULT_BROADCAST, nothing_kept)
            calls.update(
                ((str(call.where), call.label, call.note), None) for call in _calls_of(drawn) if call.where is not None
            )
        return run(self, plan, *arguments)

    engine._run = watched


def _calls_of(drawn: Stages) -> Iterator[Call]:
    yield drawn.end
    for stage in drawn.stages:
        yield from stage.calls


if __name__ == "__main__":
    main() if len(sys.argv) == 1 else _record(*sys.argv[1:])
