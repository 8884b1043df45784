"""Stages as flat data, so that a pipeline of thousands of them is copied and pickled without recursion."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from dstream.pipeline.flat_nodes import At, Flat, flat_nodes, nodes_again
from dstream.pipeline.stage_record import StageRecord

__all__ = ["copied", "flattened", "restored"]


def copied(records: Sequence[StageRecord]) -> list[StageRecord]:
    """Return records that can be changed apart from these; their nodes are values, and the same."""
    became: dict[int, StageRecord] = {}
    for each in records:
        upstreams = tuple(became[id(above)] for above in each.upstreams)
        became[id(each)] = dataclasses.replace(each, upstreams=upstreams)
    return list(became.values())


class _FlatRecord(NamedTuple):
    fields: dict[str, Any]
    node: At
    upstreams: tuple[int, ...]


def flattened(records: Sequence[StageRecord]) -> tuple[list[Flat], list[_FlatRecord]]:
    """Return stages as data in which nothing lies inside of a chain of other things."""
    nodes, places = flat_nodes([each.node for each in records])
    numbers = {id(each): number for number, each in enumerate(records)}
    flat = [
        _FlatRecord(
            {name: getattr(each, name) for name in _PLAIN},
            places[number],
            tuple(numbers[id(above)] for above in each.upstreams),
        )
        for number, each in enumerate(records)
    ]
    return nodes, flat


_PLAIN = tuple(field.name for field in dataclasses.fields(StageRecord) if field.name not in ("node", "upstreams"))


def restored(state: tuple[list[Flat], list[_FlatRecord]]) -> list[StageRecord]:
    """Return the stages of which `flattened` made data."""
    nodes = nodes_again(state[0])
    records: list[StageRecord] = []
    for each in state[1]:
        upstreams = tuple(records[number] for number in each.upstreams)
        records.append(StageRecord(node=nodes[each.node.place], upstreams=upstreams, **each.fields))
    return records
