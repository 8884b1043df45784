"""The order of the vertices of a graph, and what makes a graph have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dstream.core.edge import Edge
from dstream.core.vertex import Vertex

__all__ = ["in_topological_order", "refuse_gaps"]


def refuse_gaps(vertices: Iterable[Vertex], edges: Sequence[Edge]) -> None:
    """Refuse edges whose ordinals leave one out.

    Raises:
        ValueError: those into or out of a vertex do.
    """
    leaving: dict[str, list[tuple[int, Edge]]] = {}
    arriving: dict[str, list[tuple[int, Edge]]] = {}
    for each in edges:
        assert each.destination is not None
        leaving.setdefault(each.source.name, []).append((each.source_ordinal, each))
        arriving.setdefault(each.destination.name, []).append((each.destination_ordinal, each))
    for vertex in vertices:
        _refuse_gap(leaving.get(vertex.name, []), f"leave {vertex.name!r}")
        _refuse_gap(arriving.get(vertex.name, []), f"lead to {vertex.name!r}")


def _refuse_gap(numbered: list[tuple[int, Edge]], what: str) -> None:
    for expected, (number, edge) in enumerate(sorted(numbered, key=lambda each: each[0])):
        if number != expected:
            raise ValueError(
                f"{edge.described()}: no edge has ordinal {expected} of those that {what}: ordinals count from 0, and "
                "leave none out"
            )


def in_topological_order(vertices: Iterable[Vertex], edges: Sequence[Edge]) -> list[Vertex]:
    """Return each vertex after those from which edges lead to it; otherwise in the order given.

    Raises:
        ValueError: edges make a cycle; the message has its path.
    """
    below: dict[str, list[Vertex]] = {}
    for each in sorted(edges, key=lambda each: each.source_ordinal):
        assert each.destination is not None
        below.setdefault(each.source.name, []).append(each.destination)
    finished: dict[str, Vertex] = {}
    for vertex in reversed(list(vertices)):
        _visit(vertex, below, finished)
    return list(reversed(finished.values()))


def _visit(root: Vertex, below: Mapping[str, Sequence[Vertex]], finished: dict[str, Vertex]) -> None:
    """Add what is below a vertex to those that are finished, and then the vertex: from the end to the beginning."""
    if root.name in finished:
        return
    path = {root.name: root}
    waiting = [iter(reversed(below.get(root.name, ())))]
    while waiting:
        following = next(waiting[-1], None)
        if following is None:
            name, vertex = path.popitem()
            finished[name] = vertex
            waiting.pop()
        elif following.name in path:
            raise ValueError(f"the edges of this graph make a cycle: {_cycle(list(path), following.name)}")
        elif following.name not in finished:
            path[following.name] = following
            waiting.append(iter(reversed(below.get(following.name, ()))))


def _cycle(path: Sequence[str], again: str) -> str:
    return " -> ".join([*path[path.index(again) :], again])
