"""Operations of streams without an end, and graphs of processors.

The loop of a job fills in the fields of an epoch before it passes the plan to an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dstream.failures import is_our_name
from dstream.plan.operations.streams import SeveralInputs, Unary, always, as_inputs, never, node
from dstream.plan.steps import Step

if TYPE_CHECKING:
    from dstream.plan.processor_graph import VertexGraph
    from dstream.spi.epochs import (
        EdgeCounts,
        PartitionReceipt,
        PartitionTime,
        StateOperator,
        StepReceipt,
        StepState,
        StepTime,
        WatermarkPolicy,
    )

__all__ = ["AssignTimestamps", "OverEpochs", "ProcessorGraph"]


@node
class AssignTimestamps(Unary):
    """Items `(None, item)` become `(timestamp, item)`. Its input reads one range of one partition of a source.

    When its items have ended, the task sends the watermark of the partition to every task after the next shuffle.

    Attributes:
        timestamp: returns the milliseconds of an item; None: the time is that of the epoch's clock.
        stage: the name of the stage, which the plan of a pipeline fills in: records of epochs use it.
        time: of the partition; None before the loop has filled it in.
        take: called once in the driver, with the resulting time.
        policy: creates the policy of a partition that is new to the job.
        idle_timeout: after this number of seconds without an item, an idle partition no longer holds the watermark
            back; may be infinite.
        drop_before: items with earlier timestamps are dropped; None: none are.
        are_beside: items are `(None, (timestamp, item))`: the source provides the timestamps.
    """

    is_of_epoch = True
    has_order, has_end, has_timestamps = as_inputs, always, always

    timestamp: Callable[[Any], Any] | None
    stage: str
    time: PartitionTime | None = None
    take: Callable[[PartitionReceipt], object] | None = None
    policy: Callable[[], WatermarkPolicy] | None = None
    idle_timeout: float = 60.0
    drop_before: int | None = None
    are_beside: bool = False

    def shipped(self) -> Iterator[tuple[Step, Any]]:
        yield from () if self.timestamp is None else ((self.step, self.timestamp),)


@node
class OverEpochs(SeveralInputs):
    """The output of an operator for the items of its inputs, which are pairs, and of its state.

    Items of a key are in the order of (input, partition of the source, offset). It emits pairs `(timestamp, item)`, in
    no order across keys, and `(timestamp, Late(item))` for late items that a sink takes.

    Attributes:
        stage: the name of the stage, the key of its stored state; the plan of a pipeline fills it in.
        state: the state of the last epoch; None before the loop has filled it in.
        time: the current time; None before the loop has filled it in.
        take: is called in the driver with the receipt of each task, once.
    """

    is_of_epoch = True
    has_order, has_end = never, always

    operator: StateOperator
    stage: str
    state: StepState | None = None
    time: StepTime | None = None
    take: Callable[[StepReceipt], object] | None = None

    def shipped(self) -> Iterator[tuple[Step, Any]]:
        graph = getattr(self.operator, "graph", None)
        yield from ((self.step, self.operator),) if graph is None else _functions_of_graph(graph)


@node
class ProcessorGraph(SeveralInputs):
    """The output of a graph of processors: blocks `(number of the outlet, number of the processor, items)`.

    Watermarks and marks are among the items of a block. The reader of an outlet takes the items from its blocks. The
    graph has one input for each inlet.

    Attributes:
        graph: the vertices and edges.
        guarantee: the guarantee that processors see.
        stage: the name under which its state is found again; empty: each part has the name of its first vertex.
        take: is called in the driver with the counts of each task, once; a job fills it in.
        is_one_step: its one vertex is a step of the chain that the user wrote, and names itself so.
    """

    # Processors emit items without timestamps, whatever they receive.
    has_order, has_end, has_timestamps = never, as_inputs, never

    graph: VertexGraph
    guarantee: str = "none"
    stage: str = ""
    take: Callable[[EdgeCounts], object] | None = None
    is_one_step: bool = False

    def shipped(self) -> Iterator[tuple[Step, Any]]:
        return _functions_of_graph(self.graph)


def _functions_of_graph(graph: VertexGraph) -> Iterator[tuple[Step, Any]]:
    """Yield the parts of a graph that go to the workers, with their vertices; an edge belongs to its end."""
    steps = {each.name: each.step for each in graph.vertices}
    for vertex in graph.vertices:
        if is_our_name(type(vertex.supplier).__module__):  # A user's supplier is called in the driver only.
            yield vertex.step, vertex.supplier
    for edge in graph.edges:
        step = steps.get(edge.destination) or steps[edge.source]
        yield from ((step, each) for each in (edge.key, edge.partitioner, edge.order) if each is not None)
