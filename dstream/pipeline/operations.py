"""`LazyStage`: the lazy operations of streams, on the stages of a pipeline.

A stage makes a stream's nodes: each method calls that of a stream without a context and keeps the node, so that checks,
labels and what an operation means have one place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, overload

from dstream.arguments import hinting
from dstream.gatherers.concurrency import map_concurrent
from dstream.pipeline.stages import FlowingStage, StageOf
from dstream.spi import AggregateOperation, Collector, Gatherer, Reducer, Sink
from dstream.values import DeadLetter, Entry

if TYPE_CHECKING:
    from dstream.gatherers import Retry
    from dstream.pipeline.bounded import BatchStage
    from dstream.pipeline.records import StageRecord
    from dstream.pipeline.stages import AnyStage
    from dstream.plan import Node
    from dstream.plan.stage_nodes import Action
    from dstream.stream.base import BaseStream
    from dstream.values.time import KeyedWindowResult, WindowResult
    from dstream.windows import Window

__all__ = ["LazyStage"]


T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")
V = TypeVar("V")
R = TypeVar("R")
E = TypeVar("E", bound=Exception)
Ts = TypeVarTuple("Ts")


class LazyStage(FlowingStage[T]):
    """A stage through which items flow that end, with the lazy operations of streams."""

    __slots__ = ()

    # One item at a time

    def map(self, fn: Callable[[T], U]) -> BatchStage[U]:
        """Replace each item by `fn(item)`; a None stays."""
        return self._made("map", self._stream().map(fn))

    def map_to_obj(self, fn: Callable[[T], U]) -> BatchStage[U]:
        """Replace each item by `fn(item)`, as `map`."""
        return self._made("map_to_obj", self._stream().map_to_obj(fn))

    def map_to_int(self, fn: Callable[[T], int]) -> BatchStage[int]:
        """Replace each item by the int `fn(item)`; anything else is a `TypeError` that names it."""
        return self._made("map_to_int", self._stream().map_to_int(fn))

    def map_to_long(self, fn: Callable[[T], int]) -> BatchStage[int]:
        """Replace each item by the int `fn(item)`; anything else is a `TypeError` that names it."""
        return self._made("map_to_long", self._stream().map_to_long(fn))

    def map_to_double(self, fn: Callable[[T], float]) -> BatchStage[float]:
        """Replace each item by the float of the number `fn(item)`; anything else is a `TypeError` that names it."""
        return self._made("map_to_double", self._stream().map_to_double(fn))

    def filter(self, predicate: Callable[[T], object]) -> BatchStage[T]:
        """Keep the items that satisfy `predicate`."""
        return self._made("filter", self._stream().filter(predicate))

    def flat_map(self, fn: Callable[[T], Iterable[U] | None]) -> BatchStage[U]:
        """Replace each item by all that `fn(item)` gives: any iterable or stream; None is an empty one."""
        return self._made("flat_map", self._stream().flat_map(fn))

    def flat_map_to_int(self, fn: Callable[[T], Iterable[int] | None]) -> BatchStage[int]:
        """Replace each item by all the ints that `fn(item)` gives."""
        return self._made("flat_map_to_int", self._stream().flat_map_to_int(fn))

    def flat_map_to_long(self, fn: Callable[[T], Iterable[int] | None]) -> BatchStage[int]:
        """Replace each item by all the ints that `fn(item)` gives."""
        return self._made("flat_map_to_long", self._stream().flat_map_to_long(fn))

    def flat_map_to_double(self, fn: Callable[[T], Iterable[float] | None]) -> BatchStage[float]:
        """Replace each item by all the numbers that `fn(item)` gives, as floats."""
        return self._made("flat_map_to_double", self._stream().flat_map_to_double(fn))

    @overload
    def map_multi(self, fn: Callable[[T, Callable[[U], None]], object]) -> BatchStage[U]: ...

    @overload  # For lambdas: what they emit, no type checker finds out.
    def map_multi(self, fn: Callable[[T, Callable[[Any], None]], object]) -> BatchStage[Any]: ...

    def map_multi(self, fn: Callable[[T, Callable[[Any], None]], object]) -> BatchStage[Any]:
        """Replace each item by what `fn(item, emit)` passes to `emit`, from none to many."""
        return self._made("map_multi", self._stream().map_multi(fn))

    def map_multi_to_int(self, fn: Callable[[T, Callable[[int], None]], object]) -> BatchStage[int]:
        """Replace each item by the ints that `fn(item, emit)` emits."""
        return self._made("map_multi_to_int", self._stream().map_multi_to_int(fn))

    def map_multi_to_long(self, fn: Callable[[T, Callable[[int], None]], object]) -> BatchStage[int]:
        """Replace each item by the ints that `fn(item, emit)` emits."""
        return self._made("map_multi_to_long", self._stream().map_multi_to_long(fn))

    def map_multi_to_double(self, fn: Callable[[T, Callable[[float], None]], object]) -> BatchStage[float]:
        """Replace each item by the numbers that `fn(item, emit)` emits, as floats."""
        return self._made("map_multi_to_double", self._stream().map_multi_to_double(fn))

    def flatten(self: StageOf[Iterable[U] | None]) -> BatchStage[U]:
        """Replace each item, any iterable or stream, by its items; None is an empty one."""
        flattened: BatchStage[U] = _of(self)._made("flatten", _of(self)._stream().flatten())
        return flattened

    def pluck(self, name: str | int) -> BatchStage[Any]:
        """Replace each item by one part of it.

        That is `item[name]` of a mapping, `item[name]` of anything else for an int, and the attribute for a str.
        """
        return self._made("pluck", self._stream().pluck(name))

    def starmap(self: StageOf[tuple[*Ts]], fn: Callable[[*Ts], R]) -> BatchStage[R]:
        """Replace each item by `fn(*item)`."""
        stream: Any = _of(self)._stream()
        starred: BatchStage[R] = _of(self)._made("starmap", stream.starmap(fn))
        return starred

    def key_by(self, fn: Callable[[T], K]) -> BatchStage[Entry[K, T]]:
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
    ) -> BatchStage[R]: ...

    @overload
    def map_concurrent(
        self,
        n: int,
        fn: Callable[[T], R],
        *,
        rate: float | None = None,
        retry: int | Retry = 0,
        cache: bool = False,
    ) -> BatchStage[R]: ...

    def map_concurrent(
        self,
        n: int,
        fn: Callable[[T], Any],
        *,
        rate: float | None = None,
        retry: int | Retry = 0,
        cache: bool = False,
    ) -> BatchStage[Any]:
        """Replace each item by `fn(item)`, with up to `n` calls in flight in each task; the order is kept.

        The same as `gather(map_concurrent(n, fn, ...))`, which also says what becomes of items that fail.

        Args:
            n: how many calls may be in flight in one task.
            fn: a plain function, which runs in threads, or an async one.
            rate: how many calls a second the whole job may make at most.
            retry: how often a call that failed is made again; or a `Retry`.
            cache: equal items are called once in the whole job.
        """
        gatherer = map_concurrent(n, fn, rate=rate, retry=retry, cache=cache)
        return self._made("map_concurrent", self._stream().gather(gatherer))

    # Entries

    def keys(self: StageOf[tuple[K, Any]]) -> BatchStage[K]:
        """Replace each entry by its key; moves nothing between tasks."""
        keys: BatchStage[K] = _of(self)._made("keys", _of(self)._stream().keys())
        return keys

    def values(self: StageOf[tuple[Any, V]]) -> BatchStage[V]:
        """Replace each entry by its value; moves nothing between tasks."""
        values: BatchStage[V] = _of(self)._made("values", _of(self)._stream().values())
        return values

    def swap(self: StageOf[tuple[K, V]]) -> BatchStage[Entry[V, K]]:
        """Replace each entry by one with key and value exchanged; moves nothing between tasks."""
        swapped: BatchStage[Entry[V, K]] = _of(self)._made("swap", _of(self)._stream().swap())
        return swapped

    def map_values(self: StageOf[tuple[K, V]], fn: Callable[[V], R]) -> BatchStage[Entry[K, R]]:
        """Replace the value of each entry by `fn(value)`; the key stays. Moves nothing between tasks."""
        mapped: BatchStage[Entry[K, R]] = _of(self)._made("map_values", _of(self)._stream().map_values(fn))
        return mapped

    def filter_values(self: StageOf[tuple[K, V]], predicate: Callable[[V], object]) -> BatchStage[Entry[K, V]]:
        """Keep the entries whose values satisfy `predicate`; moves nothing between tasks."""
        kept: BatchStage[Entry[K, V]] = _of(self)._made("filter_values", _of(self)._stream().filter_values(predicate))
        return kept

    def flat_map_values(self: StageOf[tuple[K, V]], fn: Callable[[V], Iterable[R] | None]) -> BatchStage[Entry[K, R]]:
        """Replace each entry by one for each item that `fn(value)` gives: any iterable or stream, or None for none."""
        flat: BatchStage[Entry[K, R]] = _of(self)._made("flat_map_values", _of(self)._stream().flat_map_values(fn))
        return flat

    @overload
    def reduce_by_key(  # type: ignore[overload-overlap]  # For bools this one is right.
        self: StageOf[tuple[K, V]], op: Callable[[V, V], V]
    ) -> BatchStage[Entry[K, V]]: ...

    @overload
    def reduce_by_key(self: StageOf[tuple[K, int]], op: Callable[[int, int], int]) -> BatchStage[Entry[K, int]]: ...

    def reduce_by_key(self: StageOf[tuple[K, V]], op: Callable[[V, V], V]) -> BatchStage[Entry[K, V]]:
        """Fold the values of each key with an associative operator, in encounter order."""
        reduced: BatchStage[Entry[K, V]] = _of(self)._made("reduce_by_key", _of(self)._stream().reduce_by_key(op))
        return reduced

    @overload
    def aggregate_by_key(self: StageOf[tuple[K, V]], collector: Collector[V, Any, R]) -> BatchStage[Entry[K, R]]: ...

    @overload
    def aggregate_by_key(
        self: StageOf[tuple[K, V]], collector: AggregateOperation[tuple[V], Any, R]
    ) -> BatchStage[Entry[K, R]]: ...

    def aggregate_by_key(self: Any, collector: Any) -> Any:
        """Reduce the values of each key with a collector."""
        return self._made("aggregate_by_key", self._stream().aggregate_by_key(collector))

    @overload
    def aggregate_by_window(
        self, window: Window, collector: Collector[T, Any, R], *, timestamp: Callable[[T], int | datetime]
    ) -> BatchStage[WindowResult[R]]: ...

    @overload
    def aggregate_by_window(
        self,
        window: Window,
        collector: Collector[T, Any, R],
        *,
        timestamp: Callable[[T], int | datetime],
        key: Callable[[T], K],
    ) -> BatchStage[KeyedWindowResult[K, R]]: ...

    @overload
    def aggregate_by_window(
        self,
        window: Window,
        collector: AggregateOperation[tuple[T], Any, R],
        *,
        timestamp: Callable[[T], int | datetime],
    ) -> BatchStage[WindowResult[R]]: ...

    @overload
    def aggregate_by_window(
        self,
        window: Window,
        collector: AggregateOperation[tuple[T], Any, R],
        *,
        timestamp: Callable[[T], int | datetime],
        key: Callable[[T], K],
    ) -> BatchStage[KeyedWindowResult[K, R]]: ...

    def aggregate_by_window(self, window: Window, collector: Any, *, timestamp: Any, key: Any = None) -> Any:
        """Reduce the items of each window of event time with a collector, for each key if there are keys."""
        stream = self._stream().aggregate_by_window(window, collector, timestamp=timestamp, key=key)
        return self._made("aggregate_by_window", stream)

    def group_by_key(self: StageOf[tuple[K, V]]) -> BatchStage[Entry[K, list[V]]]:
        """List the values of each key, in encounter order."""
        grouped: BatchStage[Entry[K, list[V]]] = _of(self)._made("group_by_key", _of(self)._stream().group_by_key())
        return grouped

    def count_by_key(self: StageOf[tuple[K, Any]]) -> BatchStage[Entry[K, int]]:
        """Count the entries of each key."""
        counted: BatchStage[Entry[K, int]] = _of(self)._made("count_by_key", _of(self)._stream().count_by_key())
        return counted

    def top_by_key(
        self: StageOf[tuple[K, V]], n: int, key: Callable[[V], Any] | None = None
    ) -> BatchStage[Entry[K, list[V]]]:
        """List the `n` greatest values of each key, the greatest first; equal ones keep their order."""
        top: BatchStage[Entry[K, list[V]]] = _of(self)._made("top_by_key", _of(self)._stream().top_by_key(n, key))
        return top

    # Failures

    @hinting(args="ignore((ValueError, TypeError)), with a tuple of exceptions")
    def ignore(self, kinds: type[Exception] | tuple[type[Exception], ...]) -> BatchStage[T]:
        """Leave out the items on which the step before fails with one of these exceptions.

        The step becomes part of this stage. A stage that reads the step without it sees the failures.
        """
        return self._made("ignore", self._stream().ignore(kinds))

    def resolve(self, kinds: type[E] | tuple[type[E], ...], fn: Callable[[Any, E], T]) -> BatchStage[T]:
        """Let `fn(item, error)` give one item in place of all that the step before would have given."""
        return self._made("resolve", self._stream().resolve(kinds, fn))

    @hinting(args="on_error((ValueError, TypeError), into=...), with a tuple of exceptions")
    def on_error(
        self, kinds: type[Exception] | tuple[type[Exception], ...], *, into: Reducer[DeadLetter, Any]
    ) -> BatchStage[T]:
        """Send the items on which the step before fails with one of these exceptions to a reducer.

        It gets a `DeadLetter` for each, all of them at the end of the job; none if the job fails.
        """
        return self._made("on_error", self._stream().on_error(kinds, into=into))

    # Several items

    def distinct(self, key: Callable[[T], Any] | None = None) -> BatchStage[T]:
        """Keep one item of each key, the first one if the items are ordered.

        The key is `key(item)`, or the item itself. Keys are equal as in a dict, and every NaN is one key.
        """
        return self._made("distinct", self._stream().distinct(key))

    @hinting(
        ascending="reverse=True for the greatest first",
        by="key=",
        cmp="key=functools.cmp_to_key(comparator)",
        comparator="key=functools.cmp_to_key(comparator)",
        descending="reverse=True",
    )
    def sorted(self, key: Callable[[T], Any] | None = None, *, reverse: bool = False) -> BatchStage[T]:
        """Sort the items as `sorted()` does: stable, also in reverse. They are ordered from here on."""
        return self._made("sorted", self._stream().sorted(key, reverse=reverse))

    def top(self, n: int, key: Callable[[T], Any] | None = None) -> BatchStage[T]:
        """Keep the `n` greatest items, the greatest first; equal ones keep their order."""
        return self._made("top", self._stream().top(n, key))

    def limit(self, n: int) -> BatchStage[T]:
        """Keep the first `n` items; of unordered ones, any `n`."""
        return self._made("limit", self._stream().limit(n))

    def skip(self, n: int) -> BatchStage[T]:
        """Leave out the first `n` items; of unordered ones, any `n`."""
        return self._made("skip", self._stream().skip(n))

    def take_while(self, predicate: Callable[[T], object]) -> BatchStage[T]:
        """Keep items up to the first one that fails `predicate`: the longest prefix."""
        return self._made("take_while", self._stream().take_while(predicate))

    def drop_while(self, predicate: Callable[[T], object]) -> BatchStage[T]:
        """Leave out items up to the first one that fails `predicate`: the longest prefix."""
        return self._made("drop_while", self._stream().drop_while(predicate))

    def gather(self, gatherer: Gatherer[T, Any, R]) -> BatchStage[R]:
        """Replace the items by what `gatherer` makes of them, in encounter order: windows by count, `fold`, `scan`."""
        return self._made("gather", self._stream().gather(gatherer))

    def zip_with_index(self) -> BatchStage[tuple[T, int]]:
        """Put its number behind each item: `(item, index)`, from 0."""
        return self._made("zip_with_index", self._stream().zip_with_index())

    def enumerate(self, start: int = 0) -> BatchStage[tuple[int, T]]:
        """Put its number before each item: `(index, item)`, as the `enumerate` of Python does."""
        return self._made("enumerate", self._stream().enumerate(start))

    def pairwise(self) -> BatchStage[tuple[T, T]]:
        """Replace the items by pairs of an item and the next one, as `itertools.pairwise` does."""
        return self._made("pairwise", self._stream().pairwise())

    def chunked(self, n: int) -> BatchStage[tuple[T, ...]]:
        """Replace the items by tuples of `n` of them; the last one has what is left."""
        return self._made("chunked", self._stream().chunked(n))

    def sample(self, fraction: float | None = None, seed: int | None = None, *, n: int | None = None) -> BatchStage[T]:
        """Keep each item with the probability `fraction`, or `n` items, each as probable as any other.

        Without a seed one is chosen now, so that the pipeline keeps the same items each time it runs.
        """
        return self._made("sample", self._stream().sample(fraction, seed, n=n))

    def shuffle(self, seed: int | None = None) -> BatchStage[T]:
        """Put the items into a random order, in which the stream is ordered from here on.

        Without a seed one is chosen now, so that the pipeline gives the same order each time it runs.
        """
        return self._made("shuffle", self._stream().shuffle(seed))

    # Where items are

    def unordered(self) -> BatchStage[T]:
        """Release the items from their encounter order, which makes `limit`, `skip`, `distinct` cheaper."""
        return self._made("unordered", self._stream().unordered())

    def partition_by(self, n: int, key: Callable[[T], Any] | None = None) -> BatchStage[T]:
        """Bring the items of equal keys into the same one of `n` partitions.

        The key is `key(item)`; without a function the key of an entry, or else the item itself.
        """
        return self._made("partition_by", self._stream().partition_by(n, key))

    def cache(self) -> BatchStage[T]:
        """Compute the items once, and keep them for later jobs of this pipeline in the same context.

        Within one job that is so anyway: what several stages read is computed once.
        """
        return self._made("cache", self._stream().cache())

    # How stages are made

    if TYPE_CHECKING:

        def _made(self, kind: str, stream: BaseStream[U], *others: AnyStage) -> BatchStage[U]: ...
        def _step(
            self, kind: str, node: Node, others: Iterable[AnyStage] = (), late_to: Sink[Any, Any] | None = None
        ) -> BatchStage[Any]: ...
        def _using(self, action: Action, service: Any, fn: Any) -> BatchStage[Any]: ...
        def _added(self, record: StageRecord) -> BatchStage[Any]: ...

    def _other(self, other: Any, call: str) -> Any:
        return self._ending(other, call)


def _of(stage: Any) -> LazyStage[Any]:
    return stage  # type: ignore[no-any-return]
