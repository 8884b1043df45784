"""`TestInbox` and `TestOutbox`: the surroundings of a processor under test, and sources as processors.

In a job an engine reads sources, not a processor. This processor reads the source as a job would, in one task.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, ClassVar

from dstream.errors import IllegalStateError
from dstream.failures import MISSING, shown
from dstream.processors.inbox_outbox import BlockInbox
from dstream.spi import Source, Split, StreamSource
from dstream.spi.processor import Inbox, NamesOfJet, Outbox, Processor, ProcessorContext, Targets

__all__ = ["ReadingProcessor", "TestInbox", "TestOutbox", "TestProcessorContext"]


class TestInbox(BlockInbox):
    """An inbox that a test fills.

    Args:
        items: the initial items.

    Example:
        >>> inbox = TestInbox([1, 2])
        >>> inbox.add(3)
        >>> inbox.poll(), inbox.queue
        (1, [2, 3])
    """

    __test__ = False  # pytest does not collect it.
    __slots__ = ()

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__()
        self.add_all(items)

    def add(self, item: Any) -> None:
        """Append an item."""
        self.add_all([item])

    def add_all(self, items: Iterable[Any]) -> None:
        """Append items.

        Raises:
            TypeError: one is None.
        """
        added = list(items)
        if any(each is None for each in added):
            raise TypeError("an inbox holds no None: it stands for nothing in the protocol")
        self.fill([*self.drain(), *added])

    def clear(self) -> None:
        """Remove all items."""
        self.drain()

    @property
    def queue(self) -> list[Any]:
        """A copy of the pending items."""
        waiting = self.drain()
        self.fill(list(waiting))
        return waiting


class TestOutbox(NamesOfJet):
    """An outbox with small buckets that checks that a processor follows the protocol.

    Args:
        capacities: the capacity of each bucket in items, by the ordinals of the edges.
        snapshot_capacity: the capacity of the snapshot in entries; with 0, no snapshot is being taken.

    Attributes:
        refused: the refused item, which is to be offered again first; or `MISSING`.
        refused_key: the key of the refused entry; or `MISSING`.
        refused_now: the item or key that was refused since the last `reset`; or `MISSING`.
        has_ended: the processor is complete, and may not emit any more.
        broken: the error that was raised since the processor broke the protocol; or None.

    Example:
        >>> outbox = TestOutbox(1)
        >>> outbox.offer("a"), outbox.offer("b")
        (True, False)
        >>> outbox.drain_queue_and_reset(0)
        ['a']
        >>> outbox.offer("c")
        Traceback (most recent call last):
        dstream.errors.IllegalStateError: offer() refused 'b', which is to be offered again first, and got 'c'
    """

    __test__ = False  # pytest does not collect it.

    def __init__(self, *capacities: int, snapshot_capacity: int = 0) -> None:
        self.capacities = list(capacities)
        self.snapshot_capacity = snapshot_capacity
        self.refused: Any = MISSING
        self.refused_key: Any = MISSING
        self.refused_now: Any = MISSING
        self.has_ended = False
        self.broken: Exception | None = None
        self._queues: list[list[Any]] = [[] for _ in capacities]
        self._snapshot: dict[Any, Any] = {}

    @property
    def bucket_count(self) -> int:
        """The number of outbound edges."""
        return len(self.capacities)

    def offer(self, item: Any, to: Targets = None) -> bool:
        """Put an item into buckets, or into none of them if one is full.

        Args:
            item: not None.
            to: the ordinals of the edges; None: all.

        Returns:
            Whether it was accepted.

        Raises:
            TypeError: the item is None.
            ValueError: there is no edge of that ordinal.
            IllegalStateError: another item is to be offered first, or the processor has not returned since one was
                refused.
        """
        return self.offer_all((item,), to) == 1

    def offer_all(self, items: Sequence[Any], to: Targets = None) -> int:
        """Put the first items of a block, as far as they fit, into buckets, and return their number.

        Raises:
            As `offer`.
        """
        if any(each is None for each in items):
            raise self._breaks(TypeError("a processor emits no None: it stands for nothing in the protocol"))
        ordinals = self._ordinals(to)
        if not items:
            return 0
        if self.has_ended:
            raise self._breaks(IllegalStateError(f"{shown(items[0])} was emitted after complete() had returned True"))
        self._check(items[0], self.refused, "offer")
        room = min((self.capacities[each] - len(self._queues[each]) for each in ordinals), default=len(items))
        taken = items[: max(room, 0)]
        for each in ordinals:
            self._queues[each].extend(taken)
        self.refused = self.refused_now = items[len(taken)] if len(taken) < len(items) else MISSING
        return len(taken)

    def offer_to_snapshot(self, key: Any, value: Any) -> bool:
        """Put an entry into the snapshot.

        Returns:
            Whether it was accepted.

        Raises:
            IllegalStateError: no snapshot is being taken, another key is to be offered first, or the processor has not
                returned since something was refused.
            ValueError: the key was saved already.
        """
        if not self.snapshot_capacity:
            raise self._breaks(
                IllegalStateError("a processor offers to the snapshot inside of save_to_snapshot() alone")
            )
        self._check(key, self.refused_key, "offer_to_snapshot")
        if key in self._snapshot:
            raise self._breaks(
                ValueError(f"the key {shown(key)} is in this snapshot already: keys of one processor are unique")
            )
        is_full = len(self._snapshot) >= self.snapshot_capacity
        self.refused_key = self.refused_now = key if is_full else MISSING
        if is_full:
            return False
        self._snapshot[key] = value
        return True

    def _ordinals(self, to: Targets) -> Sequence[int]:
        if to is None:
            return range(self.bucket_count)
        ordinals = [to] if isinstance(to, int) else list(to)
        for each in ordinals:
            if not 0 <= each < self.bucket_count:
                raise self._breaks(
                    ValueError(f"there is no outbound edge {each}: there are {self.bucket_count}, counted from 0")
                )
        return ordinals

    def _check(self, offered: Any, refused: Any, method: str) -> None:
        """Refuse an item that is offered too early, and one that is not the refused one."""
        if self.refused_now is not MISSING:
            now = shown(self.refused_now)
            raise self._breaks(
                IllegalStateError(
                    f"{method}() got {shown(offered)} after {now} was refused, in the same call of the processor: it "
                    "has to return first"
                )
            )
        if refused is not MISSING and offered is not refused and offered != refused:
            raise self._breaks(
                IllegalStateError(
                    f"{method}() refused {shown(refused)}, which is to be offered again first, and got {shown(offered)}"
                )
            )

    def _breaks(self, error: Exception) -> Exception:
        """Record that the processor has broken the protocol, and return the error."""
        self.broken = error
        return error

    def queue(self, ordinal: int) -> list[Any]:
        """Return the contents of the bucket of an edge."""
        return list(self._queues[ordinal])

    @property
    def snapshot_queue(self) -> list[tuple[Any, Any]]:
        """The entries `(key, value)` of the snapshot."""
        return list(self._snapshot.items())

    def drain_queue_and_reset(self, ordinal: int) -> list[Any]:
        """Remove and return the contents of the bucket of an edge, and accept offers again."""
        self.reset()
        drained, self._queues[ordinal] = self._queues[ordinal], []
        return drained

    def drain_queues_and_reset(self) -> list[list[Any]]:
        """Remove and return the contents of all buckets, and accept offers again."""
        return [self.drain_queue_and_reset(each) for each in range(self.bucket_count)]

    def drain_snapshot_queue_and_reset(self) -> list[tuple[Any, Any]]:
        """Remove and return the entries `(key, value)` of the snapshot, and accept offers again."""
        self.reset()
        drained, self._snapshot = self.snapshot_queue, {}
        return drained

    def reset(self) -> None:
        """Allow offers again: the processor has returned, as far as the outbox is concerned."""
        self.refused_now = MISSING


@dataclass(frozen=True, slots=True)
class TestProcessorContext(ProcessorContext):
    """Context of a processor in a test: each attribute of `ProcessorContext` has a default.

    Its logger is named after the vertex and the number, as in a job, unless one is passed.

    Example:
        >>> TestProcessorContext(total_parallelism=4, index=1).logger.name
        'dstream.core.tested.1'
    """

    __test__: ClassVar[bool] = False  # pytest does not collect it.

    vertex: str = "tested"

    def __post_init__(self) -> None:
        if self.logger is logging.getLogger("dstream.core"):
            object.__setattr__(self, "logger", logging.getLogger(f"dstream.core.{self.vertex}.{self.index}"))


_NOTHING: Any = object()


class ReadingProcessor(Processor):
    """Processor that emits the items of a source, and saves its offsets and the items emitted of the current range.

    Args:
        source: one that ends is read as a partition with one range.
    """

    is_cooperative = False  # A source may wait for an external event.

    def __init__(self, source: Source[Any] | StreamSource[Any]) -> None:
        self._source: StreamSource[Any] = source if isinstance(source, StreamSource) else _OneRange(source)
        self._offsets: dict[str, Any] = {}
        self._range: tuple[str, Any, Any] | None = None
        self._emitted = 0
        self._items: Iterator[Any] = iter(())
        self._item: Any = _NOTHING
        self._is_restored = False

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Store the outbox; nothing is read yet."""
        self._outbox = outbox

    def complete(self) -> bool:
        """Emit items until one is refused, or none is left; return whether the source has ended."""
        if not self._offsets and not self._is_restored:
            self._offsets = dict(self._source.begin())
            self._is_restored = True
        while True:
            if self._item is _NOTHING:
                self._item = next(self._items, _NOTHING)
            if self._item is not _NOTHING:
                if not self._outbox.offer(self._item):
                    return False
                self._item = _NOTHING
                self._emitted += 1
                continue
            self._end_range()
            reached = self._source.reach(dict(self._offsets))
            news = [name for name, stop in reached.items() if stop != self._offsets.get(name)]
            if not news:
                return not reached and bool(getattr(self._source, "ends", False))
            self._open((news[0], self._offsets.get(news[0]), reached[news[0]]))

    def _open(self, found: tuple[str, Any, Any], emitted: int = 0) -> None:
        self._range, self._emitted = found, emitted
        self._items = islice(iter(self._source.split(*found).read()), emitted, None)

    def _end_range(self) -> None:
        if self._range is not None:
            self._offsets[self._range[0]] = self._range[2]
            self._range = None

    def save_to_snapshot(self) -> bool:
        """Save how far the source was read."""
        return self._outbox.offer_to_snapshot("read", (self._is_restored, self._offsets, self._range, self._emitted))

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        """Continue after the last emitted item."""
        for _, (self._is_restored, self._offsets, found, emitted) in inbox:
            if found is not None:
                self._open(found, emitted)


@dataclass(frozen=True, slots=True)
class _OneRange:
    """A source that ends, as one partition with one range."""

    source: Source[Any]

    ends = True

    @property
    def label(self) -> str:
        return repr(self.source)

    def begin(self) -> Mapping[str, int]:
        return {"all": 0}

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        return {"all": 1} if offsets["all"] == 0 else {}

    def split(self, partition: str, start: Any, stop: Any) -> Split[Any]:
        return _AllSplits(self.source)


@dataclass(frozen=True, slots=True)
class _AllSplits:
    source: Source[Any]

    def read(self) -> Iterator[Any]:
        return chain.from_iterable(split.read() for split in self.source.splits(1))
