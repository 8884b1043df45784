"""`BlockProcessor`: a processor of blocks of items; `SavingProcessor`: one that saves a snapshot entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext, Targets, Watermark

__all__ = ["BlockProcessor", "SavingProcessor", "kinds_of", "without_none"]


T = TypeVar("T")

_AT_ONCE = 1024
"""The number of items that are made before they are offered."""


def kinds_of(items: Iterable[Any]) -> set[type]:
    """Return the types of items."""
    return set(map(type, items))


def without_none(items: Iterable[T]) -> Iterable[T]:
    """Return items that are to be emitted, which fails where they are made: a failure there finds the item.

    Raises:
        TypeError: one of them is None; where they are made one by one, when it is reached.
    """
    # Anything else may be an iterator, which is read only once.
    if type(items) not in (list, tuple):
        return map(_no_none, items)
    if type(None) in map(type, items):
        _no_none(None)
    return items


def _no_none(emitted: T) -> T:
    if emitted is None:
        raise TypeError("a processor emits no None: it stands for nothing in the protocol")
    return emitted


class BlockProcessor(Processor):
    """A processor with a low cost per item; a subclass overrides `made_of`.

    Items that the outbox refuses are buffered, and emitted before any other work.
    """

    _outbox: Outbox
    _context: ProcessorContext

    def __init__(self) -> None:
        self._left: Iterator[Any] = iter(())
        self._block: list[Any] = []

    ticks_alone = False

    targets: Targets = None
    """The ordinals of the edges that it emits to; None: all."""

    def made_of(self, ordinal: int, items: list[Any]) -> Iterable[Any]:
        """Return the output for the items of a block.

        What runs a function on an item does so with `each` or `chosen`, or calls it `item` in a `for` statement: so
        failures find it. The variable of a comprehension no longer exists by then.
        """
        raise NotImplementedError(f"{type(self).__name__} has no made_of()")

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Store the outbox and the context."""
        self._outbox = outbox
        self._context = context

    def process(self, ordinal: int, inbox: Inbox) -> None:
        """Process all items, unless earlier output is still pending."""
        if self.emit_what_waits():
            self.emit(self.made_of(ordinal, inbox.drain()))

    def emit(self, items: Iterable[Any]) -> bool:
        """Emit items, and buffer those that the outbox refuses; allowed only when no output is pending.

        Returns:
            Whether all were taken.
        """
        # A list can be offered as it is; anything else is cut into lists first.
        if isinstance(items, list):
            self._block = items
        else:
            self._left = iter(items)
        return self.emit_what_waits()

    def emit_what_waits(self) -> bool:
        """Emit the output that was refused before; return whether all of it is out."""
        while True:
            if self._block:
                taken = self._outbox.offer_all(self._block, self.targets)
                if taken < len(self._block):
                    self._block = self._block[taken:]
                    return False
            self._block = list(islice(self._left, _AT_ONCE))
            if not self._block:
                return True

    def tick(self) -> bool:
        """Emit pending output."""
        return self.emit_what_waits()

    def try_process_watermark(self, watermark: Watermark) -> bool:
        """Emit pending output."""
        return self.emit_what_waits()

    def complete_edge(self, ordinal: int) -> bool:
        """Emit pending output."""
        return self.emit_what_waits()

    def complete(self) -> bool:
        """Emit pending output."""
        return self.emit_what_waits()

    def save_to_snapshot(self) -> bool:
        """Emit pending output."""
        return self.emit_what_waits()


Entry = tuple[Any, Any]


class SavingProcessor(BlockProcessor):
    """A `BlockProcessor` with a state; a subclass overrides `entries`, too."""

    def __init__(self) -> None:
        super().__init__()
        self._saving = _Saving()

    def entries(self) -> Iterator[Entry]:
        """Return the entries of a snapshot, which share nothing with the state that a later item changes."""
        raise NotImplementedError(f"{type(self).__name__} has no entries()")

    def save_to_snapshot(self) -> bool:
        """Emit pending output, then save each entry."""
        return self.emit_what_waits() and self._saving.goes_on(self._outbox, self.entries)


class _Saving:
    """The offer of entries to snapshots, each of which may take several calls."""

    def __init__(self) -> None:
        self._left: Iterator[Entry] | None = None
        self._entry: Entry | None = None

    def goes_on(self, outbox: Outbox, entries: Callable[[], Iterator[Entry]]) -> bool:
        """Offer the rest of the entries.

        Args:
            outbox: receives the entries.
            entries: returns an iterator over all entries; called once per snapshot.

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
