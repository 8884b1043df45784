"""`Stream`: a stream of objects, and `StreamBuilder`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from dstream.arguments import (
    checked_function,
    choice,
    kind_of,
    optional_function,
    partition_count,
    refuse_no_iterable,
    running_function,
    sorting_hints,
)
from dstream.connectors.memory import Generate, Items, Iterate
from dstream.errors import IllegalStateError
from dstream.failures import shown
from dstream.plan import Node, Read, Sorted, Step, call_site, here, shown_function, unchanged
from dstream.spi import ProcessorSource, Runtime, Source
from dstream.stream.ends import EndsOfPairs, Tabular
from dstream.stream.entries import Entries
from dstream.stream.error_handling import Recovering
from dstream.stream.keyed import Keyed
from dstream.stream.neighbours import Gathering
from dstream.stream.pairs import Paired
from dstream.stream.reductions import extreme
from dstream.stream.runtime import delivery_of
from dstream.stream.shorthands import Shorthands
from dstream.values import Optional

if TYPE_CHECKING:
    from dstream.stream.numeric import DoubleStream, IntStream, LongStream

__all__ = ["Stream", "StreamBuilder", "from_iterable", "iteration", "of_nullable", "read", "shown_call"]


T = TypeVar("T")
S = TypeVar("S")


class StreamBuilder(Generic[T, S]):
    """Collects items and makes a stream of them, once."""

    def __init__(self, make: Callable[[list[T]], S], checked: Callable[[T], T] = unchanged) -> None:
        self._make = make
        self._checked = checked
        self._items: list[T] = []
        self._is_built = False

    def add(self, item: T) -> Self:
        """Append `item` and return this builder."""
        self.accept(item)
        return self

    def accept(self, item: T) -> None:
        """Append `item`.

        Raises:
            IllegalStateError: the stream was built already.
            TypeError: the stream is one of numbers and `item` is none of its kind.
        """
        self._check_open()
        # Checked now, while the user's line is on the stack, and not when a task reads it.
        self._items.append(self._checked(item))

    def build(self) -> S:
        """Return the stream of the items.

        Raises:
            IllegalStateError: the stream was built already.
        """
        self._check_open()
        self._is_built = True
        return self._make(self._items)

    def _check_open(self) -> None:
        if self._is_built:
            raise IllegalStateError("the stream was built already; a builder builds once")


U = TypeVar("U")
U2 = TypeVar("U2")
U3 = TypeVar("U3")


class Stream(Gathering[T], Keyed[T], Paired[T], Entries[T], Shorthands[T], Recovering[T], EndsOfPairs[T], Tabular[T]):
    """A stream of objects: `java.util.stream.Stream` over distributed data.

    The static factories make streams on the default context, which opens when the first terminal
    operation needs it; `Context.stream` and `Context.read` make them on a context of your choice.

    Example:
        >>> Stream.of("the whale", "the sea").flat_map(str.split).distinct().to_list()
        ['the', 'whale', 'sea']
    """

    __slots__ = ()

    # Getting a stream

    @staticmethod
    def of(*items: U) -> Stream[U]:
        """Return a stream of the arguments."""
        return read(Items(items), f"Stream.of({_abbreviated(items)})")

    @staticmethod
    def empty() -> Stream[Any]:
        """Return a stream of nothing."""
        return read(Items(()), "Stream.empty()")

    @staticmethod
    def of_nullable(item: U | None) -> Stream[U]:
        """Return a stream of `item`, or of nothing if it is None."""
        return of_nullable(item)

    @staticmethod
    def from_iterable(iterable: Iterable[U], partitions: int | None = None) -> Stream[U]:
        """Return a stream of the items of `iterable`.

        A list is read when a terminal operation runs, so later changes are seen. An iterator that can
        be read only once is read as far as needed, and what was read is buffered for the next run.

        Args:
            iterable: a list, a range, a generator; a set makes an unordered stream.
            partitions: the number of parts to divide it into; by default the number of cores.
        """
        return from_iterable(iterable, partitions, None)

    @staticmethod
    def builder() -> StreamBuilder[Any, Stream[Any]]:
        """Return a builder, which collects items and makes a stream of them.

        Example:
            >>> Stream.builder().add(1).add(2).build().to_list()
            [1, 2]
        """
        return StreamBuilder(lambda items: read(Items(items), "Stream.builder().build()"))

    @overload
    @staticmethod
    def iterate(seed: U, next: Callable[[U], U], /) -> Stream[U]: ...  # type: ignore[overload-overlap]  # As below.

    @overload
    @staticmethod
    def iterate(  # type: ignore[overload-overlap]  # As below.
        seed: U, has_next: Callable[[U], object], next: Callable[[U], U], /
    ) -> Stream[U]: ...

    # Pyright takes `(0, 1)` for a pair of that 0 and that 1, whatever follows them, unless an overload names the
    # members.
    @overload
    @staticmethod
    def iterate(seed: tuple[U, U2], next: Callable[[tuple[U, U2]], tuple[U, U2]], /) -> Stream[tuple[U, U2]]: ...

    @overload
    @staticmethod
    def iterate(
        seed: tuple[U, U2],
        has_next: Callable[[tuple[Any, Any]], object],
        next: Callable[[tuple[U, U2]], tuple[U, U2]],
        /,
    ) -> Stream[tuple[U, U2]]: ...

    @overload
    @staticmethod
    def iterate(
        seed: tuple[U, U2, U3], next: Callable[[tuple[U, U2, U3]], tuple[U, U2, U3]], /
    ) -> Stream[tuple[U, U2, U3]]: ...

    @overload
    @staticmethod
    def iterate(
        seed: tuple[U, U2, U3],
        has_next: Callable[[tuple[Any, Any, Any]], object],
        next: Callable[[tuple[U, U2, U3]], tuple[U, U2, U3]],
        /,
    ) -> Stream[tuple[U, U2, U3]]: ...

    @staticmethod
    def iterate(seed: Any, *functions: Any) -> Stream[Any]:
        """Return `seed, next(seed), next(next(seed)), ...`, forever or while `has_next(item)` is true.

        Ordered; made in one task.

        Example:
            >>> Stream.iterate(1, lambda n: n < 20, lambda n: n * 3).to_list()
            [1, 3, 9]
        """
        return read(iteration(seed, functions), f"Stream.iterate({shown_call(seed, functions)})")

    @staticmethod
    def generate(supplier: Callable[[], U]) -> Stream[U]:
        """Return an infinite unordered stream of the results of `supplier`, in parallel."""
        return read(Generate(checked_function(supplier, "supplier")), f"Stream.generate({shown_function(supplier)})")

    @staticmethod
    def concat(*streams: Stream[U]) -> Stream[U]:
        """Return the items of each stream, one stream after another; ordered if all of them are.

        Moves nothing: the partitions of one stream are appended to those of another.

        Raises:
            IllegalStateError: they belong to different contexts.

        Example:
            >>> Stream.concat(Stream.of("a"), Stream.empty(), Stream.of("b", "c")).to_list()
            ['a', 'b', 'c']
        """
        if not streams:
            return Stream.empty()
        if not isinstance(streams[0], Stream):
            raise TypeError(f"concat() takes streams, not {kind_of(streams[0])}")
        return streams[0]._concat(*streams[1:])

    # Lazy operations

    def map(self, fn: Callable[[T], U]) -> Stream[U]:
        """Replace each item by `fn(item)`; a None result is kept.

        Example:
            >>> Stream.of("a", "bb").map(len).to_list()
            [1, 2]
        """
        return self._stream(self._map(fn, None, "map"))

    def map_to_obj(self, fn: Callable[[T], U]) -> Stream[U]:
        """Replace each item by `fn(item)`, as `map`."""
        return self._stream(self._map(fn, None, "map_to_obj"))

    def map_to_int(self, fn: Callable[[T], int]) -> IntStream:
        """Replace each item by the int `fn(item)`; anything else is a `TypeError` that names it.

        Example:
            >>> Stream.of("a", "bb").map_to_int(len).sum()
            3
        """
        return self._as("IntStream", self._map(fn, int, "map_to_int"))

    def map_to_long(self, fn: Callable[[T], int]) -> LongStream:
        """Replace each item by the int `fn(item)`; anything else is a `TypeError` that names it."""
        return self._as("LongStream", self._map(fn, int, "map_to_long"))

    def map_to_double(self, fn: Callable[[T], float]) -> DoubleStream:
        """Replace each item by the float of the number `fn(item)`; anything else is a `TypeError` that names it."""
        return self._as("DoubleStream", self._map(fn, float, "map_to_double"))

    def flat_map(self, fn: Callable[[T], Iterable[U] | None]) -> Stream[U]:
        """Replace each item by the items of `fn(item)`: any iterable or stream; None is an empty one.

        Example:
            >>> Stream.of("to be", "or not").flat_map(str.split).to_list()
            ['to', 'be', 'or', 'not']
        """
        return self._stream(self._flat_map(fn, None, "flat_map"))

    def flat_map_to_int(self, fn: Callable[[T], Iterable[int] | None]) -> IntStream:
        """Replace each item by the ints of `fn(item)`."""
        return self._as("IntStream", self._flat_map(fn, int, "flat_map_to_int"))

    def flat_map_to_long(self, fn: Callable[[T], Iterable[int] | None]) -> LongStream:
        """Replace each item by the ints of `fn(item)`."""
        return self._as("LongStream", self._flat_map(fn, int, "flat_map_to_long"))

    def flat_map_to_double(self, fn: Callable[[T], Iterable[float] | None]) -> DoubleStream:
        """Replace each item by the numbers of `fn(item)`, as floats."""
        return self._as("DoubleStream", self._flat_map(fn, float, "flat_map_to_double"))

    @overload
    def map_multi(self, fn: Callable[[T, Callable[[U], None]], object]) -> Stream[U]: ...

    @overload  # For lambdas: no type checker infers what they emit.
    def map_multi(self, fn: Callable[[T, Callable[[Any], None]], object]) -> Stream[Any]: ...

    def map_multi(self, fn: Callable[[T, Callable[[Any], None]], object]) -> Stream[Any]:
        """Replace each item by those that `fn(item, emit)` passes to `emit`, from none to many.

        Example:
            >>> Stream.of(1, 2, 3).map_multi(lambda n, emit: [emit(n) for _ in range(n)]).to_list()
            [1, 2, 2, 3, 3, 3]
        """
        return self._stream(self._map_multi(fn, None, "map_multi"))

    def map_multi_to_int(self, fn: Callable[[T, Callable[[int], None]], object]) -> IntStream:
        """Replace each item by the ints that `fn(item, emit)` emits."""
        return self._as("IntStream", self._map_multi(fn, int, "map_multi_to_int"))

    def map_multi_to_long(self, fn: Callable[[T, Callable[[int], None]], object]) -> LongStream:
        """Replace each item by the ints that `fn(item, emit)` emits."""
        return self._as("LongStream", self._map_multi(fn, int, "map_multi_to_long"))

    def map_multi_to_double(self, fn: Callable[[T, Callable[[float], None]], object]) -> DoubleStream:
        """Replace each item by the numbers that `fn(item, emit)` emits, as floats."""
        return self._as("DoubleStream", self._map_multi(fn, float, "map_multi_to_double"))

    @sorting_hints
    def sorted(self, key: Callable[[T], Any] | None = None, *, reverse: bool = False) -> Stream[T]:
        """Sort the items as `sorted()` does: stable, also in reverse. The stream is ordered from this step on.

        In parallel: the items are cut into ranges of keys, by a sample, and each range is sorted
        where it was computed, on disk past the memory bound. `functools.cmp_to_key` serves comparators.
        `sorted().limit(n)` keeps `n` items for each partition and sorts nothing else.

        A key that is NaN sorts last.

        Raises:
            TypeError: two keys cannot be compared.

        Example:
            >>> Stream.of("bb", "a", "cc").sorted(key=len).to_list()
            ['a', 'bb', 'cc']
        """
        node = Sorted(self._node, optional_function(key, "key"), choice(reverse, "reverse"), step=here())
        return self._then(node)

    # Terminal operations

    def min(self, key: Callable[[T], Any] | None = None) -> Optional[T]:
        """Return the least item, the first of equals.

        Raises:
            NullElementError: the least item is None.
            TypeError: two keys cannot be compared.

        Example:
            >>> Stream.of("bb", "a", "c").min(key=len)
            Optional['a']
        """
        return self._collect_present(extreme(min, optional_function(key, "key")), "min", _key(key))

    def max(self, key: Callable[[T], Any] | None = None) -> Optional[T]:
        """Return the greatest item, the first of equals.

        Raises:
            NullElementError: the greatest item is None.
            TypeError: two keys cannot be compared.
        """
        return self._collect_present(extreme(max, optional_function(key, "key")), "max", _key(key))

    def _stream(self, node: Node) -> Stream[Any]:
        return self._as("Stream", node)


def _key(key: Callable[[Any], Any] | None) -> str:
    return "" if key is None else f"key={shown_function(key)}"


def read(source: Source[U] | ProcessorSource[U], name: str = "read(...)", runtime: Runtime | None = None) -> Stream[U]:
    """Return a stream of the items of `source` on a context, the default one if it is None."""
    if isinstance(source, ProcessorSource):
        from dstream.stream.processors import emitted  # lazily: few programs have processors

        return Stream(emitted(source, "read", call_site()), runtime)
    return Stream(Read(source, delivery_of(source, runtime), step=Step(name, call_site())), runtime)


def from_iterable(iterable: Iterable[U], partitions: int | None, runtime: Runtime | None) -> Stream[U]:
    """Return a stream of the items of `iterable` on a context, the default one if it is None."""
    refuse_no_iterable(iterable)
    parts = None if partitions is None else partition_count(partitions)
    return read(Items(iterable, parts), f"stream({type(iterable).__name__})", runtime)


def of_nullable(item: U | None) -> Stream[U]:
    """Return a stream of `item`, or of nothing if it is None."""
    items: tuple[U, ...] = () if item is None else (item,)
    return read(Items(items), f"Stream.of_nullable({shown(item)})")


def iteration(seed: Any, functions: tuple[Any, ...]) -> Iterate[Any]:
    """Return the source of `iterate(seed, next)` or `iterate(seed, has_next, next)`."""
    match functions:
        case (following,):
            return Iterate(seed, checked_function(following, "next"))
        case (has_next, following):
            return Iterate(seed, checked_function(following, "next"), running_function(has_next, "has_next"))
    raise TypeError(f"iterate() takes (seed, next) or (seed, has_next, next), not {1 + len(functions)} arguments")


def shown_call(seed: Any, functions: tuple[Any, ...]) -> str:
    """Return the arguments of `iterate` as its user would write them."""
    return ", ".join([shown(seed), *map(shown_function, functions)])


def _abbreviated(items: tuple[Any, ...]) -> str:
    shown_items = ", ".join(shown(item) for item in items[:3])
    return shown_items if len(items) <= 3 else f"{shown_items}, ... {len(items)} items"


def _of_optional(optional: tuple[U, ...]) -> Stream[U]:
    return read(Items(optional), f"Optional.stream({_abbreviated(optional)})")


Optional._make_stream = _of_optional
