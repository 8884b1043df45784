"""`KeyedStreamStage`: the items of a stage without an end, looked at by their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from dstream.pipeline import epoch_steps
from dstream.pipeline.endless_names import not_of_streams
from dstream.pipeline.stage_arguments import operation_of
from dstream.pipeline.stage_view import StageView
from dstream.pipeline.windowed_stage import KeyedWindowedStage
from dstream.plan import shown_function
from dstream.plan.nodes_of_stages import Action
from dstream.spi import AggregateOperation, Collector, Sink
from dstream.spi.processor_suppliers import AnySupplier
from dstream.values import Entry

if TYPE_CHECKING:
    from dstream.pipeline.stream_stage import StreamStage
    from dstream.windows import Window

__all__ = ["KeyedStreamStage"]

K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

Duration: TypeAlias = int | timedelta


class KeyedStreamStage(StageView, Generic[K, T]):
    """What `stage.grouping_key(fn)` returns: what it offers happens to the items of each key on their own.

    It is no stage: it has no name, and nothing runs for it. Items of a key pass in the order of (epoch, partition of
    the source, offset); results of different keys have no order.
    """

    __slots__ = ("_key",)

    def __init__(self, stage: Any, key: Callable[[T], K]) -> None:
        super().__init__(stage)
        self._key = key

    @property
    def key(self) -> Callable[[T], K]:
        """Gives the key of an item."""
        return self._key

    def window(self, window: Window, late_to: Sink[T, Any] | None = None) -> KeyedWindowedStage[K, T]:
        """Look at the items of each key by windows of time, as `stage.window(...).grouping_key(fn)`.

        Args:
            window: as for `window` of the stage.
            late_to: as there.

        Raises:
            IllegalStateError: the items have no timestamps.
            TypeError: an argument is of another kind.
        """
        keyed: KeyedWindowedStage[K, T] = self._stage.window(window, late_to).grouping_key(self._key)
        return keyed

    @overload
    def rolling_aggregate(self, op: Collector[T, Any, R]) -> StreamStage[Entry[K, R]]: ...

    @overload
    def rolling_aggregate(self, op: AggregateOperation[tuple[T], Any, R]) -> StreamStage[Entry[K, R]]: ...

    def rolling_aggregate(self, op: AggregateOperation[Any, Any, Any]) -> StreamStage[Entry[K, Any]]:
        """Replace each item by the result of all items of its key until and with it: `Entry(key, result)`.

        The containers of all keys are kept for as long as the job lives.

        Args:
            op: a collector, or an aggregate operation of one input.

        Raises:
            TypeError: `op` is no operation, or has several inputs.
        """
        operation = operation_of(op, 1, "rolling_aggregate")
        return self._step("rolling_aggregate", epoch_steps.rolling(self._node, self._key, operation))

    def map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, K, T], R],
        *,
        ttl: Duration | None = None,
        on_evict: Callable[[S, K, int], R | None] | None = None,
    ) -> StreamStage[R]:
        """Replace each item by `fn(state, key, item)`, which changes the state of its key in place.

        Args:
            create: makes the state of a key.
            fn: takes the state, the key and an item; a None that it gives goes on.
            ttl: for how long the state of a key lives in event time without an item, in milliseconds or as a timedelta;
                unset, for ever. Items older than the watermark are late then, and dropped.
            on_evict: takes (state, key, watermark) of a state that goes, and may return a last item; None: nothing.
                That has the last instant of the state as its timestamp.
                Where the source has ended, the watermark is the one that the state waited for.

        Raises:
            IllegalStateError: `ttl` is set, and the items have no timestamps.
            TypeError: an argument is of another kind, or `on_evict` stands without `ttl`.
        """
        return self._stateful("map", create, fn, ttl, on_evict)

    def filter_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, K, T], object],
        *,
        ttl: Duration | None = None,
        on_evict: Callable[[S, K, int], T | None] | None = None,
    ) -> StreamStage[T]:
        """Keep the items for which `fn(state, key, item)` is true; otherwise as `map_stateful`."""
        return self._stateful("filter", create, fn, ttl, on_evict)

    def flat_map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, K, T], Iterable[R] | None],
        *,
        ttl: Duration | None = None,
        on_evict: Callable[[S, K, int], Iterable[R] | None] | None = None,
    ) -> StreamStage[R]:
        """Replace each item by all that `fn(state, key, item)` gives; otherwise as `map_stateful`."""
        return self._stateful("flat_map", create, fn, ttl, on_evict)

    def _stateful(self, action: Action, create: Any, fn: Any, ttl: Any, on_evict: Any) -> StreamStage[Any]:
        node = epoch_steps.stateful(self._node, self._key, action, create, fn, ttl, on_evict)
        return self._step(f"{action}_stateful", node)

    def custom_transform(self, name: str, supplier: AnySupplier) -> StreamStage[Any]:
        """Let processors of your own make of the items what they like; all items of a key come to one of them.

        Args:
            name: of the stage.
            supplier: as for `custom_transform` of a stage without an end.

        Raises:
            TypeError: an argument is of another kind; later, where an item is None.
            UnstableKeyError: later, where a key has no hash, or one that comes from its identity.
        """
        called = f"grouping_key({shown_function(self._key)}).custom_transform"
        stage: StreamStage[Any] = self._stage._transformed(name, supplier, called, self._key)
        return stage

    def distinct(self, within: Duration | None = None) -> StreamStage[T]:
        """Keep the first item of each key.

        Args:
            within: keep one again that comes so much later than the one that passed, in milliseconds of event time or
                as a timedelta. Unset, keys are remembered for as long as the job lives.

        Raises:
            IllegalStateError: `within` is set, and the items have no timestamps.
        """
        return self._step("distinct", epoch_steps.distinct(self._node, self._key, within))

    # How stages are made

    if TYPE_CHECKING:

        def _step(self, kind: str, node: Any, others: Iterable[Any] = ()) -> StreamStage[Any]: ...

    def _called_by(self) -> str:
        return "a keyed stage without an end takes such stages, stage.grouping_key(fn)"

    def __repr__(self) -> str:
        return f"<KeyedStreamStage of {self._stage!r} by {shown_function(self._key)}>"

    if not TYPE_CHECKING:  # A type checker would take it for every name.

        def __getattr__(self, name: str) -> Any:
            return not_of_streams(type(self), name)
