"""Gatherers across partitions: summaries, windows over borders, and reading ahead.

Each task reduces the windows inside of its partition to a container, and sends it together with the first and the last
items of the partition. One task makes the windows across the borders of partitions from these items, reduces them to a
container for each border, and combines all containers in order. Items are computed once and not stored.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from dstream.base.memory import pieces
from dstream.base.records import record
from dstream.engine.tasks.rows import ITEMS, SUMMARY, Row
from dstream.engine.tasks.runtime import CountItems, StageTask
from dstream.engine.tasks.sinks import Accumulate, WriteItems
from dstream.engine.tasks.stage import Piece
from dstream.failures import naming
from dstream.operators.rows.batches import dumps_items, loads
from dstream.operators.rows.blocks import Block, ColumnItems, given
from dstream.operators.rows.gatherers import gathered_ahead
from dstream.operators.rows.operations import Operation, Task, operated
from dstream.plan.steps import Step
from dstream.spi import ByPlace, Gatherer, Integration, Place, RunningValue

__all__ = [
    "AccumulateAcross",
    "AccumulateInside",
    "Bordering",
    "ReadAhead",
    "ReadByPlace",
    "ReadRunning",
    "WriteIntegrated",
    "WriteWithHead",
    "WriteWithTotal",
]


_ENDS = -1
"""The `sequence` of a row with the ends of a partition, which precedes its container."""

_CHUNK = 256
"""The largest number of items that are read together, to find the last of them."""


@record(slots=False)
class Bordering:
    """The treatment of the items of a partition, or of those around a border.

    Attributes:
        kind: how the items are gathered: each with at most `following` later items.
        operations: the downstream operations.
        sink: collects their results into a container.
    """

    kind: ByPlace[Any, Any]
    operations: tuple[Operation, ...]
    sink: Accumulate

    def rows(self, own: Iterator[Any], behind: list[Any], is_alone: bool, task: StageTask) -> Iterator[Row]:
        """Yield the container of items that begin in `own`; `is_alone`: no other item is before or in between."""
        items = gathered_ahead(self.kind, own, behind, lambda: is_alone)
        return self.sink(operated(self.operations, items, task), task)


@record(slots=False)
class AccumulateInside:
    """Writer of the container of windows inside of the partition, and of its first and last items."""

    bordering: Bordering

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        ends = _Ends(self.bordering.kind.following)
        own: Iterator[Any] = chain.from_iterable(ends.chunks(items))
        if type(items) is ColumnItems:
            own = ColumnItems(ends.blocks(items.blocks()))
        yield from self.bordering.rows(own, [], False, task)
        deque(own, maxlen=0)  # A collector may have had enough before the last item.
        summary = [ends.size, len(ends.head), *ends.head, *ends.tail]
        with naming(self.bordering.sink.step):
            data = dumps_items(summary)
        yield Row(0, task.partition, _ENDS, ITEMS, 0, data)


class _Ends:
    """The first and the last items of a stream, each up to `count`, and the number of all items."""

    def __init__(self, count: int) -> None:
        self.size = 0
        self.head: list[Any] = []
        self.tail: list[Any] = []
        self._count = count

    def chunks(self, items: Iterable[Any]) -> Iterator[list[Any]]:
        """Yield the items in lists; the passed ones are counted when the next list is asked for."""
        for chunk in pieces(items, max(_CHUNK, self._count)):
            yield chunk
            self.head += chunk[: self._count - len(self.head)]
            self.size += len(chunk)
            last = chunk if len(chunk) >= self._count else self.tail + chunk
            self.tail = last[max(len(last) - self._count, 0) :]
            del chunk, last  # Released before the next ones are computed.

    def blocks(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield blocks; the items of those that are no columns in lists."""
        for block in blocks:
            if isinstance(block, Sequence | Iterator):
                yield chain.from_iterable(self.chunks(given(block)))
                continue
            from dstream.operators.columns.windows import ends_of_column  # loads NumPy

            yield block
            size, head, tail = ends_of_column(block, self._count)
            self.head += head[: self._count - len(self.head)]
            self.size += size
            self.tail = (self.tail + tail)[-self._count :] if self._count else []


@dataclass
class _Border:
    """The end of a partition, and the items after it as far as they are known."""

    source: int
    own: list[Any]
    is_alone: bool
    behind: list[Any] = field(default_factory=list)


@record(slots=False)
class AccumulateAcross:
    """A sink of the containers of the partitions, and between them those of windows across their borders."""

    bordering: Bordering

    def __call__(self, rows: Iterator[Row], task: StageTask) -> Iterator[Row]:
        following = self.bordering.kind.following
        pending: deque[Row | _Border] = deque()
        last: _Border | None = None
        seen = 0
        for row in rows:
            if row.sequence != _ENDS:
                pending.append(row)
            else:
                size, count, *ends = loads(row.payload)
                head, tail = ends[:count], ends[count:]
                pending.extend(() if last is None else (last,))
                for border in pending:
                    if isinstance(border, _Border):
                        border.behind += head[: following - len(border.behind)]
                last = _Border(row.source, tail, seen == 0 and len(tail) == size) if size else None
                seen += size
            # In order: rows after a border wait until its next items have arrived.
            while pending and (isinstance(pending[0], Row) or len(pending[0].behind) == following):
                yield from self._written(pending.popleft(), task)
        for each in (*pending, *(() if last is None else (last,))):
            yield from self._written(each, task)

    def _written(self, each: Row | _Border, task: StageTask) -> Iterator[Row]:
        if isinstance(each, Row):
            yield each
            return
        for row in self.bordering.rows(iter(each.own), each.behind, each.is_alone, task):
            yield row._replace(source=each.source)


