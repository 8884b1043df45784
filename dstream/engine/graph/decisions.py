"""Decisions: where the graph depends on what a run finds out.

A decision is a value. It is told in how many partitions its inputs stand, and answers with a `Move`: what it wants to
know next, or the inputs that others read in its place. What it is told afterwards makes another decision of it, with
what it remembers. It runs no function of the user's and unpickles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from dstream.engine.graph.output_ports import OutputPort
from dstream.engine.graph.results import Ending, Last
from dstream.engine.graph.vertices import Items, Vertex
from dstream.plan.core import Cache
from dstream.plan.steps import Step

__all__ = [
    "Ask",
    "AskForKept",
    "Decision",
    "Done",
    "Graph",
    "Move",
    "Outcome",
    "Report",
    "SendToAll",
    "Several",
    "Totalled",
    "Waiting",
    "Wanted",
]

Several = int | None
"""In how many partitions items stand; None: in more than one, and nobody has counted them."""


@dataclass(frozen=True)
class Report:
    """What a run found out of a vertex.

    Attributes:
        vertex: of which one.
        partitions: how many tasks there were.
        rows: what was asked for: (source, sequence, channel, size), (channel, bytes), or whole rows.
    """

    vertex: Vertex
    partitions: int
    rows: Sequence[Any] = ()


@dataclass(frozen=True)
class Outcome:
    """Something that may be reported, for those who want to see where the graph can go without running it.

    Attributes:
        rows: such as a report could have.
        condition: when that is what comes, in words.
    """

    rows: Sequence[Any] = ()
    condition: str = ""


@dataclass(frozen=True)
class Ask:
    """A decision wants to know something of the rows of a vertex.

    Attributes:
        then: the decision to tell it to.
        port: of which rows.
        step: for which operation the job runs.
        purpose: what it does for that one.
        unless_empty: no job runs if the vertex has no tasks.
        outcomes: one for each way in which the graph may go on from the report.
    """

    then: Waiting
    vertex: Vertex
    what: Literal["places", "bytes", "rows"]
    port: OutputPort
    step: Step
    purpose: str
    unless_empty: bool = False
    outcomes: tuple[Outcome, ...] = (Outcome(),)


@dataclass(frozen=True)
class AskForKept:
    """A decision wants what the engine keeps of a `cache()`; if it keeps nothing, the vertex runs for that now."""

    then: Waiting
    node: Cache
    vertex: Vertex


@dataclass(frozen=True)
class Totalled:
    """A decision wants what a function makes of rows that were reported, in the caller's process: a user's is in it.

    Attributes:
        fn: is called in the caller's process; failures name `step`.
    """

    then: Waiting
    fn: Callable[[Sequence[Any]], Any]
    rows: Sequence[Any]
    step: Step


@dataclass(frozen=True)
class SendToAll:
    """A decision wants payloads to be at hand in every process of the workers.

    Attributes:
        then: is told a `dstream.engine.worker.sent_payloads.Sent`.
    """

    then: Waiting
    payloads: Sequence[Any]


@dataclass(frozen=True)
class Done:
    """A decision is made: others read these inputs; or the plan ends in this job."""

    inputs: Items = ()
    last: Last | None = None


Wanted = Ask | AskForKept | Totalled | SendToAll
Move = Wanted | Done


class Waiting(Protocol):
    """A decision that has asked for something."""

    def next(self, report: Any) -> Move:
        """Go on with what was asked for.

        That is a `Report`, the `Kept` input of an `AskForKept`, what a function made, or what was sent.
        """
        ...


class Decision(Protocol):
    """A place where the graph goes on from what is reported.

    Attributes:
        inputs: what it decides about: one or two streams.
        counts: whether it has to know how many partitions there are, not only whether there is one.
    """

    @property
    def inputs(self) -> tuple[Items, ...]: ...

    @property
    def counts(self) -> bool: ...

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[Several, ...]) -> Move:
        """Decide, with the inputs as those before have decided them."""
        ...


@dataclass(frozen=True, eq=False)
class Graph:
    """A plan as it runs, up to its end.

    Attributes:
        decisions: in the order in which they are made; a `Pending` input has the place of one.
        ending: what becomes of the items.
    """

    decisions: tuple[Decision, ...]
    ending: Ending
