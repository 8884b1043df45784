"""Scheduling of epochs: batch sizes, pauses, epochs of one task, refreshes of joined sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic

from dstream.plan.operations.streams import CacheIdentity

__all__ = ["BatchSize", "EpochCosts", "PollInterval", "RefreshedSides", "SmallEpochs"]


_MEMORY = 0.9
"""The weight of an epoch in comparison to the one after it."""
_SPREAD = 0.1
"""The part of their mean by which the sizes of epochs must differ to show the cost of one item."""


@dataclass(frozen=True, slots=True)
class EpochCosts:
    """Estimated time of an epoch from the last ones: a constant, and a share for each item.

    The sums of a line through points of items and seconds, in which older points count less.
    """

    count: float = 0.0
    items: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0
    of_itself: float = 0.0

    def of_each(self, of_itself: float) -> float:
        """Return the seconds that one item takes.

        Args:
            of_itself: the constant to assume as long as epochs of about one size do not show it.
        """
        constant = self.of_itself or of_itself
        return max(0.0, self.seconds - self.count * constant) / self.items if self.items > 0 else 0.0

    def after(self, items: int, seconds: float) -> EpochCosts:
        """Return the estimate after one more epoch."""
        count = self.count * _MEMORY + 1
        sum_of_items, sum_of_seconds = self.items * _MEMORY + items, self.seconds * _MEMORY + seconds
        squares, products = self.squares * _MEMORY + items * items, self.products * _MEMORY + items * seconds
        mean_items, mean_seconds = sum_of_items / count, sum_of_seconds / count
        variance = squares / count - mean_items**2
        of_itself = self.of_itself
        if variance > (_SPREAD * mean_items) ** 2:  # Otherwise the estimate before is the best one.
            of_each = (products / count - mean_items * mean_seconds) / variance
            # Noise can make the slope negative, but the cost of an item cannot be.
            of_itself = max(0.0, mean_seconds - max(0.0, of_each) * mean_items)
        return EpochCosts(count, sum_of_items, sum_of_seconds, squares, products, of_itself)


_START = 10_000
_FEWEST = 100
_MOST = 50_000_000
_PARTS = 4
"""The least number of epochs in which a backlog is worked off, as long as they may be longer than others."""


@dataclass(frozen=True, slots=True)
class BatchSize:
    """The batch size of one source: the number of its items that the next epoch may take.

    Attributes:
        target: target seconds of an epoch.
        limit: items of all partitions together.
        most: the limit of the user for each partition; None: no limit.
        costs: the costs of epochs.
        longest: maximal seconds of an epoch with a long backlog; less than `target`: `target`.
    """

    target: float
    limit: int = _START
    most: int | None = None
    costs: EpochCosts = EpochCosts()
    longest: float = 0.0

    def of_each(self, partitions: int) -> int:
        """Return how many items of each partition may be read."""
        share = max(1, self.limit // max(1, partitions))
        return share if self.most is None else min(share, self.most)

    def after(self, items: int, seconds: float, left: float = 0.0) -> BatchSize:
        """Return the batch size after an epoch.

        An epoch that took too long makes the next ones smaller. Only a nearly full epoch makes them larger, at most
        twice, since a small epoch is a poor estimate of the cost of many items. If an epoch has a high constant cost,
        smaller epochs would only slow the job down: items may then take half as long as the constant part. With a long
        backlog results are late anyway, and fewer epochs have less constant cost.

        Args:
            items: the number of items from this source.
            seconds: its duration.
            left: the expected backlog of this source.
        """
        if items <= 0:
            return self
        costs = self.costs.after(items, seconds)
        # At least a little: an epoch may be quicker than its estimate, and the next line divides by this.
        of_items = max(seconds - costs.of_itself, seconds / _MOST)
        target = max(self.target, min(self.longest, left * of_items / items / _PARTS))
        fitting = int(items * max(target - costs.of_itself, costs.of_itself / 2) / of_items)
        fitting = max(_FEWEST, min(_MOST, fitting, 2 * self.limit))
        if fitting < self.limit and seconds > target:
            return replace(self, limit=fitting, costs=costs)
        if 2 * items < self.limit:
            return replace(self, costs=costs)
        return replace(self, limit=max(self.limit, fitting), costs=costs)


_SHARE = 0.01
"""The share of a core for polling idle sources."""


@dataclass(slots=True)
class PollInterval:
    """The pause between two polls of sources: short after news, longer while there is none.

    Attributes:
        shortest: seconds between two epochs, or two polls of sources, after news.
        longest: seconds between two polls without news for a while.
    """

    shortest: float
    longest: float
    _pause: float = 0.0
    _began: float = 0.0

    def begins(self) -> None:
        """Mark the begin of an epoch, when sources are polled."""
        self._began = monotonic()

    def after_news(self) -> float:
        """Return how long to wait after an epoch, minus its duration."""
        self._pause = self.shortest
        return max(0.0, self._began + self.shortest - monotonic())

    def after_nothing(self) -> float:
        """Return how long to wait when there was no news."""
        cost = monotonic() - self._began
        self._pause = min(self.longest, max(self.shortest, 1.5 * self._pause))
        # A slow source adds at most a second; otherwise it would be polled less and less often.
        return max(self._pause, cost / _SHARE) if cost / _SHARE < 1.0 else max(self._pause, 1.0)


_MOST_DIVIDED = 64
"""The most epochs that are divided before one task is tried again."""


class SmallEpochs:
    """Prediction that an epoch is as small as the previous one, revised after mispredictions.

    Functions that wait are slower in one task by the factor of the parallelism: after a fast divided epoch of few items
    the next one would be slow in one task, alternately. Each time that one task is slow, the number of divided epochs
    before the next attempt doubles.
    """

    def __init__(self) -> None:
        self._is_expected = False
        self._is_tried = False
        self._divided = 0
        self._divided_next = 1

    def begin(self, *, may_be: bool) -> bool:
        """Return whether the epoch that begins is expected to be small, if it may be."""
        self._is_tried = self._is_expected and may_be
        return self._is_tried

    def end(self, *, has_few: bool, is_quick: bool) -> None:
        """Record the result of an epoch.

        Args:
            has_few: its items were few enough for one task.
            is_quick: it was fast enough.
        """
        self._divided = max(0, self._divided - 1)
        if self._is_tried and has_few and is_quick:
            self._divided_next = 1
        elif self._is_tried and has_few:
            self._divided, self._divided_next = self._divided_next, min(2 * self._divided_next, _MOST_DIVIDED)
        self._is_expected = has_few and is_quick and self._divided == 0


class RefreshedSides:
    """The current reading of each joined side. A driver reads each in its first epoch, when the clock starts.

    Args:
        every: seconds after which a side is read again, by the `id` of its cache.
    """

    def __init__(self, every: Mapping[int, float]) -> None:
        self._every = every
        self._read: dict[int, tuple[float, CacheIdentity]] = {}

    def are_due(self, now: float) -> bool:
        """Return whether an epoch at that time reads a side."""
        return any(self._is_due(place, now) for place in self._every)

    def _is_due(self, place: int, now: float) -> bool:
        return place not in self._read or now - self._read[place][0] >= self._every[place]

    def at(self, now: float) -> dict[int, CacheIdentity]:
        """Return the cache identities for an epoch: the earlier ones, or new ones where they have expired.

        Args:
            now: the reading of the clock of the epoch, in seconds.
        """
        for place in self._every:
            if self._is_due(place, now):
                self._read[place] = now, CacheIdentity()
        return {place: identity for place, (_, identity) in self._read.items()}
