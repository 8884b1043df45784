"""Edges of a running graph: routing, queues between processors, and cuts between tasks."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from dstream.base.records import record
from dstream.failures import blame, naming
from dstream.failures.attribution import each
from dstream.keys import canonical_all
from dstream.keys.hashing import shard_numbers
from dstream.plan.processor_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.plan.steps import Step
from dstream.processors.blocks import MARKS, GraphArrival, GraphBlock, Mark, MarkedBlock, has_marks
from dstream.processors.inbound_edges import EdgeInflow
from dstream.spi.epochs import target_of
from dstream.spi.processor import SHARDS
from dstream.values.entries import keys_of

__all__ = ["Door", "EdgeRouter", "Feed", "Giving", "Sending", "checked_items", "graph_groups", "router_of"]


def graph_groups(graph: VertexGraph) -> list[VertexGraph]:
    """Return the parts of a graph in which processors of equal number can run in one task, in topological order.

    A vertex belongs to the part of its upstream vertices, if all its edges begin in one part, at processors of the same
    number. Edges between parts are outlets of one part and inlets of another, and carry blocks; the inlets and outlets
    of the graph are unchanged.
    """
    part_of: dict[str, int] = {}
    parts: list[list[GraphVertex]] = []
    by_name = {each.name: each for each in graph.vertices}
    for vertex in graph.vertices:
        before = {part_of.get(edge.source) for edge in graph.into(vertex.name)}
        (only,) = before if len(before) == 1 else (None,)
        if only is None or not all(_stays(edge, by_name) for edge in graph.into(vertex.name)):
            only = len(parts)
            parts.append([])
        parts[only].append(vertex)
        part_of[vertex.name] = only
    return [_part(graph, vertices, part_of) for vertices in parts]


def _stays(edge: GraphEdge, by_name: dict[str, GraphVertex]) -> bool:
    """Return whether an item that a processor emits may go to the processor of the same number."""
    is_near = edge.routing in (Routing.UNICAST, Routing.ISOLATED) and edge.order is None
    return is_near and by_name[edge.source].parallelism == by_name[edge.destination].parallelism


def _part(graph: VertexGraph, vertices: list[GraphVertex], part_of: dict[str, int]) -> VertexGraph:
    names = {each.name for each in vertices}
    edges = []
    for edge in graph.edges:
        if edge.source in names or edge.destination in names:
            is_cut = edge.source in part_of and edge.destination in part_of
            is_cut = is_cut and part_of[edge.source] != part_of[edge.destination]
            edges.append(dataclasses.replace(edge, carries_blocks=True) if is_cut else edge)
    return VertexGraph(tuple(vertices), tuple(edges))


class EdgeRouter:
    """Router of the items that a processor or a task sends by an edge: to the only processor, or round-robin.

    Args:
        edge: the edge.
        sender: the number of the processor.
        targets: the processors that may receive items.
        all_targets: the number of processors of the destination; each of them receives the marks.
    """

    def __init__(self, edge: GraphEdge, sender: int, targets: range, all_targets: int) -> None:
        self.edge = edge
        self._targets = targets
        self._all = all_targets
        # Senders begin at different targets: otherwise, with few items each, all would send to the first ones.
        self._next = sender % len(targets)

    def route(self, items: list[Any]) -> list[tuple[int, list[Any]]]:
        """Return the items for each processor that receives items, in order; marks are sent to every processor.

        Raises:
            Exception: the error of the key function of the edge, or of its partitioner.
        """
        if self._all == 1:
            return [(0, items)]
        if type(items) is not MarkedBlock:
            return self._route(items)
        found: list[tuple[int, list[Any]]] = []
        run: list[Any] = []
        for item in items:
            if type(item) in MARKS:
                found += self._route(run) if run else ()
                found += [(target, MarkedBlock([item])) for target in range(self._all)]
                run = []
            else:
                run.append(item)
        return found + (self._route(run) if run else [])

    def _route(self, items: list[Any]) -> list[tuple[int, list[Any]]]:
        """Distribute items round-robin."""
        targets, count = self._targets, len(self._targets)
        if count == 1:
            return [(targets[0], items)]
        first, self._next = self._next, (self._next + len(items)) % count
        dealt = ((targets[(first + place) % count], items[place::count]) for place in range(min(count, len(items))))
        return list(dealt)


class _ToAll(EdgeRouter):
    """A router to every processor."""

    def _route(self, items: list[Any]) -> list[tuple[int, list[Any]]]:
        # A list for each: it belongs to the inbox that it reaches, which sets the items to None as they are taken.
        return [(target, list(items)) for target in range(self._all)]


class _ByKey(EdgeRouter):
    """A router to the processor that has the key of an item."""

    def __init__(self, edge: GraphEdge, sender: int, targets: range, all_targets: int) -> None:
        super().__init__(edge, sender, targets, all_targets)
        # By shard first, as state is saved, so that each key reaches the processor that restores its shard.
        self._target_of = [target_of(shard, SHARDS, all_targets) for shard in range(SHARDS)]

    def _route(self, items: list[Any]) -> list[tuple[int, list[Any]]]:
        numbers = self._numbers(items)
        found = sorted(set(numbers))
        if len(found) == 1:
            return [(found[0], items)]
        return [(target, list(compress(items, map(target.__eq__, numbers)))) for target in found]

    def _numbers(self, items: list[Any]) -> list[int]:
        key, partitioner, count = self.edge.key, self.edge.partitioner, self._all
        assert key is not None, "a partitioned edge has a key"
        keys = keys_of(key, items)
        if partitioner is None:
            return list(map(self._target_of.__getitem__, self._shards(keys, items)))
        numbers = each(lambda one, item: partitioner(one, count), items, keys)
        for number, item in zip(numbers, items, strict=True):
            if not isinstance(number, int) or not 0 <= number < count:
                raise ValueError(f"the partitioner gave {number!r} for {item!r}: it is to give 0 to {count - 1}")
        return numbers

    def _shards(self, keys: list[Any], items: list[Any]) -> list[int]:
        try:
            return shard_numbers(canonical_all(keys), SHARDS)
        except Exception:  # So that the key that is refused is reported with its item.
            return each(lambda key, item: shard_numbers(canonical_all([key]), SHARDS)[0], items, keys)


def router_of(edge: GraphEdge, sender: int, senders: int, targets: int) -> EdgeRouter:
    """Return the router of one sender.

    Args:
        edge: the edge.
        sender: the number of the sender.
        senders: the number of senders.
        targets: the number of processors of the destination.
    """
    if edge.routing is Routing.PARTITIONED:
        return _ByKey(edge, sender, range(targets), targets)
    if edge.routing is Routing.BROADCAST:
        return _ToAll(edge, sender, range(targets), targets)
    if edge.routing is Routing.ISOLATED:
        # Each producer has its own consumers; if there are fewer consumers, several producers share one.
        own = range(sender, targets, senders) if senders <= targets else range(sender % targets, sender % targets + 1)
        return EdgeRouter(edge, 0, own, targets)
    return EdgeRouter(edge, sender, range(targets), targets)


_AT_ONCE = 4
"""Maximum number of blocks that arrive before the next turn of the processors, or one per inlet if that is more."""


class Sending:
    """The sender of the items of one processor by an edge.

    Args:
        router: chooses the receiving processors; None: there is one.
        inflows: the inflows of the possible receivers, by their numbers.
        sender: the number of the processor among the senders of the edge.
    """

    def __init__(self, router: EdgeRouter | None, inflows: Sequence[EdgeInflow], sender: int) -> None:
        self._router = router
        self._inflows = inflows
        self._sender = sender
        self._left: list[tuple[int, list[Any]]] = []

    def send(self, items: list[Any]) -> None:
        """Route items to the buffer."""
        self._left = [(0, items)] if self._router is None else self._router.route(items)

    def flush(self) -> bool:
        """Send the buffered items as long as there is room, and return whether all were sent."""
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
        """Return whether the buffer is empty."""
        return not self._left


@record(slots=False)
class Giving:
    """The sender of the items of one processor out of the graph, by an outlet.

    Attributes:
        outlet: the number of the outlet.
        sender: the number of the processor.
        given: the list of emitted blocks; the run of the graph empties it.
    """

    outlet: int
    sender: int
    given: deque[GraphBlock]

    is_empty = True

    def send(self, items: list[Any]) -> None:
        """Emit items as a block."""
        self.given.append(GraphBlock(self.outlet, self.sender, items))

    def flush(self) -> bool:
        """Return that all was sent."""
        return True


@dataclass
class Door:
    """An inlet with the receiver of its items.

    Attributes:
        edge: the inlet.
        targets: the number of processors of its destination.
        inflows: the inflows of the processors of this run, by their numbers.
        senders: the number of senders of the inlet.
        step: the name of the destination in messages.
    """

    edge: GraphEdge
    targets: int
    inflows: Mapping[int, EdgeInflow]
    senders: int
    step: Step
    _routers: dict[int, EdgeRouter] = field(default_factory=dict)

    def routed(self, arrival: GraphArrival) -> list[tuple[EdgeInflow, int, list[Any]]]:
        """Return the inflow, sender and items for each receiver of an arrival.

        Raises:
            TypeError: an item is None.
            Exception: the error of the key function of the edge.
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
    """Return the items as a block whose class shows whether it contains marks.

    None is refused: it means the absence of an item in the protocol.

    Raises:
        TypeError: an item is None.
    """
    kinds = set(map(type, items))
    if type(None) in kinds:
        error = TypeError(f"None came to the vertex {vertex!r}: processors take items alone")
        blame(error, step, None)
        raise error
    return MarkedBlock(items) if has_marks(kinds) else items


class Feed:
    """Queue of arriving items, which passes them to the inflows as long as there is room.

    Args:
        arrivals: the arriving blocks.
        doors: one for each inlet, in order.
        ended: the numbers of the inlets that end with the arrivals.

    Attributes:
        is_done: whether all arrivals were passed.
    """

    def __init__(self, arrivals: Iterator[GraphArrival], doors: Sequence[Door], ended: Collection[int]) -> None:
        self._arrivals = arrivals
        self._doors = doors
        self._ended = ended
        self._at_once = max(_AT_ONCE, len(doors))
        self._left: list[tuple[EdgeInflow, int, list[Any]]] = []
        self.is_done = False

    def push(self) -> bool:
        """Accept some blocks, and return whether there were any."""
        is_any = False
        for _ in range(self._at_once):
            # Nothing more is read while there is no room for earlier blocks: this is the backpressure of a graph.
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
        """Pass the pending items to the inflows; return whether there was room for all of them."""
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
                    # An earlier epoch may have ended it, or the sender itself.
                    if sender not in inflow.ended:
                        inflow.put(sender, MarkedBlock([Mark.ENDED]))
