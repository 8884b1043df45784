"""`SparkBackend`: a Spark session as the engine uses it: stages, shuffles, jobs, and their failures."""

from __future__ import annotations

import copy
import functools
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, Union
from weakref import WeakKeyDictionary

from dstream.base.by_value import dumps_by_value
from dstream.base.memory import DEFAULT_BROADCAST
from dstream.base.pickling import dumps
from dstream.engine.compiler import ColumnMode
from dstream.engine.progress import Call
from dstream.engine.spark.port.errors import check_process, left_to_parent, stopped, translated
from dstream.engine.spark.port.protocols import Port
from dstream.engine.spark.run.driver import ServiceListener
from dstream.engine.spark.run.jobs import OperationJobs
from dstream.engine.tasks.payloads import (
    MOST_CARRIED,
    InFunction,
    Payloads,
    SentFiles,
    archived,
    carried,
    carried_stage,
)
from dstream.engine.tasks.process import NO_RUN, RunOfTask
from dstream.engine.tasks.rows import (
    COUNTS,
    FAILED,
    LARGEST,
    WATERMARKS,
    Row,
    Storing,
    arrow_schema,
    counts_itself,
    from_record_batches,
    handed_on,
    too_large_for_java,
)
from dstream.engine.tasks.stage import FrameInput, Input, Piece, RowsInput, Sink, SplitInput, Stage, run, search_path
from dstream.errors import EngineError, SerializationError
from dstream.failures.transport import from_worker
from dstream.operators.rows.batches import dumps_items
from dstream.operators.rows.caches import Caches
from dstream.operators.rows.operations import Operation
from dstream.plan.captures import look
from dstream.values.attachments import JobFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from dstream.plan.steps import Step

__all__ = [
    "LARGEST_PASSENGER",
    "MOST_PLANS",
    "CarriedStage",
    "KnownPlans",
    "LastRows",
    "SparkBackend",
    "packed",
    "packed_split",
    "schema_of_rows",
]


MOST_PLANS = 64
"""How many plans of each kind are kept."""


class KnownPlans:
    """Functions that make parts of plans, and remember what they returned; nothing in it differs from job to job.

    Attributes:
        numbers: returns so many partitions, with their number in each.
        places: returns the partition of each row among so many targets, as a column.
        carrying: returns the rows of so many tasks, which find modules on a path and run the stage that their job
            carries.
    """

    def __init__(self, port: Port) -> None:
        remembering = functools.lru_cache(MOST_PLANS)
        self.numbers = remembering(functools.partial(_numbers, port))
        self.places = remembering(functools.partial(_places, port))
        self.carrying = remembering(functools.partial(_carrying, port, self.numbers))


def _numbers(port: Port, count: int) -> DataFrame:
    return port.session.range(0, count, 1, max(count, 1))


def _places(port: Port, targets: int) -> Column:
    return port.column("target") % targets


def _carrying(port: Port, numbers: Callable[[int], DataFrame], tasks: int, path: tuple[str, ...]) -> DataFrame:
    def dstream_stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(carried_stage(), path, batches)

    return port.mapped(numbers(tasks), dstream_stage, schema_of_rows())


@functools.cache
def schema_of_rows() -> StructType:
    """Return the schema of rows, parsed; Spark would parse a text for every stage."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow_schema())


def packed(stage: Stage | Piece) -> bytes:
    """Pickle a stage, or a piece of a source with its operations.

    What its functions capture was checked when the run began (`dstream.plan.capture_checks`).

    Raises:
        SerializationError: something else in it cannot travel.
    """
    try:
        return dumps_by_value(stage)
    except Exception as error:
        raise SerializationError(f"this pipeline cannot be sent to the workers: {error}") from error


def packed_split(split: Any, step: Any) -> bytes:
    """Pickle a split of a source.

    Raises:
        SerializationError: it holds what cannot travel; the message names the item or the variable.
    """
    try:
        return dumps(split)
    except Exception as error:
        for part in _parts(split):
            if isinstance(part, list | tuple):
                dumps_items(list(part))
            for found in look(part, {}, sys.maxsize) if callable(part) else ():
                raise SerializationError(f"{step} cannot be sent to the workers: {found}") from error
        raise SerializationError(f"{step} cannot be sent to the workers: {error}") from error


def _parts(split: Any) -> Iterator[Any]:
    """Give the attributes of a split."""
    yield from getattr(split, "__dict__", {}).values()
    yield from (getattr(split, name, None) for name in getattr(type(split), "__slots__", ()))


LARGEST_PASSENGER = 4 * 2**20
"""How many bytes of splits, or of what is sent to all, may travel with the function that needs them, to every task."""

_SHARE_OF_ROW = 16
"""Java's memory holds a row this many times: six times while one moves (4.3), and two or more tasks move some."""

