"""The library does without its short names: a user's files may be called `collectors`, `reducers` and `sources`."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("collectors", "reducers", "sources")

WORD_COUNT = """
import operator

import collectors
import dstream as ds
import reducers
from dstream.collectors import counting, grouping_by
from dstream.reducers import to_imap
from sources import words_of

with ds.connect(engine="local", storage="memory://") as ctx:
    words = ctx.read(ds.sources.text_files("words.txt")).flat_map(words_of)
    counts = words.collect(to_imap("counts", str.lower, lambda _: 1, operator.add))
    print(sorted(counts.copy().items()), words.collect(grouping_by(len, counting())), words.count())
print(collectors.OF_USER, reducers.OF_USER)
try:
    ds.to_imap
except AttributeError as error:
    print(error)
"""


@pytest.fixture
def folder(tmp_path):
    """A user's project with files of our short names beside the program."""
    (tmp_path / "sources.py").write_text("def words_of(line):\n    return line.split()\n")
    (tmp_path / "collectors").mkdir()
    (tmp_path / "collectors/__init__.py").write_text("OF_USER = 'collectors'\n")
    (tmp_path / "reducers.py").write_text("OF_USER = 'reducers'\n")
    (tmp_path / "words.txt").write_text("The whale\nthe sea\n")
    return tmp_path


def run(folder, *command):
    """Run Python in the folder of a user, without Java."""
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYTHONPATH")}
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**environment, "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_word_count_runs_beside_files_of_our_short_names(folder):
    """They cost the short names; `dstream.sources` and the others have the same objects."""
    (folder / "count.py").write_text(WORD_COUNT)

    assert run(folder, "count.py").splitlines() == [
        "[('sea', 1), ('the', 2), ('whale', 1)] {3: 3, 5: 1} 4",
        "collectors reducers",
        "module 'dstream' has no attribute 'to_imap'; it is in reducers: from reducers import to_imap",
    ]


def test_every_module_loads_beside_files_of_our_short_names(folder):
    """Also those that few programs load."""
    script = """
import importlib, pkgutil, dstream
found = [each.name for each in pkgutil.walk_packages(dstream.__path__, "dstream.") if "__main__" not in each.name]
for name in found:
    if not name.startswith(("dstream.docs", "dstream.testing.pytest_dstream")):
        importlib.import_module(name)
import collectors, reducers, sources
print(len(found) > 400, collectors.OF_USER, reducers.OF_USER, sources.words_of("a b"))
"""
    assert run(folder, "-c", script) == "True collectors reducers ['a', 'b']\n"


@pytest.mark.parametrize("name", NAMES)
def test_short_and_long_names_reach_the_same_objects(name):
    """Whichever of the two is imported first, and in pickles, too."""
    short, long = importlib.import_module(name), importlib.import_module(f"dstream.{name}")

    assert short.__all__ == long.__all__
    assert dir(short) == dir(long)
    assert short.__doc__ == long.__doc__
    assert all(getattr(short, each) is getattr(long, each) for each in short.__all__)
    assert all(pickle.loads(pickle.dumps(getattr(long, each))) is getattr(short, each) for each in short.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_a_short_name_contains_no_code(name):
    """An inner module is loaded under one name; under two it would be two modules with classes of their own."""
    assert {path.name for path in (ROOT / name).iterdir()} - {"__pycache__"} == {"__init__.py", "py.typed"}
