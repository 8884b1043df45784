"""The steps of a pipeline whose state outlives an epoch, and how many processors its graphs have in a job that goes on.

A vertex that says no number keeps the one with which the job began, so that each processor gets back what it saved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dstream.executor.graph_steps import in_steps
from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.plan import rewrite, topological
from dstream.plan.core_of_epochs import OverEpochs
from dstream.plan.core_of_graphs import Processing
from dstream.plan.graph_parallelism import with_parallelism
from dstream.plan.vertex_graph import VertexGraph

if TYPE_CHECKING:
    from dstream.state.shard_index import ShardIndex

__all__ = ["Processors", "processors_of", "steps_of_plan", "with_kept_parallelism"]

Processors = Mapping[tuple[str, str], int]
"""How many processors a vertex has, by the name of its stage, which is empty for those of a graph, and its own."""


def steps_of_plan(plan: PipelinePlan, memory: Mapping[str, ShardIndex]) -> dict[str, OverEpochs]:
    """Return the steps of a plan whose state outlives an epoch, by the names under which it is found again.

    Args:
        plan: that of the job, or one with which the job may go on.
        memory: where the state of the steps of the job is.
    """
    processors = processors_of(memory)
    core = in_steps(
        rewrite(plan.several([None] * len(plan.writes))),
        lambda node: with_parallelism(with_kept_parallelism(node, processors), 1),
    )
    return {each.stage: each for each in topological(core) if isinstance(each, OverEpochs)}


def processors_of(memory: Mapping[str, ShardIndex]) -> Processors:
    """Return how many processors the vertices of a job have.

    Args:
        memory: where the state of the steps of the job is.
    """
    found: dict[tuple[str, str], int] = {}
    for stage, index in memory.items():
        for name in index.signature if index.kind == "graph" else ():
            if isinstance(name, str):
                found[stage, name] = found["", name] = len(index.shards)
    return found


def with_kept_parallelism(node: Processing, processors: Processors) -> VertexGraph:
    """Return the graph of an operation, in which each vertex that says no number has that of the job, if it has one.

    Args:
        node: the operation.
        processors: of the job; one that is new to it has as many as that vertex which has most.
    """
    most = max(processors.values(), default=-1)
    vertices = (
        dataclasses.replace(each, parallelism=processors.get((node.stage, each.name), most))
        if each.parallelism == -1
        else each
        for each in node.graph.vertices
    )
    return VertexGraph(tuple(vertices), node.graph.edges)
