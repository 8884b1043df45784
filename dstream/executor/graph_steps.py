"""`in_steps`: a plan that runs epoch by epoch, in which each part of a graph of processors is a step over epochs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from dstream.executor.arrivals_of_graphs import GraphBlock
from dstream.executor.graph_groups import graph_groups
from dstream.executor.graph_operator import GraphOperator
from dstream.plan.core import CacheIdentity, Chain, Concat, Core
from dstream.plan.core_of_epochs import OverEpochs
from dstream.plan.core_of_forks import Fork
from dstream.plan.core_of_graphs import Processing
from dstream.plan.core_of_pairs import HashJoin
from dstream.plan.steps import Op, Step
from dstream.plan.vertex_graph import GraphEdge, VertexGraph
from dstream.plan.walk import topological

__all__ = ["in_steps"]

C = TypeVar("C", bound=Core)


def in_steps(root: C, ready: Callable[[Processing], VertexGraph], guarantee: str = "exactly-once") -> C:
    """Return the same plan with steps over epochs in the place of graphs. What a hash join keeps beside it ends.

    Args:
        root: the end of the plan.
        ready: gives the graph of an operation with the number of its processors, and suppliers that may travel.
        guarantee: what processors are told.
    """
    held = {id(node) for join in topological(root) if isinstance(join, HashJoin) for node in topological(join.right)}
    became: dict[int, Core] = {}
    for node in topological(root):
        inputs = [became[id(each)] for each in node.inputs()]
        if isinstance(node, Processing) and id(node) not in held:
            made = _Steps(node, ready(node), inputs, guarantee).blocks()
        else:
            is_same = all(new is old for new, old in zip(inputs, node.inputs(), strict=True))
            made = node if is_same else node.with_inputs(inputs)
        became[id(node)] = made
    return cast(C, became[id(root)])


class _Steps:
    """The steps of one graph, in topological order.

    Args:
        node: the operation.
        graph: its graph.
        inputs: one for each inlet of the graph.
        guarantee: what processors are told.
    """

    def __init__(self, node: Processing, graph: VertexGraph, inputs: Sequence[Core], guarantee: str) -> None:
        self._node = node
        self._guarantee = guarantee
        self._graph = graph
        self._inputs = {edge.way: each for edge, each in zip(graph.inlets, inputs, strict=True)}
        self._outlets = {edge.way: number for number, edge in enumerate(graph.outlets)}
        self._parts = graph_groups(graph)
        self._part_of = {each.name: number for number, part in enumerate(self._parts) for each in part.vertices}
        self._made: list[Core] = []

    def blocks(self) -> Core:
        """Return what gives the blocks of all outlets of the graph; parts without any run, too."""
        results: list[Core] = []
        for part in self._parts:
            step = self._step(part)
            readers = [each for each in part.outlets if each.destination in self._part_of]
            ends = {n: self._outlets[e.way] for n, e in enumerate(part.outlets) if e.way in self._outlets}
            is_shared = len(readers) + (bool(ends) or not readers) > 1
            self._made.append(Fork(step, CacheIdentity(), step=step.step) if is_shared else step)
            if ends or not readers:
                results.append(_chosen(self._made[-1], ends, self._node.step))
        return results[0] if len(results) == 1 else Concat(tuple(results), is_union=True, step=self._node.step)

    def _step(self, part: VertexGraph) -> OverEpochs:
        first = part.vertices[0]
        senders = tuple(self._senders(edge) for edge in part.inlets)
        operator = GraphOperator(part, first.parallelism, senders, self._guarantee)
        upstreams = tuple(map(self._upstream, part.inlets))
        return OverEpochs(upstreams, operator, self._node.stage or first.name, step=self._node.step)

    def _senders(self, edge: GraphEdge) -> int:
        return self._parts[self._part_of[edge.source]].vertices[0].parallelism if edge.carries_blocks else 1

    def _upstream(self, edge: GraphEdge) -> Core:
        """Return what comes by an inlet of a part."""
        if not edge.carries_blocks:
            return self._inputs[edge.way]
        before = self._part_of[edge.source]
        number = [each.way for each in self._parts[before].outlets].index(edge.way)
        return _chosen(self._made[before], {number: number}, self._node.step)


def _chosen(blocks: Core, numbers: Mapping[int, int], step: Step) -> Core:
    """Return the blocks of some outlets, under other numbers."""
    unseen = dataclasses.replace(step, label="")
    ops = (
        Op("filter", _IsOneOf(frozenset(numbers)), None, unseen),
        Op("map", _Renumbered(numbers), None, unseen),
    )
    return Chain(blocks, ops, step=unseen)


@dataclass(frozen=True, slots=True)
class _IsOneOf:
    outlets: Collection[int]

    def __call__(self, block: GraphBlock) -> bool:
        return block.outlet in self.outlets


@dataclass(frozen=True, slots=True)
class _Renumbered:
    numbers: Mapping[int, int]

    def __call__(self, block: GraphBlock) -> GraphBlock:
        return block._replace(outlet=self.numbers[block.outlet])
