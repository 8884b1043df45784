"""The plan of a graph of vertices: its reads, one operation for all processors, and its ends."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.core.processors.peeks import Peek as PeekOfVertex
from dstream.core.suppliers import EndSupplier, Reading, Writing
from dstream.errors import UnsupportedError
from dstream.pipeline.plan import (
    PipelinePlan,
    PlannedStage,
    PlannedWrite,
    check_that_all_or_none_takes_epochs,
)
from dstream.plan import NO_CALL, Node, Peek, Read, Step, Union, called
from dstream.plan.operations.calls import FlatMap
from dstream.plan.operations.streams import Fork, Spread
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.plan.timestamps import StreamRead
from dstream.processors.blocks import GraphBlock, users_items
from dstream.spi import StreamSource
from dstream.spi.processor_ends import Nowhere

__all__ = ["plan_of_graph"]


@dataclass(frozen=True, slots=True)
class _OfOutlet:
    """The function from a block to its items, if it arrives by one outlet."""

    outlet: int

    def __call__(self, block: GraphBlock) -> list[Any]:
        return users_items(block) if block.outlet == self.outlet else []


def plan_of_graph(graph: VertexGraph) -> PipelinePlan:
    """Return the plan that a job runs of a graph, whose vertices are in topological order.

    Raises:
        UnsupportedError: there are sources alone; or an edge into `processors.write` does more than to bring items
            there; or an edge out of `processors.read` needs the partitions of items that several edges read; or a
            source never ends and cannot be read range by range; or some written streams end and others do not; or an
            edge merges an endless stream by an order.
        ValueError: an edge leads to `processors.read` or away from `processors.write`, or none leads to one.
    """
    sources = [each.name for each in graph.vertices if isinstance(each.supplier, Reading)]
    sinks = [each.name for each in graph.vertices if isinstance(each.supplier, Writing)]
    _check_ends(graph, sources, sinks)
    inputs: dict[str, Node] = {}
    reads: list[tuple[str, Node]] = []
    for vertex in graph.vertices:
        if isinstance(vertex.supplier, Reading):
            read, edges = _read(vertex, vertex.supplier), graph.out_of(vertex.name)
            node = _peeked(read, vertex, [f"Output to ordinal {each.source_ordinal}: " for each in edges])
            reads.append((vertex.name, read))
            # A source with several edges is read once.
            inputs[vertex.name] = Fork(node) if len(edges) > 1 else node
    inner = tuple(each for each in graph.vertices if not isinstance(each.supplier, EndSupplier))
    blocks = _Blocks(graph, inner, inputs)
    writes = [
        _write(vertex, vertex.supplier, graph.into(vertex.name), inputs, blocks)
        for vertex in graph.vertices
        if isinstance(vertex.supplier, Writing)
    ]
    if inner and not blocks.is_read:  # Its processors may write by themselves.
        writes.append(PlannedWrite(inner[-1].name, blocks.none(), Nowhere(), inner[-1].step.where, is_named=True))
    if not writes:
        raise UnsupportedError("this graph has sources alone: nothing becomes of their items")
    stages = tuple(
        PlannedStage(each.name, "vertex", tuple(edge.source for edge in graph.into(each.name)), each.step.where)
        for each in graph.vertices
    )
    plan = PipelinePlan(stages, tuple(writes), tuple(reads))
    check_that_all_or_none_takes_epochs(plan)
    if plan.is_unbounded:
        _refuse_orders(graph)
    return plan


def _refuse_orders(graph: VertexGraph) -> None:
    """Refuse edges that merge items by an order, of which no epoch has all."""
    steps = {each.name: each.step for each in graph.vertices}
    for edge in graph.edges:
        if edge.order is not None:
            raise UnsupportedError(
                f"{steps[edge.destination]}: the edge {edge.source} -> {edge.destination} merges items by an order, "
                "and these have no end: leave ordered(...) out, and let a processor put in order the items between "
                "two watermarks"
            )


def _check_ends(graph: VertexGraph, sources: Collection[str], sinks: Collection[str]) -> None:
    for edge in graph.edges:
        way = f"the edge {edge.source} -> {edge.destination}"
        if edge.destination in sources:
            raise ValueError(f"{way} leads to processors.read(), which takes no items")
        if edge.source in sinks:
            raise ValueError(f"{way} leaves processors.write(), which emits no items")
        if edge.source in sources and edge.knows_senders and len(graph.out_of(edge.source)) > 1:
            raise UnsupportedError(
                f"{way} is ordered or isolated, and another edge leaves processors.read() too: let one isolated edge "
                "lead from there to a vertex such as processors.map(...), and both of these leave that one"
            )
    for vertex in graph.vertices:
        if vertex.name in sinks and not graph.into(vertex.name):
            raise ValueError(f"{vertex.step} is processors.write(), and no edge leads to it")


class _Blocks:
    """The one operation for all vertices that are neither sources nor sinks, and its readers.

    Args:
        graph: the whole graph.
        inner: those vertices.
        given: the input nodes, by source.
    """

    def __init__(self, graph: VertexGraph, inner: tuple[GraphVertex, ...], inputs: Mapping[str, Node]) -> None:
        names = {each.name for each in inner}
        edges = tuple(each for each in graph.edges if each.source in names or each.destination in names)
        part = VertexGraph(inner, edges)
        self._outlets = {id(edge): number for number, edge in enumerate(part.outlets)}
        self.is_read = bool(self._outlets)
        shown = f"{len(inner)} {'vertex' if len(inner) == 1 else 'vertices'}"
        node = ProcessorGraph(tuple(inputs[each.source] for each in part.inlets), part, step=Step(f"dag({shown})"))
        self._node: Node = Fork(node) if len(self._outlets) > 1 else node

    def of(self, edge: GraphEdge) -> Node:
        """Return the items of an edge into a sink."""
        return FlatMap(self._node, _OfOutlet(self._outlets[id(edge)]), step=NO_CALL)

    def none(self) -> Node:
        """Return no items, of a graph from which no edge leads away."""
        return FlatMap(self._node, _OfOutlet(-1), step=NO_CALL)


def _write(
    vertex: GraphVertex, writing: Writing, edges: Sequence[GraphEdge], inputs: Mapping[str, Node], blocks: _Blocks
) -> PlannedWrite:
    nodes = [
        _peeked(_checked(edge, inputs, blocks), vertex, [f"Input from ordinal {edge.destination_ordinal}: "])
        for edge in edges
    ]
    end = nodes[0] if len(nodes) == 1 else Union(tuple(nodes), step=Step(f"edges into {vertex.name!r}"))
    if (parts := writing.parallelism(vertex.name, vertex.parallelism)) != -1:
        end = Spread(end, parts, step=Step(f".local_parallelism({parts})"))
    return PlannedWrite(vertex.name, end, writing.sink, vertex.step.where, is_named=True)


def _read(vertex: GraphVertex, reading: Reading) -> Read:
    source, parts = reading.source, reading.parallelism(vertex.name, vertex.parallelism)
    if isinstance(source, StreamSource):
        source = StreamRead(source)
    elif not source.bounded:
        raise UnsupportedError(
            f"{vertex.step} never ends and cannot be read range by range: stream_source_from(...) makes a source of "
            "functions that can"
        )
    # The partitions of a source without an end are its own.
    is_divided = parts != -1 and not isinstance(source, StreamRead)
    step = Step("processors.read(...)", vertex.step.where, stage=vertex.name)
    return Read(source, parts=parts if is_divided else None, step=step)


def _peeked(node: Node, vertex: GraphVertex, labels: Sequence[str]) -> Node:
    """Return the operation with logging of the items that a job reads or writes for a vertex, if requested."""
    for peek in vertex.supplier.peeks if isinstance(vertex.supplier, EndSupplier) else ():
        logging_items = _Logging(peek, vertex.name, tuple(labels))
        node = Peek(node, logging_items, step=called("peek", peek.what, where=vertex.step.where))
    return node


@dataclass(frozen=True, slots=True)
class _Logging:
    """The function that logs an item under the name of its vertex."""

    peek: PeekOfVertex
    vertex: str
    labels: tuple[str, ...]

    def __call__(self, item: Any) -> None:
        logger = logging.getLogger(f"dstream.core.{self.vertex}")
        for label in self.labels:
            self.peek.log(logger, label, [item])


def _checked(edge: GraphEdge, inputs: Mapping[str, Node], blocks: _Blocks) -> Node:
    """Return the items of an edge into a sink."""
    if edge.routing not in (Routing.UNICAST, Routing.ISOLATED) or edge.order is not None or edge.priority:
        raise UnsupportedError(
            f"the edge {edge.source} -> {edge.destination} into processors.write() sets which processors get items, or "
            "when: put a vertex of processors.map(whole_item) before it"
        )
    return inputs[edge.source] if edge.source in inputs else blocks.of(edge)
