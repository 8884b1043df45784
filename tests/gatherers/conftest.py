"""What the tests of gatherers share: a clock that is turned by whoever waits."""

from __future__ import annotations

import threading

import pytest


class TurnedClock:
    """A clock that goes on when somebody waits, at once."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.waits: list[float] = []
        self.late = 0.0
        self._lock = threading.Lock()

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float, stop: threading.Event) -> None:
        with self._lock:
            self.waits.append(round(seconds, 6))
            self.time += seconds + self.late
            self.late = 0.0

    async def pause(self, seconds: float) -> None:
        self.sleep(seconds, threading.Event())


@pytest.fixture
def clock() -> TurnedClock:
    """A clock at second 1000."""
    return TurnedClock()
