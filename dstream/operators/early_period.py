"""Early results by the clock: in the first epoch at or past each period, which are multiples of its length."""

from __future__ import annotations

__all__ = ["EarlyPeriod"]


class EarlyPeriod:
    """When the windows of one shard give early results next.

    A shard that was empty begins with the period that its first item falls into.

    Args:
        every: the length of a period in seconds; None: there are no early results.

    Attributes:
        next: the reading of the clock at which they are due; None: not at all, since nothing is there.
    """

    def __init__(self, every: float | None) -> None:
        self._every = every
        self.next: float | None = None

    def begin(self, now: float) -> None:
        """Something is there since `now`; no matter if it was before."""
        if self._every is not None and self.next is None:
            self.next = _end_of_period(now, self._every)

    def passes(self, now: float) -> bool:
        """Say whether early results are due, and wait for the next period."""
        if self._every is None or self.next is None or now < self.next:
            return False
        self.next = _end_of_period(now, self._every)
        return True


def _end_of_period(now: float, every: float) -> float:
    return (now // every + 1) * every
