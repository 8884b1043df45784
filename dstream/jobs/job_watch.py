"""`Watch`: a job of any process, as its records show it, and how its driver is asked for things."""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections.abc import Callable
from time import monotonic, sleep

from dstream.errors import IllegalStateError
from dstream.jobs.epoch_record import EpochRecord
from dstream.jobs.job_drivers import driver_here, forget_driver, is_gone
from dstream.jobs.job_future import JobCancelledError, JobFuture
from dstream.jobs.job_heart import Rhythm
from dstream.jobs.job_lease import Lease
from dstream.jobs.job_records import Held, JobRecords, Request, Want
from dstream.jobs.job_state import JobState
from dstream.jobs.job_status import JobStatus

__all__ = ["Watch"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Watch:
    """What one process knows of the jobs of all.

    Args:
        records: those of the jobs.
        rhythm: how often drivers give a sign of life.
        clock: says what time it is.
    """

    def __init__(self, records: JobRecords, rhythm: Rhythm, clock: Callable[[], float]) -> None:
        self._records = records
        self._rhythm = rhythm
        self._clock = clock

    def now(self) -> float:
        """Return what time it is."""
        return self._clock()

    def state(self, identity: str) -> JobState:
        """Return a job as its record shows it."""
        return self._held(identity).state

    def _held(self, identity: str) -> Held:
        held = self._records.read(identity)
        if held is None:
            raise IllegalStateError(f"there is no record of the job {identity} any more")
        return held

    def is_lost(self, state: JobState, *, is_here: bool = False) -> bool:
        """Say whether a job has not ended and nobody drives it.

        Args:
            state: the job as its record shows it, or as its driver knows it.
            is_here: its driver is in this process, which sees it live, however late its signs of life come.
        """
        if state.status.has_ended:
            return False
        if state.status is JobStatus.NOT_RUNNING:  # as its driver has left it
            return True
        is_driver_gone = bool(is_gone(state.driver))
        if is_here or is_driver_gone:
            return is_driver_gone
        return self._clock() - state.beat_at > self._rhythm.lost_after

    def take_over(self, held: Held) -> tuple[Lease, EpochRecord] | None:
        """Become the driver of a job; None if somebody else was first."""
        driver = driver_here()
        taken = dataclasses.replace(held.state, driver=driver).starting(self._clock())
        if not self._records.write(taken, held.version + 1):
            forget_driver(driver)
            return None
        epoch = EpochRecord(self._records, held.state.id, driver.token)
        epoch.claim()
        return Lease(self._records, Held(held.version + 1, taken), self._clock), epoch

    def let_go(self, lease: Lease, before: JobState, status: JobStatus) -> None:
        """Drive a job no more that was taken over: it has a status, or has failed still if it had before."""
        forget_driver(lease.state.driver)
        if before.status is JobStatus.FAILED:
            status = JobStatus.FAILED
        lease.move(status, failure=before.failure)
        lease.write()

    def ask(self, identity: str, want: Want, pickle: bytes | None = None) -> bool:
        """Ask the driver for something, and wait for its answer; True if this very request was obeyed.

        A request to cancel reaches the driver that takes the job over, if the one that was asked is gone; others are
        withdrawn then.

        Args:
            identity: the job.
            want: what is asked for.
            pickle: the pipeline of an update.
        """
        request = Request(0, want, secrets.token_hex(16))
        if pickle is not None:
            self._records.keep_pickle(identity, request.pickle, pickle)
        try:
            while (answer := self._asked(identity, request)) is None:
                pass
            return answer
        finally:
            if pickle is not None:
                self._records.forget_pickle(identity, request.pickle)

    def _asked(self, identity: str, request: Request) -> bool | None:
        """Ask once; None if the driver is gone, and another one may be there."""
        held = self._held(identity)
        if held.state.status.has_ended:
            return request.mark in held.state.obeyed
        if self.is_lost(held.state):
            return self._cancelled(held) if request.want == "cancel" else False
        made = self._records.ask(identity, request.want, request.mark, held.state.answered)
        return self._answer(identity, made)

    def _answer(self, identity: str, request: Request) -> bool | None:
        pause = _FIRST_PAUSE
        while True:
            held = self._held(identity)
            state = held.state
            if request.mark in state.obeyed:
                return True
            if state.status.has_ended or state.answered >= request.number:
                return False
            if self.is_lost(state):
                if request.want == "cancel":
                    return None
                self._records.withdraw(identity, request.mark)
                return request.mark in self._held(identity).state.obeyed  # It may have answered, and then gone.
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _cancelled(self, held: Held) -> bool | None:
        """End a job that nobody drives; False if it is decided, since its sinks may have published already.

        None: somebody else was first.
        """
        taken = self.take_over(held)
        if taken is None:
            return None
        lease, epoch = taken
        is_decided = epoch.receipts is not None
        self.let_go(lease, held.state, JobStatus.NOT_RUNNING if is_decided else JobStatus.CANCELLED)
        return not is_decided

    def end_of(self, identity: str, failed: Callable[[JobState], BaseException]) -> JobFuture:
        """Return the end of a job, looked for in a thread.

        Args:
            identity: the job.
            failed: returns what a job that failed has failed with.
        """
        future = JobFuture()
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
        except BaseException as problem:  # Whatever it is, somebody waits for it.
            future.end(problem)

    def _ended(self, identity: str) -> JobState:
        """Wait for the end of a job. One that is lost may go on in another process, which gets some time for that."""
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
