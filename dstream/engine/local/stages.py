"""Which stages a plan runs as on the local engine: one task in this process, and nothing moves."""

from __future__ import annotations

from typing import Any

from dstream.plan import Called, Chain, Concat, Node, is_bounded, is_ordered, rewrite, topological
from dstream.plan.sketch import Sketch
from dstream.plan.stages import Call, Exchange, Job, Stages, exactly
from dstream.spi import Collector, Output

__all__ = ["stages"]


def stages(root: Node, into: Any) -> Stages:
    """Return the stages of a plan in this process; arguments as for Spark."""
    core, sketch = rewrite(root), Sketch()
    nodes = topological(core)
    readers: dict[int, int] = {}
    for node in nodes:
        for upstream in node.inputs():
            readers[id(upstream)] = readers.get(id(upstream), 0) + 1
    reached: dict[int, int] = {}
    for node in nodes:
        reached[id(node)] = stage = _drawn(node, [reached[id(upstream)] for upstream in node.inputs()], sketch)
        if readers.get(id(node), 0) > 1:
            sketch.close(stage)
    last = reached[id(core)]
    sketch.order(last, is_ordered(core))
    end, outcome = _end(core, into)
    sketch.job(Job(end.label, exactly(1), last, exactly(0)))
    return sketch.finished("the local engine", end, outcome, ["everything runs in this process, one item at a time"])


def _drawn(node: Node, inputs: list[int], sketch: Sketch) -> int:
    calls = [Call(node.label(), node.where)]
    if isinstance(node, Chain):
        calls = [Call(step.label, step.where) for op in node.ops for step in op.steps()]
    if isinstance(node, Called):
        calls += [Call(guard.step.label, guard.step.where) for guard in node.guards if guard.step.label]
    if len(inputs) == 1 and not isinstance(node, Concat):
        return sketch.call(inputs[0], calls)
    stage = sketch.stage(exactly(1), *(Exchange(part, "pipe") for part in inputs))
    return sketch.call(stage, calls)


def _end(core: Node, into: Any) -> tuple[Call, str]:
    if isinstance(into, Collector):
        return Call(f"collect({into.name or '...'})"), "the collector takes one item after another"
    if isinstance(into, Output):
        return Call(f"collect({into.label})"), "the collection takes all items in one commit"
    if is_bounded(core):
        return Call("to_list()"), "all items are listed"
    return Call("iter(stream)"), "a loop gets one item after another, without end; to_list() is refused"
