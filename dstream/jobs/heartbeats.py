"""`Heartbeats` and `JobWatch`: heartbeats of a driver, and a job seen from any process through its records."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep

from dstream.base.threads import in_a_thread
from dstream.errors import IllegalStateError, JobTakenOverError
from dstream.jobs.driver import Execution
from dstream.jobs.lease import release, take_over
from dstream.jobs.outcomes import JobCancelledError, JobFuture
from dstream.jobs.records import JobRecords, Request, StateRecord
from dstream.jobs.state import JobState, JobStatus, Want, is_gone

__all__ = ["Heartbeats", "JobWatch", "Rhythm"]


_log = logging.getLogger("dstream.jobs")


@dataclass(frozen=True)
class Rhythm:
    """Intervals of the heartbeat and of its checks, in seconds.

    Attributes:
        look: the pause between two polls of requests.
        beat: the pause between two heartbeats.
        lost_after: the time without a heartbeat after which a driver counts as lost.
        patience: how long a run may take to stop on request, before the job continues without it.
    """

    look: float = 0.5
    beat: float = 2.0
    lost_after: float = 10.0
    patience: float = 3.0


class Heartbeats:
    """The thread that serves the jobs of this process, while there are any.

    Args:
        records: the records of the jobs.
        rhythm: the intervals.
        clock: returns the time.
    """

    def __init__(self, records: JobRecords, rhythm: Rhythm, clock: Callable[[], float]) -> None:
        self._records = records
        self._rhythm = rhythm
        self._clock = clock
        self._lock = threading.Lock()
        self._beating: list[Execution] = []
        self._unheard: set[str] = set()
        self._opening: set[str] = set()
        self._is_awake = False
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def add(self, execution: Execution) -> None:
        """Serve a job until it ends."""
        with self._lock:
            self._beating.append(execution)
            if not self._is_awake:
                thread = threading.Thread(target=self._live, name="dstream-jobs", daemon=True)
                thread.start()
                # After the start, which fails if no thread can be created: the next job tries again.
                self._thread, self._is_awake = thread, True

    def jobs(self) -> list[Execution]:
        """Return the jobs that have not ended."""
        with self._lock:
            self._beating = [each for each in self._beating if not each.has_ended]
            return list(self._beating)

    def stop(self, patience: float) -> None:
        """Stop the heartbeat; wait at most `patience` seconds for the current round."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(patience)

    def _live(self) -> None:
        while not self._stop.wait(self._rhythm.look):
            jobs = self.jobs()
            with self._lock:
                # Under the lock: a job that is added now either keeps this thread alive, or starts another one.
                if not self._beating:
                    self._is_awake = False
                    return
            for each in jobs:
                self._look_after(each)

    def _look_after(self, execution: Execution) -> None:
        """Do everything that is due; the failure of one action does not prevent the others."""
        # The heartbeat is last, since it writes the answers of this round, for which other processes wait.
        for act in (self._abandon_run, self._listen, self._beat):
            try:
                act(execution)
            except JobTakenOverError as error:
                execution.taken_over(error)
                return
            except Exception as problem:
                # The job itself finds out whether it can still commit; until then the next round may succeed.
                _log.debug("the job %s could not be looked after: %r", execution.lease.state.id, problem)

    def _abandon_run(self, execution: Execution) -> None:
        execution.abandon_run(self._rhythm.patience)

    def _beat(self, execution: Execution) -> None:
        """Write the state of the job, if it has changed, or if the last heartbeat is too old."""
        lease = execution.lease
        # A clock that was set back does not show how long it is ago.
        since = abs(self._clock() - lease.state.beat_at)
        if not execution.has_ended and (lease.is_ahead or since >= self._rhythm.beat):
            lease.write()

    def _listen(self, execution: Execution) -> None:
        """Read the requests of other processes, and answer."""
        state = execution.lease.state
        try:
            requests = [each for each in self._records.requests(state.id) if each.number > state.answered]
        except IllegalStateError as error:
            # The job does not need its requests to run, so it continues, and logs this once instead of twice a second.
            if state.id not in self._unheard:
                self._unheard.add(state.id)
                _log.warning("%s hears no other process, since requests cannot be read: %s", state.title, error)
            return
        self._unheard.discard(state.id)
        if state.id in self._opening:  # Cancel precedes the update that is in progress, and all others.
            requests = [each for each in requests if each.want == "cancel"]
        if any(each.want == "update" for each in requests):
            self._opening.add(state.id)
            try:
                in_a_thread(partial(self._answer_beside, execution, requests), f"dstream-update-{state.id}")
            except BaseException:  # No thread can be created: the next round finds the same requests.
                self._opening.discard(state.id)
                raise
        elif requests:
            execution.answer(requests)

    def _answer_beside(self, execution: Execution, requests: Sequence[Request]) -> None:
        """Answer in another thread: an update opens sources, and meanwhile all jobs need their heartbeats."""
        try:
            execution.answer(requests)
        except Exception as problem:
            _log.debug("the job %s could not be asked: %r", execution.lease.state.id, problem)
        finally:
            self._opening.discard(execution.lease.state.id)


