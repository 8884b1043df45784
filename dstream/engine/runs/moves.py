"""The contract between a run that this process has begun and the engine on which the rest of its tasks run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from dstream.base.records import record
from dstream.engine.calls import Call, Cancellation
from dstream.engine.compiler import ClusterFacts
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.physical.graph import Graph
from dstream.engine.physical.vertices import Items, Rows, Splits, Vertex
from dstream.engine.runs.rows import ShuffleFiles
from dstream.engine.runs.splits import ListedSplits
from dstream.engine.tasks.rows import Row
from dstream.operators.rows.guards import Action
from dstream.plan.operations.ends import End, Several

__all__ = ["BegunRun", "Border", "InputsOfTasks", "Remote", "RunHere"]


class InputsOfTasks(Protocol):
    """The inputs of tasks, as the process has them that began the run.

    Attributes:
        splits: the pieces of its sources.
        files: store the large payloads of rows between tasks.
    """

    splits: ListedSplits
    files: ShuffleFiles

    def rows_by_partition(self, each: Rows) -> Iterator[tuple[Row, ...]]:
        """Yield the rows of each partition of an input; the vertices that write them run now, unless they have run."""
        ...


class Remote(Protocol):
    """The remote execution of the rest of a run's tasks; decisions and rows between tasks remain in this process."""

    def rows(self, run: InputsOfTasks, vertex: Vertex) -> Iterator[Row]:
        """Yield the rows of the last vertex, without side rows, which are delivered."""
        ...

    def rows_to_hand_on(self, run: InputsOfTasks, vertex: Vertex) -> Iterator[Row]:
        """Yield the rows for other tasks; large payloads remain in files."""
        ...

    def items(self, run: InputsOfTasks, inputs: Items) -> Iterator[Any]:
        """Yield the items of inputs, as the caller requests them."""
        ...

    def end(self, error: BaseException | None) -> None:
        """End what tasks there share, such as services, after the last of them."""
        ...


class BegunRun(Protocol):
    """A run of a plan that this process has begun.

    Attributes:
        end: the end of the plan, or several.
        graph: the compiled graph.
        actions: the actions in this process for the items that each `peek` step saw, by channel.
        recovered: takes the notes of guards; None if the plan has none.
    """

    @property
    def end(self) -> End | Several: ...

    @property
    def graph(self) -> Graph: ...

    @property
    def actions(self) -> Mapping[int, Action]: ...

    @property
    def recovered(self) -> RecoveryReport | None: ...


@record(slots=False, eq=False)
class CompiledPlan:
    """A plan and the graph that it was compiled to.

    Attributes:
        end: the end of the plan.
        graph: its graph, for some facts.
        actions: the actions in this process for the items that each `peek` step saw, by channel.
    """

    end: End | Several
    graph: Graph
    actions: dict[int, Action]


@record(slots=False)
class RunHere:
    """The configuration of a plan's run in this process.

    Attributes:
        facts: the facts that its graph depends on.
        border: decides where the rest of its tasks runs, from the call and the cancellation of the run; None: they all
            run in this process.
        compiled: the plan as it was compiled for these facts before; None: the run compiles it. A run whose plan is
            another object, such as one that reads a cache that was filled meanwhile, compiles that one.
    """

    facts: ClusterFacts
    border: Callable[[Call, Cancellation], Border] | None = None
    compiled: CompiledPlan | None = None


class Border(Protocol):
    """Decides between two tasks of a run where the rest of them runs."""

    def took(self, of: Vertex | Items, items: int, seconds: float) -> None:
        """Take note of a task that ran in this process.

        Args:
            of: its vertex, or the inputs of one whose items the caller pulls.
            items: how many it has read of sources.
            seconds: how long it took.
        """
        ...

    def is_crossed(self, splits: ListedSplits, each: Splits, piece: int) -> bool:
        """Return whether the pieces of an input are better read elsewhere, from the number `piece` on."""
        ...

    def remote(self, run: BegunRun) -> Remote | None:
        """Return where the rest of a run's tasks run; None if they remain in this process, which is decided once."""
        ...

    def end(self, error: BaseException | None) -> None:
        """End a run, after its last task."""
        ...
