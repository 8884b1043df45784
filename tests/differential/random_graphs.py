"""Graphs of processors by chance, and what plain Python makes of them."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from dstream.pipeline.plan import PipelinePlan, PlannedStage, PlannedWrite
from dstream.plan import Read, ToList, rewrite
from dstream.plan.operations.calls import FlatMap
from dstream.plan.operations.streams import Fork
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.plan.steps import Step
from dstream.plan.timestamps import StreamRead
from dstream.processors.blocks import GraphBlock, users_items
from dstream.processors.tasks import ProcessorNumbers
from dstream.spi.processor import BroadcastKey, Processor
from dstream.spi.suppliers import meta_supplier
from reducers import to_ilist
from sources import Items

KINDS = ("mapped", "twice", "some", "dealt", "summed")


@dataclass(frozen=True)
class Vertex:
    """What one vertex does: `dealt` gives each item by one edge alone, `summed` gives sums by key at its end.

    One of the kind `source` has no edges before it.
    """

    name: str
    kind: str
    factor: int
    parallelism: int


def key_of(item: int) -> int:
    """Return what items are partitioned and summed by."""
    return item % 5


def results(vertex: Vertex, item: int) -> list[int]:
    """Return what a vertex gives for one item."""
    made = (item * vertex.factor + 1) % 1009
    if vertex.kind == "some":
        return [made] if made % 3 else []
    return {"twice": [made, made + 1], "summed": []}.get(vertex.kind, [made])


def own(vertex: Vertex, number: int) -> list[int]:
    """Return what a processor of a source gives."""
    return list(range(vertex.factor, vertex.factor + 20 + number))


class Doing(Processor):
    """Does what its vertex says, and looks whether edges come by their priorities."""

    def __init__(self, vertex: Vertex, priorities: tuple[int, ...]) -> None:
        self.vertex, self.priorities = vertex, priorities
        self.completed: set[int] = set()
        self.waiting: deque[int] = deque()
        self.sums: defaultdict[int, int] = defaultdict(int)
        self.is_ending = False

    def init(self, outbox: Any, context: Any) -> None:
        """Keep both."""
        self.outbox, self.index = outbox, context.index

    def process(self, ordinal: int, inbox: Any) -> None:
        """Give what the vertex makes of each item."""
        before = [n for n, priority in enumerate(self.priorities) if priority < self.priorities[ordinal]]
        assert self.completed.issuperset(before), "an edge came before one of an earlier priority had ended"
        while len(inbox) and self.emit():
            item = inbox.poll()
            self.sums[key_of(item)] += item
            self.waiting += results(self.vertex, item)

    def save_to_snapshot(self) -> bool:
        """Save all that is kept between two calls, under keys that do not move."""
        kept = {"sums": dict(self.sums), "waiting": list(self.waiting), "completed": set(self.completed)}
        for name, value in {**kept, "is_ending": self.is_ending}.items():
            assert self.outbox.offer_to_snapshot(BroadcastKey(name), value)
        return True

    def restore_from_snapshot(self, inbox: Any) -> None:
        """Take it back."""
        kept = {key.key: value for key, value in inbox.drain()}
        self.sums.update(kept["sums"])
        self.waiting, self.completed = deque(kept["waiting"]), set(kept["completed"])
        self.is_ending = kept["is_ending"]

    def emit(self) -> bool:
        """Give what waits; say whether all has gone."""
        while self.waiting:
            item, count = self.waiting[0], self.outbox.bucket_count
            if not self.outbox.offer(item, item % count if self.vertex.kind == "dealt" and count else None):
                return False
            self.waiting.popleft()
        return True

    def complete_edge(self, ordinal: int) -> bool:
        """Note it."""
        self.completed.add(ordinal)
        return True

    def complete(self) -> bool:
        """Give what is left, and what comes at the end."""
        if not self.is_ending:
            self.is_ending = True
            if self.vertex.kind == "summed":
                self.waiting += self.sums.values()
            if self.vertex.kind == "source":
                self.waiting += own(self.vertex, self.index)
        return self.emit()


@dataclass(frozen=True)
class RandomGraph:
    """A graph, what it reads, and what it is to give.

    Attributes:
        inputs: the items of each inlet, and how many splits they come in.
        expected: the items of each outlet.
    """

    graph: VertexGraph
    inputs: tuple[tuple[list[int], int], ...]
    expected: tuple[Counter[int], ...]

    def given_by(self, context: Any) -> tuple[Counter[int], ...]:
        """Return the items of each outlet that an engine gives."""
        upstreams = tuple(
            Read(Items(items, parts), step=Step("source")) if parts else Read(ProcessorNumbers(0), step=Step("nothing"))
            for items, parts in self.inputs
        )
        blocks = (
            context.running_engine()
            .submit(rewrite(ToList(ProcessorGraph(upstreams, self.graph, step=Step("dag()")))))
            .result()
        )
        given: tuple[Counter[int], ...] = tuple(Counter() for _ in self.graph.outlets)
        for outlet, _, items in blocks:
            given[outlet].update(item for item in items if isinstance(item, int))
        return given

    def plan_of(self, sources: Sequence[Any]) -> PipelinePlan:
        """Return the plan that reads sources without an end, one for each inlet, and writes each outlet into a list."""
        reads = [Read(StreamRead(each), step=Step(f"source-{number}")) for number, each in enumerate(sources)]
        blocks = Fork(ProcessorGraph(tuple(reads), self.graph, step=Step("dag()")))
        stages = [f"outlet-{number}" for number in range(len(self.graph.outlets))]
        return PipelinePlan(
            tuple(PlannedStage(name, "sink", (), None) for name in stages),
            tuple(
                PlannedWrite(name, FlatMap(blocks, partial(_of_outlet, number)), to_ilist(name), None)
                for number, name in enumerate(stages)
            ),
            tuple((f"source-{number}", each) for number, each in enumerate(reads)),
        )


def _of_outlet(outlet: int, block: GraphBlock) -> list[Any]:
    return users_items(block) if block.outlet == outlet else []


def random_graph(seed: int, has_priorities: bool = True) -> RandomGraph:
    """Return the graph of a seed: up to two inputs, and one to four vertices.

    Args:
        seed: of all that chance decides.
        has_priorities: edges may have them.
    """
    chance = Random(seed)
    inputs: list[tuple[list[int], int]] = []
    vertices: list[Vertex] = []
    edges: list[GraphEdge] = []
    outs: Counter[str] = Counter()
    for place in range(chance.randint(1, 4)):
        vertex = _vertex(chance, place)
        into: list[GraphEdge] = []
        for _ in range(0 if vertex.kind == "source" else chance.randint(1, 3)):
            source = chance.choice(vertices).name if vertices and chance.random() < 0.7 else f"in{len(inputs)}"
            if source.startswith("in"):
                count = chance.choice((0, 1, 30, 400))
                items = [chance.randrange(1000) for _ in range(count)]
                inputs.append((items, chance.randint(1 if items else 0, 5)))
            edge = _edge(chance, source, outs[source], vertex, len(into))
            into.append(edge if has_priorities else replace(edge, priority=0))
            outs[source] += 1
        vertices.append(vertex)
        edges += into
    for vertex in vertices:
        if not outs[vertex.name] or chance.random() < 0.3:
            edges.append(GraphEdge(vertex.name, outs[vertex.name], f"out-{vertex.name}", 0))
            outs[vertex.name] += 1
    made = tuple(
        GraphVertex(
            each.name,
            meta_supplier(partial(Doing, each, tuple(e.priority for e in edges if e.destination == each.name))),
            each.parallelism,
            Step(f"vertex {each.name!r}", None, 1, 1),
        )
        for each in vertices
    )
    graph = VertexGraph(made, tuple(edges))
    return RandomGraph(graph, tuple(inputs), tuple(_evaluated(vertices, graph, inputs)))


def _vertex(chance: Random, place: int) -> Vertex:
    kind = "source" if chance.random() < 0.15 else chance.choice(KINDS)
    return Vertex(f"v{place}", kind, chance.randint(1, 50), chance.randint(1, 8))


def _edge(chance: Random, source: str, ordinal: int, vertex: Vertex, place: int) -> GraphEdge:
    routing = Routing.PARTITIONED if vertex.kind == "summed" else chance.choice(list(Routing))
    is_own = vertex.factor % 2 == 0  # All edges into a vertex have one partitioner.
    return GraphEdge(
        source,
        ordinal,
        vertex.name,
        place,
        priority=chance.choice((-1, 0, 0, 0, 3)),
        routing=routing,
        key=key_of if routing is Routing.PARTITIONED else None,
        partitioner=_by_remainder if is_own and routing is Routing.PARTITIONED else None,
        queue_size=chance.choice((1, 10, 1024)),
    )


def _by_remainder(key: int, count: int) -> int:
    return key % count


def _evaluated(vertices: list[Vertex], graph: VertexGraph, inputs: list[tuple[list[int], int]]) -> list[Counter[int]]:
    """Return the items of each outlet, vertex after vertex."""
    passing = {id(edge): items for edge, (items, _) in zip(graph.inlets, inputs, strict=True)}
    for vertex in vertices:
        taken: list[int] = []
        for edge in graph.into(vertex.name):
            taken += passing[id(edge)] * (vertex.parallelism if edge.routing is Routing.BROADCAST else 1)
        made = [one for item in taken for one in results(vertex, item)]
        if vertex.kind == "source":
            made = [one for number in range(vertex.parallelism) for one in own(vertex, number)]
        if vertex.kind == "summed":
            sums: defaultdict[int, int] = defaultdict(int)
            for item in taken:
                sums[key_of(item)] += item
            made = list(sums.values())
        leaving = graph.out_of(vertex.name)
        for edge in leaving:
            is_dealt = vertex.kind == "dealt"
            passing[id(edge)] = [i for i in made if not is_dealt or i % len(leaving) == edge.source_ordinal]
    return [Counter(passing[id(edge)]) for edge in graph.outlets]
