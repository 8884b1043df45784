"""`ReadingProcessor`: a source as a processor, so that `verify_processor(processors.read(source))` can drive it.

In a job an engine reads sources, and no processor does. This one asks the source as a job would, in one task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from dstream.spi import Source, Split, StreamSource
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext

__all__ = ["ReadingProcessor"]

_NOTHING: Any = object()


class ReadingProcessor(Processor):
    """Emits the items of a source; saves its offsets, and how many items of the current range were emitted.

    Args:
        source: one that ends is read as a partition with one range.
    """

    is_cooperative = False  # A source may wait for something outside.

    def __init__(self, source: Source[Any] | StreamSource[Any]) -> None:
        self._source: StreamSource[Any] = source if isinstance(source, StreamSource) else _OneRange(source)
        self._offsets: dict[str, Any] = {}
        self._range: tuple[str, Any, Any] | None = None
        self._emitted = 0
        self._items: Iterator[Any] = iter(())
        self._item: Any = _NOTHING
        self._is_restored = False

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Keep the outbox; nothing is read yet."""
        self._outbox = outbox

    def complete(self) -> bool:
        """Emit items until one is refused, or none is left; say whether the source has ended."""
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
        """Go on behind the last item that was emitted."""
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
