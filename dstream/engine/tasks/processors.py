"""Routing between the parts of a graph of processors, each to the task of its processor.

Marks are sent among the items, to every target. After its rows, each task sends one control row to every target: the
number of rows that it sent to it. A target that misses a row, or the control row of a task, raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.engine.tasks.rows import ITEMS, LAST, Row, check_arrived
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import Router
from dstream.failures import naming
from dstream.operators.rows.batches import loads, loads_items, travelling
from dstream.plan.processor_graph import GraphEdge
from dstream.plan.steps import Step
from dstream.processors.blocks import GraphArrival, GraphBlock
from dstream.processors.edges import EdgeRouter, router_of

__all__ = ["EdgeToPart", "ReadArrivals", "RouteToProcessors"]


@record(slots=False)
class EdgeToPart:
    """An edge from a task's processors to another part of the graph.

    Attributes:
        edge: which one.
        inlet: its number there.
        senders: how many processors, or tasks, send by it.
        processors: the number of processors of its destination.
        behind: the number of targets before the first of these.
        source: the source in rows of the first of the senders.
        step: what a failure of its key function belongs to.
    """

    edge: GraphEdge
    inlet: int
    senders: int
    processors: int
    behind: int
    source: int
    step: Step


@record(slots=False)
class RouteToProcessors:
    """Send each block that arrives by an edge to the processors that get its items.

    Attributes:
        edges: by the numbers of the outlets that they are.
        results: the other outlets, with the numbers that they have in the whole graph; their blocks go to the last
            target, and are read where they are.
        targets: how many there are.
    """

    counts_rows: ClassVar[bool] = True

    edges: Mapping[int, EdgeToPart]
    results: Mapping[int, int]
    targets: int

    def __call__(self, blocks: Iterator[GraphBlock], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        routing = _Routing(self)
        sent = Counter[int]()
        for row in Router(self.targets, task).rows(routing.placed(blocks)):
            sent[row.target] += 1
            yield row._replace(source=routing.sources.get(row.target, row.source))
        for target, source in routing.sources.items():
            yield Row(target, source, LAST, ITEMS, 0, dumps(sent[target]))


@dataclass
class _Routing:
    """The routing of the blocks of one sender.

    Attributes:
        sources: the `source` of rows to each target; all targets, when the sender has ended.
    """

    sink: RouteToProcessors
    sources: dict[int, int] = field(default_factory=dict)
    routers: dict[int, EdgeRouter] = field(default_factory=dict)

    def placed(self, blocks: Iterator[GraphBlock]) -> Iterator[tuple[int, Any]]:
        """Yield (target, block), and for a processor (target, arrival)."""
        for block in blocks:
            edge = self.sink.edges.get(block.outlet)
            if edge is None:
                outlet = self.sink.results[block.outlet]
                yield self.sink.targets - 1, GraphBlock(outlet, block.sender, _travelling(block.items))
                continue
            router = self.routers.get(block.outlet) or self._begin(block, edge)
            with naming(edge.step):
                routed = router.route(block.items)
            for target, items in routed:
                yield edge.behind + target, GraphArrival(edge.inlet, block.sender, target, _travelling(items))

    def _begin(self, block: GraphBlock, edge: EdgeToPart) -> EdgeRouter:
        made = self.routers[block.outlet] = router_of(edge.edge, block.sender, edge.senders, edge.processors)
        for target in range(edge.behind, edge.behind + edge.processors):
            self.sources.setdefault(target, edge.source + block.sender)
        return made


def _travelling(items: list[Any]) -> Any:
    """Return a block as it is sent; blocks with marks have their own class."""
    return travelling(items) if type(items) is list else items


@record(slots=False)
class ReadArrivals:
    """A reader of the number of the processors in this task, and then of their input.

    Attributes:
        sources: how many tasks have sent something.
    """

    sources: int
    step: Step

    def __call__(self, rows: Iterator[Row]) -> Iterator[int | GraphArrival]:
        arrived, reported = Counter[int](), dict[int, int]()
        for row in rows:
            # The first row is enough, and arrives in any case: each sender has a control row for every target.
            if not arrived and not reported:
                yield row.target
            if row.sequence == LAST:
                reported[row.source] = loads(row.payload)
                continue
            arrived[row.source] += 1
            yield from loads_items(row.payload)
        check_arrived(len(reported), self.sources, reported, arrived, self.step)
