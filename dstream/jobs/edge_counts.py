"""How many items passed the edges of a graph of processors, as its tasks tell it."""

from __future__ import annotations

from typing import Any

from dstream.spi.state_operator import EdgeCounts

__all__ = ["add_edges"]


def add_edges(known: dict[str, dict[str, Any]], counts: EdgeCounts) -> None:
    """Add what one task has counted to what the state of a job says of each vertex.

    Args:
        known: by the name of the vertex; it is changed.
        counts: of the task.
    """
    for vertex, (received, sent) in counts.items():
        of_vertex = known.setdefault(vertex, {})
        for name, more in (("items_in_by_edge", received), ("items_out_by_edge", sent)):
            before = of_vertex.get(name) or [0] * len(more)
            of_vertex[name] = [number + further for number, further in zip(before, more, strict=True)]
        of_vertex["items_out"] = sum(of_vertex["items_out_by_edge"])
