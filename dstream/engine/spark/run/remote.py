"""`RemoteTasks`: tasks on Spark for a run whose first tasks ran in this process.

Decisions and the rows between tasks remain in this process: large payloads are in files of this machine, which the
workers read and write.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from dstream.engine.compiler.ends import FEW
from dstream.engine.physical.graph import Pulled
from dstream.engine.physical.vertices import Input, Items, Rows, Splits, Vertex, operations_of
from dstream.engine.runs.moves import InputsOfTasks
from dstream.engine.runs.splits import Pieces, packed
from dstream.engine.spark.port.errors import translating
from dstream.engine.spark.run.execution import SparkRun, wave_items
from dstream.engine.spark.run.segments import DriverRows, SplitSegment, last_rows
from dstream.engine.spark.run.stage_runner import LastRows, StageRunner
from dstream.engine.tasks.rows import ITEMS, Row
from dstream.engine.tasks.runtime import SideRows
from dstream.engine.tasks.stage import Piece
from dstream.operators.rows.operations import operation

__all__ = ["RemoteTasks"]


_TRAVELLING = 8 * 1024
"""The bytes of the rows of one input that travel with the next job, to each of its tasks."""

_WAVE_BYTES = 16 * 2**20
"""The bytes of in-memory pieces that one job gets."""


class RemoteTasks:
    """Tasks on Spark for a run that this process has begun.

    Args:
        run: the run of the same end on Spark.
    """

    def __init__(self, run: SparkRun) -> None:
        runner = run.runner
        # Tasks of this process have written rows for the same targets.
        self._run = replace(run, runner=runner.with_options(replace(runner.options, hashes_without_seed=True)))

    def rows(self, run: InputsOfTasks, vertex: Vertex) -> Iterator[Row]:
        """Yield the rows of the last vertex, without side rows, which are delivered."""
        runner = self._run.runner.doing(vertex.step, "")
        for segment, first in self._segments(run, vertex.inputs, vertex.first):
            yield from self._run.rows(_job(segment, vertex, first, runner))

    def rows_to_hand_on(self, run: InputsOfTasks, vertex: Vertex) -> Iterator[Row]:
        """Yield the rows for other tasks; large payloads remain in files."""
        runner = self._run.runner.doing(vertex.step, "moving its results")
        storing = run.files.storing(tempfile.gettempdir(), _TRAVELLING)
        runner = runner.with_options(replace(runner.options, storing=storing))
        beside = SideRows()
        for segment, first in self._segments(run, vertex.inputs, vertex.first):
            for row in runner.rows_to_hand_on(_job(segment, vertex, first, runner)):
                if row.channel > ITEMS:
                    beside.add(row)
                else:
                    yield row
        self._run.deliver(beside)

    def items(self, run: InputsOfTasks, inputs: Items) -> Iterator[Any]:
        """Yield the items of inputs, as the caller requests them."""
        ending = self._run.graph.ending
        last = ending.limit if isinstance(ending, Pulled) else None
        for segment in chain.from_iterable(self._pulled(run, each) for each in inputs):
            # No task reads beyond the limit: its piece may be endless, or fail after it.
            wanted = segment if last is None else segment.pipe(operation(last))
            is_short = last is not None and last.count <= FEW
            yield from wave_items(self._run, wanted, is_short=is_short, has_limit=last is not None)

    def _pulled(self, run: InputsOfTasks, each: Input) -> Iterator[SplitSegment | DriverRows]:
        """Yield the same as `_of_input`, but request only the pieces of one wave from a source."""
        if isinstance(each, Splits):
            yield SplitSegment(Pieces(map(packed, run.splits.pieces(each))))
        else:
            yield from self._of_input(run, each)

    def end(self, error: BaseException | None) -> None:
        """End the services that workers share."""
        self._run.end_services(error)

    def _segments(
        self, run: InputsOfTasks, inputs: Items, first: int
    ) -> Iterator[tuple[SplitSegment | DriverRows, int]]:
        """Yield the inputs of the jobs in sequence, with the number of the first task of each."""
        for segment in chain.from_iterable(self._of_input(run, each) for each in inputs):
            yield segment, first
            first += len(segment.rows) if isinstance(segment, DriverRows) else len(list(segment.pieces))

    def _of_input(self, run: InputsOfTasks, each: Input) -> Iterator[SplitSegment | DriverRows]:
        match each:
            case Splits():
                yield from map(SplitSegment, _waves(map(packed, run.splits.pieces(each))))
            case Rows():
                partitions = tuple(run.rows_by_partition(each))
                most = _TRAVELLING // max(len(partitions), 1)
                rows = tuple(run.files.moved(partition, tempfile.gettempdir(), most) for partition in partitions)
                if rows:
                    yield DriverRows(rows, each.reader, operations_of(each.applied))
            case _:
                raise AssertionError("only splits, and rows of this run, are read by tasks elsewhere")


@translating
def _job(segment: SplitSegment | DriverRows, vertex: Vertex, first: int, runner: StageRunner) -> LastRows:
    return last_rows(segment, vertex.output, first, runner)


def _waves(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, ...]]:
    """Yield pieces for one job after another; all together, unless they contain many items."""
    wave: list[Piece] = []
    size = 0
    for piece in pieces:
        wave.append(piece)
        size += piece.size()
        if size >= _WAVE_BYTES:
            yield tuple(wave)
            wave, size = [], 0
    if wave:
        yield tuple(wave)
