"""Processors of the user's as a step of a pipeline, by `custom_transform`, and as its end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from dstream.executor.arrivals_of_graphs import users_items
from dstream.plan import Node, call_site
from dstream.plan.nodes_of_graphs import ItemsOfOutlet, Processing
from dstream.plan.steps import Step
from dstream.plan.vertex_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.plan.where import Where
from dstream.spi import Sink
from dstream.spi.processor_suppliers import AnySupplier, meta_supplier
from dstream.stream.by_processors import OUTSIDE
from dstream.stream.stream_arguments import kind_of
from dstream.stream.writing import ended

__all__ = ["before_sink", "known_as", "transformed", "with_processors"]


def transformed(
    upstream: Node, name: str, supplier: AnySupplier, called: str, key: Callable[[Any], Any] | None = None
) -> Node:
    """Return what processors of a supplier make of the items of a node.

    Args:
        upstream: the node.
        name: that of the stage.
        supplier: makes the processors.
        called: the method, as the user wrote it up to its arguments.
        key: items of equal keys come to one processor; None: each comes to any.

    Raises:
        TypeError: the name is no str, or the supplier none.
        ValueError: the name is empty.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {kind_of(name)}")
    if not name.strip():
        raise ValueError("name must not be empty")
    where = call_site()
    vertex = GraphVertex(name, meta_supplier(supplier), -1, Step(f"vertex {name!r}", where, 1, 1))
    routing = Routing.UNICAST if key is None else Routing.PARTITIONED
    edges = GraphEdge(OUTSIDE, 0, name, 0, routing=routing, key=key), GraphEdge(name, 0, OUTSIDE, 0)
    graph = VertexGraph((vertex,), edges)
    blocks = Processing((upstream,), graph, called, repr(name), is_one_step=True, where=where)
    return ItemsOfOutlet(blocks, users_items, where=where)


def before_sink(node: Node, sink: Sink[Any, Any], where: Where | None) -> Node:
    """Return what comes to a sink of the items of a node: nothing, where its processors take them before."""
    return ended(node, sink, None, "write_to", where)[0]


def known_as(node: Processing, stage: str) -> Processing:
    """Return the same under the name of its stage, which its one vertex has then: what is counted goes by that."""
    (vertex,) = node.graph.vertices
    edges = (
        dataclasses.replace(
            each,
            source=stage if each.source == vertex.name else each.source,
            destination=stage if each.destination == vertex.name else each.destination,
        )
        for each in node.graph.edges
    )
    graph = VertexGraph((dataclasses.replace(vertex, name=stage),), tuple(edges))
    return dataclasses.replace(node, graph=graph, known_as=stage)


def with_processors(node: Processing, count: int) -> Processing:
    """Return the same with so many processors."""
    vertices = tuple(dataclasses.replace(each, parallelism=count) for each in node.graph.vertices)
    return dataclasses.replace(node, graph=VertexGraph(vertices, node.graph.edges))