_MOST_SHIPPED = 2
"""All pieces of sources that this process sends together may have as many bytes as so many rows of the largest."""


@dataclass(frozen=True)
class CarriedStage:
    """The rows of a stage that a job carries, so that Spark runs a plan which it has made before.

    Attributes:
        plan: runs what the job carries.
        stage: that.
    """

    plan: DataFrame
    stage: str


LastRows: TypeAlias = Union["DataFrame", CarriedStage]
"""The rows of the last job of a run."""


class SparkBackend:
    """Builds DataFrames of rows and runs them.

    Attributes:
        port: the session.
        worker_memory: how many bytes a worker may hold before operations spill.
        caches: what is kept of `cache()` steps, also by another engine of the same context.
        broadcast_limit: how many bytes the right side of a hash join may have that does not say it itself.
        column_mode: whether functions are read, so that their expressions run in their place.
        counts_rows: whether stages say how many rows they have sent to each target, as those of an epoch do.
        is_one_task: whether one task is to do all work, unless the plan says how many there are.
    """

    def __init__(
        self,
        port: Port,
        worker_memory: int,
        caches: Caches | None = None,
        broadcast_limit: int = DEFAULT_BROADCAST,
        column_mode: ColumnMode = "auto",
    ) -> None:
        self.port = port
        self.worker_memory = worker_memory
        self.broadcast_limit = broadcast_limit
        self.column_mode: ColumnMode = column_mode
        self.caches = Caches() if caches is None else caches
        self.counts_rows = False
        self.is_one_task = False
        self._work: OperationJobs | None = None
        self._call: Call | None = None
        self._home: ServiceListener | None = None
        self._hands_failures_on = False
        self._files: SentFiles | None = None
        self._storing: Storing | None = None
        self._step: Step | None = None
        self._archives: WeakKeyDictionary[JobFiles, Payloads] = WeakKeyDictionary()
        self._plans = KnownPlans(port)

    def at_work(self, work: OperationJobs) -> SparkBackend:
        """Return the same cluster, whose jobs belong to `work`."""
        cluster = copy.copy(self)
        cluster._work, cluster._call = work, work.call
        return cluster

    def serving(self, home: ServiceListener | None) -> SparkBackend:
        """Return the same cluster, whose workers learn at `home` when a run has ended."""
        cluster = copy.copy(self)
        cluster._home = home
        return cluster

    def having(self, files: JobFiles | None) -> SparkBackend:
        """Return the same cluster, whose tasks have what travels with a job; it is sent once to each session."""
        if files is None:
            return self
        cluster = copy.copy(self)
        cluster._files = SentFiles(files, None if self.port.workers_see_files() else self._archive(files))
        return cluster

    def _archive(self, files: JobFiles) -> Payloads:
        if files not in self._archives:
            self._archives[files] = self.send_to_all(archived(files.folder), files)
        return self._archives[files]

    def of_epoch(self, *, is_small: bool) -> SparkBackend:
        """Return the same cluster for an epoch: all that shuffles move is counted, and Spark runs no task again.

        Exceptions of its stages are results. One task takes all items of a small one.
        """
        cluster = copy.copy(self)
        cluster._hands_failures_on = cluster.counts_rows = True
        cluster.is_one_task = is_small
        return cluster

    def failing_tasks(self) -> SparkBackend:
        """Return the same cluster, an exception in whose stages fails the task."""
        cluster = copy.copy(self)
        cluster._hands_failures_on = False
        return cluster

    def counting_no_rows(self) -> SparkBackend:
        """Return the same cluster, whose stages say of no rows how many they have sent."""
        cluster = copy.copy(self)
        cluster.counts_rows = False
        return cluster

    def storing(self, storing: Storing) -> SparkBackend:
        """Return the same cluster, whose stages put what is large of their rows into files."""
        cluster = copy.copy(self)
        cluster._storing = storing
        return cluster

    def folder_of_rows(self) -> str | None:
        """Return where rows may stand whose shuffle goes through this process, as in epochs; None: Spark moves them.

        The jobs of a run with files have plans of their own anyway.
        """
        return self.port.local_folder() if self.counts_rows and self._files is None else None

    def new_home(self) -> ServiceListener | None:
        """Return where workers may wait for the end of a run; None if they do not reach this process."""
        reached = self.port.where_workers_connect()
        return None if reached is None else ServiceListener(*reached)

    def with_settings(self, settings: Mapping[str, str]) -> SparkBackend:
        """Return the same cluster with these Spark SQL settings, which no other run sees."""
        if not settings:
            return self
        cluster = copy.copy(self)
        cluster.port = self.port.with_settings(settings)
        cluster._plans = KnownPlans(cluster.port)
        return cluster

    def doing(self, step: Step, purpose: str) -> SparkBackend:
        """Return the same cluster, whose jobs are for `step`."""
        cluster = copy.copy(self)
        cluster._call, cluster._step = Call.of_step(step, purpose), step
        return cluster

    def writing_for(self, step: Step) -> SparkBackend:
        """Return the same cluster, whose stages write rows for `step`."""
        cluster = copy.copy(self)
        cluster._step = step
        return cluster

    def _largest_row(self) -> int:
        return min(self.port.java_memory() // _SHARE_OF_ROW, LARGEST)

    def waiting(self) -> AbstractContextManager[None]:
        """Show how far the jobs are, meanwhile."""
        return nullcontext() if self._work is None else self._work.waiting()

    def counting(self) -> Operation | None:
        """Return an operation that counts items on the workers, if anybody wants to see the number."""
        return None if self._work is None else self._work.counting()

    def check_running(self) -> None:
        """Refuse to go on if the user stopped Spark, or if it works for the process that this one was forked from.

        Raises:
            EngineError: Spark was stopped, or is not ours to talk to.
        """
        check_process()
        if not self.port.is_running():
            raise stopped()

    @property
    def cores(self) -> int:
        """How many tasks run at the same time."""
        check_process()
        return self.port.cores()

    def numbers(self, count: int) -> DataFrame:
        """Return `count` partitions with their number in each; Spark plans them once."""
        check_process()
        return self._plans.numbers(count)

    def shipped(self, pieces: Sequence[Piece]) -> DataFrame:
        """Return one partition for each piece, with the piece in it."""
        check_process()
        import pyarrow as pa

        payloads, most = list(map(packed, pieces)), _MOST_SHIPPED * self._largest_row()
        if (size := sum(map(len, payloads))) > most:
            advice = "let the workers read them, from a file or from a distributed map or list"
            raise too_large_for_java("the items of the source have", size, most, _step_of(pieces[0]), advice)
        numbers = pa.array(range(len(pieces)), type=pa.int32())
        table = pa.table({"target": numbers, "payload": pa.array(payloads, type=pa.binary())})
        return self.port.placed(self.port.frame_of(table), len(pieces), self.port.column("target"))

    def stage(self, frame: DataFrame, source: Input, sink: Sink) -> DataFrame:
        """Return the rows of a stage over `frame`."""
        names = Row._fields if isinstance(source, FrameInput) else None
        return self._mapped(frame, self._packed(source, sink), names)

    def last_stage(self, source: SplitInput | RowsInput, sink: Sink) -> LastRows:
        """Return the rows of a stage that reads no other one's, and whose rows come to this process."""
        pickled, tasks = self._packed(source, sink), source.tasks
        is_small = len(pickled) <= MOST_CARRIED and tasks <= MOST_PLANS and self._files is None
        if is_small and self.port.may_carry():
            return CarriedStage(self._plans.carrying(tasks, search_path()), carried(pickled))
        return self._mapped(self.numbers(tasks), pickled)

    def _packed(self, source: Input, sink: Sink) -> bytes:
        check_process()
        stage = Stage(
            source,
            sink,
            self.worker_memory,
            self._run_of_tasks(),
            self._hands_failures_on,
            self.counts_rows and not counts_itself(sink),
            self._storing,
            self._largest_row(),
            self._step,
        )
        return packed(stage)

    def _mapped(self, frame: DataFrame, pickled: bytes, names: Sequence[str] | None = None) -> DataFrame:
        path = search_path()
        files = self._files

        def dstream_stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return run(pickled, path, batches, files)

        return self.port.mapped(frame, dstream_stage, schema_of_rows(), names)

    def send_to_all(self, payloads: Sequence[Any], holder: object) -> Payloads:
        """Have payloads at hand in every process of the workers, for as long as `holder` lives or longer."""
        check_process()
        name = f"dstream-sent-{uuid.uuid4().hex}"
        if sum(map(len, payloads)) <= LARGEST_PASSENGER:
            return InFunction(name, tuple(map(bytes, payloads)))
        with translated(self.port.session):
            return self.port.send_to_all(name, payloads, holder)

    def _run_of_tasks(self) -> RunOfTask:
        if self._work is None:
            return NO_RUN
        return RunOfTask(self._work.tag, None if self._home is None else self._home.address())

    def shuffled(self, frame: DataFrame, targets: int) -> DataFrame:
        """Return the rows each in the partition of its target, one target after another, in the order of their sources.

        Several targets share a partition if there are more of them than partitions.
        """
        placed = self.port.placed(frame, targets, self._plans.places(targets))
        return placed.sortWithinPartitions(*map(self.port.column, ("target", "source", "sequence")))

    def beside(self, frame: DataFrame, targets: int) -> DataFrame:
        """Return the rows with targets behind those of others, which `shuffled` brings into the same partitions."""
        return frame.withColumn("target", self.port.column("target") + targets)

    def partitions(self, pinned: DataFrame) -> int:
        """Return in how many partitions the rows of a pinned frame stand, for which a job may have to run."""
        with translated(self.port.session), self._job():
            return self.port.partitions(pinned)

    def rows(self, rows: LastRows) -> Iterator[Row]:
        """Run one job over all partitions and give its rows in order."""
        return _for_driver(self._all_rows(rows))

    def rows_to_hand_on(self, rows: LastRows) -> Iterator[Row]:
        """Run one job and give its rows for the tasks of another one: with what these are told, and counted."""
        return map(handed_on, _unfailed(self._all_rows(rows)))

    def _all_rows(self, rows: LastRows) -> Iterator[Row]:
        plan, stage = (rows.plan, rows.stage) if isinstance(rows, CarriedStage) else (rows, None)
        with translated(self.port.session), self._job():
            batches = self.port.batches(plan, stage)
        return from_record_batches(batches)

    def places(self, frame: DataFrame) -> list[tuple[int, int, int, int]]:
        """Run one job and return (source, sequence, channel, size) of its rows, in order, without payloads."""
        return list(self._numbers_of(frame.select("source", "sequence", "channel", "size")))

    def sizes(self, frame: DataFrame) -> Iterator[tuple[int, int]]:
        """Run one job and return (channel, bytes) of its rows."""
        return self._numbers_of(frame.selectExpr("channel", "octet_length(payload)"))

    def _numbers_of(self, frame: DataFrame) -> Iterator[tuple[Any, ...]]:
        with translated(self.port.session), self._job():
            batches = self.port.batches(frame)
        return (row for batch in batches for row in zip(*(each.to_pylist() for each in batch.columns), strict=True))

    def setting(self, name: str) -> str:
        """Return a setting of the session, which is there or has a default."""
        return self.port.session.conf.get(name) or ""

    def rows_one_partition_at_a_time(self, frame: DataFrame) -> Iterator[Row]:
        """Give the rows partition by partition, the next one computed while this one is looked at."""
        with translated(self.port.session), self._job():
            iterator = left_to_parent(self.port.in_turn(frame))
        yield from _for_driver(self._in_turn(iterator))

    def _in_turn(self, iterator: Iterator[Any]) -> Iterator[Row]:
        while True:
            check_process()
            with translated(self.port.session), self.waiting():
                row = next(iterator, None)
            if row is None:
                return
            yield Row(row.target, row.source, row.sequence, row.channel, row.size, memoryview(row.payload))

    def _job(self) -> AbstractContextManager[None]:
        check_process()
        return nullcontext() if self._work is None or self._call is None else self._work.job(self._call)


def _step_of(piece: Piece) -> Step | None:
    """Return the step of the first source of a piece."""
    while piece.split is None and piece.parts:
        piece = piece.parts[0]
    return piece.step


def _for_driver(rows: Iterator[Row]) -> Iterator[Row]:
    """Give the rows without those that tell tasks of watermarks, and of rows; raise the exception that ended a task."""
    return (row for row in _unfailed(rows) if row.channel not in (WATERMARKS, COUNTS))


def _unfailed(rows: Iterator[Row]) -> Iterator[Row]:
    """Give the rows; raise the exception that ended a task."""
    for row in rows:
        if row.channel == FAILED:
            raise from_worker(bytes(row.payload).decode()) or EngineError("a task failed, and could not say how")
        yield row
