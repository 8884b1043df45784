"""Sinks that write a summary of a partition beside its items, and readers that are given the summaries of all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from dstream.engine.kernels.item_batches import dumps_items, loads
from dstream.engine.worker.rows import SUMMARY, Row
from dstream.engine.worker.sinks import WriteItems
from dstream.engine.worker.stage_task import StageTask
from dstream.failures import naming
from dstream.plan.steps import Step
from dstream.spi import ByPlace, Gatherer, Integration, Place, RunningValue

__all__ = ["ReadByPlace", "ReadRunning", "WriteIntegrated", "WriteWithHead", "WriteWithTotal"]


@dataclass(frozen=True)
class WriteWithHead:
    """Write the items, then tell how many there are, and the first few of them.

    Attributes:
        count: how many of them.
        largest: how many bytes they may take; a size of -1 says that they take more.
    """

    count: int
    largest: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        head: list[Any] = []
        written = looked_at = 0
        for row in WriteItems()(items, task):
            if written < self.count and looked_at <= self.largest:
                head += loads(row.payload)[: self.count - written]
                looked_at += len(row.payload)
            written += row.size
            yield row
        data = dumps_items(head)
        fits = len(head) == min(self.count, written) and len(data) <= self.largest
        yield Row(0, task.partition, written, SUMMARY, len(head) if fits else -1, data if fits else b"")


@dataclass(frozen=True)
class ReadByPlace:
    """Give what a gatherer makes of the items of a partition that knows its place.

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
    """Go over the rows that nobody needed, among which may stand what `peek` steps saw."""
    deque(rows, maxlen=0)
    return
    yield


@dataclass(frozen=True)
class WriteWithTotal:
    """Write the items, then tell the value of them all, which nobody needs of the last partition."""

    kind: RunningValue[Any, Any]
    step: Step
    last: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        total: list[Any] = []
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


@dataclass(frozen=True)
class ReadRunning:
    """Give the value behind each item of a partition.

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


@dataclass(frozen=True)
class WriteIntegrated:
    """Write what an integrator pushes, then tell its state, and whether it wanted no more items."""

    gatherer: Gatherer[Any, Any, Any]
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        with naming(self.step):
            run = Integration(self.gatherer)
            yield from WriteItems()(run.pushed(items), task)
            yield Row(0, task.partition, 0, SUMMARY, int(run.has_stopped), dumps_items([run.state]))
