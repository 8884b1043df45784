"""`Pace`: how long a loop waits before it asks its sources again."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

__all__ = ["Pace"]

_SHARE = 0.01
"""Of a core: asking sources that have nothing takes no more."""


@dataclass(slots=True)
class Pace:
    """Waits little after news, and longer as long as there is none.

    Attributes:
        shortest: seconds between two epochs, or two looks at sources, when there was news.
        longest: seconds between two looks when there was none for a while.
    """

    shortest: float
    longest: float
    _pause: float = 0.0
    _began: float = 0.0

    def begins(self) -> None:
        """Say that sources are asked now."""
        self._began = monotonic()

    def after_news(self) -> float:
        """Return how long to wait behind an epoch, which itself took some of the time."""
        self._pause = self.shortest
        return max(0.0, self._began + self.shortest - monotonic())

    def after_nothing(self) -> float:
        """Return how long to wait when there was no news."""
        cost = monotonic() - self._began
        self._pause = min(self.longest, max(self.shortest, 1.5 * self._pause))
        return max(self._pause, cost / _SHARE) if cost / _SHARE < 1.0 else max(self._pause, 1.0)
