"""Nodes that read from other nodes: how the plan of a pipeline is put together from what its stages are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from dstream.plan import Node, inputs_first

__all__ = ["relinked", "with_inputs"]


def relinked(node: Node, instead: Mapping[int, Node]) -> Node:
    """Return `node` as it is when other nodes stand where it reads from.

    Args:
        node: the last node of a stage.
        instead: what takes the place of a node, by the `id` of that; nobody looks behind it.
    """
    became = dict(instead)
    for each in inputs_first(node, lambda found: () if id(found) in instead else found.inputs()):
        if id(each) not in became:
            became[id(each)] = with_inputs(each, [became[id(upstream)] for upstream in each.inputs()])
    return became[id(node)]


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """Return the same node on other inputs, given in the order of `node.inputs()`."""
    before = node.inputs()
    if all(old is new for old, new in zip(before, inputs, strict=True)):
        return node
    became = {id(old): new for old, new in zip(before, inputs, strict=True)}
    return dataclasses.replace(node, **fields_with_nodes(node, lambda old: became[id(old)]))


def fields_with_nodes(node: Node, change: Any) -> dict[str, Any]:
    """Return the fields of a node that hold nodes, by their names, with what `change` makes of each node."""
    fields = {}
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            fields[field.name] = change(value)
        elif isinstance(value, tuple) and value and all(isinstance(each, Node) for each in value):
            fields[field.name] = tuple(map(change, value))
    return fields
