"""Nodes of pipelines: timestamps, state across epochs, late items, unbounded reads, processors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dstream.errors import IllegalStateError
from dstream.plan.graphs import VertexGraph
from dstream.plan.nodes import Filter, FlatMap, Node
from dstream.plan.operations import stages
from dstream.plan.operations.streams import Core, node
from dstream.plan.steps import Step
from dstream.plan.translation import core_of
from dstream.spi import Split, StreamSource
from dstream.spi.epochs import EdgeCounts, StateOperator, WatermarkPolicy
from dstream.spi.runtime import OpenedLater
from dstream.spi.sink import Collections
from dstream.values.functions import shown_function
from dstream.values.time import Late, instant

__all__ = [
    "AddTimestamps",
    "InTime",
    "InstantOf",
    "ItemsOfOutlet",
    "LateOnes",
    "OverEpochs",
    "ProcessorGraph",
    "StreamRead",
    "in_time",
    "is_in_time",
    "late_ones",
    "late_ones_of",
]


class InstantOf:
    """Gives the milliseconds since 1970 of an item, whose timestamp may be a datetime with a time zone."""

    __slots__ = ("__qualname__", "fn")

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, item: Any) -> int:
        """Return the timestamp of one item.

        Raises:
            TypeError: what the function gives is no timestamp.
            ValueError: it is a datetime without a time zone, or too far away.
        """
        found = self.fn(item)
        return found if type(found) is int and -_NEAR < found < _NEAR else instant(found)


_NEAR = 2**62
"""Nearly all timestamps need no further look."""


def is_in_time(item: Any) -> bool:
    """Say whether an item is a result."""
    return type(item) is not Late


def late_ones(item: Any) -> tuple[Any, ...]:
    """Return the item that came too late, as it came, in a tuple; an empty one for a result."""
    return (item.item,) if type(item) is Late else ()


@node
class AddTimestamps(Node):
    """The same items, each with the time at which it happened.

    Attributes:
        timestamp: gives the milliseconds of an item, or a datetime with a time zone; None: those of the clock.
        policy: makes a policy for each partition of the source.
        idle_timeout: after so many seconds without an item, a partition holds time back no longer; may be infinite.
        name: the method that the user called.
        given: what the user gave to it, in short.
        known_as: the name of its stage, which the plan of a pipeline fills in: records of epochs speak of it so.
        drop_before: items of before this timestamp go no further; None: all do.
        are_beside: the source gives pairs of a timestamp and an item, and the item is what goes on.
    """

    upstream: Node
    timestamp: Callable[[Any], Any] | None
    policy: Callable[[], WatermarkPolicy]
    idle_timeout: float
    name: str = "add_timestamps"
    given: str = ""
    known_as: str = ""
    drop_before: int | None = None
    are_beside: bool = False

    def label(self) -> str:
        return f".{self.name}({self.given})"


@node
class OverEpochs(Node):
    """What an operator makes of the items of its inputs and of its state, such as the results of windows.

    Attributes:
        upstreams: one for each input of the operator.
        name: the method that the user called.
        given: what the user gave to it, in short.
        known_as: the name of its stage, by which its state is found again; the plan of a pipeline fills it in.
    """

    upstreams: tuple[Node, ...]
    operator: StateOperator
    name: str
    given: str = ""
    known_as: str = ""

    def inputs(self) -> tuple[Node, ...]:
        return self.upstreams

    def label(self) -> str:
        return f".{self.name}({self.given})"


@node
class InTime(Filter):
    """What an operation over epochs has made of its items, without those that came too late for it."""

    def label(self) -> str:
        return ""


@node
class LateOnes(FlatMap):
    """The items that came too late for an operation over epochs, as they came."""

    def label(self) -> str:
        return ""


def in_time(upstream: Node) -> InTime:
    """Return the results of an operation that lets late items go on."""
    return InTime(upstream, is_in_time)


def late_ones_of(upstream: Node) -> LateOnes:
    """Return the late items of such an operation."""
    return LateOnes(upstream, late_ones)


@core_of.register
def _(node: AddTimestamps, inputs: Sequence[Core], step: Step) -> Core:
    timestamp = None if node.timestamp is None else InstantOf(node.timestamp)
    stage, policy, timeout = node.known_as or node.name, node.policy, node.idle_timeout
    return stages.AssignTimestamps(
        inputs[0],
        timestamp,
        stage,
        policy=policy,
        idle_timeout=timeout,
        drop_before=node.drop_before,
        are_beside=node.are_beside,
        step=step,
    )


@core_of.register
def _(node: OverEpochs, inputs: Sequence[Core], step: Step) -> Core:
    return stages.OverEpochs(tuple(inputs), node.operator, node.known_as or node.name, step=step)


@dataclass(frozen=True, slots=True)
class StreamRead:
    """The source of a stage that never ends.

    Attributes:
        source: a `StreamSource`, or what becomes one when a context opens it.
    """

    source: Any

    ordered = True
    bounded = True
    """Each epoch reads ranges that end."""
    in_caller = False

    @property
    def stream(self) -> StreamSource[Any]:
        """Return the source, once it is open."""
        assert isinstance(self.source, StreamSource), "a context opens the plan before a job runs"
        return self.source

    def opened(self, context: Collections) -> StreamRead:
        """Return the same with a source that is open."""
        return StreamRead(self.source.opened(context)) if isinstance(self.source, OpenedLater) else self

    def splits(self, parallelism: int) -> Iterable[Split[Any]]:
        """Refuse: the loop of a job puts the ranges of an epoch in the place of this source.

        Raises:
            IllegalStateError: always.
        """
        return _refuse()

    def __repr__(self) -> str:
        return str(getattr(self.source, "label", self.source))


def _refuse() -> NoReturn:
    raise IllegalStateError("items without an end are read by jobs, range by range")


@node
class ProcessorGraph(Node):
    """What a graph of processors makes of its inputs: blocks of items, each by one outlet of the graph.

    Attributes:
        upstreams: one for each inlet of the graph, in order.
        name: the method that the user called.
        given: what the user gave to it, in short.
        is_one_step: its one vertex is a step of the chain that the user wrote, and names itself so.
        guarantee: what processors are told.
        known_as: the name of its stage, by which its state is found again; the plan of a pipeline fills it in.
        take: is called in the driver with the counts of each task, once; a job fills it in.
    """

    upstreams: tuple[Node, ...]
    graph: VertexGraph
    name: str
    given: str = ""
    is_one_step: bool = False
    guarantee: str = "none"
    known_as: str = ""
    take: Callable[[EdgeCounts], object] | None = None

    def inputs(self) -> tuple[Node, ...]:
        return self.upstreams

    def label(self) -> str:
        return f".{self.name}({self.given})" if self.is_one_step else f"{self.name}({self.given})"


@node
class ItemsOfOutlet(FlatMap):
    """The items of the blocks of one outlet; the user wrote no call for it."""

    def label(self) -> str:
        return ""


@core_of.register
def _(node: ProcessorGraph, inputs: Sequence[Core], step: Step) -> Core:
    graph = _of_one_step(node.graph, step) if node.is_one_step else node.graph
    known_as = node.known_as or (node.name if node.is_one_step else "")
    return stages.ProcessorGraph(tuple(inputs), graph, node.guarantee, known_as, node.take, step=step)


def _of_one_step(graph: VertexGraph, step: Step) -> VertexGraph:
    """Return the graph whose vertices name themselves as the call that made them."""
    return VertexGraph(tuple(dataclasses.replace(each, step=step) for each in graph.vertices), graph.edges)
