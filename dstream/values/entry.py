"""`Entry`: a key and its value, as maps and keyed streams hand them out."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from dstream.values.blaming import shown

__all__ = ["Entry", "key_of", "value_of"]

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


def _no_entry(item: Any) -> TypeError:
    return TypeError(f"the items must be entries, (key, value), not {shown(item)}; key_by(fn) makes entries")
