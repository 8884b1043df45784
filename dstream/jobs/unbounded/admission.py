"""`Admission`: how many items an epoch takes, so that it takes about as long as it should."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Admission"]

_START = 10_000
_FEWEST = 100
_MOST = 50_000_000
_MEMORY = 0.9
"""What an epoch counts in comparison to the one after it."""
_SPREAD = 0.1
"""By which part of their mean the sizes of epochs must differ to say what one item costs."""


@dataclass(frozen=True, slots=True)
class _Costs:
    """What the last epochs say of the time of an epoch: so much for itself, and so much for each item.

    The sums of a line through points of items and seconds, in which older points count less.
    """

    count: float = 0.0
    items: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0
    of_itself: float = 0.0

    def after(self, items: int, seconds: float) -> _Costs:
        """Return what is known after one more epoch."""
        count = self.count * _MEMORY + 1
        sum_of_items, sum_of_seconds = self.items * _MEMORY + items, self.seconds * _MEMORY + seconds
        squares, products = self.squares * _MEMORY + items * items, self.products * _MEMORY + items * seconds
        mean_items, mean_seconds = sum_of_items / count, sum_of_seconds / count
        variance = squares / count - mean_items**2
        of_itself = self.of_itself
        if variance > (_SPREAD * mean_items) ** 2:  # Otherwise what was known before is the best that is known.
            of_each = (products / count - mean_items * mean_seconds) / variance
            of_itself = max(0.0, mean_seconds - max(0.0, of_each) * mean_items)
        return _Costs(count, sum_of_items, sum_of_seconds, squares, products, of_itself)


@dataclass(frozen=True, slots=True)
class Admission:
    """How many items of one source the next epoch may take.

    Attributes:
        target: seconds that an epoch should take.
        limit: items of all partitions together.
        most: what the user allows for each partition; None: any number.
        costs: what epochs have cost.
    """

    target: float
    limit: int = _START
    most: int | None = None
    costs: _Costs = _Costs()

    def of_each(self, partitions: int) -> int:
        """Return how many items of each partition may be read."""
        share = max(1, self.limit // max(1, partitions))
        return share if self.most is None else min(share, self.most)

    def after(self, items: int, seconds: float) -> Admission:
        """Return what holds after an epoch.

        An epoch that took too long makes the next ones smaller. Only one that was nearly full makes them larger, at
        most twice, since a small one says little of what many items cost. Where an epoch takes long however few its
        items are, smaller ones would only make the job slower: items may then take half as long as the epoch itself.

        Args:
            items: how many it took of this source.
            seconds: how long it took.
        """
        if items <= 0:
            return self
        costs = self.costs.after(items, seconds)
        of_items = max(seconds - costs.of_itself, seconds / _MOST)
        fitting = int(items * max(self.target - costs.of_itself, costs.of_itself / 2) / of_items)
        fitting = max(_FEWEST, min(_MOST, fitting, 2 * self.limit))
        if fitting < self.limit and seconds > self.target:
            return replace(self, limit=fitting, costs=costs)
        if 2 * items < self.limit:
            return replace(self, costs=costs)
        return replace(self, limit=max(self.limit, fitting), costs=costs)
