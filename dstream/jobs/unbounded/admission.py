"""`Admission`: how many items an epoch takes, so that it takes about as long as it should."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Admission"]

_START = 10_000
_FEWEST = 100
_MOST = 50_000_000


@dataclass(frozen=True, slots=True)
class Admission:
    """How many items of one source the next epoch may take.

    Attributes:
        target: seconds that an epoch should take.
        limit: items of all partitions together.
        most: what the user allows for each partition; None: any number.
    """

    target: float
    limit: int = _START
    most: int | None = None

    def of_each(self, partitions: int) -> int:
        """Return how many items of each partition may be read."""
        share = max(1, self.limit // max(1, partitions))
        return share if self.most is None else min(share, self.most)

    def after(self, items: int, seconds: float) -> Admission:
        """Return what holds after an epoch.

        An epoch that took too long makes the next ones smaller. Only one that was nearly full makes them larger, at
        most twice, since a small one says little of what many items cost.

        Args:
            items: how many it took of this source.
            seconds: how long it took.
        """
        if items <= 0:
            return self
        fitting = int(items * self.target / max(seconds, 1e-6))
        if seconds > self.target:
            return replace(self, limit=max(_FEWEST, min(self.limit, fitting)))
        if 2 * items < self.limit:
            return self
        return replace(self, limit=min(_MOST, max(self.limit, min(2 * self.limit, fitting))))
