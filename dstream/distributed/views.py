"""Live views of a map, as those of a dict: `len` and `in` ask the storage and read nothing else."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar

from dstream.distributed.equality import same
from dstream.values import Entry

__all__ = ["EntrySet", "KeySet", "Values"]

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
        # As for a dict's views, `&`, `|`, `-` and `^` give a plain set.
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
