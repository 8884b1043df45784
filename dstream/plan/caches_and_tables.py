"""Nodes whose items stand somewhere: those of `cache()`, and those of tables.

A `cache()` node is a value as any other. What is kept of it belongs to the context that computed it, which knows the
node by its identity (`dstream.engine.kernels.caches`); `recalled` lets a plan read that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dstream.plan.nodes import Node, node
from dstream.plan.walk import inputs_first, topological

__all__ = ["Cache", "CacheIdentity", "Cached", "Found", "Recall", "Table", "nothing_kept", "recalled"]


class CacheIdentity:
    """Which `cache()` it is: equal to itself alone. A copy of it, or what is unpickled, is another one."""

    __slots__ = ("__weakref__",)


@node
class Cache(Node):
    """The same items, computed once and kept for the plans that read them later.

    Attributes:
        identity: under which the items are kept. A rewritten node has that of the user's.
    """

    upstream: Node
    identity: CacheIdentity = dataclasses.field(default_factory=CacheIdentity)

    def __copy__(self) -> Self:
        return dataclasses.replace(self, identity=CacheIdentity())


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Cached:
    """What an engine keeps of a `cache()`.

    Attributes:
        items: in the engine's own terms.
        is_ordered: whether they have an encounter order.
        count: how many there are, if they are in the caller's process; None if they are elsewhere.
        is_there: says whether what holds them still runs.
    """

    items: Any
    is_ordered: bool
    count: int | None = None
    is_there: Callable[[], bool] = _always


Found = Callable[[Cache], Cached | None]
"""Returns what is kept of a `cache()`, or None."""


def nothing_kept(node: Cache) -> Cached | None:
    """Return None: nothing is kept where no plan has run."""
    return None


@node
class Recall(Node):
    """The items that an engine kept of a `Cache`, in its own terms. Only `recalled` makes it."""

    items: Any
    is_ordered: bool

    def label(self) -> str:
        return ".cache()"


def recalled(core: Node, found: Found) -> Node:
    """Return a rewritten plan that reads what was `found` of its caches, and nothing of what stands before those.

    Each cache is looked for once, so that the whole plan is of one state of what is kept.
    """
    asked = {id(each): found(each) for each in topological(core) if isinstance(each, Cache)}
    recalls = {number: cached for number, cached in asked.items() if cached is not None}
    if not recalls:
        return core
    became: dict[int, Node] = {}
    for each in inputs_first(core, lambda each: () if id(each) in recalls else each.inputs()):
        cached = recalls.get(id(each))
        if cached is None:
            became[id(each)] = _reading(each, [became[id(upstream)] for upstream in each.inputs()])
        else:
            became[id(each)] = Recall(cached.items, cached.is_ordered, where=each.where, step=each.step)
    return became[id(core)]


def _reading(each: Node, inputs: Sequence[Node]) -> Node:
    """Return a node that reads from `inputs`: itself, if it does."""
    is_same = all(new is old for new, old in zip(inputs, each.inputs(), strict=True))
    return each if is_same else each.with_inputs(inputs, each.step)


@node
class Table(Node):
    """The rows of a table of the engine's own kind, such as a Spark DataFrame that the user has.

    Attributes:
        table: the user's table.
        kind: the class that each row becomes, by the names of its fields; None for the engine's own rows.
    """

    table: Any
    kind: type | None = None

    def label(self) -> str:
        return f"from_df({type(self.table).__name__}{'' if self.kind is None else f', {self.kind.__qualname__}'})"
