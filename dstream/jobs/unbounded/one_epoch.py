"""`EpochRunner`: one epoch, from what it reads to the publication of its record. The loop and tests call the same."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import MappingProxyType
from typing import Any

from dstream.errors import DStreamError, IllegalStateError
from dstream.executor.ready_suppliers import ReadySuppliers
from dstream.failures import naming
from dstream.jobs.counted_writers import counted_receipts, counting
from dstream.jobs.edge_counts import add_edges
from dstream.jobs.unbounded.epoch_log import CHECKPOINT_EVERY
from dstream.jobs.unbounded.epoch_plan import InThisEpoch, epoch_plan
from dstream.jobs.unbounded.log_record import LogRecord, Place
from dstream.jobs.unbounded.open_plan import OpenPlan, open_plan
from dstream.jobs.unbounded.ranges import News
from dstream.jobs.unbounded.refreshed_sides import RefreshedSides
from dstream.jobs.unbounded.source_times import EventTime
from dstream.jobs.unbounded.state_of_steps import StatesOfSteps
from dstream.jobs.unbounded.steps_of_plan import Processors, with_kept_parallelism
from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.plan import Read
from dstream.plan.core_of_graphs import Processing
from dstream.plan.graph_parallelism import with_parallelism
from dstream.plan.vertex_graph import VertexGraph
from dstream.plan.walk import steps_of_inputs
from dstream.spi import MapWriter, Running, Runtime, WriteJob, Writer
from dstream.spi.epochs import PartitionReceipt, StepReceipt
from dstream.spi.sink import Receipt, Target
from dstream.state.kept_shards import kept_shards
from dstream.state.step_state import folder_of

__all__ = ["EpochRunner", "Ran"]

_log = logging.getLogger("dstream.jobs")


@dataclass(slots=True)
class Ran:
    """An epoch that has run and is not committed.

    Attributes:
        record: what commits it.
        states: the state of steps from then on.
        items: how many items were read of each source, by the name of its stage, as far as that is counted.
        seconds: how long the engine took.
    """

    record: LogRecord
    states: StatesOfSteps
    items: Mapping[str, int]
    seconds: float


@dataclass(slots=True)
class _Taken:
    """What tasks of one epoch told."""

    times: list[PartitionReceipt] = field(default_factory=list)
    steps: list[StepReceipt] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class EpochRunner:
    """Runs the epochs of one pipeline.

    Args:
        context: has the engine, and the collections that sinks write into.
        plan: the pipeline.
        job: names the job in its sinks.
        counts: whether the items of all stages are counted; otherwise only those that are read.
        begins: is told of each run of the engine before it starts, and may refuse it.
        processors: how many processors the vertices of the job have so far.
        guarantee: what processors are told.

    Attributes:
        open_plan: the plan with its sources.

    Raises:
        Exception: what a source, or a supplier of processors, raised.
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
        counted = (plan if counts else _reads_only(plan)).counting(self._taking)
        try:
            self.open_plan: OpenPlan = open_plan(counted, context, self._ready, guarantee)
            self._targets: list[Target[Any]] = [write.sink.open(context) for write in plan.writes]
        except BaseException as error:
            self.close(error)
            raise
        self._steps = steps_of_inputs(plan.several([None] * len(plan.writes)))
        self._begun: dict[int, list[WriteJob[Writer | MapWriter]]] = {}
        self._sides = RefreshedSides(self.open_plan.refreshed)

    def _taking(self, stage: str) -> Callable[[int], None]:
        """Return what takes the counts of a stage, epoch after epoch."""

        def take(items: int) -> None:
            self._taken.counts[stage] += items

        return take

    def _ready(self, node: Processing) -> VertexGraph:
        """Return the graph of an operation as it runs in this job."""
        graph = with_kept_parallelism(node, self._processors)
        if any(each.parallelism == -1 for each in graph.vertices):
            graph = with_parallelism(graph, self._context.running_engine().cores())
        return self._suppliers.graph(graph, self._guarantee)

    def close(self, error: BaseException | None = None) -> None:
        """Close the processors that are in this process, and the suppliers.

        Args:
            error: why the job does not go on here; None if it has ended.
        """
        kept_shards.forget(self._job)
        self._suppliers.close(error)

    # ---------------------------------------------------------------------------------------------------------- run

    def run(
        self, before: LogRecord, news: Mapping[str, News], time: EventTime, states: StatesOfSteps, now: float
    ) -> Ran:
        """Run what is between two records, and return what commits it. Nothing is visible before that.

        Args:
            before: the last record.
            news: what is read of each source.
            time: the event time of the epoch.
            states: the state of steps, as `before` says.
            now: the one reading of the clock.

        Raises:
            IllegalStateError: a sink says that the epoch was published before.
            Exception: what a function of the user's raised, or what kept the engine from running.
        """
        number, began = before.number + 1, perf_counter()
        jobs = self._begin(number)
        try:
            read = self._places(news)
            receipts = self._results(self._inputs(number, now, news, time, states, read, jobs))
            record, after = self._record(before, number, now, news, time, read, receipts, states)
        except BaseException:
            self.abort(number)
            raise
        items = {stage: self._taken.counts[stage] for stage in news}
        return Ran(record, after, items, perf_counter() - began)

    def _begin(self, number: int) -> list[WriteJob[Writer | MapWriter]]:
        self._taken = _Taken()
        jobs: list[WriteJob[Writer | MapWriter]] = []
        self._begun[number] = jobs
        for place, target in enumerate(self._targets):
            jobs.append(target.begin(self._name(place), number))
            if jobs[-1].is_done:
                self.abort(number)
                raise IllegalStateError(
                    f"{self._plan.writes[place].sink.label} has epoch {number} of {self._name(place)!r} already, of "
                    "which this job knows nothing: submit it under another name, or let the sink have another job="
                )
        return jobs

    def _name(self, place: int) -> str:
        """Return what a sink calls this job.

        It has the id of the job: one that is started afresh counts its epochs from 1 again, and they are not those that
        were done. And it has the name of the stage, so that a pipeline that was changed meets its own epochs only.
        """
        write = self._plan.writes[place]
        own = f"{self._job}-{folder_of(write.stage)}"
        return own if write.sink.job is None else f"{write.sink.job}:{own}"

    def _places(self, news: Mapping[str, News]) -> list[Place]:
        """Return the places of which tasks tell the time."""
        return [
            Place(stamp, source, each.partition)
            for stamp, sources in self.open_plan.sources_of.items()
            for source in sorted(sources)
            for each in news[source].ranges
        ]

    def _inputs(
        self,
        number: int,
        now: float,
        news: Mapping[str, News],
        time: EventTime,
        states: StatesOfSteps,
        read: Sequence[Place],
        jobs: Iterable[WriteJob[Writer | MapWriter]],
    ) -> InThisEpoch:
        ends = {(source, each.partition): each.ends for source, some in news.items() for each in some.ranges}
        steps = self.open_plan.steps
        return InThisEpoch(
            {source: some.ranges for source, some in news.items()},
            [counting(job.writer) for job in jobs],
            {place: time.partition_time(*place, ends[place[1:]]) for place in read},
            {step: time.tick(step, number, read) for step in steps},
            {step: states.of(step, number) for step in steps},
            self._taken.times.append,
            self._taken.steps.append,
            self._sides.at(now),
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
        news: Mapping[str, News],
        time: EventTime,
        read: Sequence[Place],
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
            after.index() if number % CHECKPOINT_EVERY == 0 else None,
            self._counts(before.counts),
            time.clock_after(times),
            lease=before.lease,
        )
        return record, after

    def _counts(self, before: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return what stages gave on, and what was late there, since the job began."""
        counts = {stage: dict(numbers) for stage, numbers in before.items()}
        for stage, items in self._taken.counts.items():
            numbers = counts.setdefault(stage, {})
            numbers["items_out"] = numbers.get("items_out", 0) + items
        for receipt in self._taken.steps:
            numbers = counts.setdefault(receipt.stage, {})
            numbers["late"] = numbers.get("late", 0) + receipt.late
            for edges in receipt.edges if self._counts_all else ():
                add_edges(counts, edges)
        return counts

    # ------------------------------------------------------------------------------------------------------- publish

    def publish(self, record: LogRecord) -> None:
        """Let everybody see what a record names. It may have been published before, also by another process.

        Raises:
            IllegalStateError: what tasks have written is no more, or is for a sink that this pipeline has not.
            Exception: a sink fails.
        """
        stages = [write.stage for write in self._plan.writes]
        if strange := record.receipts.keys() - set(stages):
            raise IllegalStateError(
                f"what epoch {record.number} of the job {self._job} gave has still to be published by the stages "
                f"{', '.join(map(repr, sorted(strange)))}, which this pipeline has not: submit the pipeline as it was, "
                "with JobConfig(force=True), and change it when that has run"
            )
        begun = self._begun.pop(record.number, None)
        for place, stage in enumerate(stages):
            if stage not in record.receipts:
                continue
            # A failure there, such as one of a function that merges, names the step as one in a task does.
            with naming(self._steps[place]):
                job = begun[place] if begun else self._targets[place].begin(self._name(place), record.number)
                if not job.is_done:
                    _commit(job, record, stage)
        for stage, job in zip(stages, begun or (), strict=False):
            if stage not in record.receipts:
                with suppress(Exception):  # It has nothing to publish; a sink of the user's may raise.
                    getattr(job, "end_empty", job.abort)()

    def tidy(self, record: LogRecord, keep: float) -> None:
        """Let sinks that a record was published to remove a little of what is older than so many seconds.

        The record is published, so an old file that cannot be read or removed is no reason to fail: it is logged.
        """
        for place, write in enumerate(self._plan.writes):
            tidy = getattr(self._targets[place], "tidy", None)
            if tidy is not None and write.stage in record.receipts:
                try:
                    tidy(keep)
                except DStreamError as error:
                    _log.warning("stage %r: what is old was not removed: %s", write.stage, error)

    def abort(self, number: int) -> None:
        """Remove what the tasks of an epoch have written that is not committed."""
        for job in self._begun.pop(number, ()):
            with suppress(Exception):  # A sink of the user's may raise; the others are to be whole all the same.
                job.abort()


def _reads_only(plan: PipelinePlan) -> PipelinePlan:
    return replace(plan, last_nodes=tuple(each for each in plan.last_nodes if isinstance(each[1], Read)))


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
