"""`ReadMap`: the queries of a distributed map and its live views, as a dict has them."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any, TypeVar, overload

from more_itertools import chunked

from dstream.base.showing import shown
from dstream.collections.base import PIECES, Collection, same, type_seen
from dstream.errors import NullElementError, UnstableKeyError
from dstream.keys import canonical
from dstream.spi.store import EntrySplit, MapStore
from dstream.values import Entry
from dstream.values.entries import as_entry
from dstream.values.tables import brief

__all__ = ["CHUNK", "EntrySet", "KeySet", "ReadMap", "Values", "local"]


K = TypeVar("K")
V = TypeVar("V")


class KeySet(KeysView[K]):
    """The keys of a map."""

    def __init__(self, entries: Mapping[K, Any]) -> None:
        super().__init__(entries)
        self._entries = entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)


class EntrySet(ItemsView[K, V]):
    """The entries of a map."""

    def __init__(self, entries: Mapping[K, V], read: Callable[[], Iterator[Entry[K, V]]]) -> None:
        super().__init__(entries)
        self._entries = entries
        self._read = read

    def __iter__(self) -> Iterator[Entry[K, V]]:
        return self._read()

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, tuple) or len(item) != 2:
            return False
        value = self._entries.get(item[0])
        return value is not None and same(value, item[1])

    @classmethod
    def _from_iterable(cls, items: Iterable[Any]) -> Any:
        # As for a dict's views, `&`, `|`, `-` and `^` return a plain set.
        return set(items)


class Values(ValuesView[V]):
    """The values of a map."""

    def __init__(self, entries: Mapping[Any, V], read: Callable[[], Iterator[Entry[Any, V]]]) -> None:
        super().__init__(entries)
        self._read = read

    def __iter__(self) -> Iterator[V]:
        return (value for _, value in self._read())

    def __contains__(self, value: object) -> bool:
        return any(same(known, value) for known in self)


R = TypeVar("R")
D = TypeVar("D")

CHUNK = 1000
"""The number of entries in one batch of lookups or changes of an operation on all entries."""


class ReadMap(Collection[MapStore], Mapping[K, V]):
    """The reading half of `IStreamMap`."""

    _unit = ("entry", "entries")
    _columns = ("key", "value")
    _brackets = "{{{}}}"
    _instead = "read what you need before, with get_all(keys) or copy()"

    @property
    def key_type(self) -> Any:
        """The type of its keys; None while it is not decided."""
        return self.options.key_type

    # Reading, as from a dict

    def __getitem__(self, key: K) -> V:
        value = self._found(key)
        if value is None:
            raise KeyError(key)
        found: V = value
        return found

    @overload
    def get(self, key: K, /) -> V | None: ...

    @overload
    def get(self, key: K, default: V, /) -> V: ...

    @overload
    def get(self, key: K, default: D, /) -> V | D: ...

    def get(self, key: K, default: Any = None, /) -> Any:
        """Return the value of `key`, or `default` if there is none."""
        value = self._found(key)
        return default if value is None else value

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the entries of those `keys` that exist, all from one state of the map.

        Raises:
            TypeError: `keys` is a string, or cannot be iterated; `get(key)` returns one value.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.update(Ada=36, Grace=85)
            ...     ages.get_all(["Ada", "Alan"])
            {'Ada': 36}
        """
        if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
            raise TypeError(f"get_all() takes several keys, such as a list of them, not {shown(keys)}")
        known = [self._key(key) for key in keys if key is not None]
        values = self.store.get_many(known) if known else []
        return {key: value for key, value in zip(known, values, strict=True) if value is not None}

    def _found(self, key: object) -> Any:
        """Return the value of `key`, or None if there is none; None is never a key of the map."""
        if key is None:
            return None
        self._runtime.check_open()  # Inlines `self.store`, and a string is its own canonical key: two calls less.
        return self._opened.get_many([key if type(key) is str else self._key(key)])[0]

    def __contains__(self, key: object) -> bool:
        return self._found(key) is not None

    def __len__(self) -> int:
        return self.size()

    def __bool__(self) -> bool:
        return not self.is_empty()

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self._pairs())

    def keys(self) -> KeySet[K]:
        """Return a live view of the keys."""
        return KeySet(self)

    def items(self) -> EntrySet[K, V]:
        """Return a live view of the entries."""
        return EntrySet(self, self._entries)

    def values(self) -> Values[V]:
        """Return a live view of the values."""
        return Values(self, self._entries)

    def key_set(self) -> KeySet[K]:
        """Return a live view of the keys, as `keys()`."""
        return self.keys()

    def entry_set(self) -> EntrySet[K, V]:
        """Return a live view of the entries, as `items()`."""
        return self.items()

    def copy(self) -> dict[K, V]:
        """Return the entries as a plain dict, all from one state; they must fit into the caller's memory."""
        return dict(self._pairs())

    def __eq__(self, other: object) -> bool:
        """Return whether `other`, any mapping, has the same entries."""
        if not isinstance(other, Mapping):
            return NotImplemented
        if other is self:
            return True
        if isinstance(other, ReadMap):
            return self._equals_stored(other)
        theirs = _canonical_keys(other)
        return theirs is not None and self.size() == len(theirs) and self._is_within(theirs)

    __hash__ = None  # type: ignore[assignment]  # As for a dict.

    def _equals_stored(self, other: ReadMap[Any, Any]) -> bool:
        if self.size() != other.size():
            return False
        # In chunks, since neither map need fit into memory.
        return all(self._is_within(other.get_all(dict(chunk)), chunk) for chunk in chunked(self._pairs(), CHUNK))

    def _is_within(self, theirs: Mapping[Any, Any], entries: Iterable[tuple[Any, Any]] | None = None) -> bool:
        entries = self._pairs() if entries is None else entries
        return all(key in theirs and same(value, theirs[key]) for key, value in entries)

    def __or__(self, other: Mapping[D, R]) -> dict[K | D, V | R]:
        """Return a plain dict of the entries of both; `other` wins."""
        merged: dict[K | D, V | R] = _merged(self, other)
        return merged

    def __ror__(self, other: Mapping[D, R]) -> dict[K | D, V | R]:
        merged: dict[K | D, V | R] = _merged(other, self)
        return merged

    # How it works

    def _key(self, key: Any) -> Any:
        """Return the canonical form of a key.

        Raises:
            NullElementError: it is None.
            UnstableKeyError: it has no hash, or one that other processes do not share.
        """
        if key is None:
            raise NullElementError(f"{self._kind} {self.name!r} cannot have None as a key")
        try:
            return canonical(key)
        except UnstableKeyError as error:
            error.add_note(f"in {self._kind} {self.name!r}")
            raise

    def _place(self, operation: str) -> str:
        return f"{operation}() of {self._kind} {self.name!r}"

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        """Pin the current entries, and yield them one part after another."""
        return self._read(self._splits())

    def _entries(self) -> Iterator[Entry[K, V]]:
        return map(as_entry, self._pairs())

    def _splits(self) -> Sequence[EntrySplit]:
        return self.store.splits(PIECES)

    def _walk(self) -> Iterator[Sequence[object]]:
        return self._pairs()

    def _types_shown(self, rows: Sequence[Sequence[object]]) -> str:
        hints = (self.key_type, self.value_type)
        types = [type_seen(hint, [row[place] for row in rows]) or "?" for place, hint in enumerate(hints)]
        return "" if types == ["?", "?"] else " -> ".join(types)

    def _written(self, *row: object) -> str:
        return ": ".join(map(brief, row))


def local(entries: Any) -> Any:
    """Return entries in a form that `dict` accepts without looking up key by key."""
    return entries.copy() if isinstance(entries, ReadMap) else entries


def _merged(first: Any, second: Any) -> Any:
    if not (isinstance(first, Mapping) and isinstance(second, Mapping)):
        return NotImplemented
    return {**local(first), **local(second)}


def _canonical_keys(mapping: Mapping[Any, Any]) -> dict[Any, Any] | None:
    """Return the entries of any mapping by their keys as a map has them; None if no map can have them."""
    known = {}
    for key, value in mapping.items():
        try:
            known[canonical(key)] = value
        except UnstableKeyError:
            return None
    # Keys that are equal here, such as two NaN, are never in one map together.
    return known if len(known) == len(mapping) else None
