"""`Entry`: a key and its value, as maps and keyed streams hand them out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from dstream.values.blaming import each, shown

__all__ = ["Entry", "are_pairs", "as_entry", "entry_key", "entry_value", "key_of", "keys_of", "value_of"]

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
"""Makes an entry of a pair, in C, where the class calls a function of Python."""


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
    """Return what `fn` gives for each item, as `each` does; `entry_key` is not called for pairs."""
    if fn is entry_key and are_pairs(items):
        return list(map(itemgetter(0), items))
    return each(fn, items)


def are_pairs(items: Sequence[Any]) -> bool:
    """Say whether all items are entries or pairs; False also where only a look at each can tell."""
    kinds = set(map(type, items))
    return kinds == {Entry} or (kinds <= {Entry, tuple} and set(map(len, items)) == {2})


def _no_entry(item: Any) -> TypeError:
    return TypeError(f"the items must be entries, (key, value), not {shown(item)}; key_by(fn) makes entries")
