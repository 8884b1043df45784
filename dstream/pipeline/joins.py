"""`JoiningStage`: unions and hash joins of stages; `JoinClause`: the keys and values of a join, and their nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Never, TypeAlias, TypeVar, cast, overload

from dstream.arguments import checked_function, kind_of, optional_function, partition_count
from dstream.pipeline.stages import B, Bounded, Ended, FlowingStage, StageOf
from dstream.pipeline.timestamps import check_that_it_runs_in_epochs
from dstream.plan import Map, Node, Step, Union, call_site, called, shown_function
from dstream.plan.operations.pairs import HashJoin
from dstream.values.time import seconds

if TYPE_CHECKING:
    from dstream.pipeline.bounded import Stage

__all__ = [
    "EntriesClause",
    "FirstOfPairs",
    "JoinClause",
    "JoiningStage",
    "Unnested",
    "clause_of",
    "hash_joined",
    "pairs_of",
]


K = TypeVar("K")
L = TypeVar("L")
R = TypeVar("R")
V = TypeVar("V")
K2 = TypeVar("K2")  # A static method needs its own type variables.
L2 = TypeVar("L2")
R2 = TypeVar("R2")
W = TypeVar("W")


@dataclass(frozen=True, repr=False)
class JoinClause(Generic[K, L, R, V]):
    """The keys by which a hash join finds matches; `hash_join(right, on=...)` takes a clause, or a pair of functions.

    Attributes:
        left_key: returns the key of an item.
        right_key: returns the key of an item of the right stage.
        projection: returns the part of a right item that is passed on; None: all of it.

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
        checked_function(self.left_key, "left_key")
        checked_function(self.right_key, "right_key")
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
        """Return this clause with `fn(right)` instead of each right item."""
        return cast("JoinClause[K, L, R, W]", replace(self, projection=cast(Any, checked_function(fn, "fn"))))

    def __repr__(self) -> str:
        if self.right_key is _key and self.projection is _value:
            return f"JoinClause.join_map_entries({shown_function(self.left_key)})"
        keys = f"{shown_function(self.left_key)}, {shown_function(self.right_key)}"
        projecting = "" if self.projection is None else f".projecting({shown_function(self.projection)})"
        return f"JoinClause.on_keys({keys}){projecting}"


class EntriesClause(JoinClause[K, L, Never, Never]):
    """A join clause that matches entries by their keys, made by `JoinClause.join_map_entries`.

    The clause has no types of entries: a hash join takes them from its right stage. `Never` prevents type checkers from
    treating it as a typed clause.
    """

    def projecting(self, fn: Callable[[Any], W]) -> JoinClause[K, L, Any, W]:
        """Return this clause with `fn(entry)` instead of each value."""
        return cast("JoinClause[K, L, Any, W]", super().projecting(fn))


def _key(entry: Any) -> Any:
    return entry[0]


def _value(entry: Any) -> Any:
    return entry[1]


T = TypeVar("T")
U = TypeVar("U")

Keys: TypeAlias = tuple[Callable[[T], Any], Callable[[U], Any]]


