"""A stage of a job on a worker: its input, its operations and its sink.

The classes of this module are pickled in the driver and loaded by each task; nothing in this module uses the plan.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from dstream.base.memory import give_back_large_blocks, holding
from dstream.base.records import record
from dstream.engine.tasks.frames import rows_of_frame, values_of_frame
from dstream.engine.tasks.process import NO_RUN, RunOfTask, SentFiles, leave_all, tables_of_run
from dstream.engine.tasks.rows import (
    LARGEST,
    ExpectedRows,
    Row,
    Storing,
    bounded,
    counting_sent,
    from_record_batches,
    rows_of_failure,
    rows_of_watermarks,
    to_record_batch,
    whole,
)
from dstream.engine.tasks.runtime import StageTask
from dstream.failures import naming
from dstream.failures.transport import raise_to_driver
from dstream.keys.hashing import hash_without_seed
from dstream.operators.rows.batches import loads
from dstream.operators.rows.blocks import one_after_another
from dstream.operators.rows.guards import HandlerOfMisread, items_of
from dstream.operators.rows.operations import Operation, Task, operated
from dstream.plan.operations.streams import ItemsOfTable
from dstream.plan.steps import Guard, Step
from dstream.schema.tables import fitted, unpacked_batches
from dstream.spi import Split
from dstream.values.attachments import using_files

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FrameInput",
    "Piece",
    "RowsInput",
    "ShippedInput",
    "Sink",
    "SplitInput",
    "Stage",
    "TableInput",
    "read_columns",
    "read_tables",
    "rows_of_task",
    "run",
    "search_path",
]


Sink = Callable[[Iterator[Any], StageTask], Iterator[Row]]


class Input(Protocol):
    """The input of a stage."""

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        """Yield each task that this Spark task runs, with its items."""
        ...


@record(slots=False)
class Piece:
    """A part of a source and the operations on it; or several such parts, one after another.

    Attributes:
        split: the pickled split, or, in the caller's process, a split that contains items; None if there are `parts`.
        step: the source, as messages name it.
        guards: what happens to bad records of the source.
    """

    split: bytes | Split[Any] | None
    parts: tuple[Piece, ...]
    operations: tuple[Operation, ...]
    step: Step | None
    guards: tuple[Guard, ...] = ()

    def open(self, task: Task) -> Iterator[Any]:
        """Yield the items."""
        if self.split is None:
            items: Iterator[Any] = one_after_another(part.open(task) for part in self.parts)
        else:
            misread = HandlerOfMisread(self.guards, task) if self.guards else None
            items = items_of(self._split(self.split), self.step, misread, may_be_columns=True)
        return operated(self.operations, items, task)

    def size(self) -> int:
        """Return the bytes of its splits."""
        own = len(self.split) if isinstance(self.split, bytes) else 0
        return own + sum(part.size() for part in self.parts)

    def _split(self, split: bytes | Split[Any]) -> Split[Any]:
        if not isinstance(split, bytes):
            return split
        with naming(self.step):
            loaded: Split[Any] = loads(split)
            return loaded


@record(slots=False)
class SplitInput:
    """Reads pieces of sources: for the row with the id `i`, `pieces[i]`."""

    pieces: tuple[Piece, ...]
    first_partition: int

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(self.pieces)

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                task = StageTask(self.first_partition + index, task_memory)
                yield task, self.pieces[index].open(task)


@record(slots=False)
class ShippedInput:
    """An input of pieces that are too large to be sent with every task: each row contains its number and its piece."""

    first_partition: int

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        for batch in batches:
            for index, data in zip(batch.column("target").to_pylist(), batch.column("payload"), strict=True):
                task = StageTask(self.first_partition + index, task_memory)
                piece: Piece = loads(data.as_buffer())
                yield task, piece.open(task)


@record(slots=False)
class TableInput:
    """Reads the rows of a DataFrame: as `pyspark.sql.Row`, or as objects made of them.

    Attributes:
        schema: the schema of the DataFrame, a `pyspark.sql.types.StructType`; the incoming columns have other names.
        made: converts rows to items.
        step: how the DataFrame names itself.
    """

    schema: Any
    made: ItemsOfTable | None
    step: Step | None

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "a stage runs inside a Spark task"
        yield StageTask(context.partitionId(), task_memory), self._items(batches)

    def _items(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        with naming(self.step):
            if self.made is None:
                for batch in batches:
                    yield from rows_of_frame(batch, self.schema)
            else:
                yield from self.made.made(values_of_frame(batch, self.schema) for batch in batches)


Reader = Callable[[Iterator[Row]], Iterator[Any]]


@record(slots=False)
class FrameInput:
    """Reads the rows that an earlier stage wrote.

    Attributes:
        sent: the rows to expect from the shuffle before; None: they are not counted.
    """

    reader: Reader
    operations: tuple[Operation, ...]
    first_partition: int
    sent: ExpectedRows | None = None

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "a stage runs inside a Spark task"
        task = StageTask(self.first_partition + context.partitionId(), task_memory)
        rows = task.reading(from_record_batches(batches), self.sent)
        yield task, operated(self.operations, self.reader(rows), task)


@record(slots=False)
class RowsInput:
    """Reads rows that an earlier job has brought to the driver: for the row with the id `i`, `rows[i]`.

    Attributes:
        rows: the rows of each task, in their order.
        sent: the rows to expect; None: they are not counted.
    """

    rows: tuple[tuple[Row, ...], ...]
    reader: Reader
    operations: tuple[Operation, ...]
    first_partition: int
    sent: ExpectedRows | None = None

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(self.rows)

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                task = StageTask(self.first_partition + index, task_memory)
                rows = task.reading(map(whole, self.rows[index]), self.sent)
                yield task, operated(self.operations, self.reader(rows), task)


@record(slots=False)
class Stage:
    """The work of one `mapInArrow`.

    Attributes:
        hands_failures_on: an exception is a row that ends every task that reads it, and is raised in the driver: Spark
            runs no task again for it. Otherwise the task fails.
        counts_rows: each task reports the number of rows that it has sent to each target.
        storing: stores large payloads of rows that the driver forwards; None: all rows are sent with their payloads.
        largest: the largest number of bytes of pickled items in a row.
        step: the call that the rows belong to.
        hashes_without_seed: keys are routed to the same targets in all processes, whatever their hash seeds.
    """

    input: Input
    sink: Sink
    worker_memory: int
    run: RunOfTask = NO_RUN
    hands_failures_on: bool = False
    counts_rows: bool = False
    storing: Storing | None = None
    largest: int = LARGEST
    step: Step | None = None
    hashes_without_seed: bool = False


def run(
    pickled: bytes,
    path: tuple[str, ...],
    batches: Iterator[pa.RecordBatch],
    secret: bytes,
    sent: SentFiles | None = None,
) -> Iterator[pa.RecordBatch]:
    """Run a pickled stage over one Spark partition; the user's exceptions travel to the driver whole.

    Args:
        pickled: the stage.
        path: where the driver finds modules.
        batches: the input.
        secret: by which the driver verifies the failures that its tasks report.
        sent: the files that are sent with the job of the stage.
    """
    _extend_search_path(path)
    with using_files(None if sent is None else sent.arrived()):
        yield from _run(pickled, batches, secret)


def _run(pickled: bytes, batches: Iterator[pa.RecordBatch], secret: bytes) -> Iterator[pa.RecordBatch]:
    stage: Stage | None = None
    try:
        stage = _loaded(pickled)
        hash_without_seed(stage.hashes_without_seed)
        for task, items in stage.input.open(batches, stage.worker_memory):
            task.run, task.secret, task.reads_all = stage.run, secret, stage.hands_failures_on
            with task.ending():
                rows = rows_of_task(stage.sink, items, task)
                # Counted first, since storing changes the channel; bounded last, since a stored payload skips Java.
                rows = counting_sent(rows, task.partition, stage.sink) if stage.counts_rows else rows
                rows = rows if stage.storing is None else stage.storing.stored(rows)
                yield from map(to_record_batch, bounded(rows, stage.largest, stage.step))
    except (Exception, SystemExit) as error:  # A function of the user's may call `sys.exit`.
        # A stage that cannot be loaded fails the task: the targets of a row are unknown.
        if stage is not None and stage.hands_failures_on:
            yield from map(to_record_batch, rows_of_failure(error, stage.sink, secret))
            deque(batches, maxlen=0)  # PySpark (4.3) ends a process that has not read all of its input.
            return
        leave_all()  # PySpark (4.3) ends a process whose task has failed.
        raise_to_driver(error, secret)


def _loaded(pickled: bytes) -> Stage:
    stage: Stage = loads(pickled)
    _keep_from_garbage_collection()
    give_back_large_blocks()
    tables_of_run(stage.run.name)
    return stage


def rows_of_task(sink: Sink, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
    """Yield the rows of a task, with side rows, followed by control rows."""
    for row in sink(items, task):
        # Before the row, so that a reader that stops at the row has received what was seen of the items up to it.
        yield from task.side_rows()
        yield row
    if task.reads_all:
        deque(items, maxlen=0)
    # The counts of sent rows are last, and a writer may have stopped before them.
    if task.reads_all or task.counts_rows:
        task.read_rest()
    yield from task.last_side_rows()
    yield from rows_of_watermarks(task.watermarks, task.partition, sink)


def read_tables(
    splits: Sequence[bytes], path: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the Arrow batches of the splits whose numbers arrive, unchanged.

    Spark requests them for the user, and shows the message of an exception unchanged.
    """
    _extend_search_path(path)
    for batch in batches:
        for index in batch.column(0).to_pylist():
            yield from loads(splits[index]).read_arrow()


def read_columns(
    schema: pa.Schema, path: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the Arrow batches that rows carry, in the columns of `schema`."""
    _extend_search_path(path)
    for row in from_record_batches(batches):
        yield from (fitted(batch, schema) for batch in unpacked_batches(row.payload))


@functools.cache
def _keep_from_garbage_collection() -> None:
    """Take all modules that are loaded by now out of the sight of the garbage collector, once for each worker.

    PySpark (4.3) runs a full collection after each task of a worker, which would look at all of them again: 35 ms.
    """
    from pyspark import TaskContext

    if TaskContext.get() is not None:  # A test may run a stage in its own process.
        gc.freeze()
        holding.allow()


def search_path() -> tuple[str, ...]:
    """Return this process's search path of modules, for workers, which look there last."""
    return tuple(os.path.abspath(entry) for entry in sys.path)


def _extend_search_path(path: Iterable[str]) -> None:
    """Append the driver's search path to this worker's, so that it finds the user's modules."""
    known = set(sys.path)
    sys.path.extend(entry for entry in path if entry not in known)
