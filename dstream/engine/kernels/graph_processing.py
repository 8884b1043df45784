"""How a task runs a graph of processors, or its part of one, with the executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

from dstream.engine.kernels.core_operations import Task
from dstream.engine.kernels.spilling import sorted_items
from dstream.engine.kernels.stamping import telling
from dstream.executor.arrivals_of_graphs import GraphArrival, GraphBlock, Mark
from dstream.executor.graph_doors import check_items
from dstream.executor.graph_run import GraphRun
from dstream.failures import naming
from dstream.memory import pieces
from dstream.plan.core_of_graphs import Processing
from dstream.plan.graph_parallelism import parallelism_of, with_parallelism
from dstream.plan.steps import Op, Step
from dstream.plan.vertex_graph import GraphEdge, VertexGraph

__all__ = [
    "BlocksOfTask",
    "InOneTask",
    "Inlet",
    "OfWholeGraph",
    "ProcessorNumbers",
    "RunsGraph",
    "RunsPart",
    "by_priority",
    "in_turn",
    "whole",
]

_BLOCK = 1024


@dataclass(frozen=True)
class RunsGraph:
    """Runs a graph on what arrives; give blocks.

    Attributes:
        graph: whose vertices say how many processors they have.
        receipts: takes the counts of the edges.
        senders: how many tasks or processors send by each inlet.
    """

    graph: VertexGraph
    guarantee: str
    receipts: Op
    senders: Sequence[int] = ()

    def __call__(self, arrivals: Iterator[GraphArrival], task: Task, here: int | None = None) -> Iterator[GraphBlock]:
        """Give the blocks of all processors, or of those of one number."""
        run = GraphRun(self.graph, parallelism_of(self.graph), here, self.guarantee, self.senders)
        failed: BaseException | None = None
        try:
            yield from run.run(arrivals)
            task.peeking(self.receipts)(run.counts())
        except Exception as error:
            failed = error
            raise
        finally:
            run.close(failed)


def whole(node: Processing, cores: int, receipts: Op | None = None) -> RunsGraph:
    """Return what runs all processors of a graph in one task.

    Args:
        node: has the graph.
        cores: how many processors a vertex has that does not say it.
        receipts: takes the counts of the edges; None: what takes them is here.
    """
    graph = with_parallelism(node.graph, cores)
    return RunsGraph(graph, node.guarantee, receipts or telling(node.step, node.take))


@dataclass(frozen=True)
class RunsPart:
    """Runs the processors of one number of a part of a graph: the number comes first, then what arrives for them."""

    runs: RunsGraph

    def __call__(self, arrivals: Iterator[Any], task: Task) -> Iterator[GraphBlock]:
        here = next(arrivals, None)
        assert isinstance(here, int), "every target hears of every task that sends"
        return self.runs(arrivals, task, here)


@dataclass(frozen=True)
class Inlet:
    """Makes arrivals of the items that come by an inlet of a graph that one task runs.

    Attributes:
        number: that of the inlet.
    """

    number: int

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[GraphArrival]:
        for piece in pieces(items, _BLOCK):
            yield GraphArrival(self.number, 0, None, piece)


@dataclass(frozen=True)
class BlocksOfTask:
    """Makes blocks of the items that a task has for an inlet, as if a processor of its number had emitted them.

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
                check_items(piece, self.destination, self.step)
            yield GraphBlock(0, sender, piece)
        yield GraphBlock(0, sender, [Mark.ENDED])


@dataclass(frozen=True)
class OfWholeGraph:
    """Gives blocks the numbers that their outlets have in the whole graph.

    Attributes:
        outlets: those numbers, by the numbers of the outlets in the part.
    """

    outlets: Mapping[int, int]

    def __call__(self, blocks: Iterator[GraphBlock], task: Task) -> Iterator[GraphBlock]:
        for block in blocks:
            yield block._replace(outlet=self.outlets[block.outlet])


@dataclass(frozen=True)
class ProcessorNumbers:
    """A source of the numbers of processors, each in a split: for parts of a graph to which nothing leads."""

    count: int

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> Iterable[ProcessorNumber]:
        """Return one split for each."""
        return map(ProcessorNumber, range(self.count))

    def count_splits(self, parallelism: int) -> int:
        """Return how many splits there are."""
        return self.count


@dataclass(frozen=True)
class ProcessorNumber:
    """The number of one processor as a split."""

    number: int

    def read(self) -> Iterator[int]:
        """Give it."""
        yield self.number


def by_priority(inlets: Sequence[GraphEdge]) -> list[int]:
    """Return the numbers of inlets in the order in which they are read."""
    return sorted(range(len(inlets)), key=lambda number: inlets[number].priority)


@dataclass(frozen=True)
class InOneTask:
    """Runs a whole graph in the task that reads all of its inlets, one after another."""

    runs: RunsGraph

    def __call__(self, arrivals: Iterator[GraphArrival], task: Task) -> Iterator[GraphBlock]:
        return self.runs(_ended_in_turn(self.runs.graph, arrivals, task), task)


def _ended_in_turn(graph: VertexGraph, arrivals: Iterator[GraphArrival], task: Task) -> Iterator[GraphArrival]:
    """Give arrivals of which those of one inlet come together, and say after each inlet that it has ended."""
    for number, some in groupby(arrivals, key=lambda arrival: arrival.inlet):
        if graph.inlets[number].order is None:
            yield from some
        else:
            yield from _arriving(graph, number, chain.from_iterable(each.items for each in some), task)
        yield GraphArrival(number, 0, None, [Mark.ENDED])


def _arriving(graph: VertexGraph, number: int, items: Iterator[Any], task: Task) -> Iterator[GraphArrival]:
    """Return what arrives by an inlet, whose partitions are merged if it has an order."""
    inlet = graph.inlets[number]
    if inlet.order is None:
        return Inlet(number)(items, task)
    step = next(each.step for each in graph.vertices if each.name == inlet.destination)
    return Inlet(number)(_merged(items, inlet.order, step, task), task)


def _merged(items: Iterator[Any], order: Callable[[Any], Any], step: Step, task: Task) -> Iterator[Any]:
    """Give the items of partitions, each of which has them in an order, in that order.

    A stable sort puts those of equal keys as a merge of the partitions does.
    """
    with naming(step):
        yield from sorted_items(items, order, False, task.bound)


def in_turn(graph: VertexGraph, streams: Sequence[Iterator[Any]], task: Task) -> Iterator[GraphArrival]:
    """Give what arrives by the inlets of a graph: those of one priority by turns, before those of a later one.

    Args:
        graph: has the inlets.
        streams: the items of each.
        task: that reads them.
    """
    inlets = graph.inlets
    for _, numbers in groupby(by_priority(inlets), key=lambda number: inlets[number].priority):
        reading = {number: _arriving(graph, number, streams[number], task) for number in numbers}
        while reading:
            for number, each in list(reading.items()):
                arrival = next(each, None)
                if arrival is None:
                    del reading[number]
                    arrival = GraphArrival(number, 0, None, [Mark.ENDED])
                yield arrival
