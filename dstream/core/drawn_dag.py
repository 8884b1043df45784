"""A graph as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dstream.core.edge import Edge
from dstream.core.vertex import Vertex

__all__ = ["as_lines"]


def as_lines(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> str:
    """Return how many vertices there are, and a line for each, with the edges that lead to it below."""
    count = f"DAG with {len(vertices)} {'vertex' if len(vertices) == 1 else 'vertices'}"
    return "\n".join([count, *_lines(vertices, edges)])


def _lines(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> Iterator[str]:
    for vertex in vertices:
        parallelism = "" if vertex.parallelism == -1 else f"  local_parallelism={vertex.parallelism}"
        yield f"  {vertex.name}{parallelism}"
        inbound = (each for each in edges if each.destination is vertex)
        for edge in sorted(inbound, key=lambda each: each.destination_ordinal):
            source = f"from {edge.source.name}({edge.source_ordinal}) to ({edge.destination_ordinal})"
            yield f"    {', '.join([source, *edge.how()])}"
