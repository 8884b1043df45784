"""`PairedStage`: what a stage does with another stage by the places of items, by membership, or by what is nearest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from dstream.pipeline.flowing_stage import StageOf
from dstream.pipeline.lazy_stage import LazyStage
from dstream.plan.core_of_pairs import Direction
from dstream.stream.other_side import On

if TYPE_CHECKING:
    from dstream.pipeline.batch_stage import BatchStage

__all__ = ["PairedStage"]

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
