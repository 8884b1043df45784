"""`VertexGraph`: vertices and edges of a graph of processors, their parallelism and last vertices.

An edge refers to its vertices by their names. One whose source is not among the vertices is an *inlet*, one whose
destination is not among them an *outlet*: so a part of a graph is a graph.

The last vertices of a graph may be a grouping by key whose results go into a map: an engine may compute these where
the map is written, as for a pipeline, without processors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from dstream.base.records import record
from dstream.failures import naming
from dstream.plan.steps import Step
from dstream.spi import identity
from dstream.spi.suppliers import GroupsByKey, ProcessorMetaSupplier

__all__ = [
    "GraphEdge",
    "GraphVertex",
    "LastVertices",
    "Routing",
    "VertexGraph",
    "groups_of",
    "last_vertices",
    "parallelism_of",
    "with_parallelism",
]


class Routing(Enum):
    """The choice of the processors of the destination that get an item.

    `UNICAST`: any one, in turn. `ISOLATED`: one of those that belong to the processor that emitted it alone.
    `PARTITIONED`: the one that has its key. `BROADCAST`: every one.
    """

    UNICAST = "unicast"
    ISOLATED = "isolated"
    PARTITIONED = "partitioned"
    BROADCAST = "broadcast"


@record
class GraphVertex:
    """Processors that are alike.

    Attributes:
        name: unique in its graph.
        supplier: makes the processors.
        parallelism: the number of processors; -1: the engine decides.
        step: its name in messages of failures.
        is_endless: its processors may go on for ever.
    """

    name: str
    supplier: ProcessorMetaSupplier
    parallelism: int
    step: Step
    is_endless: bool = False


@record
class GraphEdge:
    """An edge from one vertex to another.

    Attributes:
        source: the name of the vertex that it leaves.
        source_ordinal: its number among the edges that leave that vertex, from 0.
        destination: the name of the vertex that it leads to.
        destination_ordinal: its number among the edges that lead there.
        priority: edges with a lower one are read to their end first.
        routing: which processors get an item.
        key: returns the key of an item, for `PARTITIONED`.
        partitioner: takes a key and the number of processors, and returns the number of one; None: the default of all
            edges.
        order: returns the key by which the items of several processors are merged, each of which emits them in its
            order; None: in any order.
        is_distributed: the user set it; it changes nothing.
        queue_size: how many items wait in the executor between two processors before the first of them has to.
        carries_blocks: it connects two parts of one graph: it transports blocks, with the number of the
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
        """Whether the receiver distinguishes the processors, or the parts of a source, that sent an item."""
        return self.order is not None or self.routing is Routing.ISOLATED

    @property
    def way(self) -> tuple[str, int, str, int]:
        """The identity of the edge, also where parts of the graph have it."""
        return self.source, self.source_ordinal, self.destination, self.destination_ordinal


@record(slots=False, eq=False)
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
        """Whether any of its processors may run for ever."""
        return any(each.is_endless for each in self.vertices)

    @cached_property
    def inlets(self) -> tuple[GraphEdge, ...]:
        """The edges from outside the graph, in the order of `edges`, in which an engine numbers its inputs."""
        return tuple(each for each in self.edges if each.source not in self.names)

    @cached_property
    def outlets(self) -> tuple[GraphEdge, ...]:
        """The edges that lead outside, in the order of `edges`, by which an engine numbers the output."""
        return tuple(each for each in self.edges if each.destination not in self.names)

    def in_one_step(self, step: Step) -> VertexGraph:
        """Return the graph whose vertices name themselves as the call that made them."""
        return VertexGraph(tuple(dataclasses.replace(each, step=step) for each in self.vertices), self.edges)

    def into(self, vertex: str) -> list[GraphEdge]:
        """Return the edges that lead to a vertex, by their ordinals."""
        found = (each for each in self.edges if each.destination == vertex)
        return sorted(found, key=lambda each: each.destination_ordinal)

    def out_of(self, vertex: str) -> list[GraphEdge]:
        """Return the edges that leave a vertex, by their ordinals."""
        return sorted((each for each in self.edges if each.source == vertex), key=lambda each: each.source_ordinal)


