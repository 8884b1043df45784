"""`StageRunner`: stages as DataFrames of rows, the Spark jobs that run them, and the options of a run."""

from __future__ import annotations

import itertools
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from dstream.base.records import record
from dstream.base.threads import contextmanager
from dstream.engine.calls import Call, Progress
from dstream.engine.display import ProgressFacts
from dstream.engine.spark.port.errors import check_process, interruptible, left_to_parent, translated
from dstream.engine.spark.port.protocols import Port
from dstream.engine.spark.run.backend import MOST_PLANS, SparkBackend, packed, schema_of_rows
from dstream.engine.spark.run.service_listener import ServiceListener
from dstream.engine.tasks.process import MOST_CARRIED, NO_RUN, RunOfTask, SentFiles, carried
from dstream.engine.tasks.rows import (
    COUNTS,
    FAILED,
    WATERMARKS,
    Row,
    Storing,
    counts_itself,
    from_record_batches,
    handed_on,
)
from dstream.engine.tasks.runtime import CountItems
from dstream.engine.tasks.stage import FrameInput, Input, RowsInput, Sink, SplitInput, Stage, run, search_path
from dstream.errors import EngineError
from dstream.failures.transport import SECRET, from_worker
from dstream.operators.rows.operations import Operation
from dstream.plan.steps import Step

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["CarriedStage", "ItemCounts", "LastRows", "OperationJobs", "RunOptions", "StageRunner"]


_PROCESS = uuid.uuid4().hex[:8]
_numbers = itertools.count(1)


class OperationJobs:
    """Names the jobs of one terminal operation and looks after them.

    Attributes:
        tag: the tag of its jobs in Spark.

    Args:
        port: the session that they run on.
        check: raises an exception if no further job may start.
    """

    def __init__(
        self, port: Port, progress: Progress, counts: ItemCounts, call: Call, check: Callable[[], object] = bool
    ) -> None:
        self.tag = f"dstream-{_PROCESS}-{next(_numbers)}"
        self.call = call
        self._jobs = port.jobs(self.tag)
        self._counts = counts
        self._check = check
        self._operation = progress.begin(self.facts)

    @contextmanager
    def job(self, call: Call) -> Iterator[None]:
        """Attribute the jobs that start meanwhile to `call`."""
        # A run that was cancelled between two jobs starts no other one.
        self._check()
        self.call = call
        with self._jobs.named(call.description()), self.waiting():
            yield

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Show how far the jobs are, meanwhile; let Ctrl-C cancel them."""
        with interruptible(self.cancel), self._operation or nullcontext():
            yield

    def cancel(self) -> None:
        """Cancel these jobs and no others, also one that is about to begin."""
        self._jobs.cancel()

    def counting(self) -> Operation | None:
        """Return an operation that counts items on the workers, if progress is shown, and Spark can count."""
        if self._operation is None:
            return None
        # A method of the counts: a method of `self` would keep it alive, and never be called.
        weakref.finalize(self, self._counts.forget, self.tag)
        return self._counts.counting(self.tag)

    def facts(self) -> ProgressFacts:
        """Return the progress of the newest job, as Spark reports it."""
        facts, how_far = ProgressFacts(self.call.title(), self._counts.of(self.tag)), self._jobs.how_far()
        return facts if how_far is None else replace(facts, tasks=how_far.tasks, stage=how_far.stage)


class ItemCounts:
    """The numbers of items that the tasks of each operation have read, as far as tasks have ended.

    One accumulator serves an engine for ever: Spark forgets none (4.3).
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self._lock = threading.Lock()
        self._accumulator: Any = None

    def counting(self, key: str) -> CountItems | None:
        """Return an operation that counts items for `key`; None if this Spark has no accumulators."""
        with self._lock:
            if self._accumulator is None:
                # One for all operations: PySpark retains each accumulator for the lifetime of the process (4.3).
                self._accumulator = self._port.sums(_Sums())
        return None if self._accumulator is None else CountItems(self._accumulator, key)

    def of(self, key: str) -> int | None:
        """Return how many items were counted for `key`; None if none are counted."""
        return None if self._accumulator is None else self._accumulator.value.get(key, 0)

    def forget(self, key: str) -> None:
        """Drop the number of `key`."""
        if self._accumulator is not None:
            self._accumulator.value.pop(key, None)


