"""Nodes as flat data, in which no node lies inside of another: a chain of thousands is pickled without recursion."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from dstream.pipeline.relinking import fields_with_nodes
from dstream.plan import Node, inputs_first

__all__ = ["At", "Flat", "flat_nodes", "nodes_again"]


class At(NamedTuple):
    """Stands for a node, by its place in the list of all."""

    place: int


class Flat(NamedTuple):
    """A node whose inputs are places."""

    kind: type[Node]
    fields: dict[str, Any]


def flat_nodes(roots: Sequence[Node]) -> tuple[list[Flat], list[At]]:
    """Return all nodes of some plans, each after those that it reads from, and the places of the last ones."""
    places: dict[int, At] = {}
    flat: list[Flat] = []
    for root in roots:
        for each in inputs_first(root, lambda found: () if id(found) in places else found.inputs()):
            if id(each) not in places:
                flat.append(_flat(each, places))
                places[id(each)] = At(len(flat) - 1)
    return flat, [places[id(root)] for root in roots]


def _flat(node: Node, places: dict[int, At]) -> Flat:
    fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    return Flat(type(node), fields | fields_with_nodes(node, lambda each: places[id(each)]))


def nodes_again(flat: Sequence[Flat]) -> list[Node]:
    """Return the nodes of which `flat_nodes` made data."""
    nodes: list[Node] = []
    for kind, fields in flat:
        nodes.append(kind(**{name: _with_nodes(value, nodes) for name, value in fields.items()}))
    return nodes


def _with_nodes(value: Any, nodes: Sequence[Node]) -> Any:
    if isinstance(value, At):
        return nodes[value.place]
    if type(value) is tuple and value and all(isinstance(each, At) for each in value):
        return tuple(nodes[each.place] for each in value)
    return value
