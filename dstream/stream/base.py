"""`BaseStream`: what the streams of objects and of numbers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Self, TypeVar, overload

import collectors  # As a module: whoever imports it first is loading it while this module loads.
from dstream.errors import SerializationError
from dstream.plan import (
    Collect,
    Concat,
    Configure,
    Distinct,
    DropWhile,
    Filter,
    FlatMap,
    ForEachPartition,
    Limit,
    Map,
    MapMulti,
    Node,
    Parallel,
    Peek,
    Skip,
    TakeWhile,
    Unordered,
    call_site,
    check,
    describe,
    parallelism,
)
from dstream.spi import Collector, Engine, Reducer, Runtime
from dstream.stream.arguments import count, function, kind_of, optional_function, partition_count
from dstream.stream.lifetime import Lifetime
from dstream.stream.planned import PLANNED, refuse
from dstream.stream.runtime import default_runtime, shared
from dstream.stream.terminals import folding, folding_from, present
from dstream.values import Optional

__all__ = ["BaseStream"]

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
U = TypeVar("U")


class BaseStream(Generic[T]):
    """A lazy chain of operations. Nothing runs before a terminal operation, which runs the whole plan.

    Streams are immutable: every operation returns a new one, and a stream may be used again, which
    runs its plan again. A closed stream may not.
    """

    __slots__ = ("_lifetime", "_node", "_runtime")

    _kinds: ClassVar[dict[str, type[BaseStream[Any]]]] = {}
    """The stream types by name: they make each other, and no module may import in a circle."""

    def __init_subclass__(cls) -> None:
        BaseStream._kinds[cls.__name__] = cls

    def __init__(self, node: Node, runtime: Runtime | None, lifetime: Lifetime | None = None) -> None:
        self._node = node
        self._runtime = runtime
        self._lifetime = lifetime or Lifetime()

    # Lazy operations

    def filter(self, predicate: Callable[[T], object]) -> Self:
        """Keep the items that satisfy `predicate`.

        Example:
            >>> Stream.of(1, 2, 3, 4).filter(lambda n: n % 2 == 0).to_list()
            [2, 4]
        """
        return self._then(Filter(self._node, function(predicate, "predicate"), where=call_site()))

    def distinct(self, key: Callable[[T], Any] | None = None) -> Self:
        """Keep one item of each key, the first one if the stream is ordered.

        The key is `key(item)`, or the item itself. Keys are equal as in a dict, and every NaN is one
        key. Costs a shuffle of the keys' first items, two if the order is to be kept.

        Raises:
            UnstableKeyError: a key has no hash, or one that comes from its identity.

        Example:
            >>> Stream.of("b", "a", "B", "b").distinct(key=str.lower).to_list()
            ['b', 'a']
        """
        return self._then(Distinct(self._node, optional_function(key, "key"), where=call_site()))

    def peek(self, action: Callable[[T], object]) -> Self:
        """Let `action` see each item that passes here.

        The action runs in the caller's process, once for each item that passed this step, in
        encounter order, before the terminal operation returns.

        Example:
            >>> Stream.of(1, 2, 3).peek(print).limit(2).to_list()
            1
            2
            [1, 2]
        """
        return self._then(Peek(self._node, function(action, "action"), where=call_site()))

    def limit(self, n: int) -> Self:
        """Keep the first `n` items; of an unordered stream, any `n`.

        Reading stops as soon as they are found, also inside a partition.

        Example:
            >>> Stream.iterate(1, lambda n: n * 2).limit(5).to_list()
            [1, 2, 4, 8, 16]
        """
        return self._then(Limit(self._node, count(n, "n"), where=call_site()))

    def skip(self, n: int) -> Self:
        """Leave out the first `n` items; of an unordered stream, any `n`.

        Example:
            >>> Stream.of(1, 2, 3).skip(2).to_list()
            [3]
        """
        return self._then(Skip(self._node, count(n, "n"), where=call_site()))

    def take_while(self, predicate: Callable[[T], object]) -> Self:
        """Keep items up to the first one that fails `predicate`: the longest prefix.

        Reading stops there, also inside a partition.

        Example:
            >>> Stream.of(1, 2, 9, 3).take_while(lambda n: n < 5).to_list()
            [1, 2]
        """
        return self._then(TakeWhile(self._node, function(predicate, "predicate"), where=call_site()))

    def drop_while(self, predicate: Callable[[T], object]) -> Self:
        """Leave out items up to the first one that fails `predicate`: the longest prefix.

        Example:
            >>> Stream.of(1, 2, 9, 3).drop_while(lambda n: n < 5).to_list()
            [9, 3]
        """
        return self._then(DropWhile(self._node, function(predicate, "predicate"), where=call_site()))

    def unordered(self) -> Self:
        """Release the items from their encounter order, which makes `limit`, `skip`, `distinct` cheaper."""
        return self._then(Unordered(self._node, where=call_site()))

    def parallel(self, n: int | None = None) -> Self:
        """Run the whole pipeline in `n` partitions, or in as many as the data and the cores suggest.

        The last call of `parallel` or `sequential` decides for the whole pipeline.
        """
        partitions = None if n is None else partition_count(n)
        return self._then(Parallel(self._node, partitions, where=call_site()))

    def sequential(self) -> Self:
        """Run the whole pipeline in one partition, in order."""
        return self._then(Parallel(self._node, 1, where=call_site()))

    def is_parallel(self) -> bool:
        """Say whether the pipeline may run in several partitions."""
        return parallelism(self._node) != 1

    def configure(self, config: Mapping[str, str]) -> Self:
        """Run the pipeline with these settings of the engine; later ones win.

        Args:
            config: names and values of Spark SQL settings; the local engine has none and ignores them.
        """
        if not isinstance(config, Mapping):
            raise TypeError(f"config must be a mapping of names to values, not {kind_of(config)}")
        settings = {str(name): str(value) for name, value in config.items()}
        return self._then(Configure(self._node, settings, where=call_site()))

    def __add__(self, other: Self) -> Self:
        """Return the items of this stream followed by those of `other`."""
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._concat(other)

    # Terminal operations: walking over the items

    def for_each(self, action: Callable[[T], object]) -> None:
        """Run `action` on each item, in the caller's process.

        Items arrive partition by partition, never all at once. Use `for_each_partition` to run
        something on the workers.

        Example:
            >>> Stream.of("a", "b").for_each(print)
            a
            b
        """
        self.for_each_ordered(action)

    def for_each_ordered(self, action: Callable[[T], object]) -> None:
        """Run `action` on each item in encounter order, in the caller's process."""
        function(action, "action")
        for item in self:
            action(item)

    def for_each_partition(self, action: Callable[[Iterator[T]], object]) -> None:
        """Run `action` on an iterator over each partition, on the worker that has it.

        A task that fails may run again, so the action should be safe to repeat.
        """
        node = ForEachPartition(self._node, function(action, "action"), where=call_site())
        self._engine(self._node, needs_end=True).for_each_partition(node)

    def __iter__(self) -> Iterator[T]:
        """Give the items lazily, in encounter order, with a bounded number read ahead."""
        return self._engine(self._node).iterate(self._node)

    def iterator(self) -> Iterator[T]:
        """Give the items lazily, as `iter(stream)`."""
        return iter(self)

    def partitions(self) -> list[Iterator[T]]:
        """Return one lazy iterator for each partition, in encounter order."""
        return self._engine(self._node).partitions(self._node)

    def to_list(self) -> list[T]:
        """Return all items in encounter order; they must fit into the caller's memory."""
        return self._engine(self._node, needs_end=True).gather_all(self._node)

    @overload
    def to_array(self) -> list[T]: ...

    @overload
    def to_array(self, factory: Callable[[list[T]], R]) -> R: ...

    def to_array(self, factory: Callable[[list[T]], Any] = list) -> Any:
        """Return `factory(items)`, for example `numpy.array(items)`.

        Example:
            >>> Stream.of(1, 2).to_array(tuple)
            (1, 2)
        """
        return function(factory, "factory")(self.to_list())

    # Terminal operations: reductions

    @overload
    def reduce(self, op: Callable[[T, T], T], /) -> Optional[T]: ...

    @overload
    def reduce(self, identity: T, op: Callable[[T, T], T], /) -> T: ...

    @overload
    def reduce(self, identity: U, accumulator: Callable[[U, T], U], combiner: Callable[[U, U], U], /) -> U: ...

    def reduce(self, *args: Any) -> Any:
        """Fold the items in encounter order with an associative function.

        `reduce(op)` gives an `Optional`. `reduce(identity, op)` is `functools.reduce(op, items,
        identity)`: the identity is folded in once, at the front. `reduce(identity, accumulator,
        combiner)` starts each partition from a copy of the identity, which must therefore change
        nothing, and combines the results in order.

        Example:
            >>> Stream.of("a", "b", "c").reduce("", lambda left, right: left + right)
            'abc'
        """
        match args:
            case (op,):
                return present(self._collect(folding(function(op, "op")), "reduce"), "reduce")
            case (identity, op):
                held = self._collect(folding(function(op, "op")), "reduce")
                return op(identity, held[0]) if held else identity
            case (identity, accumulator, combiner):
                function(accumulator, "accumulator"), function(combiner, "combiner")
                return self._collect(folding_from(identity, accumulator, combiner), "reduce")
        raise TypeError(f"reduce() takes 1 to 3 arguments, not {len(args)}")

    @overload
    def collect(self, collector: Collector[T, A, R], /) -> R: ...

    @overload
    def collect(self, reducer: Reducer[T, R], /) -> R: ...

    @overload
    def collect(
        self,
        supplier: Callable[[], A],
        accumulator: Callable[[A, T], A | None],
        combiner: Callable[[A, A], A | None],
        /,
    ) -> A: ...

    def collect(self, *args: Any) -> Any:
        """Reduce the items with a collector, or write them into a distributed collection with a reducer.

        Each partition accumulates into a container of its own; the containers are combined in
        encounter order; the finisher runs once.

        Example:
            >>> from collectors import grouping_by, counting
            >>> Stream.of("apple", "ant", "bee").collect(grouping_by(lambda word: word[0], counting()))
            {'a': 2, 'b': 1}
            >>> Stream.of(1, 2).collect(list, list.append, list.extend)
            [1, 2]
        """
        match args:
            case (Collector() as collector,):
                return self._collect(collector, "collect")
            case (Reducer() as reducer,):
                self._engine(self._node, needs_end=True)
                return reducer.reduce_into(self._runtime or default_runtime(), self._node)
            case (supplier, accumulator, combiner):
                function(supplier, "supplier"), function(accumulator, "accumulator"), function(combiner, "combiner")
                return self._collect(Collector(supplier, accumulator, combiner), "collect")
        raise TypeError("collect() takes a Collector, a Reducer, or the functions (supplier, accumulator, combiner)")

    def count(self) -> int:
        """Return how many items there are.

        Example:
            >>> Stream.of("a", "b").count()
            2
        """
        return self._collect(collectors.counting(), "count")

    # Terminal operations: short circuits

    def any_match(self, predicate: Callable[[T], object]) -> bool:
        """Say whether any item satisfies `predicate`; False for no items. Stops at the first that does."""
        return self._finds(predicate, "any_match")

    def all_match(self, predicate: Callable[[T], object]) -> bool:
        """Say whether every item satisfies `predicate`; True for no items. Stops at the first that does not."""
        return not self._finds(_Negated(function(predicate, "predicate")), "all_match")

    def none_match(self, predicate: Callable[[T], object]) -> bool:
        """Say whether no item satisfies `predicate`; True for no items. Stops at the first that does."""
        return not self._finds(predicate, "none_match")

    def find_first(self) -> Optional[T]:
        """Return the first item, reading no further.

        Raises:
            NullElementError: the item is None.

        Example:
            >>> Stream.iterate(0, lambda n: n + 1).filter(lambda n: n > 5).find_first()
            Optional[6]
        """
        return present(self._first(self._node), "find_first")

    def find_any(self) -> Optional[T]:
        """Return some item, reading no further: the first one if the stream is ordered."""
        return present(self._first(self._node), "find_any")

    # Closing

    def on_close(self, handler: Callable[[], object]) -> Self:
        """Run `handler` when the stream, or one made from it, is closed; all handlers run, in order."""
        lifetime = Lifetime((self._lifetime,), function(handler, "handler"))
        self._lifetime.check_open()
        return type(self)(self._node, self._runtime, lifetime)

    def close(self) -> None:
        """Run the handlers of `on_close` in order, all of them; the first exception is raised at the end.

        A closed stream cannot be used again, nor can those made from it. A second `close` does nothing.
        """
        self._lifetime.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _traverse_and_close(self) -> Iterator[T]:
        """Give the items and close this stream at the end, as `flat_map` does with the streams it is given."""
        with self:
            yield from self

    def __repr__(self) -> str:
        return describe(self._node)

    if not TYPE_CHECKING:  # A type checker would take it for every name.

        def __getattr__(self, name: str) -> NoReturn:
            if name in PLANNED:
                refuse(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> NoReturn:
        raise SerializationError(
            f"a stream cannot be used inside a function that runs on the workers: {describe(self._node)}; "
            "collect it before, and let the function capture the result"
        )

    # How streams are made from streams

    def _then(self, node: Node) -> Self:
        """Return a stream of the same type that ends in `node`."""
        self._lifetime.check_open()
        return type(self)(node, self._runtime, Lifetime((self._lifetime,)))

    def _as(self, kind: str, node: Node) -> Any:
        """Return a stream of another type, given by its name, that ends in `node`."""
        self._lifetime.check_open()
        return BaseStream._kinds[kind](node, self._runtime, Lifetime((self._lifetime,)))

    def _map(self, fn: Callable[[T], Any], kind: type | None, name: str) -> Map:
        return Map(self._node, function(fn, "fn"), kind, name, where=call_site())

    def _flat_map(self, fn: Callable[[T], Any], kind: type | None, name: str) -> FlatMap:
        return FlatMap(self._node, function(fn, "fn"), kind, name, where=call_site())

    def _map_multi(self, fn: Callable[[T, Callable[[Any], None]], object], kind: type | None, name: str) -> MapMulti:
        return MapMulti(self._node, function(fn, "fn"), kind, name, where=call_site())

    def _concat(self, other: Self) -> Self:
        if not isinstance(other, type(self)):
            raise TypeError(f"concat() takes two streams of one type, not {type(self).__name__} and {kind_of(other)}")
        runtime = shared(self._runtime, other._runtime)
        for lifetime in (self._lifetime, other._lifetime):
            lifetime.check_open()
        node = Concat((self._node, other._node), where=call_site())
        return type(self)(node, runtime, Lifetime((self._lifetime, other._lifetime)))

    # How plans are run

    def _engine(self, node: Node, *, needs_end: bool = False) -> Engine:
        self._lifetime.check_open_from_the_source()
        check(node, needs_end=needs_end)
        return (self._runtime or default_runtime()).running_engine()

    def _collect(self, collector: Collector[Any, Any, R], name: str) -> R:
        node = Collect(self._node, collector, name, where=call_site())
        result: R = self._engine(self._node, needs_end=True).collect(node)
        return result

    def _finds(self, predicate: Callable[[T], object], name: str) -> bool:
        matching = Filter(self._node, function(predicate, "predicate"), name, where=call_site())
        return bool(self._first(matching))

    def _first(self, node: Node) -> list[T]:
        limited = Limit(node, 1, where=call_site())
        return list(islice(self._engine(limited).iterate(limited), 1))


class _Negated(Generic[T]):
    """A predicate that holds where `predicate` does not."""

    def __init__(self, predicate: Callable[[T], object]) -> None:
        self.predicate = predicate
        self.__qualname__ = getattr(predicate, "__qualname__", type(predicate).__qualname__)

    def __call__(self, item: T) -> bool:
        return not self.predicate(item)
