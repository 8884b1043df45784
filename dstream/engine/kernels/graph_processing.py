"""How a task runs a graph of processors, or its part of one, with the executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

from dstream.engine.kernels.core_operations import Task
from dstream.engine.kernels.stamping import telling
from dstream.executor.arrivals_of_graphs import GraphArrival, GraphBlock, Mark
from dstream.executor.graph_run import GraphRun
from dstream.memory import pieces
from dstream.plan.core_of_graphs import Processing
from dstream.plan.graph_parallelism import parallelism_of, with_parallelism
from dstream.plan.steps import Op
from dstream.plan.vertex_graph import GraphEdge, VertexGraph

__all__ = ["InOneTask", "Inlet", "RunsGraph", "by_priority", "in_turn", "whole"]

_BLOCK = 1024


@dataclass(frozen=True)
class RunsGraph:
    """Runs a graph on what arrives; give blocks.

    Attributes:
        graph: whose vertices say how many processors they have.
        receipts: takes the counts of the edges.
        part: how many tasks run the same graph, each the processors of one number: that for which things arrive, else
            that of the task. None: this task runs all processors.
        senders: how many tasks or processors send by each inlet.
    """

    graph: VertexGraph
    guarantee: str
    receipts: Op
    part: int | None = None
    senders: Sequence[int] = ()

    def __call__(self, arrivals: Iterator[GraphArrival], task: Task) -> Iterator[GraphBlock]:
        here = None
        if self.part is not None:
            first = next(arrivals, None)
            here = task.partition % self.part
            if first is not None:
                here = here if first.target is None else first.target
                arrivals = chain((first,), arrivals)
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
class Inlet:
    """Makes arrivals of the items that come by an inlet.

    Attributes:
        number: that of the inlet.
        senders: how many tasks send by it, each of which says when it has ended; 0: another one will say it.
        stays: the items are for the processors of the number of the task.
    """

    number: int
    senders: int = 0
    stays: bool = False

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[GraphArrival]:
        sender = task.partition % self.senders if self.senders else 0
        target = sender if self.stays else None
        for piece in pieces(items, _BLOCK):
            yield GraphArrival(self.number, sender, target, piece)
        if self.senders:
            yield GraphArrival(self.number, sender, target, [Mark.ENDED])


def by_priority(inlets: Sequence[GraphEdge]) -> list[int]:
    """Return the numbers of inlets in the order in which they are read."""
    return sorted(range(len(inlets)), key=lambda number: inlets[number].priority)


@dataclass(frozen=True)
class InOneTask:
    """Runs a whole graph in the task that reads all of its inlets, one after another."""

    runs: RunsGraph

    def __call__(self, arrivals: Iterator[GraphArrival], task: Task) -> Iterator[GraphBlock]:
        return self.runs(_ended_in_turn(arrivals), task)


def _ended_in_turn(arrivals: Iterator[GraphArrival]) -> Iterator[GraphArrival]:
    """Give arrivals of which those of one inlet come together, and say after each inlet that it has ended."""
    for number, some in groupby(arrivals, key=lambda arrival: arrival.inlet):
        yield from some
        yield GraphArrival(number, 0, None, [Mark.ENDED])


def in_turn(inlets: Sequence[GraphEdge], streams: Sequence[Iterator[Any]], task: Task) -> Iterator[GraphArrival]:
    """Give what arrives by several inlets: those of one priority by turns, before those of a later one.

    Args:
        inlets: those of the graph.
        streams: the items of each.
        task: that reads them.
    """
    for _, numbers in groupby(by_priority(inlets), key=lambda number: inlets[number].priority):
        reading = {number: Inlet(number)(streams[number], task) for number in numbers}
        while reading:
            for number, each in list(reading.items()):
                arrival = next(each, None)
                if arrival is None:
                    del reading[number]
                    arrival = GraphArrival(number, 0, None, [Mark.ENDED])
                yield arrival
