"""Flows: partitions of items that a job has yet to compute, and how they become DataFrames.

A `Flow` is a sequence of segments in encounter order. A segment reads pieces of sources (`SplitSegment`), the rows of
an earlier stage (`Frame`), or rows that an earlier job has brought here (`RowsHere`); operations that need one
partition only are piped onto it and run in the stage that reads it. Nothing runs until somebody asks for the rows of
a flow.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import TYPE_CHECKING

from dstream.engine.kernels.core_operations import Operation
from dstream.engine.spark.cluster import LARGEST_PASSENGER
from dstream.engine.worker.counted_rows import Sent
from dstream.engine.worker.readers import read_items
from dstream.engine.worker.rows import Row
from dstream.engine.worker.stage import FrameInput, Piece, Reader, RowsInput, ShippedInput, Sink, SplitInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dstream.engine.spark.cluster import Cluster, LastRows

__all__ = [
    "Flow",
    "Frame",
    "Pieces",
    "RowsHere",
    "Segment",
    "SplitSegment",
    "last_rows",
    "piece_rows",
    "rows_of",
    "segment_rows",
]


class Pieces:
    """The pieces of sources, asked for one after another, and kept once they are known."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._known: list[Piece] = []
        self._rest = iter(pieces)

    def __iter__(self) -> Iterator[Piece]:
        for index in count():
            if index == len(self._known):
                self._known.extend(islice(self._rest, 1))
            if index == len(self._known):
                return
            yield self._known[index]


@dataclass(frozen=True)
class SplitSegment:
    """A segment that reads pieces of sources, one task for each piece."""

    pieces: Iterable[Piece]

    def pipe(self, operation: Operation) -> SplitSegment:
        """Return the segment with `operation` at the end of each piece."""
        return SplitSegment(Pieces(replace(piece, operations=(*piece.operations, operation)) for piece in self.pieces))


@dataclass(frozen=True)
class Frame:
    """A segment that reads what an earlier stage wrote.

    Attributes:
        frame: its rows, already placed and in order.
        partitions: how many partitions it has.
        sent: what should come through the shuffle before; None: nobody looks.
    """

    frame: DataFrame
    partitions: int
    reader: Reader = read_items
    operations: tuple[Operation, ...] = field(default=())
    sent: Sent | None = None

    def pipe(self, operation: Operation) -> Frame:
        """Return the segment with `operation` at the end."""
        return replace(self, operations=(*self.operations, operation))


@dataclass(frozen=True)
class RowsHere:
    """A segment that reads rows which an earlier job has brought to this process.

    Attributes:
        rows: those of each partition, in their order.
        sent: what should be among them; None: nobody looks.
    """

    rows: tuple[tuple[Row, ...], ...]
    reader: Reader = read_items
    operations: tuple[Operation, ...] = field(default=())
    sent: Sent | None = None

    @property
    def partitions(self) -> int:
        """How many partitions it has."""
        return len(self.rows)

    def pipe(self, operation: Operation) -> RowsHere:
        """Return the segment with `operation` at the end."""
        return replace(self, operations=(*self.operations, operation))


Segment = SplitSegment | Frame | RowsHere


@dataclass(frozen=True)
class Flow:
    """Segments in encounter order."""

    segments: tuple[Segment, ...]

    def pipe(self, operation: Operation) -> Flow:
        """Return the flow with `operation` on each partition."""
        return Flow(tuple(segment.pipe(operation) for segment in self.segments))

    def has_one_partition(self) -> bool:
        """Say whether all items stand in one partition, so that operations need not look beyond it."""
        if len(self.segments) != 1:
            return False
        (segment,) = self.segments
        if isinstance(segment, SplitSegment):
            return len(list(islice(segment.pieces, 2))) == 1
        return segment.partitions == 1

    def in_one_task(self) -> Flow:
        """Return the flow with all its pieces read by one task, one after another."""
        assert all(isinstance(segment, SplitSegment) for segment in self.segments), "one task reads from sources"
        if self.has_one_partition():
            return self
        parts = tuple(
            piece for segment in self.segments if isinstance(segment, SplitSegment) for piece in segment.pieces
        )
        return Flow((SplitSegment((Piece(None, parts, (), None),)),))

    def count_partitions(self) -> int:
        """Return the number of partitions; every source is divided for that."""
        return sum(_partitions(segment) for segment in self.segments)


def _partitions(segment: Segment) -> int:
    return sum(1 for _ in segment.pieces) if isinstance(segment, SplitSegment) else segment.partitions


def rows_of(flow: Flow, sink: Sink, cluster: Cluster, first: int = 0, before: int = 0) -> DataFrame:
    """Return the rows that `sink` makes of the items of each partition, in encounter order.

    Args:
        flow: the items.
        sink: writes them.
        cluster: where they are.
        first: the number of the first partition.
        before: how many partitions of these ran in earlier jobs.
    """
    frames = []
    for segment in flow.segments:
        # A task of a frame asks Spark for its number, which counts all the frames of a union.
        frames.append(segment_rows(segment, sink, before if isinstance(segment, Frame) else first, cluster))
        first += _partitions(segment)
    return functools.reduce(lambda left, right: left.union(right), frames or [piece_rows((), sink, 0, cluster)])


def segment_rows(segment: Segment, sink: Sink, first_partition: int, cluster: Cluster) -> DataFrame:
    """Return the rows that `sink` makes of one segment, whose partitions are numbered from `first_partition`."""
    match segment:
        case SplitSegment(pieces):
            return piece_rows(list(pieces), sink, first_partition, cluster)
        case RowsHere():
            return cluster.stage(cluster.numbers(segment.partitions), _rows_input(segment, first_partition), sink)
        case Frame(frame):
            source = FrameInput(segment.reader, segment.operations, first_partition, segment.sent)
            return cluster.stage(frame, source, sink)


def last_rows(segment: SplitSegment | RowsHere, sink: Sink, first_partition: int, cluster: Cluster) -> LastRows:
    """Return the same for a job whose rows come here, and which no stage follows."""
    if isinstance(segment, RowsHere):
        return cluster.last_stage(_rows_input(segment, first_partition), sink)
    pieces = tuple(segment.pieces)
    if sum(piece.size() for piece in pieces) > LARGEST_PASSENGER:
        return piece_rows(pieces, sink, first_partition, cluster)
    return cluster.last_stage(SplitInput(pieces, first_partition), sink)


def _rows_input(segment: RowsHere, first_partition: int) -> RowsInput:
    return RowsInput(segment.rows, segment.reader, segment.operations, first_partition, segment.sent)


def piece_rows(pieces: Sequence[Piece], sink: Sink, first_partition: int, cluster: Cluster) -> DataFrame:
    """Return the rows that `sink` makes of some pieces, one task for each."""
    if sum(piece.size() for piece in pieces) > LARGEST_PASSENGER:
        return cluster.stage(cluster.shipped(pieces), ShippedInput(first_partition), sink)
    return cluster.stage(cluster.numbers(len(pieces)), SplitInput(tuple(pieces), first_partition), sink)
