"""`SparkEngine`: terminal operations as Spark jobs, with results as values or DataFrames."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dstream.engine.calls import Call, Cancellation, Progress, Submitted
from dstream.engine.compiler.ends import reads_only
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.physical.graph import (
    Each,
    Pulled,
)
from dstream.engine.physical.vertices import Items
from dstream.engine.runs.moves import BegunRun
from dstream.engine.runs.rows import ShuffleFiles
from dstream.engine.spark.port.errors import translating
from dstream.engine.spark.run.backend import SparkBackend, frame_of_splits
from dstream.engine.spark.run.execution import SparkRun, pulled
from dstream.engine.spark.run.remote import RemoteTasks
from dstream.engine.spark.run.segments import SplitSegment, last_rows, piece_rows, segment_rows
from dstream.engine.spark.run.stage_runner import ItemCounts, OperationJobs, RunOptions, StageRunner
from dstream.engine.tasks.rows import ITEMS
from dstream.engine.tasks.sinks import WriteItems
from dstream.engine.tasks.stage import Piece
from dstream.errors import UnsupportedError
from dstream.plan.capture_checks import check_captures
from dstream.plan.operations.ends import End, Loop, Partitions, Several, ToList
from dstream.plan.properties import check, configuration, guards_of, is_bounded, is_of_epoch, served_steps
from dstream.plan.walk import of_one_run, recalled, topological
from dstream.values.attachments import files_here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkEngine"]


class SparkEngine:
    """Runs plans on a Spark session."""

    name = "spark"

    def __init__(self, backend: SparkBackend, stop: Callable[[], None], progress: Progress) -> None:
        self._backend = backend
        self._stop = stop
        self._progress = progress
        self._counts = ItemCounts(backend.port)

    @property
    def spark(self) -> Any:
        """The session that the plans run on."""
        return self._backend.port.session

    def submit(self, end: End | Several) -> Submitted:
        """Return a run of the plan on Spark."""
        # Determined now: a run in another thread has no user's frame on its stack.
        call = None if end.label() else Call.of_user()
        return Submitted(functools.partial(self._run, end, call))

    @translating
    def _run(self, plan: End | Several, call: Call | None, cancellation: Cancellation) -> Any:
        check_captures(plan)
        if isinstance(plan, Several):
            check(plan, needs_end=True)
        self._backend.check_running()
        end = recalled(of_one_run(plan), self._backend.caches.found)
        run = self._begun(end, call or Call.of_step(end.step), cancellation)
        if isinstance(end, Loop | Partitions):
            return _result(end, run)
        with run.supplied() as end:
            return _result(end, run)

    def _begun(self, end: End | Several, call: Call, cancellation: Cancellation) -> SparkRun:
        """Return a run of a plan that ends in `call`."""
        work = OperationJobs(self._backend.port, self._progress, self._counts, call, cancellation.check)
        cancellation.by(work.cancel)
        backend = self._backend.with_settings(configuration(end))
        is_epoch = is_of_epoch(end)
        options = RunOptions(
            work,
            work.call,
            files=self._backend.files_of_job(files_here()),
            hands_failures_on=is_epoch,
            counts_rows=is_epoch,
            is_one_task=is_epoch and isinstance(end, Several) and end.is_small,
        )
        in_small_pieces = isinstance(end, Loop) and is_bounded(end) and reads_only(end.upstream)
        operations = topological(end)
        if any(each.opened().shared for each in served_steps(operations)):
            options = replace(options, services=self._backend.service_listener())
        recovered = RecoveryReport(operations, self._progress) if any(guards_of(operations)) else None
        runner = StageRunner(backend, options)
        files = None if runner.shuffle_folder() is None else ShuffleFiles()
        return SparkRun(end, runner, recovered, in_small_pieces, files)

    @translating
    def remote(self, begun: BegunRun, call: Call, cancellation: Cancellation) -> RemoteTasks:
        """Return where the rest of the tasks of a run run that this process has begun.

        Raises:
            UnsupportedError: the workers do not see the files of this machine, in which rows are.
        """
        self._backend.check_running()
        if not self._backend.port.workers_see_files():
            raise UnsupportedError("the workers do not see the files of this process")
        run = self._begun(begun.end, call, cancellation)
        return RemoteTasks(replace(run, recovered=begun.recovered, begun=(begun.graph, dict(begun.actions))))

    def data_frame(self, splits: Sequence[Any], schema: Any) -> DataFrame:
        """Return a lazy DataFrame over splits with `read_arrow`; one task reads each, whenever Spark computes it."""
        self._backend.check_running()
        return frame_of_splits(splits, schema, self._backend)

    def cores(self) -> int:
        """Return how many tasks run at the same time."""
        return self._backend.cores

    def warm_up(self) -> None:
        """Run a job without items, so that workers run, and the packages of a first job are loaded."""
        nothing = [Piece(None, (), (), None)] * min(self.cores(), 2)
        runner = StageRunner(self._backend)
        list(runner.rows(last_rows(SplitSegment(nothing), WriteItems(), 0, runner)))

    def is_lost(self) -> bool:
        """Return whether Spark was stopped, or its process is gone."""
        return not self._backend.port.is_alive()

    def close(self) -> None:
        """Release the contents of `cache()` steps; stop the session if this engine started it."""
        self._backend.caches.clear()
        self._stop()


def _result(end: End | Several, run: SparkRun) -> Any:
    """Run a plan, and return its result."""
    match None if isinstance(end, Several) else run.graph.ending:
        case Pulled() as ending:
            items = pulled(run, ending)
            return list(items) if isinstance(end, ToList) else [items] if isinstance(end, Partitions) else items
        case Each(inputs):
            return _partitions(inputs, run)
    return run.result()


def _partitions(inputs: Items, run: SparkRun) -> list[Iterator[Any]]:
    """Return one lazy iterator for each partition, in encounter order; each runs its own job."""
    iterators: list[Iterator[Any]] = []
    for segment in run.flow(inputs).segments:
        if isinstance(segment, SplitSegment):
            frames: Iterable[DataFrame] = (
                piece_rows([piece], WriteItems(), number, run.runner) for number, piece in enumerate(segment.pieces)
            )
        else:
            pinned = run.runner.port.pinned(segment_rows(segment, WriteItems(), 0, run.runner))
            # The `peek` rows of partitions that no longer exist are read with the first one.
            beyond = f" or (channel > {ITEMS} and source >= {segment.partitions})"
            frames = (
                pinned.where(f"source = {number}{'' if number else beyond}") for number in range(segment.partitions)
            )
        iterators += [run.watching(run.lazily(frame)) for frame in frames]
    return run.together(iterators)
