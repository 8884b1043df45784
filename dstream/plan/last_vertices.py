"""Which last vertices of a graph are an aggregate by key whose results a map takes as they are.

An engine may make these results where the map is written, as for a pipeline, without processors.
"""

from __future__ import annotations

from typing import NamedTuple

from dstream.plan.vertex_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.spi import identity
from dstream.spi.processor_suppliers import GroupsByKey

__all__ = ["LastVertices", "groups_of", "last_vertices"]


class LastVertices(NamedTuple):
    """What a graph ends with.

    Attributes:
        before: the graph without them; it may be empty.
        first: accumulates what comes by the only edge out of that; it may be the last one.
        last: combines and finishes.
    """

    before: VertexGraph
    first: GraphVertex
    last: GraphVertex


def last_vertices(graph: VertexGraph) -> LastVertices | None:
    """Return the vertices that nobody reads but the one outlet, and that give one entry for each key; None: others do.

    Args:
        graph: whose vertices say how many processors they have.
    """
    last = _last(graph)
    if last is None:
        return None
    first = _first(graph, last) or last
    before = _without(graph, {first.name, last.name})
    if before.vertices and not before.outlets:
        return None  # What is left does something else with what it reads.
    return LastVertices(before, first, last)


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
    return edge.routing is Routing.PARTITIONED and edge.partitioner is None and edge.key is groups_of(vertex).key


def _first(graph: VertexGraph, last: GraphVertex) -> GraphVertex | None:
    """Return the vertex that accumulates for the last one alone; whoever has an item may do that."""
    (edge,) = graph.into(last.name)
    for vertex in graph.vertices if groups_of(last).of_containers else ():
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


def _without(graph: VertexGraph, names: set[str]) -> VertexGraph:
    """Return a graph that ends where some vertices began."""
    vertices = tuple(each for each in graph.vertices if each.name not in names)
    left = {each.name for each in vertices}
    return VertexGraph(
        vertices, tuple(each for each in graph.edges if not {each.source, each.destination}.isdisjoint(left))
    )


def groups_of(vertex: GraphVertex) -> GroupsByKey:
    """Return what one of these vertices emits."""
    groups = vertex.supplier.groups
    assert groups is not None, "the vertex was chosen for them"
    return groups
