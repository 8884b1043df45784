"""Arrivals: the items of one task in batches with keys, late items apart, and the shards of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, islice, repeat
from typing import Any, TypeAlias, TypeVar

from dstream.failures.attribution import failed_on
from dstream.keys.hashing import keys_of, shard_numbers
from dstream.operators.rows.blocks import Block, ColumnItems
from dstream.values.time import Late, Timed

__all__ = ["Arrivals", "Batch", "LateItems", "by_shard", "late_outputs"]


V = TypeVar("V")

Batch: TypeAlias = tuple[Sequence[int], Iterable[Any], Sequence[Any]]
"""Timestamps, canonical keys and items, of the same length."""

LateItems: TypeAlias = list[tuple[int, Any]]
"""Timestamps and items that arrived too late, in order."""

_BATCH = 4096


class Arrivals:
    """The items of one task that are not late; iterated over once, after which the counts are complete.

    Args:
        items: the items with their timestamps.
        key: returns the key of an item; None: there are no keys, and every item has the key None.
        time: an item with a lower timestamp is late.
        keeps_late: whether late items are emitted; otherwise they are counted and dropped.

    Attributes:
        items: the number of arrived items.
        late: the number of late items.
        time: an item with a lower timestamp is late.
    """

    def __init__(self, items: Iterator[Timed], key: Callable[[Any], Any] | None, time: int, keeps_late: bool) -> None:
        self.items = 0
        self.late = 0
        self._left = items
        self._key = key
        self.time = time
        self._late_by_key: dict[Any, LateItems] | None = {} if keeps_late else None

    def __iter__(self) -> Iterator[Batch]:
        """Return the batches of items that are not late.

        Raises:
            ValueError: an item has no timestamp.
        """
        return self.of(self._left)

    def of(self, items: Iterable[Timed]) -> Iterator[Batch]:
        """Yield batches of `items` without late items."""
        left = iter(items)
        while batch := list(islice(left, _BATCH)):
            self.items += len(batch)
            timestamps, items = _columns(batch)
            # Only the least timestamp is checked, since late items are rare.
            if min(timestamps) < self.time:
                timestamps, items = self._in_time(timestamps, items)
            yield timestamps, self._keys_of(items), items

    def blocks(self) -> Iterator[Block]:
        """Return the items in blocks; the caller counts the items of a block without late items."""
        return self._left.blocks() if type(self._left) is ColumnItems else iter((self._left,))

    def again(self) -> Arrivals:
        """Return arrivals with this time and no items, to process a part of the items again."""
        return Arrivals(iter(()), self._key, self.time, keeps_late=False)

    def late_by_shard(self, shards: int) -> dict[int, LateItems]:
        """Return the emitted late items by shard; the items of a key are in order."""
        found = by_shard(self._late_by_key or {}, shards, self._key is not None)
        return {shard: list(chain.from_iterable(late.values())) for shard, late in found.items()}

    def _in_time(self, timestamps: Sequence[int], items: Sequence[Any]) -> tuple[Sequence[int], Sequence[Any]]:
        """Return the timestamps and items that are not late, and store the late items."""
        is_late = [timestamp < self.time for timestamp in timestamps]
        self._keep(list(compress(timestamps, is_late)), list(compress(items, is_late)))
        in_time = [not late for late in is_late]
        return list(compress(timestamps, in_time)), list(compress(items, in_time))

    def _keep(self, timestamps: Sequence[int], items: Sequence[Any]) -> None:
        self.late += len(items)
        if self._late_by_key is not None:
            for timestamp, key, item in zip(timestamps, self._keys_of(items), items, strict=False):
                self._late_by_key.setdefault(key, []).append((timestamp, item))

    def _keys_of(self, items: Sequence[Any]) -> Iterable[Any]:
        return repeat(None) if self._key is None else keys_of(self._key, items)


def _columns(batch: list[Timed]) -> tuple[Sequence[int], Sequence[Any]]:
    timestamps: tuple[Any, ...]
    timestamps, items = zip(*batch, strict=True)
    # Checked first, since `min` would fail on a None without naming its item.
    if None in timestamps:
        error = ValueError("an item without a timestamp fits no window; add_timestamps(...) gives each item one")
        failed_on(error, items[timestamps.index(None)])
        raise error
    return timestamps, items


def by_shard(groups: dict[Any, V], shards: int, is_keyed: bool) -> dict[int, dict[Any, V]]:
    """Return the values of canonical keys by their shards; without keys, all of them are in shard 0."""
    if not is_keyed:
        return {0: groups} if groups else {}
    parts: list[dict[Any, V]] = [{} for _ in range(shards)]
    for number, (key, value) in zip(shard_numbers(list(groups), shards), groups.items(), strict=True):
        parts[number][key] = value
    return {shard: part for shard, part in enumerate(parts) if part}


def late_outputs(late: Iterable[tuple[int, Any]]) -> Iterator[Timed]:
    """Return late items as the output of an operator."""
    return ((timestamp, Late(item)) for timestamp, item in late)
