"""Running a graph in this process for tests of tasks: its rows, and the vertices that ran."""

from __future__ import annotations

from itertools import chain
from typing import Any

from dstream.engine.calls import Cancellation, Progress
from dstream.engine.compiler import ClusterFacts
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.inprocess.run import InProcessRun
from dstream.engine.inprocess.tasks import SharedByTasks
from dstream.engine.physical.vertices import Vertex
from dstream.engine.runs.rows import ShuffleFiles
from dstream.engine.tasks.rows import Row
from dstream.operators.rows.batches import loads_items
from dstream.operators.rows.caches import Caches
from dstream.plan.operations.ends import End
from dstream.plan.walk import topological

__all__ = ["GraphHere"]

_BOUND = 2**40


class GraphHere:
    """A graph whose tasks run in this process.

    Attributes:
        ran: the vertices whose tasks have run, as they ran.
    """

    def __init__(self, end: End, facts: ClusterFacts) -> None:
        recovered = RecoveryReport(topological(end), Progress(asked=False))
        shared = SharedByTasks(_BOUND, {}, recovered, Cancellation(), is_counting=False, is_shared=True)
        self._run = InProcessRun(end, facts, Caches(), shared, ShuffleFiles(), recovered)

    @property
    def ran(self) -> list[Vertex]:
        return self._run.running.ran

    def run(self) -> list[Row]:
        """Run all jobs of the graph; return the rows of the last one."""
        with self._run:
            rows, _ = self._run.last()
            return list(rows)

    def items(self) -> list[Any]:
        """Run all jobs; return the items of the last one, which are pickled unless they stay in this process."""
        payloads = (row.payload for row in self.run())
        return list(chain.from_iterable(each if isinstance(each, list) else loads_items(each) for each in payloads))
