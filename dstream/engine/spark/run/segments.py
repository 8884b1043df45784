"""Segments: partitions of items that a job has yet to compute, their splits, tables, caches and DataFrames.

An `OrderedSegments` is a sequence of segments in encounter order. A segment reads pieces of sources (`SplitSegment`),
the rows of an earlier stage (`Frame`), or rows that an earlier job has brought to the driver (`DriverRows`); operations
that need one partition only are piped onto it and run in the stage that reads it. Nothing runs until the rows are asked
for.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from dstream.base.records import record
from dstream.engine.physical.vertices import (
    EVERYTHING,
    ITEMS_AND_WATERMARKS,
    OutputPort,
)
from dstream.engine.runs.splits import Pieces
from dstream.engine.spark.port.protocols import Port
from dstream.engine.spark.run.backend import LARGEST_PASSENGER
from dstream.engine.spark.run.stage_runner import LastRows, StageRunner
from dstream.engine.tasks.readers import read_items
from dstream.engine.tasks.rows import ITEMS, ExpectedRows, Row
from dstream.engine.tasks.sinks import WriteItems
from dstream.engine.tasks.stage import FrameInput, Piece, Reader, RowsInput, ShippedInput, Sink, SplitInput, TableInput
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.operators.rows.batches import loads
from dstream.operators.rows.caches import HeldByContext
from dstream.operators.rows.operations import Operation
from dstream.plan.operations.streams import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "CachedRows",
    "DriverRows",
    "Frame",
    "OrderedSegments",
    "PinnedTables",
    "Segment",
    "SplitSegment",
    "chosen_rows",
    "last_rows",
    "piece_rows",
    "rows_of",
    "segment_rows",
]


@record(slots=False)
class SplitSegment:
    """A segment that reads pieces of sources, one task for each piece."""

    pieces: Iterable[Piece]

    def pipe(self, operation: Operation) -> SplitSegment:
        """Return the segment with `operation` at the end of each piece."""
        return SplitSegment(Pieces(replace(piece, operations=(*piece.operations, operation)) for piece in self.pieces))


@record(slots=False)
class Frame:
    """A segment that reads the output of an earlier stage.

    Attributes:
        frame: its rows, already placed and in order.
        partitions: how many partitions it has.
        sent: the rows to expect from the shuffle before; None: they are not counted.
    """

    frame: DataFrame
    partitions: int
    reader: Reader = read_items
    operations: tuple[Operation, ...] = field(default=())
    sent: ExpectedRows | None = None

    def pipe(self, operation: Operation) -> Frame:
        """Return the segment with `operation` at the end."""
        return replace(self, operations=(*self.operations, operation))


@record(slots=False)
class DriverRows:
    """A segment that reads rows which an earlier job has brought to this process.

    Attributes:
        rows: the rows of each partition, in their order.
        sent: the rows to expect among them; None: they are not counted.
    """

    rows: tuple[tuple[Row, ...], ...]
    reader: Reader = read_items
    operations: tuple[Operation, ...] = field(default=())
    sent: ExpectedRows | None = None

    @property
    def partitions(self) -> int:
        """The number of its partitions."""
        return len(self.rows)

    def pipe(self, operation: Operation) -> DriverRows:
        """Return the segment with `operation` at the end."""
        return replace(self, operations=(*self.operations, operation))


Segment = SplitSegment | Frame | DriverRows


@record(slots=False)
class OrderedSegments:
    """Segments in encounter order."""

    segments: tuple[Segment, ...]

    def pipe(self, operation: Operation) -> OrderedSegments:
        """Return the flow with `operation` on each partition."""
        return OrderedSegments(tuple(segment.pipe(operation) for segment in self.segments))

    def has_one_partition(self) -> bool:
        """Return whether all items are in one partition, so that operations need not look beyond it."""
        if len(self.segments) != 1:
            return False
        (segment,) = self.segments
        if isinstance(segment, SplitSegment):
            return len(list(islice(segment.pieces, 2))) == 1
        return segment.partitions == 1

    def in_one_task(self) -> OrderedSegments:
        """Return the flow with all its pieces read by one task, one after another."""
        assert all(isinstance(segment, SplitSegment) for segment in self.segments), "one task reads from sources"
        if self.has_one_partition():
            return self
        parts = tuple(
            piece for segment in self.segments if isinstance(segment, SplitSegment) for piece in segment.pieces
        )
        return OrderedSegments((SplitSegment((Piece(None, parts, (), None),)),))

    def count_partitions(self) -> int:
        """Return the number of partitions; every source is divided for that."""
        return sum(_partitions(segment) for segment in self.segments)


def _partitions(segment: Segment) -> int:
    return sum(1 for _ in segment.pieces) if isinstance(segment, SplitSegment) else segment.partitions


def rows_of(flow: OrderedSegments, sink: Sink, runner: StageRunner, first: int = 0, before: int = 0) -> DataFrame:
    """Return the rows that `sink` makes of the items of each partition, in encounter order.

    Args:
        flow: the items.
        sink: writes them.
        runner: where they are.
        first: the number of the first partition.
        before: how many partitions of these ran in earlier jobs.
    """
    frames = []
    for segment in flow.segments:
        # A task of a frame gets its number from Spark, which counts the tasks of all frames of a union.
        frames.append(segment_rows(segment, sink, before if isinstance(segment, Frame) else first, runner))
        first += _partitions(segment)
    # An empty frame where there is nothing to read, since the caller needs one.
    return functools.reduce(lambda left, right: left.union(right), frames or [piece_rows((), sink, 0, runner)])


def segment_rows(segment: Segment, sink: Sink, first_partition: int, runner: StageRunner) -> DataFrame:
    """Return the rows that `sink` makes of one segment, whose partitions are numbered from `first_partition`."""
    match segment:
        case SplitSegment(pieces):
            return piece_rows(list(pieces), sink, first_partition, runner)
        case DriverRows():
            return runner.stage(runner.backend.numbers(segment.partitions), _rows_input(segment, first_partition), sink)
        case Frame(frame):
            source = FrameInput(segment.reader, segment.operations, first_partition, segment.sent)
            return runner.stage(frame, source, sink)


def last_rows(segment: SplitSegment | DriverRows, sink: Sink, first_partition: int, runner: StageRunner) -> LastRows:
    """Return the rows of a job that are sent to this process, and which no stage follows."""
    if isinstance(segment, DriverRows):
        return runner.last_stage(_rows_input(segment, first_partition), sink)
    pieces = tuple(segment.pieces)
    if sum(piece.size() for piece in pieces) > LARGEST_PASSENGER:
        return piece_rows(pieces, sink, first_partition, runner)
    return runner.last_stage(SplitInput(pieces, first_partition), sink)


def _rows_input(segment: DriverRows, first_partition: int) -> RowsInput:
    return RowsInput(segment.rows, segment.reader, segment.operations, first_partition, segment.sent)


def piece_rows(pieces: Sequence[Piece], sink: Sink, first_partition: int, runner: StageRunner) -> DataFrame:
    """Return the rows that `sink` makes of pieces, one task for each."""
    # The pieces are sent to every task with the function; if they are large, each is sent to its own task, in a row.
    if sum(piece.size() for piece in pieces) > LARGEST_PASSENGER:
        return runner.stage(runner.backend.shipped(pieces), ShippedInput(first_partition), sink)
    return runner.stage(runner.backend.numbers(len(pieces)), SplitInput(tuple(pieces), first_partition), sink)


class PinnedTables:
    """Tables of Spark that one run reads, pinned."""

    def __init__(self, runner: StageRunner) -> None:
        self._runner = runner
        self._frames: dict[int, Frame] = {}

    def frame(self, node: Table) -> Frame:
        """Pin the rows, so that the number of their partitions is known; they are computed when a job needs them.

        Raises:
            UnsupportedError: it is a DataFrame of another session of Spark Connect.
        """
        if id(node) not in self._frames:
            runner = self._runner
            table, schema = _chosen(node)
            if not runner.port.reads(table):
                with naming(node.step):
                    raise UnsupportedError(
                        "with Spark Connect, a DataFrame is read in its own session: make it with ctx.spark, and leave "
                        "out configure(...), which gives a run a session of its own"
                    )
            rows = runner.port.pinned(runner.stage(table, TableInput(schema, node.made, node.step), WriteItems()))
            self._frames[id(node)] = Frame(rows, runner.partitions(rows))
        return self._frames[id(node)]


def _chosen(node: Table) -> tuple[Any, Any]:
    """Return the columns of a DataFrame that are read, under names that need no quotes, and their schema."""
    table, schema = node.table, node.table.schema
    fields = schema.names if node.made is None else node.made.names
    places = [schema.names.index(name) for name in fields]
    numbered = table.toDF(*(f"c{place}" for place in range(len(schema.names))))
    return numbered.select(*(f"c{place}" for place in places)), type(schema)([schema[place] for place in places])


def chosen_rows(frame: DataFrame, port: OutputPort) -> DataFrame:
    """Return the rows that a port names."""
    conditions = [_of_channels(port), _within("source", port.sources), _within("target", port.targets)]
    wanted = " and ".join(filter(None, conditions))
    return frame.where(wanted) if wanted else frame


def _of_channels(port: OutputPort) -> str:
    if port.channels >= EVERYTHING.channels and port.has_beside:
        return ""
    channels = [f"channel = {channel}" for channel in sorted(port.channels)]
    return f"({' or '.join([*channels, *([f'channel > {ITEMS}'] if port.has_beside else [])])})"


def _within(column: str, numbers: range | None) -> str:
    return "" if numbers is None else f"{column} >= {numbers.start} and {column} < {numbers.stop}"


class CachedRows(HeldByContext):
    """The rows of a cached stream, where they were computed; the executors forget them with this object.

    Attributes:
        partitions: the number of their partitions.
    """

    def __init__(self, rows: DataFrame, partitions: int, runner: StageRunner) -> None:
        self.partitions = partitions
        self._items = chosen_rows(rows, ITEMS_AND_WATERMARKS)
        self._runner = runner
        # At the exit of this process Spark ends, too, and may be gone already.
        weakref.finalize(self, runner.port.release, rows).atexit = False

    def frame(self, port: Port) -> Frame:
        """Return a reader of the items.

        Raises:
            UnsupportedError: the session of `port` may not read them.
        """
        if not port.reads(self._items):
            raise UnsupportedError(
                "with Spark Connect, what cache() keeps is there for runs without configure(...), which gives a run a "
                "session of its own: leave out one of the two"
            )
        return Frame(self._items, self.partitions)

    def __iter__(self) -> Iterator[Any]:
        """Yield the items in this process: the local engine may read them if two threads run plans on both engines."""
        for row in self._runner.rows_one_partition_at_a_time(self._items):
            yield from loads(row.payload)
