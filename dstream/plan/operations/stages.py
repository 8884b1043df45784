"""Core operations of pipelines: aggregates, services, forks, epochs, and graphs of processors.

The loop of a job fills in what is of one epoch before an engine is given the plan.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from dstream.errors import IllegalStateError
from dstream.failures import is_our_name
from dstream.plan.operations.streams import Cache, Core, OrderPreserving, Unary, Write, node
from dstream.plan.steps import Step
from dstream.spi.collector import AggregateOperation, Collector
from dstream.spi.runtime import OpenedLater, Service

if TYPE_CHECKING:
    from dstream.plan.graphs import VertexGraph
    from dstream.spi.epochs import (
        EdgeCounts,
        PartitionReceipt,
        PartitionTime,
        StateOperator,
        StepReceipt,
        StepState,
        Tick,
        WatermarkPolicy,
    )

__all__ = [
    "Aggregate",
    "AssignTimestamps",
    "Fork",
    "OverEpochs",
    "ProcessorGraph",
    "ServiceFunction",
    "Several",
    "Spread",
    "Stateful",
    "UsingBatches",
    "functions_of_graph",
]


@node
class Aggregate(Core):
    """What an operation makes of the items of its inputs: one result for all of them, or one for each key.

    Attributes:
        operation: has as many inputs.
        reductions: what reduces the items of each input. With keys these are keyed collectors; without, the collector
            of the user's may be one as well, whose result is then one dictionary.
        is_keyed: there is a result for each key, in place of one for all items.
        to: makes what goes on of a key and its result; None: an `Entry`.
    """

    upstreams: tuple[Core, ...]
    operation: AggregateOperation[Any, Any, Any]
    reductions: tuple[Collector[Any, Any, Any], ...]
    is_keyed: bool
    to: Callable[[Any, Any], Any] | None

    def inputs(self) -> tuple[Core, ...]:
        return self.upstreams

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, upstreams=tuple(inputs))

    @property
    def combines(self) -> bool:
        """Whether containers of one group can be combined; otherwise one task accumulates all its items, in order."""
        return self.operation.combine is not None


@node
class Stateful(OrderPreserving):
    """What a function makes of each item and of a state that earlier items left.

    Attributes:
        create: makes the state, one for each key.
        fn: takes (state, item), with a key (state, key, item).
        action: what becomes of its result.
        key: gives the key of an item; None: one state for all items.
    """

    create: Callable[[], Any]
    fn: Callable[..., Any]
    action: Literal["map", "filter", "flat_map"]
    key: Callable[[Any], Any] | None


@node
class Spread(OrderPreserving):
    """The same items in `count` partitions of about equal size; None: as many as the cores suggest."""

    count: int | None


@dataclass(frozen=True, slots=True, eq=False)
class ServiceFunction:
    """A function that takes a service and an item, or several items, as the function of a step.

    Attributes:
        service: what gives it; until the plan was opened for a context, maybe what does.
        fn: takes (service, item), or (service, items).
        number: that of the service in its plan. Steps that were given the same one share what it makes.
    """

    service: Service[Any] | OpenedLater
    fn: Callable[[Any, Any], Any]
    number: int

    def __call__(self, item: Any) -> Any:
        raise AssertionError("a task binds the service of a step before its first item")

    def opened(self) -> Service[Any]:
        """Return the service.

        Raises:
            IllegalStateError: the plan was not opened for a context.
        """
        if isinstance(self.service, Service):
            return self.service
        raise IllegalStateError(f"{self.service!r} is known by its name: it needs a context, which a job opens it for")

    def bound(self, made: Any) -> Callable[[Any], Any]:
        """Return the function with what the service made."""
        return functools.partial(self.fn, made)


@node
class UsingBatches(OrderPreserving):
    """What a function gives for some items at a time, in their order.

    Attributes:
        served: takes (service, items); gives the results of these.
        size: how many items it takes at most.
    """

    served: ServiceFunction
    size: int


@node
class Fork(Cache):
    """The same items for several operations of one plan: computed once in a run, and of no use to another one."""


@node
class Several(Core):
    """Several writes in one run.

    Attributes:
        ends: in the order in which their receipts are given.
        is_epoch: the run is an epoch of a job over unbounded data.
        is_small: one task is expected to take all items in less time than it takes to divide the work.
    """

    ends: tuple[Write, ...]
    is_epoch: bool = False
    is_small: bool = False

    def inputs(self) -> tuple[Core, ...]:
        return self.ends

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, ends=tuple(cast(Sequence[Write], inputs)))


@node
class AssignTimestamps(Unary):
    """Items `(None, item)` become `(timestamp, item)`. What is before it reads one range of one partition of a source.

    When its items have ended, the task tells every task behind the next shuffle the watermark of the partition.

    Attributes:
        timestamp: gives the milliseconds of an item; None: those of the clock of the epoch.
        stage: the name of the stage.
        time: of the partition; None before the loop has filled it in.
        take: is called in the driver with what became of the time, once.
        policy: makes that of a partition which the job has not seen before.
        idle_timeout: after so many seconds without an item, a partition holds time back no longer; may be infinite.
        drop_before: items of before this timestamp go no further; None: all do.
        are_beside: items are `(None, (timestamp, item))`: their source knows the time of each, and they do not.
    """

    timestamp: Callable[[Any], Any] | None
    stage: str
    time: PartitionTime | None = None
    take: Callable[[PartitionReceipt], object] | None = None
    policy: Callable[[], WatermarkPolicy] | None = None
    idle_timeout: float = 60.0
    drop_before: int | None = None
    are_beside: bool = False


@node
class OverEpochs(Core):
    """What an operator makes of the items of its inputs, which are pairs, and of its state.

    Items of a key come in the order of (input, partition of the source, offset). It gives pairs `(timestamp, item)`, in
    no order across keys, and `(timestamp, Late(item))` for late items that are wanted elsewhere.

    Attributes:
        stage: the name of the stage, by which its state is found again.
        state: that of the last epoch; None before the loop has filled it in.
        tick: what time it is; None before.
        take: is called in the driver with the receipt of each task, once.
    """

    upstreams: tuple[Core, ...]
    operator: StateOperator
    stage: str
    state: StepState | None = None
    tick: Tick | None = None
    take: Callable[[StepReceipt], object] | None = None

    def inputs(self) -> tuple[Core, ...]:
        return self.upstreams

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, upstreams=tuple(inputs))


@node
class ProcessorGraph(Core):
    """What a graph of processors makes of its inputs: blocks `(number of the outlet, number of the processor, items)`.

    Watermarks and marks are among the items of a block. Who reads one outlet takes the items of its blocks.

    Attributes:
        upstreams: one for each inlet of the graph, in order.
        graph: the vertices and edges.
        guarantee: what processors are told.
        stage: the name under which its state is found again; empty: each part has the name of its first vertex.
        take: is called in the driver with the counts of each task, once.
    """

    upstreams: tuple[Core, ...]
    graph: VertexGraph
    guarantee: str = "none"
    stage: str = ""
    take: Callable[[EdgeCounts], object] | None = None

    def inputs(self) -> tuple[Core, ...]:
        return self.upstreams

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, upstreams=tuple(inputs))


def functions_of_graph(graph: VertexGraph) -> Iterator[tuple[Step, Any]]:
    """Give what of a graph goes to the workers, with the vertex that it belongs to; an edge belongs to its end."""
    steps = {each.name: each.step for each in graph.vertices}
    for vertex in graph.vertices:
        if is_our_name(type(vertex.supplier).__module__):  # One of the user's stays in the driver.
            yield vertex.step, vertex.supplier
    for edge in graph.edges:
        step = steps.get(edge.destination) or steps[edge.source]
        yield from ((step, each) for each in (edge.key, edge.partitioner, edge.order) if each is not None)
