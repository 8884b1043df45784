"""Stages of an epoch: what stands behind their items, and exceptions that are rows. Plain functions, no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from dstream.base.pickling import dumps
from dstream.engine.tasks.rows import (
    FAILED,
    ITEMS,
    WATERMARKS,
    Row,
    from_record_batches,
    rows_of_failure,
    rows_of_watermarks,
)
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import RouteByPlace, WriteItems
from dstream.engine.tasks.stage import Piece, SplitInput, Stage, run
from dstream.failures.transport import SECRET, WorkerFailure, from_worker
from dstream.operators.rows.batches import dumps_items, loads
from dstream.operators.rows.operations import Watermarks

OF_ONE = {("clock", ("events", "0")): 5}


class Split(list[Any]):
    """A list that can be read as a split."""

    def read(self) -> Iterator[Any]:
        return iter(self)


def knowing(items: Iterator[Any], task: Any) -> Iterator[Any]:
    """Read a partition to its end, and know its watermark then."""
    yield from items
    task.watermarks.take(OF_ONE)


def failing(items: Iterator[Any], task: Any) -> Iterator[Any]:
    """Fail on the second item."""
    yield next(items)
    raise ValueError("no second item")


def rows(operation: Any, sink: Any, hands_failures_on: bool = True) -> list[Row]:
    """Return the rows of a stage over one partition."""
    piece = Piece(dumps_items(Split(["a", "b"])), (), (operation,), None)
    stage = Stage(SplitInput((piece,), 0), sink, 2**60, hands_failures_on=hands_failures_on)
    return list(from_record_batches(run(dumps(stage), (), iter([pa.RecordBatch.from_pydict({"id": [0]})]), SECRET)))


def test_watermarks_stand_behind_the_items() -> None:
    """The task that has read a partition tells the next one."""
    *before, last = rows(knowing, WriteItems())

    assert [row.channel for row in before] == [ITEMS]
    assert (last.channel, last.size, loads(last.payload)) == (WATERMARKS, 0, OF_ONE)


def test_watermarks_go_to_every_target() -> None:
    """Whoever has an item has them, and whoever has none."""
    known = Watermarks()
    known.take(OF_ONE)
    told = list(rows_of_watermarks(known, 3, RouteByPlace(4, 3)))

    assert [(row.target, row.source, loads(row.payload)) for row in told] == [(n, 3, OF_ONE) for n in range(3)]
    assert list(rows_of_watermarks(Watermarks(), 3, WriteItems())) == []


def test_a_partition_in_parts_is_where_the_last_part_is() -> None:
    """Of two watermarks of one partition, the lower counts; other stages do not."""
    known = Watermarks()
    for watermark in (7, 5, 6):
        known.take({("clock", ("events", "0")): watermark, ("other", ("events", "0")): 1})

    assert known.least({"clock"}) == 5


def test_an_exception_is_a_row() -> None:
    """Spark sees a task that has ended well, and runs it no second time."""
    *_, last = rows(failing, WriteItems())
    raised = from_worker(bytes(last.payload).decode(), SECRET)

    assert last.channel == FAILED
    assert isinstance(raised, ValueError)
    assert str(raised) == "no second item"


def test_an_exception_fails_the_task_elsewhere() -> None:
    """Where much is computed, Spark cancels the rest of it."""
    with pytest.raises(WorkerFailure):
        rows(failing, WriteItems(), hands_failures_on=False)


def read_by_a_task(count: int) -> StageTask:
    """Return a task that has read some rows that a failed task wrote, and wants no more."""
    failed = rows_of_failure(ValueError("gone"), WriteItems(), SECRET)
    task = StageTask(0, 2**60)
    reading = task.reading(iter([Row(0, 0, 0, ITEMS, 1, dumps_items(["a"])), *failed]))
    for _ in range(count):
        next(reading)
    return task


def test_a_failure_is_found_behind_what_was_wanted() -> None:
    """A task that stops early, as a writer may, does not end well."""
    with pytest.raises(WorkerFailure):
        read_by_a_task(1).read_rest()


def test_a_failure_that_was_caught_is_raised_again() -> None:
    """A function of the user's that catches whatever it meets does not hide it."""
    task = read_by_a_task(0)
    with pytest.raises(WorkerFailure):
        task.read_rest()
    with pytest.raises(WorkerFailure):
        task.read_rest()
