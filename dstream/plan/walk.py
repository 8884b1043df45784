"""Walks over a plan: loops with a stack of their own, each node once, however deep or shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from dstream.plan.nodes import Node

__all__ = ["fold", "inputs_first", "topological"]

R = TypeVar("R")
T = TypeVar("T")


def topological(root: Node) -> list[Node]:
    """Return every node of the plan once, each after the nodes that it reads from."""
    return inputs_first(root, lambda node: node.inputs())


def inputs_first(root: T, inputs: Callable[[T], Sequence[T]]) -> list[T]:
    """Return everything that `root` reaches through `inputs` once, each after its inputs."""
    ordered: list[T] = []
    seen: set[int] = set()
    stack: list[tuple[T, bool]] = [(root, False)]
    while stack:
        found, inputs_are_done = stack.pop()
        if inputs_are_done:
            ordered.append(found)
        elif id(found) not in seen:
            seen.add(id(found))
            stack.append((found, True))
            stack.extend((upstream, False) for upstream in reversed(inputs(found)))
    return ordered


def fold(root: Node, visit: Callable[[Node, Sequence[R]], R]) -> R:
    """Compute a value for `root` from the values of its inputs; a shared node is visited once."""
    values: dict[int, R] = {}
    for node in topological(root):
        values[id(node)] = visit(node, [values[id(upstream)] for upstream in node.inputs()])
    return values[id(root)]
