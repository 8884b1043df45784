"""Graphs of processors epoch by epoch: shards of their state, and their steps in a plan."""

from __future__ import annotations

import dataclasses
import hashlib
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain, zip_longest
from typing import Any, TypeVar, cast

from dstream.base.memory import pieces
from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.errors import IllegalStateError
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.streams import CacheIdentity, Fork, Node, Union
from dstream.plan.operations.unbounded import OverEpochs, ProcessorGraph
from dstream.plan.processor_graph import GraphEdge, Routing, VertexGraph
from dstream.plan.steps import Op, Step
from dstream.plan.walk import fold, topological
from dstream.processors.blocks import GraphArrival, GraphBlock, block_of
from dstream.processors.edges import EdgeRouter, graph_groups, router_of
from dstream.processors.graph_execution import GraphExecution, Place, ProcessorLogs, Saved
from dstream.processors.tasklets import TaskletState
from dstream.spi.epochs import EdgeCounts, EpochTime, ShardOutput, TaskPartials
from dstream.spi.processor import Watermark
from dstream.values.time import END_OF_TIME, NO_WATERMARK, Timed

__all__ = ["BlocksOfShard", "GraphOperator", "GraphShard", "in_steps"]


BlocksOfShard = list[tuple[int, list[Any]]]
"""The blocks that one task has for a shard, with the numbers of their senders."""

Entry = tuple[Place, Any]
"""A processor, and a key under which it saved something."""

_TICK = 0.2
"""Seconds after which processors that do something without items are called again."""