@record(slots=False)
class WriteWithHead:
    """Write the items, then their number, and the first of them.

    Attributes:
        count: how many of them.
        largest: how many bytes they may take; a size of -1 means that they take more.
    """

    count: int
    largest: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        head: list[Any] = []
        written = looked_at = 0
        for row in WriteItems()(items, task):
            # Items are unpickled for the head only as long as it may be small enough.
            if written < self.count and looked_at <= self.largest:
                head += loads(row.payload)[: self.count - written]
                looked_at += len(row.payload)
            written += row.size
            yield row
        data = dumps_items(head)
        fits = len(head) == min(self.count, written) and len(data) <= self.largest
        yield Row(0, task.partition, written, SUMMARY, len(head) if fits else -1, data if fits else b"")


@record(slots=False)
class ReadByPlace:
    """A reader that runs a gatherer on the items of a partition whose position is known.

    Attributes:
        sizes: the number of items of each partition.
        heads: the first items of each partition, pickled.
    """

    kind: ByPlace[Any, Any]
    sizes: Sequence[int]
    heads: Sequence[bytes]

    def __call__(self, rows: Iterator[Row]) -> Iterator[Any]:
        first = next(rows, None)
        if first is None:
            return iter(())
        place = Place(sum(self.sizes[: first.source]), self.sizes[first.source], sum(self.sizes))
        behind = chain.from_iterable(map(loads, self.heads[first.source + 1 :]))
        items = chain(_items(first, rows), islice(behind, self.kind.following))
        return chain(self.kind.gather_part(items, place), _passed_by(rows))


def _items(first: Row, rows: Iterator[Row]) -> Iterator[Any]:
    return chain.from_iterable(loads(row.payload) for row in chain((first,), rows))


def _passed_by(rows: Iterator[Row]) -> Iterator[Any]:
    """Skip the rows that were not needed, with side rows of `peek` steps among them."""
    # The `yield` below makes this a generator, so that nothing is skipped before the items were taken.
    deque(rows, maxlen=0)
    return
    yield


@record(slots=False)
class WriteWithTotal:
    """Write the items, then the value of them all, which is not needed of the last partition."""

    kind: RunningValue[Any, Any]
    step: Step
    last: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        total: list[Any] = []
        # The value costs a call of the user's function for each item.
        if task.partition < self.last:
            items = self._totalled(items, total)
        written = 0
        for row in WriteItems()(items, task):
            written += row.size
            yield row
        yield Row(0, task.partition, written, SUMMARY, min(written, 1), dumps_items(total))

    def _totalled(self, items: Iterator[Any], total: list[Any]) -> Iterator[Any]:
        fn = self.kind.fn
        with naming(self.step):
            value = self.kind.start()
            for item in items:
                value = fn(value, item)
                yield item
        total.append(value)


@record(slots=False)
class ReadRunning:
    """A reader of the running value after each item of a partition.

    Attributes:
        before: the value of all items before a partition, pickled; the first one with items has none.
    """

    kind: RunningValue[Any, Any]
    step: Step
    before: Mapping[int, bytes]

    def __call__(self, rows: Iterator[Row]) -> Iterator[Any]:
        first, fn = next(rows, None), self.kind.fn
        if first is None:
            return
        with naming(self.step):
            (value,) = loads(self.before[first.source]) if first.source in self.before else (self.kind.start(),)
            for item in _items(first, rows):
                value = fn(value, item)
                yield value


@record(slots=False)
class WriteIntegrated:
    """Writes the output of an integrator, then its state, and whether it wanted no more items."""

    gatherer: Gatherer[Any, Any, Any]
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        with naming(self.step):
            run = Integration(self.gatherer)
            yield from WriteItems()(run.pushed(items), task)
            yield Row(0, task.partition, 0, SUMMARY, int(run.has_stopped), dumps_items([run.state]))


@record(slots=False)
class ReadAhead:
    """Gathers windows that begin in a piece; the items after it are read from later pieces, and not counted again."""

    kind: ByPlace[Any, Any]

    def __call__(self, pieces: tuple[Piece, ...]) -> Callable[[int], Operation]:
        # An item is counted by the task whose piece it belongs to, and not again by those that read ahead.
        quiet = tuple(replace(piece, operations=tuple(map(_uncounted, piece.operations))) for piece in pieces)
        return lambda number: functools.partial(_gather_ahead, self.kind, quiet, number)


def _uncounted(operation: Operation) -> Operation:
    return _pass_on if isinstance(operation, CountItems) else operation


def _pass_on(items: Iterator[Any], task: Task) -> Iterator[Any]:
    return items


def _gather_ahead(
    kind: ByPlace[Any, Any], pieces: tuple[Piece, ...], number: int, items: Iterator[Any], task: Task
) -> Iterator[Any]:
    def is_first() -> bool:
        return not any(True for piece in pieces[:number] for _ in piece.open(task))

    return gathered_ahead(
        kind, items, chain.from_iterable(piece.open(task) for piece in pieces[number + 1 :]), is_first
    )