class JoiningStage(FlowingStage[T, B]):
    """A stage with the operations on several stages that items have whether they end or not."""

    __slots__ = ()

    # All items of several stages

    def merge(self, *others: StageOf[T, B | Bounded]) -> Stage[T, B]:
        """Return all items of this stage and of others, in any order; `a + b` of bounded stages preserves the order.

        Args:
            others: stages of this pipeline. If this stage is unbounded, a bounded source among the others is read as
                one partition, which ends.

        Raises:
            IllegalStateError: a stage belongs to another pipeline, or has no end where this one has.
            UnsupportedError: a stage that ends has steps that need all of its items, and this one has no end.
        """
        return self._united("merge", others)

    def union(self, *others: StageOf[T, B | Bounded]) -> Stage[T, B]:
        """Return all items of this stage and of others, in any order, as `merge`."""
        return self._united("union", others)

    def _united(self, kind: str, others: Iterable[Any]) -> Stage[Any, B]:
        stages = self._others(others, kind)
        for each in stages:
            if self._has_no_end and not each._has_no_end:
                check_that_it_runs_in_epochs(each._record.node, f"{kind}(...)")
        nodes = (self._record.node, *(each._record.node for each in stages))
        return self._step(kind, Union(nodes, step=called(kind, "...")), stages)

    # Joined with a side that is broadcast

    @overload
    def hash_join(
        self, right: Ended[U], on: Keys[T, U], *, broadcast_limit: int | None = None, refresh_every: B | None = None
    ) -> Stage[tuple[T, U | None], B]: ...

    @overload
    def hash_join(
        self,
        right: Ended[U],
        on: Keys[T, U],
        to: Callable[[T, U | None], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[R, B]: ...

    @overload
    def hash_join(
        self,
        right: StageOf[tuple[Any, V], Bounded],
        on: EntriesClause[Any, T],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[tuple[T, V | None], B]: ...

    @overload
    def hash_join(
        self,
        right: StageOf[tuple[Any, V], Bounded],
        on: EntriesClause[Any, T],
        to: Callable[[T, V | None], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[R, B]: ...

    @overload
    def hash_join(
        self,
        right: Ended[U],
        on: JoinClause[Any, T, U, V],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[tuple[T, V | None], B]: ...

    @overload
    def hash_join(
        self,
        right: Ended[U],
        on: JoinClause[Any, T, U, V],
        to: Callable[[T, V | None], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[R, B]: ...

    def hash_join(
        self,
        right: Any,
        on: Any,
        to: Callable[[Any, Any], Any] | None = None,
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[Any, B]:
        """Pair each item with each item of `right` that has its key, or with None: `(item, match)`.

        The right side is read first, once by each driver of the job or again and again with `refresh_every`, and sent
        to all tasks. Several matches have the order of the right side; a match that is None is a match.

        Args:
            right: another stage of this pipeline, whose items end: a `BatchStage`.
            on: the key functions of both sides, `(of_item, of_right)`, or a `JoinClause`.
            to: makes an item of a pair: `to(item, match)`; unset, the pair is emitted.
            broadcast_limit: how many bytes the right side may have; unset, the limit of the context.
            refresh_every: seconds, or a timedelta: an epoch that begins this much later than the last read of the right
                side reads it again, including the contents of its `cache()`; 0: each epoch. Unset, it is read once.

        Raises:
            IllegalStateError: `right` belongs to another pipeline, or has no end.
        """
        return self._hash_joined("hash_join", [(right, on)], to, broadcast_limit, refresh_every)

    @overload
    def inner_hash_join(
        self, right: Ended[U], on: Keys[T, U], *, broadcast_limit: int | None = None, refresh_every: B | None = None
    ) -> Stage[tuple[T, U], B]: ...

    @overload
    def inner_hash_join(
        self,
        right: Ended[U],
        on: Keys[T, U],
        to: Callable[[T, U], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[R, B]: ...

    @overload
    def inner_hash_join(
        self,
        right: StageOf[tuple[Any, V], Bounded],
        on: EntriesClause[Any, T],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[tuple[T, V], B]: ...

    @overload
    def inner_hash_join(
        self,
        right: StageOf[tuple[Any, V], Bounded],
        on: EntriesClause[Any, T],
        to: Callable[[T, V], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[R, B]: ...

    @overload
    def inner_hash_join(
        self,
        right: Ended[U],
        on: JoinClause[Any, T, U, V],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[tuple[T, V], B]: ...

    @overload
    def inner_hash_join(
        self,
        right: Ended[U],
        on: JoinClause[Any, T, U, V],
        to: Callable[[T, V], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[R, B]: ...

    def inner_hash_join(
        self,
        right: Any,
        on: Any,
        to: Callable[[Any, Any], Any] | None = None,
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[Any, B]:
        """Pair each item with each item of `right` that has its key; leave out items that match nothing.

        Otherwise as `hash_join`.
        """
        return self._hash_joined("inner_hash_join", [(right, on)], to, broadcast_limit, refresh_every)

    @overload
    def hash_join_all(
        self,
        joins: Sequence[tuple[Ended[Any], Any]],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[tuple[Any, ...], B]: ...

    @overload
    def hash_join_all(
        self,
        joins: Sequence[tuple[Ended[Any], Any]],
        to: Callable[..., R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[R, B]: ...

    def hash_join_all(
        self,
        joins: Sequence[tuple[Ended[Any], Any]],
        to: Callable[..., Any] | None = None,
        *,
        broadcast_limit: int | None = None,
        refresh_every: B | None = None,
    ) -> Stage[Any, B]:
        """Pair each item with the matches of several stages: `(item, match_0, match_1, ...)`.

        Where several items of a stage match, each is paired with each of the others: the product. None is used where
        nothing matches. Otherwise as `hash_join`.

        Args:
            joins: for each right side the stage and what `hash_join` takes for `on`.
            to: makes an item of it: `to(item, match_0, match_1, ...)`; unset, the tuple is emitted.
            broadcast_limit: how many bytes each right side may have; unset, the limit of the context.
            refresh_every: as for `hash_join`, for all right sides.

        Raises:
            IllegalStateError: a stage belongs to another pipeline.
            ValueError: `joins` is empty.
        """
        return self._hash_joined("hash_join_all", pairs_of(joins), to, broadcast_limit, refresh_every)

    def _hash_joined(
        self, kind: str, joins: Sequence[tuple[Any, Any]], to: Any, broadcast_limit: int | None, refresh_every: Any
    ) -> Stage[Any, B]:
        rights = [self._ending(right, kind) for right, _ in joins]
        sides = [(right._record.node, on) for right, (_, on) in zip(rights, joins, strict=True)]
        return self._step(kind, hash_joined(self._record.node, kind, sides, to, broadcast_limit, refresh_every), rights)


def clause_of(on: Any, name: str = "on") -> JoinClause[Any, Any, Any, Any]:
    """Return the user's argument of a hash join as a clause.

    Raises:
        TypeError: it is neither a clause nor a pair of functions.
    """
    match on:
        case JoinClause():
            return on
        case (left, right):
            return JoinClause(checked_function(left, f"{name}[0]"), checked_function(right, f"{name}[1]"))
        case tuple() | list():
            raise TypeError(f"{name} must be a pair of key functions or a JoinClause, not {len(on)} functions")
    raise TypeError(f"{name} must be a pair of key functions (of_left, of_right) or a JoinClause, not {kind_of(on)}")


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
        left: the node of the items.
        kind: the name of the method.
        sides: the last node of each right side, and what the user gave for `on`.
        to: makes an item of an item and its matches; None: a tuple.
        broadcast_limit: how many bytes each right side may have; None: the limit of the context.
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
        # The items of each further join are the pairs of the one before.
        left_key = clause.left_key if depth == 0 else FirstOfPairs(depth, clause.left_key)
        others = (clause.right_key, clause.projection, kind == "inner_hash_join", limit, every)
        node = HashJoin(node, right, left_key, *others, step=Step(where=where))
    # One join returns pairs in any case.
    return node if to is None and is_one else _unnested(node, kind, to, len(sides))


def _unnested(node: Node, kind: str, to: Any, depth: int) -> Node:
    arguments = "" if to is None else f"to={shown_function(checked_function(to, 'to'))}"
    return Map(node, Unnested(depth, to), step=called(kind, arguments, where=node.step.where))


def pairs_of(joins: Any) -> Sequence[tuple[Any, Any]]:
    """Return the arguments of `hash_join_all` as pairs.

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
    """A function applied to the item inside of nested pairs: `x` of `((x, match_0), match_1)`."""

    def __init__(self, depth: int, fn: Callable[[Any], Any]) -> None:
        self.depth = depth
        self.fn = fn
        # Plans and failures show the user's function by this, and not a class of ours.
        self.__qualname__ = shown_function(fn)

    def __call__(self, pair: Any) -> Any:
        """Return the result of the function for the item inside."""
        for _ in range(self.depth):
            pair = pair[0]
        return self.fn(pair)


class Unnested:
    """A function applied to an item and its matches: `to(x, match_0, match_1)` of `((x, match_0), match_1)`."""

    def __init__(self, depth: int, to: Callable[..., Any] | None) -> None:
        self.depth = depth
        self.to = to
        self.__qualname__ = "hash_join_all" if to is None else shown_function(to)

    def __call__(self, pair: Any) -> Any:
        """Return the result for an item and its matches."""
        matches = []
        for _ in range(self.depth):
            pair, match = pair
            matches.append(match)
        items = (pair, *reversed(matches))
        return items if self.to is None else self.to(*items)
