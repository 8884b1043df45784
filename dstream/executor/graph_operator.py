"""`GraphOperator`: lets a part of a graph run epoch by epoch, as an operator whose state outlives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dstream.executor.arrivals_of_graphs import GraphBlock, block_of
from dstream.executor.edge_routing import EdgeRouter, router_of
from dstream.executor.graph_shard import BlocksOfShard, GraphShard
from dstream.executor.processor_logs import ProcessorLogs
from dstream.memory import pieces
from dstream.plan.vertex_graph import GraphEdge, Routing, VertexGraph
from dstream.spi.state_operator import Moment, Partials
from dstream.values.event_time import Timed

__all__ = ["GraphOperator"]

_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class GraphOperator:
    """The `StateOperator` of a part of a graph: its shard `k` is the processors `k` of its vertices.

    Items come as pairs `(timestamp, item)`, whose timestamp is not looked at; by an edge that carries blocks, the item
    is a `GraphBlock`. It gives pairs `(None, GraphBlock)`. By the other inlets, processors are told the watermarks of
    the step, and which inputs have ended.

    Attributes:
        graph: a part, as `graph_groups` gives it.
        shards: how many processors each vertex has; the job keeps the number with which it began.
        senders: how many processors send by each inlet, in order; 1 unless it carries blocks.
        guarantee: what processors are told.
        logs: lets processors be heard where they run, as the caller hears them.
    """

    graph: VertexGraph
    shards: int
    senders: tuple[int, ...]
    guarantee: str = "exactly-once"
    logs: ProcessorLogs = field(default_factory=ProcessorLogs, compare=False)

    kind = "graph"
    ticks = True

    @property
    def signature(self) -> tuple[Any, ...]:
        """What state depends on: how many processors each vertex has, and those before it, and their names."""
        return (self.shards, *self.senders, *(each.name for each in self.graph.vertices))

    @property
    def is_endless(self) -> bool:
        """Whether some of its processors may go on for ever, to which nothing leads."""
        return self.graph.is_endless

    @property
    def inputs(self) -> int:
        """One for each inlet."""
        return len(self.graph.inlets)

    def partial(self, number: int, items: Iterator[Timed], moment: Moment, shards: int) -> Partials:
        """Route the items of an inlet: for each shard, blocks with the number of their sender.

        Raises:
            Exception: what the key function of the edge raised.
        """
        edge, senders = self.graph.inlets[number], self.senders[number]
        counted = _Counted(items, edge.carries_blocks)
        found: dict[int, BlocksOfShard] = {}
        routers: dict[int, EdgeRouter] = {}
        for sender, block in counted:
            if sender not in routers:
                routers[sender] = router_of(edge, _first(edge, sender, moment), senders, shards)
            for target, part in routers[sender].route(block):
                found.setdefault(target, []).append((sender, part))
        return Partials(found, counted.items, 0)

    def new(self) -> GraphShard:
        """Return the processors of one number, which have seen nothing."""
        self.logs.begin()
        return GraphShard(self.graph, self.shards, self.senders, self.guarantee)


def _first(edge: GraphEdge, sender: int, moment: Moment) -> int:
    """Return where dealing out begins: an epoch with few items begins with another processor than the one before it."""
    return moment.epoch if edge.routing is Routing.UNICAST and not edge.carries_blocks else sender


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
                yield 0, block_of(piece)
            return
        for _, block in self._left:
            assert isinstance(block, GraphBlock), "another part of the graph sends blocks"
            self.items += len(block.items)
            yield block.sender, block.items
