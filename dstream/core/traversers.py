"""`Traverser`: items one after another, which may pause; the input of processors' emission."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, Self, TypeVar

from dstream.arguments import checked_function, kind_of, running_function
from dstream.errors import IllegalStateError

__all__ = ["AppendableTraverser", "ResettableSingletonTraverser", "Traverser", "lazy", "traverse", "traverse_result"]

T = TypeVar("T")
R = TypeVar("R")
_END: Any = object()


class Traverser(Generic[T]):
    """A sequence of items: `next()` returns one, or None if there is none *at the moment*, or ever.

    A subclass overrides `next`; `traverse(...)` makes one of any iterable. The methods return a new traverser, which
    reads this one lazily.

    It is a Python iterator too, which ends at the first None: do not iterate one that pauses.

    Example:
        >>> from dstream.core import traverse
        >>> traverser = traverse([1, 2, 3, 4]).filter(lambda n: n % 2 == 0).append(10)
        >>> traverser.next(), traverser.next(), traverser.next(), traverser.next()
        (2, 4, 10, None)
    """

    __slots__ = ()

    def next(self) -> T | None:
        """Return the next item; None if there is none at the moment."""
        raise NotImplementedError(f"{type(self).__name__} has no next()")

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        item = self.next()
        if item is None:
            raise StopIteration
        return item

    def map(self, fn: Callable[[T], R | None]) -> Traverser[R]:
        """Return a traverser of the results of a function for each item; None is left out."""
        # The bound method is looked up once, and not for each item.
        following = self.next
        checked_function(fn, "fn")

        def advance() -> R | None:
            while (item := following()) is not None:
                if (made := fn(item)) is not None:
                    return made
            return None

        return _Made(advance)

    def filter(self, predicate: Callable[[T], object]) -> Traverser[T]:
        """Keep the items that satisfy a predicate."""
        following = self.next
        running_function(predicate, "predicate")

        def advance() -> T | None:
            while (item := following()) is not None and not predicate(item):
                pass
            return item

        return _Made(advance)

    def flat_map(self, fn: Callable[[T], Traverser[R] | Iterable[R] | None]) -> Traverser[R]:
        """Return a traverser of the items of a function's results: a traverser, an iterable, or None."""
        following = self.next
        checked_function(fn, "fn")
        inner: Callable[[], R | None] | None = None

        def advance() -> R | None:
            nonlocal inner
            while True:
                if inner is None:
                    if (item := following()) is None:
                        return None
                    inner = traverse_result(fn(item)).next
                if (made := inner()) is not None:
                    return made
                # As in Jet, the first None of an inner traverser is its end, also if it only pauses.
                inner = None

        return _Made(advance)

    def take_while(self, predicate: Callable[[T], object]) -> Traverser[T]:
        """Keep the items before the first one that does not satisfy a predicate; a pause does not end them."""
        following = self.next
        running_function(predicate, "predicate")
        is_over = False

        def advance() -> T | None:
            nonlocal is_over
            if is_over or (item := following()) is None:
                return None
            if predicate(item):
                return item
            # Remembered: later items may satisfy the predicate again.
            is_over = True
            return None

        return _Made(advance)

    def drop_while(self, predicate: Callable[[T], object]) -> Traverser[T]:
        """Keep the items from the first one on that does not satisfy a predicate."""
        following = self.next
        running_function(predicate, "predicate")
        is_dropping = True

        def advance() -> T | None:
            nonlocal is_dropping
            item = following()
            while is_dropping and item is not None:
                if not predicate(item):
                    is_dropping = False
                    break
                item = following()
            return item

        return _Made(advance)

    def append(self, item: T) -> Traverser[T]:
        """Append one item, when this traverser returns None for the first time."""
        following = self.next
        last: T | None = _item(item)

        def advance() -> T | None:
            nonlocal last
            if (found := following()) is None:
                found, last = last, None
            return found

        return _Made(advance)

    def prepend(self, item: T) -> Traverser[T]:
        """Prepend one item."""
        following = self.next
        first: T | None = _item(item)

        def advance() -> T | None:
            nonlocal first
            if first is None:
                return following()
            found, first = first, None
            return found

        return _Made(advance)

    def peek(self, action: Callable[[T], object]) -> Traverser[T]:
        """Call a function with each item before it is returned."""
        following = self.next
        running_function(action, "action")

        def advance() -> T | None:
            if (item := following()) is not None:
                action(item)
            return item

        return _Made(advance)

    def on_first_none(self, action: Callable[[], object]) -> Traverser[T]:
        """Call a function when this traverser returns None for the first time."""
        following = self.next
        pending: Callable[[], object] | None = running_function(action, "action")

        def advance() -> T | None:
            nonlocal pending
            item = following()
            if item is None and pending is not None:
                # Taken away first: an action that fails is not called again.
                act, pending = pending, None
                act()
            return item

        return _Made(advance)


