"""`GraphOperator`: lets a part of a graph run epoch by epoch, as an operator whose state outlives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dstream.executor.arrivals_of_graphs import GraphBlock
from dstream.executor.edge_routing import EdgeRouter, router_of
from dstream.executor.graph_shard import BlocksOfShard, GraphShard
from dstream.memory import pieces
from dstream.plan.vertex_graph import GraphEdge, VertexGraph
from dstream.spi.state_operator import Moment, Partials
from dstream.values.event_time import Timed

__all__ = ["GraphOperator"]

_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class GraphOperator:
    """The `StateOperator` of a part of a graph: its shard `k` is the processors `k` of its vertices.

    Items come as pairs `(timestamp, item)`, whose timestamp is not looked at; by an edge that carries blocks, the item
    is a `GraphBlock`. It gives pairs `(None, GraphBlock)`. If time reaches `END_OF_TIME`, all inlets have ended.

    Attributes:
        graph: a part, as `graph_groups` gives it.
        shards: how many processors each vertex has; the job keeps the number with which it began.
        ticks: its processors have something to do in an epoch without items, from the first one on: it has sources, or
            a processor that overrides `tick`.
        guarantee: what processors are told.
    """

    graph: VertexGraph
    shards: int
    ticks: bool = False
    guarantee: str = "exactly-once"

    kind = "graph"

    @property
    def signature(self) -> tuple[Any, ...]:
        """What state depends on: the names of the vertices, and how many processors each has."""
        return (self.shards, *(each.name for each in self.graph.vertices))

    @property
    def inputs(self) -> int:
        """One for each inlet."""
        return len(self.graph.inlets)

    def partial(self, number: int, items: Iterator[Timed], moment: Moment, shards: int) -> Partials:
        """Route the items of an inlet: for each shard, blocks with the number of their sender.

        Raises:
            Exception: what the key function of the edge raised.
        """
        edge = self.graph.inlets[number]
        counted = _Counted(items, edge.carries_blocks)
        found: dict[int, BlocksOfShard] = {}
        routers: dict[int, EdgeRouter] = {}
        for sender, block in counted:
            # An epoch with few items begins with another processor than the one before it.
            router = routers.setdefault(sender, router_of(edge, _first(edge, sender, moment), shards, shards))
            for target, part in router.route(block):
                found.setdefault(target, []).append((sender, part))
        return Partials(found, counted.items, 0)

    def new(self) -> GraphShard:
        """Return the processors of one number, which have seen nothing."""
        return GraphShard(self.graph, self.shards, self.ticks, self.guarantee)


def _first(edge: GraphEdge, sender: int, moment: Moment) -> int:
    return sender if edge.carries_blocks else moment.epoch


class _Counted:
    """Gives blocks with their senders, and counts the items in them."""

    def __init__(self, items: Iterator[Timed], are_blocks: bool) -> None:
        self.items = 0
        self._left = items
        self._are_blocks = are_blocks

    def __iter__(self) -> Iterator[tuple[int, list[Any]]]:
        if not self._are_blocks:
            for piece in pieces((item for _, item in self._left), _BLOCK):
                self.items += len(piece)
                yield 0, piece
            return
        for _, block in self._left:
            assert isinstance(block, GraphBlock), "another part of the graph sends blocks"
            self.items += len(block.items)
            yield block.sender, block.items
