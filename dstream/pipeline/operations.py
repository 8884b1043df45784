"""`LazyStage`: the operations of a stage that take one item at a time, whether its items end or not.

A stage makes a stream's nodes: each method calls the method of a stream without a context and takes its node, so that
checks, labels and semantics are defined once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, TypeVarTuple, overload

from dstream.arguments import checked_function, hinting, optional_function, running_function
from dstream.errors import UnsupportedError
from dstream.gatherers.concurrency import map_concurrent
from dstream.pipeline import stateful_nodes
from dstream.pipeline.arguments import operation_of, peeked
from dstream.pipeline.stages import B, Ended, FlowingStage, StageOf, as_of_streams
from dstream.pipeline.timestamps import stamped
from dstream.plan import PartitionBy, call_site, called, here, shown_function
from dstream.plan.operations.elementwise import Action
from dstream.plan.operations.streams import Spread
from dstream.spi import AggregateOperation, Calling, Collector, Gatherer, OpenedLater, Reducer, Service
from dstream.spi.epochs import WatermarkPolicy
from dstream.spi.suppliers import AnySupplier
from dstream.stream.services import look_ups
from dstream.values import DeadLetter, Entry

if TYPE_CHECKING:
    from dstream.gatherers import Retry
    from dstream.pipeline.bounded import BatchStage, Stage
    from dstream.pipeline.keyed import Keyed
    from dstream.pipeline.unbounded import StreamStage

__all__ = ["LazyStage"]


T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")
V = TypeVar("V")
R = TypeVar("R")
S = TypeVar("S")
E = TypeVar("E", bound=Exception)
Ts = TypeVarTuple("Ts")

Duration: TypeAlias = int | timedelta


class LazyStage(FlowingStage[T, B]):
    """A stage with the operations that items have whether they end or not."""

    __slots__ = ()

    # One item at a time

    def map(self, fn: Callable[[T], U]) -> Stage[U, B]:
        """Replace each item by `fn(item)`; a None result is kept."""
        return self._made("map", self._stream().map(fn))

    def map_to_obj(self, fn: Callable[[T], U]) -> Stage[U, B]:
        """Replace each item by `fn(item)`, as `map`."""
        return self._made("map_to_obj", self._stream().map_to_obj(fn))

    def map_to_int(self, fn: Callable[[T], int]) -> Stage[int, B]:
        """Replace each item by the int `fn(item)`; anything else is a `TypeError` that names it."""
        return self._made("map_to_int", self._stream().map_to_int(fn))

    def map_to_long(self, fn: Callable[[T], int]) -> Stage[int, B]:
        """Replace each item by the int `fn(item)`; anything else is a `TypeError` that names it."""
        return self._made("map_to_long", self._stream().map_to_long(fn))

    def map_to_double(self, fn: Callable[[T], float]) -> Stage[float, B]:
        """Replace each item by the float of the number `fn(item)`; anything else is a `TypeError` that names it."""
        return self._made("map_to_double", self._stream().map_to_double(fn))

    def filter(self, predicate: Callable[[T], object]) -> Stage[T, B]:
        """Keep the items that satisfy `predicate`."""
        return self._made("filter", self._stream().filter(predicate))

    def flat_map(self, fn: Callable[[T], Iterable[U] | None]) -> Stage[U, B]:
        """Replace each item by the items of `fn(item)`: any iterable or stream; None is an empty one."""
        return self._made("flat_map", self._stream().flat_map(fn))

    def flat_map_to_int(self, fn: Callable[[T], Iterable[int] | None]) -> Stage[int, B]:
        """Replace each item by the ints of `fn(item)`."""
        return self._made("flat_map_to_int", self._stream().flat_map_to_int(fn))

    def flat_map_to_long(self, fn: Callable[[T], Iterable[int] | None]) -> Stage[int, B]:
        """Replace each item by the ints of `fn(item)`."""
        return self._made("flat_map_to_long", self._stream().flat_map_to_long(fn))

    def flat_map_to_double(self, fn: Callable[[T], Iterable[float] | None]) -> Stage[float, B]:
        """Replace each item by the numbers of `fn(item)`, as floats."""
        return self._made("flat_map_to_double", self._stream().flat_map_to_double(fn))

    @overload
    def map_multi(self, fn: Callable[[T, Callable[[U], None]], object]) -> Stage[U, B]: ...

    @overload  # For lambdas: no type checker infers what they emit.
    def map_multi(self, fn: Callable[[T, Callable[[Any], None]], object]) -> Stage[Any, B]: ...

    def map_multi(self, fn: Callable[[T, Callable[[Any], None]], object]) -> Stage[Any, B]:
        """Replace each item by those that `fn(item, emit)` passes to `emit`, from none to many."""
        return self._made("map_multi", self._stream().map_multi(fn))

    def map_multi_to_int(self, fn: Callable[[T, Callable[[int], None]], object]) -> Stage[int, B]:
        """Replace each item by the ints that `fn(item, emit)` emits."""
        return self._made("map_multi_to_int", self._stream().map_multi_to_int(fn))

    def map_multi_to_long(self, fn: Callable[[T, Callable[[int], None]], object]) -> Stage[int, B]:
        """Replace each item by the ints that `fn(item, emit)` emits."""
        return self._made("map_multi_to_long", self._stream().map_multi_to_long(fn))

    def map_multi_to_double(self, fn: Callable[[T, Callable[[float], None]], object]) -> Stage[float, B]:
        """Replace each item by the numbers that `fn(item, emit)` emits, as floats."""
        return self._made("map_multi_to_double", self._stream().map_multi_to_double(fn))

    def flatten(self: StageOf[Iterable[U] | None, B]) -> Stage[U, B]:
        """Replace each item, any iterable or stream, by its items; None is an empty one."""
        return as_of_streams(self, "flatten")

    def pluck(self, name: str | int) -> Stage[Any, B]:
        """Replace each item by one part of it.

        That is `item[name]` of a mapping, `item[name]` of anything else for an int, and the attribute for a str.
        """
        return self._made("pluck", self._stream().pluck(name))

    def starmap(self: StageOf[tuple[*Ts], B], fn: Callable[[*Ts], R]) -> Stage[R, B]:
        """Replace each item by `fn(*item)`."""
        return as_of_streams(self, "starmap", fn)

    def key_by(self, fn: Callable[[T], K]) -> Stage[Entry[K, T], B]:
        """Replace each item by `Entry(fn(item), item)`; `grouping_key` groups them."""
        return self._made("key_by", self._stream().key_by(fn))

    @overload
    def map_concurrent(
        self,
        n: int,
        fn: Callable[[T], Awaitable[R]],
        *,
        rate: float | None = None,
        retry: int | Retry = 0,
        cache: bool = False,
    ) -> Stage[R, B]: ...

    @overload
    def map_concurrent(
        self, n: int, fn: Callable[[T], R], *, rate: float | None = None, retry: int | Retry = 0, cache: bool = False
    ) -> Stage[R, B]: ...

    def map_concurrent(
        self, n: int, fn: Callable[[T], Any], *, rate: float | None = None, retry: int | Retry = 0, cache: bool = False
    ) -> Stage[Any, B]:
        """Replace each item by `fn(item)`, with up to `n` calls in flight in each task; the order is preserved.

        The same as `gather(map_concurrent(n, fn, ...))`, which also defines how failed items are handled. Tasks
        share a rate and a cache by moving items, so neither can be combined with timestamps and states.

        Args:
            n: how many calls may be in flight in one task.
            fn: a plain function, which runs in threads, or an async one.
            rate: how many calls a second the whole job may make at most.
            retry: how often a call that failed is made again; or a `Retry`.
            cache: equal items are called once in the whole job; of items without an end, once in an epoch.
        """
        gatherer = map_concurrent(n, fn, rate=rate, retry=retry, cache=cache)
        return self._made("map_concurrent", self._stream().gather(gatherer))

    # Entries

    def keys(self: StageOf[tuple[K, Any], B]) -> Stage[K, B]:
        """Replace each entry by its key; moves nothing between tasks."""
        return as_of_streams(self, "keys")

    def values(self: StageOf[tuple[Any, V], B]) -> Stage[V, B]:
        """Replace each entry by its value; moves nothing between tasks."""
        return as_of_streams(self, "values")

    def swap(self: StageOf[tuple[K, V], B]) -> Stage[Entry[V, K], B]:
        """Replace each entry by one with key and value exchanged; moves nothing between tasks."""
        return as_of_streams(self, "swap")

    def map_values(self: StageOf[tuple[K, V], B], fn: Callable[[V], R]) -> Stage[Entry[K, R], B]:
        """Replace the value of each entry by `fn(value)`; the key does not change. Moves nothing between tasks."""
        return as_of_streams(self, "map_values", fn)

    def filter_values(self: StageOf[tuple[K, V], B], predicate: Callable[[V], object]) -> Stage[Entry[K, V], B]:
        """Keep the entries whose values satisfy `predicate`; moves nothing between tasks."""
        return as_of_streams(self, "filter_values", predicate)

    def flat_map_values(self: StageOf[tuple[K, V], B], fn: Callable[[V], Iterable[R] | None]) -> Stage[Entry[K, R], B]:
        """Replace each entry by one for each item of `fn(value)`: any iterable or stream, or None for none."""
        return as_of_streams(self, "flat_map_values", fn)

    # Failures

    @hinting(args="ignore((ValueError, TypeError)), with a tuple of exceptions")
    def ignore(self, kinds: type[Exception] | tuple[type[Exception], ...]) -> Stage[T, B]:
        """Leave out the items on which the step before fails with one of these exceptions.

        The step becomes part of this stage. A stage that reads the step without it sees the failures.
        """
        return self._made("ignore", self._stream().ignore(kinds))

    def resolve(self, kinds: type[E] | tuple[type[E], ...], fn: Callable[[Any, E], T]) -> Stage[T, B]:
        """Replace all output of the step before for a failed item by one item, `fn(item, error)`."""
        return self._made("resolve", self._stream().resolve(kinds, fn))

    @hinting(args="on_error((ValueError, TypeError), into=...), with a tuple of exceptions")
    def on_error(
        self, kinds: type[Exception] | tuple[type[Exception], ...], *, into: Reducer[DeadLetter, Any]
    ) -> Stage[T, B]:
        """Send the items on which the step before fails with one of these exceptions to a reducer.

        The reducer gets one `DeadLetter` per failed item at the end of the job, and none if the job fails; in an
        unbounded pipeline, at the end of each epoch.
        """
        return self._made("on_error", self._stream().on_error(kinds, into=into))

    # With a service

    @overload
    def map_using(self, service: Service[S], fn: Callable[[S, T], R]) -> Stage[R, B]: ...

    @overload
    def map_using(self, service: OpenedLater, fn: Callable[[Any, T], R]) -> Stage[R, B]: ...

    def map_using(self, service: Service[Any] | OpenedLater, fn: Callable[[Any, T], Any]) -> Stage[Any, B]:
        """Replace each item by `fn(service, item)`.

        Args:
            service: made on the workers, once for each process or task, and destroyed at its end.
            fn: takes what the service made, and an item.

        Raises:
            TypeError: `service` is no `Service`.
        """
        return self._using("map", service, checked_function(fn, "fn"))

    @overload
    def filter_using(self, service: Service[S], fn: Callable[[S, T], object]) -> Stage[T, B]: ...

    @overload
    def filter_using(self, service: OpenedLater, fn: Callable[[Any, T], object]) -> Stage[T, B]: ...

    def filter_using(self, service: Service[Any] | OpenedLater, fn: Callable[[Any, T], object]) -> Stage[T, B]:
        """Keep the items for which `fn(service, item)` is true; otherwise as `map_using`."""
        return self._using("filter", service, running_function(fn, "fn"))

    @overload
    def flat_map_using(self, service: Service[S], fn: Callable[[S, T], Iterable[R] | None]) -> Stage[R, B]: ...

    @overload
    def flat_map_using(self, service: OpenedLater, fn: Callable[[Any, T], Iterable[R] | None]) -> Stage[R, B]: ...

    def flat_map_using(
        self, service: Service[Any] | OpenedLater, fn: Callable[[Any, T], Iterable[Any] | None]
    ) -> Stage[Any, B]:
        """Replace each item by all that `fn(service, item)` returns; otherwise as `map_using`."""
        return self._using("flat_map", service, checked_function(fn, "fn"))

    def map_using_imap(self, name: str, key: Callable[[T], Any], fn: Callable[[T, Any], R]) -> Stage[R, B]:
        """Replace each item by `fn(item, value)`, the value that a map has for `key(item)`, or None.

        Values are read in batches of some hundred items; the items keep their order.

        Args:
            name: the name of the map, in the storage of the context that runs the job.
            key: returns the key of an item; the map never contains the key None.
            fn: takes the item, and the value or None.

        Raises:
            TypeError: an argument is of another kind.
            ValueError: `name` is empty.
        """
        node = look_ups(self._record.node, name, checked_function(key, "key"), checked_function(fn, "fn"), call_site())
        return self._step("map_using_imap", node)

    def gather(self, gatherer: Gatherer[T, Any, R]) -> Stage[R, B]:
        """Replace the items by the output of `gatherer`, in encounter order: windows by count, `fold`, `scan`.

        Of items without an end it takes `map_concurrent(...)` alone, which makes a call for each item; others remember
        items, as `map_stateful` does.

        Raises:
            UnsupportedError: the items have no end, and it is another one.
        """
        gathered = self._stream().gather(gatherer)  # First, since it checks the argument.
        if self._has_no_end and not isinstance(gatherer.parallel, Calling):
            raise UnsupportedError(
                "gather() of items without an end takes map_concurrent(...) alone: map_stateful(create, fn) keeps a "
                "state beside the items, and window(...) makes groups of them"
            )
        return self._made("gather", gathered)

    # By key, with states

    def grouping_key(self, fn: Callable[[T], K]) -> Keyed[K, T, B]:
        """Group the items by their keys `fn(item)`; the operations of the keyed stage apply to each key on its own.

        Keys are equal as in a dict; None is a key, and every NaN is the same key.
        """
        keyed: Keyed[K, T, B] = type(self)._keyed(self, checked_function(fn, "fn"))
        return keyed

    @overload  # A type checker looks into the lambdas of a collector only where it expects one.
    def rolling_aggregate(self, op: Collector[T, Any, R]) -> Stage[R, B]: ...

    @overload
    def rolling_aggregate(self, op: AggregateOperation[tuple[T], Any, R]) -> Stage[R, B]: ...

    def rolling_aggregate(self, op: AggregateOperation[Any, Any, Any]) -> Stage[Any, B]:
        """Replace each item by the result of all items until and with it, in one task.

        Bounded items are aggregated in encounter order; unbounded items in the order of (epoch, partition of the
        source, offset), since the job began. An emitted result never changes later: a result that shares anything with
        the container is copied.

        Args:
            op: a collector, or an aggregate operation of one input.

        Raises:
            TypeError: `op` is no operation, or has several inputs.
        """
        rolling = stateful_nodes.rolling if self._has_no_end else stateful_nodes.bounded_rolling
        operation = operation_of(op, 1, "rolling_aggregate")
        return self._step("rolling_aggregate", rolling(self._record.node, None, operation))

    def map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, T], R],
        *,
        ttl: B | None = None,
        on_evict: Callable[[S, None, int], R | None] | None = None,
    ) -> Stage[R, B]:
        """Replace each item by `fn(state, item)`, which changes the state in place; all items pass one task, in order.

        On a keyed stage each key has its own state, and keys run in parallel. The state of unbounded items outlives
        epochs and the process of the job.

        Args:
            create: makes the state.
            fn: takes the state and an item; a None that it returns is emitted.
            ttl: for items with timestamps, which `add_timestamps(fn)` returns: for how long a state is kept in event
                time without an item, in milliseconds or as a timedelta; unset, for ever. Items older than the watermark
                are late then, and dropped.
            on_evict: for these, too: takes (state, None, watermark) of a state that is evicted, and may return a last
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
        fn: Callable[[S, T], object],
        *,
        ttl: B | None = None,
        on_evict: Callable[[S, None, int], T | None] | None = None,
    ) -> Stage[T, B]:
        """Keep the items for which `fn(state, item)` is true; otherwise as `map_stateful`."""
        return self._stateful("filter", create, fn, ttl, on_evict)

    def flat_map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, T], Iterable[R] | None],
        *,
        ttl: B | None = None,
        on_evict: Callable[[S, None, int], Iterable[R] | None] | None = None,
    ) -> Stage[R, B]:
        """Replace each item by all that `fn(state, item)` returns; otherwise as `map_stateful`."""
        return self._stateful("flat_map", create, fn, ttl, on_evict)

    def _stateful(self, action: Action, create: Any, fn: Any, ttl: Any, on_evict: Any) -> Stage[Any, B]:
        stateful = stateful_nodes.stateful if self._has_no_end else stateful_nodes.bounded_stateful
        return self._step(f"{action}_stateful", stateful(self._record.node, None, action, create, fn, ttl, on_evict))

    # Partitions, and observers of items

    def peek(
        self,
        action: Callable[[T], object] | None = None,
        *,
        to_string: Callable[[T], object] | None = None,
        should_log: Callable[[T], object] | None = None,
    ) -> Stage[T, B]:
        """Log each item of this stage at the level INFO, to the logger `dstream.peek.<stage>`.

        A program that has set up no logging prints the lines to stderr.

        The items pass unchanged. For bounded items the action runs in the caller's process, once per item, in encounter
        order, at the end of the job. For unbounded items it runs in the process of the job's driver, for the items of
        an epoch when its tasks are done, and again if the epoch is retried.

        Args:
            action: called with an item instead of logging it, as for streams.
            to_string: returns the string of an item; unset, `str`.
            should_log: returns whether an item is logged; unset, all are.

        Raises:
            TypeError: `action` is passed together with one of the others.
        """
        return self._step("peek", peeked(self._record.node, action, to_string, should_log))

    @overload
    def rebalance(self) -> Stage[T, B]: ...

    @overload
    def rebalance(self: Ended[T], key: Callable[[T], Any] | None) -> BatchStage[T]: ...

    def rebalance(self, key: Callable[[T], Any] | None = None) -> Any:
        """Spread the items over partitions of equal size; with a key, bring equal keys into one partition.

        Without a key the items keep their order. `set_local_parallelism(n)` sets the number of partitions; by default
        it is the number of cores.

        Args:
            key: returns the key of an item.
        """
        if optional_function(key, "key") is None:
            return self._step("rebalance", Spread(self._record.node, None, step=here()))
        return self._step(
            "rebalance",
            PartitionBy(self._record.node, None, key, step=called("rebalance", f"key={shown_function(key)}")),
        )

    def custom_transform(self, name: str, supplier: AnySupplier) -> Stage[Any, B]:
        """Replace the items by the output of your own processors: the Core API as a step of a pipeline.

        Each item is sent to any one of the processors; `set_local_parallelism(n)` sets their number; by default it is
        the number of cores. Their output has no order. In an unbounded pipeline the number is fixed when the job
        begins; the processors save their state at the end of each epoch; watermarks arrive between items with
        timestamps, and the output has no timestamps.

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
            >>> letters.to_stream_stage().custom_transform("lower", processors.map(str.lower)).name
            'lower'
        """
        return self._transformed(name, supplier, "custom_transform")

    # Event time

    def add_timestamps(
        self,
        fn: Callable[[T], Any],
        allowed_lag: Duration = 0,
        policy: WatermarkPolicy | None = None,
        idle_timeout: float | timedelta = 60.0,
        drop_before: int | datetime | None = None,
    ) -> StreamStage[T]:
        """Assign a timestamp to each item: `fn(item)`, in milliseconds since 1970, or a datetime with a time zone.

        Each partition of the source has a watermark, before which no item is expected any more; windows close when the
        least of these has passed them. Only steps that take one item at a time may precede it. A source that ends is
        run as a stream, of one partition that ends; at its end all windows close.

        Args:
            fn: returns the time of an item.
            allowed_lag: how much older than the newest item of its partition one may be, in milliseconds or as a
                timedelta; older ones are too late for windows that have closed.
            policy: instead of a lag, computes the watermark: one of `dstream.windows`, or one's own, which can be
                pickled.
            idle_timeout: the seconds without an item after which an idle partition no longer holds the watermark back;
                0: it always does.
            drop_before: items with earlier times are dropped, for sources that replay old items: in milliseconds since
                1970, or a datetime with a time zone. Unset, none are dropped.

        Raises:
            IllegalStateError: the items have timestamps.
            TypeError: an argument is of another kind, both a policy and a lag are passed, or the policy cannot be
                pickled.
            UnsupportedError: an upstream step moves items, such as a join.
        """
        node = stamped(self._record.node, fn, allowed_lag, policy, idle_timeout, drop_before)
        return self._as_stream()._step("add_timestamps", node)
