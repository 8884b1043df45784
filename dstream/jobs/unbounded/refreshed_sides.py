"""`RefreshedSides`: when the sides of joins that a job keeps are read again."""

from __future__ import annotations

from collections.abc import Mapping

from dstream.plan.core import CacheIdentity

__all__ = ["RefreshedSides"]


class RefreshedSides:
    """Which reading of each side counts. A driver reads each in its first epoch, so the clock begins there.

    Args:
        every: after how many seconds a side is read again, by the `id` of what keeps it.
    """

    def __init__(self, every: Mapping[int, float]) -> None:
        self._every = every
        self._read: dict[int, tuple[float, CacheIdentity]] = {}

    def are_due(self, now: float) -> bool:
        """Say whether an epoch at that time reads a side."""
        return any(self._is_due(place, now) for place in self._every)

    def _is_due(self, place: int, now: float) -> bool:
        return place not in self._read or now - self._read[place][0] >= self._every[place]

    def at(self, now: float) -> dict[int, CacheIdentity]:
        """Return the identities of what an epoch keeps: those of before, or new ones where their time is over.

        Args:
            now: the reading of the clock of the epoch, in seconds.
        """
        for place in self._every:
            if self._is_due(place, now):
                self._read[place] = now, CacheIdentity()
        return {place: identity for place, (_, identity) in self._read.items()}
