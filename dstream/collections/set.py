"""`IStreamSet`: a distributed set that works like Python's."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, MutableSet, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from dstream.collections.base import PIECES, Collection, type_seen
from dstream.collections.sources import EntrySource
from dstream.errors import NullElementError, UnstableKeyError
from dstream.keys import canonical
from dstream.keys.canonical import canonical_or_itself
from dstream.spi.store import UNCHANGED, EntrySplit, Kind, MapStore
from dstream.stream.objects import Stream, read

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["IStreamSet"]

T = TypeVar("T")

_THERE = True
"""The value of every entry of the map that a set is stored as; its keys are the items."""

_of_entry: Callable[[Any], Any] = operator.itemgetter(0)


class IStreamSet(Collection[MapStore], MutableSet[T]):
    """A set in a storage. Get one with `Context.get_set`.

    Items are equal as in a set, and all NaN are one item; None is not allowed. Adding and removing are atomic, for all
    threads and processes; `update` and `|=` are one commit, `&=`, `-=` and `^=` are several. There is no order, and
    iteration sees the state at its start. `|`, `&`, `-` and `^` return plain sets.

    Example:
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     seen = ctx.get_set("seen")
        ...     seen.add("whale")
        ...     seen.update(["sea", "whale"])
        ...     "sea" in seen, len(seen), seen.stream().sorted().to_list()
        (True, 2, ['sea', 'whale'])
    """

    _kind: ClassVar[Kind] = "set"
    _unit = ("item", "items")
    _columns = ("item",)
    _brackets = "{{{}}}"
    _instead = "copy it into a set before"

    @property
    def value_type(self) -> Any:
        """The type of its items; None while it is not decided."""
        return self.options.key_type

    # Reading, as from a set

    def __contains__(self, item: object) -> bool:
        return item is not None and self.store.get_many([self._known(item)])[0] is not None

    def __iter__(self) -> Iterator[T]:
        return map(_of_entry, self._read(self._splits()))

    def __len__(self) -> int:
        return self.size()

    def __bool__(self) -> bool:
        return not self.is_empty()

    def copy(self) -> set[T]:
        """Return the items as a plain set, all from one state; they must fit into the caller's memory."""
        return set(self)

    @classmethod
    def _from_iterable(cls, items: Iterable[Any]) -> Any:
        """Return the result of `|` and its like: a plain set, in which every NaN is one item."""
        return set(map(canonical_or_itself, items))

    # A plain set finds a NaN by its identity, which a storage does not preserve.

    def __sub__(self, other: Iterable[Any]) -> Any:
        if not isinstance(other, Iterable):
            return NotImplemented
        others = self._findable(other)
        return {item for item in map(canonical_or_itself, self) if item not in others}

    def __le__(self, other: AbstractSet[Any]) -> bool:
        if not isinstance(other, AbstractSet):
            return NotImplemented
        others = self._findable(other)
        return len(self) <= len(others) and all(item in others for item in map(canonical_or_itself, self))

    def _findable(self, items: Iterable[Any]) -> AbstractSet[Any]:
        """Return items as a set in which every NaN is found."""
        found: AbstractSet[Any] = items if isinstance(items, IStreamSet) else self._from_iterable(items)
        return found

    # Writing

    def add(self, value: T) -> None:
        """Add an item; nothing is written if the set has it."""
        self.update([value])

    def update(self, items: Iterable[T]) -> None:
        """Add items, all in one commit.

        Raises:
            NullElementError: one of them is None.
            UnstableKeyError: one of them has no hash, or one that other processes do not share.
        """
        known = list(dict.fromkeys(self._known(item) for item in items))
        if known:
            # Items that the set has are not written again, and are no event of a journal.
            self.store.update(known, lambda old: [UNCHANGED if each else _THERE for each in old])

    def discard(self, value: T) -> None:
        """Remove an item if the set has it."""
        if value is not None:
            self._taken(value)

    def remove(self, value: T) -> None:
        """Remove an item, atomically: of several callers, one succeeds.

        Raises:
            KeyError: it is not there.
        """
        if value is None or not self._taken(value):
            raise KeyError(value)

    def pop(self) -> T:
        """Remove an arbitrary item and return it: of several callers, one gets it.

        Raises:
            KeyError: the set is empty.
        """
        while not self.is_empty():  # Others may remove all the items that one walk sees.
            for item in self:
                if self._taken(item):
                    return item
        raise KeyError(f"pop(): {self._kind} {self.name!r} is empty")

    def clear(self) -> None:
        """Remove all items, atomically."""
        self.store.clear()

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc]  # `|` returns a plain set.
        self.update(other)
        return self

    # Streams and tables

    @property
    def source(self) -> EntrySource:
        """The items as a source, which `stream()` reads."""
        return EntrySource(self.store, None, _of_entry)

    def stream(self) -> Stream[T]:
        """Return an unordered stream of the items; workers read them from the storage."""
        return read(self.source, f"get_set({self.name!r}).stream()", self._runtime)

    def to_arrow(self) -> pa.Table:
        """Return the items as a `pyarrow.Table`, as `stream().to_arrow()`; they must fit into the caller's memory."""
        return self.stream().to_arrow()

    def to_df(self) -> Any:
        """Return the items as a table of the engine, as `stream().to_df()`: a Spark DataFrame."""
        return self.stream().to_df()

    # How it works

    def _known(self, item: Any) -> Any:
        """Return the canonical form of an item."""
        if item is None:
            raise NullElementError(f"set {self.name!r} cannot hold None")
        try:
            return canonical(item)
        except UnstableKeyError as error:
            error.add_note(f"in set {self.name!r}")
            raise

    def _taken(self, item: Any) -> bool:
        """Remove an item, and return whether the set had it."""
        (old,) = self.store.update([self._known(item)], lambda old: [UNCHANGED if old[0] is None else None])
        return old is not None

    def _splits(self) -> Sequence[EntrySplit]:
        return self.store.splits(PIECES)

    def _walk(self) -> Iterator[Sequence[object]]:
        return ((item,) for item in self)

    def _types_shown(self, rows: Sequence[Sequence[object]]) -> str:
        return type_seen(self.value_type, [row[0] for row in rows])
