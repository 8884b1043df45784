"""`python -m tests.house.functions_read`: which functions of the documentation are read, and why the others are not.

The code of each page and the samples that need no argument run here, each in a process of its own, with every function
of a step noted that tasks would call for each item.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.house.conftest import Page, script_of

ROOT = Path(__file__).parents[2]
NOTED = "DSTREAM_FUNCTIONS_NOTED"
_ARGUMENTS = {"wordcount.py": ["*.txt"], "pipeline_words.py": ["*.txt"], "tf_idf.py": ["*.txt"]}


def main() -> None:
    """Print the table."""
    routes = Counter(route for found in map(functions_of, scripts()) for route in found.values())
    print(f"{routes.total()} functions")
    for route, count in routes.most_common():
        print(f"{count:5} {count / routes.total():6.1%} {route}")


def scripts() -> Iterator[tuple[str, list[str], str]]:
    """Give the text of each script, its arguments, and its name."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        blocks = [] if path.parent.name == "decisions" else Page(path).python()
        if blocks:
            yield script_of(blocks), [], str(path.relative_to(ROOT))
    for path in sorted((ROOT / "docs" / "samples").glob("*.py")):
        yield path.read_text("utf-8"), _ARGUMENTS.get(path.name, []), str(path.relative_to(ROOT))


def functions_of(script: tuple[str, list[str], str]) -> dict[str, str]:
    """Run a script; return the route of each function, by its place."""
    text, arguments, name = script
    with tempfile.TemporaryDirectory() as folder:
        path, noted = Path(folder) / "page.py", Path(folder) / "noted.json"
        path.write_text(text, encoding="utf-8")
        (Path(folder) / "sea.txt").write_text("The whale and the sea.\n")
        command = [sys.executable, "-m", "tests.house.functions_read", str(path), *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), NOTED: str(noted)}
        if name.startswith("docs/samples/"):  # A page says itself what runs where; a master would be a choice of Spark.
            environment["DSTREAM_MASTER"] = "local[1]"
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return dict(json.loads(noted.read_text())) if noted.exists() else {}


def _run(path: str) -> None:
    """Run a script in this process as its user would, and note what its steps call."""
    from dstream.plan import rewrite

    module: Any = sys.modules[rewrite.__module__]
    made, routes = module.Op, {}

    def noting(*values: Any) -> Any:
        op = made(*values)
        found = _route(op)
        if found is not None:
            routes[f"{op.step.where or op.step.label} {op.step.label}"] = found
        return op

    module.Op = noting
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        Path(os.environ[NOTED]).write_text(json.dumps(routes))


def _route(op: Any) -> str | None:
    from dstream.engine.compiler.evaluation import read_step
    from dstream.expressions.reader import Unreadable

    found = read_step(op)
    return None if found is None else found.reason if isinstance(found, Unreadable) else "read"


if __name__ == "__main__":
    if NOTED in os.environ:
        sys.argv = sys.argv[1:]
        _run(sys.argv[0])
    else:
        main()
