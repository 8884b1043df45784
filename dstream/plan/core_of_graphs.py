"""The core operation of graphs of processors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from dstream.failures import is_our_name
from dstream.plan.core import Core, node
from dstream.plan.steps import Step

if TYPE_CHECKING:  # Few programs have graphs, and every one loads this module.
    from dstream.plan.vertex_graph import VertexGraph
    from dstream.spi.state_operator import EdgeCounts

__all__ = ["Processing", "functions_of_graph"]


@node
class Processing(Core):
    """What a graph of processors makes of its inputs: blocks `(number of the outlet, number of the processor, items)`.

    Watermarks and marks are among the items of a block. Who reads one outlet takes the items of its blocks.

    Attributes:
        upstreams: one for each inlet of the graph, in order.
        graph: the vertices and edges.
        guarantee: what processors are told.
        stage: the name under which its state is found again; empty: each part has the name of its first vertex.
        take: is called in the driver with the counts of each task, once.
    """

    upstreams: tuple[Core, ...]
    graph: VertexGraph
    guarantee: str = "none"
    stage: str = ""
    take: Callable[[EdgeCounts], object] | None = None

    def inputs(self) -> tuple[Core, ...]:
        return self.upstreams

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, upstreams=tuple(inputs))


def functions_of_graph(graph: VertexGraph) -> Iterator[tuple[Step, Any]]:
    """Give what of a graph goes to the workers, with the vertex that it belongs to; an edge belongs to its end."""
    steps = {each.name: each.step for each in graph.vertices}
    for vertex in graph.vertices:
        if is_our_name(type(vertex.supplier).__module__):  # One of the user's stays in the driver.
            yield vertex.step, vertex.supplier
    for edge in graph.edges:
        step = steps.get(edge.destination) or steps[edge.source]
        yield from ((step, each) for each in (edge.key, edge.partitioner, edge.order) if each is not None)
