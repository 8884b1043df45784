"""How cached streams and tables of the user are drawn."""

from __future__ import annotations

from collections.abc import Sequence

from dstream.engine.keeping import read_here
from dstream.engine.spark.reach import Drawn, Reach
from dstream.engine.spark.stages.drawing import draw_node
from dstream.plan import Cache, Recall, Table
from dstream.plan.stages import Amount, Call, Exchange, Job, exactly

__all__: list[str] = []


@draw_node.register
def _(node: Cache, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    (reach,) = inputs
    drawn.sketch.job(Job(f"{node.label()}: computes the items to keep", exactly(1), reach.stage, reach.segments))
    kept = Exchange(reach.stage, "kept", f"{node.label()}: items stay where they were computed, also for later plans")
    return drawn.begins(reach.partitions, [Call(node.label(), node.where)], kept)


@draw_node.register
def _(node: Recall, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    read = read_here(node)
    if read is not None:
        return draw_node(read, (), drawn)
    note = "the items that an earlier plan left where it computed them"
    return drawn.begins(exactly(node.items.partitions), [Call(node.label(), node.where, note)])


@draw_node.register
def _(node: Table, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    note = "rows become items; Spark runs the DataFrame as it sees fit, which is not counted"
    partitions = Amount(1, None, "one for each partition of the DataFrame")
    return drawn.begins(partitions, [Call(node.label(), node.where, note)])