def with_parallelism(graph: VertexGraph, suggested: int) -> VertexGraph:
    """Return the same graph, in which every vertex has its number of processors.

    Args:
        graph: where a vertex may leave it to its supplier, or to the engine.
        suggested: by the engine.

    Raises:
        ValueError: what a supplier prefers is no number of processors.
    """
    vertices = (
        each if each.parallelism != -1 else dataclasses.replace(each, parallelism=_of(each, suggested))
        for each in graph.vertices
    )
    return VertexGraph(tuple(vertices), graph.edges)


def _of(vertex: GraphVertex, suggested: int) -> int:
    preferred = vertex.supplier.preferred_local_parallelism
    if preferred == -1:
        return suggested
    if type(preferred) is not int or preferred < 1:
        # The supplier may be the user's, so the error names the vertex.
        with naming(vertex.step):
            raise ValueError(f"preferred_local_parallelism of a supplier must be at least 1, or -1: {preferred!r}")
    return preferred


def parallelism_of(graph: VertexGraph) -> dict[str, int]:
    """Return the number of processors of each vertex, by its name, of a graph in which each vertex has one."""
    return {each.name: each.parallelism for each in graph.vertices}


class LastVertices(NamedTuple):
    """The last vertices of a graph.

    Attributes:
        before: the graph without them; it may be empty.
        first: accumulates the items of the only edge out of that; it may be the last one.
        last: combines and finishes.
    """

    before: VertexGraph
    first: GraphVertex
    last: GraphVertex


def last_vertices(graph: VertexGraph) -> LastVertices | None:
    """Return the vertices that only the one outlet reads, and that emit one entry for each key; None if there are none.

    Args:
        graph: a graph whose vertices have their numbers of processors.
    """
    last = _last(graph)
    if last is None:
        return None
    first = _first(graph, last) or last
    before = _without(graph, {first.name, last.name})
    if before.vertices and not before.outlets:
        return None  # The remaining graph uses its input in another way.
    return LastVertices(before, first, last)


def _last(graph: VertexGraph) -> GraphVertex | None:
    """Return the vertex that only the write reads, if one edge brings all items of a key to one processor."""
    if len(graph.outlets) != 1:
        return None
    (vertex,) = (each for each in graph.vertices if each.name == graph.outlets[0].source)
    is_last = vertex.supplier.groups is not None and len(graph.out_of(vertex.name)) == 1
    edge = _only_edge(graph, vertex) if is_last else None
    return vertex if edge is not None and _gathers(edge, vertex) else None


def _gathers(edge: GraphEdge, vertex: GraphVertex) -> bool:
    if vertex.parallelism == 1:
        return True
    # By identity: two functions return equal keys for certain only if they are the same object.
    return edge.routing is Routing.PARTITIONED and edge.partitioner is None and edge.key is groups_of(vertex).key


def _first(graph: VertexGraph, last: GraphVertex) -> GraphVertex | None:
    """Return the vertex that accumulates for the last one alone; any of its processors may take any item."""
    (edge,) = graph.into(last.name)
    for vertex in graph.vertices if groups_of(last).of_containers else ():
        if vertex.name == edge.source and len(graph.out_of(vertex.name)) == 1:
            into, groups = _only_edge(graph, vertex), vertex.supplier.groups
            is_first = groups is not None and groups.operation.finish is identity and not groups.of_containers
            # A broadcast brings an item to each processor, so several of them would count it several times.
            is_once = into is not None and (into.routing is not Routing.BROADCAST or vertex.parallelism == 1)
            return vertex if is_first and is_once else None
    return None


def _only_edge(graph: VertexGraph, vertex: GraphVertex) -> GraphEdge | None:
    """Return the edge into a vertex, if it is the only one, and merges nothing by an order."""
    into = graph.into(vertex.name)
    return into[0] if len(into) == 1 and into[0].order is None else None


def _without(graph: VertexGraph, names: set[str]) -> VertexGraph:
    """Return the graph without some vertices."""
    vertices = tuple(each for each in graph.vertices if each.name not in names)
    left = {each.name for each in vertices}
    return VertexGraph(
        vertices, tuple(each for each in graph.edges if not {each.source, each.destination}.isdisjoint(left))
    )


def groups_of(vertex: GraphVertex) -> GroupsByKey:
    """Return the output of one of these vertices."""
    groups = vertex.supplier.groups
    assert groups is not None, "the vertex was chosen for them"
    return groups
