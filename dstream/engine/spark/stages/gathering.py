"""How gatherers are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dstream.engine.compiler.ends import Apart
from dstream.engine.compiler.gatherers import reads_ahead
from dstream.engine.spark.reach import Drawn, Reach, together
from dstream.engine.spark.stages.drawing import draw_across, draw_node
from dstream.engine.spark.stages.streams import calls_of, draw_in_one_place_or_across
from dstream.plan import Gather
from dstream.plan.stages import Amount, Call, Exchange, Job, exactly
from dstream.spi import AtEnd, ByPlace, ItemWise, RunningValue

__all__ = ["draw_apart"]


@draw_node.register
def _(node: Gather, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    if isinstance(node.gatherer.parallel, ItemWise):
        return drawn.runs_in_place(inputs[0], Call(node.label(), node.where))
    return draw_in_one_place_or_across(node, inputs[0], drawn)


@draw_across.register
def _(node: Gather, reach: Reach, drawn: Drawn) -> Reach:
    match node.gatherer.parallel:
        case ByPlace() if reads_ahead(node):
            return drawn.runs_in_place(reach, _call(node, "each partition reads on to the first items behind it"))
        case ByPlace(following=following):
            told = "how many items each partition has" + (f", and its first {following:,}" if following else "")
            return _from_kept(node, told, "each partition knows its place", reach, drawn)
        case RunningValue():
            told = "the value of each partition"
            return _from_kept(node, told, "each partition starts from the value before it", reach, drawn)
        case AtEnd():
            return _at_end(node, drawn.runs_in_place(reach, _call(node, "each partition on its own")), drawn)
    return _in_one_task(node, reach, drawn) if node.gatherer.combiner is None else _integrated(node, reach, drawn)


def _call(node: Gather, note: str) -> Call:
    return Call(node.label(), node.where, note)


def _in_one_task(node: Gather, reach: Reach, drawn: Drawn) -> Reach:
    to_one = reach.to("shuffle", f"{node.label()}: all items come to one task, in order")
    return drawn.begins(exactly(1), [_call(node, "one item after another, in one task")], to_one)


def _at_end(node: Gather, reach: Reach, drawn: Drawn) -> Reach:
    to_one = reach.to("shuffle", f"{node.label()}: the state of each partition comes to one task")
    return drawn.begins(exactly(1), [_call(node, "combines the states in order, and finishes")], to_one)


def _from_kept(node: Gather, told: str, note: str, reach: Reach, drawn: Drawn) -> Reach:
    after = drawn.begins(reach.partitions, [_call(node, note)], _kept(node, told, reach, drawn))
    if not isinstance(node.gatherer.parallel, ByPlace) or node.gatherer.parallel.following:
        large = "if that is more than 16 MB together, one task takes all items in order, which is not counted"
        drawn.sketch.note(after.stage, large)
    return after


def _integrated(node: Gather, reach: Reach, drawn: Drawn) -> Reach:
    here = drawn.runs_in_place(reach, _call(node, "each partition with a state of its own"))
    kept = _kept(node, "whether its integrator wanted no more", here, drawn)
    pushed = drawn.begins(here.partitions, [_call(node, "up to where it wanted no more")], kept)
    states = replace(kept, why=f"{node.label()}: the states stay where they are too")
    drawn.sketch.close(pushed.stage)
    read = drawn.begins(here.partitions, [_call(node, "the states alone")], states)
    to_one = Exchange(read.stage, "shuffle", f"{node.label()}: the states come to one task", kept.is_sure)
    ended = drawn.begins(exactly(1), [_call(node, "combines the states in order, and finishes")], to_one)
    both = drawn.sketch.stage(
        pushed.partitions + exactly(1), Exchange(pushed.stage, "pipe"), Exchange(ended.stage, "pipe")
    )
    return replace(together(both, [pushed, ended]), partitions=pushed.partitions + exactly(1))


def _kept(node: Gather, told: str, reach: Reach, drawn: Drawn) -> Exchange:
    """Draw the first job, which leaves the items where they are."""
    is_sure = reach.has_one_partition is False
    jobs = exactly(1) if is_sure else Amount(0, 1)
    segments = reach.segments if is_sure else reach.segments.or_none()
    drawn.sketch.job(Job(f"{node.label()}: {told}", jobs, reach.stage, segments))
    why = f"{node.label()}: the items stay where they are; this process learns {told}"
    return Exchange(reach.stage, "kept", why, is_sure)


def draw_apart(apart: Apart, reach: Reach, drawn: Drawn) -> Reach:
    """Draw a gatherer, and what takes its items into containers, inside of each partition and across their borders."""
    node, behind = apart.gather, [call for chain in apart.behind for call in calls_of(chain)]
    if reach.has_one_partition:
        return drawn.runs_in_place(reach, _call(node, "here, where all items stand"), *behind)
    inside = drawn.runs_in_place(reach, _call(node, "what lies inside of each partition"), *behind)
    drawn.sketch.note(inside.stage, "each task combines its items into one container")
    why = f"{node.label()}: the containers, and up to {apart.kind.following:,} items from each end of the partitions"
    across = _call(node, "what lies across the borders of partitions")
    met = drawn.begins(exactly(1), [across, *behind], inside.to("shuffle", f"{why}, meet in one task"))
    drawn.sketch.order(met.stage, drawn.ordered[id(drawn.root)])
    drawn.sketch.note(
        met.stage, "what lies across a border has a container of its own, in its place between the others"
    )
    if reach.has_one_partition is None:
        drawn.sketch.note(met.stage, "if all items stand in one partition before, it runs there and nothing moves")
    return met
