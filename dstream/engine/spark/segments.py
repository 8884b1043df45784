"""Flows: partitions of items that a job has yet to compute, and how they become DataFrames.

A `Flow` is a sequence of segments in encounter order. A segment reads pieces of sources (`SplitSegment`)
or the rows of an earlier stage (`Frame`); operations that need one partition only are piped onto it
and run in the stage that reads it. Nothing runs until the rows of a flow are asked for.
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
from dstream.engine.worker.stage import FrameInput, Input, Piece, Reader, ShippedInput, Sink, SplitInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dstream.engine.spark.cluster import Cluster, LastRows

__all__ = ["Flow", "Frame", "Pieces", "Segment", "SplitSegment", "last_rows", "piece_rows", "rows_of", "segment_rows"]


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


Segment = SplitSegment | Frame


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
        if isinstance(segment, Frame):
            return segment.partitions == 1
        return len(list(islice(segment.pieces, 2))) == 1

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
    return segment.partitions if isinstance(segment, Frame) else sum(1 for _ in segment.pieces)


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
        frames.append(segment_rows(segment, sink, first if isinstance(segment, SplitSegment) else before, cluster))
        first += _partitions(segment)
    return functools.reduce(lambda left, right: left.union(right), frames or [piece_rows((), sink, 0, cluster)])


def segment_rows(segment: Segment, sink: Sink, first_partition: int, cluster: Cluster) -> DataFrame:
    """Return the rows that `sink` makes of one segment, whose partitions are numbered from `first_partition`."""
    if isinstance(segment, SplitSegment):
        return piece_rows(list(segment.pieces), sink, first_partition, cluster)
    source: Input = FrameInput(segment.reader, segment.operations, first_partition, segment.sent)
    return cluster.stage(segment.frame, source, sink)


def last_rows(pieces: Sequence[Piece], sink: Sink, first_partition: int, cluster: Cluster) -> LastRows:
    """Return the same for a job that nothing comes behind."""
    if sum(piece.size() for piece in pieces) > LARGEST_PASSENGER:
        return piece_rows(pieces, sink, first_partition, cluster)
    return cluster.last_stage(SplitInput(tuple(pieces), first_partition), sink)


def piece_rows(pieces: Sequence[Piece], sink: Sink, first_partition: int, cluster: Cluster) -> DataFrame:
    """Return the rows that `sink` makes of some pieces, one task for each."""
    if sum(piece.size() for piece in pieces) > LARGEST_PASSENGER:
        return cluster.stage(cluster.shipped(pieces), ShippedInput(first_partition), sink)
    return cluster.stage(cluster.numbers(len(pieces)), SplitInput(tuple(pieces), first_partition), sink)
