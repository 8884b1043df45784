"""The inbox and the outbox of a processor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from dstream.errors import IllegalStateError
from dstream.failures import MISSING, shown
from dstream.processors.blocks import Mark, MarkedBlock, has_marks
from dstream.spi.processor import NamesOfJet, Targets, Watermark

__all__ = ["BlockInbox", "EdgeOutbox", "OutboundEdge"]


class BlockInbox(NamesOfJet):
    """Inbox of a processor, which is filled with a block only when it is empty.

    Attributes:
        drained: the number of items that `drain` returned in this call, and the first of them; None: there are none.
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
        """Forget the items of earlier calls, so that a failure of the next call names none of them."""
        self._last, self.drained = MISSING, None

    @property
    def failing(self) -> Any:
        """Return the item of a failure: the last one taken in this call, else the first; or `MISSING`."""
        if self._last is not MISSING or self._at >= len(self._items):
            return self._last
        return self._items[self._at]

    def peek(self) -> Any:
        """Return the first item without removing it; None if there is none."""
        return self._items[self._at] if self._at < len(self._items) else None

    def poll(self) -> Any:
        """Remove and return the first item; None if there is none."""
        if self._at >= len(self._items):
            return None
        self._last = self._items[self._at]
        self._items[self._at] = None  # The inbox does not retain it longer than the processor.
        self._at += 1
        return self._last

    def remove(self) -> None:
        """Remove the first item.

        Raises:
            IndexError: there is none.
        """
        if self._at >= len(self._items):
            raise IndexError("the inbox is empty")
        self.poll()
        self._last = MISSING  # The processor has processed it.

    def drain(self) -> list[Any]:
        """Take all items out, in order."""
        # Most processors drain at once: that costs no copy.
        items = self._items[self._at :] if self._at else self._items
        self._items, self._at = [], 0
        self.drained = (len(items), items[0]) if items else None
        return items

    def drain_to(self, take: Callable[[Any], object]) -> int:
        """Remove all items, pass each to a function, and return their number."""
        count = 0
        for item in self:
            take(item)
            count += 1
        return count

    def __iter__(self) -> Iterator[Any]:
        """Remove and yield the items in order."""
        while self._at < len(self._items):
            yield self.poll()

    def __len__(self) -> int:
        return len(self._items) - self._at


_FULL = 2048
"""Maximum items of a bucket in one call of the processor, as in Hazelcast Jet (OUTBOX_BATCH_SIZE)."""


class OutboundEdge(Protocol):
    """The sender of items by an edge."""

    def send(self, items: list[Any]) -> None:
        """Take items, when all that were taken before were sent; the list now belongs to the edge."""
        ...

    def flush(self) -> bool:
        """Send as long as there is room, and return whether all was sent."""
        ...

    @property
    def is_empty(self) -> bool:
        """Return whether all has gone."""
        ...


class EdgeOutbox(NamesOfJet):
    """Outbox of a processor, with a bucket for each outbound edge.

    Args:
        ways: the outbound edges by their ordinals, which send the items of the buckets.

    Attributes:
        emitted: the number of accepted items and snapshot entries.
        sent: the number of accepted items for each edge.
        saved: the entries of the snapshot that is being taken; None: no snapshot is being taken.
    """

    def __init__(self, ways: Sequence[OutboundEdge]) -> None:
        self._ways = tuple(ways)
        self._buckets: list[list[Any]] = [[] for _ in ways]
        self._all = range(len(ways))
        self._refused: Any = MISSING
        self._has_refused_now = False
        self._is_closed = False
        self.emitted = 0
        self.sent = [0] * len(self._ways)
        self.saved: dict[Any, Any] | None = None

    @property
    def bucket_count(self) -> int:
        """The number of outbound edges."""
        return len(self._buckets)

    @property
    def is_empty(self) -> bool:
        """Return whether all was sent."""
        return not any(self._buckets) and all(each.is_empty for each in self._ways)

    def begin_call(self) -> None:
        """Accept refused items again: the processor has returned, and is called once more."""
        self._has_refused_now = False

    def close(self) -> None:
        """Refuse all later items, which would not be sent."""
        self._is_closed = True

    def offer(self, item: Any, to: Targets = None) -> bool:
        """Add an item to buckets, or to none of them if one is full."""
        return self.offer_all((item,), to) == 1

    def offer_all(self, items: Sequence[Any], to: Targets = None) -> int:
        """Add the first items of a block to buckets, as many as fit, and return their number."""
        if not items:
            return 0
        kinds = set(map(type, items))
        if type(None) in kinds:
            raise TypeError("a processor emits no None: it stands for nothing in the protocol")
        ordinals = self._all if to is None else self._checked(to)
        if self._is_closed:
            raise IllegalStateError(f"{shown(items[0])} was emitted in close(), where nothing is sent any more")
        if self._refused is not MISSING:
            self._check_again(items[0])
        room = min((_FULL - len(self._buckets[each]) for each in ordinals), default=len(items))
        fitting = items if room >= len(items) else items[: max(room, 0)]
        if has_marks(kinds):
            self._mark(ordinals)
        for each in ordinals:
            self._buckets[each].extend(fitting)
            self.sent[each] += len(fitting)
        self.emitted += len(fitting)
        if len(fitting) < len(items):
            self._refused, self._has_refused_now = items[len(fitting)], True
        return len(fitting)

    def offer_to_snapshot(self, key: Any, value: Any) -> bool:
        """Put an entry into the snapshot."""
        if self.saved is None:
            raise IllegalStateError("a processor offers to the snapshot inside of save_to_snapshot() alone")
        if key in self.saved:
            raise ValueError(f"the key {shown(key)} is in this snapshot already: keys of one processor are unique")
        self.saved[key] = value
        self.emitted += 1
        return True

    def _checked(self, to: int | Iterable[int]) -> Sequence[int]:
        ordinals = [to] if isinstance(to, int) else list(to)
        for each in ordinals:
            if not 0 <= each < len(self._buckets):
                count = len(self._buckets)
                raise ValueError(f"there is no outbound edge {each}: the vertex has {count}, counted from 0")
        return ordinals

    def _check_again(self, item: Any) -> None:
        """Refuse an item that is offered too early, or that is not the item that was refused before."""
        refused = self._refused
        if self._has_refused_now:
            raise IllegalStateError(
                f"offer() got {shown(item)} after {shown(refused)} was refused, in the same call of the processor: "
                "return from the method when offer() gives False, and go on when it is called again"
            )
        # By identity first, since NaN does not equal itself.
        if item is not refused and item != refused:
            raise IllegalStateError(
                f"offer() refused {shown(refused)}, which is to be offered again first, and got {shown(item)}: return "
                "from the method when offer() gives False, and go on with the same item when it is called again"
            )
        self._refused = MISSING

    def forward(self, mark: Watermark | Mark) -> None:
        """Send a mark by every edge, after the emitted items."""
        self._mark(self._all)
        for bucket in self._buckets:
            bucket.append(mark)

    def _mark(self, ordinals: Sequence[int]) -> None:
        """Mark buckets whose items contain marks."""
        for each in ordinals:
            self._buckets[each] = MarkedBlock(self._buckets[each])

    def flush(self) -> bool:
        """Send the buckets as long as there is room; return whether all items were sent."""
        is_empty = True
        for ordinal, way in enumerate(self._ways):
            has_gone = way.flush()
            if has_gone and (bucket := self._buckets[ordinal]):
                # A new list, since the edge references the sent list.
                self._buckets[ordinal] = []
                way.send(bucket)
                has_gone = way.flush()
            is_empty = is_empty and has_gone
        return is_empty
