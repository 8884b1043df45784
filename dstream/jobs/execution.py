"""`Execution`: a job in its driver, which is a thread of this process: its runs, and how it ends."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from dstream.errors import IllegalStateError, JobTakenOverError
from dstream.failures import is_full, shorten
from dstream.jobs.bounded_run import BoundedRun
from dstream.jobs.epoch_record import EpochRecord
from dstream.jobs.job_context import JobContext
from dstream.jobs.job_drivers import forget_driver
from dstream.jobs.job_failures import failure_text, is_no_fault_of_the_user, pickled_failure
from dstream.jobs.job_files import gathered, removed
from dstream.jobs.job_future import JobFuture
from dstream.jobs.job_lease import Lease
from dstream.jobs.job_records import JobRecords, Request, Want
from dstream.jobs.job_run import JobRun
from dstream.jobs.job_state import shape_of
from dstream.jobs.job_status import JobStatus
from dstream.pickling import dumps
from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.plan import Where
from dstream.values.attached_files import JobFiles, using_files
from dstream.values.idle_threads import in_a_thread

__all__ = ["Execution"]

_log = logging.getLogger("dstream.jobs")

_LARGEST_PLAN = 8 * 2**20
"""Bytes above which a pipeline holds data of its own, which records are not for."""


class Execution:
    """A job that runs here.

    Attributes:
        lease: says how the job is.
        future: its end.

    Args:
        context: where it runs.
        records: those of the jobs.
        lease: as above.
        epoch: what is committed of it.
        plan: its pipeline.
        place: where it was submitted.
        load: loads a pickle, if the storage lets it.
        clock: says what time it is.
    """

    def __init__(
        self,
        context: JobContext,
        records: JobRecords,
        lease: Lease,
        epoch: EpochRecord,
        plan: PipelinePlan,
        place: Where | None,
        load: Callable[[bytes], Any],
        clock: Callable[[], float],
    ) -> None:
        self.lease = lease
        self.plan = plan
        self.future = JobFuture()
        self._context = context
        self._records = records
        self._epoch = epoch
        self._place = place
        self._load = load
        self._clock = clock
        self._process = os.getpid()
        self._pauses = lease.state.config.pauses()
        self._files: JobFiles | None = None
        self._next: PipelinePlan | None = None
        self._drops = False
        self._lock = threading.RLock()
        self._asked = threading.Event()
        self._thread: int | None = None
        self._left = threading.Event()
        self._run = self._new_run()

    def _new_run(self) -> JobRun:
        self._asked.clear()
        state = self.lease.state
        if state.is_unbounded:
            return self._unbounded_run()
        return BoundedRun(
            self._context, self.plan, state.id, self._epoch, self._place, self._move, state.config.counts_items
        )

    def _unbounded_run(self) -> JobRun:
        from dstream.jobs.unbounded.epoch_log import EpochLog  # here: jobs that end do without
        from dstream.jobs.unbounded.unbounded_run import UnboundedRun
        from dstream.jobs.unbounded.unkept_records import UnkeptRecords

        state, job = self.lease.state, self.lease.state.id
        is_kept = state.config.guarantee != "none"
        if not is_kept:  # Sinks must not take what this run writes for what the one before has written.
            job = f"{job}-{secrets.token_hex(4)}"
        log = EpochLog(self._records.all if is_kept else UnkeptRecords(), job, state.driver.token, self.lease.began)
        return UnboundedRun(
            self._context,
            self.plan,
            job,
            log,
            state.log if is_kept else 0,
            state.config,
            self._clock,
            self._load,
            self._place,
            self._move,
            self._progressed,
            self._drops,
        )

    def _progressed(self) -> None:
        """Let a job that has published an epoch be restarted as often as one that begins."""
        self.lease.note(**self._run.progress())
        self._pauses = self.lease.state.config.pauses()

    # ------------------------------------------------------------------------------------------------- from outside

    def start(self) -> None:
        """Copy what travels with it, keep its pipeline for other processes, and let it run in a thread of its own.

        In this order: a job whose process dies here has not read anything, and its pipeline is known if it has.
        """
        config = self.lease.state.config
        try:
            self._files = gathered(config.files, config.modules)
            self._keep_plan(_pickled(self.plan))
            self._start_thread()
        except BaseException as error:  # Ctrl-C, or no thread to be had: nobody would ever end the job.
            self.future.was_asked = True  # Whoever submitted it sees the error.
            with self._lock:
                if self._run.give_up():
                    self._end_of_driver(error)
            self._run.cancel()
            raise

    def _start_thread(self) -> None:
        self._left = threading.Event()
        name = f"dstream-job-{self.lease.state.id}"
        in_a_thread(partial(self._drive, self._run, self._left), name)

    def leave(self, patience: float) -> None:
        """Wait until a driver that has no say any more has removed what it wrote; no longer than so many seconds."""
        if self._thread != threading.get_ident():  # as in a callback of the future
            self._left.wait(patience)

    @property
    def has_ended(self) -> bool:
        """Whether the job is over."""
        return self.future.done()

    @property
    def is_elsewhere(self) -> bool:
        """Whether this process is a fork of the one that drives the job, whose threads are not here."""
        return os.getpid() != self._process

    def ask(self, want: Want) -> bool:
        """Ask the run to stop, or one that is suspended to go on; True only for the call that does it."""
        with self._lock:
            is_suspended = self.lease.state.status is JobStatus.SUSPENDED
            is_meant = want != ("suspend" if is_suspended else "resume")
            is_first = is_meant and not self.has_ended and self._run.ask(want)
        if is_first:
            self._asked.set()
        return is_first

    def update(self, plan: PipelinePlan) -> bool:
        """Let the job go on with another pipeline when its epoch has ended; True only if this call does it.

        Raises:
            Exception: a source or a service of the pipeline cannot be opened; the job goes on as it was.
        """
        from dstream.jobs.unbounded.epoch_log import EpochLog  # here: jobs that end do without
        from dstream.jobs.unbounded.source_marks import check_sources_go_on

        log = EpochLog(self._records.all, self.lease.state.id, self.lease.state.driver.token)
        check_sources_go_on(plan, self._context, log.last(self.lease.state.log))
        with self._lock:
            if is_ours := self.ask("update"):
                self._next = plan
        return is_ours

    def _update_from_elsewhere(self) -> bool:
        """Take the pipeline that another process has kept for this; False if it cannot be loaded or opened."""
        try:
            pickle = self._records.pickle(self.lease.state.id, "update")
            plan = None if pickle is None else self._load(pickle)
            return isinstance(plan, PipelinePlan) and self.update(plan)
        except Exception:
            _log.warning("the job %s goes on as it was", self.lease.state.id, exc_info=True)
            return False

    def answer(self, request: Request) -> None:
        """Do what another process asks for; whoever sees that the job has ended sees the answer too."""
        with self._lock:
            state = self.lease.state
            is_done = self._update_from_elsewhere() if request.want == "update" else self.ask(request.want)
            obeyed = request.mark if is_done else state.obeyed
            self.lease.change(answered=request.number, obeyed=obeyed)

    def leave_behind(self, after: float) -> None:
        """Go on without a run that was asked to stop some seconds ago and cannot: its function does not return."""
        with self._lock:
            run = self._run
            if self.has_ended or run.stop is None or monotonic() - run.stop.at < after or not run.give_up():
                return
            if not self._is_over_as_asked(run):
                self._start_thread()

    def taken_over(self, error: JobTakenOverError) -> None:
        """End here, since the job goes on elsewhere. What the run makes is thrown away, unless it is decided."""
        with self._lock:
            if self._run.give_up():
                self._finish(error)
        self._run.cancel()

    # --------------------------------------------------------------------------------------------------- the driver

    def _drive(self, run: JobRun, left: threading.Event) -> None:
        self._thread = threading.get_ident()
        try:
            while not self._is_over_after(run):
                run = self._run
                if self.lease.state.status is JobStatus.SUSPENDED:
                    self._asked.wait()
        except BaseException as problem:  # such as what a method of the user's exception raised
            self._end_of_driver(problem)
        finally:
            left.set()

    def _end_of_driver(self, problem: BaseException) -> None:
        """End the job with what its driver failed with: somebody waits for it."""
        try:
            self._fail(problem)
        except BaseException:
            self._finish(problem)

    def _keep_plan(self, data: bytes) -> None:
        """Keep the pipeline for other processes, if it can travel; without it the job runs as well."""
        identity = self.lease.state.id
        with suppress(Exception):
            if 0 < len(data) <= _LARGEST_PLAN:
                self._records.keep_pickle(identity, "plan", data)
            else:  # That of the driver before may be another one.
                self._records.forget_pickle(identity, "plan")

    def _is_over_after(self, run: JobRun) -> bool:
        """Run once; say whether that was the end, for this thread at least."""
        try:
            if not run.is_void:
                if run.stop is not None:
                    raise CancelledError("this run was asked to stop before it began")
                if self.lease.state.status is not JobStatus.STARTING:  # as it is registered, and taken over
                    self._move(JobStatus.STARTING)
                self._epoch.refresh()
                with using_files(self._files):
                    run.work()
                self._end(JobStatus.COMPLETED)
            return True
        except BaseException as error:
            with self._lock:
                if run.is_void:
                    return True
                if run.stop is not None and not run.is_decided:
                    return self._is_over_as_asked(run)
            return self._is_over_with(run, error)

    def _is_over_as_asked(self, run: JobRun) -> bool:
        """Do what was asked for; say whether the job is over. The lock is held."""
        assert run.stop is not None, "somebody has asked"
        match run.stop.want:
            case "cancel":
                self._end(JobStatus.CANCELLED, CancelledError(f"{self.lease.state.title} was cancelled"))
                return True
            case "leave":
                self._leave()
                return True
            case "update":
                self._take_next()
        is_suspended = run.stop.want == "suspend"
        self._move(JobStatus.SUSPENDED if is_suspended else JobStatus.RESTARTING)
        self._run = self._new_run()
        return False

    def _take_next(self) -> None:
        """Go on with the pipeline that somebody gave, and forget what only the one before remembers."""
        assert self._next is not None, "it was given"
        self.plan, self._next, self._drops = self._next, None, True
        self._keep_plan(_pickled(self.plan))

    def _leave(self) -> None:
        """End the driver of a job that goes on when its pipeline is submitted again under its name."""
        self.future.was_asked = True  # Whoever closes a context knows.
        self._end(
            JobStatus.NOT_RUNNING,
            IllegalStateError("this context is closed; submit the pipeline under its name again, and the job goes on"),
        )

    def _is_over_with(self, run: JobRun, error: BaseException) -> bool:
        if isinstance(error, JobTakenOverError):
            self._finish(error)
            return True
        if self.lease.state.config.suspend_on_failure:
            return self._is_over_when_suspended(run, error)
        if not (self._pauses and is_no_fault_of_the_user(error, self.lease.state.started_at is not None)):
            self._fail(error)
            return True
        return self._is_over_after_a_pause(run, error)

    def _is_over_when_suspended(self, run: JobRun, error: BaseException) -> bool:
        """Let a job wait that failed; say whether it is over for this thread."""
        with self._lock:
            if run.is_void:
                return True
            self.lease.change(failure=failure_text(error))
            self._move(JobStatus.SUSPENDED)
            self._run = self._new_run()
        return False

    def _is_over_after_a_pause(self, run: JobRun, error: BaseException) -> bool:
        """Wait, and let go of an engine that is lost; say whether the job was cancelled meanwhile."""
        failure, pause = failure_text(error), self._pauses.pop(0)
        words = "job %s starts again in %g s, restarts left: %d: %s"
        _log.warning(words, self.lease.state.id, pause, len(self._pauses), failure.message)
        self.lease.change(failure=failure)
        self._move(JobStatus.RESTARTING)
        self._asked.wait(pause)
        with self._lock:
            if run.is_void:
                return True
            if run.stop is not None and run.stop.want != "restart":
                return self._is_over_as_asked(run)
            self._run = self._new_run()
        self._context.renew_engine()
        return False

    # -------------------------------------------------------------------------------------------------- how it ends

    def _move(self, status: JobStatus) -> None:
        changes: dict[str, Any] = {"runs": self.lease.state.runs + 1} if status is JobStatus.STARTING else {}
        if status is JobStatus.RUNNING:  # From here on the records are those of this pipeline.
            changes["shape"] = shape_of(self.plan)
            changes["config"] = self.lease.state.config.without_start()  # A run after this one goes on behind it.
        # One that is unbounded has published what the driver before had left.
        if status is JobStatus.COMPLETING or (status is JobStatus.RUNNING and self.lease.state.is_unbounded):
            changes |= self._run.progress()
        self.lease.move(status, **changes)

    def _fail(self, error: BaseException) -> None:
        if not is_full():
            with suppress(BaseException):  # A class of the user's may raise anything there.
                shorten(error)
        self.lease.change(failure=failure_text(error))
        pickle = pickled_failure(error)
        if pickle is not None:
            with suppress(Exception):  # What it failed with matters more than that this cannot be kept.
                self._records.keep_pickle(self.lease.state.id, "failure", pickle)
        self._end(JobStatus.FAILED, error)

    def _end(self, status: JobStatus, error: BaseException | None = None) -> None:
        """Let everybody see the end, and then let those go on who wait for it here."""
        with self._lock:
            try:
                if status is JobStatus.COMPLETED:
                    self.lease.change(failure=None)
                self.lease.end(status)
            except Exception as problem:
                # A driver that was cut off has no say; without the storage nobody sees how the job ended.
                error = error or problem
            self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        forget_driver(self.lease.state.driver)
        removed(self._files)
        self.future.end(error)


def _pickled(plan: PipelinePlan) -> bytes:
    """Return a pipeline as others load it; nothing if it cannot travel."""
    try:
        return dumps(plan)
    except KeyboardInterrupt:
        raise
    except BaseException:  # What it holds may raise anything when it is pickled.
        return b""
