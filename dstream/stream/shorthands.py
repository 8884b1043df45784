"""`Shared` and `Shorthands`: short forms of other operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, TypeVarTuple

from dstream.arguments import checked_function, count, kind_of, optional_function
from dstream.failures import shown
from dstream.plan import NO_CALL, FlatMap, Limit, Map, Sorted, Union, called, here, shown_function
from dstream.plan.steps import PairFunction
from dstream.stream.base import BaseStream
from dstream.stream.runtime import shared

if TYPE_CHECKING:
    from dstream.stream.objects import Stream

__all__ = ["Shared", "Shorthands", "Starred", "StreamOf"]


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")
S = TypeVar("S", bound=BaseStream[Any])


class StreamOf(Protocol[T_co]):
    """A stream, for a type checker: one of tuples is one of entries too, where items are only read."""

    def iterator(self) -> Iterator[T_co]:
        """Return an iterator of the items."""
        ...


class Shared(BaseStream[T]):
    """The shorthands of every stream."""

    __slots__ = ()

    def union(self, *others: Self) -> Self:
        """Return all items of this stream and of others, in any order; `a + b` keeps the order. Moves nothing.

        Raises:
            IllegalStateError: they belong to different contexts.

        Example:
            >>> sorted(Stream.of("sea").union(Stream.of("ship")).to_list())
            ['sea', 'ship']
        """
        for other in others:
            if not isinstance(other, type(self)):
                raise TypeError(f"union() takes streams of the same type, not {kind_of(other)}")
        parts = (self._node, *(other._node for other in others))
        return self._combined(type(self), Union(parts, step=here()), *others)

    def top(self, n: int, key: Callable[[T], Any] | None = None) -> Self:
        """Keep the `n` greatest items, the greatest first; equal ones keep their order.

        The same as `sorted(key=key, reverse=True).limit(n)`: up to 100,000 items, each partition keeps `n`.

        Example:
            >>> Stream.of("sea", "whale", "ship").top(2, key=len).to_list()
            ['whale', 'ship']
        """
        most = count(n, "n")
        by = "" if optional_function(key, "key") is None else f", key={shown_function(key)}"
        ordered = Sorted(self._node, key, reverse=True, step=called("top", f"{most}{by}"))
        return self._then(Limit(ordered, most, step=NO_CALL))

    def apply(self, fn: Callable[[Self], S]) -> S:
        """Return `fn(self)`: a named fragment of a pipeline.

        Raises:
            IllegalStateError: the stream that `fn` returns belongs to another context.
            TypeError: `fn` returns no stream.

        Example:
            >>> def words(lines):
            ...     return lines.flat_map(str.split).map(str.lower)
            >>> Stream.of("The Whale", "the sea").apply(words).distinct().to_list()
            ['the', 'whale', 'sea']
        """
        made = checked_function(fn, "fn")(self)
        if not isinstance(made, BaseStream):
            raise TypeError(f"fn must return a stream, not {kind_of(made)}")
        # Called for its check, which refuses streams of two contexts.
        shared(self._runtime, made._runtime)
        return made


class Shorthands(Shared[T]):
    """The shorthands for items that have parts."""

    __slots__ = ()

    def flatten(self: StreamOf[Iterable[U] | None]) -> Stream[U]:
        """Replace each item, any iterable or stream, by its items; None is an empty one.

        Example:
            >>> Stream.of([1, 2], None, (3,)).flatten().to_list()
            [1, 2, 3]
        """
        return _flattened(self)

    def pluck(self, name: str | int) -> Stream[Any]:
        """Replace each item by one part of it.

        That is `item[name]` of a mapping, `item[name]` of anything else for an int, and the attribute for a str.

        Raises:
            AttributeError, IndexError, KeyError: an item has no such part; the message names the item.

        Example:
            >>> Stream.of({"ship": "Pequod"}, {"ship": "Rachel"}).pluck("ship").to_list()
            ['Pequod', 'Rachel']
            >>> Stream.of(("Pequod", 30), ("Rachel", 26)).pluck(1).to_list()
            [30, 26]
        """
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise TypeError(f"name must be a str or an int, not {kind_of(name)}")
        node = Map(self._node, _Part(name), step=called("pluck", repr(name)))
        return self._as("Stream", node)

    def starmap(self: StreamOf[tuple[*Ts]], fn: Callable[[*Ts], R]) -> Stream[R]:
        """Replace each item by `fn(*item)`.

        Example:
            >>> Stream.of((2, 5), (3, 2)).starmap(pow).to_list()
            [32, 9]
        """
        return _starred(self, fn)


def _flattened(stream: Any) -> R:  # type: ignore[type-var]
    node = FlatMap(stream._node, _all_of, step=called("flatten"))
    return BaseStream._as(stream, "Stream", node)


def _all_of(item: Any) -> Any:
    # Python also iterates over objects that have only `__getitem__`.
    if item is None or isinstance(item, Iterable | BaseStream) or hasattr(type(item), "__getitem__"):
        return item
    raise TypeError(f"flatten() takes iterables and None, not {shown(item)}")


def _starred(stream: Any, fn: Any) -> R:  # type: ignore[type-var]
    arguments = shown_function(checked_function(fn, "fn"))
    return BaseStream._as(stream, "Stream", Map(stream._node, Starred(fn), step=called("starmap", arguments)))


class _Part:
    """Function that returns one part of an item."""

    def __init__(self, name: str | int) -> None:
        self.name = name
        self.__qualname__ = f"pluck({name!r})"

    def __call__(self, item: Any) -> Any:
        name = self.name
        try:
            if isinstance(item, Mapping) or not isinstance(name, str):
                return item[name]
            return getattr(item, name)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            # An exception of a user's class may not accept a single str.
            if type(error) not in _OF_PYTHON:
                raise
            raise type(error)(f"pluck({name!r}) found no such part in {shown(item)}") from error


_OF_PYTHON = (AttributeError, IndexError, KeyError, TypeError)


class Starred:
    """Function that calls another one with the parts of a tuple."""

    around: ClassVar[PairFunction] = "starred"

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, item: Any) -> Any:
        """Call the function with the parts of an item."""
        return self.fn(*item)
