"""How the nodes of `java.util.stream` are drawn, one handler for each node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dstream.engine.compiler.places import is_generated
from dstream.engine.spark.reach import Drawn, Reach, split_count, together, waves
from dstream.engine.spark.stages.drawing import draw_across, draw_node
from dstream.errors import UnsupportedError
from dstream.plan import (
    Chain,
    Concat,
    Configure,
    Distinct,
    DropWhile,
    Guard,
    Limit,
    Node,
    Parallel,
    Read,
    Skip,
    Sorted,
    TakeWhile,
    Top,
    Union,
    Unordered,
)
from dstream.plan.stages import ONE, Amount, Call, Exchange, Job, exactly

__all__ = ["calls_of", "draw_guards", "draw_in_one_place_or_across"]


@draw_node.register
def _(node: Read, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    partitions = exactly(1) if drawn.is_sequential else split_count(node, drawn.parallelism)
    stage = drawn.sketch.stage(partitions)
    drawn.sketch.call(stage, [Call(node.label(), node.where)])
    if node.source.in_caller:
        drawn.sketch.note(
            stage,
            "its items travel inside the tasks; 4 MB of them or more in a shuffle of their own, which is not counted",
        )
    return Reach(stage, partitions)


@draw_node.register(Union)
@draw_node.register(Concat)
def _(node: Concat, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    joined = together(0, inputs)
    tasks = exactly(1) if drawn.is_sequential else joined.partitions
    stage = drawn.sketch.stage(tasks, *(Exchange(part.stage, "pipe") for part in inputs))
    drawn.sketch.call(stage, [Call(node.label(), node.where, "one part after another; nothing moves")])
    return replace(joined, stage=stage, partitions=tasks)


@draw_node.register(Unordered)
@draw_node.register(Parallel)
@draw_node.register(Configure)
def _(node: Node, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    return drawn.runs_in_place(inputs[0], Call(node.label(), node.where))


@draw_node.register
def _(node: Chain, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    return drawn.runs_in_place(inputs[0], *calls_of(node))


def calls_of(node: Chain) -> list[Call]:
    """Return the calls of a run of steps, as they are drawn."""
    notes = {"peek": "runs in this process, after the job, on what passed here"}
    calls = []
    for op in node.ops:
        calls.append(Call(op.step.label, op.step.where, notes.get(op.action, "")))
        calls += draw_guards(op.guards)
    return calls


def draw_guards(guards: Iterable[Guard]) -> list[Call]:
    """Return the calls that look after the failures of a step, as they are drawn."""
    return [Call(each.step.label, each.step.where, _TREATMENTS[each.treatment]) for each in guards if each.step.label]


_TREATMENTS = {
    "ignored": "leaves out the items that the step before fails on",
    "resolved": "replaces the items that the step before fails on",
    "sent": "sends away the items that the step before fails on; this process commits them at the end",
}


@draw_node.register(Limit)
@draw_node.register(Skip)
@draw_node.register(TakeWhile)
@draw_node.register(DropWhile)
@draw_node.register(Distinct)
@draw_node.register(Sorted)
@draw_node.register(Top)
def _(node: Node, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    if isinstance(node, Limit) and is_generated(node.upstream) and not drawn.is_sequential:
        return drawn.runs_in_place(inputs[0], Call(node.label(), node.where, "each partition gives its share"))
    return draw_in_one_place_or_across(node, inputs[0], drawn)


def draw_in_one_place_or_across(node: Node, reach: Reach, drawn: Drawn) -> Reach:
    """Let the one partition that there is do it, or draw it across several."""
    if not drawn.bounded[id(node.inputs()[0])]:
        reach = _endless_in_one_task(node, reach, drawn)
    if reach.has_one_partition:
        return drawn.runs_in_place(reach, Call(node.label(), node.where, "here, where all items stand"))
    across = draw_across(node, reach, drawn)
    if reach.has_one_partition is None:
        drawn.sketch.note(across.stage, "if all items stand in one partition before, it runs there and nothing moves")
    return across


def _endless_in_one_task(node: Node, reach: Reach, drawn: Drawn) -> Reach:
    if reach.only_splits:
        drawn.sketch.in_one_task(reach.stage)
        return replace(reach, partitions=exactly(1))
    if isinstance(node, Limit | TakeWhile):
        return reach
    raise UnsupportedError(
        f"the Spark engine does not run {node.label()} on an infinite stream that follows one with a shuffle "
        "(sorted, distinct); limit() it before"
    )


@draw_across.register(Limit)
@draw_across.register(TakeWhile)
def _(node: Limit | TakeWhile, reach: Reach, drawn: Drawn) -> Reach:
    """Draw the waves; behind the end nothing runs."""
    if isinstance(node, Limit) and node.count == 0:
        return replace(drawn.runs_in_place(reach, Call(node.label(), node.where)), partitions=exactly(0))
    found = _waves(node, reach, drawn)
    partitions = Amount(min(1, reach.partitions.least), reach.partitions.most)
    exchange = _kept(node, reach, "what they wrote stays where it is, and is read again up to there")
    return replace(drawn.begins(partitions, [_prefix(node)], exchange), segments=found)


@draw_across.register(Skip)
@draw_across.register(DropWhile)
def _(node: Skip | DropWhile, reach: Reach, drawn: Drawn) -> Reach:
    """Draw the waves; the partitions behind the end are read where they are needed."""
    if isinstance(node, Skip) and node.count == 0:
        return drawn.runs_in_place(reach, Call(node.label(), node.where))
    found = _waves(node, reach, drawn)
    why = "what they wrote stays where it is, and is read again from there; the partitions behind run with what follows"
    after = drawn.begins(reach.partitions, [_prefix(node)], _kept(node, reach, why))
    rest = reach.segments if reach.starts_with_splits or reach.ends_with_splits else reach.segments + Amount(-1, -1)
    segments = (found + rest).up_to(reach.partitions + ONE)  # Each has a partition, but for a rest that is empty.
    segments = Amount(found.least, segments.most)
    return replace(after, segments=segments, ends_with_splits=reach.ends_with_splits)


def _waves(node: Node, reach: Reach, drawn: Drawn) -> Amount:
    found = waves(reach) if reach.has_one_partition is False else waves(reach).or_none()
    title = f"{node.label()}: partitions run in waves of 1, 4, 16, ... until its end is found"
    drawn.sketch.job(Job(title, found, reach.stage, found, reach.segments == exactly(1)))
    return Amount(min(1, reach.partitions.least), found.most)


def _prefix(node: Node) -> Call:
    return Call(node.label(), node.where, "the end is known from the waves")


def _kept(node: Node, reach: Reach, why: str) -> Exchange:
    return Exchange(reach.stage, "kept", f"{node.label()}: {why}", reach.has_one_partition is False)


@draw_across.register
def _(node: Distinct, reach: Reach, drawn: Drawn) -> Reach:
    label, where = node.label(), node.where
    targets = drawn.targets(reach.partitions)
    by_key = reach.to("shuffle", f"{label}: the first items of each key, one from each task, meet in one place")
    firsts = drawn.begins(targets, [Call(label, where, "the first item of each key")], by_key)
    if not drawn.ordered[id(node.upstream)]:
        return firsts
    drawn.sketch.order(firsts.stage, is_ordered=False)
    is_sure = reach.has_one_partition is False
    back = replace(firsts.to("shuffle", f"{label}: back to their place, to keep the order"), is_sure=is_sure)
    return drawn.begins(targets, [Call(label, where, "in the order that they had")], back)


@draw_across.register
def _(node: Sorted, reach: Reach, drawn: Drawn) -> Reach:
    label, where, is_sure = node.label(), node.where, reach.has_one_partition is False
    jobs = exactly(1) if is_sure else Amount(0, 1)
    segments = reach.segments if is_sure else reach.segments.or_none()
    drawn.sketch.job(Job(f"{label}: sorted runs, and a sample of the keys", jobs, reach.stage, segments))
    sampled = f"{label}: sorted runs stay where they are; a sample comes to this process, which chooses the ranges"
    runs = drawn.begins(
        reach.partitions,
        [Call(label, where, "cuts the runs at the borders of the ranges")],
        Exchange(reach.stage, "kept", sampled, is_sure),
    )
    drawn.sketch.order(runs.stage, is_ordered=False)
    targets = Amount(1, drawn.targets(reach.partitions).most, "one for each 10,000 items")
    cuts = exactly(0) if targets.most == 1 else Amount(0, 1)
    by_range = Exchange(runs.stage, "shuffle", f"{label}: items are cut into ranges of keys", is_sure, cuts)
    return drawn.begins(targets, [Call(label, where, "sorts each range")], by_range)


@draw_across.register
def _(node: Top, reach: Reach, drawn: Drawn) -> Reach:
    label = node.label()
    candidates = drawn.runs_in_place(reach, Call(label, node.where, f"the first {node.count:,} of each partition"))
    to_one = candidates.to("shuffle", f"{label}: the first {node.count:,} of each partition meet in one task")
    return drawn.begins(exactly(1), [Call(label, node.where, f"the first {node.count:,} of them")], to_one)
