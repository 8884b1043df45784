"""Tracebacks: what a user sees are lines of their own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import traceback

import py4j
import pyspark
import pytest

import collectors
import dstream
import reducers
import sources
from collectors import grouping_by
from dstream.errors import EngineError
from reducers import to_imap

PACKAGES = (dstream, collectors, reducers, sources, pyspark, py4j)
OURS = (*(os.path.dirname(package.__file__) + os.sep for package in PACKAGES), contextlib.__file__, "<dstream fused")


def inverse(n):
    """Fail on 0."""
    return 1 // n


def parse(text):
    """Fail in a library."""
    return json.loads(text)


RUNS = {
    "to_list": lambda s: s.map(inverse).to_list(),
    "count": lambda s: s.map(inverse).count(),
    "collect": lambda s: s.collect(grouping_by(inverse)),
    "reducer": lambda s: s.collect(to_imap("m", inverse, str)),
    "iterate": lambda s: list(s.map(inverse)),
    "partitions": lambda s: [list(items) for items in s.map(inverse).partitions()],
    "any_match": lambda s: s.any_match(inverse),
    "find_first": lambda s: s.map(inverse).find_first(),
    "for_each": lambda s: s.for_each(inverse),
    "for_each_partition": lambda s: s.for_each_partition(lambda items: list(map(inverse, items))),
    "min": lambda s: s.min(inverse),
    "average": lambda s: s.map_to_int(inverse).average(),
}


def files(error):
    """Return the files that a traceback of `error` and of what it came from shows."""
    chain = []
    while error is not None:
        chain.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [frame.filename for each in chain for frame in traceback.extract_tb(each.__traceback__)]


@pytest.mark.on_spark("operation")
@pytest.mark.parametrize("operation", RUNS)
def test_a_traceback_shows_the_users_lines(engine, operation):
    """And no more of dstream than the method that was called."""
    with pytest.raises(ZeroDivisionError) as caught:
        RUNS[operation](engine.stream([0], 2))

    shown = files(caught.value)
    assert shown.count(__file__) == len(shown) - sum(file.startswith(OURS) for file in shown)
    assert sum(file.startswith(OURS) for file in shown) <= 1
    assert engine.name == "spark" or shown[-1] == __file__


def test_frames_that_the_users_function_called_stay(local_context):
    """A library below it says why it failed."""
    with pytest.raises(json.JSONDecodeError) as caught:
        local_context.stream(["{"]).map(parse).to_list()

    assert files(caught.value)[-1].endswith("decoder.py")


def test_the_whole_traceback_is_there_when_asked_for(engine, monkeypatch):
    """`DSTREAM_TRACEBACK=full` brings back every frame, and Spark's own exception."""
    monkeypatch.setenv("DSTREAM_TRACEBACK", "full")
    with pytest.raises(ZeroDivisionError) as caught:
        engine.stream([0], 2).map(inverse).to_list()

    assert any(file.startswith(os.path.join(OURS[0], "engine")) for file in files(caught.value))
    assert engine.name == "local" or "PythonException" in type(caught.value.__cause__).__name__


def test_an_error_of_spark_has_no_chain(spark_context):
    """Its text stands in the failure."""
    with pytest.raises(EngineError) as caught:
        spark_context.stream([0], 1).map(lambda n: __import__("os")._exit(3)).to_list()

    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len(caught.value.__notes__) == 3


STREAM = """
import dstream as ds


def inverse(n):
    return 1 // n


def test_inverse():
    with ds.connect(engine="local") as ctx:
        numbers = ctx.stream([0]).map(inverse)
        try:
            numbers.to_list()
        except ZeroDivisionError as error:
            print(ds.failure(error))
            raise
"""


FOLDERS = ("sources/tests", "queue", "site-packages/mine", "dstream/checks", "ü b")


def test_the_users_code_may_stand_in_any_folder(tmp_path):
    """Also where pytest names its module like one of ours, or Python's: its own lines are told."""
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "test_mine.py").write_text(STREAM)
    (tmp_path / "conftest.py").write_text("import dstream\n")
    home = os.path.dirname(os.path.dirname(dstream.__file__))
    command = [sys.executable, "-m", "pytest", "-q", "--tb=native", "--import-mode=importlib", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": home, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("CI", None)  # There pytest says everything twice.
    shown = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    assert shown.count("inverse raised ZeroDivisionError") == 2 * len(FOLDERS), shown
    assert [shown.count(f'{folder}/test_mine.py", line') for folder in FOLDERS] == [2] * len(FOLDERS)
