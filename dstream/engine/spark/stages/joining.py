"""How operations by key are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dstream.engine.compiler.pairs import may_be_small
from dstream.engine.spark.facts import BROADCAST, LARGEST_SMALL_SIDE, bytes_of
from dstream.engine.spark.reach import Drawn, Reach
from dstream.engine.spark.stages.drawing import draw_node
from dstream.plan import CoGroup, Join, Pairing, PartitionBy, configuration
from dstream.plan.stages import NOTHING, ONE, Amount, Call, Exchange, Job, exactly, total

__all__: list[str] = []

_SMALL = f"{LARGEST_SMALL_SIDE // 2**20} MB"
_IF_SMALL = Amount(0, 1, f"if it is at most {_SMALL}")
_IF_LARGE = f"if no side is at most {_SMALL}"
_HOT_KEY = "else all items of a hot key come to one task, which holds one side of it, on disk past the memory bound"
_NAMES = {True: "left", False: "right"}


@draw_node.register
def _(node: Join, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    sides = dict(zip((True, False), inputs, strict=True))
    may_travel = bytes_of(configuration(drawn.root).get(BROADCAST, "0")) >= 0
    candidates = may_be_small(node, lambda side: drawn.bounded[id(side)]) if may_travel else []
    if not candidates:
        met = _met(node, inputs, drawn, "one side is held, the other one passes by")
        drawn.sketch.note(met.stage, _HOT_KEY)
        return met
    first, *others = candidates
    _job(node, f"the {_NAMES[first]} side is computed once, and measured", ONE, sides[first], drawn)
    sides[first] = _kept(node, first, sides[first], ONE, drawn)
    for other in others:
        title = (
            f"the {_NAMES[first]} side comes to this process, if it is at most {_SMALL}; else the other one is measured"
        )
        _job(node, title, ONE, sides[other], drawn, is_whole=False)
        sides[other] = _kept(node, other, sides[other], _IF_SMALL, drawn)
    last = candidates[-1]
    small = replace(sides[last], segments=NOTHING)
    _job(node, f"the {_NAMES[last]} side comes to this process", _IF_SMALL, small, drawn, is_whole=False)
    met = _met(node, list(sides.values()), drawn, "one side is held, the other one passes by", is_sure=False)
    names = " or ".join(_NAMES[is_left] for is_left in candidates)
    note = f"if the {names} side is at most {_SMALL}, it travels to the tasks of the other one, and nothing moves"
    drawn.sketch.note(met.stage, f"{note}; a hot key is split then")
    drawn.sketch.note(met.stage, _HOT_KEY)
    return _either(met, [inputs[is_left] for is_left in candidates])


def _job(node: Join, title: str, jobs: Amount, end: Reach, drawn: Drawn, *, is_whole: bool = True) -> None:
    segments = end.segments if is_whole else end.segments.or_none()
    drawn.sketch.job(Job(f"{node.label()}: {title}", jobs, end.stage, segments, is_whole))


def _kept(node: Join, is_left: bool, side: Reach, times: Amount, drawn: Drawn) -> Reach:
    """Draw what a job leaves of a side; reading it again takes no Python."""
    why = f"{node.label()}: the {_NAMES[is_left]} side stays where it is until its size is known"
    kept = drawn.begins(
        side.partitions,
        [Call(node.label(), node.where, f"the {_NAMES[is_left]} side, by key")],
        Exchange(side.stage, "kept", why, times == ONE, condition=f"if the other side is larger than {_SMALL}"),
    )
    return replace(kept, segments=NOTHING)


def _either(met: Reach, passing: Sequence[Reach]) -> Reach:
    """Return what is certain if the stage of one side may run instead of the one where both met."""
    tasks = [reach.partitions for reach in (met, *passing)]
    most = [amount.most for amount in tasks if amount.most is not None]
    segments = [reach.segments.most for reach in passing if reach.segments.most is not None]
    return replace(
        met,
        partitions=Amount(min(amount.least for amount in tasks), max(most) if len(most) == len(tasks) else None),
        # Some may read sources, as their neighbours do; one more hands on what `peek` saw.
        segments=Amount(-1, 1 + max(segments) if len(segments) == len(passing) else None),
        may_read=True,
    )


def _met(node: Pairing, sides: Sequence[Reach], drawn: Drawn, note: str, *, is_sure: bool = True) -> Reach:
    """Draw the one shuffle of both sides."""
    partitions = total(side.partitions for side in sides)
    both = drawn.sketch.stage(partitions, *(Exchange(side.stage, "pipe") for side in sides))
    drawn.sketch.call(both, [Call(node.label(), node.where, "sends the items of both sides to the place of their key")])
    drawn.sketch.order(both, is_ordered=False)
    why = f"{node.label()}: equal keys of both sides meet in one place"
    to_key = Exchange(both, "shuffle", why, is_sure, total(side.segments for side in sides), _IF_LARGE)
    return drawn.begins(drawn.targets(partitions), [Call(node.label(), node.where, note)], to_key)


@draw_node.register
def _(node: CoGroup, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    return _met(node, inputs, drawn, "lists the items of each key")


@draw_node.register
def _(node: PartitionBy, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    (reach,) = inputs
    call = Call(node.label(), node.where)
    if drawn.is_sequential or (node.count == 1 and reach.has_one_partition):
        return drawn.runs_in_place(reach, call)
    is_sure = node.count > 1 or reach.has_one_partition is False
    to_key = replace(reach.to("shuffle", f"{node.label()}: equal keys come to one place"), is_sure=is_sure)
    return drawn.begins(exactly(node.count), [call], to_key)
