"""`Lease`: the right of one driver to replace the state of a job, with takeover and release."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

from dstream.errors import JobTakenOverError
from dstream.jobs.records import EpochRecord, JobRecords, StateRecord
from dstream.jobs.state import JobState, JobStatus, checked_change, driver_here, forget_driver

__all__ = ["Lease", "release", "take_over"]


class Lease:
    """The state of a job in its driver.

    It may be ahead of the record: states that last milliseconds are not written by themselves, but with the next one.

    Args:
        records: where the record is stored.
        held: the state as written by this driver.
        clock: returns the time.

    Attributes:
        began: the version of the record by which this driver took the job; a later driver has a greater one.
    """

    def __init__(self, records: JobRecords, held: StateRecord, clock: Callable[[], float]) -> None:
        self._records = records
        self._version, self._state = held
        self.began = held.version
        self._written = held.state
        self._clock = clock
        self._lock = threading.RLock()

    @property
    def state(self) -> JobState:
        """The current state of the job."""
        return self._state

    def change(self, **changes: Any) -> None:
        """Change the state in this process; others see it when it is written."""
        with self._lock:
            self._state = dataclasses.replace(self._state, **changes)

    def note(self, **changes: Any) -> None:
        """Change the record that may reach others with the next heartbeat."""
        with self._lock:
            is_ahead = self.is_ahead
            self.change(**changes)
            if not is_ahead:
                self._written = self._state

    def move(self, status: JobStatus, **changes: Any) -> None:
        """Set the status of the job, in this process."""
        with self._lock:
            self._state = self._moved(status, **changes)

    def _moved(self, status: JobStatus, **changes: Any) -> JobState:
        checked_change(self._state.status, status)
        now = self._clock()
        if status is JobStatus.RUNNING and self._state.started_at is None:
            changes["started_at"] = now
        if status.has_ended:
            changes["ended_at"] = now
        return dataclasses.replace(self._state, status=status, times={**self._state.times, status.name: now}, **changes)

    def end(self, status: JobStatus) -> None:
        """Set the last status of the job, in its record first: this process may act on it immediately.

        Raises:
            JobTakenOverError: another driver has the job; in this process it has ended nevertheless.
        """
        with self._lock:
            ended = self._moved(status, beat_at=self._clock())
            try:
                self._put(ended)
            finally:
                self._state = ended

    def write(self) -> None:
        """Show others the state, and that the driver is alive.

        Raises:
            JobTakenOverError: another driver has the job.
        """
        with self._lock:
            self.change(beat_at=self._clock())
            self._put(self._state)

    def _put(self, state: JobState) -> None:
        # A write also fails if an earlier write succeeded and its response was lost: then the conflicting version is
        # our own.
        while not self._records.write(state, self._version + 1):
            self._catch_up()
        self._version += 1
        self._written = state

    @property
    def is_ahead(self) -> bool:
        """Return whether others do not see yet how the job is."""
        # By identity: each change creates a new state, so no fields need to be compared.
        return self._state is not self._written

    def _catch_up(self) -> None:
        """Find the version that this driver wrote without getting the answer."""
        held = self._records.read(self._state.id)
        if held is None:
            raise JobTakenOverError(
                f"the record of the job {self._state.id} is gone, and with it the right of this driver to go on: its "
                "storage was removed or emptied; what this one wrote is thrown away"
            )
        if held.version <= self._version or held.state.driver.token != self._state.driver.token:
            raise JobTakenOverError(f"another driver has taken over the job {self._state.id}")
        self._version = held.version


def take_over(records: JobRecords, held: StateRecord, clock: Callable[[], float]) -> tuple[Lease, EpochRecord] | None:
    """Become the driver of a job; None if another process was first."""
    # Registered in this process before the record names it: otherwise other threads would consider the driver lost.
    driver = driver_here()
    taken = dataclasses.replace(held.state, driver=driver).starting(clock())
    epoch = EpochRecord(records, held.state.id, driver.token)
    try:
        if not records.write(taken, held.version + 1):
            forget_driver(driver)
            return None
        # Only the winner claims: the state decides among several takers, and a loser would cut the winner off.
        epoch.claim()
    except BaseException:
        # The record may name this driver: unless it is removed, the job would count as running.
        forget_driver(driver)
        raise
    return Lease(records, StateRecord(held.version + 1, taken), clock), epoch


def release(lease: Lease, before: JobState, status: JobStatus) -> None:
    """Stop driving a job that was taken over: set its status, or its earlier failure."""
    forget_driver(lease.state.driver)
    if before.status is JobStatus.FAILED:
        status = JobStatus.FAILED
    lease.move(status, failure=before.failure)
    lease.write()
