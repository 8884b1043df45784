"""`StreamSteps`: the operations of a stage with unbounded data on one item at a time.

What a step means is said by the method of streams that each of these calls, as it is for stages that end. They are
written out once more because no type checker can say that `map` of a stage gives one of the same kind with other items.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, overload

from dstream.arguments import checked_function, hinting, kind_of
from dstream.errors import UnsupportedError
from dstream.gatherers.concurrency import map_concurrent
from dstream.pipeline.arguments import peeked
from dstream.pipeline.stages import FlowingStage, StageOf
from dstream.plan import call_site
from dstream.plan.stage_nodes import Spread
from dstream.spi import Calling, Gatherer, OpenedLater, Reducer, Service, Sink
from dstream.stream.arguments import running
from dstream.stream.services import look_ups
from dstream.values import DeadLetter, Entry

if TYPE_CHECKING:
    from dstream.gatherers import Retry
    from dstream.pipeline.records import StageRecord
    from dstream.pipeline.stages import AnyStage
    from dstream.pipeline.unbounded import StreamStage
    from dstream.plan import Node
    from dstream.plan.stage_nodes import Action
    from dstream.stream.base import BaseStream

__all__ = ["StreamSteps"]


T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")
V = TypeVar("V")
R = TypeVar("R")
S = TypeVar("S")
E = TypeVar("E", bound=Exception)
Ts = TypeVarTuple("Ts")


class StreamSteps(FlowingStage[T]):
    """A stage whose items have no end, with the steps that take one item at a time."""

    __slots__ = ()

    # One item at a time

    def map(self, fn: Callable[[T], U]) -> StreamStage[U]:
        """Replace each item by `fn(item)`; a None stays."""
        return self._made("map", self._stream().map(fn))

    def map_to_obj(self, fn: Callable[[T], U]) -> StreamStage[U]:
        """Replace each item by `fn(item)`, as `map`."""
        return self._made("map_to_obj", self._stream().map_to_obj(fn))

    def map_to_int(self, fn: Callable[[T], int]) -> StreamStage[int]:
        """Replace each item by the int `fn(item)`; anything else is a `TypeError` that names it."""
        return self._made("map_to_int", self._stream().map_to_int(fn))

    def map_to_long(self, fn: Callable[[T], int]) -> StreamStage[int]:
        """Replace each item by the int `fn(item)`; anything else is a `TypeError` that names it."""
        return self._made("map_to_long", self._stream().map_to_long(fn))

    def map_to_double(self, fn: Callable[[T], float]) -> StreamStage[float]:
        """Replace each item by the float of the number `fn(item)`; anything else is a `TypeError` that names it."""
        return self._made("map_to_double", self._stream().map_to_double(fn))

    def filter(self, predicate: Callable[[T], object]) -> StreamStage[T]:
        """Keep the items that satisfy `predicate`."""
        return self._made("filter", self._stream().filter(predicate))

    def flat_map(self, fn: Callable[[T], Iterable[U] | None]) -> StreamStage[U]:
        """Replace each item by all that `fn(item)` gives: any iterable or stream; None is an empty one."""
        return self._made("flat_map", self._stream().flat_map(fn))

    def flat_map_to_int(self, fn: Callable[[T], Iterable[int] | None]) -> StreamStage[int]:
        """Replace each item by all the ints that `fn(item)` gives."""
        return self._made("flat_map_to_int", self._stream().flat_map_to_int(fn))

    def flat_map_to_long(self, fn: Callable[[T], Iterable[int] | None]) -> StreamStage[int]:
        """Replace each item by all the ints that `fn(item)` gives."""
        return self._made("flat_map_to_long", self._stream().flat_map_to_long(fn))

    def flat_map_to_double(self, fn: Callable[[T], Iterable[float] | None]) -> StreamStage[float]:
        """Replace each item by all the numbers that `fn(item)` gives, as floats."""
        return self._made("flat_map_to_double", self._stream().flat_map_to_double(fn))

    @overload
    def map_multi(self, fn: Callable[[T, Callable[[U], None]], object]) -> StreamStage[U]: ...

    @overload  # For lambdas: what they emit, no type checker finds out.
    def map_multi(self, fn: Callable[[T, Callable[[Any], None]], object]) -> StreamStage[Any]: ...

    def map_multi(self, fn: Callable[[T, Callable[[Any], None]], object]) -> StreamStage[Any]:
        """Replace each item by what `fn(item, emit)` passes to `emit`, from none to many."""
        return self._made("map_multi", self._stream().map_multi(fn))

    def map_multi_to_int(self, fn: Callable[[T, Callable[[int], None]], object]) -> StreamStage[int]:
        """Replace each item by the ints that `fn(item, emit)` emits."""
        return self._made("map_multi_to_int", self._stream().map_multi_to_int(fn))

    def map_multi_to_long(self, fn: Callable[[T, Callable[[int], None]], object]) -> StreamStage[int]:
        """Replace each item by the ints that `fn(item, emit)` emits."""
        return self._made("map_multi_to_long", self._stream().map_multi_to_long(fn))

    def map_multi_to_double(self, fn: Callable[[T, Callable[[float], None]], object]) -> StreamStage[float]:
        """Replace each item by the numbers that `fn(item, emit)` emits, as floats."""
        return self._made("map_multi_to_double", self._stream().map_multi_to_double(fn))

    def flatten(self: StageOf[Iterable[U] | None]) -> StreamStage[U]:
        """Replace each item, any iterable or stream, by its items; None is an empty one."""
        flattened: StreamStage[U] = _of(self)._made("flatten", _of(self)._stream().flatten())
        return flattened

    def pluck(self, name: str | int) -> StreamStage[Any]:
        """Replace each item by one part of it.

        That is `item[name]` of a mapping, `item[name]` of anything else for an int, and the attribute for a str.
        """
        return self._made("pluck", self._stream().pluck(name))

    def starmap(self: StageOf[tuple[*Ts]], fn: Callable[[*Ts], R]) -> StreamStage[R]:
        """Replace each item by `fn(*item)`."""
        stream: Any = _of(self)._stream()
        starred: StreamStage[R] = _of(self)._made("starmap", stream.starmap(fn))
        return starred

    def key_by(self, fn: Callable[[T], K]) -> StreamStage[Entry[K, T]]:
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
    ) -> StreamStage[R]: ...

    @overload
    def map_concurrent(
        self,
        n: int,
        fn: Callable[[T], R],
        *,
        rate: float | None = None,
        retry: int | Retry = 0,
        cache: bool = False,
    ) -> StreamStage[R]: ...

    def map_concurrent(
        self,
        n: int,
        fn: Callable[[T], Any],
        *,
        rate: float | None = None,
        retry: int | Retry = 0,
        cache: bool = False,
    ) -> StreamStage[Any]:
        """Replace each item by `fn(item)`, with up to `n` calls in flight in each task; the order is kept.

        The same as `gather(map_concurrent(n, fn, ...))`, which also says what becomes of items that fail. Tasks share a
        rate and a cache by moving items, so neither goes with timestamps and states.

        Args:
            n: how many calls may be in flight in one task.
            fn: a plain function, which runs in threads, or an async one.
            rate: how many calls a second the whole job may make at most.
            retry: how often a call that failed is made again; or a `Retry`.
            cache: equal items are called once in an epoch.
        """
        gatherer = map_concurrent(n, fn, rate=rate, retry=retry, cache=cache)
        return self._made("map_concurrent", self._stream().gather(gatherer))

    # Entries

    def keys(self: StageOf[tuple[K, Any]]) -> StreamStage[K]:
        """Replace each entry by its key; moves nothing between tasks."""
        keys: StreamStage[K] = _of(self)._made("keys", _of(self)._stream().keys())
        return keys

    def values(self: StageOf[tuple[Any, V]]) -> StreamStage[V]:
        """Replace each entry by its value; moves nothing between tasks."""
        values: StreamStage[V] = _of(self)._made("values", _of(self)._stream().values())
        return values

    def swap(self: StageOf[tuple[K, V]]) -> StreamStage[Entry[V, K]]:
        """Replace each entry by one with key and value exchanged; moves nothing between tasks."""
        swapped: StreamStage[Entry[V, K]] = _of(self)._made("swap", _of(self)._stream().swap())
        return swapped

    def map_values(self: StageOf[tuple[K, V]], fn: Callable[[V], R]) -> StreamStage[Entry[K, R]]:
        """Replace the value of each entry by `fn(value)`; the key stays. Moves nothing between tasks."""
        mapped: StreamStage[Entry[K, R]] = _of(self)._made("map_values", _of(self)._stream().map_values(fn))
        return mapped

    def filter_values(self: StageOf[tuple[K, V]], predicate: Callable[[V], object]) -> StreamStage[Entry[K, V]]:
        """Keep the entries whose values satisfy `predicate`; moves nothing between tasks."""
        kept: StreamStage[Entry[K, V]] = _of(self)._made("filter_values", _of(self)._stream().filter_values(predicate))
        return kept

    def flat_map_values(self: StageOf[tuple[K, V]], fn: Callable[[V], Iterable[R] | None]) -> StreamStage[Entry[K, R]]:
        """Replace each entry by one for each item that `fn(value)` gives: any iterable or stream, or None for none."""
        flat: StreamStage[Entry[K, R]] = _of(self)._made("flat_map_values", _of(self)._stream().flat_map_values(fn))
        return flat

    # Failures

    @hinting(args="ignore((ValueError, TypeError)), with a tuple of exceptions")
    def ignore(self, kinds: type[Exception] | tuple[type[Exception], ...]) -> StreamStage[T]:
        """Leave out the items on which the step before fails with one of these exceptions.

        The step becomes part of this stage. A stage that reads the step without it sees the failures.
        """
        return self._made("ignore", self._stream().ignore(kinds))

    def resolve(self, kinds: type[E] | tuple[type[E], ...], fn: Callable[[Any, E], T]) -> StreamStage[T]:
        """Let `fn(item, error)` give one item in place of all that the step before would have given."""
        return self._made("resolve", self._stream().resolve(kinds, fn))

    @hinting(args="on_error((ValueError, TypeError), into=...), with a tuple of exceptions")
    def on_error(
        self, kinds: type[Exception] | tuple[type[Exception], ...], *, into: Reducer[DeadLetter, Any]
    ) -> StreamStage[T]:
        """Send the items on which the step before fails with one of these exceptions to a reducer.

        It gets a `DeadLetter` for each, those of an epoch when the epoch ends.
        """
        return self._made("on_error", self._stream().on_error(kinds, into=into))

    # A service beside the items

    @overload
    def map_using(self, service: Service[S], fn: Callable[[S, T], R]) -> StreamStage[R]: ...

    @overload
    def map_using(self, service: OpenedLater, fn: Callable[[Any, T], R]) -> StreamStage[R]: ...

    def map_using(self, service: Service[Any] | OpenedLater, fn: Callable[[Any, T], Any]) -> StreamStage[Any]:
        """Replace each item by `fn(service, item)`.

        Args:
            service: made on the workers, once for each process or task, and destroyed at its end.
            fn: takes what the service made, and an item.

        Raises:
            TypeError: `service` is no `Service`.
        """
        return self._using("map", service, checked_function(fn, "fn"))

    @overload
    def filter_using(self, service: Service[S], fn: Callable[[S, T], object]) -> StreamStage[T]: ...

    @overload
    def filter_using(self, service: OpenedLater, fn: Callable[[Any, T], object]) -> StreamStage[T]: ...

    def filter_using(self, service: Service[Any] | OpenedLater, fn: Callable[[Any, T], object]) -> StreamStage[T]:
        """Keep the items for which `fn(service, item)` is true; otherwise as `map_using`."""
        return self._using("filter", service, running(fn, "fn"))

    @overload
    def flat_map_using(self, service: Service[S], fn: Callable[[S, T], Iterable[R] | None]) -> StreamStage[R]: ...

    @overload
    def flat_map_using(self, service: OpenedLater, fn: Callable[[Any, T], Iterable[R] | None]) -> StreamStage[R]: ...

    def flat_map_using(
        self, service: Service[Any] | OpenedLater, fn: Callable[[Any, T], Iterable[Any] | None]
    ) -> StreamStage[Any]:
        """Replace each item by all that `fn(service, item)` gives; otherwise as `map_using`."""
        return self._using("flat_map", service, checked_function(fn, "fn"))

    def map_using_imap(self, name: str, key: Callable[[T], Any], fn: Callable[[T, Any], R]) -> StreamStage[R]:
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

    # Where items are, and who looks at them

    def gather(self, gatherer: Gatherer[T, Any, R]) -> StreamStage[R]:
        """Replace each item by what the calls of `map_concurrent(...)` give for it.

        Args:
            gatherer: one that makes a call for each item; others remember items, as `map_stateful` does.

        Raises:
            UnsupportedError: it is another one.
        """
        if not isinstance(gatherer, Gatherer):
            raise TypeError(f"gatherer must be a Gatherer, not {kind_of(gatherer)}")
        if not isinstance(gatherer.parallel, Calling):
            raise UnsupportedError(
                "gather() of items without an end takes map_concurrent(...) alone: map_stateful(create, fn) keeps a "
                "state beside the items, and window(...) makes groups of them"
            )
        return self._made("gather", self._stream().gather(gatherer))

    def peek(
        self,
        action: Callable[[T], object] | None = None,
        *,
        to_string: Callable[[T], object] | None = None,
        should_log: Callable[[T], object] | None = None,
    ) -> StreamStage[T]:
        """Log each item of this stage at the level INFO, to the logger `dstream.peek.<stage>`.

        A program that has set up no logging prints the lines to stderr.

        The items pass unchanged. It happens in the process that drives the job, for the items of an epoch when its
        tasks are done; once more if the epoch has to run again.

        Args:
            action: what to do with an item instead of logging it, as for streams.
            to_string: makes the text of an item; unset, `str`.
            should_log: says which items are logged; unset, all.

        Raises:
            TypeError: `action` stands beside one of the others.
        """
        return self._step("peek", peeked(self._record.node, action, to_string, should_log))

    def rebalance(self) -> StreamStage[T]:
        """Spread the items over partitions of equal size, where no timestamps and states are in the pipeline.

        Where there are some, items stay where they are, since a watermark could not pass what spreads them.
        """
        return self._step("rebalance", Spread(self._record.node, None, where=call_site()))

    # How stages are made

    if TYPE_CHECKING:

        def _made(self, kind: str, stream: BaseStream[U], *others: AnyStage) -> StreamStage[U]: ...
        def _step(
            self, kind: str, node: Node, others: Iterable[AnyStage] = (), late_to: Sink[Any, Any] | None = None
        ) -> StreamStage[Any]: ...
        def _using(self, action: Action, service: Any, fn: Any) -> StreamStage[Any]: ...
        def _added(self, record: StageRecord) -> StreamStage[Any]: ...


def _of(stage: Any) -> StreamSteps[Any]:
    return stage  # type: ignore[no-any-return]
