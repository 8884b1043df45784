"""`Entry`, `JournalEvent`, and batches of pairs with one value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, overload

from dstream.base.showing import shown
from dstream.failures.attribution import each

__all__ = [
    "Entry",
    "JournalEvent",
    "Pairs",
    "PairsOfOneValue",
    "UseEvent",
    "are_pairs",
    "as_entry",
    "constant_key",
    "entry_key",
    "entry_value",
    "key_of",
    "keys_of",
    "same_key",
    "value_of",
    "whole_item",
]


K = TypeVar("K")
V = TypeVar("V")


class Entry(NamedTuple, Generic[K, V]):
    """A key and its value; equal to the plain pair `(key, value)`.

    Example:
        >>> Entry("whale", 3)
        Entry(key='whale', value=3)
        >>> key, value = Entry("whale", 3)
    """

    key: K
    value: V


as_entry: Callable[[tuple[Any, Any]], Entry[Any, Any]] = functools.partial(tuple.__new__, Entry)
"""Function that makes an entry of a pair, in C; the class itself calls a Python function."""


def key_of(item: Any) -> Any:
    """Return the key of an entry or a pair.

    Raises:
        TypeError: `item` is neither.
    """
    if isinstance(item, tuple) and len(item) == 2:
        return item[0]
    raise _no_entry(item)


def value_of(item: Any) -> Any:
    """Return the value of an entry or a pair.

    Raises:
        TypeError: `item` is neither.
    """
    if isinstance(item, tuple) and len(item) == 2:
        return item[1]
    raise _no_entry(item)


def entry_key(item: Any) -> Any:
    """Return the key of an entry, or the first of a pair.

    Raises:
        TypeError: the item is neither.
    """
    return key_of(item)


def entry_value(item: Any) -> Any:
    """Return the value of an entry, or the second of a pair.

    Raises:
        TypeError: the item is neither.
    """
    return value_of(item)


def keys_of(fn: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return the results of `fn` for each item, as `each` does; `entry_key` is not called for pairs."""
    if fn is entry_key and are_pairs(items):
        return list(map(itemgetter(0), items))
    return each(fn, items)


def are_pairs(items: Sequence[Any]) -> bool:
    """Return whether all items are entries or pairs; False also if that requires a check of each item."""
    kinds = set(map(type, items))
    return kinds == {Entry} or (kinds <= {Entry, tuple} and set(map(len, items)) == {2})


def _no_entry(item: Any) -> TypeError:
    return TypeError(f"the items must be entries, (key, value), not {shown(item)}; key_by(fn) makes entries")


class JournalEvent(NamedTuple):
    """A change of one entry.

    Attributes:
        kind: `"ADDED"`, `"UPDATED"` or `"REMOVED"`.
        old_value: the value before; None for `"ADDED"`.
        new_value: the value after; None for `"REMOVED"`.
        offset: its position in the journal: larger than every earlier offset, never 0, with gaps.
            `journal(since=offset)` yields the changes after it.
        timestamp: when it was committed, in milliseconds since 1970, by the clock of the process that wrote it, or of
            the server; None if an older dstream has written it.
    """

    kind: Literal["ADDED", "UPDATED", "REMOVED"]
    key: Any
    old_value: Any
    new_value: Any
    offset: int
    timestamp: int | None = None


class UseEvent(JournalEvent):
    """Extended expiry of an entry of a cache, after a lookup.

    It is stored among the changes, has an offset as they have, and is not visible to users: no value has changed.
    """

    __slots__ = ()


if TYPE_CHECKING:
    # `zip` cannot be subscripted when the program runs (Python 3.11).
    _Zip: TypeAlias = zip[tuple[Any, Any]]
else:
    _Zip = zip


class PairsOfOneValue(_Zip):
    """Iterator of the pairs of each item and one value, at the speed of C.

    Attributes:
        keys: the items; consuming them consumes the pairs.
        value: the second member of each pair.

    Example:
        >>> list(PairsOfOneValue(iter("ab"), 1))
        [('a', 1), ('b', 1)]
    """

    keys: Iterator[Any]
    value: Any

    def __new__(cls, keys: Iterator[Any], value: Any) -> PairsOfOneValue:
        """Make the iterator."""
        pairs: Any = super().__new__(cls, keys, repeat(value))
        pairs.keys, pairs.value = keys, value
        made: PairsOfOneValue = pairs
        return made


class Pairs(Sequence[tuple[Any, Any]]):
    """Pairs of each key and one common value.

    Example:
        >>> list(Pairs(["a", "b"], 1))
        [('a', 1), ('b', 1)]
    """

    __slots__ = ("keys", "value")

    def __init__(self, keys: list[Any], value: Any) -> None:
        self.keys = keys
        self.value = value

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, place: int) -> tuple[Any, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> Pairs: ...
    def __getitem__(self, place: int | slice) -> Any:
        found = self.keys[place]
        return Pairs(found, self.value) if isinstance(place, slice) else (found, self.value)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self.keys, repeat(self.value), strict=False)


T = TypeVar("T")


def whole_item(item: T) -> T:
    """Return the item: it is its own key."""
    return item


def constant_key(item: Any) -> str:
    """Return "ALL": all items have one key."""
    return "ALL"


def same_key(item: Any) -> None:
    """Return None: the key of all items of an edge that leads to one processor."""
