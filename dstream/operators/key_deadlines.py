"""`KeyDeadlines`: which keys the watermark reaches next, at a cost that does not follow the keys that only wait.

A key whose deadline moves on, as with each item that keeps its state alive, costs nothing until its old one is the
least of all: only then is it asked for the new one. So a heap has about one entry for each key, and not one for each
item.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["KeyDeadlines"]


class KeyDeadlines:
    """The deadlines of keys: the least watermark at which something happens to each.

    Args:
        of: returns the deadline of a key now; None if it has none any more.
    """

    def __init__(self, of: Callable[[Any], int | None]) -> None:
        self._of = of
        self._heap: list[tuple[int, int, Any]] = []
        """(deadline, number, key): the number stands before keys, which may have no order."""
        self._entered: dict[Any, int] = {}
        """By key the deadline of its entry that counts; another one is left from before."""
        self._numbers = itertools.count()

    def note(self, key: Any, deadline: int) -> None:
        """Take the deadline of a key that is new, or whose deadline may be earlier than before."""
        entered = self._entered.get(key)
        if entered is None or deadline < entered:
            self._entered[key] = deadline
            heapq.heappush(self._heap, self._entry(deadline, key))

    def forget(self, key: Any) -> None:
        """Take it that a key has no deadline: an equal key that comes later is the one to be given."""
        self._entered.pop(key, None)

    def fill(self, deadlines: Iterable[tuple[Any, int]]) -> None:
        """Take the deadlines of many keys at once, in place of those that are here."""
        self._entered = dict(deadlines)
        self._heap = list(zip(self._entered.values(), self._numbers, self._entered, strict=False))
        heapq.heapify(self._heap)

    def least(self) -> int | None:
        """Return the least deadline; None without any."""
        while self._heap:
            deadline, _, key = self._heap[0]
            actual = self._of(key) if self._entered.get(key) == deadline else None
            if actual == deadline:
                return deadline
            self._replace(key, deadline, actual)
        return None

    def _replace(self, key: Any, deadline: int, actual: int | None) -> None:
        """Put what is the case now in the place of the first entry."""
        if actual is not None:
            self._entered[key] = actual
            heapq.heapreplace(self._heap, self._entry(actual, key))
            return
        heapq.heappop(self._heap)
        if self._entered.get(key) == deadline:
            del self._entered[key]

    def passed(self, watermark: int) -> Iterator[Any]:
        """Give the keys whose deadlines `watermark` has reached, by their deadlines.

        Whoever takes a key has to change its deadline before the next one.
        """
        while (deadline := self.least()) is not None and deadline <= watermark:
            yield self._heap[0][2]

    def _entry(self, deadline: int, key: Any) -> tuple[int, int, Any]:
        return deadline, next(self._numbers), key