_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class JobWatch:
    """View of the jobs of all processes from this process.

    Args:
        records: the records of the jobs.
        rhythm: the intervals of heartbeats.
        clock: returns the time.
    """

    def __init__(self, records: JobRecords, rhythm: Rhythm, clock: Callable[[], float]) -> None:
        self._records = records
        self._rhythm = rhythm
        self._clock = clock

    def now(self) -> float:
        """Return the current time."""
        return self._clock()

    def state(self, identity: str) -> JobState:
        """Return a job as its record shows it."""
        return self._record(identity).state

    def _record(self, identity: str) -> StateRecord:
        stored = self._records.read(identity)
        if stored is None:
            raise IllegalStateError(f"there is no record of the job {identity} any more")
        return stored

    def is_lost(self, state: JobState, *, is_here: bool = False) -> bool:
        """Return whether a job has neither ended nor a driver.

        Args:
            state: the state of the job from its record, or from its driver.
            is_here: its driver is alive in this process, regardless of late heartbeats.
        """
        if state.status.has_ended:
            return False
        if state.status is JobStatus.NOT_RUNNING:  # as its driver has left it
            return True
        is_driver_gone = bool(is_gone(state.driver))
        if is_here or is_driver_gone:
            return is_driver_gone
        return self._clock() - state.beat_at > self._rhythm.lost_after

    def ask(self, identity: str, want: Want, pickle: bytes | None = None) -> bool:
        """Send a request to the driver, and wait for its answer; True if this request was obeyed.

        If the driver is lost, a request to cancel reaches the driver that takes over the job; other requests are
        withdrawn.

        Args:
            identity: the job.
            want: the kind of request.
            pickle: the pipeline of an update.
        """
        request = Request(0, want, secrets.token_hex(16))
        if pickle is not None:
            # Before the request: the driver loads it as soon as it reads that.
            self._records.keep_pickle(identity, request.pickle, pickle)
        try:
            while (answer := self._asked(identity, request)) is None:
                pass
            return answer
        finally:
            if pickle is not None:
                # After Ctrl-C the request remains, and the driver refuses it, since its pipeline is missing.
                self._records.forget_pickle(identity, request.pickle)

    def _asked(self, identity: str, request: Request) -> bool | None:
        """Send a request once; None if the driver is lost, and another one may have taken over."""
        stored = self._record(identity)
        if stored.state.status.has_ended:
            return request.mark in stored.state.obeyed
        if self.is_lost(stored.state):
            return self._cancelled(stored) if request.want == "cancel" else False
        # The mark is the same for a retry: requests that a driver obeyed before it was lost count.
        made = self._records.ask(identity, request.want, request.mark, stored.state.answered)
        return self._answer(identity, made)

    def _answer(self, identity: str, request: Request) -> bool | None:
        pause = _FIRST_PAUSE
        while True:
            stored = self._record(identity)
            state = stored.state
            # Before the status: a job that was cancelled has ended because of this very request.
            if request.mark in state.obeyed:
                return True
            if state.status.has_ended or state.answered >= request.number:
                return False
            if self.is_lost(state):
                if request.want == "cancel":
                    return None
                self._records.withdraw(identity, request.mark)
                return request.mark in self._record(identity).state.obeyed  # It may have answered, and then ended.
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _cancelled(self, stored: StateRecord) -> bool | None:
        """End a job without a driver; False if it is decided, since its sinks may have published already.

        None: another process was first.
        """
        taken = take_over(self._records, stored, self._clock)
        if taken is None:
            return None
        lease, epoch = taken
        is_decided = epoch.receipts is not None
        release(lease, stored.state, JobStatus.NOT_RUNNING if is_decided else JobStatus.CANCELLED)
        return not is_decided

    def end_of(self, identity: str, failed: Callable[[JobState], BaseException]) -> JobFuture:
        """Return the end of a job, looked for in a thread.

        Args:
            identity: the job.
            failed: returns the error with which a job has failed.
        """
        future = JobFuture()
        # A daemon, since a job elsewhere may run for ever, and this program has to be able to end.
        threading.Thread(target=self._wait, args=(identity, future, failed), name="dstream-join", daemon=True).start()
        return future

    def _wait(self, identity: str, future: JobFuture, failed: Callable[[JobState], BaseException]) -> None:
        try:
            state = self._ended(identity)
            match state.status:
                case JobStatus.COMPLETED:
                    future.end(None)
                case JobStatus.CANCELLED:
                    future.end(JobCancelledError(f"{state.title} was cancelled"))
                case _:
                    future.end(failed(state))
        except BaseException as problem:  # Any failure must reach the caller that waits.
            future.end(problem)

    def _ended(self, identity: str) -> JobState:
        """Wait for the end of a job. A lost job may resume in another process within a grace period."""
        pause, lost_since = _FIRST_PAUSE, None
        while not (state := self.state(identity)).status.has_ended:
            now = monotonic()
            lost_since = (lost_since or now) if self.is_lost(state) else None
            if lost_since is not None and now - lost_since > self._rhythm.lost_after:
                raise IllegalStateError(f"the driver of {state.title} is gone; {_AGAIN}")
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return state


_AGAIN = "submit its pipeline under its name again, and the job goes on"
