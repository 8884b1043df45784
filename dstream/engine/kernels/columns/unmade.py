"""`Unmade`: rows that are items of any kind, each made when somebody needs it. Loads no NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["Unmade"]


class Unmade(ABC):
    """Rows whose items are not made yet.

    Attributes:
        size: how many rows there are.
        is_evaluated: expressions take the rows; otherwise functions get the items, also those that look at none.
    """

    size: int
    is_evaluated = True

    @abstractmethod
    def portions(self) -> Iterator[Iterable[Any]]:
        """Give the items, so many at a time that they fit into memory."""

    @abstractmethod
    def at(self, places: Any) -> Unmade:
        """Return the rows at these places, an array of ints, in their order."""
