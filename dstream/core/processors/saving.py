"""`Saving`: where a processor is in what it saves, since the outbox may take one entry in a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dstream.spi.processor import Outbox

__all__ = ["Saving"]

Entry = tuple[Any, Any]


class Saving:
    """Offers entries to snapshots, each of which may take several calls."""

    def __init__(self) -> None:
        self._left: Iterator[Entry] | None = None
        self._entry: Entry | None = None

    def goes_on(self, outbox: Outbox, entries: Callable[[], Iterator[Entry]]) -> bool:
        """Offer what is left of the entries.

        Args:
            outbox: takes them.
            entries: gives all of them; called once for each snapshot.

        Returns:
            Whether all were taken.
        """
        if self._left is None:
            self._left = entries()
            self._entry = next(self._left, None)
        while self._entry is not None:
            if not outbox.offer_to_snapshot(*self._entry):
                return False
            self._entry = next(self._left, None)
        self._left = None
        return True
