"""A graph of processors as an operation of a plan, on both engines."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

import dstream as ds
from dstream.base.pickling import dumps
from dstream.engine.tasks.processors import ReadArrivals
from dstream.engine.tasks.rows import ITEMS, LAST, Row
from dstream.errors import EngineError, SerializationError
from dstream.operators.state.watermarks import receipt_step
from dstream.plan import Node, Read, ToList, rewrite
from dstream.plan.capture_checks import check_captures
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import GraphEdge, GraphVertex, Routing, VertexGraph, with_parallelism
from dstream.plan.properties import is_bounded, is_ordered
from dstream.plan.steps import Step
from dstream.processors.blocks import GraphArrival, items_of_outlet
from dstream.processors.tasks import ProcessorNumbers, RunsGraph
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext
from dstream.spi.suppliers import MetaSupplierContext, ProcessorMetaSupplier, ProcessorSupplier
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
    return Read(Items(items, 2), step=Step("source"))


def listed(context: ds.Context, graph: VertexGraph, *upstreams: Node) -> list[Any]:
    """Return the items of the first outlet."""
    end = ToList(ProcessorGraph(upstreams, graph, step=Step("dag()")))
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


@pytest.mark.parametrize("parallelism", [1, 2])
def test_an_ordered_edge_merges_the_partitions_of_a_source(engine: Any, parallelism: int) -> None:
    """Each of which has its items in that order; of equal ones, those of the first partition come first."""
    in_parts = Read(Items(["b1", "d1", "f1", "a2", "b2", "e2", "b3", "c3", "g3"], 3), step=Step("source"))
    edges = (
        GraphEdge("in", 0, "a", 0, routing=Routing.BROADCAST, order=lambda item: item[0]),
        GraphEdge("a", 0, "out", 0),
    )

    found = listed(engine.context, VertexGraph((vertex("a", Numbered, parallelism),), edges), in_parts)

    for each in range(parallelism):
        items = [item for _, index, item in found if index == each]
        assert items == ["a2", "b1", "b2", "b3", "c3", "d1", "e2", "f1", "g3"]


class Counting(Processor):
    """Emits at its end how many items came by each edge."""

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self.outbox, self.index, self.counts = outbox, context.index, [0, 0]

    def process(self, ordinal: int, inbox: Inbox) -> None:
        self.counts[ordinal] += len(inbox.drain())

    def complete(self) -> bool:
        return self.outbox.offer((self.index, *self.counts))


def test_items_go_from_part_to_part_of_a_graph(engine: Any) -> None:
    """By key to three processors, from there to both of two others."""
    vertices = vertex("a", Numbered, 3), vertex("b", Counting, 2)
    edges = (
        GraphEdge("in", 0, "a", 0, routing=Routing.PARTITIONED, key=lambda item: item),
        GraphEdge("a", 0, "b", 0, routing=Routing.BROADCAST),
        GraphEdge("b", 0, "out", 0),
    )

    found = listed(engine.context, VertexGraph(vertices, edges), read(*range(5000)))

    assert sorted(found) == [(0, 5000, 0), (1, 5000, 0)]


def test_a_vertex_may_send_to_several_parts_and_out_of_the_graph(engine: Any) -> None:
    """Each of them gets all items, once."""
    vertices = vertex("a", Numbered, 2), vertex("b", Counting, 3), vertex("c", Counting, 1)
    edges = (
        GraphEdge("a", 0, "out", 0),
        GraphEdge("in", 0, "a", 0),
        GraphEdge("a", 1, "b", 0, routing=Routing.PARTITIONED, key=lambda each: each[2]),
        GraphEdge("a", 2, "c", 0),
        GraphEdge("b", 0, "c", 1),
        GraphEdge("c", 0, "counts", 0),
    )
    end = ToList(ProcessorGraph((read(*range(100)),), VertexGraph(vertices, edges), step=Step("dag()")))

    blocks = engine.context.running_engine().submit(rewrite(end)).result()

    assert sorted(item for _, _, item in items_of_outlet(0, blocks)) == list(range(100))
    assert list(items_of_outlet(1, blocks)) == [(0, 100, 3)]


class Own(Processor):
    """Emits its number."""

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        self.outbox, self.index = outbox, context.index

    def complete(self) -> bool:
        return self.outbox.offer(self.index)


def test_a_graph_may_read_nothing(engine: Any) -> None:
    """Each of its sources runs as many processors as it has."""
    vertices = vertex("a", Own, 3), vertex("b", Counting, 2)
    edges = GraphEdge("a", 0, "b", 0, routing=Routing.BROADCAST), GraphEdge("b", 0, "out", 0)

    assert sorted(listed(engine.context, VertexGraph(vertices, edges))) == [(0, 3, 0), (1, 3, 0)]


class Lettered(ProcessorSupplier):
    """Gives processors that are not alike."""

    def get(self, count: int) -> list[Processor]:
        return [Saying(letter) for letter in "abc"[:count]]


class Saying(Own):
    """Emits its letter and its number."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def complete(self) -> bool:
        return self.outbox.offer((self.letter, self.index))


def test_a_supplier_may_give_processors_that_differ(engine: Any) -> None:
    """Each has its place in what the supplier gave, in whatever task it runs."""
    graph = VertexGraph((vertex("a", Lettered(), 3),), (GraphEdge("a", 0, "out", 0),))

    assert sorted(listed(engine.context, graph)) == [("a", 0), ("b", 1), ("c", 2)]


CALLS: list[Any] = []


