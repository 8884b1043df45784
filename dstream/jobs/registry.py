"""`Jobs`: the jobs of a context: submission, search, and their end with the context."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - its exit hook is registered before ours, and so runs after it
import dataclasses
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, wait
from typing import TYPE_CHECKING, Any, Protocol

from dstream.errors import IllegalStateError, JobExistsError
from dstream.failures import shown
from dstream.jobs.attachments import check_files
from dstream.jobs.config import JobConfig
from dstream.jobs.driver import Execution
from dstream.jobs.handle import Job
from dstream.jobs.heartbeats import Heartbeats, JobWatch, Rhythm
from dstream.jobs.lease import Lease, release, take_over
from dstream.jobs.metrics import JobList
from dstream.jobs.outcomes import JobFuture
from dstream.jobs.records import EpochRecord, JobRecords, Receipts, StateRecord, new_id
from dstream.jobs.runs import JobContext, plan_of
from dstream.jobs.state import JobState, JobStatus, driver_here, forget_driver, shape_of
from dstream.jobs.unbounded.log import EpochLog
from dstream.jobs.unbounded.plans import check_sinks
from dstream.jobs.unbounded.resumption import check_sources_go_on
from dstream.jobs.upgrades import Memory, check_nothing_is_lost, upgrade_plan
from dstream.pipeline.plan import PipelinePlan
from dstream.plan import call_site

if TYPE_CHECKING:
    from dstream.spi.records import Records

__all__ = ["Jobs"]


_log = logging.getLogger("dstream.jobs")


class Planned(Protocol):
    """A pipeline, which can be submitted."""

    def plan(self) -> PipelinePlan:
        """Return the plan that a job runs; refuse one that cannot run."""
        ...


_PATIENCE = 1.0
"""Seconds to wait for threads without pending decisions. A thread whose function does not return is abandoned."""
_LOOK = 0.2
"""Seconds after which an unbounded job is asked again to leave: a restarting job has not received the request."""
_open: set[Jobs] = set()


class Jobs:
    """The jobs of a storage, of which one context drives some.

    Args:
        context: runs them.
        records: the records of the storage.
        load: loads a pickle, if the storage allows it.
        rhythm: the intervals of heartbeats.
        clock: returns the time.
        of_all: the settings of jobs that do not have their own.
    """

    def __init__(
        self,
        context: JobContext,
        records: Records,
        load: Callable[[bytes], Any],
        rhythm: Rhythm | None = None,
        clock: Callable[[], float] = time.time,
        of_all: JobConfig | None = None,
    ) -> None:
        rhythm = rhythm or Rhythm()
        self._of_all = of_all or JobConfig()
        self._context = context
        self._records = JobRecords(records)
        self._load = load
        self._clock = clock
        self._watch = JobWatch(self._records, rhythm, clock)
        self._heart = Heartbeats(self._records, rhythm, clock)
        # Weak: an execution that has ended is dropped with the last `Job` that refers to it.
        self._here: weakref.WeakValueDictionary[str, Execution] = weakref.WeakValueDictionary()
        self._ends: list[tuple[str, JobFuture]] = []
        self._process = os.getpid()
        self._is_closed = False
        _open.add(self)

    @property
    def is_elsewhere(self) -> bool:
        """Return whether this process is a fork of the driver of the jobs, without its threads."""
        return os.getpid() != self._process

    # -------------------------------------------------------------------------------------------------------- submit

    def submit(
        self,
        pipeline: Planned | PipelinePlan,
        name: str | None,
        config: JobConfig | None,
        call: str,
        *,
        afresh: bool = False,
    ) -> Job:
        """Register and start a job.

        Args:
            pipeline: the pipeline to run.
            name: the name of the job.
            config: its configuration.
            call: the method of the context; `new_job_if_absent` returns a running job of that name.
            afresh: whether to drop the records of a job of that name that neither runs nor is complete.

        Raises:
            JobExistsError: a job of that name runs already.
            IllegalStateError: a job of that name has still to publish the output of another pipeline.
            TypeError: `afresh` is no bool.
            FileNotFoundError: an attached file or module is missing.
        """
        if not isinstance(afresh, bool):
            raise TypeError(f"afresh must be a bool, not {shown(afresh)}")
        plan = plan_of(pipeline, call)
        wanted, goes_on = _config_of(config, name), plan.is_unbounded
        if goes_on:
            check_sinks(plan, call)
        else:
            wanted.check_bounded()
        wanted = wanted.over(self._of_all, goes_on)
        check_files(wanted.files, wanted.modules)
        while True:
            if self._is_closed:
                raise IllegalStateError("this context is closed; connect() again")
            job = self._submitted(plan, wanted, call == "new_job_if_absent", afresh)
            if job is not None:
                return job

    def _submitted(self, plan: PipelinePlan, config: JobConfig, is_absent_only: bool, afresh: bool) -> Job | None:
        """Submit; None if another process was first, so that the caller has to retry."""
        if config.name is None:
            return self._new(plan, config, 0)
        version, latest = self._records.latest(config.name)
        held = None if latest is None else self._records.read(latest)
        if config.start_at is not None and not afresh and held is not None and self._is_over(held.state):
            return self._again(plan, config, held)  # Its records are retained for a while, so it can return to one.
        if held is None or self._is_over(held.state):
            return self._new(plan, config, version)
        if held.state.status.has_ended or self._watch.is_lost(held.state):
            if afresh:
                self._check_begins(plan, config)  # before the existing job is forgotten
                return self._new(plan, config, version) if self._is_forgotten(held) else None
            return self._again(plan, config, held)
        if is_absent_only:
            return self._job(held.state.id)
        driver = held.state.driver
        raise JobExistsError(
            f"{held.state.title} is running already, in process {driver.process} on {driver.host}: "
            f"ctx.job({config.name!r}) is it, to be joined or cancelled; new_job_if_absent() would return it"
        )

    def _is_forgotten(self, held: StateRecord) -> bool:
        """Remove a job from any driver that may only have been cut off; False if another was first."""
        taken = take_over(self._records, held, self._clock)
        if taken is None:
            return False
        lease, _ = taken
        release(lease, held.state, JobStatus.CANCELLED)
        return True

    def _is_over(self, state: JobState) -> bool:
        """Return whether a job has nothing left to do: a failed job may have published to a part of its sinks only."""
        if state.status is JobStatus.FAILED and state.is_unbounded:
            last = EpochLog(self._records.all, state.id, state.driver.token).last(state.log)
            return last is None or last.published <= state.epoch
        if state.status is JobStatus.FAILED:
            epoch = EpochRecord(self._records, state.id, state.driver.token)
            return epoch.looked_up() is None
        return state.status.has_ended

    def _new(self, plan: PipelinePlan, config: JobConfig, version: int) -> Job | None:
        self._check_begins(plan, config)
        now, driver = self._clock(), driver_here()
        made = JobState(new_id(now), config.name, config, shape_of(plan), now, driver, now)
        state = dataclasses.replace(made, is_unbounded=plan.is_unbounded).starting(now)
        is_ours = False
        try:
            is_ours = self._is_registered(state, version)
        finally:  # Ctrl-C leaves a lost job, whose name another process may take.
            if not is_ours:
                forget_driver(driver)
        if not is_ours:
            return None
        lease = Lease(self._records, StateRecord(1, state), self._clock)
        return self._start(plan, lease, EpochRecord(self._records, state.id, driver.token))

    def _check_begins(self, plan: PipelinePlan, config: JobConfig) -> None:
        """Refuse a configuration that a new job cannot begin with."""
        if config.start_at is not None:
            raise ValueError(
                f"start_at={config.start_at!r}: this is a new job, which keeps no such record; a job that is to go "
                "back is submitted under the name that it has, and not afresh"
            )
        if config.initial_snapshot is not None:
            self._check_snapshot(plan, config.initial_snapshot, config)

    def _is_registered(self, state: JobState, version: int) -> bool:
        """Write the record of a job, and take its name; False if another process was first."""
        # The state before the name: a name must not lead to a job without a record.
        if not self._records.write(state, 1):
            return False
        if state.name is None or self._records.take_name(state.name, state.id, version + 1):
            return True
        self._records.forget(state.id)
        return False

    def _check_snapshot(self, plan: PipelinePlan, name: str, config: JobConfig) -> None:
        """Refuse a pipeline that would forget something of the snapshot with which it begins."""
        from dstream.jobs.snapshots import Snapshots  # imported on use: few jobs begin with a snapshot

        snapshot = Snapshots(self._context).find(name)
        if not config.force:
            verdicts = upgrade_plan(plan, snapshot.shape, snapshot.memory)
            check_nothing_is_lost(verdicts, snapshot.memory, "the job", f"begins with the snapshot {name!r}")

    def _again(self, plan: PipelinePlan, config: JobConfig, held: StateRecord) -> Job | None:
        """Resume a job whose driver is lost."""
        before = EpochRecord(self._records, held.state.id, held.state.driver.token)
        # Before the takeover: a refused pipeline changes nothing.
        if held.state.is_unbounded or plan.is_unbounded:
            self._check_stages(plan, config, held.state)
        _check_pipeline(plan, held.state, before.looked_up())
        taken = take_over(self._records, held, self._clock)
        if taken is None:
            return None
        lease, epoch = taken
        try:  # A driver that was only cut off may have decided up to now.
            _check_pipeline(plan, held.state, epoch.receipts)
        except IllegalStateError:
            release(lease, held.state, JobStatus.NOT_RUNNING)
            raise
        if epoch.receipts is not None:
            _log.warning(
                "%s publishes what it computed before, and does not read its sources; new_job(..., afresh=True) would",
                held.state.title,
            )
        # The shape of an unbounded job changes when its log has a record of the new pipeline, with RUNNING.
        shape = held.state.shape if held.state.is_unbounded else shape_of(plan)
        lease.change(config=config, shape=shape, failure=None, metrics=None)
        return self._start(plan, lease, epoch)

    def _check_stages(self, plan: PipelinePlan, config: JobConfig, state: JobState) -> None:
        """Refuse a pipeline with which a job without an end cannot resume."""
        if not (state.is_unbounded and plan.is_unbounded):
            raise IllegalStateError(
                f"{state.title} resumes where its driver ended, and this is another pipeline: one of the two has an "
                "end; submit it as it was, or under another name"
            )
        log = EpochLog(self._records.all, state.id, state.driver.token)
        if config.files_at != state.config.files_at and not config.force:
            _check_has_no_state(Memory.of(log, state.log), state, config)
        before = log.last(state.log) if config.start_at is None else log.at(config.start_at)
        check_sources_go_on(plan, self._context, before, forgets=config.force is True)
        if shape_of(plan) == state.shape:
            return
        _check_is_published(log, state)
        if not config.force:
            memory = Memory.of(log, state.log)
            verdicts = upgrade_plan(plan, state.shape, memory)
            check_nothing_is_lost(verdicts, memory, state.title, "resumes where its driver ended")

    def _start(self, plan: PipelinePlan, lease: Lease, epoch: EpochRecord) -> Job:
        execution = Execution(self._context, self._records, lease, epoch, plan, call_site(), self._load, self._clock)
        identity = lease.state.id
        self._here[identity] = execution
        self._ends = [(job, end) for job, end in self._ends if _is_news(end)]
        self._ends.append((lease.state.title, execution.future))
        execution.start(self._heart.add)
        return self._job(identity)

    # ---------------------------------------------------------------------------------------------------------- find

    def find(self, name_or_id: str) -> Job | None:
        """Return the latest job of that name, or the job with that id."""
        _, latest = self._records.latest(name_or_id)
        identity = latest or name_or_id
        return None if self._records.read(identity) is None else self._job(identity)

    def all(self, name: str | None = None) -> JobList:
        """Return all jobs, or the jobs of a name, newest first.

        Raises:
            IllegalStateError: which jobs have the name is not known, since the record of one is damaged.
        """
        ids = reversed(self._records.ids())
        return JobList(self._job(identity) for identity in ids if self._is_there(identity, name))

    def _is_there(self, identity: str, name: str | None) -> bool:
        try:
            held = self._records.read(identity)
        except IllegalStateError:
            if name is None:
                return True  # Each call on the damaged one raises its error; the other jobs are listed as well.
            raise
        return held is not None and name in (None, held.state.name)

    def _job(self, identity: str) -> Job:
        return Job(identity, self._records, self._watch, self._load, self._here.get(identity), self._context)

    # ----------------------------------------------------------------------------------------------------------- end

    def close(self, *, is_interrupted: bool = False) -> None:
        """Wait for the jobs of this process, and log failures whose outcome no caller has requested.

        Args:
            is_interrupted: Ctrl-C ends the program or its context: jobs that have an end are cancelled first.
        """
        if self.is_elsewhere:
            return
        self._is_closed = True
        try:
            while jobs := self._heart.jobs():
                for each in jobs if is_interrupted else []:
                    if not each.lease.state.is_unbounded:
                        each.ask("cancel")
                # `ask` returns a bool, so all of them are asked and checked again, even if they refuse to leave.
                endless = [each for each in jobs if each.lease.state.is_unbounded and each.ask("leave") is not None]
                wait([each.future for each in jobs], _LOOK if endless else None)
        except BaseException:
            for each in self._heart.jobs():
                each.ask("cancel")
            raise
        finally:
            # The storage is closed next: no thread may use it any more.
            self._heart.stop(_PATIENCE)
            for execution in list(self._here.values()):
                execution.leave(_PATIENCE)
        for job, end in self._ends:
            if _is_news(end) and end.done():
                _log.error("%s has failed, and nobody asked for its end: %r", job, end.error)
        self._ends.clear()
        _open.discard(self)


def _is_news(end: JobFuture) -> bool:
    """Return whether the end of a job has still to be reported."""
    return not end.done() or (end.error is not None and not isinstance(end.error, CancelledError) and not end.was_asked)


def _check_is_published(log: EpochLog, state: JobState) -> None:
    """Refuse another pipeline while the output of the last epoch has still to reach sinks of this one."""
    last = log.last(state.log)
    if last is not None and log.last_run(last).number > state.log:
        raise IllegalStateError(
            f"{state.title} may have still to publish what its last epoch wrote before its driver ended, and this is "
            "another pipeline: submit it as it was, which ctx.job(...).pipeline is, and then update() it"
        )


def _check_has_no_state(memory: Memory, state: JobState, config: JobConfig) -> None:
    """Refuse another location of the state of a job: it would fail, and a failed job begins afresh."""
    if any(index.keys for index in memory.steps.values()):
        was, is_now = (each.files_at or "the storage of the job" for each in (state.config, config))
        raise IllegalStateError(
            f"{state.title} has the state of its steps in {was}, and is submitted with {is_now} for it: say the same "
            "JobConfig(files_at=...) as before; with force=True as well it is looked for there, if it was moved"
        )


def _check_pipeline(plan: PipelinePlan, state: JobState, receipts: Receipts | None) -> None:
    """Refuse another pipeline than the pipeline of these receipts."""
    if receipts is not None and shape_of(plan) != state.shape:
        raise IllegalStateError(
            f"{state.title} has still to publish what it wrote before its driver ended, and this is another "
            "pipeline: its stages have other names, kinds or sinks; submit it as it was, or under another name; "
            "new_job(..., afresh=True) forgets what it wrote"
        )


def _config_of(config: Any, name: str | None) -> JobConfig:
    if not isinstance(config, JobConfig | None):
        raise TypeError(f"config must be a JobConfig, not {shown(config)}")
    wanted = (config or JobConfig()).named(name)
    return wanted if wanted.name is not None else wanted.named(os.environ.get("DSTREAM_JOB_NAME") or None)


def _join_at_exit() -> None:
    # Python has shown the error with which the program ended. At a prompt that was an answer to one line.
    is_interrupted = getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1")
    for each in list(_open):
        each.close(is_interrupted=is_interrupted)


# Before Python shuts down the thread pools that a run may need, which it does before `atexit`.
getattr(threading, "_register_atexit", atexit.register)(_join_at_exit)
