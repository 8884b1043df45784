"""`PairedStage`: operations of a bounded stage with another one, by position, membership, key or nearest value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from dstream.pipeline.stages import B, Bounded, Ended, FlowingStage, StageOf
from dstream.plan.operations.pairs import Direction
from dstream.stream.keyed import How
from dstream.stream.pairs import On
from dstream.values import Entry

if TYPE_CHECKING:
    from dstream.pipeline.bounded import BatchStage

__all__ = ["PairedStage"]


T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")
V = TypeVar("V")
W = TypeVar("W")
F = TypeVar("F")


class PairedStage(FlowingStage[T, B]):
    """A stage that may be matched with another one of its pipeline.

    The methods cost what the methods of streams cost. They raise an `IllegalStateError` if the other stage belongs to
    another pipeline.
    """

    __slots__ = ()

    # By position

    def zip(self: Ended[T], other: Ended[U], strict: bool = False) -> BatchStage[tuple[T, U]]:
        """Pair the items at equal positions, up to the end of the shorter side.

        Args:
            other: another stage of this pipeline.
            strict: both sides must have the same length.
        """
        return self._with("zip", other, strict)

    @overload
    def zip_longest(
        self: Ended[T], other: Ended[U], fillvalue: None = None
    ) -> BatchStage[tuple[T | None, U | None]]: ...

    @overload
    def zip_longest(self: Ended[T], other: Ended[U], fillvalue: F) -> BatchStage[tuple[T | F, U | F]]: ...

    def zip_longest(self: Ended[T], other: Any, fillvalue: Any = None) -> Any:
        """Pair the items at equal positions, up to the end of the longer side, with `fillvalue` for missing ones."""
        return self._with("zip_longest", other, fillvalue)

    def interleave(self: Ended[T], other: Ended[U]) -> BatchStage[T | U]:
        """Interleave the items of both sides; after the end of one side, the other one continues."""
        return self._with("interleave", other)

    def cross(self: Ended[T], other: Ended[U], *, broadcast_limit: int | None = None) -> BatchStage[tuple[T, U]]:
        """Pair each item with each one of the other side, in the order of `itertools.product`.

        Args:
            other: another stage of this pipeline, which is sent to every task.
            broadcast_limit: how many bytes it may have; unset, the limit of the context.
        """
        return self._with("cross", other, broadcast_limit=broadcast_limit)

    # By membership

    def intersection(self: Ended[T], other: Ended[T]) -> BatchStage[T]:
        """Keep the items that the other side has too, each once."""
        return self._with("intersection", other)

    def subtract(self: Ended[T], other: Ended[Any]) -> BatchStage[T]:
        """Remove the items that the other side has; duplicates are kept."""
        return self._with("subtract", other)

    @overload
    def semi_join(self: Ended[T], other: StageOf[tuple[Any, Any], Bounded], on: None = None) -> BatchStage[T]: ...

    @overload
    def semi_join(self: Ended[T], other: Ended[U], on: tuple[Callable[[T], K], Callable[[U], K]]) -> BatchStage[T]: ...

    @overload
    def semi_join(self: Ended[T], other: Ended[U], on: Callable[[T | U], Any]) -> BatchStage[T]: ...

    def semi_join(self: Any, other: Any, on: On = None) -> BatchStage[T]:
        """Keep the items whose keys the other side has, each once, however often it has them.

        Args:
            other: another stage of this pipeline.
            on: as for `join`; None: both contain entries.
        """
        found: BatchStage[T] = self._with("semi_join", other, on)
        return found

    @overload
    def anti_join(self: Ended[T], other: StageOf[tuple[Any, Any], Bounded], on: None = None) -> BatchStage[T]: ...

    @overload
    def anti_join(self: Ended[T], other: Ended[U], on: tuple[Callable[[T], K], Callable[[U], K]]) -> BatchStage[T]: ...

    @overload
    def anti_join(self: Ended[T], other: Ended[U], on: Callable[[T | U], Any]) -> BatchStage[T]: ...

    def anti_join(self: Any, other: Any, on: On = None) -> BatchStage[T]:
        """Keep the items whose keys the other side does not have; otherwise as `semi_join`."""
        found: BatchStage[T] = self._with("anti_join", other, on)
        return found

    # By the nearest value

    @overload
    def asof_join(
        self: Ended[T],
        other: Ended[U],
        on: tuple[Callable[[T], Any], Callable[[U], Any]],
        by: tuple[Callable[[T], K], Callable[[U], K]] | Callable[[T | U], Any] | None = None,
        direction: Direction = "backward",
        tolerance: Any = None,
    ) -> BatchStage[tuple[T, U | None]]: ...

    @overload
    def asof_join(
        self: Ended[T],
        other: Ended[U],
        on: Callable[[T | U], Any],
        by: tuple[Callable[[T], K], Callable[[U], K]] | Callable[[T | U], Any] | None = None,
        direction: Direction = "backward",
        tolerance: Any = None,
    ) -> BatchStage[tuple[T, U | None]]: ...

    def asof_join(
        self: Ended[T], other: Any, on: Any, by: Any = None, direction: Direction = "backward", tolerance: Any = None
    ) -> Any:
        """Pair each item with the nearest one of the other side, such as a trade with the last quote: `(left, right)`.

        Args:
            other: another stage of this pipeline.
            on: returns the position of an item, such as its time: a function for both sides, or one for each.
            by: items match only if this returns equal keys.
            direction: `"backward"`, `"forward"` or `"nearest"`.
            tolerance: the greatest distance between the positions.
        """
        return self._with("asof_join", other, on, by, direction, tolerance)

    # By key, and one after the other

    def __add__(self: Ended[T], other: Ended[T]) -> BatchStage[T]:
        """Return the items of this stage followed by those of `other`."""
        if not isinstance(other, PairedStage):
            return NotImplemented
        self._check_same_pipeline(other, "concat")
        return self._made("concat", self._stream() + other._stream(), other)

    @overload
    def join(
        self: StageOf[tuple[K, V], Bounded],
        other: StageOf[tuple[K, W], Bounded],
        on: None = None,
        how: Literal["inner"] = "inner",
    ) -> BatchStage[Entry[K, tuple[V, W]]]: ...

    @overload
    def join(
        self: StageOf[tuple[K, V], Bounded],
        other: StageOf[tuple[K, W], Bounded],
        on: None = None,
        *,
        how: Literal["left"],
    ) -> BatchStage[Entry[K, tuple[V, W | None]]]: ...

    @overload
    def join(
        self: StageOf[tuple[K, V], Bounded],
        other: StageOf[tuple[K, W], Bounded],
        on: None = None,
        *,
        how: Literal["right"],
    ) -> BatchStage[Entry[K, tuple[V | None, W]]]: ...

    @overload
    def join(
        self: StageOf[tuple[K, V], Bounded],
        other: StageOf[tuple[K, W], Bounded],
        on: None = None,
        *,
        how: Literal["full"],
    ) -> BatchStage[Entry[K, tuple[V | None, W | None]]]: ...

    @overload
    def join(
        self: Ended[T], other: Ended[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["inner"] = "inner"
    ) -> BatchStage[Entry[K, tuple[T, U]]]: ...

    @overload
    def join(
        self: Ended[T], other: Ended[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["left"]
    ) -> BatchStage[Entry[K, tuple[T, U | None]]]: ...

    @overload
    def join(
        self: Ended[T], other: Ended[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["right"]
    ) -> BatchStage[Entry[K, tuple[T | None, U]]]: ...

    @overload
    def join(
        self: Ended[T], other: Ended[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["full"]
    ) -> BatchStage[Entry[K, tuple[T | None, U | None]]]: ...

    @overload
    def join(
        self: Ended[T], other: Ended[U], on: Callable[[T | U], K], how: Literal["inner"] = "inner"
    ) -> BatchStage[Entry[K, tuple[T, U]]]: ...

    @overload
    def join(
        self: Ended[T], other: Ended[U], on: Callable[[T | U], K], how: Literal["left"]
    ) -> BatchStage[Entry[K, tuple[T, U | None]]]: ...

    @overload
    def join(
        self: Ended[T], other: Ended[U], on: Callable[[T | U], K], how: Literal["right"]
    ) -> BatchStage[Entry[K, tuple[T | None, U]]]: ...

    @overload
    def join(
        self: Ended[T], other: Ended[U], on: Callable[[T | U], K], how: Literal["full"]
    ) -> BatchStage[Entry[K, tuple[T | None, U | None]]]: ...

    def join(self: Any, other: Any, on: On = None, how: How = "inner") -> BatchStage[Any]:
        """Pair each item with each item of `other` that has an equal key: `Entry(key, (left, right))`.

        A small side travels to the tasks of the other one, otherwise one shuffle brings equal keys together. The result
        has no order.

        Args:
            other: another stage of this pipeline.
            on: None if both contain entries, which are joined by their keys, with their values; else the key function
                of both sides, or one for each: `(of_left, of_right)`.
            how: `"inner"`; `"left"`, `"right"` or `"full"` also keep the unmatched items of the left, the right or both
                sides, with None for what is missing.

        Raises:
            IllegalStateError: `other` belongs to another pipeline.
        """
        found: BatchStage[Any] = self._with("join", other, on, how)
        return found

    @overload
    def cogroup(
        self: StageOf[tuple[K, V], Bounded], other: StageOf[tuple[K, W], Bounded], on: None = None
    ) -> BatchStage[Entry[K, tuple[list[V], list[W]]]]: ...

    @overload
    def cogroup(
        self: Ended[T], other: Ended[U], on: tuple[Callable[[T], K], Callable[[U], K]]
    ) -> BatchStage[Entry[K, tuple[list[T], list[U]]]]: ...

    @overload
    def cogroup(
        self: Ended[T], other: Ended[U], on: Callable[[T | U], K]
    ) -> BatchStage[Entry[K, tuple[list[T], list[U]]]]: ...

    def cogroup(self: Any, other: Any, on: On = None) -> BatchStage[Any]:
        """Group the items of both stages by key: `Entry(key, (lefts, rights))`.

        All items of a key must fit into the memory of one task.

        Args:
            other: another stage of this pipeline.
            on: as for `join`.

        Raises:
            IllegalStateError: `other` belongs to another pipeline.
        """
        found: BatchStage[Any] = self._with("cogroup", other, on)
        return found
