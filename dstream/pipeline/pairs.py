"""`PairedStage` and `JoiningStage`: operations of a stage with other stages of its pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from dstream.pipeline.joins import EntriesClause, JoinClause, hash_joined, pairs_of
from dstream.pipeline.operations import LazyStage
from dstream.pipeline.records import StageRecord
from dstream.pipeline.stages import StageOf
from dstream.plan import Union, call_site
from dstream.plan.operations.pairs import Direction
from dstream.stream.keyed import How
from dstream.stream.pairs import On
from dstream.values import Entry

if TYPE_CHECKING:
    from dstream.pipeline.bounded import BatchStage

__all__ = ["JoiningStage", "PairedStage"]


T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")
F = TypeVar("F")


class PairedStage(LazyStage[T]):
    """A stage that may be matched with another one of its pipeline.

    Costs are those of the methods of streams. What takes another stage raises an `IllegalStateError` if that one
    belongs to another pipeline.
    """

    __slots__ = ()

    # By place

    def zip(self, other: LazyStage[U], strict: bool = False) -> BatchStage[tuple[T, U]]:
        """Pair the items at equal places, up to the end of the shorter side.

        Args:
            other: another stage of this pipeline.
            strict: both sides must have the same length.
        """
        return self._with("zip", other, strict)

    @overload
    def zip_longest(self, other: LazyStage[U], fillvalue: None = None) -> BatchStage[tuple[T | None, U | None]]: ...

    @overload
    def zip_longest(self, other: LazyStage[U], fillvalue: F) -> BatchStage[tuple[T | F, U | F]]: ...

    def zip_longest(self, other: Any, fillvalue: Any = None) -> Any:
        """Pair the items at equal places, up to the end of the longer side, with `fillvalue` for what is missing."""
        return self._with("zip_longest", other, fillvalue)

    def interleave(self, other: LazyStage[U]) -> BatchStage[T | U]:
        """Give the items of both sides in turn; where one side ends, the other one goes on."""
        return self._with("interleave", other)

    def cross(self, other: LazyStage[U], *, broadcast_limit: int | None = None) -> BatchStage[tuple[T, U]]:
        """Pair each item with each one of the other side, in the order of `itertools.product`.

        Args:
            other: another stage of this pipeline, which goes to every task.
            broadcast_limit: how many bytes it may have; unset, what the context says.
        """
        return self._with("cross", other, broadcast_limit=broadcast_limit)

    # By membership

    def intersection(self, other: LazyStage[T]) -> BatchStage[T]:
        """Keep the items that the other side has too, each once."""
        return self._with("intersection", other)

    def subtract(self, other: LazyStage[Any]) -> BatchStage[T]:
        """Leave out the items that the other side has; what is repeated stays so."""
        return self._with("subtract", other)

    @overload
    def semi_join(self, other: StageOf[tuple[Any, Any]], on: None = None) -> BatchStage[T]: ...

    @overload
    def semi_join(self, other: LazyStage[U], on: tuple[Callable[[T], K], Callable[[U], K]]) -> BatchStage[T]: ...

    @overload
    def semi_join(self, other: LazyStage[U], on: Callable[[T | U], Any]) -> BatchStage[T]: ...

    def semi_join(self, other: Any, on: On = None) -> BatchStage[T]:
        """Keep the items whose keys the other side has, each once, however often it has them.

        Args:
            other: another stage of this pipeline.
            on: as for `join`; None: both give entries.
        """
        return self._with("semi_join", other, on)

    @overload
    def anti_join(self, other: StageOf[tuple[Any, Any]], on: None = None) -> BatchStage[T]: ...

    @overload
    def anti_join(self, other: LazyStage[U], on: tuple[Callable[[T], K], Callable[[U], K]]) -> BatchStage[T]: ...

    @overload
    def anti_join(self, other: LazyStage[U], on: Callable[[T | U], Any]) -> BatchStage[T]: ...

    def anti_join(self, other: Any, on: On = None) -> BatchStage[T]:
        """Keep the items whose keys the other side does not have; otherwise as `semi_join`."""
        return self._with("anti_join", other, on)

    # By what is nearest

    @overload
    def asof_join(
        self,
        other: LazyStage[U],
        on: tuple[Callable[[T], Any], Callable[[U], Any]],
        by: tuple[Callable[[T], K], Callable[[U], K]] | Callable[[T | U], Any] | None = None,
        direction: Direction = "backward",
        tolerance: Any = None,
    ) -> BatchStage[tuple[T, U | None]]: ...

    @overload
    def asof_join(
        self,
        other: LazyStage[U],
        on: Callable[[T | U], Any],
        by: tuple[Callable[[T], K], Callable[[U], K]] | Callable[[T | U], Any] | None = None,
        direction: Direction = "backward",
        tolerance: Any = None,
    ) -> BatchStage[tuple[T, U | None]]: ...

    def asof_join(
        self, other: Any, on: Any, by: Any = None, direction: Direction = "backward", tolerance: Any = None
    ) -> Any:
        """Pair each item with the nearest one of the other side, such as a trade with the last quote: `(left, right)`.

        Args:
            other: another stage of this pipeline.
            on: gives the place of an item, such as its time: a function for both sides, or one for each.
            by: items match only where this gives an equal key.
            direction: `"backward"`, `"forward"` or `"nearest"`.
            tolerance: how far from each other the places may be.
        """
        return self._with("asof_join", other, on, by, direction, tolerance)

    def _with(self, call: str, other: Any, *args: Any, **named: Any) -> BatchStage[Any]:
        """Return what the method of streams makes of this stage and another one."""
        stage = self._other(other, call)
        stream = getattr(self._stream(), call)(stage._stream(), *args, **named)
        return self._made(call, stream, stage)


V = TypeVar("V")
W = TypeVar("W")
R = TypeVar("R")

Keys: TypeAlias = tuple[Callable[[T], Any], Callable[[U], Any]]


class JoiningStage(PairedStage[T]):
    """A stage that may be put together with other stages of its pipeline."""

    __slots__ = ()

    # All items of several stages

    def merge(self, *others: LazyStage[T]) -> BatchStage[T]:
        """Return all items of this stage and of others, in any order; `a + b` keeps the order."""
        return self._united("merge", others)

    def union(self, *others: LazyStage[T]) -> BatchStage[T]:
        """Return all items of this stage and of others, in any order, as `merge`."""
        return self._united("union", others)

    def __add__(self, other: LazyStage[T]) -> BatchStage[T]:
        """Return the items of this stage followed by those of `other`."""
        if not isinstance(other, LazyStage):
            return NotImplemented
        self._check_same_pipeline(other, "concat")
        return self._made("concat", self._stream() + other._stream(), other)

    def _united(self, kind: str, others: Sequence[LazyStage[T]]) -> BatchStage[Any]:
        parts = (self, *self._others(others, kind))
        node = Union(tuple(each._record.node for each in parts), kind, where=call_site())
        return self._added(StageRecord(kind, node, tuple(each._record for each in parts), node.where))

    # By key

    @overload
    def join(
        self: StageOf[tuple[K, V]], other: StageOf[tuple[K, W]], on: None = None, how: Literal["inner"] = "inner"
    ) -> BatchStage[Entry[K, tuple[V, W]]]: ...

    @overload
    def join(
        self: StageOf[tuple[K, V]], other: StageOf[tuple[K, W]], on: None = None, *, how: Literal["left"]
    ) -> BatchStage[Entry[K, tuple[V, W | None]]]: ...

    @overload
    def join(
        self: StageOf[tuple[K, V]], other: StageOf[tuple[K, W]], on: None = None, *, how: Literal["right"]
    ) -> BatchStage[Entry[K, tuple[V | None, W]]]: ...

    @overload
    def join(
        self: StageOf[tuple[K, V]], other: StageOf[tuple[K, W]], on: None = None, *, how: Literal["full"]
    ) -> BatchStage[Entry[K, tuple[V | None, W | None]]]: ...

    @overload
    def join(
        self, other: LazyStage[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["inner"] = "inner"
    ) -> BatchStage[Entry[K, tuple[T, U]]]: ...

    @overload
    def join(
        self, other: LazyStage[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["left"]
    ) -> BatchStage[Entry[K, tuple[T, U | None]]]: ...

    @overload
    def join(
        self, other: LazyStage[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["right"]
    ) -> BatchStage[Entry[K, tuple[T | None, U]]]: ...

    @overload
    def join(
        self, other: LazyStage[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["full"]
    ) -> BatchStage[Entry[K, tuple[T | None, U | None]]]: ...

    @overload
    def join(
        self, other: LazyStage[U], on: Callable[[T | U], K], how: Literal["inner"] = "inner"
    ) -> BatchStage[Entry[K, tuple[T, U]]]: ...

    @overload
    def join(
        self, other: LazyStage[U], on: Callable[[T | U], K], how: Literal["left"]
    ) -> BatchStage[Entry[K, tuple[T, U | None]]]: ...

    @overload
    def join(
        self, other: LazyStage[U], on: Callable[[T | U], K], how: Literal["right"]
    ) -> BatchStage[Entry[K, tuple[T | None, U]]]: ...

    @overload
    def join(
        self, other: LazyStage[U], on: Callable[[T | U], K], how: Literal["full"]
    ) -> BatchStage[Entry[K, tuple[T | None, U | None]]]: ...

    def join(self, other: Any, on: On = None, how: How = "inner") -> BatchStage[Any]:
        """Pair each item with each item of `other` that has an equal key: `Entry(key, (left, right))`.

        A small side travels to the tasks of the other one, otherwise one shuffle brings equal keys together. The result
        has no order.

        Args:
            other: another stage of this pipeline.
            on: None if both give entries, which are joined by their keys, with their values; else the key function of
                both sides, or one for each: `(of_left, of_right)`.
            how: `"inner"`; `"left"`, `"right"` or `"full"` also keep the items of the left, the right or both sides
                that match nothing, with None for what is missing.

        Raises:
            IllegalStateError: `other` belongs to another pipeline.
        """
        stage = self._other(other, "join")
        stream: Any = self._stream()  # Which of its overloads is meant, only the caller of this one knows.
        return self._made("join", stream.join(stage._stream(), on, how), stage)

    @overload
    def cogroup(
        self: StageOf[tuple[K, V]], other: StageOf[tuple[K, W]], on: None = None
    ) -> BatchStage[Entry[K, tuple[list[V], list[W]]]]: ...

    @overload
    def cogroup(
        self, other: LazyStage[U], on: tuple[Callable[[T], K], Callable[[U], K]]
    ) -> BatchStage[Entry[K, tuple[list[T], list[U]]]]: ...

    @overload
    def cogroup(
        self, other: LazyStage[U], on: Callable[[T | U], K]
    ) -> BatchStage[Entry[K, tuple[list[T], list[U]]]]: ...

    def cogroup(self, other: Any, on: On = None) -> BatchStage[Any]:
        """Give each key with the items of both stages that have it: `Entry(key, (lefts, rights))`.

        All items of a key must fit into the memory of one task.

        Args:
            other: another stage of this pipeline.
            on: as for `join`.

        Raises:
            IllegalStateError: `other` belongs to another pipeline.
        """
        stage = self._other(other, "cogroup")
        stream: Any = self._stream()
        return self._made("cogroup", stream.cogroup(stage._stream(), on), stage)

    # Joined with what every task holds

    @overload
    def hash_join(
        self, right: LazyStage[U], on: Keys[T, U], *, broadcast_limit: int | None = None
    ) -> BatchStage[tuple[T, U | None]]: ...

    @overload
    def hash_join(
        self, right: LazyStage[U], on: Keys[T, U], to: Callable[[T, U | None], R], *, broadcast_limit: int | None = None
    ) -> BatchStage[R]: ...

    @overload
    def hash_join(
        self, right: StageOf[tuple[Any, V]], on: EntriesClause[Any, T], *, broadcast_limit: int | None = None
    ) -> BatchStage[tuple[T, V | None]]: ...

    @overload
    def hash_join(
        self,
        right: StageOf[tuple[Any, V]],
        on: EntriesClause[Any, T],
        to: Callable[[T, V | None], R],
        *,
        broadcast_limit: int | None = None,
    ) -> BatchStage[R]: ...

    @overload
    def hash_join(
        self, right: LazyStage[U], on: JoinClause[Any, T, U, V], *, broadcast_limit: int | None = None
    ) -> BatchStage[tuple[T, V | None]]: ...

    @overload
    def hash_join(
        self,
        right: LazyStage[U],
        on: JoinClause[Any, T, U, V],
        to: Callable[[T, V | None], R],
        *,
        broadcast_limit: int | None = None,
    ) -> BatchStage[R]: ...

    def hash_join(
        self,
        right: Any,
        on: Any,
        to: Callable[[Any, Any], Any] | None = None,
        *,
        broadcast_limit: int | None = None,
    ) -> BatchStage[Any]:
        """Pair each item with each item of `right` that has its key, or with None: `(item, match)`.

        The right side is read first, and sent to every task; the items of this stage stay where they are and keep
        their order. Several matches come in the order of the right side; a match that is None is a match. What is too
        large to be sent is joined by `join`, which shuffles both sides.

        Args:
            right: another stage of this pipeline, whose items end.
            on: the key functions of both sides, `(of_item, of_right)`, or a `JoinClause`.
            to: makes an item of a pair: `to(item, match)`; unset, the pair goes on.
            broadcast_limit: how many bytes the right side may have; unset, what the context says.

        Raises:
            IllegalStateError: `right` belongs to another pipeline.
        """
        return self._hash_joined("hash_join", [(right, on)], to, broadcast_limit)

    @overload
    def inner_hash_join(
        self, right: LazyStage[U], on: Keys[T, U], *, broadcast_limit: int | None = None
    ) -> BatchStage[tuple[T, U]]: ...

    @overload
    def inner_hash_join(
        self, right: LazyStage[U], on: Keys[T, U], to: Callable[[T, U], R], *, broadcast_limit: int | None = None
    ) -> BatchStage[R]: ...

    @overload
    def inner_hash_join(
        self, right: StageOf[tuple[Any, V]], on: EntriesClause[Any, T], *, broadcast_limit: int | None = None
    ) -> BatchStage[tuple[T, V]]: ...

    @overload
    def inner_hash_join(
        self,
        right: StageOf[tuple[Any, V]],
        on: EntriesClause[Any, T],
        to: Callable[[T, V], R],
        *,
        broadcast_limit: int | None = None,
    ) -> BatchStage[R]: ...

    @overload
    def inner_hash_join(
        self, right: LazyStage[U], on: JoinClause[Any, T, U, V], *, broadcast_limit: int | None = None
    ) -> BatchStage[tuple[T, V]]: ...

    @overload
    def inner_hash_join(
        self,
        right: LazyStage[U],
        on: JoinClause[Any, T, U, V],
        to: Callable[[T, V], R],
        *,
        broadcast_limit: int | None = None,
    ) -> BatchStage[R]: ...

    def inner_hash_join(
        self,
        right: Any,
        on: Any,
        to: Callable[[Any, Any], Any] | None = None,
        *,
        broadcast_limit: int | None = None,
    ) -> BatchStage[Any]:
        """Pair each item with each item of `right` that has its key; leave out items that match nothing.

        Otherwise as `hash_join`.
        """
        return self._hash_joined("inner_hash_join", [(right, on)], to, broadcast_limit)

    @overload
    def hash_join_all(
        self, joins: Sequence[tuple[LazyStage[Any], Any]], *, broadcast_limit: int | None = None
    ) -> BatchStage[tuple[Any, ...]]: ...

    @overload
    def hash_join_all(
        self,
        joins: Sequence[tuple[LazyStage[Any], Any]],
        to: Callable[..., R],
        *,
        broadcast_limit: int | None = None,
    ) -> BatchStage[R]: ...

    def hash_join_all(
        self,
        joins: Sequence[tuple[LazyStage[Any], Any]],
        to: Callable[..., Any] | None = None,
        *,
        broadcast_limit: int | None = None,
    ) -> BatchStage[Any]:
        """Put the matches of several stages beside each item: `(item, match_0, match_1, ...)`.

        Where several items of a stage match, each goes with each of the others: the product. None stands where nothing
        matches. Otherwise as `hash_join`.

        Args:
            joins: for each right side the stage and what `hash_join` takes for `on`.
            to: makes an item of it: `to(item, match_0, match_1, ...)`; unset, the tuple goes on.
            broadcast_limit: how many bytes each right side may have; unset, what the context says.

        Raises:
            IllegalStateError: a stage belongs to another pipeline.
            ValueError: `joins` is empty.
        """
        return self._hash_joined("hash_join_all", pairs_of(joins), to, broadcast_limit)

    def _hash_joined(
        self, kind: str, joins: Sequence[tuple[Any, Any]], to: Any, broadcast_limit: int | None
    ) -> BatchStage[Any]:
        rights = self._others([right for right, _ in joins], kind)
        sides = [(right._record.node, on) for right, (_, on) in zip(rights, joins, strict=True)]
        return self._step(kind, hash_joined(self._record.node, kind, sides, to, broadcast_limit), rights)
