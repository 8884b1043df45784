"""`JobRun` and `BoundedRun`: one run of a job, from the plan of its pipeline to the commits of its sinks.

Every sink begins, and every target of dead letters; the plan runs; all receipts are written to one record; every sink
publishes, in the order of `write_to`, and then the letters of each stage. Until that record is written the run can be
cancelled without a trace. From then on the job is decided: its driver publishes the rest, and reads nothing.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from time import monotonic
from typing import Any, Protocol

from dstream.base.environment import VERSION
from dstream.base.pickling import dumps
from dstream.errors import CancelledError, IllegalStateError, JobTakenOverError, UnsupportedError
from dstream.failures import naming, shown
from dstream.jobs.receipts import StagedLetters, add_edges
from dstream.jobs.records import EpochRecord, JobRecords, Receipts, packed
from dstream.jobs.state import JobStatus
from dstream.pipeline.plan import PipelinePlan, PlannedWrite
from dstream.plan import Node, Read, SourceLocation, check, explained, is_bounded, rewrite, topological
from dstream.plan.operations.ends import Several
from dstream.plan.walk import opened, steps_of_inputs
from dstream.spi import MapWriter, Running, Runtime, Sink, Storage, WriteJob, Writer
from dstream.spi.sink import Receipt, Target, counted_receipts, counting
from dstream.stream.runtime import Delivery

__all__ = ["BoundedRun", "JobContext", "JobRun", "Stop", "keep_plan", "plan_of", "read_plan", "written_plan"]


class JobContext(Runtime, Protocol):
    """An engine, and a storage."""

    def renew_engine(self) -> None:
        """Drop an engine that has lost its Java or its cluster; the next run starts another one."""
        ...

    def elsewhere(self, storage: str) -> JobContext:
        """Return this context with another storage."""
        ...

    def running_storage(self) -> Storage:
        """Return the storage, opened if it was not.

        Raises:
            IllegalStateError: the context is closed.
        """
        ...


def plan_of(pipeline: Any, call: str) -> PipelinePlan:
    """Return the plan of a pipeline that a job runs; refuse one that cannot run."""
    plan = pipeline if isinstance(pipeline, PipelinePlan) else getattr(pipeline, "plan", None)
    plan = plan() if callable(plan) else plan
    if not isinstance(plan, PipelinePlan):
        raise TypeError(f"{call}() takes a pipeline, not {shown(pipeline)}")
    if not plan.writes:
        raise ValueError(f"{call}() takes a pipeline that ends in a sink; this one writes to none")
    _check_that_it_ends(plan, call)
    return plan


def _check_that_it_ends(plan: PipelinePlan, call: str) -> None:
    several = plan.several([None] * len(plan.writes))
    if all(not isinstance(node, Read) or getattr(node.source, "bounded", True) for node in topological(several)):
        return
    rewritten = rewrite(several)
    for write, end in zip(plan.writes, rewritten.ends, strict=True):
        if not is_bounded(end):
            raise UnsupportedError(
                f"{call}(): the stage {write.stage!r} takes items that never end, and cannot be read range by range: "
                "limit(n) ends them, and stream_source_from(...) makes a source that needs no end"
            )
    check(rewritten, needs_end=True)


_LARGEST_PLAN = 8 * 2**20
"""Maximal bytes of a stored pipeline: a larger one contains data, for which records are not intended."""


def keep_plan(plan: PipelinePlan, identity: str, records: JobRecords) -> None:
    """Store the pipeline of a job for other processes, if it can be pickled; the job runs without it as well."""
    data = _pickled(plan)
    with suppress(Exception):
        if 0 < len(data) <= _LARGEST_PLAN:
            records.keep_pickle(identity, "plan", data)
        else:  # The pipeline of the previous driver may be another one.
            records.forget_pickle(identity, "plan")


def _pickled(plan: PipelinePlan) -> bytes:
    """Return a pipeline as others load it; nothing if it cannot travel."""
    try:
        return written_plan(plan)
    except KeyboardInterrupt:
        raise
    except BaseException:  # Its objects may raise anything when they are pickled.
        return b""


def written_plan(plan: PipelinePlan) -> bytes:
    """Return a pipeline as a record: the versions of the writer, and a pickle, which is code of those versions.

    Raises:
        Exception: an object in it raised it while it was pickled.
    """
    return f"{_versions()}\n".encode() + dumps(plan)


def read_plan(data: bytes, title: str, load: Callable[[bytes], Any]) -> PipelinePlan:
    """Return the plan of a record.

    Args:
        data: the content of the record.
        title: the name of the job in messages.
        load: loads a pickle, if the storage allows it.

    Raises:
        IllegalStateError: other versions wrote it, or it is damaged.
        TypeError: the storage does not allow pickles.
    """
    versions, _, pickle = data.partition(b"\n")
    found = versions.decode(errors="replace")
    if found != _versions():
        written_by = found if _VERSIONS.fullmatch(found) else "another version of dstream"
        raise IllegalStateError(
            f"the pipeline of {title} was stored by {written_by}, and this is {_versions()}: submit it again"
        )
    plan = load(pickle)
    if not isinstance(plan, PipelinePlan):
        raise IllegalStateError(f"the pipeline of {title} is damaged: it is {type(plan).__name__}")
    return plan


def _versions() -> str:
    return f"dstream {VERSION} on Python {sys.version_info.major}.{sys.version_info.minor}"


_VERSIONS = re.compile(r"dstream [0-9A-Za-z.+]{1,40} on Python [0-9]{1,3}\.[0-9]{1,3}")


class Stop:
    """The request that a run ends.

    Attributes:
        is_at_once: it does not end its epoch first.
        at: the time of the request, by a monotonic clock.
    """

    def __init__(self, is_at_once: bool) -> None:
        self.is_at_once = is_at_once
        self.at = monotonic()

    @staticmethod
    def after(before: Stop | None, is_at_once: bool) -> Stop:
        """Return the effective request after an earlier one: an immediate stop is never revoked."""
        return before if before is not None and (before.is_at_once or not is_at_once) else Stop(is_at_once)


class JobRun(Protocol):
    """Run of a job.

    Attributes:
        stop: the request that it ends, or None.
        is_void: its output is dropped.
        is_decided: it is not stopped any more.
    """

    stop: Stop | None
    is_void: bool
    is_decided: bool

    def ask_to_stop(self, is_at_once: bool) -> bool:
        """Ask the run to stop; False if it cannot be stopped any more. A second request may make it stop sooner."""
        ...

    def give_up(self) -> bool:
        """Make the run void; False if it has to end regularly."""
        ...

    def cancel(self) -> None:
        """Cancel the tasks that the engine runs for it."""
        ...

    def progress(self) -> dict[str, Any]:
        """Return the progress of the run: fields of `JobState`."""
        ...

    def work(self) -> None:
        """Run.

        Raises:
            CancelledError: it has stopped on request.
            JobTakenOverError: another driver has the job.
            Exception: the exception of a user's function, or the reason why the job could not run.
        """
        ...


class BoundedRun:
    """Run of a bounded job. It can be asked to stop until it is committed; the output of a void run is discarded.

    Args:
        context: has the engine, and the collections that sinks write into.
        plan: the pipeline.
        job: the id of the job, from which the names of its sinks' jobs are derived.
        epoch: the record of the receipts.
        place: where the user submitted the job.
        move: sets the status of the job.
        counts: whether items are counted.

    Attributes:
        counted: the number of items that stages have emitted, by their names; and sinks written, in entries for maps.
        edges: the number of items of each inbound and outbound edge of the vertices of graphs.
    """

    def __init__(
        self,
        context: Runtime,
        plan: PipelinePlan,
        job: str,
        epoch: EpochRecord,
        place: SourceLocation | None,
        move: Callable[[JobStatus], object],
        counts: bool = True,
    ) -> None:
        self.counted: dict[str, int] = {}
        self.edges: dict[str, dict[str, Any]] = {}
        self.stop: Stop | None = None
        self.is_void = False
        self.is_decided = False
        self._context = context
        self._plan = plan
        self._letters: list[StagedLetters] = []
        self._job = job
        self._epoch = epoch
        self._place = place
        self._move = move
        self._counts = counts
        self._lock = threading.RLock()  # A log handler that is called for a status may call the job.
        self._running: Running | None = None
        self._begun: list[WriteJob[Writer | MapWriter]] = []

    # ------------------------------------------------------------------------------------------------- from outside

    def ask_to_stop(self, is_at_once: bool) -> bool:
        """Ask the run to stop; False if it is decided, or was decided by an earlier run."""
        with self._lock:
            if self.is_decided or self._epoch.receipts is not None or self.is_void:
                return False
            self.stop = Stop.after(self.stop, is_at_once)
        self.cancel()
        return True

    def give_up(self) -> bool:
        """Make the run void; False if it is decided."""
        with self._lock:
            self.is_void = self.is_void or not self.is_decided
            return self.is_void

    def cancel(self) -> None:
        """Cancel the tasks that the engine runs for it."""
        running = self._running
        if running is not None:
            running.cancel()

    def publication(self) -> tuple[list[str], list[str]] | None:
        """Return the sinks that have published, and those that have not; None of a run that is not decided."""
        receipts = self._epoch.receipts
        if receipts is None:
            return None
        # Not strict: `_begin` may have failed at one of them, and the letters follow the sinks.
        sinks = [(write.sink.label, job.is_done) for write, job in zip(self._plan.writes, self._begun, strict=False)]
        return [label for label, is_done in sinks if is_done], [label for label, is_done in sinks if not is_done]

    def progress(self) -> dict[str, Any]:
        """Return the progress of the run, once it is committed."""
        counted: dict[str, dict[str, Any]] = {stage: {"items_out": n} for stage, n in self.counted.items()}
        counted |= self.edges
        for letters in self._letters:
            counted.setdefault(letters.stage, {})["dead_letters"] = letters.count
        return {"epoch": 1, "metrics": {"stages": counted}}

    # ------------------------------------------------------------------------------------------------------ the run

    def work(self) -> None:
        """Run, and commit.

        Raises:
            CancelledError: it has stopped on request.
            JobTakenOverError: another driver has the job.
            Exception: the exception of a user's function, or the reason why the job could not run.
        """
        try:
            several = self._begin()
            with explained(several, "new_job", self._place):
                was_decided = self._epoch.receipts is not None
                if not was_decided or not self._published_before(several):
                    self._run(several, was_decided)
        except BaseException:
            # Decided output remains for the next driver, which publishes it.
            if not self.is_decided:
                self._abort()
            raise

    def _staging(self, stage: str, node: Node, delivery: Delivery) -> StagedLetters:
        """Return the staging of a stage's dead letters: their receipts follow the receipts of the sinks."""
        place = len(self._plan.writes) + len(self._letters)
        self._letters.append(StagedLetters(stage, delivery, self._context, lambda _: self._begun[place]))
        return self._letters[-1]

    def _begin(self) -> Several:
        self._begun = []
        self._plan = self._plan.delivering(self._staging)
        for write in self._plan.writes:
            self._begin_job(write.sink, write.sink.open(self._context))
        for each in self._letters:
            self._begin_job(each.sink, each.target)
        return self._plan.several([job.writer for job in self._begun[: len(self._plan.writes)]])

    def _begin_job(self, sink: Sink[Any, Any], target: Target[Any]) -> None:
        self._begun.append(target.begin(sink.job or f"{self._job}-{len(self._begun) + 1}"))

    def _published_before(self, several: Several) -> bool:
        """Publish the output that an earlier run has committed; False if that cannot be done any more.

        The output of tasks is removed after a day. Then the sinks that are not done yet write the current items of the
        sources.
        """
        receipts = self._epoch.receipts
        assert receipts is not None, "the run is decided"
        self._decide()
        try:
            self._publish(several, receipts)
        # It is an IllegalStateError, too, and does not mean that the output is lost.
        except JobTakenOverError:
            raise
        except IllegalStateError:
            self._epoch.commit(None)
            self.is_decided = False
            return False
        self._move(JobStatus.COMPLETING)
        return True

    def _run(self, several: Several, was_decided: bool) -> None:
        are_open = [number for number, job in enumerate(self._begun) if not job.is_done]
        sinks = range(len(self._plan.writes))
        # Decided letters include items of all sinks, even of sinks that have published.
        takes_all = was_decided and any(number not in sinks for number in are_open)
        numbers = [number for number in sinks if takes_all or number in are_open]
        with self._lock:  # An abandoned run publishes nothing.
            self._check_stop()
            self._move(JobStatus.RUNNING)
        results = self._results(numbers) if numbers else {}
        receipts = {number: results[number] for number in are_open if number in results}
        packed(receipts)  # Receipts that do not fit into a record are refused while the output can still be removed.
        # Before the record is written: a cancel in between would remove the output that it names.
        self._decide()
        try:
            self._epoch.commit(receipts)
        # After any other error the receipts may have been written, so that their files must remain.
        except JobTakenOverError:
            self._abort()
            raise
        self._move(JobStatus.COMPLETING)
        self._publish(several, receipts)

    def _results(self, numbers: Sequence[int]) -> dict[int, list[Receipt]]:
        """Run the plan for the sinks `numbers`, and return the receipts of each, and of dead letters."""
        writes: list[PlannedWrite] = [self._plan.writes[number] for number in numbers]
        writers = [self._begun[number].writer for number in numbers]
        plan = self._plan.with_writes(writes)
        if self._counts:
            plan = plan.counting(self._taking, partial(add_edges, self.edges))
            writers = list(map(counting, writers))
        several = plan.several(writers)
        running = self._context.running_engine().submit(rewrite(opened(several, self._context)))
        with self._lock:
            self._check_stop()
            # A request before the run was known had nothing to cancel.
            self._running = running
        results: list[Any] = running.run_here()
        receipts = dict(zip(numbers, self._without_counts(writes, results) if self._counts else results, strict=True))
        return receipts | self._receipts_of_letters()

    def _receipts_of_letters(self) -> dict[int, list[Receipt]]:
        """Return the receipts of each stage whose letters were not published before, even if it has no letters."""
        receipts = {}
        for place, letters in enumerate(self._letters, len(self._plan.writes)):
            if not self._begun[place].is_done:
                receipts[place] = letters.taken() or letters.none_written(self._begun[place])
        return receipts

    def _taking(self, stage: str) -> Callable[[int], None]:
        """Return a function that records the counts of a stage."""
        self.counted[stage] = 0

        def take(items: int) -> None:
            self.counted[stage] += items

        return take

    def _without_counts(self, writes: Sequence[PlannedWrite], results: Sequence[Any]) -> list[Any]:
        """Record the counts, and return the receipts alone."""
        counted = [counted_receipts(receipts) for receipts in results]
        for write, (_, items) in zip(writes, counted, strict=True):
            self.counted[write.stage] = items
        return [receipts for receipts, _ in counted]

    def _decide(self) -> None:
        """Refuse requests to stop the run from now on."""
        with self._lock:
            self._check_stop()
            self.is_decided = True

    def _check_stop(self) -> None:
        if self.stop is not None or self.is_void:
            raise CancelledError("this job was asked to stop")

    def _publish(self, several: Several, receipts: Receipts) -> None:
        steps = steps_of_inputs(several)
        for number in sorted(receipts):
            # A failure in it, as of a function that merges, names the step as a failure in a task does.
            with naming(steps[number]) if number < len(steps) else nullcontext():
                self._begun[number].commit(receipts[number])
        for each in self._letters:
            each.published()

    def _abort(self) -> None:
        """Remove the output of the tasks of this run."""
        for job in self._begun:
            with suppress(Exception):  # A sink of the user's may raise; the others must be aborted nevertheless.
                job.abort()
