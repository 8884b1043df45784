"""`StreamStage`: a stage of a pipeline with unbounded data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from dstream.arguments import checked_function
from dstream.pipeline import epochs
from dstream.pipeline.arguments import not_of_streams, operation_of, sink_of
from dstream.pipeline.joins import EntriesClause, JoinClause, hash_joined, pairs_of
from dstream.pipeline.keyed import KeyedStreamStage
from dstream.pipeline.stages import FlowingStage, StageOf
from dstream.pipeline.steps import StreamSteps
from dstream.pipeline.timestamps import (
    check_that_it_runs_in_epochs,
    check_timestamps,
    ingested,
    natively_stamped,
    stamped,
)
from dstream.pipeline.windows import WindowedStage
from dstream.plan import Union, call_site
from dstream.plan.stage_nodes import Action
from dstream.spi import AggregateOperation, Collector, Sink
from dstream.spi.epochs import WatermarkPolicy
from dstream.spi.suppliers import AnySupplier
from dstream.stream.arguments import window_of

if TYPE_CHECKING:
    from dstream.pipeline.operations import LazyStage
    from dstream.windows import Window

__all__ = ["StreamStage"]


T = TypeVar("T")
K = TypeVar("K")
R = TypeVar("R")
S = TypeVar("S")
U = TypeVar("U")
V = TypeVar("V")

Keys: TypeAlias = tuple[Callable[[T], Any], Callable[[U], Any]]
Duration: TypeAlias = int | timedelta
Refreshing: TypeAlias = float | timedelta | None


class StreamStage(StreamSteps[T]):
    """Items without an end on their way to a sink: what `pipeline.read_from(source)` returns for such a source.

    A job of such a pipeline is a sequence of epochs, in each of which the items that have come are run to the sinks.
    Steps that take one item at a time are those of all stages. What needs an end is done in windows, once items have
    timestamps: `add_timestamps(fn).window(tumbling(1000)).aggregate(op)`.

    Example:
        >>> from collectors import counting
        >>> from dstream.windows import tumbling
        >>> from reducers import to_ilist
        >>> from sources import watch_files
        >>> pipeline = Pipeline()
        >>> lines = pipeline.read_from(watch_files("logs")).ingestion_timestamps()
        >>> lines.window(tumbling(1000)).aggregate(counting()).write_to(to_ilist("lines per second"))
        <SinkStage 'write_to': to_ilist('lines per second')>
    """

    __slots__ = ()

    _has_no_end = True

    # Event time

    def add_timestamps(
        self,
        fn: Callable[[T], Any],
        allowed_lag: Duration = 0,
        policy: WatermarkPolicy | None = None,
        idle_timeout: float | timedelta = 60.0,
        drop_before: int | datetime | None = None,
    ) -> StreamStage[T]:
        """Say when each item happened: `fn(item)`, in milliseconds since 1970, or a datetime with a time zone.

        Each partition of the source has a watermark, before which no item is expected any more; windows close when the
        least of these has passed them. Only steps that take one item at a time may stand before.

        Args:
            fn: gives the time of an item.
            allowed_lag: how much older than the newest item of its partition one may be, in milliseconds or as a
                timedelta; what is older comes too late for windows that have closed.
            policy: in place of a lag, how far time has come: one of `dstream.windows`, or one's own, which can be
                pickled.
            idle_timeout: after so many seconds without an item, a partition holds time back no longer; 0: it always
                does.
            drop_before: items of before this time go no further, where a source gives again what was read long ago: in
                milliseconds since 1970, or a datetime with a time zone. Unset, all do.

        Raises:
            IllegalStateError: the items have timestamps.
            TypeError: an argument is of another kind, a policy stands beside a lag, or it cannot be pickled.
            UnsupportedError: something stands before that moves items, such as a join.
        """
        node = stamped(self._record.node, fn, allowed_lag, policy, idle_timeout, drop_before)
        return self._step("add_timestamps", node)

    def native_timestamps(self, allowed_lag: Duration = 0, drop_before: int | datetime | None = None) -> StreamStage[T]:
        """Take the time of each item from the source, directly behind `read_from`, as Kafka has it.

        Args:
            allowed_lag: as for `add_timestamps`.
            drop_before: as for `add_timestamps`.

        Raises:
            IllegalStateError: something stands between, or the items have timestamps.
            UnsupportedError: the source has none.
        """
        return self._step("native_timestamps", natively_stamped(self._record.node, allowed_lag, drop_before))

    def ingestion_timestamps(self) -> StreamStage[T]:
        """Take the reading of the clock with which an epoch starts for the time of its items.

        Raises:
            IllegalStateError: the items have timestamps.
            UnsupportedError: something stands before that moves items, such as a join.
        """
        return self._step("ingestion_timestamps", ingested(self._record.node))

    # In windows, by key, with states

    def window(self, window: Window, late_to: Sink[T, Any] | None = None) -> WindowedStage[T]:
        """Look at the items by windows of time; `aggregate(op)` makes a result of each.

        Args:
            window: `tumbling(size)`, `sliding(size, by=...)` or `session(timeout)` of `dstream.windows`.
            late_to: a sink for items that come when their window has closed; unset, they are counted and dropped.

        Raises:
            IllegalStateError: the items have no timestamps.
            TypeError: an argument is of another kind.
        """
        found = window_of(window)
        check_timestamps(self._record.node, f"window({found!r})")
        return WindowedStage(self, found, None if late_to is None else sink_of(late_to))

    def grouping_key(self, fn: Callable[[T], K]) -> KeyedStreamStage[K, T]:
        """Look at the items by their keys `fn(item)`; what the keyed stage offers happens to each key on its own.

        Keys are equal as in a dict; None is a key, and every NaN is the same key.
        """
        return KeyedStreamStage(self, checked_function(fn, "fn"))

    @overload
    def rolling_aggregate(self, op: Collector[T, Any, R]) -> StreamStage[R]: ...

    @overload
    def rolling_aggregate(self, op: AggregateOperation[tuple[T], Any, R]) -> StreamStage[R]: ...

    def rolling_aggregate(self, op: AggregateOperation[Any, Any, Any]) -> StreamStage[Any]:
        """Replace each item by the result of all items until and with it, since the job began, in one task.

        Items pass in the order of (epoch, partition of the source, offset). What was given never changes later.

        Args:
            op: a collector, or an aggregate operation of one input.

        Raises:
            TypeError: `op` is no operation, or has several inputs.
        """
        operation = operation_of(op, 1, "rolling_aggregate")
        return self._step("rolling_aggregate", epochs.rolling(self._record.node, None, operation))

    def map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, T], R],
        *,
        ttl: Duration | None = None,
        on_evict: Callable[[S, None, int], R | None] | None = None,
    ) -> StreamStage[R]:
        """Replace each item by `fn(state, item)`, which changes the state in place; all items pass one task, in order.

        The state outlives epochs and the process of the job. Keyed stages have one for each key, in parallel.

        Args:
            create: makes the state.
            fn: takes the state and an item; a None that it gives goes on.
            ttl: for how long a state lives in event time without an item, in milliseconds or as a timedelta; unset, for
                ever. Items older than the watermark are late then, and dropped.
            on_evict: takes (state, None, watermark) of a state that goes, and may return a last item; None: nothing.
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
        fn: Callable[[S, T], object],
        *,
        ttl: Duration | None = None,
        on_evict: Callable[[S, None, int], T | None] | None = None,
    ) -> StreamStage[T]:
        """Keep the items for which `fn(state, item)` is true; otherwise as `map_stateful`."""
        return self._stateful("filter", create, fn, ttl, on_evict)

    def flat_map_stateful(
        self,
        create: Callable[[], S],
        fn: Callable[[S, T], Iterable[R] | None],
        *,
        ttl: Duration | None = None,
        on_evict: Callable[[S, None, int], Iterable[R] | None] | None = None,
    ) -> StreamStage[R]:
        """Replace each item by all that `fn(state, item)` gives; otherwise as `map_stateful`."""
        return self._stateful("flat_map", create, fn, ttl, on_evict)

    def _stateful(self, action: Action, create: Any, fn: Any, ttl: Any, on_evict: Any) -> StreamStage[Any]:
        node = epochs.stateful(self._record.node, None, action, create, fn, ttl, on_evict)
        return self._step(f"{action}_stateful", node)

    def custom_transform(self, name: str, supplier: AnySupplier) -> StreamStage[Any]:
        """Let processors of your own make of the items what they like: the Core API as a step of a pipeline.

        Each item comes to any one of them; `set_local_parallelism(n)` says how many there are; unset, the cores do when
        the job begins, and the number stays. At the end of each epoch they save what they keep; where the items have
        timestamps, watermarks come between them. What they emit has no order and no timestamps.

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
            >>> letters = Pipeline().read_from(Items("ab")).to_stream_stage()
            >>> letters.custom_transform("upper", processors.map(str.upper)).name
            'upper'
        """
        stage: StreamStage[Any] = self._transformed(name, supplier, "custom_transform")
        return stage

    # With other stages

    def merge(self, *others: FlowingStage[T]) -> StreamStage[T]:
        """Return all items of this stage and of others, in any order.

        Args:
            others: stages of this pipeline; the source of one that ends is read as one partition, which ends.

        Raises:
            IllegalStateError: a stage belongs to another pipeline.
            UnsupportedError: a stage that ends has steps that need all of its items.
        """
        return self._united("merge", others)

    def union(self, *others: FlowingStage[T]) -> StreamStage[T]:
        """Return all items of this stage and of others, in any order, as `merge`."""
        return self._united("union", others)

    def _united(self, kind: str, others: Sequence[FlowingStage[T]]) -> StreamStage[T]:
        stages = self._others(others, kind)
        for each in stages:
            if not each._has_no_end:
                check_that_it_runs_in_epochs(each._record.node, f"{kind}(...)")
        nodes = (self._record.node, *(each._record.node for each in stages))
        return self._step(kind, Union(nodes, kind, where=call_site()), stages)

    def join_within(
        self,
        other: StreamStage[U],
        *,
        on: tuple[Callable[[T], K], Callable[[U], K]] | Callable[[T | U], K],
        before: Duration = 0,
        after: Duration = 0,
    ) -> StreamStage[tuple[T, U]]:
        """Pair each item with each one of `other` that has its key and happened within some time of it.

        That is from `before` earlier than the item of this stage up to `after` later, both inclusive. A pair has the
        timestamp of the later one. Items that come behind the watermarks of both sides are late, and dropped.

        Args:
            other: another stage of this pipeline without an end, with timestamps.
            on: the key function of both sides, or one for each: `(of_left, of_right)`.
            before: in milliseconds or as a timedelta.
            after: in milliseconds or as a timedelta.

        Raises:
            IllegalStateError: a side has no timestamps, or `other` belongs to another pipeline.
            TypeError: an argument is of another kind.
        """
        stage = self._unending(other, "join_within")
        node = epochs.joined_within(self._record.node, stage._record.node, on, before, after)
        return self._step("join_within", node, [stage])

    # Joined with what every task holds

    @overload
    def hash_join(
        self,
        right: LazyStage[U],
        on: Keys[T, U],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[tuple[T, U | None]]: ...

    @overload
    def hash_join(
        self,
        right: LazyStage[U],
        on: Keys[T, U],
        to: Callable[[T, U | None], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[R]: ...

    @overload
    def hash_join(
        self,
        right: StageOf[tuple[Any, V]],
        on: EntriesClause[Any, T],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[tuple[T, V | None]]: ...

    @overload
    def hash_join(
        self,
        right: StageOf[tuple[Any, V]],
        on: EntriesClause[Any, T],
        to: Callable[[T, V | None], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[R]: ...

    @overload
    def hash_join(
        self,
        right: LazyStage[U],
        on: JoinClause[Any, T, U, V],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[tuple[T, V | None]]: ...

    @overload
    def hash_join(
        self,
        right: LazyStage[U],
        on: JoinClause[Any, T, U, V],
        to: Callable[[T, V | None], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[R]: ...

    def hash_join(
        self,
        right: Any,
        on: Any,
        to: Callable[[Any, Any], Any] | None = None,
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[Any]:
        """Pair each item with each item of `right` that has its key, or with None: `(item, match)`.

        The right side is read first, once by each driver of the job or again and again with `refresh_every`, and sent
        to all tasks. Several matches come in the order of the right side; a match that is None is a match.

        Args:
            right: another stage of this pipeline, whose items end: a `BatchStage`.
            on: the key functions of both sides, `(of_item, of_right)`, or a `JoinClause`.
            to: makes an item of a pair: `to(item, match)`; unset, the pair goes on.
            broadcast_limit: how many bytes the right side may have; unset, what the context says.
            refresh_every: seconds, or a timedelta: the first epoch that begins so much later than the one that read the
                right side reads it again, with all that `cache()` keeps of it; 0: each epoch. Unset, none does.

        Raises:
            IllegalStateError: `right` belongs to another pipeline, or has no end.
        """
        return self._hash_joined("hash_join", [(right, on)], to, broadcast_limit, refresh_every)

    @overload
    def inner_hash_join(
        self,
        right: LazyStage[U],
        on: Keys[T, U],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[tuple[T, U]]: ...

    @overload
    def inner_hash_join(
        self,
        right: LazyStage[U],
        on: Keys[T, U],
        to: Callable[[T, U], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[R]: ...

    @overload
    def inner_hash_join(
        self,
        right: StageOf[tuple[Any, V]],
        on: EntriesClause[Any, T],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[tuple[T, V]]: ...

    @overload
    def inner_hash_join(
        self,
        right: StageOf[tuple[Any, V]],
        on: EntriesClause[Any, T],
        to: Callable[[T, V], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[R]: ...

    @overload
    def inner_hash_join(
        self,
        right: LazyStage[U],
        on: JoinClause[Any, T, U, V],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[tuple[T, V]]: ...

    @overload
    def inner_hash_join(
        self,
        right: LazyStage[U],
        on: JoinClause[Any, T, U, V],
        to: Callable[[T, V], R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[R]: ...

    def inner_hash_join(
        self,
        right: Any,
        on: Any,
        to: Callable[[Any, Any], Any] | None = None,
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[Any]:
        """Pair each item with each item of `right` that has its key; leave out items that match nothing.

        Otherwise as `hash_join`.
        """
        return self._hash_joined("inner_hash_join", [(right, on)], to, broadcast_limit, refresh_every)

    @overload
    def hash_join_all(
        self,
        joins: Sequence[tuple[LazyStage[Any], Any]],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[tuple[Any, ...]]: ...

    @overload
    def hash_join_all(
        self,
        joins: Sequence[tuple[LazyStage[Any], Any]],
        to: Callable[..., R],
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[R]: ...

    def hash_join_all(
        self,
        joins: Sequence[tuple[LazyStage[Any], Any]],
        to: Callable[..., Any] | None = None,
        *,
        broadcast_limit: int | None = None,
        refresh_every: Refreshing = None,
    ) -> StreamStage[Any]:
        """Put the matches of several stages beside each item: `(item, match_0, match_1, ...)`.

        Where several items of a stage match, each goes with each of the others: the product. None stands where nothing
        matches. Otherwise as `hash_join`.

        Args:
            joins: for each right side the stage and what `hash_join` takes for `on`.
            to: makes an item of it: `to(item, match_0, match_1, ...)`; unset, the tuple goes on.
            broadcast_limit: how many bytes each right side may have; unset, what the context says.
            refresh_every: as for `hash_join`, for all right sides.

        Raises:
            IllegalStateError: a stage belongs to another pipeline.
            ValueError: `joins` is empty.
        """
        return self._hash_joined("hash_join_all", pairs_of(joins), to, broadcast_limit, refresh_every)

    def _hash_joined(
        self,
        kind: str,
        joins: Sequence[tuple[Any, Any]],
        to: Any,
        broadcast_limit: int | None,
        refresh_every: Refreshing,
    ) -> StreamStage[Any]:
        rights = [self._ending(right, kind) for right, _ in joins]
        sides = [(right._record.node, on) for right, (_, on) in zip(rights, joins, strict=True)]
        return self._step(kind, hash_joined(self._record.node, kind, sides, to, broadcast_limit, refresh_every), rights)

    if not TYPE_CHECKING:  # A type checker would take it for every name.

        def __getattr__(self, name: str) -> Any:
            return not_of_streams(type(self), name)
