"""Early results by the clock: in the first epoch at or past each period, which are multiples of its length."""

from __future__ import annotations

import math

from dstream.spi.state_operator import Moment

__all__ = ["EarlyPeriod"]


class EarlyPeriod:
    """When the windows of one shard give early results next.

    A step that was empty begins with the period that its first item falls into. All shards give early results in the
    same epochs, also one that was empty before: what comes of a key does not depend on the shard that it is in.

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

    def passes(self, moment: Moment) -> bool:
        """Say whether early results are due, here or in another shard of the step, and wait for the next period."""
        if self._every is None or self.next is None:
            return False
        of_step = self.next if moment.clock_deadline is None else moment.clock_deadline
        if moment.now < min(self.next, of_step):
            return False
        self.next = _end_of_period(moment.now, self._every)
        return True


def _end_of_period(now: float, every: float) -> float:
    """Return the least multiple of `every` that is greater than `now`."""
    if every <= math.ulp(now):
        return math.nextafter(now, math.inf)
    number = math.floor(now / every) - 1
    # 1.0 // 0.1 is 9, and 10 * 0.1 is 1.0: the product alone says on which side of the reading a period ends.
    while number * every <= now:
        number += 1
    return number * every
