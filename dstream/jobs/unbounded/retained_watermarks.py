"""`RetainedWatermarks`: for how long a step with several inputs waits for those that are behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from dstream.values.event_time import NO_WATERMARK

__all__ = ["RetainedWatermarks"]


class RetainedWatermarks:
    """How far the inputs of steps were, by the clock of this driver's epochs.

    Args:
        seconds: an input that is behind is waited for so long; None: for ever.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._reached: dict[str, deque[tuple[float, int]]] = {}
        """By the stage that gives timestamps (reading of the clock, watermark), both rising."""

    def note(self, now: float, watermarks: Mapping[str, int]) -> None:
        """Take how far inputs are.

        Args:
            now: the reading of the clock of an epoch, in seconds.
            watermarks: at its end, by the stage that gives timestamps.
        """
        if self._seconds is None:
            return
        for stamp, watermark in watermarks.items():
            reached = self._reached.setdefault(stamp, deque())
            if watermark > (reached[-1][1] if reached else NO_WATERMARK):
                reached.append((now, watermark))
            while len(reached) > 1 and reached[1][0] <= now - self._seconds:
                reached.popleft()

    def floor(self, stamps: Iterable[str], now: float) -> int:
        """Return how far the first of some inputs was when the time to wait began; `NO_WATERMARK` if none was known."""
        if self._seconds is None:
            return NO_WATERMARK
        until = now - self._seconds
        passed = (watermark for stamp in stamps for at, watermark in self._reached.get(stamp, ()) if at <= until)
        return max(passed, default=NO_WATERMARK)
