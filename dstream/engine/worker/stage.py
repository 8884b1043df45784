"""A stage as it runs on a worker: open the input, run the operations, feed the sink.

Everything here is pickled in the driver and loaded by each task; nothing here knows the plan.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Protocol

from dstream.engine.kernels.arrow_columns import fitted, unpacked_batches
from dstream.engine.kernels.core_operations import Operation, Task, operated
from dstream.engine.kernels.guards import HandlerOfMisread
from dstream.engine.kernels.item_batches import Batcher, dumps_items, loads
from dstream.engine.kernels.made_services import MadeServices, closing
from dstream.engine.kernels.reading import items_of
from dstream.engine.kernels.watermarks import Watermarks
from dstream.engine.memory_bound import Bound, give_back_large_blocks, holding
from dstream.engine.worker.behind_items import rows_of_failure, rows_of_watermarks
from dstream.engine.worker.exception_transport import WorkerFailure, raise_to_driver
from dstream.engine.worker.rows import FAILED, ITEMS, WATERMARKS, Row, from_record_batches, to_record_batch
from dstream.engine.worker.shared_services import NO_RUN, RunOfTask, SharedServices, leave_all, shared_services
from dstream.engine.worker.side_channels import SideRows
from dstream.engine.worker.tables_of_process import tables_of_run
from dstream.failures import naming
from dstream.memory import UNSEEN, Growth, small_lists
from dstream.plan.core_of_services import Served
from dstream.plan.steps import Guard, Op, Step
from dstream.spi import Split

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FrameInput",
    "Piece",
    "ShippedInput",
    "Sink",
    "SplitInput",
    "Stage",
    "StageTask",
    "TableInput",
    "read_columns",
    "read_tables",
    "run",
]


_BEFORE_ITEMS = -(2**62)
"""The first `sequence` of rows beside items: a shuffle brings them before the items of their task, so that whoever
reads no further than some item has had what was seen and noted of those before it."""


class StageTask:
    """One task of a stage.

    Attributes:
        partition: its number among all partitions of the stage's output, in encounter order.
        bound: how much memory its operations may hold.
        run: the run of a plan that it belongs to.
        watermarks: those that it knows.
        reads_all: also what a writer leaves is read.
    """

    def __init__(self, partition: int, worker_memory: int) -> None:
        self.partition = partition
        self.bound = Bound(worker_memory)
        self.run = NO_RUN
        self.watermarks = Watermarks()
        self.reads_all = False
        self._services = MadeServices()
        self._shared: SharedServices | None = None
        self._ending = ExitStack()
        self._side_rows = SideRows()
        self._peeked: dict[int, list[Any]] = {}
        self._counters: list[tuple[int, count[int]]] = []
        self._peek_sequence = _BEFORE_ITEMS
        self._batcher = Batcher()
        self._growth = Growth()
        self._rows: Iterator[Row] = iter(())
        self._failure: str | None = None

    def peeking(self, op: Op) -> Callable[[Any], object]:
        """Return a function that keeps an item for the driver, which runs the action of the step."""
        return self._keeping(op.step.position)

    def counting(self, op: Op) -> Callable[[Any], object]:
        """Return a function that counts its calls for the driver, in C code."""
        counter = count()
        self._counters.append((op.step.position, counter))
        return functools.partial(next, counter)

    def noting(self, guard: Guard) -> Callable[[Any], object]:
        """Return a function that keeps a note for the driver."""
        return self._keeping(guard.channel)

    def _keeping(self, channel: int) -> Callable[[Any], object]:
        seen, most = self._peeked.setdefault(channel, []), 1

        def keep(item: Any) -> None:
            nonlocal most
            seen.append(item)
            if len(seen) >= most:
                most = self._fewer(channel)

        return keep

    def _fewer(self, channel: int) -> int:
        """Write what a channel holds, if that is enough; say how many items it may hold until this is asked again."""
        held = self._peeked[channel]
        self._batcher.begin(held)
        if len(held) >= self._batcher.count or self._growth.exceeded():
            self._flush(channel)
        return min(self._batcher.count, len(held) + UNSEEN)

    def at_end(self, close: Callable[[], object]) -> None:
        """Call `close` when the task ends, however it ends."""
        self._ending.push(closing(close))

    def service(self, served: Served, step: Step) -> Any:
        """Return what the service of a step gives: that of this process, or of this task."""
        if served.opened().shared and self.run.home is not None:
            return self._shared_services().get(served, step)
        if not self._services:
            self.at_end(self._services.destroy)
        return self._services.get(served, step)

    def _shared_services(self) -> SharedServices:
        if self._shared is None:
            self._shared = shared_services(self.run)
            self.at_end(self._shared.use())
        return self._shared

    def ending(self) -> ExitStack:
        """Return a context at whose end everything is closed that has to be."""
        return self._ending

    def reading(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Give the rows that carry items, of those that an earlier stage wrote; take what came beside and behind them.

        Raises:
            WorkerFailure: a task of the earlier stage has failed.
        """
        self._rows = self._reading(rows)
        return self._rows

    def _reading(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            if row.channel == ITEMS:
                yield row
            elif row.channel > ITEMS:
                self._side_rows.add(row)
            elif row.channel == WATERMARKS:
                self.watermarks.take(loads(row.payload))
            elif row.channel == FAILED:
                self._failure = bytes(row.payload).decode()
                raise WorkerFailure(self._failure)

    def read_rest(self) -> None:
        """Read what nobody wanted: a failure may stand there, or one may have been caught that was not to be.

        Raises:
            WorkerFailure: a task of the earlier stage has failed.
        """
        deque(self._rows, maxlen=0)
        if self._failure is not None:
            raise WorkerFailure(self._failure)

    def side_rows(self) -> Iterator[Row]:
        """Give the rows beside the items that came up since the last call."""
        return self._side_rows.in_order()

    def last_side_rows(self) -> Iterator[Row]:
        """Give all that is left at the end of the task."""
        for channel in self._peeked:
            self._flush(channel)
        for channel, counter in self._counters:
            if (number := next(counter)) > 0:
                self._side_rows.add(Row(0, self.partition, self._peek_sequence, channel, 1, dumps_items([number])))
                self._peek_sequence += 1
        self._counters.clear()
        return self.side_rows()

    def _flush(self, channel: int) -> None:
        seen = self._peeked[channel]
        for few in small_lists(seen) if self._growth.exceeded() else [seen[:]]:
            if few:
                data = dumps_items(few)
                self._side_rows.add(Row(0, self.partition, self._peek_sequence, channel, len(few), data))
                self._batcher.learn(len(few), len(data))
                self._peek_sequence += 1
        seen.clear()
        self._growth.start()


Sink = Callable[[Iterator[Any], StageTask], Iterator[Row]]


class Input(Protocol):
    """Where a stage reads from."""

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        """Give each task that this Spark task runs, with its items."""
        ...


@dataclass(frozen=True)
class Piece:
    """A part of a source and the operations on it; or several such parts, one after another.

    Attributes:
        split: the pickled split; None if there are `parts`.
        step: how the source names itself.
        guards: what happens to bad records of the source.
    """

    split: bytes | None
    parts: tuple[Piece, ...]
    operations: tuple[Operation, ...]
    step: Step | None
    guards: tuple[Guard, ...] = ()

    def open(self, task: Task) -> Iterator[Any]:
        """Give the items."""
        if self.split is None:
            items: Iterator[Any] = chain.from_iterable(part.open(task) for part in self.parts)
        else:
            misread = HandlerOfMisread(self.guards, task) if self.guards else None
            items = items_of(self._split(self.split), self.step, misread)
        return operated(self.operations, items, task)

    def size(self) -> int:
        """Return the bytes of its splits."""
        return len(self.split or b"") + sum(part.size() for part in self.parts)

    def _split(self, pickled: bytes) -> Split[Any]:
        with naming(self.step):
            split: Split[Any] = loads(pickled)
            return split


@dataclass(frozen=True)
class SplitInput:
    """Reads pieces of sources: the row with the id `i` stands for `pieces[i]`."""

    pieces: tuple[Piece, ...]
    first_partition: int

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                task = StageTask(self.first_partition + index, task_memory)
                yield task, self.pieces[index].open(task)


@dataclass(frozen=True)
class ShippedInput:
    """Reads pieces that are too large to travel with every task: each row holds its number and its piece."""

    first_partition: int

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        for batch in batches:
            for index, data in zip(batch.column("target").to_pylist(), batch.column("payload"), strict=True):
                task = StageTask(self.first_partition + index, task_memory)
                piece: Piece = loads(data.as_buffer())
                yield task, piece.open(task)


@dataclass(frozen=True)
class TableInput:
    """Reads the rows of a DataFrame: as `pyspark.sql.Row`, or as what `kind` makes of their fields.

    Attributes:
        schema: that of the DataFrame, a `pyspark.sql.types.StructType`.
    """

    schema: Any
    kind: Callable[..., Any] | None

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "a stage runs inside a Spark task"
        yield StageTask(context.partitionId(), task_memory), self._items(batches)

    def _items(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark.sql.conversion import ArrowTableToRowsConversion

        for batch in batches:
            rows = ArrowTableToRowsConversion.convert(pa.Table.from_batches([batch]), self.schema)
            yield from rows if self.kind is None else (self.kind(**row.asDict()) for row in rows)


Reader = Callable[[Iterator[Row]], Iterator[Any]]


@dataclass(frozen=True)
class FrameInput:
    """Reads the rows that an earlier stage wrote."""

    reader: Reader
    operations: tuple[Operation, ...]
    first_partition: int

    def open(self, batches: Iterator[pa.RecordBatch], task_memory: int) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "a stage runs inside a Spark task"
        task = StageTask(self.first_partition + context.partitionId(), task_memory)
        yield task, operated(self.operations, self.reader(task.reading(from_record_batches(batches))), task)


@dataclass(frozen=True)
class Stage:
    """What one `mapInArrow` runs.

    Attributes:
        hands_failures_on: an exception is a row that ends every task that reads it, and is raised in the driver: Spark
            runs no task again for it. Otherwise the task fails.
    """

    input: Input
    sink: Sink
    worker_memory: int
    run: RunOfTask = NO_RUN
    hands_failures_on: bool = False


def run(pickled: bytes, path: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a pickled stage over one Spark partition; the user's exceptions travel to the driver whole."""
    _extend_search_path(path)
    stage: Stage | None = None
    try:
        stage = loads(pickled)
        assert stage is not None, "a stage was pickled"
        _keep_from_garbage_collection()
        give_back_large_blocks()
        tables_of_run(stage.run.name)
        for task, items in stage.input.open(batches, stage.worker_memory):
            task.run, task.reads_all = stage.run, stage.hands_failures_on
            with task.ending():
                for row in stage.sink(items, task):
                    yield from map(to_record_batch, task.side_rows())
                    yield to_record_batch(row)
                if task.reads_all:
                    deque(items, maxlen=0)
                    task.read_rest()
                yield from map(to_record_batch, task.last_side_rows())
                yield from map(to_record_batch, rows_of_watermarks(task.watermarks, task.partition, stage.sink))
    except Exception as error:
        if stage is not None and stage.hands_failures_on:
            yield from map(to_record_batch, rows_of_failure(error, stage.sink))
            deque(batches, maxlen=0)  # PySpark (4.3) ends a process that has not read all of its input.
            return
        leave_all()  # PySpark (4.3) ends a process whose task has failed.
        raise_to_driver(error)


def read_tables(
    splits: Sequence[bytes], path: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Give the Arrow batches of the splits whose numbers come in, as they are.

    The user asks Spark for them, and Spark shows the text of an exception as it is.
    """
    _extend_search_path(path)
    for batch in batches:
        for index in batch.column(0).to_pylist():
            yield from loads(splits[index]).read_arrow()


def read_columns(
    schema: pa.Schema, path: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Give the Arrow batches that rows carry, in the columns of `schema`."""
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


def _extend_search_path(path: Iterable[str]) -> None:
    """Find the user's modules where the driver finds them, behind what this worker has."""
    known = set(sys.path)
    sys.path.extend(entry for entry in path if entry not in known)
