"""`builder()` of each type of stream: a stream from items that come one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Self, TypeVar

from dstream.errors import IllegalStateError
from dstream.plan import unchanged

__all__ = ["StreamBuilder"]

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
