"""A pipeline as text: one line for each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dstream.pipeline.stage_record import StageRecord, names_of

__all__ = ["as_lines"]


def as_lines(records: Sequence[StageRecord]) -> str:
    """Return how many stages there are, and the name and the call of each."""
    names = names_of(records)
    width = max(map(len, names.values()), default=0)
    count = f"Pipeline with {len(records)} stage{'' if len(records) == 1 else 's'}"
    return "\n".join([count, *(f"  {names[id(each)].ljust(width)}  {_call(each, names)}" for each in records)])


def _call(record: StageRecord, names: Mapping[int, str]) -> str:
    """Return the call that made a stage, on the name of the stage that it was made of."""
    label = f".write_to({record.sink.label})" if record.sink is not None else _label(record)
    above = [names[id(each)] for each in record.upstreams]
    others = f"  with {', '.join(above[1:])}" if len(above) > 1 else ""
    return f"{above[0] if above else ''}{label}{others}"


def _label(record: StageRecord) -> str:
    node = record.node
    while not node.label():
        node = node.inputs()[0]
    return node.label()
