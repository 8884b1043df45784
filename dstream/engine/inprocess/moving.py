"""`MovingGraphRun`: a run of this process whose later tasks may run elsewhere.

It moves between two tasks: no piece of a source is read twice, no function of the user's is called twice for an item,
and remote tasks read the rows that tasks in this process have written. Decisions remain in this process.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

from dstream.engine.compiler import ClusterFacts
from dstream.engine.inprocess.graphs import InProcessGraphRun
from dstream.engine.inprocess.tasks import InProcessTask, SharedByTasks
from dstream.engine.physical.graph import Graph
from dstream.engine.physical.vertices import Input, Items, Rows, Splits, Vertex
from dstream.engine.runs.item_use import ItemUse
from dstream.engine.runs.moves import BegunRun, Border, Remote
from dstream.engine.runs.rows import ShuffleFiles
from dstream.engine.tasks.rows import Row
from dstream.engine.tasks.stage import rows_of_task
from dstream.keys.hashing import keys_hashed_by_own
from dstream.operators.rows.caches import Caches

__all__ = ["MovingGraphRun"]

T = TypeVar("T")


class MovingGraphRun(InProcessGraphRun):
    """One run of a graph that begins in this process.

    Args:
        border: decides between two tasks where the remaining ones run.
        run: the run of the plan.
        use: the use of the caller's items.
    """

    def __init__(
        self,
        graph: Graph,
        facts: ClusterFacts,
        caches: Caches,
        shared: SharedByTasks,
        files: ShuffleFiles,
        border: Border,
        run: BegunRun,
        use: ItemUse,
    ) -> None:
        super().__init__(graph, facts, caches, shared, files, use)
        self._border = border
        self._run = run
        self._remote: Remote | None = None
        self._keys_before = keys_hashed_by_own()

    def rows(self, vertex: Vertex) -> Iterator[Row]:
        rest = yield from self._rows_here(vertex)
        if rest is not None:
            yield from self._there().rows(self, rest)

    def rows_to_hand_on(self, vertex: Vertex) -> Iterator[Row]:
        rest: list[Vertex] = []
        yield from self.stored(_remembering(self._rows_here(vertex), rest))
        for each in rest:
            yield from self._there().rows_to_hand_on(self, each)

    def items(self, inputs: Items) -> Iterator[Any]:
        for task, items, left in self._tasks_here(self.decided(inputs), 0):
            if task is None:
                yield from self._there().items(self, left)
            else:
                yield from self._measured(inputs, self.items_of_task(task, items))

    def _there(self) -> Remote:
        assert self._remote is not None, "a rest is left only for tasks elsewhere"
        return self._remote

    def _rows_here(self, vertex: Vertex) -> Generator[Row, None, Vertex | None]:
        """Yield the rows of the tasks that run in this process; return the vertex of the others, if there are any."""
        self.ran.append(vertex)
        output = self.output_of(vertex)
        number = vertex.first
        for task, items, left in self._tasks_here(vertex.inputs, vertex.first):
            if task is None:
                return replace(vertex, inputs=left, first=number)
            yield from self._measured(vertex, _ending(task, rows_of_task(output, items, task)))
            number += 1
        return None

    def _tasks_here(self, inputs: Items, first: int) -> Iterator[tuple[InProcessTask | None, Iterator[Any], Items]]:
        """Yield the tasks that run in this process with their items; at last None with the inputs of the others."""
        # Contents of a `cache()` of another engine, if found meanwhile, are read in this process.
        can_be_left = all(isinstance(each, Splits | Rows) for each in inputs)
        for index, each in enumerate(inputs):
            # The partition is determined first: without one, there is no reason to move.
            for piece, opened in enumerate(self._partitions_of(each)):
                if can_be_left and self._is_left(each, piece):
                    yield None, iter(()), (each if piece == 0 else _after(each, piece), *inputs[index + 1 :])
                    return
                task = InProcessTask(first, self._shared)
                yield task, opened(task), ()
                first += 1

    def _is_left(self, each: Input, piece: int) -> bool:
        """Return whether the partitions of an input are read elsewhere from the number `piece` on."""
        if self._remote is None and isinstance(each, Splits) and self._may_move(each, piece):
            self._remote = self._border.remote(self._run)
        if self._remote is None:
            return False
        return isinstance(each, Splits) or (isinstance(each, Rows) and piece == 0)

    def _may_move(self, each: Splits, piece: int) -> bool:
        # Rows were routed by hashes that are specific to this process, such as those of strings in a class.
        if keys_hashed_by_own() != self._keys_before:
            return False
        return self._border.is_crossed(self.splits, each, piece)

    def _measured(self, of: Vertex | Items, found: Generator[T, None, None]) -> Iterator[T]:
        """Yield the output of a task, and report its time to the border, without the time of its reader."""
        before, seconds = self._shared.items, 0.0
        with closing(found):  # So that a failure at its end is raised, also if the reader has stopped.
            while True:
                began = perf_counter()
                try:
                    each = next(found)
                except StopIteration:
                    break
                finally:
                    seconds += perf_counter() - began
                yield each
        self._border.took(of, self._shared.items - before, seconds)


def _ending(task: InProcessTask, rows: Iterator[Row]) -> Generator[Row, None, None]:
    """Yield the rows of a task, and end it."""
    with task.ending():
        yield from rows


def _after(each: Input, piece: int) -> Splits:
    """Return the pieces of an input from one on."""
    assert isinstance(each, Splits), "other inputs are read where their first partition is"
    return each.between(piece, None)


def _remembering(rows: Generator[Row, None, Vertex | None], rest: list[Vertex]) -> Iterator[Row]:
    """Yield rows, and add the vertex that they leave, if there is one, to `rest`."""
    left = yield from rows
    if left is not None:
        rest.append(left)
