"""`EpochRunner`: one epoch, from its input to the publication of its record, and `EpochSink`, one of its sinks."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple

from dstream.errors import DStreamError, IllegalStateError
from dstream.failures import naming
from dstream.jobs.receipts import StagedLetters, add_edges
from dstream.jobs.records import packed
from dstream.jobs.unbounded.log import EPOCHS_PER_CHECKPOINT, LogRecord, TimedPartition
from dstream.jobs.unbounded.placement import obstacle_to_moving
from dstream.jobs.unbounded.plans import InThisEpoch, OpenPlan, Processors, epoch_plan, open_plan, with_kept_parallelism
from dstream.jobs.unbounded.ranges import EpochInput
from dstream.jobs.unbounded.rate_control import RefreshedSides, SmallEpochs
from dstream.jobs.unbounded.resumption import SameSources
from dstream.jobs.unbounded.state import StatesOfSteps
from dstream.jobs.unbounded.watermarks import EventTime
from dstream.operators.state.backend import folder_of
from dstream.operators.state.shards import kept_shards
from dstream.pipeline.plan import PipelinePlan
from dstream.plan import Node, Read, Recover
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import VertexGraph, with_parallelism
from dstream.plan.steps import Step
from dstream.plan.walk import steps_of_inputs
from dstream.processors.suppliers import ReadySuppliers
from dstream.spi import MapWriter, Running, Runtime, Sink, WriteJob, Writer
from dstream.spi.epochs import PartitionReceipt, StepReceipt
from dstream.spi.runtime import EngineOfEpoch
from dstream.spi.sink import Receipt, Target, counted_receipts, counting
from dstream.stream.runtime import Delivery

__all__ = ["EpochRunner", "EpochSink", "Ran", "show_held"]


_log = logging.getLogger("dstream.jobs")


class EpochSink(NamedTuple):
    """An end of a pipeline: a sink of items, or of the dead letters of a stage.

    Attributes:
        stage: its name.
        step: the step before a sink, which a failure names.
    """

    stage: str
    sink: Sink[Any, Any]
    target: Target[Any]
    step: Step | None

    def name(self, job: str) -> str:
        """Return the sink's name for a job.

        It has the id of the job: one that is started afresh counts its epochs from 1 again, and they are not those that
        were done. And it has the name of the stage, so that a pipeline that was changed meets its own epochs only.
        """
        own = f"{job}-{folder_of(self.stage)}"
        return own if self.sink.job is None else f"{self.sink.job}:{own}"

    def begin(self, job: str, number: int) -> WriteJob[Any]:
        """Begin an epoch of a job, or its publication."""
        begin = getattr(self.target, "begin_epoch", self.target.begin)
        begun: WriteJob[Any] = begin(self.name(job), number)
        return begun

    def publish(self, job: WriteJob[Any], record: LogRecord) -> None:
        """Publish the output that a record names, unless it was published before."""
        # A failure in it, as of a function that merges, names the step as a failure in a task does.
        with nullcontext() if self.step is None else naming(self.step):
            if not job.is_done:
                _commit(job, record, self.stage)


def _commit(job: WriteJob[Any], record: LogRecord, stage: str) -> None:
    try:
        job.commit(record.receipts[stage])
    except IllegalStateError as error:
        error.add_note(
            f"Epoch {record.published} is decided, and stage {stage!r} cannot publish what it wrote for it. To read "
            f"its items again, go on with JobConfig(start_at={record.published - 1}, force=True); sinks that have "
            "published it get them twice."
        )
        raise


def show_held(
    ends: Iterable[EpochSink], job: str, *, is_over: bool = False, failed: BaseException | None = None
) -> None:
    """Make sinks publish the deferred output of published epochs, if it is due.

    Args:
        ends: the sinks of the pipeline.
        job: the id of the job.
        is_over: the run ends, so that all deferred output is published.
        failed: why it ends; a sink that fails now is only logged then.

    Raises:
        Exception: a sink fails.
    """
    first: Exception | None = None
    for end in ends:
        show = getattr(end.target, "show_held", None)
        if show is None:
            continue
        try:
            show(end.name(job), is_over=is_over)
        except Exception as error:
            # The others are called nevertheless: output that is deferred at the end of a run may remain hidden for
            # ever.
            if failed is None and first is None:
                first = error
            else:
                _log.warning("stage %r: what is held back was not shown: %s", end.stage, error)
    if first is not None:
        raise first


_FEW, _QUICK = 5_000, 0.25
"""An epoch of at most this number of items and seconds is small: the tasks of Spark cost more than what they do."""


@dataclass(slots=True)
class Ran:
    """An epoch that has run and is not committed.

    Attributes:
        record: the record that commits it.
        states: the state of steps after it.
        items: the number of items read from each source, by the name of its stage, as far as counted.
        seconds: the time of the engine.
        engine: the engine that ran it, if the context has several engines.
    """

    record: LogRecord
    states: StatesOfSteps
    items: Mapping[str, int]
    seconds: float
    engine: EngineOfEpoch | None = None


@dataclass(slots=True)
class _Taken:
    """Reports of the tasks of one epoch."""

    times: list[PartitionReceipt] = field(default_factory=list)
    steps: list[StepReceipt] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class EpochRunner:
    """The runner of the epochs of one pipeline.

    Args:
        context: has the engine, and the collections that sinks write into.
        plan: the pipeline.
        job: names the job in its sinks.
        counts: whether the items of all stages are counted; otherwise only those that are read.
        begins: called with each run of the engine before it starts; it may refuse the run.
        processors: the number of processors of the vertices of the job so far.
        guarantee: the guarantee that processors receive.

    Attributes:
        open_plan: the plan with its sources.

    Raises:
        Exception: the exception of a source, or of a supplier of processors.
    """

    def __init__(
        self,
        context: Runtime,
        plan: PipelinePlan,
        job: str,
        counts: bool = True,
        begins: Callable[[Running], object] = lambda running: None,
        processors: Processors = MappingProxyType({}),
        guarantee: str = "exactly-once",
    ) -> None:
        self._context = context
        self._plan = plan
        self._job = job
        self._begins = begins
        self._taken = _Taken()
        self._counts_all = counts
        self._processors = processors
        self._guarantee = guarantee
        self._suppliers = ReadySuppliers()
        self._letters: list[StagedLetters] = []
        self._begun: dict[int, dict[str, WriteJob[Any]]] = {}
        self._number = 0
        self._small = SmallEpochs()
        self._writers: list[Writer | MapWriter] = []
        # Before the calls below that may fail, since `close` reads it.
        self._ends: dict[str, EpochSink] = {}
        try:
            staging = plan.delivering(self._staging)
            counted = (staging if counts else _reads_only(staging)).counting(self._taking)
            self.open_plan: OpenPlan = open_plan(counted, context, self._ready, guarantee)
            self._ends = self._all_ends()
        except BaseException as error:
            self.close(error)
            raise
        self._sides = RefreshedSides(self.open_plan.refreshed)
        self._sources = SameSources(self.open_plan)

    def _taking(self, stage: str) -> Callable[[int], None]:
        """Return a function that records the counts of a stage, epoch after epoch."""

        def take(items: int) -> None:
            self._taken.counts[stage] += items

        return take

    def _staging(self, stage: str, node: Node, delivery: Delivery) -> StagedLetters:
        """Return the staging of a stage's dead letters."""
        self._letters.append(StagedLetters(stage, delivery, self._context, self._job_of_letters))
        return self._letters[-1]

    def _job_of_letters(self, letters: StagedLetters) -> WriteJob[Any]:
        begun = self._begun[self._number]
        if letters.stage not in begun:
            begun[letters.stage] = self._begun_job(self._ends[letters.stage], self._number)
        return begun[letters.stage]

    def _all_ends(self) -> dict[str, EpochSink]:
        """Return where the pipeline writes to, by the names of the stages."""
        steps = steps_of_inputs(self._plan.several([None] * len(self._plan.writes)))
        ends = {
            write.stage: EpochSink(write.stage, write.sink, write.sink.open(self._context), step)
            for write, step in zip(self._plan.writes, steps, strict=True)
        }
        for each in self._letters:
            ends[each.stage] = EpochSink(each.stage, each.sink, each.target, None)
        return ends

    def _ready(self, node: ProcessorGraph) -> VertexGraph:
        """Return the graph of an operation as it runs in this job."""
        graph = with_kept_parallelism(node, self._processors)
        if any(each.parallelism == -1 for each in graph.vertices):
            graph = with_parallelism(graph, self._context.running_engine().cores())
        return self._suppliers.graph(graph, self._guarantee)

    def close(self, error: BaseException | None = None) -> None:
        """Close the processors that are in this process, and the suppliers.

        Args:
            error: why the job does not continue here; None if it has ended.
        """
        kept_shards.forget(self._job, error)
        try:
            show_held(self._ends.values(), self._job, is_over=True, failed=error)
        except BaseException as failed:
            error = failed
            raise
        finally:
            self._suppliers.close(error)

    # ---------------------------------------------------------------------------------------------------------- run

    def run(
        self,
        before: LogRecord,
        news: Mapping[str, EpochInput],
        time: EventTime,
        states: StatesOfSteps,
        now: float,
        engine: EngineOfEpoch | None = None,
    ) -> Ran:
        """Run the epoch between two records, and return its commit. Nothing is visible before that.

        Args:
            before: the last record.
            news: the input of each source.
            time: the event time of the epoch.
            states: the state of steps, as in `before`.
            now: the clock time of the epoch.
            engine: the engine that runs it; None: the only engine of the context.

        Raises:
            IllegalStateError: a sink reports that the epoch was published before, or a source was recreated.
            Exception: the exception of a user's function, or the reason why the engine could not run.
        """
        number, began = before.number + 1, perf_counter()
        try:
            jobs = self._begin(number)
            read = self._places(news)
            receipts = self._results(self._inputs(number, now, news, time, states, read, jobs, engine))
            receipts.update((each.stage, taken) for each in self._letters if (taken := each.taken()))
            packed(receipts)  # Refuse receipts that are too large while the output can still be removed.
            # Between reads and record: the offsets of a topic that was recreated meanwhile must not be committed.
            self._sources.check(before.sources)
            record, after = self._record(before, number, now, news, time, read, receipts, states)
        except BaseException:
            self.abort(number)
            raise
        items, seconds = {stage: self._taken.counts[stage] for stage in news}, perf_counter() - began
        self._small.end(has_few=sum(items.values()) <= _FEW, is_quick=seconds < _QUICK)
        self._taken = _Taken()  # Otherwise each epoch would refer to the receipts of the previous one.
        return Ran(record, after, items, seconds, engine)

    def _begin(self, number: int) -> list[WriteJob[Writer | MapWriter]]:
        self._taken, self._number = _Taken(), number
        for each in self._letters:
            each.forget()  # A failed epoch may have left jobs.
        jobs = self._begun[number] = {}
        for write in self._plan.writes:
            jobs[write.stage] = self._begun_job(self._ends[write.stage], number)
        return list(jobs.values())

    def _begun_job(self, end: EpochSink, number: int) -> WriteJob[Any]:
        job = end.begin(self._job, number)
        if job.is_done:
            self.abort(number)
            raise IllegalStateError(
                f"{end.sink.label} has epoch {number} of {end.name(self._job)!r} already, of "
                "which this job knows nothing: submit it under another name, or let the sink have another job="
            )
        return job

    def _places(self, news: Mapping[str, EpochInput]) -> list[TimedPartition]:
        """Return the partitions whose time tasks report."""
        return [
            TimedPartition(stamp, source, each.partition)
            for stamp, sources in self.open_plan.sources_of.items()
            for source in sorted(sources)
            for each in news[source].ranges
        ]

    def _inputs(
        self,
        number: int,
        now: float,
        news: Mapping[str, EpochInput],
        time: EventTime,
        states: StatesOfSteps,
        read: Sequence[TimedPartition],
        jobs: Iterable[WriteJob[Writer | MapWriter]],
        engine: EngineOfEpoch | None,
    ) -> InThisEpoch:
        ends = {(source, each.partition): each.ends for source, some in news.items() for each in some.ranges}
        steps = self.open_plan.steps
        # A joined side that is read again may be large, even if the epoch has few items.
        is_small = self._small.begin(may_be=engine != "inprocess" and not self._sides.are_due(now))
        self._writers = [counting(job.writer) for job in jobs]
        return InThisEpoch(
            {source: some.ranges for source, some in news.items()},
            self._writers,
            {place: time.partition_time(*place, ends[place[1:]]) for place in read},
            {step: time.step_time(step, number, read) for step in steps},
            {step: states.of(step, number) for step in steps},
            self._taken.times.append,
            self._taken.steps.append,
            self._sides.at(now),
            is_small,
            engine,
        )

    def _results(self, epoch: InThisEpoch) -> dict[str, list[Receipt]]:
        """Run the plan, and return the receipts of each sink that has any."""
        running = self._context.running_engine().submit(epoch_plan(self.open_plan, epoch))
        self._begins(running)
        running.start()
        receipts: dict[str, list[Receipt]] = {}
        for write, given in zip(self._plan.writes, running.result(), strict=True):
            own, items = counted_receipts(given)
            self._taken.counts[write.stage] += items
            if own:
                receipts[write.stage] = own
        return receipts

    def _record(
        self,
        before: LogRecord,
        number: int,
        now: float,
        news: Mapping[str, EpochInput],
        time: EventTime,
        read: Sequence[TimedPartition],
        receipts: Mapping[str, Sequence[Receipt]],
        states: StatesOfSteps,
    ) -> tuple[LogRecord, StatesOfSteps]:
        after, times = states.after(self._taken.steps), time.after(self._taken.times, read)
        record = LogRecord(
            number,
            before.token,
            now,
            before.published + 1,
            {source: some.mark for source, some in news.items()},
            times,
            time.steps_after(self._taken.steps, after.deadlines),
            receipts,
            after.changes(),
            after.index() if number % EPOCHS_PER_CHECKPOINT == 0 else None,
            self._counts(before.counts),
            time.clock_after(times),
            lease=before.lease,
        )
        return record, after

    def _counts(self, before: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the totals of each stage since the job began: items emitted, late items, failed items."""
        counts = {stage: dict(numbers) for stage, numbers in before.items()}
        for stage, items in self._taken.counts.items():
            numbers = counts.setdefault(stage, {})
            numbers["items_out"] = numbers.get("items_out", 0) + items
        for receipt in self._taken.steps:
            numbers = counts.setdefault(receipt.stage, {})
            numbers["late"] = numbers.get("late", 0) + receipt.late
            for edges in receipt.edges if self._counts_all else ():
                add_edges(counts, edges)
        for letters in self._letters:
            numbers = counts.setdefault(letters.stage, {})
            numbers["dead_letters"] = numbers.get("dead_letters", 0) + letters.count
        return counts

    def obstacle(self, states: StatesOfSteps) -> str:
        """Return why epochs cannot move from this process to others; an empty string if they can."""
        return obstacle_to_moving(self._job, states.version, (*self._writers, states.files))

    # ------------------------------------------------------------------------------------------------------- publish

    def publish(self, record: LogRecord) -> None:
        """Publish the output that a record names. It may have been published before, also by another process.

        Raises:
            IllegalStateError: the output of tasks was removed, or is for a sink that this pipeline does not have.
            Exception: a sink fails.
        """
        if strange := record.receipts.keys() - self._ends.keys():
            raise IllegalStateError(
                f"what epoch {record.number} of the job {self._job} gave has still to be published by the stages "
                f"{', '.join(map(repr, sorted(strange)))}, which this pipeline has not: submit the pipeline as it was, "
                "with JobConfig(force=True), and change it when that has run"
            )
        begun = self._begun.pop(record.number, {})
        for stage, end in self._ends.items():
            if stage not in record.receipts:
                continue
            # An epoch of an earlier driver was not begun in this process.
            end.publish(begun.get(stage) or end.begin(self._job, record.number), record)
        for stage, job in begun.items():
            if stage not in record.receipts:
                with suppress(Exception):  # It has nothing to publish; a sink of the user's may raise.
                    getattr(job, "end_empty", job.abort)()
        for each in self._letters:
            each.published()

    def tidy(self, record: LogRecord, keep: float) -> None:
        """Make the sinks of a record remove a part of their garbage older than `keep` seconds.

        The record is published, so an old file that cannot be read or removed is no reason to fail: it is logged.
        """
        for stage, end in self._ends.items():
            tidy = getattr(end.target, "tidy", None)
            if tidy is not None and stage in record.receipts:
                try:
                    tidy(keep)
                except DStreamError as error:
                    _log.warning("stage %r: what is old was not removed: %s", stage, error)

    def show_held(self) -> None:
        """Make sinks publish the deferred output of published epochs, if it is due.

        Raises:
            Exception: a sink fails.
        """
        show_held(self._ends.values(), self._job)

    def abort(self, number: int) -> None:
        """Remove the uncommitted output of the tasks of an epoch."""
        for job in self._begun.pop(number, {}).values():
            with suppress(Exception):  # A sink of the user's may raise; the others must be aborted nevertheless.
                job.abort()


def _reads_only(plan: PipelinePlan) -> PipelinePlan:
    return replace(plan, last_nodes=tuple(each for each in plan.last_nodes if _reads(each[1])))


def _reads(node: Node) -> bool:
    """Return whether a node reads a source, or deals with the failures of one that does."""
    while isinstance(node, Recover):
        node = node.upstream
    return isinstance(node, Read)
