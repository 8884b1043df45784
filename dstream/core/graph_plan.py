"""From a graph of vertices to the plan that a job runs: reads, one operation for all processors, and ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from dstream.core.processors.ends_of_graphs import Reading, Writing
from dstream.errors import UnsupportedError
from dstream.executor.arrivals_of_graphs import GraphBlock, users_items
from dstream.pipeline.pipeline_plan import PipelinePlan, PlannedStage, PlannedWrite
from dstream.pipeline.source_in_parts import InParts
from dstream.plan import Node, Read, Union
from dstream.plan.nodes_of_forks import Shared
from dstream.plan.nodes_of_graphs import ItemsOfOutlet, Processing
from dstream.plan.nodes_of_stages import Spread
from dstream.plan.vertex_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.spi import Source

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
        UnsupportedError: nothing is written by `processors.write`, or an edge into one does more than to bring items
            there; or an edge out of `processors.read` needs to know the parts of what several edges read.
        ValueError: an edge leads to `processors.read` or away from `processors.write`, or none leads to one.
    """
    sources = {each.name: each.supplier.source for each in graph.vertices if isinstance(each.supplier, Reading)}
    sinks = {each.name: each.supplier.sink for each in graph.vertices if isinstance(each.supplier, Writing)}
    if not sinks:
        raise UnsupportedError("a job runs graphs with a vertex of processors.write()")
    _check_ends(graph, sources, sinks)
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
    writes = []
    for vertex in graph.vertices:
        if vertex.name in sinks:
            nodes = [_checked(edge, given, blocks, outlets) for edge in graph.into(vertex.name)]
            end = nodes[0] if len(nodes) == 1 else Union(tuple(nodes))
            if vertex.parallelism != -1:
                end = Spread(end, vertex.parallelism, "local_parallelism")
            writes.append(PlannedWrite(vertex.name, end, sinks[vertex.name], vertex.step.where, is_named=True))
    stages = tuple(
        PlannedStage(each.name, "vertex", tuple(edge.source for edge in graph.into(each.name)), each.step.where)
        for each in graph.vertices
    )
    return PipelinePlan(stages, tuple(writes), tuple(reads))


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


def _read(vertex: GraphVertex, source: Any) -> Read:
    if not isinstance(source, Source) or not source.bounded:
        raise UnsupportedError(f"{vertex.step} reads what has no end: no engine runs such a graph yet")
    if vertex.parallelism != -1:
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
