"""Hash joins: the nodes of one, and what becomes of the pairs that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from dstream.pipeline.join_clause import clause_of
from dstream.plan import Map, Node, call_site, shown_function
from dstream.plan.nodes_of_stages import HashJoin
from dstream.stream.stream_arguments import function, kind_of, partition_count
from dstream.values.time_units import seconds

__all__ = ["FirstOfPairs", "Unnested", "hash_joined", "pairs_of"]


def hash_joined(
    left: Node,
    kind: str,
    sides: Sequence[tuple[Node, Any]],
    to: Any,
    broadcast_limit: int | None,
    refresh_every: float | timedelta | None = None,
) -> Node:
    """Return the last node of a hash join.

    Args:
        left: gives the items.
        kind: the name of the method.
        sides: the last node of each right side, and what the user gave for `on`.
        to: makes an item of an item and its matches; None: a tuple.
        broadcast_limit: how many bytes each right side may have; None: what the context says.
        refresh_every: after how many seconds a job without an end reads them again; None: never.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: `refresh_every` is below 0.
    """
    every = None if refresh_every is None else seconds(refresh_every, "refresh_every")
    limit = None if broadcast_limit is None else partition_count(broadcast_limit, "broadcast_limit")
    where, is_one = call_site(), kind != "hash_join_all"
    node = left
    for depth, (right, on) in enumerate(sides):
        clause = clause_of(on, "on" if is_one else f"joins[{depth}][1]")
        left_key = clause.left_key if depth == 0 else FirstOfPairs(depth, clause.left_key)
        others = (clause.right_key, clause.projection, kind == "inner_hash_join", limit, every)
        node = HashJoin(node, right, left_key, *others, where=where)
    return node if to is None and is_one else _unnested(node, kind, to, len(sides))


def _unnested(node: Node, kind: str, to: Any, depth: int) -> Node:
    given = "" if to is None else f"to={shown_function(function(to, 'to'))}"
    return Map(node, Unnested(depth, to), None, kind, given, where=node.where)


def pairs_of(joins: Any) -> Sequence[tuple[Any, Any]]:
    """Return what `hash_join_all` was given as pairs.

    Raises:
        TypeError: it is something else.
        ValueError: there are none.
    """
    if not isinstance(joins, list | tuple):
        raise TypeError(f"joins must be a list of (stage, on), not {kind_of(joins)}")
    for each in joins:
        if not isinstance(each, tuple) or len(each) != 2:
            raise TypeError(f"joins must be a list of (stage, on), and one of them is {kind_of(each)}")
    if not joins:
        raise ValueError("joins must not be empty: hash_join_all([(stage, on), ...]) needs a right side")
    return joins


class FirstOfPairs:
    """Applies a function to the item inside of nested pairs: `x` of `((x, match_0), match_1)`."""

    def __init__(self, depth: int, fn: Callable[[Any], Any]) -> None:
        self.depth = depth
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, pair: Any) -> Any:
        """Return what the function makes of the item inside."""
        for _ in range(self.depth):
            pair = pair[0]
        return self.fn(pair)


class Unnested:
    """Gives an item and its matches to a function: `to(x, match_0, match_1)` of `((x, match_0), match_1)`."""

    def __init__(self, depth: int, to: Callable[..., Any] | None) -> None:
        self.depth = depth
        self.to = to
        self.__qualname__ = "hash_join_all" if to is None else shown_function(to)

    def __call__(self, pair: Any) -> Any:
        """Return what becomes of an item and its matches."""
        matches = []
        for _ in range(self.depth):
            pair, match = pair
            matches.append(match)
        items = (pair, *reversed(matches))
        return items if self.to is None else self.to(*items)
