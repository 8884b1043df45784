"""Loops: how the items of a stream come to a caller who asks for one after another.

Partitions run in waves. What a wave gives is kept on the executors, and the caller holds a bounded part of it at a
time. How many partitions a wave has depends on how large those before them were.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

from dstream.engine.compiler.compile_ends import FEW
from dstream.engine.graph.results import Pulled
from dstream.engine.kernels.core_operations import operation, some
from dstream.engine.kernels.item_batches import loads
from dstream.engine.spark.segments import Flow, SplitSegment, last_rows, piece_rows, rows_of, segment_rows
from dstream.engine.spark.spark_run import SparkRun
from dstream.engine.worker.sinks import WriteItems, WriteParts

__all__ = ["endless", "part", "pulled", "waves"]

_FIRST_CHUNK = 1024
_FIRST_WAVE = 4
_GROWTH = 4
_WAVE_BYTES = 32 * 2**20
"""How much the partitions of a wave should give, unless it is no larger than the first one."""
_HELD_BYTES = 32 * 2**20
"""How much of a wave comes to the caller at once; the rest stays on the executors until the caller comes to it."""


def pulled(run: SparkRun, ending: Pulled) -> Iterator[Any]:
    """Give the items of a run whose caller takes one after another."""
    if not ending.ends:
        return endless(run, ending)
    items = waves(run, ending)
    return items if ending.limit is None else part(items, ending.skipped, ending.limit.count)


def part(items: Generator[Any, None, None], skipped: int, count: int) -> Iterator[Any]:
    """Give some of the items, and end the run that gives them before the end is told."""
    with closing(items):
        yield from some(items, skipped, count)


def waves(run: SparkRun, ending: Pulled) -> Generator[Any, None, None]:
    """Run some partitions, give their items, and go on with more only when asked; a limit looks at one first."""
    last = ending.limit
    with run:
        flow = run.flow(ending.inputs)
        if last is not None:
            flow = flow.pipe(operation(last))
        # Few items come at once, so that what `peek` saw of them comes before the first is given.
        is_short = last is not None and last.count <= FEW
        for segment in flow.segments:
            if not isinstance(segment, SplitSegment):
                rows = segment_rows(segment, WriteItems(), 0, run.cluster)
                yield from run.items(rows) if is_short else run.lazily(rows)
            elif is_short:
                yield from _all_of_few(run, segment)
            else:
                yield from _in_parts(run, segment, 1 if last is not None else min(run.cluster.cores, _FIRST_WAVE))


def _all_of_few(run: SparkRun, segment: SplitSegment) -> Iterator[Any]:
    rows_of_wave = segment_rows if run.recovered.has_letters else last_rows  # Dead letters come by a job of their own.
    pieces, size = iter(segment.pieces), 1
    while wave := list(islice(pieces, size)):
        yield from run.items(rows_of_wave(SplitSegment(wave), WriteItems(), 0, run.cluster))
        size *= _GROWTH


def _in_parts(run: SparkRun, segment: SplitSegment, least: int) -> Iterator[Any]:
    pieces, size = iter(segment.pieces), least
    while wave := list(islice(pieces, size)):
        frame = piece_rows(wave, WriteParts(_HELD_BYTES // len(wave)), 0, run.cluster)
        with run.in_parts(frame) as (written, rows):
            fitting = _WAVE_BYTES * len(wave) // max(written, 1)
            size = max(least, min(size * _GROWTH, fitting))
            for row in rows:
                yield from loads(row.payload)


def endless(run: SparkRun, ending: Pulled) -> Iterator[Any]:
    """Give an infinite stream chunk by chunk; each chunk of an endless part is computed again from its start."""
    with run:
        for segment in run.flow(ending.inputs).segments:
            if not isinstance(segment, SplitSegment):
                yield from run.lazily(segment_rows(segment, WriteItems(), 0, run.cluster))
            else:
                yield from _chunks(Flow((segment,)).in_one_task(), run)


def _chunks(flow: Flow, run: SparkRun) -> Iterator[Any]:
    start, size, growth = 0, _FIRST_CHUNK, _GROWTH
    while True:
        flow_part = flow.pipe(functools.partial(_range, start, start + size))
        try:
            chunk = run.items_again(rows_of(flow_part, WriteItems(), run.cluster))
        except Exception:
            if size == 1:
                raise
            # The failing item may lie behind what the caller wants: come to it in smaller steps.
            size, growth = max(size // _GROWTH, 1), 1
            continue
        yield from chunk
        if len(chunk) < size:
            return
        start, size = start + size, size * growth


def _range(start: int, stop: int, items: Iterator[Any], task: Any) -> Iterator[Any]:
    return islice(items, start, stop)
