"""Graphs of processors and steps over epochs on the local engine. Loaded by the first plan that has one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from dstream.base.environment import cores_here
from dstream.engine.local.operations import LocalTask, apply, opened_later, splits, start
from dstream.operators.rows.aggregates import finishing, partial
from dstream.operators.rows.operations import Task, operation
from dstream.operators.state.stateful_steps import reducing
from dstream.operators.state.watermarks import receipt_step
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.ends import Write
from dstream.plan.operations.keyed import Aggregate
from dstream.plan.operations.streams import Node, Read
from dstream.plan.operations.unbounded import OverEpochs, ProcessorGraph
from dstream.plan.processor_graph import GraphVertex, LastVertices, groups_of, last_vertices, with_parallelism
from dstream.plan.properties import is_bounded
from dstream.plan.steps import Op
from dstream.processors.groups import GroupInput, GroupOutput, GroupShuffle
from dstream.processors.tasks import in_turn, whole

if TYPE_CHECKING:
    from dstream.plan.processor_graph import GraphEdge

__all__ = ["entries_of_graph"]


@start.register
def _(node: OverEpochs, task: LocalTask) -> Iterator[Any]:
    """Advance the time of a step that reads nothing."""
    return operation(node)(iter(()), task)


@apply.register
def _(node: OverEpochs, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Reduce one input after another, then let the shards process their input, and time pass."""
    inputs = [items, *(opened_later(each, task) for each in node.upstreams[1:])]
    arrivals = (reducing(node, number)(each, task) for number, each in enumerate(inputs))
    return operation(node)(chain.from_iterable(arrivals), task)


@start.register
def _(node: ProcessorGraph, task: LocalTask) -> Iterator[Any]:
    """Run all processors in this process."""
    inlets = node.graph.inlets
    streams = [_of_senders(edge, each, task) for edge, each in zip(inlets, node.upstreams, strict=True)]
    runs = whole(node, cores_here(), list(map(len, streams)), task.check)
    return runs(in_turn(inlets, streams, task), task)


def _of_senders(edge: GraphEdge, node: Node, task: LocalTask) -> list[Iterator[Any]]:
    """Return the items of each part of a source that sends by an edge, if that matters."""
    path, root = [], node
    while isinstance(root, Chain):
        path.append(root)
        root = root.upstream
    if not edge.knows_senders or not isinstance(root, Read):
        return [opened_later(node, task)]
    parts = [iter(task.counted(split)) for split in splits(root, task)]
    for each in reversed(path):
        parts = [apply(each, items, task) for items in parts]
    return parts


def entries_of_graph(end: Write, opened: Callable[[Node], Iterator[Any]], task: Task) -> Iterator[Any] | None:
    """Return the entries that a graph writes to a map; None: its processors emit them.

    Args:
        end: takes them.
        opened: opens a plan.
        task: runs it.
    """
    blocks, keyed = end.upstream, None if end.collector is None else end.collector.keyed
    if keyed is None or not keyed.takes_entries or not isinstance(blocks, Chain) or len(blocks.ops) != 1:
        return None
    node = blocks.upstream
    if not isinstance(node, ProcessorGraph) or not is_bounded(node):
        return None
    found = last_vertices(with_parallelism(node.graph, cores_here()))
    if found is None:
        return None
    before = dataclasses.replace(node, graph=found.before)
    items = opened(dataclasses.replace(blocks, upstream=before) if found.before.vertices else node.upstreams[0])
    # One loop instead of processors, which would take turns in this thread over groups of their own.
    return _results(blocks, items, found, receipt_step(node.step, node.take), task)


def _results(blocks: Chain, items: Iterator[Any], found: LastVertices, receipts: Op, task: Task) -> Iterator[Any]:
    first, last = found.first, found.last
    items = GroupInput(first.name, receipts, first.step)(items, task)
    parts = partial(_aggregate(blocks, first), 0, items_may_travel=False)(items, task)
    if first is not last:
        parts = GroupShuffle(first.name, last.name, receipts)(parts, task)
    return GroupOutput(last.name, receipts)(finishing(_aggregate(blocks, last))(parts, task), task)


def _aggregate(blocks: Chain, vertex: GraphVertex) -> Aggregate:
    groups = groups_of(vertex)
    return Aggregate((blocks,), groups.operation, (groups.reduction,), True, None, step=vertex.step)
