"""Prefixes: `limit`, `skip`, `take_while`, `drop_while` over several partitions.

Where a prefix ends is known only when the partitions before are known. So partitions run in waves,
the first one alone, until the end is found; what they write stays where it was computed, and is
read again with a range of items to keep for each partition. No user function runs twice, and
partitions behind the end of a `limit` or `take_while` do not run at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Flow, Frame, Pieces, Segment, Splits, joined, piece_rows, segment_rows
from dstream.engine.spark.readers import KeepRange
from dstream.engine.spark.rows import ITEMS, STOPPED
from dstream.engine.spark.sinks import WriteItems, WritePrefix
from dstream.engine.spark.stage import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["after", "from_first_failing", "up_to", "up_to_first_failing"]

_GROWTH = 4

Ranges = dict[int, tuple[int, int | None]]


def up_to(count: int, flow: Flow, cluster: Cluster) -> Flow:
    """Return the first `count` items of `flow`, whose partitions give no more than that each."""
    waves = _Waves(flow, WriteItems(), cluster)
    ranges: Ranges = {}
    left = count
    while left > 0 and waves.run_next():
        for source, size, _ in waves.newest:
            if left > 0:
                ranges[source] = (0, min(size, left))
                left -= size
    return waves.kept(ranges)


def after(count: int, flow: Flow, cluster: Cluster) -> Flow:
    """Return what follows the first `count` items of `flow`."""
    waves = _Waves(flow, WriteItems(), cluster)
    ranges: Ranges = {}
    left = count
    while left > 0 and waves.run_next():
        for source, size, _ in waves.newest:
            if size > left:
                ranges[source] = (left, None)
            left = max(left - size, 0)
    return joined((waves.kept(ranges), waves.rest()))


def up_to_first_failing(predicate: Callable[[Any], object], flow: Flow, cluster: Cluster) -> Flow:
    """Return the items of `flow` before the first that fails `predicate`."""
    waves = _Waves(flow, WritePrefix(predicate, keep_rest=False), cluster)
    ranges: Ranges = {}
    failed = False
    while not failed and waves.run_next():
        for source, _, position in waves.newest:
            if not failed:
                ranges[source] = (0, None)
            failed = failed or position is not None
    return waves.kept(ranges)


def from_first_failing(predicate: Callable[[Any], object], flow: Flow, cluster: Cluster) -> Flow:
    """Return the items of `flow` from the first that fails `predicate`."""
    waves = _Waves(flow, WritePrefix(predicate, keep_rest=True), cluster)
    ranges: Ranges = {}
    failed = False
    while not failed and waves.run_next():
        for source, _, position in waves.newest:
            if failed:
                ranges[source] = (0, None)
            elif position is not None:
                ranges[source] = (position, None)
                failed = True
    return joined((waves.kept(ranges), waves.rest()))


class _Waves:
    """Runs the partitions of a flow, more in each wave.

    Attributes:
        newest: (partition, number of items written, position of the mark or None) of the last wave.
    """

    def __init__(self, flow: Flow, sink: Sink, cluster: Cluster) -> None:
        self.newest: list[tuple[int, int, int | None]] = []
        self._segments = list(flow.segments)
        self._sink = sink
        self._cluster = cluster
        self._size = 1
        self._partitions = 0
        self._frames: list[Frame] = []

    def run_next(self) -> bool:
        """Run the next wave; say whether there was one."""
        while self._segments:
            wave = self._next_wave(self._segments[0])
            if wave is None:
                self._segments.pop(0)
                continue
            rows, partitions = wave
            self._run(rows, partitions)
            return True
        return False

    def kept(self, ranges: Ranges) -> Flow:
        """Return the items in the given ranges of the partitions that ran."""
        reader = KeepRange(ranges)
        return Flow(tuple(replace(frame, reader=reader) for frame in self._frames))

    def rest(self) -> Flow:
        """Return the partitions that did not run."""
        return Flow(tuple(self._segments))

    def _next_wave(self, segment: Segment) -> tuple[DataFrame, int] | None:
        if isinstance(segment, Frame):
            self._segments.pop(0)
            return segment_rows(segment, self._sink, self._partitions, self._cluster), segment.partitions
        pieces = iter(segment.pieces)
        wave = list(islice(pieces, self._size))
        self._segments[0] = Splits(Pieces(pieces))
        self._size *= _GROWTH
        return (piece_rows(wave, self._sink, self._partitions, self._cluster), len(wave)) if wave else None

    def _run(self, rows: DataFrame, partitions: int) -> None:
        pinned = self._cluster.pinned(rows)
        sizes = dict.fromkeys(range(self._partitions, self._partitions + partitions), 0)
        marks: dict[int, int] = {}
        for source, sequence, channel, size in self._cluster.places(pinned.where(f"channel <= {ITEMS}")):
            if channel == STOPPED:
                marks[source] = sequence
            else:
                sizes[source] += size
        self.newest = [(source, size, marks.get(source)) for source, size in sizes.items()]
        self._frames.append(Frame(pinned, partitions))
        self._partitions += partitions
