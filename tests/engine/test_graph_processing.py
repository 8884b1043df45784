"""A graph of processors as an operation of a plan, on both engines."""

from __future__ import annotations

from typing import Any

import pytest

import dstream as ds
from dstream.errors import SerializationError
from dstream.executor.arrivals_of_graphs import items_of_outlet
from dstream.plan import Node, Read, ToList, rewrite
from dstream.plan.capture_checks import check_captures
from dstream.plan.nodes_of_graphs import Processing
from dstream.plan.properties import is_bounded, is_ordered
from dstream.plan.steps import Step
from dstream.plan.vertex_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext
from dstream.spi.processor_suppliers import ProcessorMetaSupplier
from sources import Items


class Numbered(Processor):
    """Emits each item with the ordinal of its edge and the number of the processor."""

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self.outbox, self.context = outbox, context

    def process(self, ordinal: int, inbox: Inbox) -> None:
        while len(inbox) and self.outbox.offer((ordinal, self.context.index, inbox.peek())):
            inbox.remove()


def vertex(name: str, create: Any, parallelism: int = -1) -> GraphVertex:
    """Return a vertex of processors that a function makes."""
    return GraphVertex(name, ProcessorMetaSupplier.of(create), parallelism, Step(f"vertex {name!r}", None, 1, 1))


def read(*items: Any) -> Node:
    """Return the node of a source in two parts."""
    return Read(Items(items, 2), "source")


def listed(context: ds.Context, graph: VertexGraph, *upstreams: Node) -> list[Any]:
    """Return the items of the first outlet."""
    end = ToList(Processing(upstreams, graph, "dag"))
    return list(items_of_outlet(0, context.running_engine().submit(rewrite(end)).result()))


def test_a_graph_gives_what_its_processors_make_of_its_inputs(engine: Any) -> None:
    """Items of a key come to one processor."""
    edges = (
        GraphEdge("in", 0, "a", 0, routing=Routing.PARTITIONED, key=lambda item: item % 3),
        GraphEdge("a", 0, "out", 0),
    )

    found = listed(engine.context, VertexGraph((vertex("a", Numbered, 3),), edges), read(*range(30)))

    assert sorted(item for _, _, item in found) == list(range(30))
    assert len({(item % 3, index) for _, index, item in found}) == 3


def test_an_input_of_an_earlier_priority_is_read_to_its_end_first(engine: Any) -> None:
    """Whatever the order of the ordinals is."""
    edges = (
        GraphEdge("late", 0, "a", 0, priority=1),
        GraphEdge("early", 0, "a", 1, priority=-1),
        GraphEdge("a", 0, "out", 0),
    )

    found = listed(engine.context, VertexGraph((vertex("a", Numbered, 1),), edges), read(1, 2), read(3, 4))

    assert [item for _, _, item in found] == [3, 4, 1, 2]


def test_the_items_of_a_graph_end_with_those_of_its_inputs_and_have_no_order() -> None:
    """As processors run side by side, nobody promises an order."""
    edges = GraphEdge("in", 0, "a", 0), GraphEdge("a", 0, "out", 0)

    core = rewrite(Processing((read(1),), VertexGraph((vertex("a", Numbered),), edges), "dag"))

    assert is_bounded(core)
    assert not is_ordered(core)


def test_what_a_supplier_captures_is_checked() -> None:
    """The refusal names the vertex."""
    import threading

    lock = threading.Lock()
    graph = VertexGraph((vertex("a", lambda: lock),), (GraphEdge("in", 0, "a", 0),))

    with pytest.raises(SerializationError, match=r"vertex 'a'.*'lock'"):
        check_captures(rewrite(Processing((read(1),), graph, "dag")))
