"""Functions as data engineers write them run in columns, with the results of plain Python."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.usual_functions import counted


def test_arithmetic_on_fields_runs_in_columns(tmp_path: Path) -> None:
    """Of dataclasses, dictionaries and ranges; what reads a CSV file makes its items one by one."""
    found = list(counted(tmp_path, only=frozenset({"arithmetic"})))

    assert {each.items for each in found if each.route == "columns"} == {"sales", "rows", "numbers"}
    assert sum(each.route == "columns" for each in found) >= 10
