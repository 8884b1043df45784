"""What tasks read: buckets of a map, stretches of a list, each over a connection of the process that reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dstream.storage.encoded import EncodedEntries, EncodedItems
from dstream.storage.redis.list_scripts import READ_PINNED
from dstream.storage.redis.redis_collection import Collection
from dstream.storage.vanished import destroyed_error

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BucketSplit", "StretchSplit"]

ITEMS_AT_A_TIME = 8192


@dataclass(frozen=True, slots=True)
class BucketSplit:
    """Some buckets of a map; each is read at once, when its turn comes."""

    collection: Collection
    buckets: Sequence[int]

    def read(self) -> Iterator[tuple[Any, Any]]:
        """Give the entries, bucket by bucket."""
        for entries in self._entries():
            yield from entries.read()

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Give the entries in columns, bucket by bucket."""
        for entries in self._entries():
            yield from entries.read_arrow()

    def _entries(self) -> Iterator[EncodedEntries]:
        collection = self.collection
        connection = collection.server.shared()
        for number in self.buckets:
            with collection.pipeline(connection) as pipe:
                pipe.hgetall(collection.bucket(number))
                pipe.hget(collection.meta, "types")  # afterwards: as long as it is there, the bucket was whole
                entries, types = pipe.execute()
            if types is None:
                raise destroyed_error(collection)
            if entries:
                yield EncodedEntries(collection.codec(types), list(entries.items()))


@dataclass(frozen=True, slots=True)
class StretchSplit:
    """The items of a list from one position up to another, as they were in one epoch."""

    collection: Collection
    epoch: bytes
    start: int
    stop: int

    def read(self) -> Iterator[Any]:
        """Give the items in order."""
        for items in self._items():
            yield from items.read()

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Give the items in a column."""
        for items in self._items():
            yield from items.read_arrow()

    def _items(self) -> Iterator[EncodedItems]:
        collection = self.collection
        connection = collection.server.shared()
        for start in range(self.start, self.stop, ITEMS_AT_A_TIME):
            stop = min(start + ITEMS_AT_A_TIME, self.stop)
            types, items = collection.run(connection, READ_PINNED, [collection.items], self.epoch, start, stop - 1)
            yield EncodedItems(collection.codec(types), items)
