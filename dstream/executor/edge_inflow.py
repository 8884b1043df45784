"""`EdgeInflow`: what comes to one processor by one edge, from all processors that send by it."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from dstream.executor.arrivals_of_graphs import MARKS, MarkedBlock
from dstream.executor.waiting_blocks import WaitingBlocks
from dstream.plan.vertex_graph import GraphEdge
from dstream.values.order import NanLast

__all__ = ["EdgeInflow", "inflow"]

_BLOCK = 1024


class EdgeInflow:
    """A queue of blocks. Each block that it gives holds items alone, or is one mark.

    Args:
        edge: which one.
        senders: how many send by it.
        is_bounded: a sender has to wait while it is full; otherwise it takes all, on disk if it is much.

    Attributes:
        edge: which one.
        ended: the senders that have ended.
        is_ended: all senders have ended, and all of it was taken.
    """

    def __init__(self, edge: GraphEdge, senders: int, is_bounded: bool) -> None:
        self.edge = edge
        self.senders = senders
        self.ended: set[int] = set()
        self._is_bounded = is_bounded and edge.order is None
        self._blocks = WaitingBlocks(spills=not self._is_bounded)
        self._split: deque[tuple[int, list[Any] | Any]] = deque()
        self._waiting = 0
        self._lock = threading.Lock()

    @property
    def is_ended(self) -> bool:
        """Whether all senders have ended; what they sent before was taken."""
        return len(self.ended) == self.senders

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._split and not len(self._blocks)

    def put_some(self, sender: int, items: list[Any]) -> list[Any]:
        """Add as many items of a block as there is room for, and return those that are left.

        A small part of a block waits until half of the queue is free: many small blocks would cost much more.
        """
        size = self.edge.queue_size
        room = size - self._waiting if self._is_bounded else len(items)
        if len(items) <= room:
            self.put(sender, items)
            return []
        if room < max(size // 2, 1):
            return items
        same = type(items)  # A slice of a marked block is a plain list.
        self.put(sender, same(items[:room]))
        return same(items[room:])

    def put(self, sender: int, items: list[Any]) -> None:
        """Add a block of one sender, which may have marks in it."""
        with self._lock:
            self._waiting += len(items)
            self._blocks.put(sender, items)

    def take(self) -> tuple[int, list[Any] | Any] | None:
        """Return the next block with its sender: a list of items, or a mark; None: nothing waits."""
        if not self._split:
            with self._lock:
                if not len(self._blocks):
                    return None
                sender, items = self._blocks.take()
                self._waiting -= len(items)
            if type(items) is not MarkedBlock:
                return sender, items
            self._split.extend((sender, part) for part in _split(items))
        return self._split.popleft()


class OrderedInflow(EdgeInflow):
    """The same for an edge whose senders each send in an order: their items are merged by it.

    A mark waits until the items before it have gone. What a sender is ahead of the others is kept, on disk if it is
    much, so it may always send.
    """

    def __init__(self, edge: GraphEdge, senders: int) -> None:
        super().__init__(edge, senders, is_bounded=False)
        self._rank = NanLast(edge.order)
        self._heads: dict[int, deque[Any]] = {}
        self._of_senders = {sender: WaitingBlocks() for sender in range(senders)}

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not any(self._heads.values()) and not any(len(each) for each in self._of_senders.values())

    def put(self, sender: int, items: list[Any]) -> None:
        """Add a block of one sender."""
        with self._lock:
            self._of_senders[sender].put(sender, items)

    def take(self) -> tuple[int, list[Any] | Any] | None:
        """Return the next items in order, those of several senders together, or a mark; None: a sender is behind."""
        found: list[Any] = []
        while len(found) < _BLOCK:
            sender = self._next()
            if sender is None:
                break
            head = self._heads[sender]
            if type(head[0]) not in MARKS:
                found.append(head.popleft())
            elif found:
                break
            else:
                return sender, head.popleft()
        return (0, found) if found else None

    def _next(self) -> int | None:
        """Return the sender of what comes next: a mark first, else the least item; None: one is behind."""
        least = None
        rank = self._rank
        is_behind = False
        for sender in range(self.senders):
            head = self._heads.setdefault(sender, deque())
            if not head:
                with self._lock:
                    if len(self._of_senders[sender]):
                        head.extend(self._of_senders[sender].take()[1])
            if not head:
                is_behind = is_behind or sender not in self.ended
            elif type(head[0]) in MARKS:
                return sender
            elif least is None or rank(head[0]) < rank(self._heads[least][0]):
                least = sender
        return None if is_behind else least


def inflow(edge: GraphEdge, senders: int, is_bounded: bool) -> EdgeInflow:
    """Return the queue for an edge."""
    return EdgeInflow(edge, senders, is_bounded) if edge.order is None else OrderedInflow(edge, senders)


def _split(items: list[Any]) -> list[list[Any] | Any]:
    """Return runs of items, and the marks between them, in order."""
    found: list[list[Any] | Any] = []
    run: list[Any] = []
    for item in items:
        if type(item) not in MARKS:
            run.append(item)
            continue
        if run:
            found.append(run)
            run = []
        found.append(item)
    return [*found, run] if run else found
