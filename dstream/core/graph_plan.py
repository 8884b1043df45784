"""From a graph of vertices to the plan that a job runs: reads, one operation for all processors, and ends."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from dstream.errors import UnsupportedError
from dstream.executor.arrivals_of_graphs import GraphBlock, users_items
from dstream.pipeline.pipeline_plan import (
    PipelinePlan,
    PlannedStage,
    PlannedWrite,
    check_that_all_or_none_takes_epochs,
)
from dstream.pipeline.source_in_parts import InParts
from dstream.plan import Node, Read, Union
from dstream.plan.nodes_of_forks import Shared
from dstream.plan.nodes_of_graphs import ItemsOfOutlet, Processing
from dstream.plan.nodes_of_stages import Spread
from dstream.plan.stream_read import StreamRead
from dstream.plan.vertex_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.spi import StreamSource

__all__ = ["plan_of_graph"]


@dataclass(frozen=True, slots=True)
class _OfOutlet:
    """Gives the items of a block, if it comes by one outlet."""

    outlet: int

    def __call__(self, block: GraphBlock) -> list[Any]:
        return users_items(block) if block.outlet == self.outlet else []


def plan_of_graph(graph: VertexGraph) -> PipelinePlan:
    """Return what a job runs of a graph, whose vertices stand in topological order.

    Raises:
        UnsupportedError: nothing is written by `processors.write`; or an edge into one does more than to bring items
            there; or a source never ends and cannot be read range by range; or some of what is written ends, and some
            does not; or an edge merges by an order what has no end.
    """
    sources = {each.name: source for each in graph.vertices if (source := getattr(each.supplier, "source", None))}
    sinks = {each.name: sink for each in graph.vertices if (sink := getattr(each.supplier, "sink", None))}
    if not sinks:
        raise UnsupportedError("a job runs graphs with a vertex of processors.write()")
    given: dict[str, Node] = {}
    reads: list[tuple[str, Node]] = []
    for vertex in graph.vertices:
        if vertex.name in sources:
            node: Node = _read(vertex, sources[vertex.name])
            reads.append((vertex.name, node))
            given[vertex.name] = Shared(node) if len(graph.out_of(vertex.name)) > 1 else node
    inner = tuple(each for each in graph.vertices if each.name not in sources and each.name not in sinks)
    names = {each.name for each in inner}
    part = VertexGraph(inner, tuple(each for each in graph.edges if each.source in names or each.destination in names))
    blocks: Node | None = None
    if inner:
        shown = f"{len(inner)} {'vertex' if len(inner) == 1 else 'vertices'}"
        blocks = Shared(Processing(tuple(given[each.source] for each in part.inlets), part, "dag", shown))
    outlets = {id(edge): number for number, edge in enumerate(part.outlets)}
    writes: list[PlannedWrite] = []
    for vertex in graph.vertices:
        if vertex.name in sinks:
            nodes = [_checked(edge, given, blocks, outlets) for edge in graph.into(vertex.name)]
            end = nodes[0] if len(nodes) == 1 else Union(tuple(nodes))
            if vertex.parallelism != -1:
                end = Spread(end, vertex.parallelism, "local_parallelism")
            if blocks is not None and not writes and not any(each.destination in sinks for each in part.outlets):
                end = Union((end, ItemsOfOutlet(blocks, _OfOutlet(-1))))  # Nobody else would let the processors run.
            writes.append(PlannedWrite(vertex.name, end, sinks[vertex.name], vertex.step.where, is_named=True))
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
                "and these have no end: leave ordered(...) out, and let a processor put in order what comes between "
                "two watermarks"
            )


def _read(vertex: GraphVertex, source: Any) -> Read:
    if isinstance(source, StreamSource):
        source = StreamRead(source)
    elif not source.bounded:
        raise UnsupportedError(
            f"{vertex.step} never ends and cannot be read range by range: stream_source_from(...) makes a source of "
            "functions that can"
        )
    elif vertex.parallelism != -1:
        source = InParts(source, vertex.parallelism)
    return dataclasses.replace(Read(source, "processors.read(...)", where=vertex.step.where), stage=vertex.name)


def _checked(edge: GraphEdge, given: dict[str, Node], blocks: Node | None, outlets: dict[int, int]) -> Node:
    """Return the items of an edge into a sink."""
    if edge.routing not in (Routing.UNICAST, Routing.ISOLATED) or edge.order is not None or edge.priority:
        raise UnsupportedError(
            f"the edge {edge.source} -> {edge.destination} into processors.write() says which processors get items, or "
            "when: put a vertex of processors.noop() before it"
        )
    if edge.source in given:
        return given[edge.source]
    assert blocks is not None, "an edge comes from a vertex"
    return ItemsOfOutlet(blocks, _OfOutlet(outlets[id(edge)]))
