"""`Graph`: a physical plan as it runs, with the protocol of its decisions between jobs, and its endings.

A decision is a value. It receives the number of partitions of its inputs, and returns a `Move`: its next request, or
the inputs that replace it for its readers. A report then makes another decision of it, with its new state. It runs no
user function and unpickles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from dstream.base.records import record
from dstream.engine.physical.vertices import Items, OutputPort, Pending, Vertex
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.operations.streams import Cache
from dstream.plan.steps import Step
from dstream.spi import Collector

__all__ = [
    "Ask",
    "AskForKept",
    "Assembled",
    "Combined",
    "Decision",
    "Done",
    "Each",
    "Ending",
    "Finish",
    "Framed",
    "Graph",
    "Last",
    "Listed",
    "Move",
    "Nothing",
    "Outcome",
    "PartitionCount",
    "PendingDecision",
    "Pulled",
    "Report",
    "SendToAll",
    "Separated",
    "Totalled",
    "Wanted",
]


@record(slots=False, eq=False)
class Listed:
    """The caller gets a list of the items, in encounter order."""


@record(slots=False, eq=False)
class Nothing:
    """The caller receives None; the tasks have the effect."""


@record(slots=False, eq=False)
class Combined:
    """The caller combines the containers of the tasks in encounter order, and finishes the result."""

    collector: Collector[Any, Any, Any]


@record(slots=False, eq=False)
class Assembled:
    """The caller puts finished groups together.

    Attributes:
        is_ordered: in the order in which the keys were first seen.
    """

    collector: Collector[Any, Any, Any]
    is_ordered: bool


@record(slots=False, eq=False)
class Framed:
    """The caller receives a table.

    Attributes:
        is_frame: a DataFrame of the engine, whose rows are not moved; otherwise an Arrow table.
    """

    is_frame: bool


@record(slots=False, eq=False)
class Separated:
    """The caller receives a list of the results of each of several sinks, in encounter order."""

    sinks: int


Finish = Listed | Nothing | Combined | Assembled | Framed | Separated


@record(slots=False, eq=False)
class Last:
    """The plan ends in one job over all partitions.

    Attributes:
        vertex: the vertex of the job.
        finish: how the caller's process makes the result from the rows that it receives.
    """

    vertex: Vertex
    finish: Finish


@record(slots=False, eq=False)
class Pulled:
    """The caller pulls one item after another, and no more partitions run than it takes.

    Attributes:
        limit: the number of first items of `inputs` that are wanted.
        skipped: how many of these are left out again.
        ends: whether the items end.
    """

    inputs: Items
    limit: Limit | None
    skipped: int
    ends: bool


@record(slots=False, eq=False)
class Each:
    """The caller pulls the items of each partition separately."""

    inputs: Items


Ending = Last | Pulled | Each | Pending
"""A `Pending` is the placeholder of the `Last` that a decision will return."""


PartitionCount = int | None
"""The number of partitions of items; None: more than one, not counted."""


@record(slots=False)
class Report:
    """The findings of a run about a vertex.

    Attributes:
        vertex: of which one.
        partitions: how many tasks there were.
        rows: what was asked for: (source, sequence, channel, size), (channel, bytes), or whole rows.
    """

    vertex: Vertex
    partitions: int
    rows: Sequence[Any] = ()


@record(slots=False)
class Outcome:
    """A possible report, by which the branches of a graph are seen without running it.

    Attributes:
        rows: such as a report could have.
        condition: when that is the report, in words.
    """

    rows: Sequence[Any] = ()
    condition: str = ""


@record(slots=False)
class Ask:
    """A decision's request for a report about the rows of a vertex.

    Attributes:
        then: the decision that receives the report.
        port: the rows to report about.
        step: the operation for which the job runs.
        purpose: the purpose of the job for that operation.
        unless_empty: no job runs if the vertex has no tasks.
        outcomes: one for each possible continuation of the graph after the report.
    """

    then: PendingDecision
    vertex: Vertex
    what: Literal["places", "bytes", "rows"]
    port: OutputPort
    step: Step
    purpose: str
    unless_empty: bool = False
    # One at least: `explain()` walks the graph by them, and would end at a question without any.
    outcomes: tuple[Outcome, ...] = (Outcome(),)


@record(slots=False)
class AskForKept:
    """A decision's request for the content of a `cache()`; if the engine has none, the vertex runs for it now."""

    then: PendingDecision
    node: Cache
    vertex: Vertex


@record(slots=False)
class Totalled:
    """A decision's request for a total of reported rows, in the caller's process, since a user function is involved.

    Attributes:
        fn: called in the caller's process; failures name `step`.
    """

    then: PendingDecision
    fn: Callable[[Sequence[Any]], Any]
    rows: Sequence[Any]
    step: Step


@record(slots=False)
class SendToAll:
    """A decision's request to make payloads available in every worker process.

    Attributes:
        then: receives a `dstream.engine.tasks.process.Payloads`.
    """

    then: PendingDecision
    payloads: Sequence[Any]


@record(slots=False)
class Done:
    """A decision is made: others read these inputs; or the plan ends in this job."""

    inputs: Items = ()
    last: Last | None = None


Wanted = Ask | AskForKept | Totalled | SendToAll
Move = Wanted | Done


class PendingDecision(Protocol):
    """A decision that has asked for something."""

    def next(self, report: Any) -> Move:
        """Continue with the requested report.

        That is a `Report`, the `CachedInput` of an `AskForKept`, what a function made, or what was sent.
        """
        ...


class Decision(Protocol):
    """A point at which the graph continues depending on a report.

    Attributes:
        inputs: the one or two streams that it decides about.
        counts: whether it has to know the number of partitions, not only whether there is one.
    """

    @property
    def inputs(self) -> tuple[Items, ...]: ...

    @property
    def counts(self) -> bool: ...

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        """Decide, with the inputs as those before have decided them."""
        ...


@record(slots=False, eq=False)
class Graph:
    """A plan as it runs, up to its end.

    Attributes:
        decisions: in the order in which they are made; a `Pending` input has the index of one.
        ending: the use of the items.
    """

    decisions: tuple[Decision, ...]
    ending: Ending
