"""Which stages a plan runs as on the local engine: one task in this process, and nothing moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dstream.engine.explaining.calls_with_routes import calls_of
from dstream.engine.explaining.stages_of_ends import named
from dstream.engine.graph.vertices import Applied
from dstream.plan.core import Concat, Core
from dstream.plan.core_of_forks import Several
from dstream.plan.properties import is_bounded, ordered_operations
from dstream.plan.recalling import Found, nothing_kept, recalled
from dstream.plan.stages import NOTHING, ONE, Call, Exchange, Job, Stage, Stages
from dstream.plan.walk import topological
from dstream.spi import Collector, Sink

__all__ = ["stages"]


@dataclass
class _Draft:
    """A stage that is being drawn: where its items come from, its calls, and the `id` of its last operation."""

    inputs: tuple[int, ...]
    last: int = 0
    calls: list[Call] = field(default_factory=list)
    is_closed: bool = False


def stages(root: Core, into: Any, found: Found = nothing_kept) -> Stages:
    """Return the stages of a plan in this process; arguments as for Spark."""
    core = recalled(root, found)
    nodes = [each for each in topological(core) if not isinstance(each, Several)]
    readers = Counter(id(upstream) for node in nodes for upstream in node.inputs())
    drafts: list[_Draft] = []
    reached: dict[int, int] = {}
    for node in nodes:
        reached[id(node)] = stage = _drawn(node, [reached[id(upstream)] for upstream in node.inputs()], drafts)
        drafts[stage].is_closed = readers[id(node)] > 1
    end, outcome = _end(core, into)
    in_order = ordered_operations(core)
    drawn = tuple(_stage(each, in_order[each.last]) for each in drafts)
    notes = ("everything runs in this process, one item at a time",)
    return Stages("the local engine", end, outcome, drawn, (Job(end.label, ONE),), ONE, NOTHING, NOTHING, notes)


def _drawn(node: Core, inputs: Sequence[int], drafts: list[_Draft]) -> int:
    if len(inputs) != 1 or isinstance(node, Concat) or drafts[inputs[0]].is_closed:
        drafts.append(_Draft(tuple(inputs)))
        for stage in inputs:
            drafts[stage].is_closed = True
        inputs = [len(drafts) - 1]
    (stage,) = inputs
    drafts[stage].calls += calls_of(Applied(node, None))
    drafts[stage].last = id(node)
    return stage


def _stage(draft: _Draft, ordered: bool) -> Stage:
    return Stage(tuple(draft.calls), tuple(Exchange(each, "pipe") for each in draft.inputs), ONE, ordered, jobs=(0,))


def _end(core: Core, into: Any) -> tuple[Call, str]:
    if isinstance(into, Collector):
        return Call(f"collect({into.name or '...'})"), "the collector takes one item after another"
    if isinstance(into, Sink):
        return Call(f"collect({into.label})"), "the collection takes all items in one commit"
    if isinstance(core, Several):
        return Call(named(core.ends)), "one sink after another takes its items; then all of them commit"
    if is_bounded(core):
        return Call("to_list()"), "all items are listed"
    return Call("iter(stream)"), "a loop gets one item after another, without end; to_list() is refused"
