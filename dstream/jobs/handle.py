"""`Job`: the user's handle of a job, driven by this process or another."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from dstream.errors import IllegalStateError, JobTakenOverError, SerializationError, UnsupportedError
from dstream.failures import shown
from dstream.jobs.config import JobConfig
from dstream.jobs.driver import Execution
from dstream.jobs.heartbeats import JobWatch
from dstream.jobs.metrics import JobMetrics, html_of_job
from dstream.jobs.outcomes import JobFuture, arrived
from dstream.jobs.records import JobRecords
from dstream.jobs.runs import JobContext, plan_of, read_plan, written_plan
from dstream.jobs.state import Driver, FailureText, JobState, JobStatus, Want
from dstream.pipeline.plan import PipelinePlan

if TYPE_CHECKING:
    from dstream.jobs.registry import Planned
    from dstream.jobs.snapshots import Snapshot
    from dstream.jobs.upgrades import StageVerdict
    from dstream.stream import Stream
    from dstream.values.entries import Entry

__all__ = ["Job"]


class Job:
    """A submitted pipeline: `ctx.new_job(pipeline)` creates one, `ctx.job(name)` finds it in any process.

    In a `with` block it is joined at the end, and cancelled if an exception leaves the block. A block that has
    cancelled it through this object ends without `CancelledError`.
    """

    def __init__(
        self,
        identity: str,
        records: JobRecords,
        watch: JobWatch,
        load: Callable[[bytes], Any],
        execution: Execution | None = None,
        context: JobContext | None = None,
    ) -> None:
        self._id = identity
        self._records = records
        self._watch = watch
        self._load = load
        self._execution = execution
        self._context = context
        self._future: JobFuture | None = None
        self._was_cancelled = False

    @property
    def id(self) -> str:
        """The unique identity of the job."""
        return self._id

    @property
    def name(self) -> str | None:
        """The name that the user chose, or None."""
        return self._state().name

    @property
    def config(self) -> JobConfig:
        """Its configuration."""
        return self._state().config

    @property
    def status(self) -> JobStatus:
        """Its status; `NOT_RUNNING` if its driver is lost."""
        state, is_lost = self._looked_at()
        return JobStatus.NOT_RUNNING if is_lost else state.status

    @property
    def is_lost(self) -> bool:
        """Return whether it has not ended, and the process of its driver has ended.

        Immediately if the process has ended on this host; on another host, ten seconds after its last heartbeat. Submit
        its pipeline under its name again, and the job resumes.
        """
        return self._looked_at()[1]

    @property
    def submitted_at(self) -> datetime:
        """The time at which it was submitted."""
        return _date(self._state().submitted_at)

    @property
    def started_at(self) -> datetime | None:
        """The time at which it first ran; None if it has not yet."""
        started = self._state().started_at
        return None if started is None else _date(started)

    @property
    def ended_at(self) -> datetime | None:
        """The time at which it ended; None if it has not yet."""
        ended = self._state().ended_at
        return None if ended is None else _date(ended)

    @property
    def epoch(self) -> int:
        """The number of epochs that were published, 0 before the first; a bounded job has one."""
        return self._state().epoch

    @property
    def clock(self) -> int | None:
        """The event time up to which an unbounded job is complete; None if no timestamp is known yet.

        It is the greatest timestamp, in milliseconds since 1970, before which all events are in committed epochs. It
        never decreases, unless `start_at` resumes the job after an earlier epoch. While another driver begins, it is
        None.
        """
        return (self._state().metrics or {}).get("clock")

    @property
    def failure(self) -> BaseException | None:
        """The exception that the job failed with; None if it has not failed."""
        state = self._state()
        return self._failed(state) if state.status is JobStatus.FAILED else None

    @property
    def failure_text(self) -> FailureText | None:
        """The text of the failure, or of the failure of the last run before a restart; None if there is none."""
        return self._state().failure

    @property
    def driver(self) -> Driver:
        """The process that drives it, or drove it last."""
        return self._state().driver

    @property
    def pipeline(self) -> PipelinePlan:
        """The pipeline as it was submitted, which can be submitted again.

        Raises:
            IllegalStateError: it is in another process, and could not be stored, or was stored by other versions.
            TypeError: it is in another process, and the storage does not allow pickles.
        """
        if self._execution is not None and not isinstance(self._execution.error, JobTakenOverError):
            return self._execution.plan
        pickle = self._records.pickle(self._id, "plan")
        if pickle is None:
            raise IllegalStateError(f"the pipeline of {self._state().title} is not in the storage")
        return read_plan(pickle, self._state().title, self._load)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the job.

        Args:
            timeout: seconds; None waits without limit.

        Raises:
            CancelledError: it was cancelled (the class of `concurrent.futures`).
            TimeoutError: it has not ended yet; it continues.
            TypeError: the time-out is no number.
            JobTakenOverError: this process lost the connection, and another process drives it now.
            IllegalStateError: its driver is lost, and it was not submitted again.
            RemoteError: it failed in another process, with an exception that cannot be unpickled in this process.
            Exception: the exception with which it failed, as for streams.
        """
        patience = _patience(timeout)
        future = self._ending()
        # Not `future.result(timeout)`: its TimeoutError could not be distinguished from one that the job failed with.
        if not wait([future], patience).done:
            raise TimeoutError(f"{self._state().title} has not ended within {timeout} seconds; it goes on")
        future.was_asked = True
        if future.error is not None:
            # Each `raise` of an exception adds to its traceback.
            BaseException.with_traceback(future.error, future.where)
            raise future.error

    def wait_for(self, *statuses: JobStatus, timeout: float | None = None) -> JobStatus:
        """Wait until the job has one of these statuses, and return it.

        The status is polled every few milliseconds: a shorter status may be missed.

        Args:
            *statuses: such as `JobStatus.RUNNING`.
            timeout: seconds; None waits without limit.

        Raises:
            IllegalStateError: the job has ended with another status, or its driver is lost. The error with which it
                failed is the cause.
            TimeoutError: it has none of them yet; it continues.
            TypeError: there is no status, or an argument of another type; or the time-out is no number.

        Example:
            >>> import dstream as ds
            >>> from reducers import to_ilist
            >>> from sources import items
            >>> pipeline = ds.Pipeline()
            >>> _ = pipeline.read_from(items([1, 2])).write_to(to_ilist("waited for"))
            >>> with ds.connect(engine="local") as ctx:
            ...     ctx.new_job(pipeline).wait_for(ds.JobStatus.COMPLETED, timeout=60).name
            'COMPLETED'
        """
        wanted = _statuses(statuses)
        patience = _patience(timeout, "wait_for")
        until = math.inf if patience is None else monotonic() + patience
        while (status := self.status) not in statuses:
            if status.has_ended or status is JobStatus.NOT_RUNNING:
                raise IllegalStateError(f"{self._state().title} is {status.name}, not {wanted}") from self.failure
            if monotonic() >= until:
                raise TimeoutError(
                    f"{self._state().title} is {status.name}, not {wanted}, after {timeout} seconds; it goes on"
                )
            sleep(self._between_looks())
        return status

    def _between_looks(self) -> float:
        return _BETWEEN_LOOKS if self._is_here() else _BETWEEN_LOOKS_ELSEWHERE

    def future(self) -> Future[None]:
        """Return the end of the job as a future, which `asyncio.wrap_future` makes awaitable."""
        return self._ending()

    def cancel(self) -> bool:
        """End the job, which leaves its sinks as they were.

        An unbounded job leaves them in the state of its last epoch. When this returns, the request is accepted: it
        precedes earlier requests, such as `suspend()` or `update()`, and no later request revokes it. The job ends
        within seconds, even if a function of the user's does not return: on the local engine its thread is abandoned
        then, and its output is dropped. `join()` waits for the end, after which the name is free.

        Returns:
            True for the one call that cancels the job. False: it ends without this call. Either it has ended, or
            another call has cancelled it, or it is decided, so that it will publish and complete; `status` and `join()`
            show which.
        """
        # Before the request: a `with` block that ends meanwhile needs to know that this call has cancelled the job.
        self._was_cancelled = True
        return self._ask("cancel")

    def restart(self) -> bool:
        """Stop the run of the job, and run it again from its sources.

        An unbounded job reads its plan again, and continues after its last epoch; a suspended job resumes. When this
        returns, the request is accepted; the run stops within seconds. In the pause before an automatic restart it ends
        the pause.

        Returns:
            True for the call that did it. False: nothing was changed, since the job starts again already, is being
            cancelled, or publishes its end.

        Raises:
            IllegalStateError: it has ended, or its driver is lost.
        """
        return self._request("restart")

    def _request(self, want: Literal["restart", "suspend", "resume"]) -> bool:
        """Send a request to a job that has a driver, and has not ended meanwhile."""
        self._check_drives(want)
        is_taken = self._ask(want)
        if not is_taken:
            self._check_drives(want)
        return is_taken

    def _check_drives(self, call: str) -> None:
        """Refuse a call that only a driver can serve if there is none, or if a bounded job cannot."""
        state, is_lost = self._looked_at()
        if call != "restart" and not state.is_unbounded:
            self._refuse(call)
        if state.status.has_ended:
            raise IllegalStateError(f"{state.title} has ended: it is {state.status.name}; submit its pipeline again")
        if is_lost:
            raise IllegalStateError(f"the driver of {state.title} is gone; submit its pipeline under its name again")

    def metrics(self) -> JobMetrics:
        """Return the metrics of the job: as attributes, as a dictionary, as a table, as OpenMetrics."""
        state, is_lost = self._looked_at()
        status = JobStatus.NOT_RUNNING if is_lost else state.status
        return JobMetrics.of(state, status, self._watch.now())

    def state(self, stage: str) -> Stream[Entry[Any, Any]]:
        """Return the state of a stage of an unbounded job: its keys with their states, in no order.

        It is the state of the last committed epoch; changes to it do not affect the job. The stream reads files that
        the job removes a day later, unless `JobConfig(keep=)` is set.

        Args:
            stage: its name.

        Raises:
            IllegalStateError: the job has not begun; or its pipeline is in another process, and could not be stored.
            UnsupportedError: it is a bounded job.
            ValueError: it has no such stage, or the stage has no state.
        """
        state = self._state()
        if not state.is_unbounded:
            self._refuse("state")
        assert self._context is not None, "it was found by a context"
        from dstream.jobs.unbounded.log import EpochLog  # imported on use: few jobs have state
        from dstream.jobs.unbounded.state import state_entries
        from dstream.stream.objects import read

        place = state.config.files_at
        storage = (self._context if place is None else self._context.elsewhere(place)).running_storage()
        log = EpochLog(self._records.all, self._id, state.driver.token)
        files = storage.state_files(self._id)
        source = state_entries(self.pipeline, stage, log, state.log, files, self._id)
        return read(source, f"state({stage!r})", self._context)

    def suspend(self) -> bool:
        """Suspend a job without an end after its epoch.

        When this returns, the request is accepted; the job is `SUSPENDED` at the end of its epoch, or immediately in
        the pause before an automatic restart. Its driver remains, and the job continues with `resume()`, from any
        process, even before it is suspended.

        Returns:
            True for the call that did it. False: nothing was changed, since the job is suspended or about to be
            already, is being cancelled, or publishes its end.

        Raises:
            IllegalStateError: it has ended, or its driver is lost.
            UnsupportedError: it is a bounded job.
        """
        return self._request("suspend")

    def resume(self) -> bool:
        """Resume a job that is suspended, or is about to be.

        When this returns, the request is accepted, and the job starts within seconds; an `update()` that was called
        meanwhile applies.

        Returns:
            True for the call that did it. False: nothing was changed, since the job is neither suspended nor about to
            be, is being cancelled, or publishes its end.

        Raises:
            IllegalStateError: it has ended, or its driver is lost.
            UnsupportedError: it is a bounded job.
        """
        return self._request("resume")

    def export_snapshot(self, name: str) -> Snapshot:
        """Copy the state of a job without an end after its last epoch, under a name; the job continues meanwhile.

        With `JobConfig(initial_snapshot=name)` a new job of this pipeline, or of another version of it, begins with it.
        A snapshot of the same name is replaced. A job that has ended can be exported as long as its files exist.

        Args:
            name: the name of the snapshot.

        Raises:
            IllegalStateError: the job has not begun; or its state was removed.
            UnsupportedError: it is a bounded job.
            ValueError: the name is empty.
        """
        state = self._state()
        if not state.is_unbounded:
            self._refuse("export_snapshot")
        assert self._context is not None, "it was found by a context"
        from dstream.jobs.snapshots import Snapshots  # imported on use: few jobs are exported
        from dstream.jobs.unbounded.log import EpochLog

        log = EpochLog(self._records.all, self._id, state.driver.token)
        return Snapshots(self._context).export(name, state, log, self._watch.now())

    def cancel_and_export_snapshot(self, name: str) -> Snapshot:
        """Cancel a job without an end after its epoch, and export its state then.

        When this returns, the job has ended, and its name is free.

        Args:
            name: the name of the snapshot.

        Raises:
            IllegalStateError: the job has ended, or its driver is lost, or it has no records.
            UnsupportedError: it is a bounded job.
            ValueError: the name is empty; the job is unchanged.
            Exception: it cannot be exported; it is not cancelled then: it continues, or remains suspended.
        """
        from dstream.jobs.snapshots import Snapshots  # imported on use: few jobs are exported

        self._check_drives("cancel_and_export_snapshot")
        Snapshots.check(name, self._state())
        is_suspended_here = False
        while self.status is not JobStatus.SUSPENDED:
            # Again, if another thread or process has resumed it meanwhile.
            is_suspended_here = self.suspend() or is_suspended_here
            sleep(self._between_looks())
        try:
            snapshot = self.export_snapshot(name)
        except BaseException:
            if is_suspended_here:
                with suppress(IllegalStateError):  # It may have ended; the reason why it was not exported matters more.
                    self.resume()
            raise
        self.cancel()
        # Not `join()`, which would raise the requested cancellation.
        wait([self._ending()])
        # After a late `resume()` it has run more epochs.
        return snapshot if self.epoch == snapshot.epoch else self.export_snapshot(name)

    def upgrade_plan(self, pipeline: Planned | PipelinePlan) -> list[StageVerdict]:
        """Report the effect of `update(pipeline)` on the state of this job, stage by stage. Nothing is changed.

        Stages are the same if they have the same name. A stage with state continues with it if it has the same kind and
        the same arguments, such as the size of a window; otherwise it is refused.

        Args:
            pipeline: the pipeline with which the job might continue.

        Returns:
            Tuples `(stage, verdict, why)`, the stages of the new pipeline first; a verdict is `"keeps"`, `"starts
            empty"`, `"dropped"` or `"refused"`.

        Raises:
            UnsupportedError: it is a bounded job, or a bounded pipeline.
        """
        return self._upgrade(pipeline, "upgrade_plan")[1]

    def _upgrade(self, pipeline: Any, call: str) -> tuple[PipelinePlan, list[StageVerdict]]:
        from dstream.jobs.unbounded.log import EpochLog  # imported on use: few jobs are changed
        from dstream.jobs.unbounded.plans import check_sinks
        from dstream.jobs.upgrades import Memory, upgrade_plan

        state = self._state()
        if not state.is_unbounded:
            self._refuse(call)
        plan = plan_of(pipeline, call)
        if not plan.is_unbounded:
            raise UnsupportedError(f"{call}(): {state.title} has no end, and this pipeline has one")
        check_sinks(plan, call)
        memory = Memory.of(EpochLog(self._records.all, self._id, state.driver.token), state.log)
        return plan, upgrade_plan(plan, state.shape, memory)

    def update(self, pipeline: Planned | PipelinePlan) -> list[StageVerdict]:
        """Continue a job without an end with another pipeline, between two epochs; a suspended one resumes.

        When this returns, the pipeline is accepted: the job starts with it at the end of its epoch, or immediately in
        the pause before an automatic restart. A later `restart()`, `suspend()` or `resume()` does not revoke it; a
        later `update()` replaces it, and `cancel()` ends the job.

        Stages with the same name retain their state: the offsets of a source, the state of a step. New stages start
        empty; the state of stages that were removed is dropped. `upgrade_plan(pipeline)` reports that beforehand, and
        this returns the same. The configuration of the job is unchanged.

        Args:
            pipeline: the pipeline with which the job continues.

        Raises:
            IllegalStateError: the state of a stage does not fit the new one, which has another window, for example; or
                the job has ended, or its driver is lost or refuses. The job continues unchanged.
            SerializationError: the job is driven elsewhere, and the pipeline cannot be pickled; the job continues.
            SourceError: a new source does not exist.
            UnsupportedError: it is a bounded job, or a bounded pipeline.
        """
        plan, verdicts = self._upgrade(pipeline, "update")
        self._check_drives("update")
        from dstream.jobs.upgrades import check_nothing_is_refused  # imported on use: few jobs are changed

        check_nothing_is_refused(verdicts, self._state().title)
        if not self._updated(plan):
            self._check_drives("update")
            raise IllegalStateError(
                f"{self._state().title} does not take this pipeline: it is being cancelled or publishes its end, or "
                "its driver cannot load or open the pipeline; the log of the driver says more"
            )
        return verdicts

    def _updated(self, plan: PipelinePlan) -> bool:
        if self._is_here():
            assert self._execution is not None
            return self._execution.update(plan)
        try:
            pickle = written_plan(plan)
        except Exception as error:  # Objects in a pipeline may raise anything when they are pickled.
            raise SerializationError(
                f"{self._state().title} is driven by another process or context, to which this pipeline cannot travel: "
                f"{type(error).__name__}: {error}; update the job where it was submitted, or let functions make what "
                "cannot be pickled when they are called"
            ) from error
        return self._watch.ask(self._id, "update", pickle)

    def _refuse(self, name: str) -> NoReturn:
        raise UnsupportedError(
            f"{name}() does not exist for bounded jobs, whose one epoch keeps nothing between two; "
            "cancel() ends such a job, restart() runs it again"
        )

    def _ask(self, want: Want) -> bool:
        if self._is_here():
            assert self._execution is not None
            return self._execution.ask(want)
        return self._watch.ask(self._id, want)

    def _is_here(self) -> bool:
        """Return whether this process drives the job, or did until it ended; one that was left may run elsewhere."""
        execution = self._execution
        if execution is None or execution.is_elsewhere or execution.is_left:
            return False
        return not (execution.has_ended and isinstance(execution.error, JobTakenOverError))

    def _state(self) -> JobState:
        if self._is_here():
            assert self._execution is not None
            return self._execution.lease.state
        return self._watch.state(self._id)

    def _looked_at(self) -> tuple[JobState, bool]:
        """Return the state of the job, and whether it is lost: its driver writes how it ended before it stops."""
        state = self._state()
        if not self._watch.is_lost(state, is_here=self._is_here()):
            return state, False
        state = self._state()
        return state, self._watch.is_lost(state, is_here=self._is_here())

    def _ending(self) -> JobFuture:
        execution = self._execution
        is_elsewhere = (
            execution is None
            or execution.is_elsewhere
            # After its context was closed it may have been cancelled, or submitted again.
            or (execution.is_left and self._state().status is not JobStatus.NOT_RUNNING)
        )
        if execution is not None and not is_elsewhere:
            return execution.future
        if self._future is None:
            self._future = self._watch.end_of(self._id, self._failed)
        return self._future

    def _failed(self, state: JobState) -> BaseException:
        """Return the failure of the job: the exception itself in the process that drove it."""
        if self._is_here():
            assert self._execution is not None
            error = self._execution.error
            assert error is not None, "it has failed"
            return error
        assert state.failure is not None, "it has failed"
        return arrived(state.failure, self._records.pickle(self._id, "failure"), self._load)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self.cancel()
            return
        try:
            self.join()
        except CancelledError:
            if not self._was_cancelled:
                raise

    def __eq__(self, other: object) -> bool:
        return self._id == other._id if isinstance(other, Job) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        state, is_lost = self._looked_at()
        status = JobStatus.NOT_RUNNING if is_lost else state.status
        return f"<{state.title.removeprefix('the ')}, {status.name}>"

    def _repr_html_(self) -> str:
        return html_of_job(self)


_BETWEEN_LOOKS = 0.01
# Polling a job of another process reads its record from the storage.
_BETWEEN_LOOKS_ELSEWHERE = 0.1


def _statuses(statuses: tuple[Any, ...]) -> str:
    """Return statuses in words; refuse a value that is no status."""
    if not statuses or not all(isinstance(status, JobStatus) for status in statuses):
        raise TypeError(f"wait_for() takes statuses such as JobStatus.RUNNING, not {shown(statuses)}")
    return " or ".join(status.name for status in statuses)


def _patience(timeout: Any, call: str = "join") -> float | None:
    """Return how long a thread may wait, at most the maximum of the system."""
    if timeout is None:
        return None
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or math.isnan(timeout):
        raise TypeError(f"{call}() takes seconds, not {shown(timeout)}")
    # Locks raise OverflowError for more (Python 3.11).
    return min(max(timeout, 0), threading.TIMEOUT_MAX)


def _date(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
