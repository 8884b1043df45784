"""Stages as flat data, so that a pipeline of thousands of them is copied and pickled without recursion."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from dstream.pipeline.relinking import fields_with_nodes
from dstream.pipeline.stage_record import StageRecord
from dstream.plan import Node, inputs_first

__all__ = ["copied", "flat_nodes", "flattened", "nodes_again", "restored"]


def copied(records: Sequence[StageRecord]) -> list[StageRecord]:
    """Return records that can be changed apart from these; their nodes are values, and the same."""
    became: dict[int, StageRecord] = {}
    for each in records:
        upstreams = tuple(became[id(above)] for above in each.upstreams)
        became[id(each)] = dataclasses.replace(each, upstreams=upstreams)
    return list(became.values())


class _At(NamedTuple):
    """Stands for a node, by its place in the list of all."""

    place: int


class _Flat(NamedTuple):
    """A node whose inputs are places."""

    kind: type[Node]
    fields: dict[str, Any]


class _FlatRecord(NamedTuple):
    fields: dict[str, Any]
    node: _At
    upstreams: tuple[int, ...]


def flattened(records: Sequence[StageRecord]) -> tuple[list[_Flat], list[_FlatRecord]]:
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


def restored(state: tuple[list[_Flat], list[_FlatRecord]]) -> list[StageRecord]:
    """Return the stages of which `flattened` made data."""
    nodes = nodes_again(state[0])
    records: list[StageRecord] = []
    for each in state[1]:
        upstreams = tuple(records[number] for number in each.upstreams)
        records.append(StageRecord(node=nodes[each.node.place], upstreams=upstreams, **each.fields))
    return records


def flat_nodes(roots: Sequence[Node]) -> tuple[list[_Flat], list[_At]]:
    """Return all nodes of some plans, each after those that it reads from, and the places of the last ones."""
    places: dict[int, _At] = {}
    flat: list[_Flat] = []
    for root in roots:
        for each in inputs_first(root, lambda found: () if id(found) in places else found.inputs()):
            if id(each) not in places:
                flat.append(_flat(each, places))
                places[id(each)] = _At(len(flat) - 1)
    return flat, [places[id(root)] for root in roots]


def _flat(node: Node, places: dict[int, _At]) -> _Flat:
    fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    return _Flat(type(node), fields | fields_with_nodes(node, lambda each: places[id(each)]))


def nodes_again(flat: Sequence[_Flat]) -> list[Node]:
    """Return the nodes of which `flat_nodes` made data."""
    nodes: list[Node] = []
    for kind, fields in flat:
        nodes.append(kind(**{name: _with_nodes(value, nodes) for name, value in fields.items()}))
    return nodes


def _with_nodes(value: Any, nodes: Sequence[Node]) -> Any:
    if isinstance(value, _At):
        return nodes[value.place]
    if type(value) is tuple and value and all(isinstance(each, _At) for each in value):
        return tuple(nodes[each.place] for each in value)
    return value
