"""Pace: when the next call may be made, and the clock that says so.

The tasks of a job share a rate without talking to each other: time is divided into equal steps, and
each task has every n-th of them to itself, where n tasks may run at once. Clocks of machines differ
by little; the clock is the wall's, since another machine knows no other.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Protocol

__all__ = ["CLOCK", "Clock", "Pace"]

_SLACK = 0.05
"""A call later than these seconds gives its step back and waits for another one.

With steps that are longer by the same part, no second holds more than `rate` + 1 calls: those of a
second belong to steps of 1 + `_SLACK` seconds, which are `rate` of them, and one more at the border.
"""


class Clock(Protocol):
    """Time, and waiting."""

    def now(self) -> float:
        """Return the seconds since 1970."""
        ...

    def sleep(self, seconds: float, stop: threading.Event) -> None:
        """Wait, but no longer than until `stop` is set."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait inside an event loop."""
        ...


class _Wall:
    """The clock on the wall."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float, stop: threading.Event) -> None:
        stop.wait(seconds)

    async def pause(self, seconds: float) -> None:
        import asyncio  # here, since it takes a third of the time of `import dstream`

        await asyncio.sleep(seconds)

    def __reduce__(self) -> str:
        return "CLOCK"


CLOCK: Clock = _Wall()


class Pace:
    """The steps of one task.

    Args:
        rate: how many calls a second all tasks together may make.
        slot: the number of this task.
        slots: how many tasks may run at once.
    """

    def __init__(self, rate: float, slot: int, slots: int, clock: Clock) -> None:
        step = (1 + _SLACK) / rate
        self._every = step * slots
        self._first = step * slot
        self._clock = clock
        self._last = self._steps_until(clock.now())
        self._lock = threading.Lock()

    def wait(self, stop: threading.Event) -> None:
        """Wait for a step of this task, or until `stop` is set."""
        while not stop.is_set():
            turn = self._next()
            self._clock.sleep(max(turn - self._clock.now(), 0), stop)
            if self._clock.now() - turn <= _SLACK:
                return

    async def pause(self) -> None:
        """Wait for a step of this task, inside an event loop."""
        while True:
            turn = self._next()
            await self._clock.pause(max(turn - self._clock.now(), 0))
            if self._clock.now() - turn <= _SLACK:
                return

    def _next(self) -> float:
        """Return when the next step after now begins that nobody has taken."""
        with self._lock:
            # Steps are counted, not added up: the seconds since 1970 leave a float few digits.
            self._last = max(self._last, self._steps_until(self._clock.now())) + 1
            return self._first + self._last * self._every

    def _steps_until(self, now: float) -> int:
        return math.floor((now - self._first) / self._every)
