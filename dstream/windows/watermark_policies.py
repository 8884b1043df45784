"""Policies: how far the time of one partition of a source has come, from its timestamps and the clock.

Each partition has a policy of its own. What a policy says may go back; the watermark of the partition does not. The
names and rules are those of Hazelcast Jet's `WatermarkPolicies`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

from dstream.spi.epochs import WatermarkPolicy
from dstream.values.event_time import NO_WATERMARK
from dstream.values.state_values import state_value
from dstream.values.time_units import milliseconds, seconds

__all__ = [
    "limiting_lag",
    "limiting_lag_and_delay",
    "limiting_lag_and_lull",
    "limiting_timestamp_and_wall_clock_lag",
]


def limiting_lag(lag: int | timedelta) -> WatermarkPolicy:
    """Let the watermark follow the greatest timestamp at a distance.

    Args:
        lag: the distance, in milliseconds or as a timedelta: how much older than the newest an event may be.

    Example:
        >>> policy = limiting_lag(2000)
        >>> policy.report(10_000, now=0.0)
        >>> policy.watermark(now=60.0)
        8000
    """
    return _Lag(milliseconds(lag, "lag"))


def limiting_lag_and_delay(lag: int | timedelta, max_delay: float | timedelta) -> WatermarkPolicy:
    """Do the same, and let no event wait longer for the watermark than a time by the clock.

    The watermark reaches the greatest timestamp when `max_delay` has passed since that was seen, also where time in the
    events goes slower than the clock. The delay is kept in 16 steps, so it may be longer by a sixteenth.

    Args:
        lag: how much older than the newest an event may be, in milliseconds or as a timedelta.
        max_delay: in seconds or as a timedelta.

    Example:
        >>> policy = limiting_lag_and_delay(2000, max_delay=5)
        >>> policy.report(10_000, now=0.0)
        >>> policy.watermark(now=4.0), policy.watermark(now=5.0)
        (8000, 10000)
    """
    return _LagAndDelay(milliseconds(lag, "lag"), max_delay=seconds(max_delay, "max_delay"))


def limiting_timestamp_and_wall_clock_lag(lag: int | timedelta, wall_lag: float | timedelta) -> WatermarkPolicy:
    """Let the watermark follow the greatest timestamp, and the clock, whichever is ahead.

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
    """Let the watermark follow the greatest timestamp, and after a pause without events go on with the clock.

    Args:
        lag: the distance to the greatest timestamp, in milliseconds or as a timedelta.
        max_lull: how long a pause may be before, in seconds or as a timedelta.

    Example:
        >>> policy = limiting_lag_and_lull(2000, max_lull=5)
        >>> policy.report(10_000, now=0.0)
        >>> policy.watermark(now=5.0), policy.watermark(now=6.0)
        (8000, 9000)
    """
    return _LagAndLull(milliseconds(lag, "lag"), max_lull=seconds(max_lull, "max_lull"))


@state_value
@dataclass(slots=True)
class _Lag:
    """The greatest timestamp, less the lag."""

    greatest_only: ClassVar[bool] = True
    settings: ClassVar[tuple[str, ...]] = ("lag",)

    lag: int
    greatest: int = NO_WATERMARK

    def report(self, timestamp: int, now: float) -> None:
        if timestamp > self.greatest:
            self.greatest = timestamp

    def watermark(self, now: float) -> int:
        return NO_WATERMARK if self.greatest == NO_WATERMARK else self.greatest - self.lag


@state_value
@dataclass(slots=True)
class _LagAndDelay(_Lag):
    """Also the greatest timestamp that was seen `max_delay` ago.

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
        return max(_Lag.watermark(self, now), self.delayed)

    def _step(self, now: float) -> int:
        return math.floor(now * _STEPS / self.max_delay) if self.max_delay else 0


_STEPS = 16


@state_value
@dataclass(slots=True)
class _LagAndWallClock(_Lag):
    """Also the clock, less its own lag."""

    settings: ClassVar[tuple[str, ...]] = ("lag", "wall_lag")

    wall_lag: float = 0.0

    def watermark(self, now: float) -> int:
        return max(_Lag.watermark(self, now), math.floor((now - self.wall_lag) * 1000))


@state_value
@dataclass(slots=True)
class _LagAndLull(_Lag):
    """Plus the time by the clock since the last event, less the lull.

    Attributes:
        last: the reading of the clock when an event came last.
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
