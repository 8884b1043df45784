"""What an operation on two streams takes for its other side, and how it is told the keys of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias, TypeVar

from dstream.plan import Read, call_site
from dstream.stream.base import BaseStream
from dstream.stream.shorthands import StreamOf
from dstream.stream.stream_arguments import function, kind_of
from dstream.values import Entry
from sources.memory import Items

__all__ = ["ItemsOf", "On", "PairsOf", "key_functions", "other_side"]

K = TypeVar("K")
V = TypeVar("V")
U = TypeVar("U")

ItemsOf: TypeAlias = BaseStream[U] | Sequence[U] | AbstractSet[U]
"""A side whose items are looked at as they are."""

PairsOf: TypeAlias = StreamOf[tuple[K, V]] | Mapping[K, V] | Sequence[tuple[K, V]]
"""A side of entries."""

On = Callable[[Any], Any] | tuple[Callable[[Any], Any], Callable[[Any], Any]] | None


def other_side(other: Any, call: str) -> BaseStream[Any]:
    """Return the stream that an operation is given, or one of the collection or the dict that it is given.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(other, BaseStream):
        return other
    if hasattr(type(other), "stream") and isinstance(other, Mapping | Sequence | AbstractSet):
        collection: Any = other
        streamed: BaseStream[Any] = collection.stream()
        return streamed
    if isinstance(other, Mapping):
        return _read(_EntriesOf(other), f"stream({kind_of(other)})")
    if isinstance(other, list | tuple | range | set | frozenset):
        return _read(other, f"stream({kind_of(other)})")
    hint = ""
    if hasattr(type(other), "__iter__"):
        hint = "; Stream.from_iterable(...) makes a stream of any iterable"
    raise TypeError(
        f"{call}() takes two streams: other must be a stream, a map, a dict or a list, not {kind_of(other)}{hint}"
    )


def _read(items: Any, name: str) -> BaseStream[Any]:
    return BaseStream._kinds["Stream"](Read(Items(items), name, where=call_site()), None)


class _EntriesOf(Sequence[Any]):
    """The entries of a dict, as it is when they are read."""

    def __init__(self, mapping: Mapping[Any, Any]) -> None:
        self._mapping = mapping

    def __len__(self) -> int:
        return len(self._mapping)

    def __iter__(self) -> Any:
        return (Entry(key, value) for key, value in self._mapping.items())

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]


def key_functions(on: On, name: str = "on") -> tuple[Any, Any]:
    """Return the key function of each side, or None twice."""
    match on:
        case None:
            return None, None
        case (of_left, of_right):
            return function(of_left, f"{name}[0]"), function(of_right, f"{name}[1]")
        case tuple() | list():
            raise TypeError(f"{name} must be one key function or a pair of them, not {len(on)} of them")
    return function(on, name), on
