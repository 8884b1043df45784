"""`BatchStage`: a stage with bounded data, and the generic `Stage` of type checkers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, overload

from dstream.arguments import sorting_hints
from dstream.pipeline.arguments import (
    Operation1,
    Operation2,
    Operation3,
    Operation4,
    OperationN,
    needs_time,
    operation_of,
)
from dstream.pipeline.joins import JoiningStage, pairs_of
from dstream.pipeline.keyed import KeyedStage
from dstream.pipeline.operations import LazyStage
from dstream.pipeline.pairs import PairedStage
from dstream.pipeline.stages import B, Bounded, Ended, StageOf, as_of_streams
from dstream.pipeline.timestamps import check_that_it_runs_in_epochs
from dstream.pipeline.unbounded import StreamStage, UnboundedStage
from dstream.spi import AggregateOperation, Collector
from dstream.stream.keyed import aggregated
from dstream.values import Entry

if TYPE_CHECKING:
    from dstream.values.time import KeyedWindowResult, WindowResult
    from dstream.windows import Window

__all__ = ["BatchStage", "ReducingStage"]


T = TypeVar("T")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

Duration: TypeAlias = int | timedelta


class ReducingStage(PairedStage[T, B], JoiningStage[T, B], LazyStage[T, B]):
    """A stage with the operations that only items that end have."""

    __slots__ = ()

    _keyed = KeyedStage

    # Aggregates

    @overload  # A type checker looks into the lambdas of a collector only where it expects one.
    def aggregate(self: Ended[T], op: Collector[T, Any, R]) -> BatchStage[R]: ...

    @overload
    def aggregate(self: Ended[T], op: Operation1[T, R]) -> BatchStage[R]: ...

    def aggregate(self: Ended[T], op: AggregateOperation[Any, Any, Any]) -> BatchStage[Any]:
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
    def co_aggregate(self: Ended[T], other0: Ended[T2], /, *, op: Operation2[T, T2, R]) -> BatchStage[R]: ...

    @overload
    def co_aggregate(
        self: Ended[T], other0: Ended[T2], other1: Ended[T3], /, *, op: Operation3[T, T2, T3, R]
    ) -> BatchStage[R]: ...

    @overload
    def co_aggregate(
        self: Ended[T], other0: Ended[T2], other1: Ended[T3], other2: Ended[T4], /, *, op: Operation4[T, T2, T3, T4, R]
    ) -> BatchStage[R]: ...

    @overload
    def co_aggregate(self: Ended[T], *others: Ended[Any], op: OperationN[R]) -> BatchStage[R]: ...

    def co_aggregate(self: Ended[T], *others: Any, op: AggregateOperation[Any, Any, Any]) -> BatchStage[Any]:
        """Reduce all items of this stage and of others to one, in a container that all of them share.

        Args:
            others: stages of this pipeline, one for each further input of the operation.
            op: an operation with one input per stage, this one first: `co_operation(...)` makes it from an operation
                per input.

        Raises:
            IllegalStateError: a stage belongs to another pipeline.
            TypeError: `op` is no operation, or has another number of inputs.
        """
        stages: list[Ended[Any]] = [self, *self._others(others, "co_aggregate")]
        operation = operation_of(op, len(stages), "co_aggregate")
        node = aggregated([each._record.node for each in stages], operation, name="co_aggregate")
        return self._step("co_aggregate", node, stages[1:])

    # By key

    @overload
    def reduce_by_key(  # type: ignore[overload-overlap]  # For bools this one is right.
        self: StageOf[tuple[K, V], Bounded], op: Callable[[V, V], V]
    ) -> BatchStage[Entry[K, V]]: ...

    @overload
    def reduce_by_key(
        self: StageOf[tuple[K, int], Bounded], op: Callable[[int, int], int]
    ) -> BatchStage[Entry[K, int]]: ...

    def reduce_by_key(self: StageOf[tuple[K, V], Bounded], op: Callable[[V, V], V]) -> BatchStage[Entry[K, V]]:
        """Fold the values of each key with an associative operator, in encounter order."""
        return as_of_streams(self, "reduce_by_key", op)

    @overload
    def aggregate_by_key(
        self: StageOf[tuple[K, V], Bounded], collector: Collector[V, Any, R]
    ) -> BatchStage[Entry[K, R]]: ...

    @overload
    def aggregate_by_key(
        self: StageOf[tuple[K, V], Bounded], collector: AggregateOperation[tuple[V], Any, R]
    ) -> BatchStage[Entry[K, R]]: ...

    def aggregate_by_key(self: Any, collector: Any) -> Any:
        """Reduce the values of each key with a collector."""
        return self._made("aggregate_by_key", self._stream().aggregate_by_key(collector))

    @overload
    def aggregate_by_window(
        self: Ended[T], window: Window, collector: Collector[T, Any, R], *, timestamp: Callable[[T], int | datetime]
    ) -> BatchStage[WindowResult[R]]: ...

    @overload
    def aggregate_by_window(
        self: Ended[T],
        window: Window,
        collector: Collector[T, Any, R],
        *,
        timestamp: Callable[[T], int | datetime],
        key: Callable[[T], K],
    ) -> BatchStage[KeyedWindowResult[K, R]]: ...

    @overload
    def aggregate_by_window(
        self: Ended[T], window: Window, collector: Operation1[T, R], *, timestamp: Callable[[T], int | datetime]
    ) -> BatchStage[WindowResult[R]]: ...

    @overload
    def aggregate_by_window(
        self: Ended[T],
        window: Window,
        collector: Operation1[T, R],
        *,
        timestamp: Callable[[T], int | datetime],
        key: Callable[[T], K],
    ) -> BatchStage[KeyedWindowResult[K, R]]: ...

    def aggregate_by_window(self: Ended[T], window: Window, collector: Any, *, timestamp: Any, key: Any = None) -> Any:
        """Reduce the items of each window of event time with a collector, for each key if there are keys."""
        stream = self._stream().aggregate_by_window(window, collector, timestamp=timestamp, key=key)
        return self._made("aggregate_by_window", stream)

    def group_by_key(self: StageOf[tuple[K, V], Bounded]) -> BatchStage[Entry[K, list[V]]]:
        """List the values of each key, in encounter order."""
        return as_of_streams(self, "group_by_key")

    def count_by_key(self: StageOf[tuple[K, Any], Bounded]) -> BatchStage[Entry[K, int]]:
        """Count the entries of each key."""
        return as_of_streams(self, "count_by_key")

    def top_by_key(
        self: StageOf[tuple[K, V], Bounded], n: int, key: Callable[[V], Any] | None = None
    ) -> BatchStage[Entry[K, list[V]]]:
        """List the `n` greatest values of each key, the greatest first; equal ones keep their order."""
        return as_of_streams(self, "top_by_key", n, key)

    # Several items

    def distinct(self: Ended[T], key: Callable[[T], Any] | None = None) -> BatchStage[T]:
        """Keep one item per key, the first one if the items are ordered.

        The key is `key(item)`, or the item itself. Keys are equal as in a dict, and every NaN is one key.
        """
        return self._made("distinct", self._stream().distinct(key))

    @sorting_hints
    def sorted(self: Ended[T], key: Callable[[T], Any] | None = None, *, reverse: bool = False) -> BatchStage[T]:
        """Sort the items as `sorted()` does: stable, also in reverse. They are ordered from this step on."""
        return self._made("sorted", self._stream().sorted(key, reverse=reverse))

    def top(self: Ended[T], n: int, key: Callable[[T], Any] | None = None) -> BatchStage[T]:
        """Keep the `n` greatest items, the greatest first; equal ones keep their order."""
        return self._made("top", self._stream().top(n, key))

    def limit(self: Ended[T], n: int) -> BatchStage[T]:
        """Keep the first `n` items; of unordered ones, any `n`."""
        return self._made("limit", self._stream().limit(n))

    def skip(self: Ended[T], n: int) -> BatchStage[T]:
        """Leave out the first `n` items; of unordered ones, any `n`."""
        return self._made("skip", self._stream().skip(n))

    def take_while(self: Ended[T], predicate: Callable[[T], object]) -> BatchStage[T]:
        """Keep items up to the first one that fails `predicate`: the longest prefix."""
        return self._made("take_while", self._stream().take_while(predicate))

    def drop_while(self: Ended[T], predicate: Callable[[T], object]) -> BatchStage[T]:
        """Leave out items up to the first one that fails `predicate`: the longest prefix."""
        return self._made("drop_while", self._stream().drop_while(predicate))

    def zip_with_index(self: Ended[T]) -> BatchStage[tuple[T, int]]:
        """Pair each item with its index, from 0: `(item, index)`."""
        return self._made("zip_with_index", self._stream().zip_with_index())

    def enumerate(self: Ended[T], start: int = 0) -> BatchStage[tuple[int, T]]:
        """Put its number before each item: `(index, item)`, as the `enumerate` of Python does."""
        return self._made("enumerate", self._stream().enumerate(start))

    def pairwise(self: Ended[T]) -> BatchStage[tuple[T, T]]:
        """Replace the items by pairs of an item and the next one, as `itertools.pairwise` does."""
        return self._made("pairwise", self._stream().pairwise())

    def chunked(self: Ended[T], n: int) -> BatchStage[tuple[T, ...]]:
        """Replace the items by tuples of `n` of them; the last one has the rest."""
        return self._made("chunked", self._stream().chunked(n))

    def sample(
        self: Ended[T], fraction: float | None = None, seed: int | None = None, *, n: int | None = None
    ) -> BatchStage[T]:
        """Keep each item with the probability `fraction`, or `n` items, each as probable as any other.

        Without a seed one is chosen now, so that the pipeline keeps the same items in each run.
        """
        return self._made("sample", self._stream().sample(fraction, seed, n=n))

    def shuffle(self: Ended[T], seed: int | None = None) -> BatchStage[T]:
        """Put the items into a random order, in which the stream is ordered from this step on.

        Without a seed one is chosen now, so that the pipeline has the same order in each run.
        """
        return self._made("shuffle", self._stream().shuffle(seed))

    # Where items are

    def unordered(self: Ended[T]) -> BatchStage[T]:
        """Release the items from their encounter order, which makes `limit`, `skip`, `distinct` cheaper."""
        return self._made("unordered", self._stream().unordered())

    def partition_by(self: Ended[T], n: int, key: Callable[[T], Any] | None = None) -> BatchStage[T]:
        """Bring the items of equal keys into the same one of `n` partitions.

        The key is `key(item)`; without a function the key of an entry, or else the item itself.
        """
        return self._made("partition_by", self._stream().partition_by(n, key))

    def cache(self: Ended[T]) -> BatchStage[T]:
        """Compute the items once, and cache them for later jobs of this pipeline in the same context.

        Within one job that is the default: items that several stages read are computed once.
        """
        return self._made("cache", self._stream().cache())

    # Run as a stream

    def to_stream_stage(
        self: Ended[T], *, timestamp: Callable[[T], Any] | None = None, allowed_lag: Duration = 0
    ) -> StreamStage[T]:
        """Run the source as a stream, of one partition that ends: for tests, and for old data that a stream continues.

        Args:
            timestamp: returns the time of an item, as for `add_timestamps`; unset, items have none.
            allowed_lag: as for `add_timestamps`.

        Raises:
            UnsupportedError: a step before does not take one item at a time.
        """
        stream = self._as_stream()
        if timestamp is not None:
            return stream.add_timestamps(timestamp, allowed_lag)
        check_that_it_runs_in_epochs(self._record.node, "to_stream_stage()")
        return stream

    def _as_stream(self) -> StreamStage[T]:
        return StreamStage[T](self._pipeline, self._record)

    def _other(self, other: Any, call: str) -> Any:
        return self._ending(other, call)


if TYPE_CHECKING:

    class Stage(ReducingStage[T, B], UnboundedStage[T, B]):
        """A stage for type checkers: each method of one of both kinds has the type of `self` of that kind."""

        __slots__ = ()

    BatchStage: TypeAlias = Stage[T, Bounded]
else:

    class BatchStage(ReducingStage[T, Bounded]):
        """A stage of bounded input: the result of `pipeline.read_from(source)`.

        Each method adds a stage to the pipeline and returns it. Stages fork where several are attached to one: what
        they share is computed once. Nothing runs before the pipeline does, as a job: `ctx.new_job(pipeline)`. A stage
        has what streams have but for the operations that run them and the settings of a run.

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

        def hash_join(
            self,
            right: Any,
            on: Any,
            to: Callable[[Any, Any], Any] | None = None,
            *,
            broadcast_limit: int | None = None,
        ) -> BatchStage[Any]:
            """Pair each item with each item of `right` that has its key, or with None: `(item, match)`.

            The right side is read first, and sent to every task; the items of this stage are not moved and keep their
            order. Several matches have the order of the right side; None is a valid match. If the right side is too
            large to be sent, use `join`, which shuffles both sides.

            Args:
                right: another stage of this pipeline, whose items end.
                on: the key functions of both sides, `(of_item, of_right)`, or a `JoinClause`.
                to: makes an item of a pair: `to(item, match)`; unset, the pair is emitted.
                broadcast_limit: how many bytes the right side may have; unset, the limit of the context.

            Raises:
                IllegalStateError: `right` belongs to another pipeline.
            """
            return self._hash_joined("hash_join", [(right, on)], to, broadcast_limit, None)

        def inner_hash_join(
            self,
            right: Any,
            on: Any,
            to: Callable[[Any, Any], Any] | None = None,
            *,
            broadcast_limit: int | None = None,
        ) -> BatchStage[Any]:
            """Pair each item with each item of `right` that has its key; leave out items that match nothing.

            Otherwise as `hash_join`.
            """
            return self._hash_joined("inner_hash_join", [(right, on)], to, broadcast_limit, None)

        def hash_join_all(
            self,
            joins: Sequence[tuple[Ended[Any], Any]],
            to: Callable[..., Any] | None = None,
            *,
            broadcast_limit: int | None = None,
        ) -> BatchStage[Any]:
            """Pair each item with the matches of several stages: `(item, match_0, match_1, ...)`.

            Where several items of a stage match, each is paired with each of the others: the product. None is used
            where nothing matches. Otherwise as `hash_join`.

            Args:
                joins: for each right side the stage and what `hash_join` takes for `on`.
                to: makes an item of it: `to(item, match_0, match_1, ...)`; unset, the tuple is emitted.
                broadcast_limit: how many bytes each right side may have; unset, the limit of the context.

            Raises:
                IllegalStateError: a stage belongs to another pipeline.
                ValueError: `joins` is empty.
            """
            return self._hash_joined("hash_join_all", pairs_of(joins), to, broadcast_limit, None)

        def window(self, window: Any, late_to: Any = None) -> NoReturn:
            """Refuse: items that end have no time; `chunked(n)` makes windows by count.

            Raises:
                UnsupportedError: always.
            """
            raise needs_time("window(...)")
