"""The inbound edges of a processor: queues in memory and on disk, and their least watermark."""

from __future__ import annotations

import pickle
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from typing import IO, Any

from dstream.base.memory import Growth
from dstream.base.pickling import dumps
from dstream.plan.processor_graph import GraphEdge
from dstream.processors.blocks import MARKS, Mark, MarkedBlock
from dstream.spi.processor import Watermark
from dstream.values.order import NanLast
from dstream.values.time import NO_WATERMARK

__all__ = ["BlockQueue", "EdgeInflow", "LeastWatermark", "inflow"]


_IN_MEMORY = 100_000
"""Maximum number of items buffered in memory, if they are small."""


class BlockQueue:
    """Queue of blocks, each with its sender. Blocks beyond the memory bound are written to an unnamed file.

    The bound is on the growth of the process while blocks are queued.

    Args:
        spills: whether the queue is unbounded; otherwise the sender of the blocks has bounded them.
    """

    __slots__ = ("__weakref__", "_file", "_first", "_growth", "_held", "_in_file", "_read", "_spills", "_written")

    def __init__(self, spills: bool = True) -> None:
        self._first: deque[tuple[int, list[Any]]] = deque()
        self._spills = spills
        self._growth = Growth()
        self._held = 0
        self._file: IO[bytes] | None = None
        self._in_file = 0
        self._read = 0
        self._written = 0

    def __len__(self) -> int:
        return len(self._first) + self._in_file

    def put(self, sender: int, items: list[Any]) -> None:
        """Add a block."""
        if not self._first and not self._in_file:
            self._growth.start()
        # Once blocks are in the file, later blocks are written to it although memory is free again, to remain in order.
        if not self._in_file and not self._is_much():
            self._held += len(items)
            self._first.append((sender, items))
        else:
            self._write(dumps((sender, items)))

    def _is_much(self) -> bool:
        return self._spills and bool(self._first) and (self._held >= _IN_MEMORY or self._growth.exceeded())

    def take(self) -> tuple[int, list[Any]]:
        """Return the first block; the queue must not be empty."""
        if self._first:
            sender, items = self._first.popleft()
            self._held -= len(items)
            return sender, items
        return self._from_file()

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="dstream-")  # noqa: SIM115 - it is open as long as the queue
            weakref.finalize(self, self._file.close)
        # Blocks are read and written alternately, at two positions.
        self._file.seek(self._written)
        self._file.write(len(data).to_bytes(8, "little"))
        self._file.write(data)
        self._written = self._file.tell()
        self._in_file += 1

    def _from_file(self) -> tuple[int, list[Any]]:
        assert self._file is not None, "a block was written"
        self._file.seek(self._read)
        size = int.from_bytes(self._file.read(8), "little")
        sender, items = pickle.loads(self._file.read(size))
        self._read = self._file.tell()
        self._in_file -= 1
        # The file would grow for ever if the space of blocks that were read was never used again.
        if not self._in_file:
            self._file.truncate(0)
            self._read = self._written = 0
        return sender, items


Sender = tuple[int, int]
"""The ordinal of an edge, and the number of a processor that sends by it."""


