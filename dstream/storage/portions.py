"""`Portions`: rows on their way into a storage, as many at a time as a few megabytes hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from dstream.memory import Taking, size_of

__all__ = ["PORTION_BYTES", "Portions"]

T = TypeVar("T")

PORTION_BYTES = 4 << 20
"""How many bytes are encoded, written and later read at a time; a single row may be larger."""

_FIRST_ROWS = 512


class Portions(Generic[T]):
    """Cuts rows into lists, learning how large the rows are; the first row of all is measured.

    Args:
        rows: what is cut.
        most: how many rows a list may have however small they are.
    """

    def __init__(self, rows: Iterable[T], most: int) -> None:
        self._taking = Taking(rows)
        self._most = most
        self._count = 0

    def take(self) -> list[T]:
        """Return the next rows, none at the end."""
        if self._count:
            return self._taking.take(self._count)
        first = self._taking.take(1)
        if first:
            self._count = max(1, min(PORTION_BYTES // size_of(first), _FIRST_ROWS))
            first += self._taking.take(self._count - 1) if self._count > 1 else []
        return first

    def has_more(self) -> bool:
        """Say whether there are rows left, for which one is read ahead."""
        return self._taking.has_more()

    def learn(self, rows: int, size: int) -> None:
        """Take the bytes of encoded rows for those of the next ones."""
        self._count = min(self._most, max(1, PORTION_BYTES * rows // max(1, size)))
