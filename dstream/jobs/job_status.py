"""`JobStatus`: how far a job is, and which status may follow which."""

from __future__ import annotations

from enum import Enum

from dstream.errors import IllegalStateError

__all__ = ["JobStatus", "checked_change"]


class JobStatus(Enum):
    """How far a job is. `NOT_RUNNING` has not begun yet, or has lost its driver (`job.is_lost`)."""

    NOT_RUNNING = "NOT_RUNNING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    SUSPENDED_EXPORTING_SNAPSHOT = "SUSPENDED_EXPORTING_SNAPSHOT"
    RESTARTING = "RESTARTING"
    COMPLETING = "COMPLETING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def has_ended(self) -> bool:
        """Whether the job is over: completed, failed or cancelled."""
        return self in _ENDED

    def __repr__(self) -> str:
        return f"JobStatus.{self.name}"


_ENDED = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})
_STOPPED = frozenset({JobStatus.RESTARTING, JobStatus.FAILED, JobStatus.CANCELLED})
_SUSPENDING = frozenset({JobStatus.SUSPENDED, JobStatus.SUSPENDED_EXPORTING_SNAPSHOT})
_LEFT = frozenset({JobStatus.SUSPENDED, JobStatus.NOT_RUNNING})
"""What an unbounded job may become at any time: it goes on later."""

_AFTER: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.NOT_RUNNING: frozenset({JobStatus.STARTING, JobStatus.CANCELLED}),
    JobStatus.STARTING: _STOPPED | _LEFT | {JobStatus.RUNNING, JobStatus.COMPLETING},
    JobStatus.RUNNING: _STOPPED | _SUSPENDING | _LEFT | {JobStatus.COMPLETING},
    JobStatus.SUSPENDED: _STOPPED | _LEFT | {JobStatus.STARTING, JobStatus.SUSPENDED_EXPORTING_SNAPSHOT},
    JobStatus.SUSPENDED_EXPORTING_SNAPSHOT: frozenset({JobStatus.SUSPENDED, JobStatus.FAILED, JobStatus.CANCELLED}),
    JobStatus.RESTARTING: _LEFT | {JobStatus.STARTING, JobStatus.FAILED, JobStatus.CANCELLED},
    # From here on the job is decided: it publishes, and nobody cancels it any more.
    JobStatus.COMPLETING: frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.RESTARTING}),
    JobStatus.COMPLETED: frozenset(),
    # A job that failed between the commits of two sinks may be run again, to publish what is left.
    JobStatus.FAILED: frozenset({JobStatus.STARTING}),
    JobStatus.CANCELLED: frozenset(),
}


def checked_change(before: JobStatus, after: JobStatus) -> JobStatus:
    """Return the status that follows.

    Raises:
        IllegalStateError: it cannot follow.
    """
    if after not in _AFTER[before]:
        raise IllegalStateError(f"a job that is {before.name} cannot become {after.name}")
    return after