class LeastWatermark:
    """The least watermark of several senders, which never decreases.

    Args:
        senders: all senders.
    """

    def __init__(self, senders: Iterable[Sender]) -> None:
        self._reported: dict[Sender, int | None] = dict.fromkeys(senders, NO_WATERMARK)
        self._last = NO_WATERMARK
        self._was_idle = False

    def observe(self, sender: Sender, mark: Watermark | Mark) -> Watermark | Mark | None:
        """Record a sender's watermark; return the new least watermark if it advances, or `IDLE` if all are idle now.

        Args:
            sender: the sender.
            mark: its watermark; `IDLE`: it does not limit time until it sends an item; `ENDED`: it never does again.
        """
        if isinstance(mark, Watermark):
            self._reported[sender] = mark.timestamp
        elif mark is Mark.IDLE:
            self._reported[sender] = None
        else:
            self._reported.pop(sender, None)
        return self._moved()

    def received(self, sender: Sender) -> None:
        """Record items of a sender: an idle sender limits time again, at the current watermark."""
        # None: the sender is idle; a sender that has ended has no entry.
        if self._reported.get(sender, 0) is None:
            self._reported[sender] = self._last
            self._was_idle = False

    def _moved(self) -> Watermark | Mark | None:
        holding = [reported for reported in self._reported.values() if reported is not None]
        if not holding:
            is_news = bool(self._reported) and not self._was_idle
            self._was_idle = bool(self._reported)
            return Mark.IDLE if is_news else None
        self._was_idle = False
        least = min(holding)
        if least <= self._last:
            return None
        self._last = least
        return Watermark(least)

    def state(self) -> tuple[dict[Sender, int | None], int]:
        """Return the state for `restore`."""
        return dict(self._reported), self._last

    def restore(self, state: tuple[dict[Sender, int | None], int]) -> None:
        """Restore the result of `state`; the senders are the same."""
        reported, self._last = state
        self._reported = dict(reported)


_BLOCK = 1024


class EdgeInflow:
    """Queue of blocks. Each block taken from it contains only items, or is one mark.

    Args:
        edge: the edge.
        senders: the number of its senders.
        is_bounded: whether a sender must wait while it is full; otherwise it accepts all, past a bound on disk.

    Attributes:
        edge: the edge.
        ended: the senders that have ended.
        is_ended: whether all senders have ended, and all blocks were taken.
    """

    def __init__(self, edge: GraphEdge, senders: int, is_bounded: bool) -> None:
        self.edge = edge
        self.senders = senders
        self.ended: set[int] = set()
        # A merge waits for its slowest sender: if the others had to wait for room, a graph could deadlock.
        self._is_bounded = is_bounded and edge.order is None
        self._blocks = BlockQueue(spills=not self._is_bounded)
        self._split: deque[tuple[int, list[Any] | Any]] = deque()
        self._waiting = 0
        self._lock = threading.Lock()

    @property
    def is_ended(self) -> bool:
        """Return whether all senders have ended; everything that they sent before was taken."""
        return len(self.ended) == self.senders

    @property
    def is_empty(self) -> bool:
        """Return whether it is empty."""
        return not self._split and not len(self._blocks)

    def put_some(self, sender: int, items: list[Any]) -> list[Any]:
        """Add the items of a block for which there is room, and return the rest.

        A block is not split into a small part: it waits until half of the queue is free, since small blocks cost more.
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
        """Add a block of one sender, which may contain marks."""
        # Processors that are not cooperative put and take in threads of their own.
        with self._lock:
            self._waiting += len(items)
            self._blocks.put(sender, items)

    def take(self) -> tuple[int, list[Any] | Any] | None:
        """Return the next block with its sender: a list of items, or a mark; None if it is empty."""
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
    """Inflow of an edge whose senders each send in an order: their items are merged by that order.

    A mark is taken after the items before it. Items of a sender that is ahead of the others are buffered, past a bound
    on disk, so it may always send.
    """

    def __init__(self, edge: GraphEdge, senders: int) -> None:
        super().__init__(edge, senders, is_bounded=False)
        self._rank = NanLast(edge.order)
        self._heads: dict[int, deque[Any]] = {}
        self._of_senders = {sender: BlockQueue() for sender in range(senders)}

    @property
    def is_empty(self) -> bool:
        """Return whether it is empty."""
        return not any(self._heads.values()) and not any(len(each) for each in self._of_senders.values())

    def put(self, sender: int, items: list[Any]) -> None:
        """Add a block of one sender."""
        with self._lock:
            self._of_senders[sender].put(sender, items)

    def take(self) -> tuple[int, list[Any] | Any] | None:
        """Return the next items in order, of several senders, or a mark; None: a sender lags."""
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
        """Return the sender of the next item: a mark first, else the least item; None: a sender lags."""
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
