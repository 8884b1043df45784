"""Windows over several partitions that a collector reduces to one result, without a shuffle of the items.

Each task reduces the windows that lie inside of its partition to a container, and hands on that and the first and the
last few items of the partition. One task makes the windows that lie across the border of two partitions of these items,
reduces them to a container for each border, and combines all containers in order. Items are computed once and not kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from dstream.engine.kernels.columns.column_items import Block, ColumnItems, given
from dstream.engine.kernels.core_operations import Operation, operated
from dstream.engine.kernels.gathering_ahead import gathered_ahead
from dstream.engine.kernels.item_batches import dumps_items, loads
from dstream.engine.worker.rows import ITEMS, Row
from dstream.engine.worker.sinks import Accumulate
from dstream.engine.worker.stage_task import StageTask
from dstream.failures import naming
from dstream.memory import pieces
from dstream.spi import ByPlace

__all__ = ["AccumulateAcross", "AccumulateInside", "Bordering"]

_ENDS = -1
"""The `sequence` of a row with the ends of a partition, which comes before its container."""

_CHUNK = 256
"""At most so many items are read together, to know the last of them."""


@dataclass(frozen=True)
class Bordering:
    """What is done with the items of a partition, or with those around a border.

    Attributes:
        kind: how the items are gathered: each with no more than the `following` ones behind it.
        operations: what comes behind that.
        sink: takes what they give into a container.
    """

    kind: ByPlace[Any, Any]
    operations: tuple[Operation, ...]
    sink: Accumulate

    def rows(self, own: Iterator[Any], behind: list[Any], is_alone: bool, task: StageTask) -> Iterator[Row]:
        """Give the container of what begins in `own`; `is_alone` says whether no other item is before or in between."""
        items = gathered_ahead(self.kind, own, behind, lambda: is_alone)
        return self.sink(operated(self.operations, items, task), task)


@dataclass(frozen=True)
class AccumulateInside:
    """Write the container of what begins and ends in the partition, and its first and last items."""

    bordering: Bordering

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        ends = _Ends(self.bordering.kind.following)
        own: Iterator[Any] = chain.from_iterable(ends.chunks(items))
        if type(items) is ColumnItems:
            own = ColumnItems(ends.blocks(items.blocks()))
        yield from self.bordering.rows(own, [], False, task)
        deque(own, maxlen=0)  # A collector may have had enough before the last item.
        told = [ends.size, len(ends.head), *ends.head, *ends.tail]
        with naming(self.bordering.sink.step):
            data = dumps_items(told)
        yield Row(0, task.partition, _ENDS, ITEMS, 0, data)


class _Ends:
    """The first and the last items of what passes by, each up to `count`, and how many items that are."""

    def __init__(self, count: int) -> None:
        self.size = 0
        self.head: list[Any] = []
        self.tail: list[Any] = []
        self._count = count

    def chunks(self, items: Iterable[Any]) -> Iterator[list[Any]]:
        """Give the items in lists; what passed is counted when the next list is asked for."""
        for chunk in pieces(items, max(_CHUNK, self._count)):
            yield chunk
            self.head += chunk[: self._count - len(self.head)]
            self.size += len(chunk)
            last = chunk if len(chunk) >= self._count else self.tail + chunk
            self.tail = last[max(len(last) - self._count, 0) :]
            del chunk, last  # They are not held while the next ones are made.

    def blocks(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Give blocks; the items of those that are no columns in lists."""
        for block in blocks:
            if isinstance(block, Sequence | Iterator):
                yield chain.from_iterable(self.chunks(given(block)))
                continue
            from dstream.engine.kernels.columns.column_windows import ends_of_column  # loads NumPy

            yield block
            size, head, tail = ends_of_column(block, self._count)
            self.head += head[: self._count - len(self.head)]
            self.size += size
            self.tail = (self.tail + tail)[-self._count :] if self._count else []


@dataclass
class _Border:
    """The end of a partition, and the items behind it as far as they are known."""

    source: int
    own: list[Any]
    is_alone: bool
    behind: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class AccumulateAcross:
    """Hand on the containers of the partitions; between them write those of what lies across their borders."""

    bordering: Bordering

    def __call__(self, rows: Iterator[Row], task: StageTask) -> Iterator[Row]:
        following = self.bordering.kind.following
        waiting: deque[Row | _Border] = deque()
        last: _Border | None = None
        seen = 0
        for row in rows:
            if row.sequence != _ENDS:
                waiting.append(row)
            else:
                size, count, *ends = loads(row.payload)
                head, tail = ends[:count], ends[count:]
                waiting.extend(() if last is None else (last,))
                for border in waiting:
                    if isinstance(border, _Border):
                        border.behind += head[: following - len(border.behind)]
                last = _Border(row.source, tail, seen == 0 and len(tail) == size) if size else None
                seen += size
            while waiting and (isinstance(waiting[0], Row) or len(waiting[0].behind) == following):
                yield from self._written(waiting.popleft(), task)
        for each in (*waiting, *(() if last is None else (last,))):
            yield from self._written(each, task)

    def _written(self, each: Row | _Border, task: StageTask) -> Iterator[Row]:
        if isinstance(each, Row):
            yield each
            return
        for row in self.bordering.rows(iter(each.own), each.behind, each.is_alone, task):
            yield row._replace(source=each.source)
