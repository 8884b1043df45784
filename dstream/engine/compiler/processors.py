"""Graphs of processors, compiled: stages, combining edges, and the functions of their vertices.

Edges that combine lead into a vertex whose supplier defines how its work is shared (`TwoStages`) and to another part of
the graph, and bring all items of a key to one processor anyway. Before each such edge a vertex is put in, with the
processors of the sender; of a source, with one for each task that reads it.

Where all items are in one partition, or each vertex has one processor, one task runs the whole graph.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from dstream.base.records import record
from dstream.engine.compiler.inputs import in_the_caller, nothing, numbers
from dstream.engine.compiler.walk import ClusterFacts, Compiling, compile_node, is_ours
from dstream.engine.physical.graph import Done, Move, PartitionCount
from dstream.engine.physical.vertices import (
    EVERYTHING,
    Evaluation,
    Items,
    Rows,
    Splits,
    Taken,
    Vertex,
    in_one_task,
    is_one_task,
    one_after_another,
    piped,
)
from dstream.engine.tasks.processors import EdgeToPart, ReadArrivals, RouteToProcessors
from dstream.engine.tasks.sinks import WriteItems
from dstream.engine.tasks.stage import Piece
from dstream.operators.rows.operations import Operation
from dstream.operators.state.watermarks import receipt_step
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import GraphEdge, GraphVertex, Routing, VertexGraph, with_parallelism
from dstream.plan.steps import Op, Step
from dstream.processors.edges import graph_groups
from dstream.processors.tasks import (
    BlocksOfTask,
    FirstStage,
    Inlet,
    InOneTask,
    OfWholeGraph,
    RunsGraph,
    RunsPart,
    ToProcessor,
    by_priority,
)
from dstream.spi import AggregateOperation, Collector
from dstream.spi.suppliers import ProcessorMetaSupplier, ProcessorSupplier, TwoStages

__all__ = ["Combining", "called_in_graph", "in_parts", "with_first_stages"]


def called_in_graph(graph: VertexGraph, facts: ClusterFacts) -> tuple[Evaluation, ...]:
    """Return the decisions on the functions of a graph, or of a part of one; nothing if none is read."""
    if not facts.reads_functions:
        return ()
    return tuple(Evaluation(name, obstacle="processors take items one by one") for name in dict.fromkeys(_names(graph)))


def _names(graph: VertexGraph) -> Iterator[str]:
    for vertex in graph.vertices:
        yield from (f"{name} of {vertex.name!r}" for name in dict.fromkeys(_of_maker(vertex.supplier)))
    for edge in graph.edges:
        if edge.source in graph.names or not edge.carries_blocks:  # Otherwise the part before this one routes.
            yield from (f"{name} of {edge.source!r} -> {edge.destination!r}" for name in _of_edge(edge))


def _of_edge(edge: GraphEdge) -> Iterable[str]:
    functions = {"key": edge.key, "partitioner": edge.partitioner, "order": edge.order}
    return (name for name, fn in functions.items() if fn is not None and not is_ours(fn))


def _of_maker(made: Any) -> Iterator[str]:
    """Yield the names of the functions of a maker of processors: a supplier, or a function."""
    arguments = _arguments_of(made)
    if arguments is None:
        yield "processor"  # The user has written it.
        return
    if "kind" in arguments:  # That names the function.
        arguments = _arguments_of(functools.partial(arguments["kind"], arguments["fn"])) or {}
    for name, value in arguments.items():
        if isinstance(value, ProcessorSupplier | ProcessorMetaSupplier) or _is_made_by(made, name):
            yield from _of_maker(value)
        elif name not in _NOT_OF_ITEMS:
            yield from _names_in(name, value)


def _is_made_by(made: Any, name: str) -> bool:
    return name == "create" and isinstance(made, ProcessorSupplier | ProcessorMetaSupplier)


def _arguments_of(value: Any) -> Mapping[str, Any] | None:
    """Return the arguments of one of our makers, by name; None: the user's own."""
    if isinstance(value, functools.partial) and is_ours(value.func):
        return inspect.signature(value.func).bind_partial(*value.args, **value.keywords).arguments
    if not is_ours(value):
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {}


