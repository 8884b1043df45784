"""How items get from one queue to the next: `Sending` between two processors, `Door` and `Feed` into the graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dstream.executor.arrivals_of_graphs import GraphArrival, GraphBlock, Mark, MarkedBlock, has_marks
from dstream.executor.edge_inflow import EdgeInflow
from dstream.executor.edge_routing import EdgeRouter, router_of
from dstream.failures import blame, naming
from dstream.plan.steps import Step
from dstream.plan.vertex_graph import GraphEdge

__all__ = ["Door", "Feed", "Giving", "Sending", "checked_items"]

_AT_ONCE = 4
"""So many blocks come in before the processors have their next turn; one for each inlet, if there are more."""


class Sending:
    """Sends the items of one processor by an edge.

    Args:
        router: says which processors get them; None: there is one.
        inflows: of the processors that they may go to, by their numbers.
        sender: the number of the processor among those that send to these.
    """

    def __init__(self, router: EdgeRouter | None, inflows: Sequence[EdgeInflow], sender: int) -> None:
        self._router = router
        self._inflows = inflows
        self._sender = sender
        self._left: list[tuple[int, list[Any]]] = []

    def send(self, items: list[Any]) -> None:
        """Route items; those that find no room wait here."""
        self._left = [(0, items)] if self._router is None else self._router.route(items)

    def flush(self) -> bool:
        """Put what waits where it goes, as long as there is room, and say whether all has gone."""
        left = self._left
        while left:
            target, block = left[0]
            rest = self._inflows[target].put_some(self._sender, block)
            if rest:
                left[0] = target, rest
                return False
            del left[0]
        return True

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits here."""
        return not self._left


@dataclass(frozen=True)
class Giving:
    """Gives the items of one processor out of the graph, by an outlet.

    Attributes:
        outlet: its number.
        sender: the number of the processor.
        given: takes the blocks; whoever runs the graph empties it.
    """

    outlet: int
    sender: int
    given: deque[GraphBlock]

    is_empty = True

    def send(self, items: list[Any]) -> None:
        """Give items."""
        self.given.append(GraphBlock(self.outlet, self.sender, items))

    def flush(self) -> bool:
        """Say that all has gone."""
        return True


@dataclass
class Door:
    """An inlet, and what takes in what comes by it.

    Attributes:
        edge: the inlet.
        targets: how many processors its destination has.
        inflows: of those that are here, by their numbers.
        senders: how many send by it.
        step: how the destination names itself.
    """

    edge: GraphEdge
    targets: int
    inflows: Mapping[int, EdgeInflow]
    senders: int
    step: Step
    _routers: dict[int, EdgeRouter] = field(default_factory=dict)

    def routed(self, arrival: GraphArrival) -> list[tuple[EdgeInflow, int, list[Any]]]:
        """Return where the items of an arrival go.

        Raises:
            TypeError: one of them is None.
            Exception: what the key function of the edge raised.
        """
        sender, items = arrival.sender, arrival.items
        with naming(self.step):
            items = checked_items(items, self.edge.destination, self.step)
            if arrival.target is not None:
                return [(self.inflows[arrival.target], sender, items)]
            if sender not in self._routers:
                self._routers[sender] = router_of(self.edge, sender, self.senders, self.targets)
            return [(self.inflows[target], sender, block) for target, block in self._routers[sender].route(items)]


def checked_items(items: list[Any], vertex: str, step: Step) -> list[Any]:
    """Return the items as a block that tells whether there are marks among them.

    None is refused: it stands for nothing in the protocol.

    Raises:
        TypeError: one of the items is None.
    """
    kinds = set(map(type, items))
    if type(None) in kinds:
        error = TypeError(f"None came to the vertex {vertex!r}: processors take items alone")
        blame(error, step, None)
        raise error
    return MarkedBlock(items) if has_marks(kinds) else items


class Feed:
    """Lets in what arrives, as long as there is room where it goes.

    Args:
        arrivals: what comes.
        doors: one for each inlet, in order.
        ended: the numbers of the inlets that end with the arrivals.

    Attributes:
        is_done: all is in.
    """

    def __init__(self, arrivals: Iterator[GraphArrival], doors: Sequence[Door], ended: Collection[int]) -> None:
        self._arrivals = arrivals
        self._doors = doors
        self._ended = ended
        self._at_once = max(_AT_ONCE, len(doors))
        self._left: list[tuple[EdgeInflow, int, list[Any]]] = []
        self.is_done = False

    def push(self) -> bool:
        """Let some blocks in, and say whether there were any."""
        is_any = False
        for _ in range(self._at_once):
            if self.is_done or not self._let_in():
                break
            is_any = True
            arrival = next(self._arrivals, None)
            if arrival is None:
                self.is_done = True
                self._end()
            else:
                self._left = self._doors[arrival.inlet].routed(arrival)
        self._let_in()
        return is_any

    def _let_in(self) -> bool:
        """Put what waits where it goes; say whether there was room for all of it."""
        left = self._left
        while left:
            inflow, sender, items = left[0]
            rest = inflow.put_some(sender, items)
            if rest:
                left[0] = inflow, sender, rest
                return False
            del left[0]
        return True

    def _end(self) -> None:
        for door in (self._doors[number] for number in sorted(self._ended)):
            for inflow in door.inflows.values():
                for sender in range(door.senders):
                    if sender not in inflow.ended:
                        inflow.put(sender, MarkedBlock([Mark.ENDED]))
