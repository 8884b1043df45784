"""Nodes whose items processors emit or take: a graph of one vertex, open at each side. Loaded with the first."""

from __future__ import annotations

from typing import Any

from dstream.plan.operations.calls import FlatMap
from dstream.plan.operations.streams import Node
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import GraphEdge, GraphVertex, VertexGraph
from dstream.plan.steps import SourceLocation, Step
from dstream.processors.blocks import GraphBlock, users_items
from dstream.spi import ProcessorSink, ProcessorSource, ProcessorStreamSource

__all__ = ["OUTSIDE", "emitted", "taken"]


OUTSIDE = ""
"""The name of the upstream and of the downstream vertex; no user's vertex has it."""


def emitted(
    source: ProcessorSource[Any] | ProcessorStreamSource[Any], called: str, where: SourceLocation | None
) -> FlatMap:
    """Return the output of the processors of a source.

    Args:
        source: has them.
        called: the method that the user called.
        where: the source location of that call.
    """
    is_endless = isinstance(source, ProcessorStreamSource)
    step = Step(f"{called}({source!r})", where, 1, 1)
    vertex = GraphVertex(source.name, source.supplier, -1, step, is_endless)
    graph = VertexGraph((vertex,), (GraphEdge(source.name, 0, OUTSIDE, 0),))
    made = ProcessorGraph((), graph, step=Step(f"{called}({source!r})", where))
    return FlatMap(made, users_items, step=Step("", where))


def taken(upstream: Node, sink: ProcessorSink, called: str, where: SourceLocation | None) -> FlatMap:
    """Return a node without items, which ends when the processors of a sink have taken the items of `upstream`.

    Args:
        upstream: the node.
        sink: supplies the processors.
        called: the method that the user called.
        where: the source location of that call.
    """
    vertex = GraphVertex(sink.name, sink.supplier, -1, Step(f".{sink.label}", where, 1, 1))
    graph = VertexGraph((vertex,), (GraphEdge(OUTSIDE, 0, sink.name, 0),))
    made = ProcessorGraph(
        (upstream,),
        graph,
        stage="to_processor",
        is_one_step=True,
        step=Step(f".to_processor({sink.name!r})", where),
    )
    return FlatMap(made, _no_items, step=Step("", where))


def _no_items(block: GraphBlock) -> list[Any]:
    return []
