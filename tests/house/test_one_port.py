"""The engine asks Spark through one port: nothing else knows what only one kind of session has."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_ONE_KIND = {"sparkContext", "_jsc", "_jvm", "_jdf", "_sc", "rdd", "_jsparkSession", "_gateway"}
ROOMS = ("dstream/engine/spark/port/", "dstream/engine/spark/session/")


def of_one_kind(path: Path) -> set[str]:
    """Return the attributes and modules in a file that only one kind of session has."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in OF_ONE_KIND:
            found.add(node.attr)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("pyspark.sql.connect", "py4j")):
            found.add(str(node.module))
    return found


def test_only_the_port_and_the_start_of_spark_know_the_kind_of_a_session():
    """With the exception that says that Java is gone."""
    modules = {str(path.relative_to(ROOT)): of_one_kind(path) for path in (ROOT / "dstream").rglob("*.py")}
    knowing = {name: found for name, found in modules.items() if found and not name.startswith(ROOMS)}

    assert knowing == {}
    assert {room for name, found in modules.items() for room in ROOMS if found and name.startswith(room)} == set(ROOMS)
