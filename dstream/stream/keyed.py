"""`Keyed`: operations by key on one stream and on two, and aggregates as nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, overload

from dstream.arguments import checked_function, kind_of, operation_of_one_input, optional_function, partition_count
from dstream.collectors.groups import groups_of_any_key
from dstream.plan import CoGroup, Join, Map, Node, PartitionBy, Step, call_site, called, here, shown_function
from dstream.plan.operations.keyed import Aggregate
from dstream.plan.steps import PairFunction, one_key
from dstream.spi import AggregateOperation, Collector, identity
from dstream.stream.base import BaseStream
from dstream.stream.pairs import ItemsOf, On, PairsOf, key_functions, other_side
from dstream.stream.shorthands import StreamOf
from dstream.values import Entry

if TYPE_CHECKING:
    from dstream.stream.objects import Stream
    from dstream.values.time import KeyedWindowResult, WindowResult
    from dstream.windows import Window

__all__ = ["Keyed", "aggregated"]


def aggregated(
    upstreams: Sequence[Node],
    operation: AggregateOperation[Any, Any, Any],
    keys: Sequence[Callable[[Any], Any]] | None = None,
    to: Callable[[Any, Any], Any] | None = None,
    *,
    name: str = "aggregate",
    given: str | None = None,
) -> Aggregate:
    """Return the node of an operation's results for its inputs.

    Args:
        upstreams: the last node of each input; one per input of the operation.
        operation: the aggregate operation.
        keys: one function for each input, which returns the key of an item; None: one result for all items.
        to: makes the output of a key and its result; None: an `Entry`.
        name: the method that the user called.
        given: its arguments, abbreviated.
    """
    reductions = [operation.on_input(number) for number in range(operation.arity)]
    if keys is not None:
        # None is a valid key, unlike in `grouping_by`.
        reductions = [groups_of_any_key(key, each) for key, each in zip(keys, reductions, strict=True)]
    step = called(name, repr(operation) if given is None else given)
    return Aggregate(tuple(upstreams), operation, tuple(reductions), keys is not None, to, step=step)


T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")
R = TypeVar("R")
V = TypeVar("V")
W = TypeVar("W")

How = Literal["inner", "left", "right", "full"]
_HOW = ("inner", "left", "right", "full")


class Keyed(BaseStream[T]):
    """A stream whose items may be looked at by their keys.

    Keys are equal as in a dict; None is a key, and every NaN is the same key.
    """

    __slots__ = ()

    def key_by(self, fn: Callable[[T], K]) -> Stream[Entry[K, T]]:
        """Replace each item by `Entry(fn(item), item)`; moves nothing between tasks.

        Example:
            >>> Stream.of("sea", "whale").key_by(len).to_list()
            [Entry(key=3, value='sea'), Entry(key=5, value='whale')]
        """
        arguments = shown_function(checked_function(fn, "fn"))
        node = Map(self._node, _Keying(fn), step=called("key_by", arguments))
        return self._as("Stream", node)

    @overload
    def join(
        self: StreamOf[tuple[K, V]], other: PairsOf[K, W], on: None = None, how: Literal["inner"] = "inner"
    ) -> Stream[Entry[K, tuple[V, W]]]: ...

    @overload
    def join(
        self: StreamOf[tuple[K, V]], other: PairsOf[K, W], on: None = None, *, how: Literal["left"]
    ) -> Stream[Entry[K, tuple[V, W | None]]]: ...

    @overload
    def join(
        self: StreamOf[tuple[K, V]], other: PairsOf[K, W], on: None = None, *, how: Literal["right"]
    ) -> Stream[Entry[K, tuple[V | None, W]]]: ...

    @overload
    def join(
        self: StreamOf[tuple[K, V]], other: PairsOf[K, W], on: None = None, *, how: Literal["full"]
    ) -> Stream[Entry[K, tuple[V | None, W | None]]]: ...

    @overload
    def join(
        self, other: ItemsOf[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["inner"] = "inner"
    ) -> Stream[Entry[K, tuple[T, U]]]: ...

    @overload
    def join(
        self, other: ItemsOf[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["left"]
    ) -> Stream[Entry[K, tuple[T, U | None]]]: ...

    @overload
    def join(
        self, other: ItemsOf[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["right"]
    ) -> Stream[Entry[K, tuple[T | None, U]]]: ...

    @overload
    def join(
        self, other: ItemsOf[U], on: tuple[Callable[[T], K], Callable[[U], K]], how: Literal["full"]
    ) -> Stream[Entry[K, tuple[T | None, U | None]]]: ...

    @overload
    def join(
        self, other: ItemsOf[U], on: Callable[[T | U], K], how: Literal["inner"] = "inner"
    ) -> Stream[Entry[K, tuple[T, U]]]: ...

    @overload
    def join(
        self, other: ItemsOf[U], on: Callable[[T | U], K], how: Literal["left"]
    ) -> Stream[Entry[K, tuple[T, U | None]]]: ...

    @overload
    def join(
        self, other: ItemsOf[U], on: Callable[[T | U], K], how: Literal["right"]
    ) -> Stream[Entry[K, tuple[T | None, U]]]: ...

    @overload
    def join(
        self, other: ItemsOf[U], on: Callable[[T | U], K], how: Literal["full"]
    ) -> Stream[Entry[K, tuple[T | None, U | None]]]: ...

    def join(self, other: Any, on: On = None, how: How = "inner") -> Any:
        """Pair each item with each item of `other` that has an equal key: `Entry(key, (left, right))`.

        The result has no order; the matches of one left item have the order of `other`. The key is that
        of the left item, or of the right one if there is no left.

        On Spark a small side travels to the tasks of the other one, and nothing else moves: `other` of an
        inner or a left join, this stream of an inner or a right join. Otherwise one shuffle brings equal
        keys together. One side may be infinite where the other one is small and no unmatched item of the infinite side
        is kept.

        Args:
            other: the other stream, of the same context; or a map or a list of it, a dict, or a list of the caller's.
            on: None if both are streams of entries, which are joined by their keys, with their values; else
                the key function of both sides, or one for each: `(of_left, of_right)`.
            how: `"inner"`; `"left"`, `"right"` or `"full"` also keep the unmatched items of the left, the right or both
                sides, with None for what is missing.

        Raises:
            IllegalStateError: the streams belong to different contexts; later, a side never ends that must.
            UnstableKeyError: a key has no hash, or is hashed by identity.

        Example:
            >>> crews = Stream.of(("Pequod", 30), ("Rachel", 26))
            >>> seas = Stream.of(("Pequod", "Pacific"))
            >>> crews.join(seas, how="left").to_list()
            [Entry(key='Pequod', value=(30, 'Pacific')), Entry(key='Rachel', value=(26, None))]
            >>> crews.join({"Pequod": "Pacific"}).values().to_list()
            [(30, 'Pacific')]
            >>> Stream.of("sea", "whale").join(Stream.of(3, 4), on=(len, int)).to_list()
            [Entry(key=3, value=('sea', 3))]
        """
        if how not in _HOW:
            raise ValueError(f"how must be one of {', '.join(_HOW)}, not {how!r}")
        right = other_side(other, "join")
        node = Join(self._node, right._node, *key_functions(on), how, step=here())
        return self._combined(BaseStream._kinds["Stream"], node, right)

    @overload
    def cogroup(
        self: StreamOf[tuple[K, V]], other: PairsOf[K, W], on: None = None
    ) -> Stream[Entry[K, tuple[list[V], list[W]]]]: ...

    @overload
    def cogroup(
        self, other: ItemsOf[U], on: tuple[Callable[[T], K], Callable[[U], K]]
    ) -> Stream[Entry[K, tuple[list[T], list[U]]]]: ...

    @overload
    def cogroup(self, other: ItemsOf[U], on: Callable[[T | U], K]) -> Stream[Entry[K, tuple[list[T], list[U]]]]: ...

    def cogroup(self, other: Any, on: On = None) -> Any:
        """Group the items of both streams by key: `Entry(key, (lefts, rights))`.

        Both are lists, in the encounter order of their stream; one of them may be empty. The result has no
        order. All items of a key must fit into the memory of one task: `join` has no such limit. Costs one
        shuffle.

        Args:
            other: as for `join`.
            on: as for `join`.

        Raises:
            IllegalStateError: the streams belong to different contexts; later, one of them never ends.
            UnstableKeyError: a key has no hash, or is hashed by identity.

        Example:
            >>> crews = Stream.of(("Pequod", 30), ("Rachel", 26), ("Pequod", 31))
            >>> seas = Stream.of(("Pequod", "Pacific"))
            >>> crews.cogroup(seas).to_list()
            [Entry(key='Pequod', value=([30, 31], ['Pacific'])), Entry(key='Rachel', value=([26], []))]
        """
        right = other_side(other, "cogroup")
        node = CoGroup(self._node, right._node, *key_functions(on), step=here())
        return self._combined(BaseStream._kinds["Stream"], node, right)

    @overload
    def aggregate_by_window(
        self, window: Window, collector: Collector[T, Any, R], *, timestamp: Callable[[T], int | datetime]
    ) -> Stream[WindowResult[R]]: ...

    @overload
    def aggregate_by_window(
        self,
        window: Window,
        collector: Collector[T, Any, R],
        *,
        timestamp: Callable[[T], int | datetime],
        key: Callable[[T], K],
    ) -> Stream[KeyedWindowResult[K, R]]: ...

    @overload
    def aggregate_by_window(
        self,
        window: Window,
        collector: AggregateOperation[tuple[T], Any, R],
        *,
        timestamp: Callable[[T], int | datetime],
    ) -> Stream[WindowResult[R]]: ...

    @overload
    def aggregate_by_window(
        self,
        window: Window,
        collector: AggregateOperation[tuple[T], Any, R],
        *,
        timestamp: Callable[[T], int | datetime],
        key: Callable[[T], K],
    ) -> Stream[KeyedWindowResult[K, R]]: ...

    def aggregate_by_window(self, window: Window, collector: Any, *, timestamp: Any, key: Any = None) -> Any:
        """Reduce the items of each window of event time with a collector, for each key if there are keys.

        Windows are those of pipelines: `tumbling(size)`, `sliding(size, by=...)` and `session(timeout)` of
        `dstream.windows`. All items count, however late they are in the stream. Results of a key are in the order of
        time, and keys in no order; windows without items have no result.

        Costs one shuffle, of the containers of each key and task. The containers of one key must fit into the memory of
        a task; without `key`, so must those of all windows.

        Args:
            window: the kind and size of the windows.
            collector: a collector, or an aggregate operation of one input; sessions need its `combine`.
            timestamp: returns the time of an item: milliseconds since 1970, or a datetime with a time zone.
            key: returns the key of an item; unset, all items share the windows.

        Raises:
            TypeError: an argument is of another kind, or the collector cannot combine what sessions need combined.
            ValueError: the window has early results, which a bounded stream does not have.
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.

        Example:
            >>> from collectors import counting
            >>> from dstream.windows import session
            >>> visits = Stream.of(("Ann", 0), ("Bob", 500), ("Ann", 900), ("Ann", 5000))
            >>> by_person = {"timestamp": lambda visit: visit[1], "key": lambda visit: visit[0]}
            >>> sessions = visits.aggregate_by_window(session(1000), counting(), **by_person).to_list()
            >>> sorted((each.key, each.start, each.end, each.result) for each in sessions)
            [('Ann', 0, 1900, 2), ('Ann', 5000, 6000, 1), ('Bob', 500, 1500, 1)]
        """
        operation = operation_of_one_input(collector, "collector")
        return self._as("Stream", _windowed(self._node, window_of(window), operation, timestamp, key))

    def partition_by(self, n: int, key: Callable[[T], Any] | None = None) -> Self:
        """Bring the items of equal keys into the same one of `n` partitions.

        The key is `key(item)`; without a function the key of an entry, or else the item itself. Inside a
        partition the items keep their order; the stream as a whole has none. Costs a shuffle. The local
        engine has one partition, as has a pipeline that is `sequential()`.

        Raises:
            UnstableKeyError: a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of("sea", "ship", "sea").partition_by(2).distinct().count()
            2
        """
        node = PartitionBy(self._node, partition_count(n, "n"), optional_function(key, "key"), step=here())
        return self._then(node)


class _Keying:
    """Function that makes an entry of an item and its key."""

    around: ClassVar[PairFunction] = "key_by"

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, item: Any) -> Entry[Any, Any]:
        return Entry(self.fn(item), item)


def _windowed(upstream: Node, window: Window, operation: AggregateOperation[Any, Any, Any], fn: Any, key: Any) -> Node:
    from dstream.operators.windows.bounded import bounded_windows  # Imported lazily: few programs need windows.
    from dstream.plan.operations.calls import FlatMap
    from dstream.plan.timestamps import InstantOf

    instants, keys = InstantOf(checked_function(fn, "timestamp")), optional_function(key, "key")
    windows = bounded_windows(window, operation, instants, keys is not None)
    arguments = f"{window!r}, {operation!r}, timestamp={shown_function(fn)}"
    arguments += "" if keys is None else f", key={shown_function(keys)}"
    every = [one_key if keys is None else keys]
    results = aggregated(
        [upstream], windows.operation, every, windows.results, name="aggregate_by_window", given=arguments
    )
    # The windows of a key arrive as a list. A step without a label is shown nowhere.
    return FlatMap(results, identity, step=Step("", call_site()))


def window_of(value: Any) -> Window:
    """Return a definition of windows if it is one.

    Raises:
        TypeError: it is something else.
    """
    from dstream.windows import FrameWindow, SessionWindow  # Imported lazily: few programs need windows.

    if isinstance(value, FrameWindow | SessionWindow):
        return value
    raise TypeError(
        f"window must be one of dstream.windows, tumbling(size), sliding(size, by=...) or session(timeout), not "
        f"{kind_of(value)}"
    )