def _names_in(name: str, value: Any) -> Iterator[str]:
    """Yield the names of the functions among the arguments of a processor of ours."""
    if isinstance(value, Collector):
        yield from (each for each, _ in value.functions)
    elif isinstance(value, AggregateOperation):
        yield from _names_in("accumulate", value.accumulates)
    elif isinstance(value, tuple):
        for each in value:
            yield from _names_in(name, each)
    elif callable(value) and _arguments_of(value) is None:
        yield name
    else:
        for inner, each in (_arguments_of(value) or {}).items():
            if inner not in _NOT_OF_ITEMS:
                yield from _names_in(inner, each)


_NOT_OF_ITEMS = frozenset(
    {"clock", "create", "destroy", "emission", "flush", "groups", "policy", "service", "two_stages", "window"}
)
"""Fields of functions that make a state, return the time, or serve other functions."""


@record(slots=False)
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
        graph: a graph whose vertices have their numbers of processors.
        readers: how many tasks may read each inlet, in order; None: it is no source, or not read in parallel.
    """
    part_of = {each.name: number for number, part in enumerate(graph_groups(graph)) for each in part.vertices}
    vertices, edges, found = list[GraphVertex](), list(graph.edges), list[FirstStage]()
    for vertex in graph.vertices:
        stages, into, shared = vertex.supplier.two_stages, graph.into(vertex.name), list[int]()
        for edge, senders in _shared(graph, vertex, part_of, readers):
            assert stages is not None, "only such work is shared"
            first = _first_stage(graph, vertex, edge, senders, stages)
            # At its index, since engines number inlets and outlets by the order of the edges.
            index = edges.index(edge)
            edges[index : index + 1] = _both(edge, first.name, vertex.parallelism)
            vertices.append(first)
            shared.append(edge.destination_ordinal)
            found.append(FirstStage(first.name, vertex.name, shared[-1], len(into), len(graph.out_of(vertex.name))))
        vertices.append(vertex if stages is None or not shared else _second_stage(vertex, stages, shared))
    return Combining(VertexGraph(tuple(vertices), tuple(edges)), tuple(found))


def _shared(
    graph: VertexGraph, vertex: GraphVertex, part_of: Mapping[str, int], readers: Sequence[int | None]
) -> Iterator[tuple[GraphEdge, int]]:
    """Yield the edges into a vertex whose senders may do a part of its work, and how many senders there are."""
    stages = vertex.supplier.two_stages
    for edge in graph.into(vertex.name) if stages is not None else ():
        senders = _senders(graph, edge, readers)
        is_far = part_of.get(edge.source) != part_of[vertex.name]
        if stages is not None and senders is not None and is_far and _gathers(edge, vertex, stages):
            yield edge, senders


def _gathers(edge: GraphEdge, vertex: GraphVertex, stages: TwoStages) -> bool:
    """Return whether an edge brings all items of a key to one processor, and their containers as well."""
    # Containers have no position in an order of items.
    if edge.order is not None:
        return False
    # The one processor gets all items, for any routing of the edge.
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
    # A user's vertex may have this name.
    while name in graph.names:
        name += "'"
    if len(graph.into(vertex.name)) > 1:
        step = dataclasses.replace(step, label=f"{step.label}, inbound edge {number}")
    return GraphVertex(name, ProcessorMetaSupplier.of(stages.first(number)), senders, step)


def _second_stage(vertex: GraphVertex, stages: TwoStages, shared: Sequence[int]) -> GraphVertex:
    return dataclasses.replace(vertex, supplier=ProcessorMetaSupplier.of(stages.second(frozenset(shared))))


def _both(edge: GraphEdge, name: str, processors: int) -> list[GraphEdge]:
    """Return the two edges that replace one: to the first stage, and from it."""
    # Any of its processors may take an item: containers of a key are combined after it.
    to = GraphEdge(edge.source, edge.source_ordinal, name, 0, queue_size=edge.queue_size)
    routing = Routing.UNICAST if processors == 1 else Routing.PARTITIONED
    key = None if processors == 1 else itemgetter(0)
    on = dataclasses.replace(edge, source=name, source_ordinal=0, routing=routing, key=key, partitioner=None)
    return [to, on]


@compile_node.register
def _(node: ProcessorGraph, inputs: Sequence[Items], compiling: Compiling) -> Items:
    is_whole = compiling.facts.is_sequential or not compiling.is_bounded(node)
    node = dataclasses.replace(node, graph=with_parallelism(node.graph, compiling.facts.cores))
    if not is_whole:
        return in_parts(node, inputs, compiling)
    return _by_one_task(node, inputs, in_the_caller(receipt_step(node.step, node.take), compiling), compiling.facts)


def in_parts(node: ProcessorGraph, inputs: Sequence[Items], compiling: Compiling) -> Items:
    """Return the blocks of a graph whose items end, and whose vertices have their numbers of processors."""
    receipts = in_the_caller(receipt_step(node.step, node.take), compiling)
    return (compiling.decide(StageOfEachPart(node, tuple(inputs), receipts, compiling.facts)),)


def _by_one_task(node: ProcessorGraph, inputs: Sequence[Items], receipts: Op, facts: ClusterFacts) -> Items:
    """Compile a graph to one task, which reads all inlets in the order of their priorities and runs all processors."""
    order = by_priority(node.graph.inlets)
    items = one_after_another(tuple(chain.from_iterable(piped(inputs[each], None, Inlet(each)) for each in order)))
    if not inputs:
        items = piped(numbers(1, node.step), None, nothing)
    if all(isinstance(each, Splits) for each in items):
        items = in_one_task(items)
    elif not is_one_task(items):
        written = Taken(Vertex(items, WriteItems(), node.step))
        items = (Rows((written,), 1, why="one task runs all processors of a graph"),)
    runs = RunsGraph(node.graph, node.guarantee, receipts)
    does = "one task runs all processors of the graph"
    return piped(items, node, InOneTask(runs), does, called_in_graph(node.graph, facts))


@record(slots=False, eq=False)
class StageOfEachPart:
    """Each part of the graph is a stage, whose task `k` runs the processors `k`."""

    node: ProcessorGraph
    inputs: tuple[Items, ...]
    receipts: Op
    facts: ClusterFacts

    counts = True

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        graph = self.node.graph
        # One task reads the partitions in sequence, as if one processor had sent all of them.
        is_one = all(each.parallelism == 1 for each in graph.vertices) and all(
            each.order is None for each in graph.inlets
        )
        if is_one or sum(each or 0 for each in partitions) == 1:
            return Done(_by_one_task(self.node, inputs, self.receipts, self.facts))
        cutting = _Cutting(self.node, inputs, [each or 0 for each in partitions], self.receipts, self.facts)
        return Done(cutting.items())


class _Cutting:
    """Makes a stage of each part of a graph, in topological order.

    Args:
        node: has the graph.
        inputs: one for each inlet of the graph.
        partitions: how many partitions each of these has.
        receipts: receives the counts of the edges.
        facts: the facts about the engine.
    """

    def __init__(
        self,
        node: ProcessorGraph,
        inputs: Sequence[Items],
        partitions: Sequence[int],
        receipts: Op,
        facts: ClusterFacts,
    ) -> None:
        self._inputs = inputs
        self._partitions = partitions
        self._receipts = receipts
        self._facts = facts
        combining = with_first_stages(node.graph, list(map(self._readers_of, range(len(inputs)))))
        node = self._node = dataclasses.replace(node, graph=combining.graph)
        self._first_stages = combining.first_stages
        self._parts = graph_groups(node.graph)
        self._part_of = {each.name: number for number, part in enumerate(self._parts) for each in part.vertices}
        self._steps = {each.name: each.step for each in node.graph.vertices}
        self._inlets = {edge.way: number for number, edge in enumerate(node.graph.inlets)}
        self._outlets = {edge.way: number for number, edge in enumerate(node.graph.outlets)}
        self._sending = [self._senders_of(part) for part in self._parts]

    def items(self) -> Items:
        """Return the blocks of all parts; parts without output have to run, too."""
        vertices: dict[int, Vertex] = {}
        result: list[Items] = []
        for number, part in enumerate(self._parts):
            blocks = self._blocks(number, vertices)
            results = {n: self._outlets[e.way] for n, e in enumerate(part.outlets) if e.way in self._outlets}
            readers = self._readers(number)
            if not readers:
                result.append(piped(blocks, None, OfWholeGraph(results)))
                continue
            sink = self._sink(number, readers, results)
            # With one reader, the stage runs in the reader's job, and its rows need not be stored.
            is_kept = len(readers) + bool(results) > 1
            vertices[number] = Vertex(blocks, sink, self._node.step, is_kept=is_kept)
            if results:
                taken = Taken(vertices[number], EVERYTHING.to_targets(sink.targets - 1, sink.targets))
                result.append((Rows((taken,), None, is_ordered=False, why="the blocks stay where they are"),))
        return tuple(chain.from_iterable(result))

    # ------------------------------------------------------------------------------------------------- senders

    def _processors(self, part: int) -> int:
        """Return the number of processors of each vertex of a part, which is its number of tasks."""
        return self._parts[part].vertices[0].parallelism

    def _readers_of(self, inlet: int) -> int | None:
        """Return how many tasks may read an input each for itself; None: it is no source."""
        is_source = all(isinstance(each, Splits) for each in self._inputs[inlet])
        return min(self._partitions[inlet], self._facts.cores) or None if is_source else None

    def _readers(self, part: int) -> list[int]:
        """Return the parts to which one leads."""
        ends = (edge.destination for edge in self._parts[part].outlets)
        return sorted({self._part_of[end] for end in ends if end in self._part_of})

    def _senders_of(self, part: VertexGraph) -> dict[_Sender, int]:
        """Return the senders to a part, and the number of its first task's source: by priority, as they are read."""
        found: dict[_Sender, int] = {}
        first = 0
        # Rows are read in the order of their sources, so the numbers follow the priorities.
        for edge in sorted(part.inlets, key=lambda each: each.priority):
            sender = self._sender(edge)
            if sender not in found:
                found[sender] = first
                first += self._tasks(sender)
        return found

    def _sender(self, edge: GraphEdge) -> _Sender:
        if edge.source in self._part_of:
            return _Sender(False, self._part_of[edge.source])
        return _Sender(True, self._inlets[edge.way])

    def _tasks(self, sender: _Sender) -> int:
        return self._partitions[sender.number] if sender.is_input else self._processors(sender.number)

    # --------------------------------------------------------------------------------------------------- output

    def _sink(self, part: int, readers: Sequence[int], results: Mapping[int, int]) -> RouteToProcessors:
        edges = {}
        for number, edge in enumerate(self._parts[part].outlets):
            if edge.destination in self._part_of:
                reader = self._part_of[edge.destination]
                behind = self._behind(readers, reader)
                edges[number] = self._edge(edge, _Sender(False, part), reader, behind, self._steps[edge.source])
        targets = sum(map(self._processors, readers)) + bool(results)
        return RouteToProcessors(edges, results, targets)

    def _behind(self, readers: Sequence[int], reader: int) -> int:
        """Return the number of a stage's targets before those of one of its reading parts."""
        return sum(self._processors(each) for each in readers if each < reader)

    def _edge(self, edge: GraphEdge, sender: _Sender, reader: int, behind: int, step: Step) -> EdgeToPart:
        inlet = [each.way for each in self._parts[reader].inlets].index(edge.way)
        source = self._sending[reader][sender]
        return EdgeToPart(edge, inlet, self._tasks(sender), self._processors(reader), behind, source, step)

    # --------------------------------------------------------------------------------------------------- input

    def _blocks(self, number: int, vertices: Mapping[int, Vertex]) -> Items:
        """Return the blocks that the processors of a part emit."""
        part, processors = self._parts[number], self._processors(number)
        senders = [self._tasks(self._sender(edge)) for edge in part.inlets]
        if (items := self._read_by_part(number)) is not None:
            senders = [1]
        elif not any(senders):  # No row would start the tasks.
            items = numbers(processors, self._node.step)
        else:
            taken = tuple(
                self._of_input(sender.number, number, first)
                if sender.is_input
                else self._of_part(sender.number, number, vertices)
                for sender, first in self._sending[number].items()
            )
            reader = ReadArrivals(sum(map(self._tasks, self._sending[number])), self._node.step)
            items = (Rows(taken, processors, reader, is_ordered=False, why=_GO, counted=_EACH),)
        runs = RunsPart(RunsGraph(part, self._node.guarantee, self._receipts, senders, first_stages=self._first_stages))
        names = ", ".join(each.name for each in part.vertices)
        does = f"each task runs one processor of {names}"
        return piped(items, self._node, runs, does, called_in_graph(part, self._facts))

    def _read_by_part(self, number: int) -> Items | None:
        """Return the sources that the tasks of a part read themselves; None: the items are sent by other tasks.

        Each task reads a subset of the splits: if any processor may receive an item, nothing has to be shuffled, as
        long as there are splits for all processors, and no core is idle.
        """
        part, processors = self._parts[number], self._processors(number)
        if len(part.inlets) != 1 or part.inlets[0].carries_blocks or not _goes_to_any(part.inlets[0]):
            return None
        inlet = self._inlets[part.inlets[0].way]
        splits = tuple(each for each in self._inputs[inlet] if isinstance(each, Splits))
        count = self._partitions[inlet]
        if len(splits) < len(self._inputs[inlet]) or count < processors or processors < min(count, self._facts.cores):
            return None
        return (Splits(splits, tasks=processors, for_each=_to_each_processor),)

    def _of_input(self, inlet: int, reader: int, first: int) -> Taken:
        """Return the rows of an input of the graph, whose tasks are senders."""
        (edge,) = (each for each in self._parts[reader].inlets if each.way == self._node.graph.inlets[inlet].way)
        step = self._steps[edge.destination]
        blocks = piped(self._inputs[inlet], None, BlocksOfTask(edge.destination, first, step))
        sink = RouteToProcessors(
            {0: self._edge(edge, _Sender(True, inlet), reader, 0, step)}, {}, self._processors(reader)
        )
        return Taken(Vertex(blocks, sink, self._node.step, first=first))

    def _of_part(self, part: int, reader: int, vertices: Mapping[int, Vertex]) -> Taken:
        """Return the output that an earlier part sends to this one."""
        readers = self._readers(part)
        if not vertices[part].is_kept:
            return Taken(vertices[part])
        behind = self._behind(readers, reader)
        end = behind + self._processors(reader)
        # Among the rows of the stage its targets follow those of other readers; for the reading part they begin at 0.
        return Taken(vertices[part], EVERYTHING.to_targets(behind, end), -behind)


def _to_each_processor(tasks: tuple[Piece, ...]) -> Callable[[int], Operation]:
    return ToProcessor


class _Sender(NamedTuple):
    """A sender to a part: an input of the graph, or another part."""

    is_input: bool
    number: int


_EACH = "one for each processor"
_GO = "items go to the processors that the edges say"


def _goes_to_any(edge: GraphEdge) -> bool:
    """Return whether an item may go to the processor of the task that has it."""
    return edge.routing in (Routing.UNICAST, Routing.ISOLATED) and edge.order is None
