"""Notebooks that run headless, each cell in a real kernel of this interpreter."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

REPOSITORY = Path(__file__).parents[2]
LONGEST = 240

Notebook = Callable[..., list[list[Any]]]


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Run cells one after another and return the outputs of each; errors are outputs too."""
    kernel = tmp_path / "jupyter" / "kernels" / "under-test"
    kernel.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(
        json.dumps({"argv": command, "display_name": "under test", "language": "python"})
    )
    for name, folder in {
        "JUPYTER_PATH": "jupyter",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "config",
    }.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    steering = {name for name in os.environ if name.startswith(("DSTREAM_", "SPARK_", "PYSPARK_"))}
    for name in steering - {"SPARK_SUBMIT_OPTS"}:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")

    def run(*cells: str) -> list[list[Any]]:
        page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        client = NotebookClient(
            page,
            timeout=LONGEST,
            startup_timeout=LONGEST,
            kernel_name="under-test",
            allow_errors=True,
            resources={"metadata": {"path": tmp_path}},
        )
        client.execute()
        nbformat.write(page, tmp_path / "executed.ipynb")
        return [cell.outputs for cell in page.cells]

    return run
