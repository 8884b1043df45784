"""Walks over a plan: loops with a stack of their own, each node once, however deep or shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import methodcaller
from typing import Any, TypeVar

from dstream.plan.core import Core
from dstream.plan.nodes import Node
from dstream.plan.steps import Step

__all__ = ["each", "fold", "inputs_first", "last_step", "steps_of", "steps_of_inputs", "topological"]

R = TypeVar("R")
T = TypeVar("T")
N = TypeVar("N", Node, Core)

_inputs: Callable[[Any], Sequence[Any]] = methodcaller("inputs")
"""Without a frame of Python for each node: a small plan is walked some ten times before it runs."""


def topological(root: N) -> list[N]:
    """Return every node or operation of the plan once, each after those that it reads from."""
    return inputs_first(root, _inputs)


def steps_of(order: Sequence[Node]) -> list[Step]:
    """Return how each node names itself; only the calls that the user made are counted."""
    labels = [node.named_label() for node in order]
    positions = list(accumulate(map(bool, labels), initial=0))[1:]
    return [
        Step(label, node.where, position, positions[-1])
        for node, label, position in zip(order, labels, positions, strict=True)
    ]


def last_step(root: Node) -> Step:
    """Return how the last call of a plan names itself."""
    return steps_of(topological(root))[-1]


def steps_of_inputs(root: Node) -> list[Step]:
    """Return how each of what `root` reads from names itself, counted as in the whole plan."""
    order = topological(root)
    steps = dict(zip(map(id, order), steps_of(order), strict=True))
    return [steps[id(each)] for each in root.inputs()]


def inputs_first(root: T, inputs: Callable[[T], Sequence[T]]) -> list[T]:
    """Return everything that `root` reaches through `inputs` once, each after its inputs."""
    line = [root]
    while len(above := inputs(line[-1])) == 1:
        line += above
    return _branches_first(root, inputs) if above else line[::-1]


def _branches_first(root: T, inputs: Callable[[T], Sequence[T]]) -> list[T]:
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


def fold(root: N, visit: Callable[[N, Sequence[R]], R]) -> R:
    """Compute a value for `root` from the values of its inputs; what is shared is visited once."""
    return each(root, visit)[id(root)]


def each(root: N, visit: Callable[[N, Sequence[R]], R]) -> dict[int, R]:
    """Compute the same for everything in the plan; the result is by the `id` of each."""
    values: dict[int, R] = {}
    for found in topological(root):
        values[id(found)] = visit(found, [values[id(upstream)] for upstream in found.inputs()])
    return values
