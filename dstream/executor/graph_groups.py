"""Cuts a graph where its items have to move between tasks."""

from __future__ import annotations

from dstream.plan.vertex_graph import VertexGraph

__all__ = ["graph_groups"]


def graph_groups(graph: VertexGraph) -> list[VertexGraph]:
    """Return the parts of a graph whose processors of one number can run in one task, in topological order.

    Edges between parts are outlets of one and inlets of another; those that are inlets or outlets of the graph stay so.
    """
    raise NotImplementedError
