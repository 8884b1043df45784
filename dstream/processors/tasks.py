"""A graph of processors, or a part of it, in a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import chain, groupby
from typing import Any

from dstream.base.memory import holding, pieces
from dstream.base.records import record
from dstream.failures import naming
from dstream.operators.rows.operations import Task
from dstream.operators.rows.spill import GroupsOnDisk, sorted_items
from dstream.operators.state.watermarks import receipt_step
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import GraphEdge, VertexGraph, parallelism_of, with_parallelism
from dstream.plan.steps import Op, Step
from dstream.processors.blocks import GraphArrival, GraphBlock, Mark, MarkedBlock
from dstream.processors.edges import checked_items
from dstream.processors.graph_execution import GraphExecution, ProcessorLogs
from dstream.spi.epochs import EdgeCounts

__all__ = [
    "BlocksOfTask",
    "FirstStage",
    "InOneTask",
    "Inlet",
    "OfWholeGraph",
    "ProcessorNumbers",
    "RunsGraph",
    "RunsPart",
    "ToProcessor",
    "as_written",
    "by_priority",
    "in_turn",
    "whole",
]


_BLOCK = 1024


@record(slots=False)
class RunsGraph:
    """Runner of a graph on arriving items, which yields blocks.

    Attributes:
        graph: a graph whose vertices have their numbers of processors.
        receipts: receives the counts of the edges.
        senders: the number of tasks or processors that send by each inlet.
        logs: configures the logging of processors in the process that runs them.
        first_stages: vertices of the graph that the user did not write.
        check: called repeatedly; raises an exception to end the run; None: no check.
    """

    graph: VertexGraph
    guarantee: str
    receipts: Op
    senders: Sequence[int] = ()
    logs: ProcessorLogs = field(default_factory=ProcessorLogs)
    first_stages: Sequence[FirstStage] = ()
    check: Callable[[], object] | None = None

    def __call__(self, arrivals: Iterator[GraphArrival], task: Task, here: int | None = None) -> Iterator[GraphBlock]:
        """Return the blocks of all processors, or of the processors of one number."""
        self.logs.begin()
        overflow = partial(GroupsOnDisk, task.bound)
        run = GraphExecution(
            self.graph, parallelism_of(self.graph), here, self.guarantee, self.senders, self.check, overflow
        )
        # If the blocks are not read to their end, nothing else closes the processors.
        task.at_end_with(run.close)
        try:
            with holding():
                yield from run.run(arrivals)
            task.peeking(self.receipts)(as_written(run.counts(), self.first_stages))
        except GeneratorExit:  # The reader of the blocks has failed, or wants no more: the end of the task reports it.
            raise
        except BaseException as error:  # Also where the job was cancelled.
            run.close(error)
            raise
        run.close()


@record(slots=False)
class FirstStage:
    """A vertex that does a part of the work of another vertex, before items are sent to it.

    Attributes:
        name: the name of this vertex.
        vertex: the name of the other vertex.
        edge: the number of the inbound edge of the other vertex upstream of which it is.
        inbound: the number of inbound edges of the other vertex.
        outbound: the number of outbound edges of the other vertex.
    """

    name: str
    vertex: str
    edge: int
    inbound: int
    outbound: int


def as_written(counts: EdgeCounts, first_stages: Sequence[FirstStage]) -> EdgeCounts:
    """Return counts for the vertices that the user wrote: the input of a first stage arrived by that edge."""
    found = {vertex: (list(received), list(sent)) for vertex, (received, sent) in counts.items()}
    for first in first_stages:
        ((came,), _) = found.pop(first.name, ([0], []))
        if first.name in counts or first.vertex in found:
            received, _ = found.setdefault(first.vertex, ([0] * first.inbound, [0] * first.outbound))
            received[first.edge] = came
    return found


def whole(node: ProcessorGraph, cores: int, senders: Sequence[int], check: Callable[[], object]) -> RunsGraph:
    """Return a runner of all processors of a graph in this process.

    Args:
        node: the operation with the graph.
        cores: the default number of processors of a vertex.
        senders: the number of senders of each inlet.
        check: raises an exception to end the run.
    """
    graph = with_parallelism(node.graph, cores)
    return RunsGraph(graph, node.guarantee, receipt_step(node.step, node.take), senders, check=check)


@record(slots=False)
class RunsPart:
    """Runner of the processors of one number in a part of a graph; its input is the number, then their items."""

    runs: RunsGraph

    def __call__(self, arrivals: Iterator[Any], task: Task) -> Iterator[GraphBlock]:
        here = next(arrivals, None)
        assert isinstance(here, int), "every target is notified by every task that sends"
        return self.runs(arrivals, task, here)


@record(slots=False)
class Inlet:
    """The function from the items of an inlet to arrivals, where one task runs the graph.

    Attributes:
        number: the number of the inlet.
        sender: the number of the sender.
    """

    number: int
    sender: int = 0

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[GraphArrival]:
        for piece in pieces(items, _BLOCK):
            yield GraphArrival(self.number, self.sender, None, piece)


@record(slots=False)
class BlocksOfTask:
    """The function from the items of a task to blocks, as if a processor of its number had emitted them.

    Attributes:
        destination: the vertex to which the inlet leads.
        first: the number of the task that is the sender 0.
        step: of the destination.
    """

    destination: str
    first: int
    step: Step

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[GraphBlock]:
        sender = task.partition - self.first
        for piece in pieces(items, _BLOCK):
            with naming(self.step):
                block = checked_items(piece, self.destination, self.step)
            yield GraphBlock(0, sender, block)
        # Also without items: an edge has ended when all of its senders have.
        yield GraphBlock(0, sender, MarkedBlock([Mark.ENDED]))


@record(slots=False)
class ToProcessor:
    """Source of the number of the processors that run in a task, and then of all items that the task reads.

    Attributes:
        number: that of the task.
    """

    number: int

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[int | GraphArrival]:
        yield self.number
        for piece in pieces(items, _BLOCK):
            yield GraphArrival(0, 0, self.number, piece)
        yield GraphArrival(0, 0, self.number, [Mark.ENDED])


@record(slots=False)
class OfWholeGraph:
    """Function that renumbers the outlets of blocks as in the whole graph.

    Attributes:
        outlets: the numbers in the whole graph, by the numbers of the outlets in the part.
    """

    outlets: Mapping[int, int]

    def __call__(self, blocks: Iterator[GraphBlock], task: Task) -> Iterator[GraphBlock]:
        for block in blocks:
            yield block._replace(outlet=self.outlets[block.outlet])


@record(slots=False)
class ProcessorNumbers:
    """A source of the numbers of processors, each in a split: for parts of a graph to which nothing leads."""

    count: int

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> Iterable[ProcessorNumber]:
        """Return one split for each task."""
        return map(ProcessorNumber, range(self.count))

    def count_splits(self, parallelism: int) -> int:
        """Return the number of splits."""
        return self.count


@record(slots=False)
class ProcessorNumber:
    """The number of one processor as a split."""

    number: int

    def read(self) -> Iterator[int]:
        """Yield the number."""
        yield self.number


def by_priority(inlets: Sequence[GraphEdge]) -> list[int]:
    """Return the numbers of inlets in the order in which they are read."""
    return sorted(range(len(inlets)), key=lambda number: inlets[number].priority)


@record(slots=False)
class InOneTask:
    """The runner of a whole graph in the task that reads all of its inlets, one after another."""

    runs: RunsGraph

    def __call__(self, arrivals: Iterator[GraphArrival], task: Task) -> Iterator[GraphBlock]:
        return self.runs(_ended_in_turn(self.runs.graph, arrivals, task), task)


def _ended_in_turn(graph: VertexGraph, arrivals: Iterator[GraphArrival], task: Task) -> Iterator[GraphArrival]:
    """Yield arrivals, which are ordered by inlet, and the end of each inlet after its last arrival."""
    for number, some in groupby(arrivals, key=lambda arrival: arrival.inlet):
        if graph.inlets[number].order is None:
            yield from some
        else:
            yield from Inlet(number)(
                _merged(graph, number, chain.from_iterable(each.items for each in some), task), task
            )
        # Not after all inlets, since edges of a later priority wait for it.
        yield GraphArrival(number, 0, None, [Mark.ENDED])


def _merged(graph: VertexGraph, number: int, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Merge the items of partitions, each of which is in the order of an inlet.

    A stable sort orders items of equal keys as a merge of the partitions does.
    """
    inlet = graph.inlets[number]
    with naming(next(each.step for each in graph.vertices if each.name == inlet.destination)):
        yield from sorted_items(items, inlet.order, False, task.bound)


def in_turn(
    inlets: Sequence[GraphEdge], streams: Sequence[Sequence[Iterator[Any]]], task: Task
) -> Iterator[GraphArrival]:
    """Yield the items of several inlets: inlets of one priority by turns, before inlets of a later one.

    Args:
        inlets: the inlets of the graph.
        streams: the items of each sender, for each inlet. Senders that are merged in an order are read by turns, too.
        task: the task that reads them.
    """
    for _, numbers in groupby(by_priority(inlets), key=lambda number: inlets[number].priority):
        reading: list[Iterator[GraphArrival]] = []
        for number in numbers:
            sent = [_with_end(Inlet(number, sender), items, task) for sender, items in enumerate(streams[number])]
            reading += sent if inlets[number].order is not None else [chain.from_iterable(sent)]
        while reading:
            for each in list(reading):
                arrival = next(each, None)
                if arrival is None:
                    reading.remove(each)
                else:
                    yield arrival


def _with_end(inlet: Inlet, items: Iterator[Any], task: Task) -> Iterator[GraphArrival]:
    yield from inlet(items, task)
    yield GraphArrival(inlet.number, inlet.sender, None, [Mark.ENDED])