class _Made(Traverser[T]):
    """A traverser whose `next` is a function."""

    __slots__ = ("next",)

    def __init__(self, advance: Callable[[], T | None]) -> None:
        self.next = advance  # type: ignore[method-assign]  # The slot replaces the method.


def _item(item: Any) -> Any:
    if item is None:
        raise TypeError("a traverser gives no None: it would say that there is no item")
    return item


def traverse(items: Traverser[T] | Iterable[T]) -> Traverser[T]:
    """Return a lazy traverser of anything that can be iterated.

    Args:
        items: a list, a generator, an array, ...; a traverser is returned itself.

    Raises:
        TypeError: it cannot be iterated. When it is read: an item is None.

    Example:
        >>> from dstream.core import traverse
        >>> list(traverse(range(3)).map(str))
        ['0', '1', '2']
    """
    if isinstance(items, Traverser):
        return items
    if not isinstance(items, Iterable):
        raise TypeError(f"traverse() takes what can be iterated, not {kind_of(items)}")
    iterator = iter(items)

    def advance() -> T | None:
        # A None of the user's must not pass for the end.
        if (item := next(iterator, _END)) is None:
            raise TypeError(f"{kind_of(items)} has a None, which would say that there is no item")
        return None if item is _END else item

    return _Made(advance)


def lazy(make: Callable[[], Traverser[T] | Iterable[T]]) -> Traverser[T]:
    """Return a traverser that a function makes when it is asked for the first item.

    Example:
        >>> from dstream.core import lazy
        >>> sizes = [1]
        >>> traverser = lazy(lambda: list(sizes))
        >>> sizes.append(2)
        >>> list(traverser)
        [1, 2]
    """
    checked_function(make, "make")
    following: Callable[[], T | None] | None = None

    def advance() -> T | None:
        nonlocal following
        if following is None:
            following = traverse(make()).next
        return following()

    return _Made(advance)


class AppendableTraverser(Traverser[T]):
    """A traverser of the items that were added, in order; None while there are none.

    Example:
        >>> from dstream.core import AppendableTraverser
        >>> traverser = AppendableTraverser()
        >>> traverser.add(1).add(2).next(), traverser.next(), traverser.next(), traverser.is_empty()
        (1, 2, None, True)
    """

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: deque[T] = deque()

    def add(self, item: T) -> Self:
        """Add an item, and return this traverser.

        Raises:
            TypeError: it is None.
        """
        self._items.append(_item(item))
        return self

    def next(self) -> T | None:
        """Return the item that was added first, and take it out."""
        return self._items.popleft() if self._items else None

    def is_empty(self) -> bool:
        """Return whether there is no item."""
        return not self._items


class ResettableSingletonTraverser(Traverser[T]):
    """A traverser of one item at a time, for functions that make at most one of each.

    Example:
        >>> from dstream.core import ResettableSingletonTraverser
        >>> traverser = ResettableSingletonTraverser()
        >>> traverser.accept(1)
        >>> traverser.next(), traverser.next()
        (1, None)
    """

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: T | None = None

    def accept(self, item: T | None) -> None:
        """Take the item that is next; None: there is none.

        Raises:
            IllegalStateError: the one before is still there.
        """
        if self._value is not None:
            raise IllegalStateError(
                f"the item {self._value!r} is still there: next() takes it out before another one is set"
            )
        self._value = item

    def next(self) -> T | None:
        """Return the item, and take it out."""
        item, self._value = self._value, None
        return item


def traverse_result(made: Traverser[T] | Iterable[T] | None) -> Traverser[T]:
    """Return a traverser of the result of a `flat_map` function; None is no items.

    Raises:
        TypeError: it cannot be iterated.
    """
    return traverse(() if made is None else made)
