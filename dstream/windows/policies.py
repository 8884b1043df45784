"""Watermark policies, and emission policies for watermarks.

Each partition has its own watermark policy. The result of a policy may decrease; the watermark of the partition does
not. An emission policy receives the current watermark and the last sent watermark, and returns the watermark to send;
nothing is sent unless it is greater than the last. The names and rules are those of Hazelcast Jet's
`WatermarkPolicies` and `WatermarkEmissionPolicy`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, TypeAlias

from dstream.spi.epochs import WatermarkPolicy
from dstream.values.time import NO_WATERMARK, milliseconds, seconds
from dstream.windows.definitions import FrameWindow

__all__ = [
    "EmissionPolicy",
    "emit_by_frame",
    "emit_by_min_step",
    "limiting_lag",
    "limiting_lag_and_delay",
    "limiting_lag_and_lull",
    "limiting_timestamp_and_wall_clock_lag",
    "no_throttling",
]


def limiting_lag(lag: int | timedelta) -> WatermarkPolicy:
    """Limit the lag of the watermark: a fixed distance from the greatest timestamp.

    Args:
        lag: the maximum age of an event relative to the newest, in milliseconds or as a timedelta.

    Example:
        >>> policy = limiting_lag(2000)
        >>> policy.report(10_000, now=0.0)
        >>> policy.watermark(now=60.0)
        8000
    """
    return _Lag(milliseconds(lag, "lag"))


def limiting_lag_and_delay(lag: int | timedelta, max_delay: float | timedelta) -> WatermarkPolicy:
    """Limit the lag of the watermark, and the time by the clock until it reaches the greatest timestamp.

    The watermark reaches the greatest timestamp `max_delay` after it was seen, also if event time is slower than the
    clock. The delay is measured in 16 steps, so it may be longer by a sixteenth.

    Args:
        lag: the maximum age of an event relative to the newest, in milliseconds or as a timedelta.
        max_delay: the maximum delay, in seconds or as a timedelta.

    Example:
        >>> policy = limiting_lag_and_delay(2000, max_delay=5)
        >>> policy.report(10_000, now=0.0)
        >>> policy.watermark(now=4.0), policy.watermark(now=5.0)
        (8000, 10000)
    """
    return _LagAndDelay(milliseconds(lag, "lag"), max_delay=seconds(max_delay, "max_delay"))


def limiting_timestamp_and_wall_clock_lag(lag: int | timedelta, wall_lag: float | timedelta) -> WatermarkPolicy:
    """Limit the lag of the watermark to the greatest timestamp and to the clock, whichever is ahead.

    The clock counts from the start, also before the first event.

    Args:
        lag: the distance to the greatest timestamp, in milliseconds or as a timedelta.
        wall_lag: the distance to the clock, in seconds or as a timedelta.

    Example:
        >>> policy = limiting_timestamp_and_wall_clock_lag(2000, wall_lag=30)
        >>> policy.report(10_000, now=12.0)
        >>> policy.watermark(now=12.0), policy.watermark(now=60.0)
        (8000, 30000)
    """
    return _LagAndWallClock(milliseconds(lag, "lag"), wall_lag=seconds(wall_lag, "wall_lag"))


def limiting_lag_and_lull(lag: int | timedelta, max_lull: float | timedelta) -> WatermarkPolicy:
    """Limit the lag of the watermark, and advance it with the clock after a pause without events.

    Args:
        lag: the distance to the greatest timestamp, in milliseconds or as a timedelta.
        max_lull: the longest pause before the clock counts, in seconds or as a timedelta.

    Example:
        >>> policy = limiting_lag_and_lull(2000, max_lull=5)
        >>> policy.report(10_000, now=0.0)
        >>> policy.watermark(now=5.0), policy.watermark(now=6.0)
        (8000, 9000)
    """
    return _LagAndLull(milliseconds(lag, "lag"), max_lull=seconds(max_lull, "max_lull"))


@dataclass(slots=True)
class _Lag:
    """The greatest timestamp, less the lag."""

    # No policy of this module depends on the number of timestamps in an epoch, so that tasks need not report each.
    greatest_only: ClassVar[bool] = True
    settings: ClassVar[tuple[str, ...]] = ("lag",)

    lag: int
    greatest: int = NO_WATERMARK

    def report(self, timestamp: int, now: float) -> None:
        if timestamp > self.greatest:
            self.greatest = timestamp

    def watermark(self, now: float) -> int:
        # Subtracting the lag from the least int of 64 bits would leave them.
        return NO_WATERMARK if self.greatest == NO_WATERMARK else self.greatest - self.lag


@dataclass(slots=True)
class _LagAndDelay(_Lag):
    """The greatest timestamp, less the lag, or the greatest timestamp that was seen `max_delay` ago.

    Attributes:
        seen: (reading of the clock, greatest timestamp by then), ascending, one for each step of the clock.
        delayed: the greatest timestamp that was seen long enough ago.
    """

    settings: ClassVar[tuple[str, ...]] = ("lag", "max_delay")

    max_delay: float = 0.0
    seen: list[tuple[float, int]] = field(default_factory=list)
    delayed: int = NO_WATERMARK

    def report(self, timestamp: int, now: float) -> None:
        if timestamp > self.greatest:
            self.greatest = timestamp
            if self.seen and self._step(self.seen[-1][0]) == self._step(now):
                self.seen.pop()  # It counts from the later reading on, so that no timestamp counts too early.
            self.seen.append((now, timestamp))

    def watermark(self, now: float) -> int:
        while self.seen and self.seen[0][0] + self.max_delay <= now:
            self.delayed = self.seen.pop(0)[1]
        # Not by `super()`: a dataclass with slots is not the class that its methods refer to (CPython 3.11).
        return max(_Lag.watermark(self, now), self.delayed)

    def _step(self, now: float) -> int:
        return math.floor(now * _STEPS / self.max_delay) if self.max_delay else 0


# A policy is pickled with each epoch: more steps would be more exact, and more to write.
_STEPS = 16


@dataclass(slots=True)
class _LagAndWallClock(_Lag):
    """The greatest timestamp, less the lag, or the clock, less its own lag."""

    settings: ClassVar[tuple[str, ...]] = ("lag", "wall_lag")

    wall_lag: float = 0.0

    def watermark(self, now: float) -> int:
        return max(_Lag.watermark(self, now), math.floor((now - self.wall_lag) * 1000))


@dataclass(slots=True)
class _LagAndLull(_Lag):
    """The greatest timestamp, less the lag, plus the time since the last event beyond the lull.

    Attributes:
        last: the reading of the clock at the last event.
    """

    settings: ClassVar[tuple[str, ...]] = ("lag", "max_lull")

    max_lull: float = 0.0
    last: float = 0.0

    def report(self, timestamp: int, now: float) -> None:
        _Lag.report(self, timestamp, now)
        self.last = now

    def watermark(self, now: float) -> int:
        behind = _Lag.watermark(self, now)
        return (
            behind if behind == NO_WATERMARK else behind + max(0, math.floor((now - self.last - self.max_lull) * 1000))
        )


EmissionPolicy: TypeAlias = Callable[[int, int], int]
"""Function of (current watermark, last sent watermark) that returns the watermark to send."""


def no_throttling() -> EmissionPolicy:
    """Send every watermark that is greater than the last.

    Example:
        >>> no_throttling()(101, 100)
        101
    """
    return _now


def emit_by_min_step(step: int | timedelta) -> EmissionPolicy:
    """Send a watermark that is ahead of the last one by at least a step.

    Args:
        step: the step in milliseconds or as a timedelta; at least 1 ms.

    Raises:
        TypeError: it is neither.
        ValueError: it is not positive.

    Example:
        >>> emit_by_min_step(10)(109, 100), emit_by_min_step(10)(110, 100)
        (100, 110)
    """
    length = milliseconds(step, "step")
    if not length:
        raise ValueError("step must be at least 1 ms, not 0")
    return _ByMinStep(length)


def emit_by_frame(window: FrameWindow) -> EmissionPolicy:
    """Send a watermark when a window can close: the borders between frames.

    Args:
        window: `tumbling(...)` or `sliding(...)`.

    Raises:
        TypeError: it is neither.

    Example:
        >>> from dstream.windows import sliding
        >>> emit_by_frame(sliding(30, by=10))(119, 100)
        110
    """
    if not isinstance(window, FrameWindow):
        raise TypeError(f"window must be what tumbling(...) or sliding(...) makes, not {type(window).__name__}")
    return _ByFrame(window)


def _now(watermark: int, last: int) -> int:
    return watermark


@dataclass(frozen=True, slots=True)
class _ByMinStep:
    step: int

    def __call__(self, watermark: int, last: int) -> int:
        return watermark if watermark - last >= self.step else last


@dataclass(frozen=True, slots=True)
class _ByFrame:
    window: FrameWindow

    def __call__(self, watermark: int, last: int) -> int:
        return self.window.floor_frame(watermark)
