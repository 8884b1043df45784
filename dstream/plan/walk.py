"""Walks over a plan: loops with a stack of their own, each node once, however deep or shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from dstream.plan.nodes import Node

__all__ = ["fold", "topological"]

R = TypeVar("R")


def topological(root: Node) -> list[Node]:
    """Return every node of the plan once, each after the nodes that it reads from."""
    ordered: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, inputs_are_done = stack.pop()
        if inputs_are_done:
            ordered.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((upstream, False) for upstream in reversed(node.inputs()))
    return ordered


def fold(root: Node, visit: Callable[[Node, Sequence[R]], R]) -> R:
    """Compute a value for `root` from the values of its inputs; a shared node is visited once."""
    values: dict[int, R] = {}
    for node in topological(root):
        values[id(node)] = visit(node, [values[id(upstream)] for upstream in node.inputs()])
    return values[id(root)]
