"""The versions of Spark: one module knows them, and the project, the page and the messages say the same."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from dstream.engine import versions
from dstream.engine.spark.session import launch
from dstream.engine.versions import LOWEST, OLDEST, TOO_NEW, Feature, check_connect, check_version
from dstream.errors import SetupError

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs" / "spark-versions.md").read_text()


def version_questions(path: Path) -> set[str]:
    """Return by which names a file asks for the version of PySpark."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("pyspark.version", "pyspark.loose")):
            found.add(str(node.module))
        if isinstance(node, ast.Attribute) and node.attr in {"__version__", "since", "LooseVersion"}:
            found.add(node.attr)
    return found


def test_one_module_compares_versions_of_spark():
    """The others ask it whether Spark has a part."""
    spark = [*(ROOT / "dstream" / "engine").rglob("*.py"), *(ROOT / "dstream" / "session").rglob("*.py")]
    asking = {path.name for path in spark if version_questions(path)}

    assert asking == {"versions.py"}


def test_the_project_declares_the_range():
    """With the pandas and the pyarrow of the oldest Spark; the newest one is that of the tests."""
    declared = PROJECT["dependencies"]

    assert declared[:3] == ["pyspark>=3.5,<4.4", "pandas>=1.5.3,<3", "pyarrow>=14"]
    assert declared[0] == versions.REQUIREMENT
    assert "pyspark[connect]>=4.1,<4.4" in PROJECT["optional-dependencies"]["connect"]
    assert "pyspark>=4.3,<4.4" in PROJECT["optional-dependencies"]["smoke"]
    assert (min(LOWEST), max(LOWEST)) == (OLDEST, (TOO_NEW[0], TOO_NEW[1] - 1))


def test_the_page_has_the_table_of_the_versions():
    """Parts that each of them lacks, and packages that it needs."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:2] == "| "]
    lacking = [[part.part, ".".join(map(str, part.since)), part.replacement] for part in Feature]
    lowest = {
        ".".join(map(str, spark)): [".".join(map(str, n)) for n in needs.values()] for spark, needs in LOWEST.items()
    }

    assert [row for row in rows if row in lacking] == lacking
    assert {row[0]: row[1:3] for row in rows if re.fullmatch(r"[34]\.\d", row[0])} == lowest


@pytest.mark.parametrize("found", ["3.4.4", "2.4.8", "4.4.0", "5.0.0.dev1"])
def test_another_spark_is_refused_before_anything_starts(monkeypatch, found):
    """With the range, and the line for pip."""
    monkeypatch.setattr(versions, "version", lambda: found)

    with pytest.raises(
        SetupError, match=rf"PySpark {found} .* dstream runs on 3.5 to 4.3: pip install 'pyspark>=3.5,<4.4'"
    ):
        launch.check_machine("local[1]", {})


def test_packages_that_are_too_old_for_a_spark_are_refused(monkeypatch):
    """PySpark would say so in the middle of the first job."""
    monkeypatch.setattr(metadata, "version", lambda _: "2.1.4")
    monkeypatch.setattr(versions, "version", lambda: "4.1.0")

    with pytest.raises(SetupError, match=r"pandas 2\.1\.4 .*PySpark 4\.1\.0.*pip install 'pandas>=2\.2,<3'"):
        check_version()


def test_a_python_without_distutils_is_refused_by_3_5(monkeypatch):
    """It imports `distutils`, which left Python with 3.12."""
    monkeypatch.setattr(versions, "version", lambda: "3.5.9")
    monkeypatch.setattr(versions.importlib.util, "find_spec", lambda _: None)

    with pytest.raises(SetupError, match=r"imports distutils.*Python 3\.11 or PySpark 4\.0, or pip install setuptools"):
        check_version()


def test_a_server_of_another_version_is_refused(monkeypatch):
    """Its version counts, and that of PySpark here."""
    check_connect("4.1.2")
    with pytest.raises(SetupError, match=r"Spark Connect of 4\.1 to 4\.3, and the server is 4\.0\.1"):
        check_connect("4.0.1")
    monkeypatch.setattr(versions, "version", lambda: "4.0.5")
    with pytest.raises(SetupError, match=r"Spark Connect of 4\.1 to 4\.3, and PySpark is 4\.0\.5"):
        check_connect()
