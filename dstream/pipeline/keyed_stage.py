"""`KeyedStage`: the items of a stage, looked at by their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

import collectors
from dstream.pipeline.any_stage import AnyStage
from dstream.pipeline.rolling import EmptyContainer, ResultSoFarOfKey
from dstream.pipeline.stage_arguments import needs_time, operation_of, refuse_time
from dstream.pipeline.stage_view import StageView
from dstream.plan import Node, call_site, shown_function
from dstream.plan.nodes_of_stages import Action, Stateful
from dstream.spi import AggregateOperation, Collector
from dstream.spi.processor_suppliers import AnySupplier
from dstream.stream.aggregating import aggregated
from dstream.stream.stream_arguments import count, function, optional_function, running
from dstream.values import Entry

if TYPE_CHECKING:
    from dstream.pipeline.batch_stage import BatchStage

__all__ = ["KeyedStage"]

K = TypeVar("K")
T = TypeVar("T")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
R = TypeVar("R")
S = TypeVar("S")
U = TypeVar("U")


class KeyedStage(StageView, Generic[K, T]):
    """What `stage.grouping_key(fn)` returns: what it offers happens to the items of each key on their own.

    It is no stage: it has no name, and nothing runs for it. Results by key have no order.
    """

    __slots__ = ("_key",)

    def __init__(self, stage: Any, key: Callable[[T], K]) -> None:
        super().__init__(stage)
        self._key = key

    @property
    def key(self) -> Callable[[T], K]:
        """Gives the key of an item."""
        return self._key

    # Aggregates

    @overload  # A type checker looks into the lambdas of a collector only where it expects one.
    def aggregate(self, op: Collector[T, Any, R]) -> BatchStage[Entry[K, R]]: ...

    @overload
    def aggregate(self, op: Collector[T, Any, R], to: Callable[[K, R], U]) -> BatchStage[U]: ...

    @overload
    def aggregate(self, op: AggregateOperation[tuple[T], Any, R]) -> BatchStage[Entry[K, R]]: ...

    @overload
    def aggregate(self, op: AggregateOperation[tuple[T], Any, R], to: Callable[[K, R], U]) -> BatchStage[U]: ...

    def aggregate(
        self, op: AggregateOperation[Any, Any, Any], to: Callable[[Any, Any], Any] | None = None
    ) -> BatchStage[Any]:
        """Reduce the items of each key to one: `Entry(key, result)`, or `to(key, result)`.

        Partitions accumulate on their own, and containers of equal keys are combined in encounter order, after one
        shuffle of them. Of no items nothing comes.

        Args:
            op: a collector, or an aggregate operation of one input.
            to: makes what goes on of a key and its result.

        Raises:
            TypeError: `op` is no operation, or has several inputs.
            UnstableKeyError: later, where a key has no hash, or one that comes from its identity.
        """
        return self._aggregated("aggregate", (), op, to)

    @overload
    def co_aggregate(
        self, other0: KeyedStage[K, T2], /, *, op: AggregateOperation[tuple[T, T2], Any, R]
    ) -> BatchStage[Entry[K, R]]: ...

    @overload
    def co_aggregate(
        self,
        other0: KeyedStage[K, T2],
        /,
        *,
        op: AggregateOperation[tuple[T, T2], Any, R],
        to: Callable[[K, R], U],
    ) -> BatchStage[U]: ...

    @overload
    def co_aggregate(
        self,
        other0: KeyedStage[K, T2],
        other1: KeyedStage[K, T3],
        /,
        *,
        op: AggregateOperation[tuple[T, T2, T3], Any, R],
    ) -> BatchStage[Entry[K, R]]: ...

    @overload
    def co_aggregate(
        self,
        other0: KeyedStage[K, T2],
        other1: KeyedStage[K, T3],
        /,
        *,
        op: AggregateOperation[tuple[T, T2, T3], Any, R],
        to: Callable[[K, R], U],
    ) -> BatchStage[U]: ...

    @overload
    def co_aggregate(
        self,
        other0: KeyedStage[K, T2],
        other1: KeyedStage[K, T3],
        other2: KeyedStage[K, T4],
        /,
        *,
        op: AggregateOperation[tuple[T, T2, T3, T4], Any, R],
    ) -> BatchStage[Entry[K, R]]: ...

    @overload
    def co_aggregate(
        self,
        other0: KeyedStage[K, T2],
        other1: KeyedStage[K, T3],
        other2: KeyedStage[K, T4],
        /,
        *,
        op: AggregateOperation[tuple[T, T2, T3, T4], Any, R],
        to: Callable[[K, R], U],
    ) -> BatchStage[U]: ...

    @overload
    def co_aggregate(
        self, *others: KeyedStage[K, Any], op: AggregateOperation[tuple[Any, ...], Any, R]
    ) -> BatchStage[Entry[K, R]]: ...

    @overload
    def co_aggregate(
        self, *others: KeyedStage[K, Any], op: AggregateOperation[tuple[Any, ...], Any, R], to: Callable[[K, R], U]
    ) -> BatchStage[U]: ...

    def co_aggregate(
        self,
        *others: Any,
        op: AggregateOperation[Any, Any, Any],
        to: Callable[[Any, Any], Any] | None = None,
    ) -> BatchStage[Any]:
        """Reduce the items that this stage and others have for each key to one, in a container that all of them share.

        Args:
            others: keyed stages of this pipeline, one for each further input of the operation.
            op: an operation with as many inputs as there are stages, this one first: `co_operation(...)` makes one of
                an operation for each input, `to_bags(n)` gives lists.
            to: makes what goes on of a key and its result; unset, an `Entry`.

        Raises:
            IllegalStateError: a stage belongs to another pipeline.
            TypeError: `op` is no operation, or has another number of inputs.
        """
        return self._aggregated("co_aggregate", others, op, to)

    def top(self, n: int, key: Callable[[T], Any] | None = None) -> BatchStage[Entry[K, list[T]]]:
        """Keep the `n` greatest items of each key, the greatest first, as a list: `Entry(key, items)`.

        Equal ones keep their order.

        Args:
            n: how many.
            key: what is compared; unset, the items themselves.
        """
        most = count(n, "n")
        operation = collectors.top_n(most, optional_function(key, "key"))
        by = "" if key is None else f", key={shown_function(key)}"
        return self._step(
            "top", aggregated([self._node], operation, [self._key], name=self._called("top"), given=f"{most}{by}")
        )

    def distinct(self) -> BatchStage[T]:
        """Keep the first item of each key."""
        made: BatchStage[T] = self._stage.distinct(self._key)
        return made

    @overload
    def rolling_aggregate(self, op: Collector[T, Any, R]) -> BatchStage[Entry[K, R]]: ...

    @overload
    def rolling_aggregate(self, op: AggregateOperation[tuple[T], Any, R]) -> BatchStage[Entry[K, R]]: ...

    def rolling_aggregate(self, op: AggregateOperation[Any, Any, Any]) -> BatchStage[Entry[K, Any]]:
        """Replace each item by the result of all items of its key until and with it: `Entry(key, result)`.

        Items pass in encounter order if they have one, and results stand where their items stood. What was given never
        changes later: a result that shares anything with the container is copied.

        Args:
            op: a collector, or an aggregate operation of one input.

        Raises:
            TypeError: `op` is no operation, or has several inputs.
        """
        rolled = operation_of(op, 1, "rolling_aggregate")
        create, fn = EmptyContainer(rolled), ResultSoFarOfKey(rolled)
        called = (self._called("rolling_aggregate"), repr(rolled))
        node = Stateful(self._node, create, fn, "map", self._key, *called, where=call_site())
        return self._step("rolling_aggregate", node)

    # A state for each key

    def map_stateful(
        self, create: Callable[[], S], fn: Callable[[S, K, T], R], *, ttl: None = None, on_evict: None = None
    ) -> BatchStage[R]:
        """Replace each item by `fn(state, key, item)`, which changes the state of its key in place.

        Items pass in encounter order if they have one, and results stand where their items stood.

        Args:
            create: makes the state of a key.
            fn: takes the state, the key and an item; a None that it gives goes on.
            ttl: for items with timestamps, which `add_timestamps(fn)` gives.
            on_evict: for these, too.

        Raises:
            UnsupportedError: `ttl` or `on_evict` is set.
        """
        refuse_time("map_stateful", ttl=ttl, on_evict=on_evict)
        return self._stateful("map", create, function(fn, "fn"))

    def filter_stateful(
        self, create: Callable[[], S], fn: Callable[[S, K, T], object], *, ttl: None = None, on_evict: None = None
    ) -> BatchStage[T]:
        """Keep the items for which `fn(state, key, item)` is true; otherwise as `map_stateful`."""
        refuse_time("filter_stateful", ttl=ttl, on_evict=on_evict)
        return self._stateful("filter", create, running(fn, "fn"))

    def flat_map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, K, T], Iterable[R] | None],
        *,
        ttl: None = None,
        on_evict: None = None,
    ) -> BatchStage[R]:
        """Replace each item by all that `fn(state, key, item)` gives; otherwise as `map_stateful`."""
        refuse_time("flat_map_stateful", ttl=ttl, on_evict=on_evict)
        return self._stateful("flat_map", create, function(fn, "fn"))

    def custom_transform(self, name: str, supplier: AnySupplier) -> BatchStage[Any]:
        """Let processors of your own make of the items what they like; all items of a key come to one of them.

        Args:
            name: of the stage.
            supplier: as for `custom_transform` of a stage.

        Raises:
            TypeError: an argument is of another kind; later, where an item is None.
            UnstableKeyError: later, where a key has no hash, or one that comes from its identity.
        """
        stage: BatchStage[Any] = self._stage._transformed(name, supplier, self._called("custom_transform"), self._key)
        return stage

    def window(self, window: Any, late_to: Any = None) -> NoReturn:
        """Refuse: items that end have no time.

        Raises:
            UnsupportedError: always.
        """
        raise needs_time("window(...)")

    # How stages are made

    def _aggregated(self, kind: str, others: tuple[Any, ...], op: Any, to: Any) -> BatchStage[Any]:
        stages = [self, *(self._other(each, kind) for each in others)]
        operation = operation_of(op, len(stages), kind)
        given = None if optional_function(to, "to") is None else f"{operation!r}, to={shown_function(to)}"
        nodes, keys = [each._node for each in stages], [each._key for each in stages]
        node = aggregated(nodes, operation, keys, to, name=self._called(kind), given=given)
        return self._step(kind, node, [each._stage for each in stages[1:]])

    def _stateful(self, action: Action, create: Any, fn: Any) -> BatchStage[Any]:
        name = f"{action}_stateful"
        state = (function(create, "create"), fn, action, self._key)
        return self._step(name, Stateful(self._node, *state, self._called(name), where=call_site()))

    def _called(self, name: str) -> str:
        """Return the call of a method as the user wrote it, up to its arguments: with that of this stage before it."""
        return f"grouping_key({shown_function(self._key)}).{name}"

    if TYPE_CHECKING:

        def _step(self, kind: str, node: Node, others: Iterable[AnyStage] = ()) -> BatchStage[Any]: ...

    def _called_by(self) -> str:
        return "a keyed stage takes keyed stages, stage.grouping_key(fn)"

    def __repr__(self) -> str:
        return f"<KeyedStage of {self._stage!r} by {shown_function(self._key)}>"
