"""`GraphOperator`: lets a part of a graph run epoch by epoch, as an operator whose state outlives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dstream.plan.vertex_graph import VertexGraph
from dstream.spi.state_operator import Moment, Partials, ShardState
from dstream.values.event_time import Timed

__all__ = ["GraphOperator"]


@dataclass(frozen=True, slots=True)
class GraphOperator:
    """The `StateOperator` of a part of a graph: its shard `k` is the processors `k` of its vertices.

    Items come as pairs `(timestamp, item)`, whose timestamp is not looked at; by an edge that carries blocks, the item is
    a `GraphBlock`. It gives pairs `(None, GraphBlock)`. A job that ends lets time reach `END_OF_TIME` in its last epoch.

    Attributes:
        graph: a part, as `graph_groups` gives it.
        shards: how many processors each vertex has; the job keeps the number with which it began.
        guarantee: what processors are told.
    """

    graph: VertexGraph
    shards: int
    guarantee: str = "exactly-once"

    kind = "graph"

    @property
    def signature(self) -> tuple[Any, ...]:
        """What state depends on."""
        raise NotImplementedError

    @property
    def inputs(self) -> int:
        """One for each inlet."""
        return len(self.graph.inlets)

    def partial(self, number: int, items: Iterator[Timed], moment: Moment, shards: int) -> Partials:
        """Route the items of an inlet."""
        raise NotImplementedError

    def new(self) -> ShardState:
        """Return the processors of one number, which have seen nothing."""
        raise NotImplementedError