class GraphShard:
    """The state of processors, and the processors themselves while they are in this process.

    At the end of each epoch they save, and the difference from the last time is the delta.

    Args:
        graph: their part of the graph.
        parallelism: the number of processors of each vertex.
        senders: the number of senders of each inlet.
        guarantee: the guarantee that they see.
    """

    def __init__(self, graph: VertexGraph, parallelism: int, senders: Sequence[int], guarantee: str) -> None:
        self._graph = graph
        self._parallelism = parallelism
        self._senders = senders
        self._guarantee = guarantee
        self._deadline: int | None = None
        self._clock_deadline: float | None = None
        self._counted: EdgeCounts = {}
        self._passed: EdgeCounts = {}
        self._run: GraphExecution | None = None
        self._values: dict[Entry, Any] = {}
        self._states: dict[Place, tuple[Any, ...]] = {}
        self._digests: dict[Entry, bytes] = {}
        self._changed: set[Entry] = set()
        self._removed: set[Entry] = set()
        self._has_moved = False

    def apply(self, partials: Sequence[tuple[int, BlocksOfShard]], moment: EpochTime) -> ShardOutput:
        """Run the processors on the arrived items, and save their state; they run while the outputs are consumed.

        Raises:
            IllegalStateError: an item arrived, and the processors have completed.
        """
        if self._states and all(TaskletState(*each).has_ended for each in self._states.values()):
            self._refuse(partials)
            self._passed = {}
            return ShardOutput(())
        return ShardOutput(self._outputs(partials, moment))

    def _refuse(self, partials: Sequence[tuple[int, BlocksOfShard]]) -> None:
        if any(items for _, blocks in partials for _, items in blocks):
            raise IllegalStateError(
                f"an item came to the vertex {self._graph.vertices[0].name!r}, whose processors have completed, since "
                "all that they read had ended: give the vertex, or its stage, another name to begin anew"
            )

    def _outputs(self, partials: Sequence[tuple[int, BlocksOfShard]], moment: EpochTime) -> Iterator[Timed]:
        run = self._opened(moment.shard)
        arrivals = chain(_arrivals(partials, moment.shard), self._of_time(moment))
        try:
            for block in chain(run.epoch(arrivals, self._ended(moment)), run.save()):
                yield None, block
        except GeneratorExit:  # The reader of the outputs has failed, and calls `close_processors`.
            raise
        except BaseException as error:
            run.close(error)
            raise
        self._take(run.saved)
        counts = run.counts()
        self._passed, self._counted = _difference(counts, self._counted), counts
        # 0.0 has passed in any epoch, so that a source continues at once.
        self._clock_deadline = None if not run.has_own_work else 0.0 if run.has_sources else moment.now + _TICK
        is_over = moment.new == END_OF_TIME or not (run.hears_time or self._hands_time_on)
        self._deadline = None if is_over else moment.new + 1
        if run.has_ended:
            self._clock_deadline = self._deadline = None
            run.close()

    @property
    def _hands_time_on(self) -> bool:
        return any(each.carries_blocks for each in self._graph.outlets)

    def _ended(self, moment: EpochTime) -> list[int]:
        """Return the inlets that have ended; at inlets between parts, processors send their end themselves."""
        return [number for number, each in enumerate(self._graph.inlets) if self._has_ended(number, each, moment)]

    def _has_ended(self, number: int, edge: GraphEdge, moment: EpochTime) -> bool:
        return number in moment.ended and not edge.carries_blocks

    def _of_time(self, moment: EpochTime) -> Iterator[GraphArrival]:
        """Yield the watermark of the step, after the items, for the inlets by which no processor sends its own."""
        if not NO_WATERMARK < moment.new < END_OF_TIME:
            return
        for number, each in enumerate(self._graph.inlets):
            if not each.carries_blocks:
                yield GraphArrival(number, 0, moment.shard, [Watermark(moment.new)])

    def _opened(self, number: int) -> GraphExecution:
        """Return the processors, created and restored if they are not in this process."""
        if self._run is None:
            parallelism = {each.name: self._parallelism for each in self._graph.vertices}
            self._run = GraphExecution(self._graph, parallelism, number, self._guarantee, self._senders)
            # A shard may be dropped before its job ends, and its processors must be closed nevertheless.
            self._finalizer: weakref.finalize[..., Any] = weakref.finalize(self, self._run.close)
            self._run.restore(self._saved())
            # New processors count from 0.
            self._counted = {}
        return self._run

    def _saved(self) -> Saved:
        saved: Saved = {place: ({}, TaskletState(*state)) for place, state in self._states.items()}
        for (place, key), value in self._values.items():
            saved[place][0][key] = value
        return saved

    def _take(self, saved: Saved) -> None:
        """Find the differences from the state that was saved before."""
        values = {(place, key): value for place, (entries, _) in saved.items() for key, value in entries.items()}
        # By digest: a processor may go on to change the very object that it saved, which would equal itself.
        digests = {entry: hashlib.blake2b(dumps(value), digest_size=16).digest() for entry, value in values.items()}
        states = {place: tuple(state) for place, (_, state) in saved.items()}
        self._changed |= {entry for entry, digest in digests.items() if self._digests.get(entry) != digest}
        self._removed = (self._removed | (self._values.keys() - digests.keys())) - digests.keys()
        self._has_moved = self._has_moved or states != self._states
        self._values, self._digests, self._states = values, digests, states

    def delta(self) -> Any | None:
        """Return (states of tasklets, changed values by entry, entries that are gone)."""
        if not (self._changed or self._removed or self._has_moved):
            return None
        # An entry that was changed may be gone since.
        changed = {entry: self._values[entry] for entry in self._changed if entry in self._values}
        # By `repr`, since keys of different types have no order.
        delta = self._states, changed, sorted(self._removed, key=repr)
        self._changed, self._removed, self._has_moved = set(), set(), False
        return delta

    def dump(self) -> Any:
        """Return (states of tasklets, values by entry)."""
        return self._states, self._values

    def load(self, dumped: Any) -> None:
        """Become the state that was dumped."""
        self._states, self._values = dict(dumped[0]), dict(dumped[1])
        # Nothing to compare with: the next save counts every entry as changed.
        self._digests = {}

    def patch(self, delta: Any) -> None:
        """Apply the delta of an epoch; the processors in this process, which did not run it, are closed."""
        self.close_processors(None)
        states, changed, removed = delta
        self._states = dict(states)
        self._values.update(changed)
        for entry in removed:
            self._values.pop(entry, None)
        for entry in (*changed, *removed):  # The earlier digest is not the digest of the new value.
            self._digests.pop(entry, None)

    def close_processors(self, error: BaseException | None) -> None:
        """Close the processors of this process; their saved state would make them again."""
        run, self._run = self._run, None
        if run is not None:
            # A shard may have many successive runs, and a finalizer would retain each of them with its state.
            self._finalizer.detach()
            run.close(error)

    def unsaved(self) -> set[str]:
        """Return the vertices whose processors in this process do not save."""
        return set() if self._run is None else self._run.unsaved

    def edge_counts(self) -> EdgeCounts:
        """Return the counts of the edges of the processors in the last epoch."""
        return self._passed

    def deadline(self) -> int | None:
        """Return the next watermark, if a processor does something at it."""
        return self._deadline

    def clock_deadline(self) -> float | None:
        """Return the time at which the processors are due without items: at once if there is a source."""
        return self._clock_deadline

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Return ((vertex, key), value) of all saved entries."""
        return (((place[0], key), value) for (place, key), value in self._values.items())

    def __len__(self) -> int:
        return len(self._values)


def _difference(counts: EdgeCounts, before: EdgeCounts) -> EdgeCounts:
    """Return the differences of counts from earlier counts, which may be missing."""

    def more(vertex: str, way: int) -> list[int]:
        known = before[vertex][way] if vertex in before else ()
        return [now - then for now, then in zip_longest(counts[vertex][way], known, fillvalue=0)]

    return {vertex: (more(vertex, 0), more(vertex, 1)) for vertex in counts}


def _arrivals(partials: Sequence[tuple[int, BlocksOfShard]], number: int) -> Iterator[GraphArrival]:
    return (GraphArrival(inlet, sender, number, items) for inlet, blocks in partials for sender, items in blocks)


_BLOCK = 1024


@record
class GraphOperator:
    """The `StateOperator` of a part of a graph: its shard `k` is the processors `k` of its vertices.

    Items arrive as pairs `(timestamp, item)`, whose timestamp is ignored; by an edge that carries blocks, the item is a
    `GraphBlock`. The output is pairs `(None, GraphBlock)`. By the other inlets, processors receive the watermarks of
    the step, and the numbers of ended inputs.

    Attributes:
        graph: a part, as returned by `graph_groups`.
        shards: the number of processors of each vertex; constant for a job.
        senders: the number of processors that send by each inlet, in order; 1 unless it carries blocks.
        guarantee: the guarantee that processors see.
        logs: reports the lines of processors where they run, as in the caller's process.
    """

    graph: VertexGraph
    shards: int
    senders: tuple[int, ...]
    guarantee: str = "exactly-once"
    logs: ProcessorLogs = field(default_factory=ProcessorLogs, compare=False)

    kind = "graph"
    ticks = True

    @property
    def signature(self) -> tuple[Any, ...]:
        """Return the number of processors of the part and of its senders, and the names of its vertices."""
        return (self.shards, *self.senders, *(each.name for each in self.graph.vertices))

    @property
    def is_endless(self) -> bool:
        """Return whether a processor without inbound edges may never end."""
        return self.graph.is_endless

    @property
    def inputs(self) -> int:
        """Return the number of inlets."""
        return len(self.graph.inlets)

    def partial(self, number: int, items: Iterator[Timed], moment: EpochTime, shards: int) -> TaskPartials:
        """Route the items of an inlet: for each shard, blocks with the number of their sender.

        Raises:
            Exception: the error of the key function of the edge.
        """
        edge, senders = self.graph.inlets[number], self.senders[number]
        counted = _Counted(items, edge.carries_blocks)
        found: dict[int, BlocksOfShard] = {}
        routers: dict[int, EdgeRouter] = {}
        for sender, block in counted:
            if sender not in routers:
                routers[sender] = router_of(edge, _first(edge, sender, moment), senders, shards)
            for target, part in routers[sender].route(block):
                found.setdefault(target, []).append((sender, part))
        return TaskPartials(found, counted.items, 0)

    def new(self) -> GraphShard:
        """Return a shard of processors in their initial state."""
        self.logs.begin()
        return GraphShard(self.graph, self.shards, self.senders, self.guarantee)


def _first(edge: GraphEdge, sender: int, moment: EpochTime) -> int:
    """Return the first receiver of the round-robin: each epoch begins with another processor."""
    return moment.epoch if edge.routing is Routing.UNICAST and not edge.carries_blocks else sender


class _Counted:
    """The blocks of an input with their senders, and the count of the items in them."""

    def __init__(self, items: Iterator[Timed], are_blocks: bool) -> None:
        self.items = 0
        self._left = items
        self._are_blocks = are_blocks

    def __iter__(self) -> Iterator[tuple[int, list[Any]]]:
        if not self._are_blocks:
            for piece in pieces((item for _, item in self._left), _BLOCK):
                self.items += len(piece)
                yield 0, block_of(piece)
            return
        for _, block in self._left:
            assert isinstance(block, GraphBlock), "another part of the graph sends blocks"
            self.items += len(block.items)
            yield block.sender, block.items


C = TypeVar("C", bound=Node)


def in_steps(root: C, ready: Callable[[ProcessorGraph], VertexGraph], guarantee: str = "exactly-once") -> C:
    """Return a copy of the plan where steps over epochs replace graphs, except in the broadcast sides of joins.

    Args:
        root: the end of the plan.
        ready: returns the graph of an operation with its numbers of processors, and suppliers that may be sent.
        guarantee: the guarantee that processors see.
    """
    sides = chain.from_iterable(each.broadcast_inputs() for each in topological(root))
    held = {id(node) for side in sides for node in topological(side)}

    def made(node: Node, inputs: Sequence[Node]) -> Node:
        if isinstance(node, ProcessorGraph) and id(node) not in held:
            return _Steps(node, ready(node), inputs, guarantee).blocks()
        return node.reading(inputs)

    return cast(C, fold(root, made))


class _Steps:
    """The steps of one graph, in topological order.

    Args:
        node: the operation.
        graph: its graph.
        inputs: one for each inlet of the graph.
        guarantee: the guarantee that processors see.
    """

    def __init__(self, node: ProcessorGraph, graph: VertexGraph, inputs: Sequence[Node], guarantee: str) -> None:
        self._node = node
        self._guarantee = guarantee
        self._graph = graph
        self._inputs = {edge.way: each for edge, each in zip(graph.inlets, inputs, strict=True)}
        self._outlets = {edge.way: number for number, edge in enumerate(graph.outlets)}
        self._parts = graph_groups(graph)
        self._part_of = {each.name: number for number, part in enumerate(self._parts) for each in part.vertices}
        self._made: list[Node] = []

    def blocks(self) -> Node:
        """Return an operation with the blocks of all outlets of the graph; parts without any run, too."""
        results: list[Node] = []
        for part in self._parts:
            step = self._step(part)
            readers = [each for each in part.outlets if each.destination in self._part_of]
            ends = {n: self._outlets[e.way] for n, e in enumerate(part.outlets) if e.way in self._outlets}
            is_shared = len(readers) + (bool(ends) or not readers) > 1
            self._made.append(Fork(step, CacheIdentity(), step=step.step) if is_shared else step)
            if ends or not readers:
                results.append(_chosen(self._made[-1], ends, self._node.step))
        return results[0] if len(results) == 1 else Union(tuple(results), step=self._node.step)

    def _step(self, part: VertexGraph) -> OverEpochs:
        first = part.vertices[0]
        senders = tuple(self._senders(edge) for edge in part.inlets)
        operator = GraphOperator(part, first.parallelism, senders, self._guarantee)
        upstreams = tuple(map(self._upstream, part.inlets))
        return OverEpochs(upstreams, operator, self._node.stage or first.name, step=self._node.step)

    def _senders(self, edge: GraphEdge) -> int:
        return self._parts[self._part_of[edge.source]].vertices[0].parallelism if edge.carries_blocks else 1

    def _upstream(self, edge: GraphEdge) -> Node:
        """Return the input of an inlet of a part."""
        if not edge.carries_blocks:
            return self._inputs[edge.way]
        before = self._part_of[edge.source]
        number = [each.way for each in self._parts[before].outlets].index(edge.way)
        return _chosen(self._made[before], {number: number}, self._node.step)


def _chosen(blocks: Node, numbers: Mapping[int, int], step: Step) -> Node:
    """Return the blocks of a subset of the outlets, renumbered."""
    unseen = dataclasses.replace(step, label="")
    ops = (
        Op("filter", _IsOneOf(frozenset(numbers)), None, unseen),
        Op("map", _Renumbered(numbers), None, unseen),
    )
    return Chain(blocks, ops, step=unseen)


@record
class _IsOneOf:
    outlets: Collection[int]

    def __call__(self, block: GraphBlock) -> bool:
        return block.outlet in self.outlets


@record
class _Renumbered:
    numbers: Mapping[int, int]

    def __call__(self, block: GraphBlock) -> GraphBlock:
        return block._replace(outlet=self.numbers[block.outlet])
