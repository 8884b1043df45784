"""`Entries`: operations on streams of entries, whose results keep their partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from dstream import collectors
from dstream.arguments import (
    checked_function,
    count,
    kind_of,
    operation_of_one_input,
    optional_function,
    running_function,
)
from dstream.base.functions import refuse_awaitable
from dstream.plan import FlatMap, Map, called, shown_function
from dstream.plan.operations.keyed import Aggregate
from dstream.plan.steps import PairFunction
from dstream.spi import AggregateOperation, Collector
from dstream.stream.base import BaseStream
from dstream.stream.shorthands import StreamOf
from dstream.values import Entry
from dstream.values.entries import as_entry, key_of, value_of

if TYPE_CHECKING:
    from dstream.stream.objects import Stream

__all__ = ["Entries"]


T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class Entries(BaseStream[T]):
    """A stream of entries, or of pairs `(key, value)`, which pass for entries.

    Operations by key return a stream of entries, one per key; nothing is sent to the caller. Tasks first
    combine their values of each key, and one shuffle brings their containers together; past the memory bound
    they are written to disk. The result has no order. Written into a map as it is, `collect(to_imap(name))`, it takes
    no second shuffle. Keys are equal as in a dict; None is a key, and every NaN is the same key.
    """

    __slots__ = ()

    # One entry at a time

    def keys(self: StreamOf[tuple[K, Any]]) -> Stream[K]:
        """Replace each entry by its key; moves nothing between tasks.

        A stream that has keys is no mapping: `collect(to_map(...))` makes a dict, and `dict(stream)` does not.

        Example:
            >>> Stream.of(("Pequod", 30), ("Rachel", 26)).keys().to_list()
            ['Pequod', 'Rachel']
        """
        return _mapped(self, key_of, "keys", "")

    def values(self: StreamOf[tuple[Any, V]]) -> Stream[V]:
        """Replace each entry by its value; moves nothing between tasks.

        Example:
            >>> Stream.of(("Pequod", 30), ("Rachel", 26)).values().to_list()
            [30, 26]
        """
        return _mapped(self, value_of, "values", "")

    def swap(self: StreamOf[tuple[K, V]]) -> Stream[Entry[V, K]]:
        """Replace each entry by one with key and value exchanged; moves nothing between tasks.

        Example:
            >>> Stream.of(("Pequod", 30)).swap().to_list()
            [Entry(key=30, value='Pequod')]
        """
        return _mapped(self, _Swapping(), "swap", "")

    def map_values(self: StreamOf[tuple[K, V]], fn: Callable[[V], R]) -> Stream[Entry[K, R]]:
        """Replace the value of each entry by `fn(value)`; the key does not change. Moves nothing between tasks.

        Example:
            >>> Stream.of(("Pequod", 30), ("Rachel", 26)).map_values(lambda crew: crew + 1).to_list()
            [Entry(key='Pequod', value=31), Entry(key='Rachel', value=27)]
        """
        arguments = shown_function(checked_function(fn, "fn"))
        return _mapped(self, _OnValue(fn), "map_values", arguments)

    def filter_values(self: StreamOf[tuple[K, V]], predicate: Callable[[V], object]) -> Stream[Entry[K, V]]:
        """Keep the entries whose values satisfy `predicate`; moves nothing between tasks.

        Example:
            >>> Stream.of(("Pequod", 30), ("Rachel", 26)).filter_values(lambda crew: crew > 26).to_list()
            [Entry(key='Pequod', value=30)]
        """
        arguments = shown_function(running_function(predicate, "predicate"))
        return _flat_mapped(self, _IfValue(predicate), "filter_values", arguments)

    def flat_map_values(self: StreamOf[tuple[K, V]], fn: Callable[[V], Iterable[R] | None]) -> Stream[Entry[K, R]]:
        """Replace each entry by one for each item of `fn(value)`: any iterable or stream, or None for none.

        Moves nothing between tasks.

        Example:
            >>> Stream.of((1, "to be"), (2, "or not")).flat_map_values(str.split).map(tuple).to_list()
            [(1, 'to'), (1, 'be'), (2, 'or'), (2, 'not')]
        """
        arguments = shown_function(checked_function(fn, "fn"))
        return _flat_mapped(self, _EachOfValue(fn), "flat_map_values", arguments)

    # All entries of a key

    @overload
    def reduce_by_key(  # type: ignore[overload-overlap]  # For bools this one is right.
        self: StreamOf[tuple[K, V]], op: Callable[[V, V], V]
    ) -> Stream[Entry[K, V]]: ...

    @overload  # For Pyright the values of `map(lambda word: (word, 1))` are no ints, but ones.
    def reduce_by_key(self: StreamOf[tuple[K, int]], op: Callable[[int, int], int]) -> Stream[Entry[K, int]]: ...

    def reduce_by_key(self: StreamOf[tuple[K, V]], op: Callable[[V, V], V]) -> Stream[Entry[K, V]]:
        """Fold the values of each key with an associative operator, in encounter order.

        Costs one shuffle, of one value for each key and task.

        Args:
            op: takes two values of a key and returns the one that replaces both.

        Raises:
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of(("Pequod", 30), ("Rachel", 26), ("Pequod", 2)).reduce_by_key(int.__add__).to_list()
            [Entry(key='Pequod', value=32), Entry(key='Rachel', value=26)]
        """
        reduction = _reductions().folded_values(checked_function(op, "op"))
        return _by_key(self, reduction, reduction, "reduce_by_key", shown_function(op))

    @overload  # A type checker looks into the lambdas of a collector only where it expects one.
    def aggregate_by_key(self: StreamOf[tuple[K, V]], collector: Collector[V, Any, R]) -> Stream[Entry[K, R]]: ...

    @overload
    def aggregate_by_key(
        self: StreamOf[tuple[K, V]], collector: AggregateOperation[tuple[V], Any, R]
    ) -> Stream[Entry[K, R]]: ...

    def aggregate_by_key(self: Any, collector: Any) -> Any:
        """Reduce the values of each key with a collector.

        Costs one shuffle, of one container for each key and task.

        Args:
            collector: a collector, or an aggregate operation of one input. One without `combine` sends each value.

        Raises:
            TypeError: `collector` is none, or has several inputs.
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.

        Example:
            >>> from collectors import averaging
            >>> Stream.of(("Pequod", 30), ("Pequod", 32)).aggregate_by_key(averaging()).to_list()
            [Entry(key='Pequod', value=31.0)]
        """
        operation = operation_of_one_input(collector, "collector")
        reduction = _reductions().values_of_each_key(operation.on_input(0))
        return _by_key(self, operation, reduction, "aggregate_by_key", repr(operation))

    def group_by_key(self: StreamOf[tuple[K, V]]) -> Stream[Entry[K, list[V]]]:
        """List the values of each key, in encounter order.

        Costs one shuffle of all values. Groups are written to disk past the memory bound; one group must fit into the
        memory of a task. `reduce_by_key` and `aggregate_by_key` move less, where the list is only an intermediate
        result.

        Raises:
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of(("Pequod", 30), ("Rachel", 26), ("Pequod", 2)).group_by_key().to_list()
            [Entry(key='Pequod', value=[30, 2]), Entry(key='Rachel', value=[26])]
        """
        lists: Collector[Any, Any, Any] = collectors.to_list()
        return _by_key(self, lists, _reductions().values_of_each_key(lists), "group_by_key", "")

    def count_by_key(self: StreamOf[tuple[K, Any]]) -> Stream[Entry[K, int]]:
        """Count the entries of each key.

        Costs one shuffle, of one number for each key and task.

        Raises:
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of(("Pequod", 30), ("Rachel", 26), ("Pequod", 2)).count_by_key().to_list()
            [Entry(key='Pequod', value=2), Entry(key='Rachel', value=1)]
        """
        counts: Collector[Any, Any, Any] = collectors.counting()
        reduction = _reductions().counted_entries()
        return _by_key(self, counts, reduction, "count_by_key", "")

    def top_by_key(
        self: StreamOf[tuple[K, V]], n: int, key: Callable[[V], Any] | None = None
    ) -> Stream[Entry[K, list[V]]]:
        """List the `n` greatest values of each key, the greatest first; equal ones keep their order.

        Costs one shuffle, of up to `n` values for each key and task.

        Args:
            n: the number of values per key.
            key: returns the value to compare by; unset, the values themselves.

        Raises:
            TypeError: later, where two values cannot be compared.
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of(("Pequod", 30), ("Pequod", 2), ("Pequod", 31)).top_by_key(2).to_list()
            [Entry(key='Pequod', value=[31, 30])]
        """
        most = count(n, "n")
        greatest: Collector[Any, Any, Any] = collectors.top_n(most, optional_function(key, "key"))
        arguments = f"{most}" if key is None else f"{most}, key={shown_function(key)}"
        return _by_key(self, greatest, _reductions().values_of_each_key(greatest), "top_by_key", arguments)


def _mapped(stream: Any, fn: Callable[[Any], Any], name: str, arguments: str) -> R:  # type: ignore[type-var]
    return BaseStream._as(stream, "Stream", Map(stream._node, fn, step=called(name, arguments)))


def _flat_mapped(stream: Any, fn: Callable[[Any], Any], name: str, arguments: str) -> R:  # type: ignore[type-var]
    return BaseStream._as(stream, "Stream", FlatMap(stream._node, fn, step=called(name, arguments)))


def _reductions() -> Any:
    """Return the module of the reductions, imported on first use."""
    from dstream.collectors import entries as of_entries

    return of_entries


def _by_key(
    stream: Any,
    operation: AggregateOperation[Any, Any, Any],
    reduction: Collector[Any, Any, Any],
    name: str,
    arguments: str,
) -> R:  # type: ignore[type-var]
    """Return the stream of a reduction by key; `operation` is whether containers are combined."""
    return BaseStream._as(
        stream,
        "Stream",
        Aggregate((stream._node,), operation, (reduction,), True, step=called(name, arguments)),
    )


class _Swapping:
    """Function that exchanges key and value of an entry."""

    around: ClassVar[PairFunction] = "swap"

    def __call__(self, item: Any) -> Any:
        return as_entry((value_of(item), key_of(item)))


class _OnValue:
    """Function of an entry that applies another one to its value."""

    around: ClassVar[PairFunction] = "on_value"

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, item: Any) -> Any:
        return as_entry((key_of(item), self.fn(item[1])))  # `key_of` has checked that the item is a pair.


class _IfValue:
    """Function of an entry that returns it if its value satisfies a predicate."""

    around: ClassVar[PairFunction] = "if_value"

    def __init__(self, fn: Callable[[Any], object]) -> None:
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, item: Any) -> tuple[Any, ...]:
        result = self.fn(value_of(item))
        if type(result) is not bool:
            refuse_awaitable(result)
        return (as_entry(item),) if result else ()


class _EachOfValue:
    """Function of an entry that yields one for each item that another function makes of its value."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, item: Any) -> Iterator[Any]:
        key = key_of(item)  # This checks that the item is a pair.
        for value in _all_of(self.fn(item[1])):
            yield as_entry((key, value))


def _all_of(result: Any) -> Any:
    """Return a function's result as an iterable, a stream so that its end closes it."""
    if result is None:
        return ()
    if isinstance(result, BaseStream):
        return result._traverse_and_close()
    if isinstance(result, Iterable) or hasattr(type(result), "__getitem__"):
        return result
    refuse_awaitable(result)
    raise TypeError(f"flat_map_values() needs a function that gives an iterable or None, not {kind_of(result)}")
