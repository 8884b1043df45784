"""Results by key of a vertex, computed by tasks without its processors, and the counts of its items."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, count
from typing import Any

from dstream.base.memory import pieces
from dstream.base.records import record
from dstream.failures import naming
from dstream.operators.rows.operations import Task, written_entries
from dstream.operators.rows.spill import Columns
from dstream.plan.steps import Op, Step
from dstream.processors.blocks import GraphBlock, users_items
from dstream.processors.edges import checked_items
from dstream.spi.collector import Collector
from dstream.spi.sink import CountingEntries, MapWriter, Receipt

__all__ = ["GroupInput", "GroupOutput", "GroupShuffle", "WritingResults"]


_PIECE = 1024


@record(slots=False)
class GroupInput:
    """The input of a vertex by its only inbound edge, counted.

    Attributes:
        vertex: its name.
        receipts: takes the counts of the edges.
        step: the name of the vertex in messages.
    """

    vertex: str
    receipts: Op
    step: Step

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[Any]:
        came = 0
        for piece in pieces(items, _PIECE):
            with naming(self.step):
                block = checked_items(piece, self.vertex, self.step)
            found = users_items(GraphBlock(0, 0, block))
            came += len(found)
            yield from found
        # At the end alone: an attempt of a task that fails, or is left early, counts nothing.
        task.peeking(self.receipts)({self.vertex: ([came], [0])})


@record(slots=False)
class GroupShuffle:
    """The containers that a vertex sends to the vertex that combines them, counted.

    Attributes:
        source: the name of the sending vertex.
        destination: the name of the combining vertex.
        receipts: receives the counts of the edges.
    """

    source: str
    destination: str
    receipts: Op

    def __call__(self, parts: Iterator[Columns], task: Task) -> Iterator[Columns]:
        sent = 0
        for columns in parts:
            sent += len(columns[0])
            yield columns
        task.peeking(self.receipts)({self.source: ([0], [sent]), self.destination: ([sent], [0])})


@record(slots=False)
class GroupOutput:
    """The results that a vertex sends by its only edge, counted.

    Attributes:
        vertex: its name.
        receipts: takes the counts of the edges.
    """

    vertex: str
    receipts: Op

    def __call__(self, results: Iterator[Any], task: Task) -> Iterator[Any]:
        numbers = count(1)
        # `compress` counts in C, without a call for any item.
        yield from compress(results, numbers)
        task.peeking(self.receipts)({self.vertex: ([0], [next(numbers) - 1])})


@record(slots=False)
class WritingResults:
    """The writer of results: it combines and finishes the containers of each bucket, and counts the results.

    Attributes:
        vertex: the name of the vertex of the results.
        receipts: receives the counts of the edges.
        writer: writes the buckets.
        collector: collects the results as entries.
        downstream: combines and finishes the containers.
        step: the name of the vertex in messages.
    """

    vertex: str
    receipts: Op
    writer: MapWriter
    collector: Collector[Any, Any, Any]
    downstream: Collector[Any, Any, Any]
    step: Step

    def __call__(self, batches: Iterator[Any], task: Task) -> Iterator[Receipt]:
        writer = CountingEntries(self.writer)
        results = 0
        for receipt in written_entries(writer, self.downstream, self.step, batches, task, self.collector):
            if type(receipt) is int:
                results += receipt
            else:
                yield receipt[0]
        task.peeking(self.receipts)({self.vertex: ([0], [results])})
