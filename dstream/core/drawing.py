"""A graph as a string, and in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dstream.core.vertices import Edge, Vertex
from dstream.explain.text import quoted

__all__ = ["as_digraph", "as_lines"]


def as_lines(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> str:
    """Return how many vertices there are, and a line for each, with the edges that lead to it below."""
    count = f"DAG with {len(vertices)} {'vertex' if len(vertices) == 1 else 'vertices'}"
    return "\n".join([count, *_lines(vertices, edges)])


def _lines(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> Iterator[str]:
    for vertex in vertices:
        yield "  ".join(["", vertex.name, *vertex.said()])
        inbound = (each for each in edges if each.destination is vertex)
        for edge in sorted(inbound, key=lambda each: each.destination_ordinal):
            source = f"from {edge.source.name}({edge.source_ordinal}) to {vertex.name}({edge.destination_ordinal})"
            yield f"    {', '.join([source, *edge.how()])}"


def as_digraph(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> str:
    """Return a digraph: a box for each vertex, and an edge for each edge, with its options."""
    numbers = {id(each): number for number, each in enumerate(vertices)}
    lines = ["rankdir=TB;", 'node [shape=box, fontname="monospace"];']
    for number, vertex in enumerate(vertices):
        tooltip = str(vertex.where or vertex.name)
        lines.append(f"v{number} [label={quoted(vertex.name, *vertex.said())}, tooltip={quoted(tooltip)}];")
    for edge in edges:
        ends = f"v{numbers[id(edge.source)]} -> v{numbers[id(edge.destination)]}"
        ordinals = f"{edge.source_ordinal} to {edge.destination_ordinal}"
        lines.append(f"{ends} [label={quoted(ordinals, *edge.how())}];")
    return "\n".join(["digraph dstream {", *(f"  {line}" for line in lines), "}"])
