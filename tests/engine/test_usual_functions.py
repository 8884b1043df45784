"""Functions as data engineers write them run in columns, with the results of plain Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.benchmarks.usual_functions import FURTHER, counted


def test_most_usual_functions_run_in_columns(tmp_path: Path) -> None:
    """`python -m tests.benchmarks.usual_functions` names the others, and why they do not."""
    routes = Counter(each.route for each in counted(tmp_path))

    assert routes.total() == 150
    assert routes["columns"] >= 125
    assert routes["columns"] + routes["inlined"] >= 150


def test_most_further_functions_run_in_columns(tmp_path: Path) -> None:
    """`python -m tests.benchmarks.usual_functions further` names the others."""
    routes = Counter(each.route for each in counted(tmp_path, file=FURTHER))

    assert routes["columns"] >= 72
    assert routes["called"] <= 23
