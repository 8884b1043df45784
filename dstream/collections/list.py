"""`IStreamList`: a distributed list that works like a list and has Jet's names too, with its slices."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from itertools import chain, islice, zip_longest
from typing import Any, ClassVar, Self, TypeVar, overload

from dstream.collections.base import PIECES, Collection, same
from dstream.collections.sources import ItemSource
from dstream.spi.store import ItemSplit, Kind, ListStore, ListView, Splice
from dstream.stream.objects import Stream, read

__all__ = ["IStreamList", "assigned", "deleted", "found", "insertion", "position", "selected", "whole"]


def whole(index: Any) -> int:
    """Return a subscript that is no slice as an int.

    Raises:
        TypeError: it is none.
    """
    try:
        return operator.index(index)
    except TypeError:
        raise TypeError(f"list indices must be integers or slices, not {type(index).__name__}") from None


def position(index: int, size: int, message: str) -> int:
    """Return where `index` points to, counted from the start.

    Raises:
        IndexError: nowhere; with `message`.
    """
    place = index + size if index < 0 else index
    if not 0 <= place < size:
        raise IndexError(message)
    return place


def insertion(index: int, size: int) -> int:
    """Return before which item `insert(index, item)` puts its item."""
    return max(index + size, 0) if index < 0 else min(index, size)


def selected(view: ListView, chosen: slice) -> list[Any]:
    """Return the items of a slice, reading the stretch that they lie in."""
    start, stop, step = _stretch(view, chosen)
    return view.read(start, stop)[::step]


def assigned(view: ListView, chosen: slice, items: list[Any]) -> Splice | None:
    """Return the change of assigning `items` to a slice.

    Raises:
        ValueError: the slice has a step, and another length than `items`.
    """
    if chosen.step is None or operator.index(chosen.step) == 1:
        start, stop, _ = chosen.indices(view.size)
        # As in a list: a slice that ends before its start is empty, and is replaced at its start.
        return Splice(start, max(start, stop), items)
    start, stop, step = _stretch(view, chosen)
    size = len(range(start, stop, abs(step)))
    if len(items) != size:
        raise ValueError(f"attempt to assign sequence of size {len(items)} to extended slice of size {size}")
    stretch = view.read(start, stop)
    stretch[::step] = items
    return Splice(start, stop, stretch) if items else None


def deleted(view: ListView, chosen: slice) -> Splice | None:
    """Return the change of deleting a slice, or None for nothing."""
    start, stop, step = _stretch(view, chosen)
    if start == stop:
        return None
    # Without gaps nothing of the stretch remains, so that it need not be read.
    stretch = view.read(start, stop) if abs(step) > 1 else []
    del stretch[::step]
    return Splice(start, stop, stretch)


def _stretch(view: ListView, chosen: slice) -> tuple[int, int, int]:
    """Return (start, stop, step): the items of `chosen` are the items of `[start:stop][::step]`."""
    places = range(*chosen.indices(view.size))
    if not places:
        return 0, 0, places.step
    least, greatest = min(places[0], places[-1]), max(places[0], places[-1])
    return least, greatest + 1, places.step


_CHUNK = 4096


def found(view: ListView, item: Any, start: int, stop: int) -> int | None:
    """Return the first index of `item` from `start` up to `stop`, or None; reads a few thousand items at a time."""
    first, last, _ = slice(start, stop).indices(view.size)
    for place in range(first, last, _CHUNK):
        items = view.read(place, min(place + _CHUNK, last))
        for offset, known in enumerate(items):
            if same(known, item):
                return place + offset
    return None


T = TypeVar("T")
R = TypeVar("R")

_MISSING: Any = object()


class IStreamList(Collection[ListStore], MutableSequence[T]):
    """A list in a storage: `list` and Jet's `IList` in one. Get one with `Context.get_list`.

    None is an item like any other. Every operation sees one state of the list and changes it in one commit.
    `append` and `extend` add to its end at little cost; what changes its middle rewrites a part of it, and
    `sort` and `reverse` rewrite all of it.

    Differences from a list: returned items are copies, so changing an item in place does not change the list; iteration
    sees the state at its start, regardless of concurrent writes; slices, `copy()` and `+` return plain lists. It equals
    any sequence of the same items that is no string.

    Example:
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     names = ctx.get_list("names")
        ...     names.extend(["Ada", "Alan", "Grace"])
        ...     names[-1], names[::2], len(names)
        ...     names.stream().map(str.upper).to_list()
        ('Grace', ['Ada', 'Grace'], 3)
        ['ADA', 'ALAN', 'GRACE']
    """

    _kind: ClassVar[Kind] = "list"
    _unit = ("item", "items")
    _columns = ("index", "item")
    _brackets = "[{}]"
    _instead = "read what you need before, with a slice or copy()"

    # Reading, as from a list

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._look(lambda view: selected(view, index))
        return self.get(whole(index))

    def get(self, index: int) -> T:
        """Return the item at `index`; a negative one counts from the end.

        Raises:
            IndexError: there is none.
        """
        place = _fitting(operator.index(index))
        # A negative index depends on the size, which must belong to the same state.
        if place < 0:
            item: T = self._look(lambda view: _item_from_the_end(view, place))
            return item
        items: list[T] = self.store.read(place, place + 1)
        if not items:
            raise IndexError("list index out of range")
        return items[0]

    def __len__(self) -> int:
        return self.size()

    def __bool__(self) -> bool:
        return not self.is_empty()

    def __iter__(self) -> Iterator[T]:
        """Pin the current items, and yield them one part after another."""
        return self._read(self._splits())

    def __reversed__(self) -> Iterator[T]:
        """Pin the current items, and yield them from the end, with one part of them in memory."""
        return chain.from_iterable(reversed(list(self._content(split))) for split in reversed(self._splits()))

    def __contains__(self, item: object) -> bool:
        return any(same(known, item) for known in self)

    def index(self, item: Any, start: int = 0, stop: int = sys.maxsize, /) -> int:
        """Return the index of the first item that equals `item`, from `start` up to `stop`.

        Raises:
            ValueError: there is none.
        """
        place = self._look(lambda view: found(view, item, start, stop))
        if place is None:
            raise ValueError(f"{item!r} is not in list")
        return place

    def count(self, item: Any, /) -> int:
        """Return how many items equal `item`."""
        return sum(same(known, item) for known in self)

    def copy(self) -> list[T]:
        """Return the items as a plain list, all from one state; they must fit into the caller's memory."""
        return list(self)

    def __eq__(self, other: object) -> bool:
        """Return whether `other`, any sequence but a string, has the same items in the same order."""
        if not isinstance(other, Sequence) or isinstance(other, str | bytes | bytearray | memoryview):
            return NotImplemented
        if other is self:
            return True
        # Others may change the size after it is compared. None is an item, and cannot fill the shorter side.
        return self.size() == len(other) and all(same(*pair) for pair in zip_longest(self, other, fillvalue=_MISSING))

    __hash__ = None  # type: ignore[assignment]  # As for a list.

    def __add__(self, other: Sequence[R]) -> list[T | R]:
        """Return a plain list of the items of both."""
        return [*self, *other] if isinstance(other, list | IStreamList) else NotImplemented

    def __radd__(self, other: Sequence[R]) -> list[T | R]:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    # Writing

    @overload
    def __setitem__(self, index: int, value: T) -> None: ...

    @overload
    def __setitem__(self, index: slice, value: Iterable[T]) -> None: ...

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            place = _fitting(whole(index))
            self._edit(lambda view: _replaced(view, place, value))
        elif value is self:
            # The items of the state that is changed: a copy made before could be of an older one.
            self._edit(lambda view: (assigned(view, index, view.read(0, view.size)), None))
        else:
            items = _listed(value, index)
            self._edit(lambda view: (assigned(view, index, items), None))

    def __delitem__(self, index: int | slice) -> None:
        if isinstance(index, slice):
            self._edit(lambda view: (deleted(view, index), None))
        else:
            place = _fitting(whole(index))
            self._edit(lambda view: _removed(view, place, "list assignment index out of range"))

    def append(self, value: T) -> None:
        """Add an item at the end."""
        self.store.extend((value,))

    def extend(self, values: Iterable[T]) -> None:
        """Add items at the end, all in one commit.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     squares = ctx.get_list("squares")
            ...     squares.extend(n * n for n in range(4))
            ...     squares
            IStreamList('squares', 4 items, int: [0, 1, 4, 9])
        """
        self.store.extend(iter(values))

    def __iadd__(self, values: Iterable[T]) -> Self:  # type: ignore[misc]  # Accepts any iterable, as a list.
        self.extend(values)
        return self

    def insert(self, index: int, value: T) -> None:
        """Insert an item before the item at `index`, or at an end if there is none."""
        before = operator.index(index)

        def change(view: ListView) -> Splice:
            place = insertion(before, view.size)
            return Splice(place, place, [value])

        self.store.edit(change)

    def pop(self, index: int = -1) -> T:
        """Remove the item at `index` and return it.

        Raises:
            IndexError: there is none.
        """
        place = _fitting(operator.index(index))

        def change(view: ListView) -> tuple[Splice, T]:
            return _removed(view, place, "pop index out of range" if view.size else "pop from empty list")

        return self._edit(change)

    def remove(self, value: T) -> None:
        """Remove the first item that equals `value`.

        Raises:
            ValueError: there is none.
        """

        def change(view: ListView) -> Splice:
            place = found(view, value, 0, view.size)
            if place is None:
                raise ValueError("list.remove(x): x not in list")
            return Splice(place, place + 1, [])

        self.store.edit(change)

    def reverse(self) -> None:
        """Reverse the order; rewrites the complete list in the caller's memory."""
        self.store.edit(lambda view: Splice(0, view.size, view.read(0, view.size)[::-1]))

    def sort(self, *, key: Callable[[T], Any] | None = None, reverse: bool = False) -> None:
        """Sort the items as `list.sort` does; rewrites the complete list in the caller's memory.

        `stream().sorted(...)` sorts on the workers.
        """
        self.store.edit(lambda view: Splice(0, view.size, _sorted(view.read(0, view.size), key, reverse)))

    def clear(self) -> None:
        """Remove all items, atomically."""
        self.store.edit(lambda view: Splice(0, view.size, []) if view.size else None)

    # Jet's names

    @overload
    def add(self, item: T, /) -> bool: ...

    @overload
    def add(self, index: int, item: T, /) -> None: ...

    def add(self, *arguments: Any) -> bool | None:
        """Add an item: `add(item)` at the end, which returns True; `add(index, item)` before that index.

        Raises:
            IndexError: `index` lies beyond the end.
        """
        match arguments:
            case (item,):
                self.append(item)
                return True
            case (index, item):
                self._insert_all(index, [item])
                return None
        raise TypeError(f"add() takes (item) or (index, item), not {len(arguments)} arguments")

    @overload
    def add_all(self, items: Iterable[T], /) -> bool: ...

    @overload
    def add_all(self, index: int, items: Iterable[T], /) -> bool: ...

    def add_all(self, *arguments: Any) -> bool:
        """Add items in one commit: at the end, or before an index. Return whether there were any.

        Raises:
            IndexError: `index` lies beyond the end.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     names = ctx.get_list("names")
            ...     names.add_all(["Ada", "Grace"]), names.add_all(1, ["Alan"]), names.add_all([])
            ...     names.copy()
            (True, True, False)
            ['Ada', 'Alan', 'Grace']
        """
        match arguments:
            case (items,):
                items = iter(items)
                # Without items there is no commit.
                first = list(islice(items, 1))
                if first:
                    self.store.extend(chain(first, items))
                return bool(first)
            case (index, items):
                items = list(items)
                self._insert_all(index, items)
                return bool(items)
        raise TypeError(f"add_all() takes (items) or (index, items), not {len(arguments)} arguments")

    def set(self, index: int, item: T) -> T:
        """Replace the item at `index` and return the old one.

        Raises:
            IndexError: there is none.
        """
        place = _fitting(operator.index(index))
        old: T = self._edit(lambda view: _replaced(view, place, item))
        return old

    @property
    def source(self) -> ItemSource:
        """The items as a source, which `stream()` reads."""
        return ItemSource(self.store)

    def stream(self) -> Stream[T]:
        """Return an ordered stream of the items; workers read them from the storage.

        The items are the contents at the time of each terminal operation, regardless of concurrent writes.
        """
        return read(self.source, f"get_list({self.name!r}).stream()", self._runtime)

    def parallel_stream(self) -> Stream[T]:
        """Return a stream of the items that need not retain their order."""
        return self.stream().unordered()

    # How it works

    def _look(self, look: Callable[[ListView], R]) -> R:
        """Return the result of `look` for one consistent state of the list."""
        return self._edit(lambda view: (None, look(view)))

    def _edit(self, change: Callable[[ListView], tuple[Splice | None, R]]) -> R:
        """Change the list by the first part of the result of `change`, and return the second."""
        result: list[R] = []

        def edit(view: ListView) -> Splice | None:
            splice, outcome = change(view)
            # The store calls this again after a conflict, and the last call counts.
            result[:] = [outcome]
            return splice

        self.store.edit(edit)
        return result[0]

    def _insert_all(self, index: Any, items: list[T]) -> None:
        before = operator.index(index)

        def change(view: ListView) -> Splice | None:
            place = before + view.size if before < 0 else before
            if not 0 <= place <= view.size:
                raise IndexError(f"index {before} lies beyond the {view.size} items of list {self.name!r}")
            return Splice(place, place, items) if items else None

        self.store.edit(change)

    def _splits(self) -> Sequence[ItemSplit]:
        return self.store.splits(PIECES)

    def _walk(self) -> Iterator[Sequence[object]]:
        return enumerate(self)

    def _written(self, *row: object) -> str:
        return super()._written(row[1])


def _fitting(index: int) -> int:
    if not -sys.maxsize <= index <= sys.maxsize:
        raise IndexError("cannot fit 'int' into an index-sized integer")
    return index


def _item_from_the_end(view: ListView, index: int) -> Any:
    place = position(index, view.size, "list index out of range")
    return view.read(place, place + 1)[0]


def _replaced(view: ListView, index: int, item: Any) -> tuple[Splice, Any]:
    place = position(index, view.size, "list assignment index out of range")
    return Splice(place, place + 1, [item]), view.read(place, place + 1)[0]


def _removed(view: ListView, index: int, message: str) -> tuple[Splice, Any]:
    place = position(index, view.size, message)
    return Splice(place, place + 1, []), view.read(place, place + 1)[0]


def _listed(value: Any, index: slice) -> list[Any]:
    if not isinstance(value, Iterable) and not hasattr(value, "__getitem__"):
        list.__setitem__([], index, value)  # `list` raises the message of this version of Python.
    return list(value)


def _sorted(items: list[Any], key: Callable[[Any], Any] | None, reverse: bool) -> list[Any]:
    items.sort(key=key, reverse=reverse)
    return items
