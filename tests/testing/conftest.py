"""Runs of pytest in a process of their own, with the plug-in that the installed project gives it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_pytest(tmp_path: Path) -> Run:
    """Run pytest on a text, in a folder of its own, outside of this repository."""

    def run(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_text.py").write_text(textwrap.dedent(text))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, *arguments]
        known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DSTREAM_"))}
        environment = {**known, "PYTHONPATH": str(ROOT), **environment}
        return subprocess.run(
            [*command, "test_text.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    return run
