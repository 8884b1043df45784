"""How many processors each vertex of a graph has: settled in the driver, before the graph runs."""

from __future__ import annotations

import dataclasses

from dstream.failures import naming
from dstream.plan.vertex_graph import GraphVertex, VertexGraph

__all__ = ["parallelism_of", "with_parallelism"]


def with_parallelism(graph: VertexGraph, suggested: int) -> VertexGraph:
    """Return the same graph, in which every vertex says how many processors it has.

    Args:
        graph: where a vertex may leave it to its supplier, or to the engine.
        suggested: by the engine.

    Raises:
        ValueError: what a supplier prefers is no number of processors.
    """
    vertices = (
        each if each.parallelism != -1 else dataclasses.replace(each, parallelism=_of(each, suggested))
        for each in graph.vertices
    )
    return VertexGraph(tuple(vertices), graph.edges)


def _of(vertex: GraphVertex, suggested: int) -> int:
    preferred = vertex.supplier.preferred_local_parallelism
    if preferred == -1:
        return suggested
    if type(preferred) is not int or preferred < 1:
        with naming(vertex.step):
            raise ValueError(f"preferred_local_parallelism of a supplier must be at least 1, or -1: {preferred!r}")
    return preferred


def parallelism_of(graph: VertexGraph) -> dict[str, int]:
    """Return how many processors each vertex has, by its name; all say it themselves."""
    return {each.name: each.parallelism for each in graph.vertices}
