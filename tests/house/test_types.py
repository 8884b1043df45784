"""Types, from the user's side: two checkers read `tests/typing`, which has a line for every public name and method."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import collectors
import dstream as ds
import reducers
import sources
from dstream import testing, values
from dstream.pipeline import (
    BatchStage,
    KeyedStage,
    KeyedStreamStage,
    KeyedWindowedStage,
    SinkStage,
    StreamStage,
    WindowedStage,
)
from dstream.stream import StreamBuilder

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "typing"
FILES = sorted(FOLDER.glob("*.py"))

FUNCTIONS = {
    name for module in (collectors, reducers, sources, testing, ds.gatherers) for name in module.__all__
} | set(ds.__all__)
CLASSES: list[type] = [
    ds.Stream,
    ds.IntStream,
    ds.LongStream,
    ds.DoubleStream,
    StreamBuilder,
    ds.Optional,
    ds.Entry,
    ds.JournalEvent,
    values.IntSummaryStatistics,
    values.DoubleSummaryStatistics,
    ds.Collector,
    ds.gatherers.Gatherer,
    ds.Context,
    ds.IStreamMap,
    ds.IStreamList,
    ds.IStreamCache,
    ds.IStreamSet,
    ds.IStreamCounter,
    ds.IStreamQueue,
    testing.Parts,
    ds.Pipeline,
    BatchStage,
    KeyedStage,
    SinkStage,
    StreamStage,
    KeyedStreamStage,
    WindowedStage,
    KeyedWindowedStage,
    ds.JoinClause,
    ds.Service,
]
NOT_FOR_USERS = {
    (ds.Context, "running_engine"),
    (ds.Context, "stages"),
    (ds.Context, "running_storage"),
    (ds.Context, "engine_here"),
    (ds.Context, "renew_engine"),
    (ds.Context, "check_open"),  # these six are what streams, collections, reducers and jobs ask a context for
    (ds.IStreamMap, "store"),
    (ds.IStreamList, "store"),
    (ds.IStreamCache, "store"),  # what sinks write into
    (ds.IStreamSet, "store"),
    (ds.IStreamCounter, "store"),
    (ds.IStreamQueue, "store"),
    (ds.IStreamSet, "source"),
    (ds.IStreamMap, "source"),
    (ds.IStreamList, "source"),
    (ds.IStreamCache, "source"),  # what streams read
    (ds.Collector, "result_of"),  # what engines ask an operation that cannot combine
    (ds.Collector, "in_columns"),
    (ds.Collector, "on_columns"),  # what engines ask that have the items of a block as columns
    (values.IntSummaryStatistics, "of"),  # what makes them of columns
    (ds.Entry, "count"),
    (ds.Entry, "index"),
    (ds.JournalEvent, "count"),
    (ds.JournalEvent, "index"),  # those of every tuple
}
METHODS = [
    (cls, name) for cls in CLASSES for name in dir(cls) if not name.startswith("_") and (cls, name) not in NOT_FOR_USERS
]


def used(tree: ast.Module) -> Iterator[str]:
    """Give the names that a file uses: `watch`, and `Stream.map` for a call on something annotated as a stream."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            kinds = {argument.arg: kind_of(argument.annotation) for argument in function.args.args}
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    yield f"{kinds.get(node.value.id, node.value.id)}.{node.attr}"
                elif isinstance(node, ast.Name):
                    yield node.id


def kind_of(annotation: Any) -> str:
    """Return the class of an annotation, without what it is a class of."""
    found = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return ast.unparse(found) if found is not None else ""


USED = {name for path in FILES for name in used(ast.parse(path.read_text()))}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_types_of_every_public_name_are_stated(name):
    """A function or class that is made public without a line in `tests/typing` fails here."""
    assert name in USED or f"ds.{name}" in USED


@pytest.mark.parametrize(("cls", "name"), METHODS, ids=[f"{cls.__name__}.{name}" for cls, name in METHODS])
def test_types_of_every_method_are_stated(cls, name):
    """So does a method or an attribute that no function there uses on an argument of its class."""
    assert f"{cls.__name__}.{name}" in USED


WRONG = "from typing import assert_type\nassert_type(1, str)\nx: int = 1  # type: ignore[assignment]\n"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What mypy says of `tests/typing` and of a file that is wrong: the lines about the one, and about the other."""
    wrong = tmp_path_factory.mktemp("types") / "wrong.py"
    wrong.write_text(WRONG)
    # What mypy has read of modules is kept with their byte code, if that is kept.
    known = Path(os.environ["PYTHONPYCACHEPREFIX"], "mypy") if "PYTHONPYCACHEPREFIX" in os.environ else os.devnull
    command = [sys.executable, "-m", "mypy", "--cache-dir", known, "--no-error-summary", FOLDER, wrong]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [*run.stdout.splitlines(), *run.stderr.splitlines()]
    of_wrong = [line for line in lines if "wrong.py:" in line]
    return [line for line in lines if line not in of_wrong], of_wrong


def test_types_hold_for_mypy(told):
    """`assert_type` holds, and what is marked as refused is refused, under `strict`."""
    assert told[0] == []


def test_types_that_are_wrong_are_seen(told):
    """The same run reports a type that does not hold, and an ignore that is not needed."""
    _, (wrong_type, unused) = told

    assert "[assert-type]" in wrong_type
    assert "[unused-ignore]" in unused


def test_types_hold_for_pyright(tmp_path):
    """The same for pyright, with the settings of the project file."""
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, FOLDER]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(run.stdout)

    assert found["summary"]["filesAnalyzed"] == len(FILES)
    assert found["generalDiagnostics"] == []
