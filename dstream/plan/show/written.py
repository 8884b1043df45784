"""The user's own graph, as written: values that the renderers draw as they draw the stages of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dstream.plan.nodes import Node
from dstream.plan.stages import NOTHING, ONE, Call, Exchange, Stage, Stages
from dstream.plan.walk import topological

__all__ = ["chains", "graph_as_written"]


def graph_as_written(title: str, stages: Sequence[Stage]) -> Stages:
    """Return a graph that has a title and stages, and nothing that only a run has."""
    return Stages("", Call(title), "", tuple(stages), (), ONE, NOTHING, NOTHING)


def chains(root: Node) -> list[Stage]:
    """Return a stage for each chain of calls that starts, forks or meets another chain of a plan."""
    order = topological(root)
    readers = Counter(id(upstream) for node in order for upstream in node.inputs())
    drafts: list[tuple[list[Call], tuple[int, ...]]] = []
    ends: dict[int, int] = {}
    for node in order:
        above = [ends[id(upstream)] for upstream in node.inputs()]
        if len(above) != 1 or readers[id(node.inputs()[0])] > 1:
            drafts.append(([], tuple(above)))
            above = [len(drafts) - 1]
        ends[id(node)] = above[0]
        if label := node.label():
            drafts[above[0]][0].append(Call(label, node.where))
    return [Stage(tuple(calls), tuple(Exchange(source, "written") for source in sources)) for calls, sources in drafts]
