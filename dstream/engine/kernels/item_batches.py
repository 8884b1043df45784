"""Batches: how items travel, a few hundred kilobytes of pickled items at a time."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dstream.engine.kernels.columns.column_items import ColumnItems, given
from dstream.engine.kernels.columns.unmade import Unmade
from dstream.errors import SerializationError
from dstream.failures import shown
from dstream.memory import Taking
from dstream.pickling import dumps
from dstream.values import Entry

__all__ = ["Batch", "Batcher", "dumps_columns", "dumps_items", "loads", "loads_items", "travelling"]

TARGET_BYTES = 256 * 1024
_FIRST_COUNT = 64
"""At most so many items make the first batch, of which only the first item was measured."""
_LARGEST_COUNT = 16_384
_GROWTH = 4

loads = pickle.loads


def dumps_items(items: list[Any]) -> bytes:
    """Pickle a list of items.

    Raises:
        SerializationError: one of them cannot be pickled; the message names it.
    """
    try:
        return dumps(travelling(items))
    except Exception as error:
        for item in items:
            _check(item)
        raise SerializationError(f"these items cannot be pickled together: {error}") from error


def dumps_columns(columns: Sequence[list[Any]]) -> bytes:
    """Pickle lists of the same length, such as keys and their items, which take less than as many tuples.

    Raises:
        SerializationError: something in them cannot be pickled; the message names it.
    """
    try:
        return dumps(list(map(travelling, columns)))
    except Exception as error:
        for item in chain(*columns):
            _check(item)
        raise SerializationError(f"these items cannot be pickled together: {error}") from error


def travelling(items: list[Any]) -> Iterable[Any]:
    """Return what a list of items is to be pickled as, also inside of something else: a list comes out again."""
    return _Entries(items) if set(map(type, items)) == {Entry} else items


class _Entries:
    """Entries on their way: two lists take half the time of as many objects."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        # `zip(*entries)` would make an iterator for each entry, which wakes the garbage collector: four times the work.
        return _entries, ([key for key, _ in self._entries], [value for _, value in self._entries])


def _entries(keys: list[Any], values: list[Any]) -> list[Any]:
    return list(map(Entry._make, zip(keys, values, strict=True)))


def _check(item: Any) -> None:
    try:
        dumps(item)
    except Exception as error:
        for each in getattr(item, "items_of_block", ()):
            _check(each)
        raise SerializationError(
            f"an item cannot travel between processes: {type(item).__name__} {shown(item)} cannot be pickled: {error}"
        ) from error


def loads_items(data: Any) -> Any:
    """Unpickle a list of items, with the collector of cyclic garbage paused.

    It would look at all that is there again and again: a million entries take a third of the time (CPython 3.11).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        items: list[Any] = loads(data)
    finally:
        if was_enabled:
            gc.enable()
    return items


@dataclass(frozen=True)
class Batch:
    """A pickled batch as a split of its own."""

    data: bytes

    def read(self) -> Iterator[Any]:
        """Give the items."""
        return iter(loads(self.data))


class Batcher:
    """Cuts items into pickled batches of about 256 KB, learning how large the items are.

    Attributes:
        count: how many items make a batch; one as long as nothing is known.
    """

    def __init__(self) -> None:
        self.count = 1
        self._is_new = True

    def batches(self, items: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        """Give (number of items, pickled list) for `items`, reading no further than the batch at hand."""
        if type(items) is ColumnItems and not items.is_read:
            yield from self._blocks(items)
            return
        taking = Taking(items)
        while batch := taking.take(self.count):
            if self._is_new:
                self.begin(batch)
                batch += taking.take(self.count - 1) if self.count > 1 else []
            data = dumps_items(batch)
            self.learn(len(batch), len(data))
            yield len(batch), data

    def _blocks(self, items: ColumnItems) -> Iterator[tuple[int, bytes]]:
        """Do the same with items of which some stand in columns, which travel as columns."""
        for block in items.blocks():
            if isinstance(block, Sequence | Iterator | Unmade):
                yield from self.batches(iter(given(block)))
                continue
            from dstream.engine.kernels.columns.column_transport import packed_columns  # loads NumPy

            yield from packed_columns(block)

    def pairs(self, left: list[Any], right: list[Any]) -> Iterator[tuple[int, bytes]]:
        """Give (number of pairs, pickled list of two lists) for two lists of the same length."""
        start = 0
        self.begin([left[:1], right[:1]])
        while start < len(left):
            parts = [left[start : start + self.count], right[start : start + self.count]]
            data = dumps_items(parts)
            size = len(parts[0])
            self.learn(size, len(data))
            start += size
            yield size, data

    def begin(self, first: list[Any]) -> None:
        """Aim the first batch at the target size, given its first item; what is known already stands."""
        if self._is_new:
            self.count = max(1, min(TARGET_BYTES // len(dumps_items(first)), _FIRST_COUNT))
            self._is_new = False

    def learn(self, count: int, size: int) -> None:
        """Aim the next batch at the target size."""
        fitting = max(1, count * TARGET_BYTES // max(size, 1))
        self.count = min(fitting, self.count * _GROWTH, _LARGEST_COUNT)
