"""`EdgeCounts`: how many items passed the edges of a graph of processors, as its tasks tell it."""

from __future__ import annotations

from typing import Any

from dstream.plan.core_of_graphs import Counts

__all__ = ["EdgeCounts"]


class EdgeCounts:
    """Adds up what tasks tell, vertex by vertex."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[list[int], list[int]]] = {}

    def take(self, counts: Counts) -> None:
        """Add what one task has counted."""
        for vertex, (received, sent) in counts.items():
            if vertex not in self._counted:
                self._counted[vertex] = [0] * len(received), [0] * len(sent)
            known = self._counted[vertex]
            for of_edges, more in zip(known, (received, sent), strict=True):
                of_edges[:] = [number + further for number, further in zip(of_edges, more, strict=True)]

    def by_vertex(self) -> dict[str, dict[str, Any]]:
        """Return what the state of a job says of each vertex."""
        return {
            vertex: {"items_out": sum(sent), "items_in_by_edge": received, "items_out_by_edge": sent}
            for vertex, (received, sent) in self._counted.items()
        }
