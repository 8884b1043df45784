"""`Stream.builder()`: a stream from items that come one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from dstream.errors import IllegalStateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dstream.stream.stream import Stream

__all__ = ["StreamBuilder"]

T = TypeVar("T")


class StreamBuilder(Generic[T]):
    """Collects items and makes a stream of them, once."""

    def __init__(self, make: Callable[[list[T]], Stream[T]]) -> None:
        self._make = make
        self._items: list[T] = []
        self._is_built = False

    def add(self, item: T) -> StreamBuilder[T]:
        """Append `item` and return this builder."""
        self.accept(item)
        return self

    def accept(self, item: T) -> None:
        """Append `item`.

        Raises:
            IllegalStateError: the stream was built already.
        """
        self._check_open()
        self._items.append(item)

    def build(self) -> Stream[T]:
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
