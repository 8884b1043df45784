"""Runs that move at random, to tasks that get copies of all that they read, without Java."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dstream.engine.calls import Call, Cancellation, Submitted
from dstream.engine.inprocess import InProcessEngine
from dstream.engine.inprocess.graphs import InProcessGraphRun
from dstream.engine.inprocess.tasks import SharedByTasks
from dstream.engine.physical.vertices import Items, Splits, Vertex
from dstream.engine.runs.moves import BegunRun, InputsOfTasks, Remote, RunHere
from dstream.engine.runs.splits import ListedSplits
from dstream.engine.tasks.rows import ITEMS, Row
from dstream.operators.rows.caches import Caches
from dstream.plan.operations.ends import End, Several

__all__ = ["MovingEngine", "RandomBorder"]

_BOUND = 512 * 2**20
_CHANCE = 0.3

Start = Callable[[BegunRun, Call, Cancellation], Remote]


class MovingEngine(InProcessEngine):
    """Runs plans in two to four partitions, each of which may be the first that moves.

    Args:
        remote: gives where the rest of a run's tasks run; without it, copies of all that they read run here.

    Attributes:
        borders: those of the runs so far.
    """

    name = "moving"

    def __init__(self, remote: Start | None = None) -> None:
        super().__init__(_BOUND)
        self._remote = remote or (lambda run, call, cancellation: _RemoteHere(run))
        self.borders: list[RandomBorder] = []

    def submit(self, end: End | Several, how: RunHere | None = None) -> Submitted:
        def border(call: Call, cancellation: Cancellation) -> RandomBorder:
            start = partial(self._remote, call=call, cancellation=cancellation)
            self.borders.append(RandomBorder(len(self.borders), start))
            return self.borders[-1]

        here = self.in_one_task(end, cores=2 + len(self.borders) % 3)
        return super().submit(end, RunHere(here.facts, border))


class RandomBorder:
    """A border that a run crosses at a random task.

    Attributes:
        moves: how many runs have moved.
    """

    def __init__(self, seed: int, start: Callable[[BegunRun], Remote]) -> None:
        self.moves = 0
        self._random = random.Random(seed)
        self._start = start
        self._remotes: list[Remote] = []

    def took(self, of: Vertex | Items, items: int, seconds: float) -> None:
        assert items >= 0
        assert seconds >= 0

    def is_crossed(self, splits: ListedSplits, each: Splits, piece: int) -> bool:
        return self._random.random() < _CHANCE

    def remote(self, run: BegunRun) -> Remote:
        self.moves += 1
        self._remotes.append(self._start(run))
        return self._remotes[-1]

    def end(self, error: BaseException | None) -> None:
        for each in self._remotes:
            each.end(error)
        self._remotes.clear()


class _RemoteHere:
    def __init__(self, run: BegunRun) -> None:
        assert hasattr(run, "facts")
        self._run: Any = run
        self._shared = SharedByTasks(_BOUND, dict(run.actions), run.recovered, Cancellation(), is_counting=False)

    def rows(self, run: InputsOfTasks, vertex: Vertex) -> Iterator[Row]:
        return (row for row in self._tasks(run).rows(vertex) if row.channel <= ITEMS)

    def rows_to_hand_on(self, run: InputsOfTasks, vertex: Vertex) -> Iterator[Row]:
        return self._tasks(run).rows_to_hand_on(vertex)

    def items(self, run: InputsOfTasks, inputs: Items) -> Iterator[Any]:
        return self._tasks(run).items(inputs)

    def _tasks(self, run: InputsOfTasks) -> InProcessGraphRun:
        tasks = _Tasks(self._run.graph, self._run.facts, Caches(), self._shared, run.files)
        tasks.splits, tasks.inputs = run.splits, run
        return tasks

    def end(self, error: BaseException | None) -> None:
        self._shared.services.destroy()


class _Tasks(InProcessGraphRun):
    inputs: InputsOfTasks

    def decided(self, items: Items) -> Items:
        return items

    def rows_by_partition(self, each: Any) -> Iterator[tuple[Row, ...]]:
        return iter(list(self.inputs.rows_by_partition(each)))
