"""`JoinClause`: which items of two stages belong together, and what is taken of the right one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Never, TypeVar, cast

from dstream.plan import shown_function
from dstream.stream.stream_arguments import function, kind_of, optional_function

__all__ = ["EntriesClause", "JoinClause", "clause_of"]

K = TypeVar("K")
L = TypeVar("L")
R = TypeVar("R")
V = TypeVar("V")
K2 = TypeVar("K2")  # Those of a static method are not those of the class.
L2 = TypeVar("L2")
R2 = TypeVar("R2")
W = TypeVar("W")


@dataclass(frozen=True, repr=False)
class JoinClause(Generic[K, L, R, V]):
    """How a hash join finds the matches of an item; `hash_join(right, on=...)` takes one, or a pair of functions.

    Attributes:
        left_key: gives the key of an item.
        right_key: gives the key of an item of the right stage.
        projection: what of a right item is handed on; None: all of it.

    Raises:
        TypeError: one of them is no function.

    Example:
        >>> JoinClause.on_keys(str.lower, str.lower).projecting(len)
        JoinClause.on_keys(str.lower, str.lower).projecting(len)
    """

    left_key: Callable[[L], K]
    right_key: Callable[[R], K]
    projection: Callable[[R], V] | None = None

    def __post_init__(self) -> None:
        function(self.left_key, "left_key")
        function(self.right_key, "right_key")
        optional_function(self.projection, "projection")

    @staticmethod
    def on_keys(left_key: Callable[[L2], K2], right_key: Callable[[R2], K2]) -> JoinClause[K2, L2, R2, R2]:
        """Match items whose keys are equal."""
        return JoinClause(left_key, right_key)

    @staticmethod
    def join_map_entries(left_key: Callable[[L2], K2]) -> EntriesClause[K2, L2]:
        """Match the entries of a map, or other pairs, by their keys, and hand on their values.

        Example:
            >>> JoinClause.join_map_entries(len)
            JoinClause.join_map_entries(len)
        """
        return EntriesClause(left_key, _key, _value)

    def projecting(self, fn: Callable[[R], W]) -> JoinClause[K, L, R, W]:
        """Return the same clause, which hands on `fn(right)` in place of each right item."""
        return cast("JoinClause[K, L, R, W]", replace(self, projection=cast(Any, function(fn, "fn"))))

    def __repr__(self) -> str:
        if self.right_key is _key and self.projection is _value:
            return f"JoinClause.join_map_entries({shown_function(self.left_key)})"
        keys = f"{shown_function(self.left_key)}, {shown_function(self.right_key)}"
        projecting = "" if self.projection is None else f".projecting({shown_function(self.projection)})"
        return f"JoinClause.on_keys({keys}){projecting}"


class EntriesClause(JoinClause[K, L, Never, Never]):
    """What `JoinClause.join_map_entries` returns.

    It does not know the types of entries: a hash join takes them from its right stage. `Never` keeps checkers from
    taking it for a clause that knows them.
    """

    def projecting(self, fn: Callable[[Any], W]) -> JoinClause[K, L, Any, W]:
        """Return the same clause, which hands on `fn(entry)` in place of each value."""
        return cast("JoinClause[K, L, Any, W]", super().projecting(fn))


def _key(entry: Any) -> Any:
    return entry[0]


def _value(entry: Any) -> Any:
    return entry[1]


def clause_of(on: Any, name: str = "on") -> JoinClause[Any, Any, Any, Any]:
    """Return what a user gave to a hash join as a clause.

    Raises:
        TypeError: it is neither a clause nor a pair of functions.
    """
    match on:
        case JoinClause():
            return on
        case (left, right):
            return JoinClause(function(left, f"{name}[0]"), function(right, f"{name}[1]"))
        case tuple() | list():
            raise TypeError(f"{name} must be a pair of key functions or a JoinClause, not {len(on)} functions")
    raise TypeError(f"{name} must be a pair of key functions (of_left, of_right) or a JoinClause, not {kind_of(on)}")
