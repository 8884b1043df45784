"""`BatchStage`: a stage with bounded data, its aggregates, states and services."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, overload

from dstream.arguments import checked_function
from dstream.pipeline.arguments import needs_time, operation_of, peeked, refuse_time
from dstream.pipeline.epochs import EmptyContainer, ResultSoFar
from dstream.pipeline.operations import LazyStage
from dstream.pipeline.pairs import JoiningStage
from dstream.pipeline.timestamps import check_that_it_runs_in_epochs
from dstream.pipeline.unbounded import StreamStage
from dstream.plan import PartitionBy, call_site
from dstream.plan.stage_nodes import Action, Spread, Stateful
from dstream.spi import AggregateOperation, Collector, OpenedLater, Service
from dstream.spi.epochs import WatermarkPolicy
from dstream.spi.suppliers import AnySupplier
from dstream.stream.arguments import optional_function, running
from dstream.stream.keyed import aggregated
from dstream.stream.services import look_ups

if TYPE_CHECKING:
    from dstream.pipeline.keyed import KeyedStage

__all__ = ["BatchStage", "ReducingStage"]


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
        from dstream.pipeline.keyed import KeyedStage  # It makes stages of this class.

        return KeyedStage(self, checked_function(fn, "fn"))

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
        return self._stateful("map", create, checked_function(fn, "fn"))

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
        return self._stateful("flat_map", create, checked_function(fn, "fn"))

    def _stateful(self, action: Action, create: Any, fn: Any) -> BatchStage[Any]:
        name = f"{action}_stateful"
        node = Stateful(
            self._record.node, checked_function(create, "create"), fn, action, None, name, where=call_site()
        )
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
        return self._using("map", service, checked_function(fn, "fn"))

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
        return self._using("flat_map", service, checked_function(fn, "fn"))

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
        node = look_ups(self._record.node, name, checked_function(key, "key"), checked_function(fn, "fn"), call_site())
        return self._step("map_using_imap", node)


Duration: TypeAlias = int | timedelta


class BatchStage(ReducingStage[T]):
    """Items on their way from a source that ends to a sink: what `pipeline.read_from(source)` returns.

    Each method adds a stage to the pipeline and returns it. Stages fork where several are attached to one: what they
    share is computed once. Nothing runs before the pipeline does, as a job: `ctx.new_job(pipeline)`. A stage has what
    streams have but for the operations that run them and the settings of a run.

    Example:
        >>> from sources import Items
        >>> from reducers import to_ilist
        >>> pipeline = Pipeline()
        >>> numbers = pipeline.read_from(Items([1, 2, 3, 4])).set_name("numbers")
        >>> numbers.filter(lambda n: n % 2 == 0).write_to(to_ilist("even"))
        <SinkStage 'write_to': to_ilist('even')>
        >>> numbers.map(str).write_to(to_ilist("texts")).name
        'write_to-2'
    """

    __slots__ = ()

    def peek(
        self,
        action: Callable[[T], object] | None = None,
        *,
        to_string: Callable[[T], object] | None = None,
        should_log: Callable[[T], object] | None = None,
    ) -> BatchStage[T]:
        """Log each item of this stage at the level INFO, to the logger `dstream.peek.<stage>`.

        A program that has set up no logging prints the lines to stderr.

        The items pass unchanged. It happens in the caller's process, once for each item that passed here, in encounter
        order, at the end of the job.

        Args:
            action: what to do with an item instead of logging it, as for streams.
            to_string: makes the text of an item; unset, `str`.
            should_log: says which items are logged; unset, all.

        Raises:
            TypeError: `action` stands beside one of the others.
        """
        return self._step("peek", peeked(self._record.node, action, to_string, should_log))

    def rebalance(self, key: Callable[[T], Any] | None = None) -> BatchStage[T]:
        """Spread the items over partitions of equal size; with a key, bring equal keys into one partition.

        Without a key the items keep their order. `set_local_parallelism(n)` says how many partitions there are; unset,
        the cores do.

        Args:
            key: gives the key of an item.
        """
        if optional_function(key, "key") is None:
            return self._step("rebalance", Spread(self._record.node, None, where=call_site()))
        return self._step("rebalance", PartitionBy(self._record.node, None, key, "rebalance", where=call_site()))

    def custom_transform(self, name: str, supplier: AnySupplier) -> BatchStage[Any]:
        """Let processors of your own make of the items what they like: the Core API as a step of a pipeline.

        Each item comes to any one of them; `set_local_parallelism(n)` says how many there are; unset, the cores do.
        What they emit has no order.

        Args:
            name: of the stage.
            supplier: a function that makes a `Processor`, such as a class of processors, or what
                `dstream.core.processors` has; or one of the suppliers.

        Raises:
            TypeError: an argument is of another kind; later, where an item is None.

        Example:
            >>> from dstream import Pipeline
            >>> from dstream.core import processors
            >>> from sources import Items
            >>> letters = Pipeline().read_from(Items("ab"))
            >>> letters.custom_transform("upper", processors.map(str.upper)).name
            'upper'
        """
        stage: BatchStage[Any] = self._transformed(name, supplier, "custom_transform")
        return stage

    # Run as a stream

    def add_timestamps(
        self,
        fn: Callable[[T], Any],
        allowed_lag: Duration = 0,
        policy: WatermarkPolicy | None = None,
        idle_timeout: float | timedelta = 60.0,
        drop_before: int | datetime | None = None,
    ) -> StreamStage[T]:
        """Say when each item happened, and run the source as a stream, of one partition that ends.

        At its end all windows close. Otherwise as `add_timestamps` of a stage without an end.

        Args:
            fn: gives the time of an item: milliseconds since 1970, or a datetime with a time zone.
            allowed_lag: how much older than the newest item one may be, in milliseconds or as a timedelta.
            policy: in place of a lag, how far time has come.
            idle_timeout: in seconds; 0: no partition is ever idle.
            drop_before: items of before this time go no further.

        Raises:
            TypeError: an argument is of another kind, or a policy stands beside a lag.
            UnsupportedError: something stands before that does not take one item at a time.
        """
        return self._as_stream().add_timestamps(fn, allowed_lag, policy, idle_timeout, drop_before)

    def to_stream_stage(
        self, *, timestamp: Callable[[T], Any] | None = None, allowed_lag: Duration = 0
    ) -> StreamStage[T]:
        """Run the source as a stream, of one partition that ends: for tests, and for old data that a stream goes on.

        Args:
            timestamp: gives the time of an item, as for `add_timestamps`; unset, items have none.
            allowed_lag: as for `add_timestamps`.

        Raises:
            UnsupportedError: something stands before that does not take one item at a time.
        """
        stream = self._as_stream()
        if timestamp is not None:
            return stream.add_timestamps(timestamp, allowed_lag)
        check_that_it_runs_in_epochs(self._record.node, "to_stream_stage()")
        return stream

    def _as_stream(self) -> StreamStage[T]:
        return StreamStage(self._pipeline, self._record)

    def window(self, window: Any, late_to: Any = None) -> NoReturn:
        """Refuse: items that end have no time; `chunked(n)` makes windows by count.

        Raises:
            UnsupportedError: always.
        """
        raise needs_time("window(...)")
