"""`JobRun`: one run of a job, bounded or not, as its driver sees it; and `Stop`, which ends one."""

from __future__ import annotations

from time import monotonic
from typing import Any, Protocol

__all__ = ["JobRun", "Stop"]


class Stop:
    """The request that a run ends.

    Attributes:
        is_at_once: it does not end its epoch first.
        at: when it was asked, by a clock that only goes on.
    """

    def __init__(self, is_at_once: bool) -> None:
        self.is_at_once = is_at_once
        self.at = monotonic()

    @staticmethod
    def after(before: Stop | None, is_at_once: bool) -> Stop:
        """Return the request that holds behind the one before: one that stops at once is never taken back."""
        return before if before is not None and (before.is_at_once or not is_at_once) else Stop(is_at_once)


class JobRun(Protocol):
    """One run of a job.

    Attributes:
        stop: the request that it ends, or None.
        is_void: what it makes is thrown away.
        is_decided: nobody stops it any more.
    """

    stop: Stop | None
    is_void: bool
    is_decided: bool

    def ask_to_stop(self, is_at_once: bool) -> bool:
        """Ask the run to stop; False if nothing stops it any more. Asked again, it may have to stop sooner."""
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
