"""Graphs whose last vertex gives results by key to a map: what a pipeline does with such results.

The senders combine what they have of each key and send it to the task that writes the bucket of the key, which combines
and finishes it. The vertex has no processors then, nor has one before it that only accumulates for it: results move no
more, and many keys go to disk. What is counted, and told of failures, belongs to these vertices all the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from dstream.engine.compiler.compile_graphs import in_parts
from dstream.engine.compiler.compile_inputs import in_the_caller
from dstream.engine.compiler.compile_stages import partials
from dstream.engine.compiler.compiling import Compiling, compile_node
from dstream.engine.graph.vertices import Items, piped
from dstream.engine.kernels.groups_of_vertex import Arriving, Sending
from dstream.engine.kernels.stamping import telling
from dstream.plan.core import Chain, Core, Write
from dstream.plan.core_of_graphs import Processing
from dstream.plan.core_of_stages import Aggregate
from dstream.plan.graph_parallelism import with_parallelism
from dstream.plan.steps import Op
from dstream.plan.vertex_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.plan.walk import fold
from dstream.spi import identity
from dstream.spi.processor_suppliers import GroupsByKey

__all__ = ["LastGroups", "last_groups"]


@dataclass(frozen=True, eq=False)
class LastGroups:
    """The results by key of the last vertex of a graph.

    Attributes:
        parts: what the senders have of each key.
        vertex: says how many tasks may make the results.
        groups: how they are made.
        receipts: takes the counts of the edges.
    """

    parts: Items
    vertex: GraphVertex
    groups: GroupsByKey
    receipts: Op


def last_groups(end: Write, compiling: Compiling) -> LastGroups | None:
    """Return what the tasks of a write can make of a graph; None: its processors give what is written.

    Args:
        end: a write of entries, as they come, into a map.
        compiling: the graph of tasks that is being made.
    """
    blocks = end.upstream
    if not isinstance(blocks, Chain) or len(blocks.ops) != 1 or not isinstance(blocks.upstream, Processing):
        return None
    if compiling.facts.is_sequential or not compiling.is_bounded(blocks):
        return None
    node = blocks.upstream
    graph = with_parallelism(node.graph, compiling.facts.cores)
    last = _last(graph)
    if last is None:
        return None
    first = _first(graph, last) or last
    graph = _without(graph, {first.name, last.name})
    if graph.vertices and not graph.outlets:
        return None  # What is left does something else with what it reads.
    items = _arriving(blocks, dataclasses.replace(node, graph=graph), compiling)
    receipts = in_the_caller(telling(node.step, node.take), compiling)
    return LastGroups(_parts(blocks, items, first, last, receipts, compiling), last, _groups(last), receipts)


def _last(graph: VertexGraph) -> GraphVertex | None:
    """Return the vertex that nobody but the write reads, if one edge brings all items of a key to one processor."""
    if len(graph.outlets) != 1:
        return None
    (vertex,) = (each for each in graph.vertices if each.name == graph.outlets[0].source)
    is_last = vertex.supplier.groups is not None and len(graph.out_of(vertex.name)) == 1
    edge = _only_edge(graph, vertex) if is_last else None
    return vertex if edge is not None and _gathers(edge, vertex) else None


def _gathers(edge: GraphEdge, vertex: GraphVertex) -> bool:
    if vertex.parallelism == 1:
        return True
    return edge.routing is Routing.PARTITIONED and edge.partitioner is None and edge.key is _groups(vertex).key


def _first(graph: VertexGraph, last: GraphVertex) -> GraphVertex | None:
    """Return the vertex that accumulates for the last one alone; whoever has an item may do that."""
    (edge,) = graph.into(last.name)
    for vertex in graph.vertices if _groups(last).of_containers else ():
        if vertex.name == edge.source and len(graph.out_of(vertex.name)) == 1:
            into, groups = _only_edge(graph, vertex), vertex.supplier.groups
            is_first = groups is not None and groups.operation.finish is identity and not groups.of_containers
            is_once = into is not None and (into.routing is not Routing.BROADCAST or vertex.parallelism == 1)
            return vertex if is_first and is_once else None
    return None


def _only_edge(graph: VertexGraph, vertex: GraphVertex) -> GraphEdge | None:
    """Return the edge into a vertex, if it is the only one, and merges nothing by an order."""
    into = graph.into(vertex.name)
    return into[0] if len(into) == 1 and into[0].order is None else None


def _groups(vertex: GraphVertex) -> GroupsByKey:
    groups = vertex.supplier.groups
    assert groups is not None, "the vertex was chosen for them"
    return groups


def _without(graph: VertexGraph, names: set[str]) -> VertexGraph:
    """Return a graph that ends where some vertices began."""
    vertices = tuple(each for each in graph.vertices if each.name not in names)
    left = {each.name for each in vertices}
    return VertexGraph(
        vertices, tuple(each for each in graph.edges if not {each.source, each.destination}.isdisjoint(left))
    )


def _arriving(blocks: Chain, before: Processing, compiling: Compiling) -> Items:
    """Return the items of the edge into the vertices: of a source, or of what is left of the graph."""
    graph = blocks.upstream

    def compiled(node: Core, inputs: Sequence[Items]) -> Items:
        if node is graph and before.graph.vertices:
            return in_parts(before, inputs, compiling)
        if node is graph or (node is blocks and not before.graph.vertices):
            return inputs[0]
        return compile_node(node, inputs, compiling)

    return fold(blocks, compiled)


def _parts(
    blocks: Chain, items: Items, first: GraphVertex, last: GraphVertex, receipts: Op, compiling: Compiling
) -> Items:
    """Return what the senders have of each key, counted as what the vertices receive and send."""
    groups = _groups(first)
    node = Aggregate((blocks,), groups.operation, (groups.reduction,), None, step=first.step)
    arriving = piped(items, None, Arriving(first.name, receipts, first.step))
    parts = partials(node, [arriving], compiling, items_may_travel=False)
    return parts if first is last else piped(parts, None, Sending(first.name, last.name, receipts))
