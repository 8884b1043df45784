"""Which processors of its destination get the items of an edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dstream.plan.vertex_graph import GraphEdge

__all__ = ["EdgeRouter"]


@dataclass(slots=True)
class EdgeRouter:
    """Routes what one processor, or one task, sends by an edge.

    Attributes:
        edge: which one.
        sender: the number of the processor.
        senders: how many there are.
        targets: how many processors the destination has.
    """

    edge: GraphEdge
    sender: int
    senders: int
    targets: int

    def route(self, items: list[Any]) -> list[tuple[int, list[Any]]]:
        """Return the items for each processor that gets some, in order; marks go to every one."""
        raise NotImplementedError