class Told(ProcessorMetaSupplier):
    """Notes what it is asked in the driver, where it stays."""

    preferred_local_parallelism = 3

    def __init__(self, create: Any = Own) -> None:
        self.create, self.lock = create, threading.Lock()

    def init(self, context: MetaSupplierContext) -> None:
        CALLS.append(("init", context.vertex, context.total_parallelism))

    def get(self, addresses: Any) -> Any:
        CALLS.append(("get", len(addresses)))
        create = self.create
        return lambda address: ProcessorSupplier.of(create)

    def close(self, error: BaseException | None) -> None:
        CALLS.append(("close", type(error)))


def test_a_meta_supplier_is_asked_once_in_the_driver(engine: Any) -> None:
    """It gets ready, gives suppliers, and closes when all have run."""
    CALLS.clear()
    graph = VertexGraph((GraphVertex("a", Told(), -1, Step("a", None, 1, 1)),), (GraphEdge("a", 0, "out", 0),))

    assert sorted(listed(engine.context, graph)) == [0, 1, 2]
    assert [("init", "a", 3), ("get", 1), ("close", type(None))] == CALLS


class Broken(Own):
    """Fails at its end."""

    def complete(self) -> bool:
        raise ValueError("broken")


def test_a_meta_supplier_closes_with_what_failed(engine: Any) -> None:
    """The failure goes on."""
    CALLS.clear()
    graph = VertexGraph((GraphVertex("a", Told(Broken), -1, Step("a", None, 1, 1)),), (GraphEdge("a", 0, "out", 0),))

    with pytest.raises(ValueError, match="broken"):
        listed(engine.context, graph)

    assert CALLS[2:] == [("close", ValueError)]


class Ended(Processor):
    """Keeps what it is closed with."""

    closed: ClassVar[list[BaseException | None]] = []

    def close(self, error: BaseException | None) -> None:
        self.closed.append(error)


def test_processors_close_with_what_ended_their_run_early(task: Any) -> None:
    """As a cancellation, or a failure of what reads them: they must not take it for a success."""
    graph = VertexGraph((vertex("a", Ended, 1),), (GraphEdge("in", 0, "a", 0), GraphEdge("a", 0, "out", 0)))

    def cancelled() -> Iterator[GraphArrival]:
        yield GraphArrival(0, 0, None, [1])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(RunsGraph(graph, "none", receipt_step(Step("a", None, 1, 1), None))(cancelled(), task))

    assert list(map(type, Ended.closed)) == [KeyboardInterrupt]


@pytest.mark.parametrize("preferred", [0, -2, 1.5, True])
def test_what_a_supplier_prefers_is_a_number_of_processors(preferred: Any) -> None:
    """With none of them, items would have nowhere to go."""
    meta = ProcessorMetaSupplier.of(Counting, preferred)
    graph = VertexGraph((GraphVertex("a", meta, -1, Step("a", None, 1, 1)),), ())

    with pytest.raises(ValueError, match="preferred_local_parallelism of a supplier must be at least 1, or -1"):
        with_parallelism(graph, 4)


def test_all_processors_run_where_no_item_comes(engine: Any) -> None:
    """Of a source without splits."""
    edges = GraphEdge("in", 0, "a", 0), GraphEdge("a", 0, "out", 0)
    nothing = Read(ProcessorNumbers(0), step=Step("source"))

    found = listed(engine.context, VertexGraph((vertex("a", Counting, 3),), edges), nothing)

    assert sorted(found) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]


def test_a_part_of_a_graph_that_gives_nothing_runs_too(engine: Any) -> None:
    """Its counts come with those of the others."""
    taken: list[Any] = []
    vertices = vertex("a", Numbered, 2), vertex("b", Counting, 3)
    edges = GraphEdge("in", 0, "a", 0), GraphEdge("a", 0, "b", 0, routing=Routing.BROADCAST)
    node = rewrite(ToList(ProcessorGraph((read(*range(10)),), VertexGraph(vertices, edges), step=Step("dag()"))))
    assert isinstance(node, ToList)
    assert isinstance(node.upstream, ProcessorGraph)
    graph = dataclasses.replace(node.upstream, take=taken.append)

    engine.context.running_engine().submit(dataclasses.replace(node, upstream=graph)).result()

    assert sum(sum(each["b"][0]) for each in taken if "b" in each) == 30


def test_a_target_that_misses_rows_refuses_to_go_on() -> None:
    """Such as that of a task of which nothing was heard, or a row less than was sent."""
    step = Step("dag", None, 1, 1)
    told = Row(1, 0, LAST, ITEMS, 0, dumps(2))

    with pytest.raises(EngineError, match="1 of 2 tasks were heard of"):
        list(ReadArrivals(2, step)(iter([told])))
    with pytest.raises(EngineError, match="task 0 sent 2, and 0 arrived"):
        list(ReadArrivals(1, step)(iter([told])))


def test_the_items_of_a_graph_end_with_those_of_its_inputs_and_have_no_order() -> None:
    """As processors run side by side, nobody promises an order."""
    edges = GraphEdge("in", 0, "a", 0), GraphEdge("a", 0, "out", 0)

    node = rewrite(ProcessorGraph((read(1),), VertexGraph((vertex("a", Numbered),), edges), step=Step("dag()")))

    assert is_bounded(node)
    assert not is_ordered(node)


def test_what_a_supplier_captures_is_checked() -> None:
    """The refusal names the vertex."""
    lock = threading.Lock()
    graph = VertexGraph((vertex("a", lambda: lock),), (GraphEdge("in", 0, "a", 0),))

    with pytest.raises(SerializationError, match=r"vertex 'a'.*'lock'"):
        check_captures(rewrite(ProcessorGraph((read(1),), graph, step=Step("dag()"))))
