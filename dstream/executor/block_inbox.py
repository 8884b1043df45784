"""`BlockInbox`: the items that wait for a processor, as the block in which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dstream.failures import MISSING
from dstream.spi.names_of_jet import NamesOfJet

__all__ = ["BlockInbox"]


class BlockInbox(NamesOfJet):
    """An inbox. Only when it is empty does another block come in.

    Attributes:
        drained: how many items `drain` gave in this call, and the first of them; None: it was not called, or gave none.
    """

    __slots__ = ("_at", "_items", "_last", "drained")

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._at = 0
        self._last: Any = MISSING
        self.drained: tuple[int, Any] | None = None

    def fill(self, items: list[Any]) -> None:
        """Take a block in; the list now belongs to the inbox, which is empty."""
        self._items, self._at = items, 0

    def forget_last(self) -> None:
        """Let a failure of the next call be about nothing that an earlier one took."""
        self._last, self.drained = MISSING, None

    @property
    def failing(self) -> Any:
        """The item that a failure is about: the one that was taken last in this call, else the first; or `MISSING`."""
        if self._last is not MISSING or self._at >= len(self._items):
            return self._last
        return self._items[self._at]

    def peek(self) -> Any:
        """Return the first item and leave it; None if there is none."""
        return self._items[self._at] if self._at < len(self._items) else None

    def poll(self) -> Any:
        """Take the first item out; None if there is none."""
        if self._at >= len(self._items):
            return None
        self._last = self._items[self._at]
        self._items[self._at] = None  # It is not held longer than by the processor.
        self._at += 1
        return self._last

    def remove(self) -> None:
        """Take the first item out.

        Raises:
            IndexError: there is none.
        """
        if self._at >= len(self._items):
            raise IndexError("the inbox is empty")
        self.poll()
        self._last = MISSING  # The processor is done with it.

    def drain(self) -> list[Any]:
        """Take all items out, in order."""
        items = self._items[self._at :] if self._at else self._items
        self._items, self._at = [], 0
        self.drained = (len(items), items[0]) if items else None
        return items

    def drain_to(self, take: Callable[[Any], object]) -> int:
        """Take all items out, hand each to a function, and return how many there were."""
        count = 0
        for item in self:
            take(item)
            count += 1
        return count

    def __iter__(self) -> Iterator[Any]:
        """Take items out, one after another."""
        while self._at < len(self._items):
            yield self.poll()

    def __len__(self) -> int:
        return len(self._items) - self._at
