"""How the calls of a gatherer are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dstream.engine.compiler.calls import calls_run_first
from dstream.engine.spark.reach import Drawn, Reach
from dstream.engine.spark.stages.drawing import draw_across, draw_node
from dstream.engine.spark.stages.streams import draw_guards, draw_in_one_place_or_across
from dstream.plan import Called
from dstream.plan.stages import ONE, Amount, Call, Exchange, Job

__all__: list[str] = []


@draw_node.register
def _(node: Called, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    if not node.calling.is_shared:
        return drawn.runs_in_place(inputs[0], *_calls(node, "several calls at a time in each task"))
    reach = draw_in_one_place_or_across(node, inputs[0], drawn)
    return _kept(node, reach, drawn) if calls_run_first(node, drawn.root) else reach


def _kept(node: Called, reach: Reach, drawn: Drawn) -> Reach:
    drawn.sketch.job(Job(f"{node.label()}: calls, for several that read the results", ONE, reach.stage, reach.segments))
    why = f"{node.label()}: the results stay where they are"
    return drawn.begins(reach.partitions, [], Exchange(reach.stage, "kept", why))


@draw_across.register
def _(node: Called, reach: Reach, drawn: Drawn) -> Reach:
    return _called_once(node, reach, drawn) if node.calling.cache else _at_once(node, reach, drawn)


def _calls(node: Called, note: str) -> list[Call]:
    return [Call(node.label(), node.where, note), *draw_guards(node.guards)]


def _at_once(node: Called, reach: Reach, drawn: Drawn) -> Reach:
    """Draw a rate: more partitions than cores are put together before."""
    note = f"{node.calling.rate:g} calls a second at most, which the tasks share"
    cores, most = drawn.cores, reach.partitions.most
    if cores is not None and most is not None and most <= cores:
        return drawn.runs_in_place(reach, *_calls(node, note))
    tasks = reach.partitions.up_to(_cores(drawn))
    why = f"{node.label()}: neighbouring partitions come together, as many as can run at once"
    exchange = reach.to("shuffle", why)
    is_sure = cores is not None and reach.partitions.least > cores
    return drawn.begins(tasks, _calls(node, note), replace(exchange, is_sure=is_sure))


def _called_once(node: Called, reach: Reach, drawn: Drawn) -> Reach:
    targets = drawn.targets(reach.partitions)
    if node.calling.rate is not None:
        targets = targets.up_to(_cores(drawn))
    to_meet = reach.to("shuffle", f"{node.label()}: equal items meet in one place")
    results = drawn.begins(targets, _calls(node, "one call for equal items"), to_meet)
    if not drawn.ordered[id(node.upstream)]:
        return results
    drawn.sketch.order(results.stage, is_ordered=False)
    is_sure = reach.has_one_partition is False
    back = replace(results.to("shuffle", f"{node.label()}: back to their place, to keep the order"), is_sure=is_sure)
    return drawn.begins(targets, [Call(node.label(), node.where, "in the order that they had")], back)


def _cores(drawn: Drawn) -> Amount:
    return Amount(1, None, "one for each core") if drawn.cores is None else Amount(drawn.cores, drawn.cores)
