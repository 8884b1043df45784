"""Cuts a graph where its items have to move between tasks."""

from __future__ import annotations

import dataclasses

from dstream.plan.vertex_graph import GraphEdge, GraphVertex, Routing, VertexGraph

__all__ = ["graph_groups"]


def graph_groups(graph: VertexGraph) -> list[VertexGraph]:
    """Return the parts of a graph whose processors of one number can run in one task, in topological order.

    A vertex belongs to the part of those before it, if all that leads to it comes from one part, from processors of the
    same number. Edges between parts are outlets of one and inlets of another, and carry blocks; those that are inlets
    or outlets of the graph stay as they are.
    """
    part_of: dict[str, int] = {}
    parts: list[list[GraphVertex]] = []
    by_name = {each.name: each for each in graph.vertices}
    for vertex in graph.vertices:
        before = {part_of.get(edge.source) for edge in graph.into(vertex.name)}
        (only,) = before if len(before) == 1 else (None,)
        if only is None or not all(_stays(edge, by_name) for edge in graph.into(vertex.name)):
            only = len(parts)
            parts.append([])
        parts[only].append(vertex)
        part_of[vertex.name] = only
    return [_part(graph, vertices, part_of) for vertices in parts]


def _stays(edge: GraphEdge, by_name: dict[str, GraphVertex]) -> bool:
    """Say whether an item that a processor emits may go to the processor of the same number."""
    is_near = edge.routing in (Routing.UNICAST, Routing.ISOLATED) and edge.order is None
    return is_near and by_name[edge.source].parallelism == by_name[edge.destination].parallelism


def _part(graph: VertexGraph, vertices: list[GraphVertex], part_of: dict[str, int]) -> VertexGraph:
    names = {each.name for each in vertices}
    edges = []
    for edge in graph.edges:
        if edge.source in names or edge.destination in names:
            is_cut = edge.source in part_of and edge.destination in part_of
            is_cut = is_cut and part_of[edge.source] != part_of[edge.destination]
            edges.append(dataclasses.replace(edge, carries_blocks=True) if is_cut else edge)
    return VertexGraph(tuple(vertices), tuple(edges))
