"""`VertexGraph`: the vertices and edges of a graph of processors as a value, which plans hold and engines run.

An edge knows its vertices by their names. One whose source is not among the vertices is an *inlet*, one whose
destination is not among them an *outlet*: so a part of a graph is a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from dstream.plan.steps import Step
from dstream.spi.processor_suppliers import ProcessorMetaSupplier

__all__ = ["GraphEdge", "GraphVertex", "Routing", "VertexGraph"]


class Routing(Enum):
    """Which processors of the destination get an item.

    `UNICAST`: any one, in turn. `ISOLATED`: one of those that belong to the processor that emitted it alone.
    `PARTITIONED`: the one that has its key. `BROADCAST`: every one.
    """

    UNICAST = "unicast"
    ISOLATED = "isolated"
    PARTITIONED = "partitioned"
    BROADCAST = "broadcast"


@dataclass(frozen=True, slots=True)
class GraphVertex:
    """Processors that are alike.

    Attributes:
        name: unique in its graph.
        supplier: makes the processors.
        parallelism: how many there are; -1: as many as the engine suggests.
        step: how it names itself when it fails.
        is_endless: its processors may go on for ever.
    """

    name: str
    supplier: ProcessorMetaSupplier
    parallelism: int
    step: Step
    is_endless: bool = False


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A way from one vertex to another.

    Attributes:
        source: the name of the vertex that it leaves.
        source_ordinal: its number among the edges that leave that vertex, from 0.
        destination: the name of the vertex that it leads to.
        destination_ordinal: its number among the edges that lead there.
        priority: edges with a lower one are read to their end first.
        routing: which processors get an item.
        key: gives the key of an item, for `PARTITIONED`.
        partitioner: takes a key and how many processors there are, and gives the number of one; None: the one that all
            edges share.
        order: gives the key by which the items of several processors are merged, each of which emits them in its order;
            None: in any order.
        is_distributed: the user said so; it changes nothing.
        queue_size: how many items wait in the executor between two processors before the first of them has to.
        carries_blocks: it connects two parts of one graph: what comes by it are blocks, with the number of the
            processor that sends them.
    """

    source: str
    source_ordinal: int
    destination: str
    destination_ordinal: int
    priority: int = 0
    routing: Routing = Routing.UNICAST
    key: Callable[[Any], Any] | None = None
    partitioner: Callable[[Any, int], int] | None = None
    order: Callable[[Any], Any] | None = None
    is_distributed: bool = False
    queue_size: int = 1024
    carries_blocks: bool = False

    @property
    def knows_senders(self) -> bool:
        """Whether it matters which processor, or which part of a source, an item comes from."""
        return self.order is not None or self.routing is Routing.ISOLATED

    @property
    def way(self) -> tuple[str, int, str, int]:
        """What it is known by, also where parts of the graph have it."""
        return self.source, self.source_ordinal, self.destination, self.destination_ordinal


@dataclass(frozen=True, eq=False)
class VertexGraph:
    """Vertices and edges, without a cycle.

    Attributes:
        vertices: in topological order.
        edges: those inside, and the inlets and outlets.
    """

    vertices: tuple[GraphVertex, ...]
    edges: tuple[GraphEdge, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the vertices."""
        return frozenset(each.name for each in self.vertices)

    @property
    def is_endless(self) -> bool:
        """Whether some of its processors may go on for ever."""
        return any(each.is_endless for each in self.vertices)

    @cached_property
    def inlets(self) -> tuple[GraphEdge, ...]:
        """The edges that come from outside, in the order of `edges`: an engine numbers its inputs so."""
        return tuple(each for each in self.edges if each.source not in self.names)

    @cached_property
    def outlets(self) -> tuple[GraphEdge, ...]:
        """The edges that lead outside, in the order of `edges`: an engine numbers what it gives so."""
        return tuple(each for each in self.edges if each.destination not in self.names)

    def into(self, vertex: str) -> list[GraphEdge]:
        """Return the edges that lead to a vertex, by their ordinals."""
        found = (each for each in self.edges if each.destination == vertex)
        return sorted(found, key=lambda each: each.destination_ordinal)

    def out_of(self, vertex: str) -> list[GraphEdge]:
        """Return the edges that leave a vertex, by their ordinals."""
        return sorted((each for each in self.edges if each.source == vertex), key=lambda each: each.source_ordinal)
