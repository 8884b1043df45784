"""Walks over a plan without recursion, plans whose caches are already filled, and plans that a context has opened.

Cached items belong to the context that computed them, which identifies a step by its identity
(`dstream.operators.rows.caches`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from dstream.base.records import record
from dstream.plan.operations.ends import End, Several
from dstream.plan.operations.streams import Cache, Fork, Node, ReadCache
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.steps import Step
from dstream.spi.runtime import OpenedLater

if TYPE_CHECKING:
    from dstream.plan.processor_graph import GraphVertex
    from dstream.spi.sink import Collections

__all__ = [
    "CacheContent",
    "CacheLookup",
    "each",
    "fold",
    "inputs_first",
    "last_step",
    "nothing_kept",
    "of_one_run",
    "opened",
    "recalled",
    "steps_of",
    "steps_of_inputs",
    "topological",
]


R = TypeVar("R")
T = TypeVar("T")

_inputs: Callable[[Any], Sequence[Any]] = operator.methodcaller("inputs")
"""Avoids a Python frame per node: a small plan is walked about ten times before it runs."""


def topological(root: Node) -> list[Node]:
    """Return every operation of the plan once, each after those that it reads from."""
    return inputs_first(root, _inputs)


def steps_of(order: Sequence[Node]) -> list[Step]:
    """Return how each operation names itself; only the calls that the user made are counted."""
    labels = [node.named_label() for node in order]
    positions = list(accumulate(map(bool, labels), initial=0))[1:]
    return [
        Step(label, node.step.where, position, positions[-1])
        for node, label, position in zip(order, labels, positions, strict=True)
    ]


def last_step(root: Node) -> Step:
    """Return how the last call of a plan names itself."""
    return steps_of(topological(root))[-1]


def steps_of_inputs(root: Node) -> list[Step]:
    """Return the step of each input of `root`, counted as in the whole plan."""
    order = topological(root)
    steps = dict(zip(map(id, order), steps_of(order), strict=True))
    return [steps[id(each)] for each in root.inputs()]


def inputs_first(root: T, inputs: Callable[[T], Sequence[T]]) -> list[T]:
    """Return everything that `root` reaches through `inputs` once, each after its inputs."""
    # A chain without branches, as most plans are, needs no set of what was seen.
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
            # Taken from the end, so that the first input is first.
            stack.extend((upstream, False) for upstream in reversed(inputs(found)))
    return ordered


def fold(root: Node, visit: Callable[[Node, Sequence[R]], R], reads: Callable[[Node], Sequence[Node]] = _inputs) -> R:
    """Compute a value for `root` from the values of its inputs; a shared one is visited once.

    Args:
        root: the last operation of the plan.
        visit: returns the value of an operation.
        reads: returns the inputs of an operation that are visited before it.
    """
    return each(root, visit, reads)[id(root)]


def each(
    root: Node, visit: Callable[[Node, Sequence[R]], R], reads: Callable[[Node], Sequence[Node]] = _inputs
) -> dict[int, R]:
    """Compute the same for everything in the plan; the result is by the `id` of each."""
    values: dict[int, R] = {}
    for found in inputs_first(root, reads):
        values[id(found)] = visit(found, [values[id(upstream)] for upstream in reads(found)])
    return values


def _always() -> bool:
    return True


@record
class CacheContent:
    """An engine's content of a `cache()`.

    Attributes:
        items: in the engine's own terms.
        is_ordered: whether they have an encounter order.
        count: the number of items, if they are in the caller's process; None if they are elsewhere.
        is_there: returns whether the process that stores them still runs.
    """

    items: Any
    is_ordered: bool
    count: int | None = None
    is_there: Callable[[], bool] = _always


E = TypeVar("E", bound=End | Several)

CacheLookup = Callable[[Cache], CacheContent | None]
"""A function that returns the content of a `cache()`, or None."""


def nothing_kept(node: Cache) -> CacheContent | None:
    """Return None: no plan has run, so nothing is cached."""
    return None


def of_one_run(root: E) -> E:
    """Return a plan whose forks belong to one run and do not reuse items of an earlier run, such as the last epoch."""
    if not any(isinstance(each, Fork) for each in topological(root)):
        return root
    return cast(E, fold(root, _of_its_own))


def _of_its_own(node: Node, inputs: Sequence[Node]) -> Node:
    made = node.reading(inputs)
    return copy(made) if isinstance(made, Fork) else made


@overload
def recalled(root: E, found: CacheLookup) -> E: ...


@overload
def recalled(root: Node, found: CacheLookup) -> Node: ...


def recalled(root: Node, found: CacheLookup) -> Node:
    """Return a plan that reads the `found` contents of its caches, and nothing of their inputs.

    Each cache is looked up once, so that the whole plan sees one state of the caches.
    """
    # All at once: an item may be evicted while the plan is made, and one cache may have two readers.
    contents = {id(each): found(each) for each in topological(root) if isinstance(each, Cache)}
    recalls = {number: cached for number, cached in contents.items() if cached is not None}
    if not recalls:
        return root

    def read(node: Node, inputs: Sequence[Node]) -> Node:
        cached = recalls.get(id(node))
        return node.reading(inputs) if cached is None else ReadCache(cached.items, cached.is_ordered, step=node.step)

    return fold(root, read, lambda node: () if id(node) in recalls else node.inputs())


N = TypeVar("N", bound=Node)


def opened(end: N, context: Collections) -> N:
    """Return a copy of the plan, with `OpenedLater` values replaced by opened ones.

    A value that several nodes contain is opened once. Shared nodes remain shared, and nodes without such a value in
    them or upstream are the same objects.

    Args:
        end: the last node, with all that it reads from.
        context: has the collections of the storage.
    """
    found: dict[int, Any] = {}
    return cast(N, fold(end, lambda node, inputs: node.reading(inputs, **_opened_values(node, context, found))))


def _opened_values(node: Node, context: Collections, found: dict[int, Any]) -> dict[str, Any]:
    """Return the source or the service of a node, by the name of its field, if it has to be opened."""
    changes: dict[str, Any] = {}
    for name in ("source", "service", "delivery"):
        value = getattr(node, name, None)
        if isinstance(value, OpenedLater):
            if id(value) not in found:
                found[id(value)] = value.opened(context)
            changes[name] = found[id(value)]
    if isinstance(node, ProcessorGraph):
        vertices = tuple(_opened_vertex(each, context) for each in node.graph.vertices)
        if any(map(operator.is_not, vertices, node.graph.vertices)):
            changes["graph"] = replace(node.graph, vertices=vertices)
    return changes


def _opened_vertex(vertex: GraphVertex, context: Collections) -> GraphVertex:
    supplier = vertex.supplier.opened(context)
    return vertex if supplier is vertex.supplier else replace(vertex, supplier=supplier)
