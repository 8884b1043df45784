"""The nearest item of the right side for each item of the left, by a distance such as of times.

Both sides are sorted, past the memory bound on disk, and merged: besides, one right item for each key is in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from dstream.base.memory import Bound
from dstream.base.records import record
from dstream.failures import naming
from dstream.failures.attribution import failed_on
from dstream.keys import canonical
from dstream.operators.joins.hash import Pair
from dstream.operators.joins.pairs import Batches, pairs_of_batches, two_sides
from dstream.operators.rows.caches import CachedItems
from dstream.operators.rows.operations import Task
from dstream.operators.rows.spill import sorted_items
from dstream.plan.operations.pairs import AsOf, Direction
from dstream.plan.steps import Step

__all__ = ["Nearest", "nearest_batches"]


@record(slots=False)
class Nearest:
    """The choice of the right item for a left one; the operation without its inputs."""

    left_on: Callable[[Any], Any]
    right_on: Callable[[Any], Any]
    direction: Direction
    tolerance: Any
    step: Step

    @staticmethod
    def of(node: AsOf) -> Nearest:
        """Return that of an operation."""
        return Nearest(node.left_on, node.right_on, node.direction, node.tolerance, node.step)

    def pairs(self, lefts: Iterable[Pair], rights: Iterable[Pair], bound: Bound) -> Iterator[tuple[Any, Any]]:
        """Yield each left item with the nearest right item of its key, or None; both sides are (key, item) pairs."""
        with naming(self.step):
            if self.direction == "nearest":
                yield from self._both_ways(lefts, rights, bound)
                return
            is_forward = self.direction == "forward"
            found = _matched(_placed(lefts, self.left_on), _placed(rights, self.right_on), is_forward, bound)
            for left in found:
                item = left.item  # Failures are attributed to the item by this name.
                yield item, self._within(left, left.match)

    def _both_ways(self, lefts: Iterable[Pair], rights: Iterable[Pair], bound: Bound) -> Iterator[tuple[Any, Any]]:
        """Match both directions: cache both sides, and read the right side twice."""
        waiting = CachedItems(_placed(lefts, self.left_on), bound)
        others = CachedItems(_placed(rights, self.right_on), bound)
        for left in _matched(_matched(waiting, others, False, bound), others, True, bound):
            item = left.item
            yield item, self._within(left, _nearer(left))

    def _within(self, left: _Left, match: tuple[Any, Any] | None) -> Any:
        """Return the right item of a match, unless it is too far away."""
        if match is None or self.tolerance is None:
            return None if match is None else match[1]
        # Equal positions are compared first: the difference of two infinite positions is NaN.
        return match[1] if match[0] == left.place or _distance(left, match) <= self.tolerance else None


def nearest_batches(nearest: Nearest, targets: int, batches: Batches, task: Task) -> Iterator[tuple[Any, Any]]:
    """Match the two sides of one partition, of which the left one arrives first."""
    lefts, rights = two_sides(targets, batches)
    return nearest.pairs(pairs_of_batches(lefts), pairs_of_batches(rights), task.bound)


class _Left(NamedTuple):
    """A left item: its position and key, and the nearest right item so far, as (position, item)."""

    place: Any
    key: Any
    item: Any
    match: tuple[Any, Any] | None = None
    earlier: tuple[Any, Any] | None = None


def _placed(pairs: Iterable[Pair], place_of: Callable[[Any], Any]) -> Iterator[_Left]:
    for key, item in pairs:
        try:
            place = place_of(item)
            if place is None or place != place:
                raise ValueError(f"on= gave {place!r}, which has no place in an order: filter such items out before")
        except Exception as error:
            failed_on(error, item)
            raise
        yield _Left(place, key, item)


def _matched(lefts: Iterable[_Left], rights: Iterable[_Left], is_forward: bool, bound: Bound) -> Iterator[_Left]:
    """Yield the left items in order, each with the last right item of its key that is not after it.

    Forward, both are read from the end: of equal right items the first one is nearest then, otherwise the last one.
    """
    along = functools.partial(sorted_items, key=_place_of, reverse=is_forward, bound=bound)
    left_items, right_items = along(lefts), along(rights)
    nearest_of: dict[Any, tuple[Any, Any]] = {}
    right = next(right_items, None)
    for left in left_items:
        item = left.item  # Failures are attributed to the item by this name.
        while right is not None and not (right.place < left.place if is_forward else left.place < right.place):
            key, held = canonical(right.key), nearest_of.get(canonical(right.key))
            if not (is_forward and held is not None and held[0] == right.place):
                nearest_of[key] = right.place, right.item
            right = next(right_items, None)
        match = nearest_of.get(canonical(left.key))
        yield _Left(left.place, left.key, item, match, left.match)


_place_of = itemgetter(0)


def _distance(left: _Left, match: tuple[Any, Any]) -> Any:
    return left.place - match[0] if match[0] < left.place else match[0] - left.place


def _nearer(left: _Left) -> tuple[Any, Any] | None:
    """Return the nearer one of the earlier and the later match; the earlier one if they are equally near."""
    if left.earlier is None or left.match is None:
        return left.earlier or left.match
    if left.earlier[0] == left.place:  # The difference of two infinite positions is NaN.
        return left.earlier
    return left.earlier if _distance(left, left.earlier) <= _distance(left, left.match) else left.match
