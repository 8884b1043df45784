"""`UnboundedRun`: the loop of an unbounded job in its driver, epoch after epoch."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any
from uuid import uuid4

from dstream.base.threads import contextmanager
from dstream.errors import CancelledError, EngineError, IllegalStateError, JobTakenOverError, UnstableKeyError
from dstream.failures import naming
from dstream.jobs.config import JobConfig
from dstream.jobs.runs import JobContext, Stop
from dstream.jobs.snapshots import Snapshots
from dstream.jobs.state import JobStatus
from dstream.jobs.unbounded.epoch_metrics import EpochMetrics
from dstream.jobs.unbounded.epoch_runner import EpochRunner, Ran
from dstream.jobs.unbounded.log import EpochLog, LogRecord
from dstream.jobs.unbounded.placement import EngineChoice, EpochLoad
from dstream.jobs.unbounded.plans import Processors, processors_of
from dstream.jobs.unbounded.ranges import EpochInput, ranges_of
from dstream.jobs.unbounded.rate_control import BatchSize, PollInterval
from dstream.jobs.unbounded.resumption import check_are_same, fitting, is_of, marks_of, with_plan
from dstream.jobs.unbounded.state import LogCompaction, StatesOfSteps, states_of_steps
from dstream.jobs.unbounded.watermarks import EventTime, LoadedPolicies, RetainedWatermarks, log_late
from dstream.jobs.upgrades import Memory
from dstream.pipeline.plan import PipelinePlan
from dstream.plan import SourceLocation, explained
from dstream.spi import Running
from dstream.spi.records import StateFiles
from dstream.spi.runtime import EngineOfEpoch

__all__ = ["UnboundedRun"]


_log = logging.getLogger("dstream.jobs")

_SHARDS = 64
_EPOCH = 0.2
"""Target seconds of an epoch, unless the user sets another length."""
_LONGEST_EPOCH = 1.0
"""Maximal seconds of an epoch with a long backlog, unless the user sets the length of epochs."""
_LOOK, _LONGEST_LOOK = 0.01, 0.05
"""Seconds between two polls of sources on the local engine, where an epoch costs milliseconds."""


class UnboundedRun:
    """Run of an unbounded job. It can be asked to stop between two epochs; the output of a void run is discarded.

    Args:
        context: has the engine, and the collections that sinks write into.
        plan: the pipeline.
        job: the id of the job, from which the names of its sinks' jobs are derived.
        log: its records.
        hint: the number of a published record; all earlier ones are published.
        config: its configuration.
        clock: returns the time.
        load: loads a pickle, if the storage allows it.
        place: where the user submitted the job.
        move: sets the status of the job.
        progressed: called after an epoch was published.
        drops: the job may drop the state of stages that the pipeline no longer has.

    Attributes:
        record: the last one that was committed.
    """

    def __init__(
        self,
        context: JobContext,
        plan: PipelinePlan,
        job: str,
        log: EpochLog,
        hint: int,
        config: JobConfig,
        clock: Callable[[], float],
        load: Callable[[bytes], Any],
        place: SourceLocation | None,
        move: Callable[[JobStatus], object],
        progressed: Callable[[], object] = lambda: None,
        drops: bool = False,
    ) -> None:
        self.stop: Stop | None = None
        self.is_void = False
        self.is_decided = False
        self.record: LogRecord | None = None
        self._context = context
        self._plan = plan
        self._job = job
        self._log = log
        self._hint = hint
        self._config = config
        self._clock = _in_floats(config.clock or clock)
        self._policies = LoadedPolicies(load)
        self._place = place
        self._move = move
        self._progressed = progressed
        self._drops = drops or config.force is True
        self._lock = threading.RLock()  # A log handler that is called for a status may call the job.
        # Never cleared: once it is set, the run ends at its next check.
        self._woken = threading.Event()
        self._running: Running | None = None
        self._is_committing = False
        self._measures = EpochMetrics()
        self._retained = RetainedWatermarks(config.retain_seconds)

    # ------------------------------------------------------------------------------------------------- from outside

    def ask_to_stop(self, is_at_once: bool) -> bool:
        """Ask the run to stop; False if its sources have ended. It ends its epoch first, unless `is_at_once`."""
        with self._lock:
            if self.is_decided or self.is_void:
                return False
            self.stop = Stop.after(self.stop, is_at_once)
        self._woken.set()
        if is_at_once:
            self.cancel()
        return True

    def give_up(self) -> bool:
        """Make the run void; False while it commits, which cannot be interrupted."""
        with self._lock:
            # A run that has to end its epoch first may take as long as the epoch.
            if self._is_committing or (self.stop is not None and not self.stop.is_at_once):
                return False
            self.is_void = self.is_void or not self.is_decided
        self._woken.set()
        return self.is_void

    def cancel(self) -> None:
        """Cancel the tasks that the engine runs for it."""
        running = self._running
        if running is not None:
            running.cancel()

    def progress(self) -> dict[str, Any]:
        """Return the progress of the run for the state of the job."""
        record = self.record
        if record is None:
            return {}
        metrics = self._measures.of(record, self._states, self._runner.open_plan.sources)
        return {"epoch": record.published, "log": record.number, "metrics": metrics}

    # ------------------------------------------------------------------------------------------------------ the run

    def work(self) -> None:
        """Run until all sources have ended.

        Raises:
            CancelledError: it has stopped on request.
            JobTakenOverError: another driver has the job.
            Exception: the exception of a user's function, or the reason why the job could not run.
        """
        several = self._plan.several([None] * len(self._plan.writes))
        with explained(several, "new_job", self._place), self._processors_closed():
            self._claim()
            with self._going_on():
                self._move(JobStatus.RUNNING)
            self._loop()
        with self._going_on():
            self.is_decided = True
        self._move(JobStatus.COMPLETING)

    @contextmanager
    def _processors_closed(self) -> Iterator[None]:
        """Start the runner of epochs, and close its processors at the end."""
        # In any case: processors that do not save lose their state when they move to another worker.
        guarantee = "at-least-once" if self._config.guarantee == "none" else self._config.guarantee or "exactly-once"
        self._runner = EpochRunner(
            self._context,
            self._plan,
            self._job,
            self._config.counts_items,
            begins=self._begin_running,
            processors=self._processors_before(),
            guarantee=guarantee,
        )
        failed: BaseException | None = None
        try:
            yield
        except BaseException as error:
            failed = error
            raise
        finally:
            self._runner.close(failed)

    def _processors_before(self) -> Processors:
        """Return the previous number of processors of vertices, in this job or in the job of its initial snapshot."""
        memory, begins_with = Memory.of(self._log, self._hint), self._config.initial_snapshot
        if not memory.sources and not memory.steps and begins_with is not None:
            memory = Snapshots(self._context).find(begins_with).memory
        return processors_of(memory.steps)

    def _begin_running(self, running: Running) -> None:
        with self._going_on():
            self._running = running

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """Run the block only if the run was not asked to stop, and block such requests meanwhile.

        An abandoned run, which could not stop, may get here while another run is in progress.
        """
        with self._lock:
            self._check_stop()
            yield

    def _check_stop(self) -> None:
        if self.is_void or (self.stop is not None):
            raise CancelledError("this job was asked to stop")

    # ----------------------------------------------------------------------------------------------------- beginning

    def _claim(self) -> None:
        """Become the committing driver, and publish the output that the last record names."""
        before, mine = self._log.claim(self._hint, self._clock, self._first_record, self._going_on)
        # Epochs that are published by the state of the job are not looked up in the sinks, which may have forgotten
        # them: Kafka does so a week after the last commit.
        if (last := self._log.last_run(before)).number > self._hint:
            self._publish_left(last, mine)
        # After the publication: a record with a complete index ends the search for epochs that were not published.
        if self._config.start_at is not None:
            before = mine = self._started_over(self._config.start_at, mine)
        if (changed := self._with_plan(before, mine)) is not None:
            before = mine = changed
        # From the record: the clock may lag the clock of the previous driver.
        self._started_at = mine.now
        self._is_first = True
        self._has_reported_ends = False
        self._states = self._restored(before)
        self._folding = LogCompaction(self._log, self._states.files, self._config.keep_seconds)
        self.record = mine
        epoch_length = self._config.epoch_length or _EPOCH
        engine, small_here = self._context.running_engine, self._config.small_epochs == "here"
        self._engines = EngineChoice(self._job, engine, small_here, lambda: self._runner.obstacle(self._states))
        self._looks = _looks(engine().name, self._config.epoch_length)
        self._pace = PollInterval(*self._looks[None])
        sources, most = self._runner.open_plan.sources, self._config.max_items
        # Of each engine: the time of an item on one does not show that on the other.
        longest = _LONGEST_EPOCH if self._config.epoch_length is None else epoch_length
        size = BatchSize(epoch_length, most=most, longest=longest)
        self._admissions = {each: dict.fromkeys(sources, size) for each in self._looks}

    def _publish_left(self, last: LogRecord, mine: LogRecord) -> None:
        """Publish the output of the last record, unless it was removed and its items are read again anyway."""
        start_at = self._config.start_at
        try:
            self._publish(last, mine)
        except IllegalStateError as error:
            if start_at is None or self._log.at(start_at).number >= last.number:
                raise
            _log.warning("job %s: epoch %d is not published but read again: %s", self._job, last.published, error)

    def _started_over(self, start_at: Any, mine: LogRecord) -> LogRecord:
        """Write a record that continues after an earlier one, and return it."""
        earlier = self._log.at(start_at)
        states = self._restored(earlier)
        again = dataclasses.replace(
            earlier.claimed(mine.number + 1, mine.token, mine.now, mine.lease),
            # A complete index: a search for state, or for an unpublished epoch, stops at this record.
            index=states.index(),
            published=mine.published,
        )
        self._log.put(again)
        return again

    def _restored(self, before: LogRecord) -> StatesOfSteps:
        """Return where the state of steps is, from the last record."""
        plan = self._runner.open_plan
        files = self._state_files() if plan.steps else None
        records = self._since_checkpoint(before)
        return self._states_of(fitting(records, plan) if self._drops else records, files)

    def _since_checkpoint(self, before: LogRecord) -> list[LogRecord]:
        steps = self._runner.open_plan.steps
        return self._log.since_checkpoint(before) if steps or before.steps else [before]

    def _with_plan(self, before: LogRecord, mine: LogRecord) -> LogRecord | None:
        """Put a record that is of this pipeline, and return it; None if the last one is."""
        plan = self._runner.open_plan
        if is_of(self._since_checkpoint(before), plan):
            return None
        self._check_fits(before)
        index = self._restored(before).index()
        changed = with_plan(before.claimed(mine.number + 1, mine.token, mine.now, mine.lease), plan, index)
        self._log.put(changed)
        return changed

    def _state_files(self) -> StateFiles:
        place = self._config.files_at
        context = self._context if place is None else self._context.elsewhere(place)
        return context.running_storage().state_files(self._job)

    def _states_of(self, records: Sequence[LogRecord], files: StateFiles | None) -> StatesOfSteps:
        steps, shards = self._runner.open_plan.steps, self._config.shards or _SHARDS
        return states_of_steps(self._job, uuid4().hex, files, steps, records, shards)

    def _first_record(self) -> LogRecord:
        """Return where a new job begins."""
        now, plan = self._clock(), self._runner.open_plan
        if self._config.initial_snapshot is not None:
            files = self._state_files() if plan.steps else None
            return Snapshots(self._context).restore(self._config.initial_snapshot, now, files)
        first = LogRecord(0, "", now, sources=marks_of(plan, {}, now), index={})
        return dataclasses.replace(first, index=self._states_of([first], None).index())

    def _check_fits(self, before: LogRecord) -> None:
        """Refuse a pipeline that would lose offsets or state."""
        plan = self._runner.open_plan
        if before.sources.keys() - plan.sources.keys() and not self._drops:
            read, reads = (", ".join(map(repr, sorted(names))) for names in (before.sources, plan.sources))
            raise IllegalStateError(
                f"the job has read the stages {read} so far, and this pipeline reads {reads}: "
                "stages that read must keep their names; submit it under another name to start afresh"
            )
        if not self._config.force:
            check_are_same(plan, before.sources)

    # ------------------------------------------------------------------------------------------------------ the loop

    def _loop(self) -> None:
        while True:
            with self._lock:
                self._check_stop()
            self._runner.show_held()
            self._pace.begins()
            before = self.record
            assert before is not None, "it was claimed"
            now = max(self._clock(), before.now)  # A clock that was set back does not advance.
            engine = self._engines.next(monotonic())
            self._pace.shortest, self._pace.longest = self._looks[engine]
            news = self._news(before, now, engine)
            time = self._time(before, news, now)
            if any(some.ranges for some in news.values()) or time.is_due():
                self._epoch(before, news, time, now, engine)
                self._woken.wait(self._pace.after_news())
            elif all(some.mark.has_ended for some in news.values()):
                # Steps downstream of endless processors are notified of their end in exactly one more epoch.
                if self._has_reported_ends or not self._runner.open_plan.is_fed_by_processors:
                    return
                self._has_reported_ends = True
                self._epoch(before, news, self._time(before, news, now, is_over=True), now, engine)
            else:
                self._woken.wait(self._pace.after_nothing())

    def _news(self, before: LogRecord, now: float, engine: EngineOfEpoch | None) -> dict[str, EpochInput]:
        found, plan, keep = {}, self._runner.open_plan, self._config.keep_seconds
        for stage, source in plan.sources.items():
            mark = before.sources[stage]
            most = self._admissions[engine][stage].of_each(len(mark.offsets) - len(mark.left_out))
            with naming(plan.read_steps[stage]):
                found[stage] = ranges_of(source, mark, most, now, keep)
        return found

    def _time(
        self, before: LogRecord, news: Mapping[str, EpochInput], now: float, *, is_over: bool = False
    ) -> EventTime:
        marks = {stage: some.mark for stage, some in news.items()}
        others = (self._started_at, self._is_first, self._policies.load, self._retained)
        return EventTime(self._runner.open_plan, before, marks, now, *others, is_over=is_over)

    def _epoch(
        self,
        before: LogRecord,
        news: Mapping[str, EpochInput],
        time: EventTime,
        now: float,
        engine: EngineOfEpoch | None,
    ) -> None:
        began = monotonic()
        try:
            ran = self._runner.run(before, news, time, self._states, now, engine)
        except Exception as error:
            if isinstance(error, UnstableKeyError) and self._engines.stay_on_spark():
                return  # Workers have one seed for the hashes of such keys; the epoch runs again on Spark.
            # A driver that took the job over removes files that this one still reads: not a failure of the job.
            self._log.check_is_last(before, error)
            if self._engines.return_here(error):
                return  # A job in this process must not fail because of a move that it did not request.
            raise
        self._commit(ran)
        self._retained.note(now, time.of_stamps(ran.record.times))
        seconds = monotonic() - began
        self._measures.take(seconds, ran.seconds, news, engine)
        if not self._is_first:  # In the first epoch workers start, which is not a cost of items.
            self._learn(ran, began, seconds, news)
        self._is_first = False
        self._progressed()
        log_late(self._job, before, ran.record)
        try:
            self._folding.after(ran.record)
            self._runner.tidy(ran.record, self._config.keep_seconds)
        except EngineError as error:  # The next one finds the rest.
            _log.warning("job %s: old records were not removed: %s", self._job, error)

    def _learn(self, ran: Ran, began: float, seconds: float, news: Mapping[str, EpochInput]) -> None:
        """Record the load of an epoch, for the batch sizes and the engines of later epochs."""
        admissions, most = self._admissions[ran.engine], self._config.max_items or math.inf
        left, has_more = 0.0, False
        for stage, admission in admissions.items():
            items, partitions = ran.items.get(stage, 0), max(1, len(news[stage].mark.offsets))
            known = news[stage].expected
            is_full = known is None and items >= partitions * admission.of_each(partitions)
            has_more = has_more or is_full
            # After a full epoch an equal backlog is expected.
            behind = items * is_full if known is None else known
            left += min(behind, most * partitions)
            admissions[stage] = admission.after(items, seconds, behind)
        self._engines.after(EpochLoad(began, seconds, sum(ran.items.values()), left, has_more))

    def _commit(self, ran: Ran) -> None:
        with self._lock:
            if self.is_void or (self.stop is not None and self.stop.is_at_once):
                self._runner.abort(ran.record.number)
                self._check_stop()
            # Under the lock: once the record may exist, `give_up` must not make the run void.
            self._is_committing = True
        try:
            self._put(ran.record)
            self._states = ran.states
            self._publish(ran.record, ran.record)
            # After the publication: the state of the job marks this record as published, and a later driver relies on
            # it.
            self.record = ran.record
        finally:
            self._is_committing = False

    def _publish(self, record: LogRecord, mine: LogRecord) -> None:
        """Publish the output of a record; after a failure, check whether another driver has written one after `mine`.

        It has published the same, while this one paused, and removed the published records.
        """
        try:
            self._runner.publish(record)
        except Exception as error:
            self._log.check_is_last(mine, error)
            raise

    def _put(self, record: LogRecord) -> None:
        try:
            self._log.put(record)
        except JobTakenOverError:
            self._runner.abort(record.number)
            raise


def _looks(engine: str, epoch_length: float | None) -> dict[EngineOfEpoch | None, tuple[float, float]]:
    """Return the seconds between two polls of sources, with and without news, on each engine.

    Args:
        engine: the name of the engine of the context, which may run epochs on two others.
        epoch_length: the setting of the user.
    """
    whole = epoch_length or _EPOCH
    here = min(_LOOK, whole), min(_LONGEST_LOOK, whole)
    small = here if epoch_length is None else (whole, whole)
    return {None: here if engine == "local" else (whole, whole), "inprocess": small, "spark": (whole, whole)}


def _in_floats(clock: Callable[[], float]) -> Callable[[], float]:
    """Return a clock in floats, as in records: the clock of a test may return ints."""
    return lambda: float(clock())
