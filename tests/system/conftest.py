"""Scripts that run in a process of their own: each starts, and ends, a Spark of its own.

Where the environment has `**java()`, it does so in the Java that programs share.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
LONGEST = 240

Script = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(**changes: str | None) -> dict[str, str]:
    """Return the environment of a script: without what steers Spark, with these changes; None takes a name out."""
    wanted: dict[str, str | None] = {
        **{name: value for name, value in os.environ.items() if not _steers(name)},
        "PYTHONPATH": str(REPOSITORY),
        **changes,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _steers(name: str) -> bool:
    """Say whether a variable steers Spark or dstream, and not only how fast Java starts."""
    return name.startswith(("SPARK_", "PYSPARK_", "DSTREAM_")) and name != "SPARK_SUBMIT_OPTS"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Script:
    """Run a text as a script with the interpreter of the tests, with other files beside it."""

    def run(
        text: str, *arguments: str, env: Mapping[str, str] | None = None, beside: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        folder = tmp_path_factory.mktemp("script")
        for name, content in {"script.py": text, **(beside or {})}.items():
            (folder / name).write_text(textwrap.dedent(content))
        command = [sys.executable, str(folder / "script.py"), *arguments]
        return subprocess.run(
            command, env=env or environment(), capture_output=True, text=True, timeout=LONGEST, check=False, cwd="/"
        )

    return run
