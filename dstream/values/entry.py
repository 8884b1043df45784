"""`Entry`: a key and its value, as maps and keyed streams hand them out."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

__all__ = ["Entry"]

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
