"""The page on what became of the machinery of Jet and Gearpump has each piece, and names only what there is."""

from __future__ import annotations

import inspect
import re
import zipfile
from pathlib import Path

import pyspark
import pytest

import dstream as ds
import dstream.core
import dstream.errors
import dstream.windows
import reducers
import sources
from dstream.jobs import Job
from dstream.pipeline import KeyedStreamStage, StreamStage

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "execution.md").read_text()
ROWS = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in PAGE.splitlines() if line[:2] == "| "]
PIECES = [row for row in ROWS if len(row) == 5 and row[0] not in {"Jet", "Gearpump"}]
CODE = re.compile(r"`([^`]+)`")
SETTINGS = sorted({code for row in PIECES for code in CODE.findall(row[3])})
SHOWN = sorted({code for row in PIECES for code in CODE.findall(row[4])})
NAMED = sorted({code for row in PIECES for cell in row[1:3] for code in CODE.findall(cell)})

JET = """
    cooperative tasklets stealing single-producer back-pressure window snapshots barriers alignment split-brain
"""
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
}
TAKING = {
    "EdgeConfig": dstream.core.EdgeConfig,
    "connect": ds.connect,
    "JobConfig": ds.JobConfig,
    "add_timestamps": StreamStage.add_timestamps,
    "distinct": KeyedStreamStage.distinct,
    "insert_watermarks": dstream.core.processors.insert_watermarks,
    "kafka": sources.kafka,
    "map_stateful": StreamStage.map_stateful,
    "priority": dstream.core.Edge.priority,
    "socket_lines": sources.socket_lines,
    "window": StreamStage.window,
}
"""What the page says to take a setting."""


@pytest.fixture(scope="module")
def texts_of_spark():
    """The constants of Spark's classes, in which its settings stand."""
    classes = []
    for jar in Path(pyspark.__file__).parent.glob("jars/spark-*.jar"):
        if re.match(r"spark-(core|network-common|sql-api|catalyst)_", jar.name):
            with zipfile.ZipFile(jar) as held:
                classes += [held.read(name) for name in held.namelist() if re.search(r"[cC]onf.*\.class$", name)]
    return b"".join(classes)


def test_docs_execution_has_every_piece():
    """Those of Jet by a word of each, those of Gearpump by the numbers of the reference."""
    of_jet = " ".join(row[0].lower() for row in PIECES if not row[0][0].isdigit())

    assert [piece for piece in JET.split() if piece not in of_jet] == []
    assert [int(row[0].split()[0]) for row in PIECES if row[0][0].isdigit()] == list(range(1, 29))


def test_docs_execution_says_who_does_it_and_shows_it():
    """Each piece has a part of Spark's or of ours, and a test."""
    assert [row[0] for row in PIECES if not (row[1] or row[2]) or not CODE.search(row[4])] == []


def test_docs_execution_says_what_tunes_it():
    """Each piece has a setting, and each setting stands in code, so that the next tests see it."""
    without = [row[0] for row in PIECES if not row[3] or CODE.sub("", row[3]).strip(" ,")]

    assert without == []


@pytest.mark.parametrize("setting", SETTINGS)
def test_docs_execution_names_settings_that_exist(setting, texts_of_spark):
    """An argument of ours, or a setting that Spark reads."""
    if setting.startswith("spark."):
        assert len(setting).to_bytes(2) + setting.encode() in texts_of_spark  # So a class file writes a text.
    else:
        of, argument = re.fullmatch(r"(\w+)\((\w+)=\)", setting).groups()
        assert argument in inspect.signature(TAKING[of]).parameters


@pytest.mark.parametrize("shown", SHOWN)
def test_docs_execution_names_tests_that_exist(shown):
    """Somewhere below `tests/`."""
    assert shown in TESTS


@pytest.mark.parametrize("name", NAMED)
def test_docs_execution_names_what_exists(name):
    """A member of a job, a public name, an argument, an option of a command, or a file."""
    word = re.match(r"(?:--)?[\w.]+", name)[0]
    of, _, member = word.partition(".")
    if of == "job":
        assert hasattr(Job, member)
    elif name.startswith("docs/") or name.endswith(".py"):
        assert (ROOT / name).exists() or (ROOT / "docs" / "samples" / name).exists()
    elif name.endswith("="):
        assert any(word in inspect.signature(taking).parameters for taking in TAKING.values())
    else:
        homes = (ds, ds.errors, ds.spi, dstream.windows, reducers, sources, KeyedStreamStage)
        known = {"--supervise", "dstream", "spark"}
        assert word in known or any(hasattr(home, word) for home in homes)
