"""Results by key of the last vertices of a graph that go into a map: made as those of a pipeline, by no processors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from dstream.engine.kernels.aggregates import finishing, partial
from dstream.engine.kernels.core_operations import Task
from dstream.engine.kernels.groups_of_vertex import Arriving, Leaving, Sending
from dstream.engine.kernels.stamping import telling
from dstream.engine.local.local_cores import cores_here
from dstream.plan.core import Chain, Core, Write
from dstream.plan.core_of_graphs import Processing
from dstream.plan.core_of_stages import Aggregate
from dstream.plan.graph_parallelism import with_parallelism
from dstream.plan.last_vertices import LastVertices, groups_of, last_vertices
from dstream.plan.properties import is_bounded
from dstream.plan.steps import Op
from dstream.plan.vertex_graph import GraphVertex

__all__ = ["entries_of_graph"]


def entries_of_graph(end: Write, opened: Callable[[Core], Iterator[Any]], task: Task) -> Iterator[Any] | None:
    """Return the entries that a graph gives to a map; None: its processors give them.

    Args:
        end: takes them.
        opened: opens a plan.
        task: runs it.
    """
    blocks, keyed = end.upstream, None if end.collector is None else end.collector.keyed
    if keyed is None or not keyed.takes_entries or not isinstance(blocks, Chain) or len(blocks.ops) != 1:
        return None
    node = blocks.upstream
    if not isinstance(node, Processing) or not is_bounded(node):
        return None
    found = last_vertices(with_parallelism(node.graph, cores_here()))
    if found is None:
        return None
    before = dataclasses.replace(node, graph=found.before)
    items = opened(dataclasses.replace(blocks, upstream=before) if found.before.vertices else node.upstreams[0])
    return _results(blocks, items, found, telling(node.step, node.take), task)


def _results(blocks: Chain, items: Iterator[Any], found: LastVertices, receipts: Op, task: Task) -> Iterator[Any]:
    first, last = found.first, found.last
    items = Arriving(first.name, receipts, first.step)(items, task)
    parts = partial(_aggregate(blocks, first), 0, items_may_travel=False)(items, task)
    if first is not last:
        parts = Sending(first.name, last.name, receipts)(parts, task)
    return Leaving(last.name, receipts)(finishing(_aggregate(blocks, last))(parts, task), task)


def _aggregate(blocks: Chain, vertex: GraphVertex) -> Aggregate:
    groups = groups_of(vertex)
    return Aggregate((blocks,), groups.operation, (groups.reduction,), True, None, step=vertex.step)
