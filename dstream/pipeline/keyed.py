"""`KeyedStage` and `KeyedStreamStage`: operations by key on stages with bounded and unbounded data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar, overload

from dstream import collectors
from dstream.arguments import count, optional_function
from dstream.pipeline import stateful_nodes
from dstream.pipeline.arguments import (
    Operation1,
    Operation2,
    Operation3,
    Operation4,
    OperationN,
    needs_time,
    not_of_streams,
    operation_of,
)
from dstream.pipeline.stages import AnyStage, B, Bounded, StageView, Unbounded
from dstream.pipeline.windows import KeyedWindowedStage
from dstream.plan import Node, shown_function
from dstream.plan.operations.elementwise import Action
from dstream.spi import AggregateOperation, Collector, Sink
from dstream.spi.suppliers import AnySupplier
from dstream.stream.keyed import aggregated
from dstream.values import Entry

if TYPE_CHECKING:
    from dstream.pipeline.bounded import BatchStage, Stage
    from dstream.windows import Window

__all__ = ["KeyedStage", "KeyedStreamStage", "ReducingView", "TimedView"]


K = TypeVar("K")
T = TypeVar("T")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
R = TypeVar("R")
S = TypeVar("S")
U = TypeVar("U")


class KeyedView(StageView, Generic[K, T, B]):
    """The items of a stage by their keys, with the operations that they have whether they end or not."""

    __slots__ = ("_key",)

    def __init__(self, stage: Any, key: Callable[[T], K]) -> None:
        super().__init__(stage)
        self._key = key

    @property
    def key(self) -> Callable[[T], K]:
        """Returns the key of an item."""
        return self._key

    @overload  # A type checker looks into the lambdas of a collector only where it expects one.
    def rolling_aggregate(self, op: Collector[T, Any, R]) -> Stage[Entry[K, R], B]: ...

    @overload
    def rolling_aggregate(self, op: Operation1[T, R]) -> Stage[Entry[K, R], B]: ...

    def rolling_aggregate(self, op: AggregateOperation[Any, Any, Any]) -> Stage[Entry[K, Any], B]:
        """Replace each item by the result of all items of its key until and with it: `Entry(key, result)`.

        Bounded items are aggregated in encounter order if they have one, and results have the order of their items. Of
        unbounded items, the containers of all keys are stored until the job ends. An emitted result never changes
        later: a result that shares anything with the container is copied.

        Args:
            op: a collector, or an aggregate operation of one input.

        Raises:
            TypeError: `op` is no operation, or has several inputs.
        """
        rolling = stateful_nodes.rolling if self._stage._has_no_end else stateful_nodes.bounded_rolling
        operation = operation_of(op, 1, "rolling_aggregate")
        return self._step("rolling_aggregate", rolling(self._node, self._key, operation))

    def map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, K, T], R],
        *,
        ttl: B | None = None,
        on_evict: Callable[[S, K, int], R | None] | None = None,
    ) -> Stage[R, B]:
        """Replace each item by `fn(state, key, item)`, which changes the state of its key in place.

        Bounded items are processed in encounter order if they have one, and results have the order of their items.

        Args:
            create: makes the state of a key.
            fn: takes the state, the key and an item; a None that it returns is emitted.
            ttl: for items with timestamps, which `add_timestamps(fn)` returns: for how long the state of a key is kept
                in event time without an item, in milliseconds or as a timedelta; unset, for ever. Items older than the
                watermark are late then, and dropped.
            on_evict: for these, too: takes (state, key, watermark) of a state that is evicted, and may return a last
                item; None: nothing. That has the last instant of the state as its timestamp. Where the source has
                ended, the watermark is the one that the state waited for.

        Raises:
            IllegalStateError: `ttl` is set, and the items of a source without an end have no timestamps.
            TypeError: an argument is of another kind, or `on_evict` is passed without `ttl`.
            UnsupportedError: `ttl` or `on_evict` is set, and the items end.
        """
        return self._stateful("map", create, fn, ttl, on_evict)

    def filter_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, K, T], object],
        *,
        ttl: B | None = None,
        on_evict: Callable[[S, K, int], T | None] | None = None,
    ) -> Stage[T, B]:
        """Keep the items for which `fn(state, key, item)` is true; otherwise as `map_stateful`."""
        return self._stateful("filter", create, fn, ttl, on_evict)

    def flat_map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, K, T], Iterable[R] | None],
        *,
        ttl: B | None = None,
        on_evict: Callable[[S, K, int], Iterable[R] | None] | None = None,
    ) -> Stage[R, B]:
        """Replace each item by all that `fn(state, key, item)` returns; otherwise as `map_stateful`."""
        return self._stateful("flat_map", create, fn, ttl, on_evict)

    def _stateful(self, action: Action, create: Any, fn: Any, ttl: Any, on_evict: Any) -> Stage[Any, B]:
        stateful = stateful_nodes.stateful if self._stage._has_no_end else stateful_nodes.bounded_stateful
        return self._step(f"{action}_stateful", stateful(self._node, self._key, action, create, fn, ttl, on_evict))

    def custom_transform(self, name: str, supplier: AnySupplier) -> Stage[Any, B]:
        """Replace the items by the output of your own processors; all items of a key are sent to one of them.

        Args:
            name: of the stage.
            supplier: as for `custom_transform` of a stage.

        Raises:
            TypeError: an argument is of another kind; later, where an item is None.
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.
        """
        made: Stage[Any, B] = self._stage._transformed(name, supplier, self._called("custom_transform"), self._key)
        return made

    def _called(self, name: str) -> str:
        """Return the call of a method without its arguments, prefixed with the call of this stage."""
        return f"grouping_key({shown_function(self._key)}).{name}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._stage!r} by {shown_function(self._key)}>"

    if TYPE_CHECKING:

        def _step(self, kind: str, node: Node, others: Iterable[AnyStage] = ()) -> Stage[Any, B]: ...


ByKey: TypeAlias = KeyedView[K, T, Bounded]


class ReducingView(KeyedView[K, T, B]):
    """The items of a stage by their keys, with the operations that only items that end have."""

    __slots__ = ()

    @overload  # A type checker looks into the lambdas of a collector only where it expects one.
    def aggregate(self: ByKey[K, T], op: Collector[T, Any, R]) -> BatchStage[Entry[K, R]]: ...

    @overload
    def aggregate(self: ByKey[K, T], op: Collector[T, Any, R], to: Callable[[K, R], U]) -> BatchStage[U]: ...

    @overload
    def aggregate(self: ByKey[K, T], op: Operation1[T, R]) -> BatchStage[Entry[K, R]]: ...

    @overload
    def aggregate(self: ByKey[K, T], op: Operation1[T, R], to: Callable[[K, R], U]) -> BatchStage[U]: ...

    def aggregate(
        self: ByKey[K, T], op: AggregateOperation[Any, Any, Any], to: Callable[[Any, Any], Any] | None = None
    ) -> BatchStage[Any]:
        """Reduce the items of each key to one: `Entry(key, result)`, or `to(key, result)`.

        Partitions accumulate on their own, and containers of equal keys are combined in encounter order, after one
        shuffle of them. Of no items there is no result.

        Args:
            op: a collector, or an aggregate operation of one input.
            to: makes the output of a key and its result.

        Raises:
            TypeError: `op` is no operation, or has several inputs.
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.
        """
        return _aggregated(self, "aggregate", (), op, to)

    @overload
    def co_aggregate(
        self: ByKey[K, T], other0: ByKey[K, T2], /, *, op: Operation2[T, T2, R]
    ) -> BatchStage[Entry[K, R]]: ...

    @overload
    def co_aggregate(
        self: ByKey[K, T], other0: ByKey[K, T2], /, *, op: Operation2[T, T2, R], to: Callable[[K, R], U]
    ) -> BatchStage[U]: ...

    @overload
    def co_aggregate(
        self: ByKey[K, T], other0: ByKey[K, T2], other1: ByKey[K, T3], /, *, op: Operation3[T, T2, T3, R]
    ) -> BatchStage[Entry[K, R]]: ...

    @overload
    def co_aggregate(
        self: ByKey[K, T],
        other0: ByKey[K, T2],
        other1: ByKey[K, T3],
        /,
        *,
        op: Operation3[T, T2, T3, R],
        to: Callable[[K, R], U],
    ) -> BatchStage[U]: ...

    @overload
    def co_aggregate(
        self: ByKey[K, T],
        other0: ByKey[K, T2],
        other1: ByKey[K, T3],
        other2: ByKey[K, T4],
        /,
        *,
        op: Operation4[T, T2, T3, T4, R],
    ) -> BatchStage[Entry[K, R]]: ...

    @overload
    def co_aggregate(
        self: ByKey[K, T],
        other0: ByKey[K, T2],
        other1: ByKey[K, T3],
        other2: ByKey[K, T4],
        /,
        *,
        op: Operation4[T, T2, T3, T4, R],
        to: Callable[[K, R], U],
    ) -> BatchStage[U]: ...

    @overload
    def co_aggregate(self: ByKey[K, T], *others: ByKey[K, Any], op: OperationN[R]) -> BatchStage[Entry[K, R]]: ...

    @overload
    def co_aggregate(
        self: ByKey[K, T], *others: ByKey[K, Any], op: OperationN[R], to: Callable[[K, R], U]
    ) -> BatchStage[U]: ...

    def co_aggregate(
        self: ByKey[K, T],
        *others: Any,
        op: AggregateOperation[Any, Any, Any],
        to: Callable[[Any, Any], Any] | None = None,
    ) -> BatchStage[Any]:
        """Reduce the items that this stage and others have for each key to one, in a container that all of them share.

        Args:
            others: keyed stages of this pipeline, one for each further input of the operation.
            op: an operation with one input per stage, this one first: `co_operation(...)` makes it from an operation
                per input, `to_bags(n)` returns lists.
            to: makes the output of a key and its result; unset, an `Entry`.

        Raises:
            IllegalStateError: a stage belongs to another pipeline.
            TypeError: `op` is no operation, or has another number of inputs.
        """
        return _aggregated(self, "co_aggregate", others, op, to)

    def top(self: ByKey[K, T], n: int, key: Callable[[T], Any] | None = None) -> BatchStage[Entry[K, list[T]]]:
        """Keep the `n` greatest items of each key, the greatest first, as a list: `Entry(key, items)`.

        Items with equal keys keep their order.

        Args:
            n: the number of items per key.
            key: returns the value that is compared; unset, the items themselves.
        """
        most = count(n, "n")
        operation = collectors.top_n(most, optional_function(key, "key"))
        by = "" if key is None else f", key={shown_function(key)}"
        return self._step(
            "top", aggregated([self._node], operation, [self._key], name=self._called("top"), given=f"{most}{by}")
        )

    def _called_by(self) -> str:
        return "a keyed stage takes keyed stages, stage.grouping_key(fn)"


def _aggregated(view: ByKey[Any, Any], kind: str, others: tuple[Any, ...], op: Any, to: Any) -> BatchStage[Any]:
    views = [view, *(view._other(each, kind) for each in others)]
    operation = operation_of(op, len(views), kind)
    arguments = None if optional_function(to, "to") is None else f"{operation!r}, to={shown_function(to)}"
    nodes, keys = [each._node for each in views], [each._key for each in views]
    node = aggregated(nodes, operation, keys, to, name=view._called(kind), given=arguments)
    return view._step(kind, node, [each._stage for each in views[1:]])


class TimedView(KeyedView[K, T, B]):
    """The items of a stage by their keys, with the operations that only items without an end have."""

    __slots__ = ()

    def window(
        self: KeyedView[K, T, Unbounded], window: Window, late_to: Sink[T, Any] | None = None
    ) -> KeyedWindowedStage[K, T]:
        """Group the items of each key by windows of time, as `stage.window(...).grouping_key(fn)`.

        Args:
            window: as for `window` of the stage.
            late_to: as there.

        Raises:
            IllegalStateError: the items have no timestamps.
            TypeError: an argument is of another kind.
        """
        keyed: KeyedWindowedStage[K, T] = self._stage.window(window, late_to).grouping_key(self._key)
        return keyed

    def distinct(self, within: B | None = None) -> Stage[T, B]:
        """Keep the first item of each key.

        Args:
            within: the time after an emitted item, in milliseconds of event time or as a timedelta, during which items
                of its key are dropped. Unset, keys are stored until the job ends.

        Raises:
            IllegalStateError: `within` is set, and the items have no timestamps.
        """
        # `B` is the type of a duration at this point, which a type checker cannot infer.
        passed: Any = within
        return self._step("distinct", stateful_nodes.distinct(self._node, self._key, passed))

    def _called_by(self) -> str:
        return "a keyed stage without an end takes such stages, stage.grouping_key(fn)"


if TYPE_CHECKING:

    class Keyed(TimedView[K, T, B], ReducingView[K, T, B]):
        """A keyed stage for type checkers, as `Stage` is a stage."""

        __slots__ = ()

    KeyedStage: TypeAlias = Keyed[K, T, Bounded]
    KeyedStreamStage: TypeAlias = Keyed[K, T, Unbounded]
else:

    class KeyedStage(ReducingView[K, T, Bounded]):
        """The view of a stage by keys that `stage.grouping_key(fn)` returns: each method is applied per key.

        It is no stage: it has no name, and nothing runs for it. Results by key have no order.
        """

        __slots__ = ()

        def distinct(self) -> BatchStage[T]:
            """Keep the first item of each key."""
            made: BatchStage[T] = self._stage.distinct(self._key)
            return made

        def window(self, window: Any, late_to: Any = None) -> NoReturn:
            """Refuse: items that end have no time.

            Raises:
                UnsupportedError: always.
            """
            raise needs_time("window(...)")

    class KeyedStreamStage(TimedView[K, T, Unbounded]):
        """The view of a stage by keys that `stage.grouping_key(fn)` returns: each method is applied per key.

        It is no stage: it has no name, and nothing runs for it. Items of a key pass in the order of (epoch, partition
        of the source, offset); results of different keys have no order.
        """

        __slots__ = ()

        def __getattr__(self, name: str) -> Any:
            return not_of_streams(type(self), name)
