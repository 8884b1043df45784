"""`Execution`: a job in its driver, a thread of this process: its runs, restarts and end."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from dstream.base.threads import in_a_thread
from dstream.errors import CancelledError as RunCancelledError
from dstream.errors import IllegalStateError, JobTakenOverError
from dstream.failures import is_full, shorten
from dstream.jobs.attachments import gathered, removed
from dstream.jobs.lease import Lease
from dstream.jobs.outcomes import (
    REASONS,
    JobCancelledError,
    JobFuture,
    failed_with,
    failure_text,
    is_no_fault_of_the_user,
    keep_failure,
    log_end,
    log_status,
    publication_note,
)
from dstream.jobs.records import ANSWERS_KEPT, EpochRecord, JobRecords, Request
from dstream.jobs.runs import BoundedRun, JobContext, JobRun, keep_plan, read_plan
from dstream.jobs.state import AT_ONCE, Goal, JobStatus, Want, forget_driver, goal_after, shape_of
from dstream.pipeline.plan import PipelinePlan
from dstream.plan import SourceLocation
from dstream.values.attachments import JobFiles, using_files

if TYPE_CHECKING:
    from dstream.jobs.unbounded.log import EpochLog

__all__ = ["Execution"]


_log = logging.getLogger("dstream.jobs")


class Execution:
    """A job that runs in this process.

    Attributes:
        lease: the lease with the state of the job.
        future: its end.
        has_ended: whether the job is over; the future is done a moment later.
        error: the one with which it ended, set before the end is visible.

    Args:
        context: the context that runs it.
        records: the records of the jobs.
        lease: as above.
        epoch: its committed receipts.
        plan: its pipeline.
        place: where it was submitted.
        load: loads a pickle, if the storage allows it.
        clock: returns the time.
    """

    def __init__(
        self,
        context: JobContext,
        records: JobRecords,
        lease: Lease,
        epoch: EpochRecord,
        plan: PipelinePlan,
        place: SourceLocation | None,
        load: Callable[[bytes], Any],
        clock: Callable[[], float],
    ) -> None:
        self.lease = lease
        self.plan = plan
        self.future = JobFuture()
        self.has_ended = False
        self.error: BaseException | None = None
        self._context = context
        self._records = records
        self._epoch = epoch
        self._place = place
        self._load = load
        self._clock = clock
        self._process = os.getpid()
        self._restarts = 0
        self._files: JobFiles | None = None
        self._goal: Goal | None = None
        self._reason = ""
        self._next: PipelinePlan | None = None
        self._drops = False
        self._lock = threading.RLock()
        self._asked = threading.Event()
        self._thread: int | None = None
        self._left = threading.Event()
        self._run = self._new_run()

    def _new_run(self) -> JobRun:
        state = self.lease.state
        if state.is_unbounded:
            return self._unbounded_run()
        return BoundedRun(
            self._context, self.plan, state.id, self._epoch, self._place, self._move, state.config.counts_items
        )

    def _unbounded_run(self) -> JobRun:
        from dstream.jobs.unbounded.log import EpochLog, UnkeptRecords  # imported on use: unbounded jobs only
        from dstream.jobs.unbounded.run import UnboundedRun

        state, job = self.lease.state, self.lease.state.id
        is_kept = state.config.guarantee != "none"
        if not is_kept:  # Sinks must not mistake the output of this run for the output of the previous run.
            job = f"{job}-{secrets.token_hex(4)}"
        log = EpochLog(self._records.all if is_kept else UnkeptRecords(), job, state.driver.token, self.lease.began)
        hint, others = state.log if is_kept else 0, (self._place, self._move, self._progressed, self._drops)
        return UnboundedRun(self._context, self.plan, job, log, hint, state.config, self._clock, self._load, *others)

    def _progressed(self) -> None:
        """Reset the number of restarts of a job that has published an epoch."""
        self.lease.note(**self._run.progress())
        self._restarts = 0

    # ------------------------------------------------------------------------------------------------- from outside

    def start(self, look_after: Callable[[Execution], object]) -> None:
        """Copy the attached files, store the pipeline for other processes, and run the job in a separate thread.

        In this order: a job whose process dies here has not read anything, and its pipeline is known if it has.
        """
        config = self.lease.state.config
        log_status(self.lease.state, f"run {self.lease.state.runs} of {self.lease.state.id}")
        try:
            self._files = gathered(config.files, config.modules)
            keep_plan(self.plan, self.lease.state.id, self._records)
            self._start_thread()
            look_after(self)
        except BaseException as error:  # Ctrl-C, or no thread can be started: the job would never end.
            self.future.was_asked = True  # The caller that submitted it gets the error.
            with self._lock:
                if self._run.give_up():
                    self._end_of_driver(error)
            self._end_future()
            self._run.cancel()
            raise

    def _start_thread(self) -> None:
        self._left = threading.Event()  # Each thread has its own: an abandoned thread may return late.
        name = f"dstream-job-{self.lease.state.id}"
        in_a_thread(partial(self._drive, self._run, self._left), name)

    def leave(self, patience: float) -> None:
        """Wait until a driver that has lost its lease has removed its output, at most `patience` seconds."""
        if self._thread not in (None, threading.get_ident()):  # none has begun; it is this one, as in a callback
            self._left.wait(patience)

    @property
    def is_elsewhere(self) -> bool:
        """Return whether this process is a fork of the driver of the job, without its threads."""
        return os.getpid() != self._process

    @property
    def is_left(self) -> bool:
        """Return whether this driver has ended, and the job needs another one."""
        return self.has_ended and self.lease.state.status is JobStatus.NOT_RUNNING

    def ask(self, want: Want, plan: PipelinePlan | None = None) -> bool:
        """Accept a request, which the job obeys at its next boundary; False if it has no effect any more.

        Args:
            want: the request.
            plan: the pipeline of an update.
        """
        with self._lock:
            goal = None if self.has_ended else goal_after(self._current_goal(), want)
            if goal is None or not self._run.ask_to_stop(want in AT_ONCE):
                return False
            self._goal, self._next, self._reason = goal, plan or self._next, REASONS[want]
            self._asked.set()
            return True

    def _current_goal(self) -> Goal:
        if self._goal is not None:
            return self._goal
        return Goal.SUSPEND if self.lease.state.status is JobStatus.SUSPENDED else Goal.RUN

    def update(self, plan: PipelinePlan) -> bool:
        """Continue the job with another pipeline when its epoch has ended; False if the job ends instead.

        Raises:
            Exception: a source or a service of the pipeline cannot be opened; the job continues as it was.
        """
        self._check_opens(plan)
        return self.ask("update", plan)

    def _check_opens(self, plan: PipelinePlan) -> None:
        """Open the sources of a pipeline, which may take as long as their servers do."""
        from dstream.jobs.unbounded.resumption import check_sources_go_on  # imported on use: unbounded jobs only

        check_sources_go_on(plan, self._context, self._log_of_epochs().last(self.lease.state.log))

    def _log_of_epochs(self) -> EpochLog:
        from dstream.jobs.unbounded.log import EpochLog

        return EpochLog(self._records.all, self.lease.state.id, self.lease.state.driver.token)

    def answer(self, requests: Sequence[Request]) -> None:
        """Serve the requests of other processes, cancel first; a record of the end of the job contains the answers."""
        kept = max(ANSWERS_KEPT, len(requests))  # An answered request without a mark counts as refused.
        for request in sorted(requests, key=lambda each: each.want != "cancel"):
            plan = self._plan_of(request) if request.want == "update" else None  # Opens sources: not under the lock.
            with self._lock:
                if (plan is not None or request.want != "update") and self.ask(request.want, plan):
                    self.lease.change(obeyed=(*self.lease.state.obeyed, request.mark)[-kept:])
        with self._lock:  # After `obeyed`: a requester that read only this would regard its request as refused.
            self.lease.change(answered=max(self.lease.state.answered, *(each.number for each in requests)))

    def _plan_of(self, request: Request) -> PipelinePlan | None:
        """Return the pipeline of an update of another process; None if it cannot be loaded or opened."""
        try:
            pickle = self._records.pickle(self.lease.state.id, request.pickle)
            if pickle is not None:
                plan = read_plan(pickle, self.lease.state.title, self._load)
                self._check_opens(plan)
                return plan
        except Exception:
            _log.warning("%s goes on as it was", self.lease.state.title, exc_info=True)
        return None

    def abandon_run(self, after: float) -> None:
        """Abandon a run that was asked to stop seconds ago and cannot, since its function does not return."""
        with self._lock:
            run = self._run
            if self.has_ended or run.stop is None or monotonic() - run.stop.at < after or not run.give_up():
                return
            if not self._end_or_restart():
                try:
                    self._start_thread()  # The old thread ends when its function returns: its run is void.
                except RuntimeError as error:  # No thread is to be had, as in `start`.
                    self._left.set()
                    self._end_of_driver(error)
        self._end_future_in_thread()

    def taken_over(self, error: JobTakenOverError) -> None:
        """End this driver, since another one took over the job. The run's output is removed, unless it is committed."""
        with self._lock:
            if self._run.give_up():
                self._finish(error)
        self._end_future_in_thread()
        self._run.cancel()  # After `give_up`: failures of a void run have no effect.

    # --------------------------------------------------------------------------------------------------- the driver

    def _drive(self, run: JobRun, left: threading.Event) -> None:
        self._thread = threading.get_ident()
        try:
            while not self._run_once(run):
                with self._lock:
                    # While this one renewed the engine, the job may have continued in another thread, with other runs.
                    if left is not self._left:
                        return
                    run = self._run
        except BaseException as problem:  # such as the error of a method of the user's exception
            self._end_of_driver(problem)
        finally:
            self._end_future()
            left.set()

    def _end_of_driver(self, problem: BaseException) -> None:
        """End the job with the failure of its driver: other threads may wait for the end."""
        try:
            self._fail(problem)
        except BaseException:
            self._finish(problem)

    def _run_once(self, run: JobRun) -> bool:
        """Run once; return whether that was the end, for this thread at least."""
        try:
            self._begin(run)
            with using_files(self._files):
                run.work()
            self._end(JobStatus.COMPLETED)
            return True
        except BaseException as error:
            return self._handle_failure(run, error)

    def _begin(self, run: JobRun) -> None:
        """Wait while the job is suspended, and begin a run.

        Raises:
            CancelledError: it is not to begin.
            JobTakenOverError: another driver decides.
        """
        while self._is_waiting(run):
            self._asked.wait()
        with self._lock:
            if self._goal is not None or run.is_void:
                raise CancelledError("this run was asked to stop before it began")
            if self.lease.state.status is not JobStatus.STARTING:  # as it is registered, taken over, and resumed
                self._move(JobStatus.STARTING)
        # Not under the lock: this reads the storage, and requests arrive meanwhile.
        self._epoch.refresh()

    def _is_waiting(self, run: JobRun) -> bool:
        with self._lock:
            is_asked = self._goal is not None or run.is_void
            if not is_asked:
                self._asked.clear()  # Under the lock of `ask`: no request before the wait is missed.
            return not is_asked and self.lease.state.status is JobStatus.SUSPENDED

    def _handle_failure(self, run: JobRun, error: BaseException) -> bool:
        """Handle a run that did not complete; return whether the job is over for this thread.

        A request takes precedence over the failure of the run. It is read and handled under the lock, so that no
        request arrives in between.
        """
        with self._lock:
            if run.is_void:
                return True
            if isinstance(error, JobTakenOverError):
                self._finish(error)
                return True
            if self._goal is not None:
                self._note_failure_meanwhile(run, error)
                try:
                    return self._serve_request()
                except Exception as problem:  # The log of epochs cannot be read: that is a failure as any other.
                    error = problem
            if self.lease.state.config.suspend_on_failure:
                self._goal = None
                self.lease.change(failure=failure_text(error))
                self._move(JobStatus.SUSPENDED, f"it failed: {failed_with(failure_text(error))}")
                self._run = self._new_run()
                return False
            if not (self._restarts_left and is_no_fault_of_the_user(error, self.lease.state.started_at is not None)):
                self._fail(error)
                return True
            pause = self._pause_after(error)
        return self._pause_before_restart(run, pause)

    def _note_failure_meanwhile(self, run: JobRun, error: BaseException) -> None:
        """Record the failure of a run that was to end its epoch; an immediate stop may cause any failure."""
        is_stopped = isinstance(error, CancelledError | RunCancelledError)
        if run.stop is not None and not run.stop.is_at_once and not is_stopped:
            failure = failure_text(error)
            words = "%s failed while it was about to end its epoch, which is run again: %s: %s"
            _log.warning(words, self.lease.state.title, failure.type_name, failure.message)
            self.lease.change(failure=failure)

    @property
    def _restarts_left(self) -> int:
        return self.lease.state.config.restarts - self._restarts

    def _pause_after(self, error: BaseException) -> float:
        """Set the pause before the next start of a job, and return it."""
        failure, pause = failure_text(error), self.lease.state.config.pause_before(self._restarts)
        self._restarts += 1
        self.lease.change(failure=failure)
        reason = f"it starts again in {pause:g} s, restarts left: {self._restarts_left}: {failed_with(failure)}"
        self._move(JobStatus.RESTARTING, reason, logging.WARNING)
        self._asked.clear()
        return pause

    def _pause_before_restart(self, run: JobRun, pause: float) -> bool:
        """Wait, and release a lost engine; return whether the job is over, by a request to end."""
        self._asked.wait(pause)
        with self._lock:
            if run.is_void or self._end_or_restart():
                return True
        self._context.renew_engine()  # Without the lock: this may take seconds, and requests arrive meanwhile.
        return False

    def _end_or_restart(self) -> bool:
        """End the job, if that was requested; otherwise create a run, which serves other requests before it begins."""
        if self._goal in (Goal.CANCEL, Goal.DETACH):
            return self._serve_request()
        self._run = self._new_run()
        return False

    def _serve_request(self) -> bool:
        """Serve the pending request; return whether the job is over. Requires the lock.

        Raises:
            Exception: the log of epochs cannot be read; the request and its pipeline remain pending.
        """
        match goal := self._goal:
            case Goal.CANCEL:
                self._end(JobStatus.CANCELLED, JobCancelledError(f"{self.lease.state.title} was cancelled"))
                return True
            case Goal.DETACH:
                self._leave()
                return True
        self._take_next()
        self._goal = None
        if goal is Goal.SUSPEND:
            self._move(JobStatus.SUSPENDED, self._reason)
        elif self.lease.state.status is JobStatus.SUSPENDED:
            self._move(JobStatus.STARTING, self._reason)
        elif self.lease.state.status is not JobStatus.RESTARTING:  # It is already, in the pause before a restart.
            self._move(JobStatus.RESTARTING, self._reason)
        self._run = self._new_run()
        return False

    def _take_next(self) -> None:
        """Replace the pipeline by the pipeline of an update, if any, and release the data of the old one.

        It was judged by the state of the job then. Another update may have changed that since.
        """
        if (plan := self._next) is None:
            return
        from dstream.jobs.upgrades import check_still_fits  # imported on use: few jobs are changed

        state = self.lease.state
        try:
            check_still_fits(plan, state, self._log_of_epochs())
        except IllegalStateError as error:
            _log.warning("%s continues with the pipeline of another update: %s", state.title, error)
            self._next = None
            return
        self.plan, self._next, self._drops = plan, None, True
        keep_plan(plan, state.id, self._records)

    def _leave(self) -> None:
        """End the driver of a job that resumes when its pipeline is submitted again under its name."""
        self.future.was_asked = True  # The caller that closes a context is aware of it.
        self._end(
            JobStatus.NOT_RUNNING,
            IllegalStateError("this context is closed; submit the pipeline under its name again, and the job goes on"),
        )

    # -------------------------------------------------------------------------------------------------- how it ends

    def _move(self, status: JobStatus, reason: str = "", level: int = logging.INFO) -> None:
        changes: dict[str, Any] = {"runs": self.lease.state.runs + 1} if status is JobStatus.STARTING else {}
        if status is JobStatus.RUNNING:  # From now on the records belong to this pipeline.
            changes["shape"] = shape_of(self.plan)
            changes["config"] = self.lease.state.config.without_start()  # A later run continues after it.
        # An unbounded one has published the output that the driver before had left.
        if status is JobStatus.COMPLETING or (status is JobStatus.RUNNING and self.lease.state.is_unbounded):
            changes |= self._run.progress()
        self.lease.move(status, **changes)
        log_status(self.lease.state, reason, level)

    def _fail(self, error: BaseException) -> None:
        with suppress(Exception):  # A sink of the user's may raise in `is_done`.
            if isinstance(self._run, BoundedRun) and (publication := self._run.publication()) is not None:
                error.add_note(publication_note(*publication, self.lease.state.name))
        if not is_full():
            with suppress(BaseException):  # A class of the user's may raise anything in this call.
                shorten(error)
        self.lease.change(failure=failure_text(error))
        keep_failure(error, self.lease.state.id, self._records)  # Before the status: a reader of FAILED reads it.
        self._end(JobStatus.FAILED, error)

    def _end(self, status: JobStatus, error: BaseException | None = None) -> None:
        """Publish the end of the job."""
        with self._lock:
            self.error = error  # Before the status: `Job.failure` returns it as soon as that is FAILED.
            try:
                if status is JobStatus.COMPLETED:
                    self.lease.change(failure=None)
                self.lease.end(status)
                log_end(self.lease.state, self._reason)
            except Exception as problem:
                # A driver that was cut off decides nothing; without the storage no process sees how the job ended.
                error = error or problem
            self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        forget_driver(self.lease.state.driver)
        removed(self._files)
        self.error, self.has_ended = error, True
        self._asked.set()  # This driver of a job that was taken over may still wait to be resumed.

    def _end_future(self) -> None:
        """End the future of the job, if the job has ended.

        Without the lock: a user's callback may wait for another thread, which calls the job.
        """
        if not self.has_ended:
            return
        try:
            self.future.end(self.error)
        except BaseException:  # Such as SystemExit of a callback, which ends nothing but itself.
            _log.exception("a callback of the future of %s failed", self.lease.state.title)

    def _end_future_in_thread(self) -> None:
        """Do so in a separate thread, since no callback may block the heartbeat thread of all jobs."""
        if self.has_ended:
            try:
                in_a_thread(self._end_future, f"dstream-end-{self.lease.state.id}")
            except RuntimeError:  # No thread can be started, and a caller may wait for the end.
                self._end_future()
