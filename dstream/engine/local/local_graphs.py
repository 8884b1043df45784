"""Graphs of processors on the local engine: all of them in this process. Loaded by the first plan that has one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dstream.engine.kernels.graph_processing import in_turn, whole
from dstream.engine.local.local_cores import cores_here
from dstream.engine.local.local_task import LocalTask
from dstream.engine.local.opened_plans import apply, opened_later, splits, start
from dstream.plan.core import Chain, Core, Read
from dstream.plan.core_of_graphs import Processing

if TYPE_CHECKING:
    from dstream.plan.vertex_graph import GraphEdge

__all__: list[str] = []


@start.register
def _(node: Processing, task: LocalTask) -> Iterator[Any]:
    """Run all processors in this process."""
    inlets = node.graph.inlets
    streams = [_of_senders(edge, each, task) for edge, each in zip(inlets, node.upstreams, strict=True)]
    runs = whole(node, cores_here(), list(map(len, streams)), task.check)
    return runs(in_turn(inlets, streams, task), task)


def _of_senders(edge: GraphEdge, node: Core, task: LocalTask) -> list[Iterator[Any]]:
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
