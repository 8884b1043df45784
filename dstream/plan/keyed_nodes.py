"""Nodes of operations by key, on one stream or two."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dstream.plan.nodes import Node
from dstream.plan.operations.streams import node
from dstream.values.functions import shown_function

__all__ = ["CoGroup", "Distinct", "Join", "Pairing", "PartitionBy"]


@node
class Distinct(Node):
    """The first item of each key; the key of an item is `key(item)`, or the item itself.

    Attributes:
        name: the method that the user called; empty if another node stands for that call already.
    """

    upstream: Node
    key: Callable[[Any], Any] | None = None
    name: str = "distinct"

    def label(self) -> str:
        return f".{self.name}({'' if self.key is None else shown_function(self.key)})" if self.name else ""


@node
class PartitionBy(Node):
    """The same items, equal keys in one of `count` partitions; the key of an item is that of its entry, or itself.

    Attributes:
        count: how many; None: as many as the cores suggest.
        name: the method that the user called.
    """

    upstream: Node
    count: int | None
    key: Callable[[Any], Any] | None = None
    name: str = "partition_by"

    def label(self) -> str:
        return f".{self.name}({', '.join(self._arguments())})"

    def _arguments(self) -> Iterable[str]:
        if self.count is not None:
            yield str(self.count)
        if self.key is not None:
            yield f"key={shown_function(self.key)}"


@node
class Pairing(Node):
    """Two streams.

    Attributes:
        left_key: gives the key of an item of `left`; None: the items are entries, and their values are meant.
        right_key: the same for `right`.
    """

    left: Node
    right: Node
    left_key: Callable[[Any], Any] | None = None
    right_key: Callable[[Any], Any] | None = None

    def inputs(self) -> tuple[Node, ...]:
        return self.left, self.right

    def label(self) -> str:
        return self.call("...")

    def call(self, other: str) -> str:
        """Return the call as the user wrote it, with `other` for the other stream."""
        name = type(self).__name__.lower()
        return f".{name}({', '.join([other, *self._on(), *self._more()])})"

    def _on(self) -> list[str]:
        keys = [shown_function(key) for key in (self.left_key, self.right_key) if key is not None]
        if not keys:
            return []
        return [f"on={keys[0]}" if self.left_key is self.right_key else f"on=({', '.join(keys)})"]

    def _more(self) -> list[str]:
        return []


@node
class Join(Pairing):
    """Each pair of a left and a right item with equal keys.

    Attributes:
        how: `inner`, `left`, `right` or `full`: of which side the items that match nothing are kept.
    """

    how: str = "inner"

    def _more(self) -> list[str]:
        return [] if self.how == "inner" else [f"how={self.how!r}"]


@node
class CoGroup(Pairing):
    """Each key with the items of both sides that have it."""
