"""`WindowedStage` and `KeyedWindowedStage`: operations of a stage by windows of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from dstream.arguments import checked_function
from dstream.pipeline.arguments import Operation1, Operation2, Operation3, OperationN, operation_of
from dstream.pipeline.stages import StageView
from dstream.pipeline.stateful_nodes import windowed
from dstream.plan import shown_function
from dstream.spi import AggregateOperation, Collector, Sink

if TYPE_CHECKING:
    from dstream.pipeline.keyed import KeyedStreamStage
    from dstream.pipeline.unbounded import StreamStage
    from dstream.values.time import KeyedWindowResult, WindowResult
    from dstream.windows import Window

__all__ = ["KeyedWindowedStage", "WindowedStage"]


T = TypeVar("T")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
K = TypeVar("K")
R = TypeVar("R")
U = TypeVar("U")


class _Windowed(StageView):
    """The base of both views by windows: the windows, and the sink of late items."""

    __slots__ = ("_late_to", "_window")

    def __init__(self, stage: Any, window: Window, late_to: Sink[Any, Any] | None) -> None:
        super().__init__(stage)
        self._window = window
        self._late_to = late_to

    @property
    def definition(self) -> Window:
        """The windows, as they were passed."""
        return self._window

    def _aggregated(self, kind: str, others: Sequence[Any], keys: Any, op: Any, to: Any) -> StreamStage[Any]:
        stages = [self._stage, *others]
        operation = operation_of(op, len(stages), kind)
        nodes = [each._record.node for each in stages]
        node = windowed(nodes, self._window, keys, operation, to, call=kind, late_to=self._late_to)
        made: StreamStage[Any] = self._stage._step(kind, node, stages[1:], self._late_to)
        return made


class WindowedStage(_Windowed, Generic[T]):
    """The view of a stage by windows that `stage.window(...)` returns: an aggregate makes a result of each window."""

    __slots__ = ()

    @property
    def stage(self) -> StreamStage[T]:
        """The stage whose items they are."""
        found: StreamStage[T] = self._stage
        return found

    def grouping_key(self, fn: Callable[[T], K]) -> KeyedWindowedStage[K, T]:
        """Group the items of each window by their keys, as `stage.grouping_key(fn).window(...)`."""
        return KeyedWindowedStage(self._stage, checked_function(fn, "fn"), self._window, self._late_to)

    @overload
    def aggregate(self, op: Collector[T, Any, R]) -> StreamStage[WindowResult[R]]: ...

    @overload
    def aggregate(self, op: Collector[T, Any, R], to: Callable[[int, int, R], U]) -> StreamStage[U]: ...

    @overload
    def aggregate(self, op: Operation1[T, R]) -> StreamStage[WindowResult[R]]: ...

    @overload
    def aggregate(self, op: Operation1[T, R], to: Callable[[int, int, R], U]) -> StreamStage[U]: ...

    def aggregate(
        self, op: AggregateOperation[Any, Any, Any], to: Callable[[int, int, Any], Any] | None = None
    ) -> StreamStage[Any]:
        """Reduce the items of each window to one: `WindowResult(start, end, result)`, or `to(start, end, result)`.

        It is passed once the watermark has reached the end of the window; a window without items has no result. Its
        timestamp is the last instant of the window, so that windows over results nest.

        Args:
            op: a collector, or an aggregate operation of one input.
            to: makes the output of a result.

        Raises:
            TypeError: `op` is no operation, has several inputs, or cannot combine what sessions need combined.
        """
        return self._aggregated("aggregate", (), None, op, to)

    @overload
    def co_aggregate(self, other0: StreamStage[T2], /, *, op: Operation2[T, T2, R]) -> StreamStage[WindowResult[R]]: ...

    @overload
    def co_aggregate(
        self, other0: StreamStage[T2], /, *, op: Operation2[T, T2, R], to: Callable[[int, int, R], U]
    ) -> StreamStage[U]: ...

    @overload
    def co_aggregate(
        self, other0: StreamStage[T2], other1: StreamStage[T3], /, *, op: Operation3[T, T2, T3, R]
    ) -> StreamStage[WindowResult[R]]: ...

    @overload
    def co_aggregate(
        self,
        other0: StreamStage[T2],
        other1: StreamStage[T3],
        /,
        *,
        op: Operation3[T, T2, T3, R],
        to: Callable[[int, int, R], U],
    ) -> StreamStage[U]: ...

    @overload
    def co_aggregate(self, *others: StreamStage[Any], op: OperationN[R]) -> StreamStage[WindowResult[R]]: ...

    @overload
    def co_aggregate(
        self, *others: StreamStage[Any], op: OperationN[R], to: Callable[[int, int, R], U]
    ) -> StreamStage[U]: ...

    def co_aggregate(
        self, *others: Any, op: AggregateOperation[Any, Any, Any], to: Callable[[int, int, Any], Any] | None = None
    ) -> StreamStage[Any]:
        """Reduce the items that this stage and others have in each window to one, in a container that all share.

        A window closes when the watermarks of all stages have reached its end.

        Args:
            others: stages of this pipeline with timestamps, one for each further input of the operation.
            op: an operation with one input per stage, this one first.
            to: makes the output of a result; unset, a `WindowResult`.

        Raises:
            IllegalStateError: a stage has no timestamps, or belongs to another pipeline.
            TypeError: `op` is no operation, or has another number of inputs.
        """
        stages = [self._stage._unending(each, "co_aggregate") for each in others]
        return self._aggregated("co_aggregate", stages, None, op, to)

    def __repr__(self) -> str:
        return f"<WindowedStage of {self._stage!r} by {self._window!r}>"


class KeyedWindowedStage(_Windowed, Generic[K, T]):
    """The view of a stage by keys and windows, made in either order: a result for each key and window."""

    __slots__ = ("_key",)

    def __init__(self, stage: Any, key: Callable[[T], K], window: Window, late_to: Sink[Any, Any] | None) -> None:
        super().__init__(stage, window, late_to)
        self._key = key

    @property
    def key(self) -> Callable[[T], K]:
        """Returns the key of an item."""
        return self._key

    @overload
    def aggregate(self, op: Collector[T, Any, R]) -> StreamStage[KeyedWindowResult[K, R]]: ...

    @overload
    def aggregate(self, op: Collector[T, Any, R], to: Callable[[int, int, K, R], U]) -> StreamStage[U]: ...

    @overload
    def aggregate(self, op: Operation1[T, R]) -> StreamStage[KeyedWindowResult[K, R]]: ...

    @overload
    def aggregate(self, op: Operation1[T, R], to: Callable[[int, int, K, R], U]) -> StreamStage[U]: ...

    def aggregate(
        self, op: AggregateOperation[Any, Any, Any], to: Callable[[int, int, Any, Any], Any] | None = None
    ) -> StreamStage[Any]:
        """Reduce the items of each key in each window to one: `KeyedWindowResult(start, end, key, result)`.

        Otherwise as `aggregate` of a stage with windows and without keys; `to` is passed (start, end, key, result).
        """
        return self._aggregated("aggregate", (), [self._key], op, to)

    @overload
    def co_aggregate(
        self, other0: KeyedStreamStage[K, T2], /, *, op: Operation2[T, T2, R]
    ) -> StreamStage[KeyedWindowResult[K, R]]: ...

    @overload
    def co_aggregate(
        self, other0: KeyedStreamStage[K, T2], /, *, op: Operation2[T, T2, R], to: Callable[[int, int, K, R], U]
    ) -> StreamStage[U]: ...

    @overload
    def co_aggregate(
        self, other0: KeyedStreamStage[K, T2], other1: KeyedStreamStage[K, T3], /, *, op: Operation3[T, T2, T3, R]
    ) -> StreamStage[KeyedWindowResult[K, R]]: ...

    @overload
    def co_aggregate(
        self,
        other0: KeyedStreamStage[K, T2],
        other1: KeyedStreamStage[K, T3],
        /,
        *,
        op: Operation3[T, T2, T3, R],
        to: Callable[[int, int, K, R], U],
    ) -> StreamStage[U]: ...

    @overload
    def co_aggregate(
        self, *others: KeyedStreamStage[K, Any], op: OperationN[R]
    ) -> StreamStage[KeyedWindowResult[K, R]]: ...

    @overload
    def co_aggregate(
        self, *others: KeyedStreamStage[K, Any], op: OperationN[R], to: Callable[[int, int, K, R], U]
    ) -> StreamStage[U]: ...

    def co_aggregate(
        self, *others: Any, op: AggregateOperation[Any, Any, Any], to: Callable[[int, int, Any, Any], Any] | None = None
    ) -> StreamStage[Any]:
        """Reduce the items that this stage and others have for each key in each window to one.

        Otherwise as `co_aggregate` of a stage with windows and without keys.

        Args:
            others: keyed stages without an end, `stage.grouping_key(fn)`, one for each further input.
            op: an operation with one input per stage, this one first.
            to: makes the output of a result; unset, a `KeyedWindowResult`.
        """
        from dstream.pipeline.keyed import KeyedStreamStage  # It makes stages of this class.

        this = KeyedStreamStage[K, T](self._stage, self._key)
        keyed = [this._other(each, "co_aggregate") for each in others]
        # The others have no windows: the windows of this stage apply to all.
        keys = [self._key, *(each.key for each in keyed)]
        return self._aggregated("co_aggregate", [each._stage for each in keyed], keys, op, to)

    def __repr__(self) -> str:
        return f"<KeyedWindowedStage of {self._stage!r} by {shown_function(self._key)} and {self._window!r}>"