class _Sums:
    """Adds dictionaries of numbers, as an `AccumulatorParam`, without loading PySpark when this module is."""

    def zero(self, value: dict[str, int]) -> dict[str, int]:
        return {}

    def addInPlace(self, value: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        for key, number in other.items():
            value[key] = value.get(key, 0) + number
        return value


@record(slots=False)
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


@record(slots=False)
class RunOptions:
    """The options of the stages and jobs of a run.

    Attributes:
        work: names the jobs, shows how far they are, and cancels them; None: they are the engine's own.
        call: what the jobs are for.
        step: the operation that stages write rows for.
        services: where workers learn that the run has ended; None if none of them shares a service.
        files: files that are sent with the job; its tasks have their own plans anyway.
        storing: stores large payloads in files; None: all rows are sent with their payloads.
        hands_failures_on: exceptions of stages are results, and Spark retries no task; otherwise they fail the task.
        counts_rows: stages report the number of rows that they have sent to each target, as in an epoch.
        is_one_task: one task does all work, unless the plan has a number of tasks.
        hashes_without_seed: tasks of this process, which has another hash seed, write rows for the same targets.
    """

    work: OperationJobs | None = None
    call: Call | None = None
    step: Step | None = None
    services: ServiceListener | None = None
    files: SentFiles | None = None
    storing: Storing | None = None
    hands_failures_on: bool = False
    counts_rows: bool = False
    is_one_task: bool = False
    hashes_without_seed: bool = False


@record(slots=False)
class StageRunner:
    """Builds stages as DataFrames of rows and runs their jobs, with the options of a run."""

    backend: SparkBackend
    options: RunOptions = RunOptions()

    @property
    def port(self) -> Port:
        """The session."""
        return self.backend.port

    def doing(self, step: Step, purpose: str) -> StageRunner:
        """Return a runner whose jobs are for `step`."""
        return self.with_options(replace(self.options, call=Call.of_step(step, purpose), step=step))

    def with_options(self, options: RunOptions) -> StageRunner:
        """Return a runner with other options on the same session."""
        return StageRunner(self.backend, options)

    def shuffle_folder(self) -> str | None:
        """Return the folder of rows whose shuffle passes through this process, as in epochs; None: Spark moves them.

        The jobs of a run with files have plans of their own anyway.
        """
        options = self.options
        return self.port.local_folder() if options.counts_rows and options.files is None else None

    def waiting(self) -> AbstractContextManager[None]:
        """Show how far the jobs are, meanwhile."""
        return nullcontext() if self.options.work is None else self.options.work.waiting()

    def counting(self) -> Operation | None:
        """Return an operation that counts items on the workers, if progress is shown."""
        return None if self.options.work is None else self.options.work.counting()

    def stage(self, frame: DataFrame, source: Input, sink: Sink) -> DataFrame:
        """Return the rows of a stage over `frame`."""
        names = Row._fields if isinstance(source, FrameInput) else None
        return self._mapped(frame, self._packed(source, sink), names)

    def last_stage(self, source: SplitInput | RowsInput, sink: Sink) -> LastRows:
        """Return the rows of a stage that reads no other stage, and whose rows are sent to this process."""
        pickled, tasks = self._packed(source, sink), source.tasks
        # A job's properties are sent with each of its tasks, a plan only once.
        is_small = len(pickled) <= MOST_CARRIED and tasks <= MOST_PLANS and self.options.files is None
        if is_small and self.port.may_carry():
            return CarriedStage(self.backend.plans.carrying(tasks, search_path()), carried(pickled))
        return self._mapped(self.backend.numbers(tasks), pickled)

    def _packed(self, source: Input, sink: Sink) -> bytes:
        check_process()
        options = self.options
        stage = Stage(
            source,
            sink,
            self.backend.worker_memory,
            self._run_of_tasks(),
            options.hands_failures_on,
            options.counts_rows and not counts_itself(sink),
            options.storing,
            self.backend.largest_row(),
            options.step,
            options.hashes_without_seed,
        )
        return packed(stage)

    def _mapped(self, frame: DataFrame, pickled: bytes, names: Sequence[str] | None = None) -> DataFrame:
        # Names of this call: a function that captured `self` would take the session along, which cannot be pickled.
        path, secret, files = search_path(), SECRET, self.options.files

        def dstream_stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return run(pickled, path, batches, secret, files)

        return self.port.mapped(frame, dstream_stage, schema_of_rows(), names)

    def _run_of_tasks(self) -> RunOfTask:
        work, services = self.options.work, self.options.services
        return NO_RUN if work is None else RunOfTask(work.tag, None if services is None else services.address())

    def partitions(self, pinned: DataFrame) -> int:
        """Return how many partitions the rows of a pinned frame have, for which a job may have to run."""
        with translated(self.port.session), self._job():
            return self.port.partitions(pinned)

    def rows(self, rows: LastRows) -> Iterator[Row]:
        """Run one job over all partitions and return its rows in order."""
        return _for_driver(self._all_rows(rows))

    def rows_to_hand_on(self, rows: LastRows) -> Iterator[Row]:
        """Run one job and yield its rows for the tasks of another one: with their side rows, and counted."""
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

    def rows_one_partition_at_a_time(self, frame: DataFrame) -> Iterator[Row]:
        """Yield the rows partition by partition, the next one computed while this one is read."""
        with translated(self.port.session), self._job():
            iterator = left_to_parent(self.port.in_turn(frame))
        yield from _for_driver(self._in_turn(iterator))

    def _in_turn(self, iterator: Iterator[Any]) -> Iterator[Row]:
        while True:
            check_process()
            # For this call alone: a `yield` inside would translate and cancel what the caller does between two rows.
            with translated(self.port.session), self.waiting():
                row = next(iterator, None)
            if row is None:
                return
            yield Row(row.target, row.source, row.sequence, row.channel, row.size, memoryview(row.payload))

    def _job(self) -> AbstractContextManager[None]:
        check_process()
        work, call = self.options.work, self.options.call
        return nullcontext() if work is None or call is None else work.job(call)


def _for_driver(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows except watermarks and counts, which are for tasks; raise the exception of a task."""
    return (row for row in _unfailed(rows) if row.channel not in (WATERMARKS, COUNTS))


def _unfailed(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows; raise the exception that ended a task."""
    for row in rows:
        if row.channel == FAILED:
            raise from_worker(bytes(row.payload).decode(), SECRET) or EngineError(
                "a task failed without a report of its error"
            )
        yield row
