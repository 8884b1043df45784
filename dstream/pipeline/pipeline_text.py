"""A pipeline as it was written: one line for each stage, or a graph to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dstream.pipeline.stage_record import StageRecord, names_of
from dstream.plan.show.written import graph_as_written
from dstream.plan.stages import Call, Exchange, Stage, Stages

__all__ = ["as_graph", "as_lines"]


def as_lines(records: Sequence[StageRecord]) -> str:
    """Return how many stages there are, and the name and the call of each."""
    names = names_of(records)
    width = max(map(len, names.values()), default=0)
    return "\n".join(
        [_title(records), *(f"  {names[id(each)].ljust(width)}  {_call(each, names)}" for each in records)]
    )


def as_graph(records: Sequence[StageRecord]) -> Stages:
    """Return the graph of the stages, each with its name and its call, and an edge from each that it reads."""
    names = names_of(records)
    numbers = {id(each): number for number, each in enumerate(records)}
    stages = [
        Stage(
            (Call(_written(each), each.where),),
            tuple(Exchange(numbers[id(above)], "written") for above in each.upstreams),
            name=names[id(each)],
        )
        for each in records
    ]
    return graph_as_written(_title(records), stages)


def _title(records: Sequence[StageRecord]) -> str:
    return f"Pipeline with {len(records)} stage{'' if len(records) == 1 else 's'}"


def _call(record: StageRecord, names: Mapping[int, str]) -> str:
    """Return the call that made a stage, on the name of the stage that it was made of."""
    label = _written(record)
    above = [names[id(each)] for each in record.upstreams]
    others = f"  with {', '.join(above[1:])}" if len(above) > 1 else ""
    return f"{above[0] if above else ''}{label}{others}"


def _written(record: StageRecord) -> str:
    """Return the call that made a stage."""
    if record.sink is not None:
        return f".write_to({record.sink.label})"
    node = record.node
    while not node.label():
        node = node.inputs()[0]
    return node.label()
