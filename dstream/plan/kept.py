"""Nodes whose items stand somewhere: those of `cache()`, and those of tables."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from dstream.plan.nodes import Node, node

__all__ = ["Cache", "Kept", "Recall", "Table"]


class Kept:
    """What an engine keeps of a `cache()` node: nothing until the first plan that reads it runs.

    It lives as long as the plans that read it, and what it holds goes with it.

    Attributes:
        lock: held while the items are computed, so that two threads do not compute them both.
        is_ordered: whether what is kept has an encounter order.
        count: how many items are kept in the caller's process; None if they are elsewhere.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_ordered = False
        self.count: int | None = None
        self._items: Any = None
        self._is_there: Callable[[], bool] = bool

    def keep(self, items: Any, is_ordered: bool, is_there: Callable[[], bool], count: int | None = None) -> None:
        """Keep the items of an engine, in its own terms, as long as `is_there()` says that it runs."""
        self.is_ordered, self.count, self._items, self._is_there = is_ordered, count, items, is_there

    def found(self) -> Any:
        """Return what is kept, or None."""
        return self._items if self._is_there() else None


@node
class Cache(Node):
    """The same items, computed once and kept for the plans that read them later."""

    upstream: Node
    kept: Kept


@node
class Recall(Node):
    """The items that an engine kept of a `Cache`, in its own terms. Only `rewrite` makes it."""

    items: Any
    is_ordered: bool

    def label(self) -> str:
        return ".cache()"


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
