"""`opened`: a plan whose sources and services are bound to the collections of a context.

A pipeline is written without a context, and knows maps by their names. When a job starts, what holds a name is replaced
by what reads the map of that name.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, TypeVar, cast

from dstream.plan.graphs import GraphVertex, VertexGraph
from dstream.plan.operations.streams import Node
from dstream.plan.walk import fold
from dstream.spi.runtime import OpenedLater
from dstream.spi.sink import Collections

__all__ = ["opened"]


N = TypeVar("N", bound=Node)


def opened(end: N, context: Collections) -> N:
    """Return the same plan, with `OpenedLater` values replaced by opened ones.

    A value that several nodes hold is opened once. Nodes that are shared stay shared, and those that neither hold such
    a value nor read from one that does are the same objects.

    Args:
        end: the last node, with all that it reads from.
        context: has the collections of the storage.
    """
    found: dict[int, Any] = {}
    return cast(N, fold(end, lambda node, inputs: node.reading(inputs, **_opened_values(node, context, found))))


def _opened_values(node: Node, context: Collections, found: dict[int, Any]) -> dict[str, Any]:
    """Return the source or the service of a node, by the name of its field, if it has to be opened."""
    changes: dict[str, Any] = {}
    for name in ("source", "service", "delivery"):
        value = getattr(node, name, None)
        if isinstance(value, OpenedLater):
            if id(value) not in found:
                found[id(value)] = value.opened(context)
            changes[name] = found[id(value)]
    if isinstance(graph := getattr(node, "graph", None), VertexGraph):
        vertices = tuple(_opened_vertex(each, context) for each in graph.vertices)
        if any(map(operator.is_not, vertices, graph.vertices)):
            changes["graph"] = VertexGraph(vertices, graph.edges)
    return changes


def _opened_vertex(vertex: GraphVertex, context: Collections) -> GraphVertex:
    supplier = vertex.supplier.opened(context)
    return vertex if supplier is vertex.supplier else dataclasses.replace(vertex, supplier=supplier)
