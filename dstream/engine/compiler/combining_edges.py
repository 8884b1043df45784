"""Edges whose senders accumulate first, so that a shuffle moves what they have gathered in the place of items.

Which ones: those into a vertex whose supplier says how its work is shared (`TwoStages`), that lead to another part of
the graph, and by which all items of a key come to one processor anyway. Before each such edge a vertex is put in, with
the processors of the sender; of a source, with one for each task that reads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from dstream.engine.kernels.graph_processing import FirstStage
from dstream.executor.graph_groups import graph_groups
from dstream.plan.vertex_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.spi.processor_suppliers import ProcessorMetaSupplier, TwoStages

__all__ = ["Combining", "with_first_stages"]


@dataclass(frozen=True)
class Combining:
    """A graph with the vertices that were put in.

    Attributes:
        graph: whose inlets and outlets have the order that they had.
        first_stages: those vertices.
    """

    graph: VertexGraph
    first_stages: tuple[FirstStage, ...]


def with_first_stages(graph: VertexGraph, readers: Sequence[int | None]) -> Combining:
    """Return a graph in which senders accumulate first where that is the same.

    Args:
        graph: whose vertices say how many processors they have.
        readers: how many tasks may read each inlet, in order; None: it is no source, or not read in parallel.
    """
    part_of = {each.name: number for number, part in enumerate(graph_groups(graph)) for each in part.vertices}
    vertices, edges, found = list[GraphVertex](), list(graph.edges), list[FirstStage]()
    for vertex in graph.vertices:
        stages, into, shared = vertex.supplier.two_stages, graph.into(vertex.name), list[int]()
        for edge, senders in _shared(graph, vertex, part_of, readers):
            assert stages is not None, "only such work is shared"
            first = _first_stage(graph, vertex, edge, senders, stages)
            place = edges.index(edge)
            edges[place : place + 1] = _both(edge, first.name, vertex.parallelism)
            vertices.append(first)
            shared.append(edge.destination_ordinal)
            found.append(FirstStage(first.name, vertex.name, shared[-1], len(into), len(graph.out_of(vertex.name))))
        vertices.append(vertex if stages is None or not shared else _second_stage(vertex, stages, shared))
    return Combining(VertexGraph(tuple(vertices), tuple(edges)), tuple(found))


def _shared(
    graph: VertexGraph, vertex: GraphVertex, part_of: Mapping[str, int], readers: Sequence[int | None]
) -> Iterator[tuple[GraphEdge, int]]:
    """Give the edges into a vertex whose senders may do a part of its work, and how many senders there are."""
    stages = vertex.supplier.two_stages
    for edge in graph.into(vertex.name) if stages is not None else ():
        senders = _senders(graph, edge, readers)
        is_far = part_of.get(edge.source) != part_of[vertex.name]
        if stages is not None and senders is not None and is_far and _gathers(edge, vertex, stages):
            yield edge, senders


def _gathers(edge: GraphEdge, vertex: GraphVertex, stages: TwoStages) -> bool:
    """Say whether an edge brings all items of a key to one processor, and what was accumulated of them as well."""
    if edge.order is not None:
        return False
    if vertex.parallelism == 1:
        return True
    if edge.routing is not Routing.PARTITIONED or edge.partitioner is not None or stages.keys is None:
        return False
    return edge.key is stages.keys[edge.destination_ordinal]


def _senders(graph: VertexGraph, edge: GraphEdge, readers: Sequence[int | None]) -> int | None:
    """Return how many tasks send by an edge; None: nothing can be put in front of it."""
    for each in graph.vertices:
        if each.name == edge.source:
            return each.parallelism
    return readers[graph.inlets.index(edge)]


def _first_stage(
    graph: VertexGraph, vertex: GraphVertex, edge: GraphEdge, senders: int, stages: TwoStages
) -> GraphVertex:
    number, step = edge.destination_ordinal, vertex.step
    name = f"{vertex.name} (first stage of edge {number})"
    while name in graph.names:
        name += "'"
    if len(graph.into(vertex.name)) > 1:
        step = dataclasses.replace(step, label=f"{step.label}, inbound edge {number}")
    return GraphVertex(name, ProcessorMetaSupplier.of(stages.first(number)), senders, step)


def _second_stage(vertex: GraphVertex, stages: TwoStages, shared: Sequence[int]) -> GraphVertex:
    return dataclasses.replace(vertex, supplier=ProcessorMetaSupplier.of(stages.second(frozenset(shared))))


def _both(edge: GraphEdge, name: str, processors: int) -> list[GraphEdge]:
    """Return the two edges in the place of one: to the first stage, and from there on."""
    to = GraphEdge(edge.source, edge.source_ordinal, name, 0, queue_size=edge.queue_size)
    routing = Routing.UNICAST if processors == 1 else Routing.PARTITIONED
    key = None if processors == 1 else itemgetter(0)
    on = dataclasses.replace(edge, source=name, source_ordinal=0, routing=routing, key=key, partitioner=None)
    return [to, on]
