"""A stage as a worker runs it: what its tasks open is closed."""

from __future__ import annotations

import functools
from pathlib import Path

import pyarrow as pa
import pytest

from dstream.base.pickling import dumps
from dstream.engine.tasks.sinks import WriteItems
from dstream.engine.tasks.stage import Piece, SplitInput, Stage, run
from dstream.failures.transport import SECRET, WorkerFailure
from dstream.operators.rows.batches import dumps_items


class Items(list):
    """A list that can be read as a split."""

    def read(self):
        return iter(self)


def closing(file, fails, items, task):
    """Leave a file when the task ends."""
    task.at_end(Path(file).touch)
    yield from items
    if fails:
        raise ValueError("late")


def rows(file, fails=False):
    """Run a stage over one partition of many batches."""
    piece = Piece(dumps_items(Items(range(1000))), (), (functools.partial(closing, str(file), fails),), None)
    stage = dumps(Stage(SplitInput((piece,), 0), WriteItems(), 2**60))
    return run(stage, (), iter([pa.RecordBatch.from_pydict({"id": [0]})]), SECRET)


def test_a_task_that_ends_closes_what_it_opened(tmp_path):
    """At its end, not before."""
    running = rows(tmp_path / "closed")
    next(running)
    assert not list(tmp_path.iterdir())

    assert len(list(running)) > 1
    assert list(tmp_path.iterdir())


def test_a_task_that_is_left_closes_what_it_opened(tmp_path):
    """Spark wants no more rows."""
    running = rows(tmp_path / "closed")
    next(running)
    running.close()

    assert list(tmp_path.iterdir())


def test_a_task_that_fails_closes_what_it_opened(tmp_path):
    """Whatever comes of the failure."""
    with pytest.raises(WorkerFailure):
        list(rows(tmp_path / "closed", fails=True))

    assert list(tmp_path.iterdir())
