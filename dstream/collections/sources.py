"""Distributed collections as sources of streams.

**Parallelism**: the store divides its entries or items; each task reads its split from the storage itself.
**Guarantee**: every entry once, as it was when the terminal operation started.
**On re-run**: a split reads the same state again; the next terminal operation reads the state of that time.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from dstream.base.records import record
from dstream.spi.source import ArrowRows, InputSize, Split, input_size
from dstream.spi.store import EntrySplit, ItemSplit, ListStore, MapStore, Store
from dstream.values.entries import as_entry

__all__ = ["EntryReader", "EntrySource", "ItemSource"]


@record(eq=False)
class EntrySource:
    """The entries of a map or a cache.

    Attributes:
        store: the store of the entries.
        predicate: selects entries; None for all.
        projection: returns the item of an entry; None for the entry itself. If it returns None, the entry is dropped.
    """

    store: MapStore
    predicate: Callable[[Any], object] | None = None
    projection: Callable[[Any], Any] | None = None

    ordered = False
    bounded = True

    @property
    def in_caller(self) -> bool:
        """Return whether the splits contain the entries."""
        return self.store.in_process

    @property
    def has_columns(self) -> bool:
        """Return whether the entries are in columns, and are neither filtered nor projected where they are read."""
        return getattr(self.store, "has_columns", False) and self._has_all

    @property
    def _has_all(self) -> bool:
        return self.predicate is None and self.projection is None

    def input_size(self) -> InputSize:
        """Return the size in the storage; entries that the predicate drops count too."""
        # The first results may be preceded by many entries that a predicate drops.
        return _size(self.store, is_near=self._has_all)

    def splits(self, parallelism: int) -> Sequence[Split[Any]]:
        """Pin the entries as they are now, and divide them."""
        return [EntryReader(split, self.predicate, self.projection) for split in self.store.splits(parallelism)]

    def replay(self, item: Any) -> Any:
        """Run the functions on one entry, as a reader does; None if the predicate leaves it out."""
        if self.predicate is not None and not self.predicate(item):
            return None
        return item if self.projection is None else self.projection(item)


@record(eq=False)
class EntryReader:
    """Reader of a split of a map, which filters and projects its entries."""

    split: EntrySplit
    predicate: Callable[[Any], object] | None
    projection: Callable[[Any], Any] | None

    def read(self) -> Iterator[Any]:
        """Yield the entries that satisfy the predicate, projected."""
        entries: Iterator[Any] = map(as_entry, self.split.read())
        if self.predicate is not None:
            entries = _satisfying(self.predicate, entries)
        return entries if self.projection is None else _projected(self.projection, entries)

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[Any]] | None:
        """Yield the entries in columns; None if the storage has none, or they are filtered or projected."""
        arrow_rows = getattr(self.split, "arrow_rows", None)
        rows = arrow_rows() if arrow_rows and self.predicate is None and self.projection is None else None
        return None if rows is None else map(_entries_of, rows)


def _entries_of(pairs: ArrowRows | Iterator[Any]) -> ArrowRows | Iterator[Any]:
    if not isinstance(pairs, ArrowRows):
        return map(as_entry, pairs)
    ways: frozenset[Literal["attribute", "key", "place"]] = frozenset({"attribute", "place"})
    return dataclasses.replace(pairs, reached_by=ways, items=functools.partial(_made_entries, pairs.items))


def _made_entries(pairs: Callable[[Any], Iterable[Any]], places: Any) -> Iterator[Any]:
    return map(as_entry, pairs(places))


# An exception of the user's function names the entry, which `dstream.failures` finds by the name `item`.


def _satisfying(predicate: Callable[[Any], object], entries: Iterator[Any]) -> Iterator[Any]:
    for item in entries:
        if predicate(item):
            yield item


def _projected(projection: Callable[[Any], Any], entries: Iterator[Any]) -> Iterator[Any]:
    for item in entries:
        result = projection(item)
        if result is not None:
            yield result


@record(eq=False)
class ItemSource:
    """The items of a list, in order."""

    store: ListStore

    ordered = True
    bounded = True

    @property
    def has_columns(self) -> bool:
        """Return whether the items are in columns."""
        return getattr(self.store, "has_columns", False)

    @property
    def in_caller(self) -> bool:
        """Return whether the splits contain the items."""
        return self.store.in_process

    def input_size(self) -> InputSize:
        """Return the size that the storage has."""
        return _size(self.store, is_near=True)

    def splits(self, parallelism: int) -> Sequence[ItemSplit]:
        """Pin the items as they are now, and divide them."""
        return self.store.splits(parallelism)


def _size(store: Store, *, is_near: bool) -> InputSize:
    return dataclasses.replace(input_size(store), is_held=store.in_process, is_near=is_near)
