"""The node of a graph of processors: a DAG of the user's, or the one processor of a `custom_transform`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from dstream.plan import core_of_graphs
from dstream.plan.core import Core, node
from dstream.plan.core_of_nodes import core_of
from dstream.plan.nodes import FlatMap, Node
from dstream.plan.steps import Step
from dstream.plan.vertex_graph import VertexGraph
from dstream.spi.state_operator import EdgeCounts

__all__ = ["ItemsOfOutlet", "Processing"]


@node
class Processing(Node):
    """What a graph of processors makes of its inputs: blocks of items, each by one outlet of the graph.

    Attributes:
        upstreams: one for each inlet of the graph, in order.
        name: the method that the user called.
        given: what the user gave to it, in short.
        is_one_step: its one vertex is a step of the chain that the user wrote, and names itself so.
        guarantee: what processors are told.
        known_as: the name of its stage, by which its state is found again; the plan of a pipeline fills it in.
        take: is called in the driver with the counts of each task, once; a job fills it in.
    """

    upstreams: tuple[Node, ...]
    graph: VertexGraph
    name: str
    given: str = ""
    is_one_step: bool = False
    guarantee: str = "none"
    known_as: str = ""
    take: Callable[[EdgeCounts], object] | None = None

    def inputs(self) -> tuple[Node, ...]:
        return self.upstreams

    def label(self) -> str:
        return f".{self.name}({self.given})" if self.is_one_step else f"{self.name}({self.given})"


@node
class ItemsOfOutlet(FlatMap):
    """The items of the blocks of one outlet; the user wrote no call for it."""

    def label(self) -> str:
        return ""


# Few programs have this node, so `rewrite` learns of it here.


@core_of.register
def _(node: Processing, inputs: Sequence[Core], step: Step) -> Core:
    graph = _of_one_step(node.graph, step) if node.is_one_step else node.graph
    known_as = node.known_as or (node.name if node.is_one_step else "")
    return core_of_graphs.Processing(tuple(inputs), graph, node.guarantee, known_as, node.take, step=step)


def _of_one_step(graph: VertexGraph, step: Step) -> VertexGraph:
    """Return the graph whose vertices name themselves as the call that made them."""
    return VertexGraph(tuple(dataclasses.replace(each, step=step) for each in graph.vertices), graph.edges)
