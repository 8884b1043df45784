"""`JobRun`: what a job in its driver asks of one run of it, bounded or not; and `Stop`: what others ask of a run."""

from __future__ import annotations

from time import monotonic
from typing import Any, Protocol

from dstream.jobs.job_records import Want

__all__ = ["JobRun", "Stop"]


class Stop:
    """What somebody asks of a run.

    Attributes:
        want: what is to become of the job then.
        at: when it was asked, by a clock that only goes on.
    """

    def __init__(self, want: Want) -> None:
        self.want = want
        self.at = monotonic()


class JobRun(Protocol):
    """One run of a job.

    Attributes:
        stop: what it was asked, or None.
        is_void: what it makes is thrown away.
        is_decided: nobody stops it any more.
    """

    stop: Stop | None
    is_void: bool
    is_decided: bool

    def ask(self, want: Want) -> bool:
        """Ask the run to stop; True only for the call that stops it."""
        ...

    def give_up(self) -> bool:
        """Make the run void; False if it must be left to end."""
        ...

    def cancel(self) -> None:
        """End what the engine runs for it."""
        ...

    def progress(self) -> dict[str, Any]:
        """Return what the state of the job says of it: fields of `JobState`."""
        ...

    def work(self) -> None:
        """Run.

        Raises:
            CancelledError: it was asked to stop, and has done so.
            JobTakenOverError: another driver has the job.
            Exception: what a function of the user's raised, or what kept the job from running.
        """
        ...
