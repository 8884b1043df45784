"""Runs of pytest in a process of their own, with the plug-in as an installed package gives it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with what an installation adds to the search path: the plug-in and its entry point."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [(name, module)] = project["project"]["entry-points"]["pytest11"].items()
    [(source, target)] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].items()
    folder = tmp_path / "installed"
    metadata = folder / "dstream_kit-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dstream-kit\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{name}_in_tests = {module}\n")
    (folder / target).write_bytes((ROOT / source).read_bytes())
    return folder


@pytest.fixture
def run_pytest(tmp_path: Path, installed: Path) -> Run:
    """Run pytest on a text, in a folder of its own, outside of this repository."""

    def run(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_text.py").write_text(textwrap.dedent(text))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, *arguments]
        known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SPARK", "DSTR"))}
        path = os.pathsep.join([str(installed), str(ROOT)])
        environment = {**known, "PYTHONPATH": path, **environment}
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
