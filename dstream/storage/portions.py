"""`Portions`: rows on their way into a storage, as many at a time as a few megabytes hold."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, TypeVar

from dstream.memory import taken

__all__ = ["PORTION_BYTES", "Portions"]

T = TypeVar("T")

PORTION_BYTES = 4 << 20
"""How many bytes are encoded, written and later read at a time; a single row may be larger."""

_FIRST_ROWS = 512


class Portions:
    """Cuts rows into lists, learning how large the rows are; the first row of all is measured.

    Args:
        most: how many rows a list may have however small they are.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows = 0

    def take(self, rows: Iterator[T]) -> list[T]:
        """Return the next rows, none at the end."""
        if self._rows:
            return taken(rows, self._rows)
        first = taken(rows, 1)
        if first:
            self._rows = max(1, min(PORTION_BYTES // _size_of(first), _FIRST_ROWS))
            first += taken(rows, self._rows - 1)
        return first

    def learn(self, rows: int, size: int) -> None:
        """Take the bytes of encoded rows for those of the next ones."""
        self._rows = min(self._most, max(1, PORTION_BYTES * rows // max(1, size)))


def _size_of(row: Any) -> int:
    try:
        return len(pickle.dumps(row, protocol=5))
    except Exception:  # Whoever encodes the row says what is wrong with it, if anything is.
        return PORTION_BYTES
