"""`ReducingStage`: aggregates, states and services on the items of a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from dstream.pipeline.joining_stage import JoiningStage
from dstream.pipeline.lazy_stage import LazyStage
from dstream.pipeline.rolling import EmptyContainer, ResultSoFar
from dstream.pipeline.stage_arguments import operation_of, refuse_time
from dstream.plan import call_site
from dstream.plan.nodes_of_stages import Action, Stateful
from dstream.spi import AggregateOperation, Collector, OpenedLater, Service
from dstream.stream.aggregating import aggregated
from dstream.stream.map_services import look_ups
from dstream.stream.stream_arguments import function, running

if TYPE_CHECKING:
    from dstream.pipeline.batch_stage import BatchStage
    from dstream.pipeline.keyed_stage import KeyedStage

__all__ = ["ReducingStage"]

T = TypeVar("T")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
K = TypeVar("K")
R = TypeVar("R")
S = TypeVar("S")


class ReducingStage(JoiningStage[T]):
    """A stage whose items may be reduced, or seen together with a state or a service."""

    __slots__ = ()

    # Aggregates

    def grouping_key(self, fn: Callable[[T], K]) -> KeyedStage[K, T]:
        """Look at the items by their keys `fn(item)`; what the keyed stage offers happens to each key on its own.

        Keys are equal as in a dict; None is a key, and every NaN is the same key.
        """
        from dstream.pipeline.keyed_stage import KeyedStage  # It makes stages of this class.

        return KeyedStage(self, function(fn, "fn"))

    @overload  # A type checker looks into the lambdas of a collector only where it expects one.
    def aggregate(self, op: Collector[T, Any, R]) -> BatchStage[R]: ...

    @overload
    def aggregate(self, op: AggregateOperation[tuple[T], Any, R]) -> BatchStage[R]: ...

    def aggregate(self, op: AggregateOperation[Any, Any, Any]) -> BatchStage[Any]:
        """Reduce all items to one, which is the result of nothing if there are none.

        Partitions accumulate on their own, and their containers are combined in encounter order. An operation that
        cannot combine takes all items in one task.

        Args:
            op: a collector, or an aggregate operation of one input.

        Raises:
            TypeError: `op` is no operation, or has several inputs.
        """
        return self._step("aggregate", aggregated([self._record.node], operation_of(op, 1, "aggregate")))

    @overload
    def co_aggregate(
        self, other0: LazyStage[T2], /, *, op: AggregateOperation[tuple[T, T2], Any, R]
    ) -> BatchStage[R]: ...

    @overload
    def co_aggregate(
        self, other0: LazyStage[T2], other1: LazyStage[T3], /, *, op: AggregateOperation[tuple[T, T2, T3], Any, R]
    ) -> BatchStage[R]: ...

    @overload
    def co_aggregate(
        self,
        other0: LazyStage[T2],
        other1: LazyStage[T3],
        other2: LazyStage[T4],
        /,
        *,
        op: AggregateOperation[tuple[T, T2, T3, T4], Any, R],
    ) -> BatchStage[R]: ...

    @overload
    def co_aggregate(
        self, *others: LazyStage[Any], op: AggregateOperation[tuple[Any, ...], Any, R]
    ) -> BatchStage[R]: ...

    def co_aggregate(self, *others: Any, op: AggregateOperation[Any, Any, Any]) -> BatchStage[Any]:
        """Reduce all items of this stage and of others to one, in a container that all of them share.

        Args:
            others: stages of this pipeline, one for each further input of the operation.
            op: an operation with as many inputs as there are stages, this one first: `co_operation(...)` makes one of
                an operation for each input.

        Raises:
            IllegalStateError: a stage belongs to another pipeline.
            TypeError: `op` is no operation, or has another number of inputs.
        """
        stages: list[LazyStage[Any]] = [self, *self._others(others, "co_aggregate")]
        operation = operation_of(op, len(stages), "co_aggregate")
        node = aggregated([each._record.node for each in stages], operation, name="co_aggregate")
        return self._step("co_aggregate", node, stages[1:])

    @overload
    def rolling_aggregate(self, op: Collector[T, Any, R]) -> BatchStage[R]: ...

    @overload
    def rolling_aggregate(self, op: AggregateOperation[tuple[T], Any, R]) -> BatchStage[R]: ...

    def rolling_aggregate(self, op: AggregateOperation[Any, Any, Any]) -> BatchStage[Any]:
        """Replace each item by the result of all items until and with it, in encounter order, in one task.

        What was given never changes later: a result that shares anything with the container is copied.

        Args:
            op: a collector, or an aggregate operation of one input.

        Raises:
            TypeError: `op` is no operation, or has several inputs.
        """
        rolled = operation_of(op, 1, "rolling_aggregate")
        create, fn = EmptyContainer(rolled), ResultSoFar(rolled)
        called = ("rolling_aggregate", repr(rolled))
        return self._step(called[0], Stateful(self._record.node, create, fn, "map", None, *called, where=call_site()))

    # A state beside the items

    def map_stateful(
        self, create: Callable[[], S], fn: Callable[[S, T], R], *, ttl: None = None, on_evict: None = None
    ) -> BatchStage[R]:
        """Replace each item by `fn(state, item)`, which changes the state in place; all items pass one task, in order.

        On a keyed stage each key has a state of its own, and keys run in parallel.

        Args:
            create: makes the state.
            fn: takes the state and an item; a None that it gives goes on.
            ttl: for items with timestamps, which `add_timestamps(fn)` gives.
            on_evict: for these, too.

        Raises:
            UnsupportedError: `ttl` or `on_evict` is set.
        """
        refuse_time("map_stateful", ttl=ttl, on_evict=on_evict)
        return self._stateful("map", create, function(fn, "fn"))

    def filter_stateful(
        self, create: Callable[[], S], fn: Callable[[S, T], object], *, ttl: None = None, on_evict: None = None
    ) -> BatchStage[T]:
        """Keep the items for which `fn(state, item)` is true; otherwise as `map_stateful`."""
        refuse_time("filter_stateful", ttl=ttl, on_evict=on_evict)
        return self._stateful("filter", create, running(fn, "fn"))

    def flat_map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, T], Iterable[R] | None],
        *,
        ttl: None = None,
        on_evict: None = None,
    ) -> BatchStage[R]:
        """Replace each item by all that `fn(state, item)` gives; otherwise as `map_stateful`."""
        refuse_time("flat_map_stateful", ttl=ttl, on_evict=on_evict)
        return self._stateful("flat_map", create, function(fn, "fn"))

    def _stateful(self, action: Action, create: Any, fn: Any) -> BatchStage[Any]:
        name = f"{action}_stateful"
        node = Stateful(self._record.node, function(create, "create"), fn, action, None, name, where=call_site())
        return self._step(name, node)

    # A service beside the items

    @overload
    def map_using(self, service: Service[S], fn: Callable[[S, T], R]) -> BatchStage[R]: ...

    @overload
    def map_using(self, service: OpenedLater, fn: Callable[[Any, T], R]) -> BatchStage[R]: ...

    def map_using(self, service: Service[Any] | OpenedLater, fn: Callable[[Any, T], Any]) -> BatchStage[Any]:
        """Replace each item by `fn(service, item)`.

        Args:
            service: made on the workers, once for each process or task, and destroyed at its end.
            fn: takes what the service made, and an item.

        Raises:
            TypeError: `service` is no `Service`.
        """
        return self._using("map", service, function(fn, "fn"))

    @overload
    def filter_using(self, service: Service[S], fn: Callable[[S, T], object]) -> BatchStage[T]: ...

    @overload
    def filter_using(self, service: OpenedLater, fn: Callable[[Any, T], object]) -> BatchStage[T]: ...

    def filter_using(self, service: Service[Any] | OpenedLater, fn: Callable[[Any, T], object]) -> BatchStage[T]:
        """Keep the items for which `fn(service, item)` is true; otherwise as `map_using`."""
        return self._using("filter", service, running(fn, "fn"))

    @overload
    def flat_map_using(self, service: Service[S], fn: Callable[[S, T], Iterable[R] | None]) -> BatchStage[R]: ...

    @overload
    def flat_map_using(self, service: OpenedLater, fn: Callable[[Any, T], Iterable[R] | None]) -> BatchStage[R]: ...

    def flat_map_using(
        self, service: Service[Any] | OpenedLater, fn: Callable[[Any, T], Iterable[Any] | None]
    ) -> BatchStage[Any]:
        """Replace each item by all that `fn(service, item)` gives; otherwise as `map_using`."""
        return self._using("flat_map", service, function(fn, "fn"))

    def map_using_imap(self, name: str, key: Callable[[T], Any], fn: Callable[[T, Any], R]) -> BatchStage[R]:
        """Replace each item by `fn(item, value)`, the value that a map has for `key(item)`, or None.

        Values are read for some hundred items at a time; the items keep their order.

        Args:
            name: that of the map, in the storage of the context that runs the job.
            key: gives the key of an item; None is a key that is never there.
            fn: takes the item, and the value or None.

        Raises:
            TypeError: an argument is of another kind.
            ValueError: `name` is empty.
        """
        node = look_ups(self._record.node, name, function(key, "key"), function(fn, "fn"), call_site())
        return self._step("map_using_imap", node)
