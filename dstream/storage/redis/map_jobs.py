"""What the driver does for a job that writes entries: one script publishes all that tasks have staged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from dstream import pickling
from dstream.spi.store import Merge
from dstream.storage.checking import receipts_of
from dstream.storage.codec.codec import Codec
from dstream.storage.redis.map_scripts import PUBLISH
from dstream.storage.redis.map_writer import EntryWriter, StagedBucket, StagedKeys
from dstream.storage.redis.redis_collection import Collection, types_of
from dstream.storage.redis.redis_staging import Job
from dstream.storage.redis.server import Connection
from dstream.storage.vanished import removed_error
from dstream.storage.written_entries import merged_with

__all__ = ["MapJob"]


class MapJob(Job):
    """A job that writes entries.

    Tasks merge with the values that they find. The script publishes only if these are there still; otherwise it
    says which are not, they are merged again here, and it runs again.
    """

    def __init__(
        self,
        connection: Connection,
        collection: Collection,
        codec: Codec,
        job: str | None,
        epoch: int,
        merge: Merge | None,
        replace: bool,
    ) -> None:
        super().__init__(connection, collection, codec, job, epoch, replace)
        self._merge = None if replace else merge  # what disappears is not merged with
        pickled = None if self._merge is None else pickling.dumps(self._merge)
        self._writer = EntryWriter(collection, codec, self._run, pickled)

    @property
    def writer(self) -> EntryWriter:
        """What travels to the tasks."""
        return self._writer

    def commit(self, receipts: Sequence[Any]) -> None:
        """Publish all staged buckets in one script, and remove what losing attempts have staged."""
        known = self._began_with
        parts = receipts_of(
            self._collection, lambda receipt: StagedBucket.of(receipt, self._collection, known), receipts
        )
        while not self.is_done:
            types, codec = self._types(parts)
            answer, *differing = self._publish(types, codec, parts)
            if answer == b"changed":
                self._merge_again(codec, parts, differing)
        self._tidy(parts)

    def _publish(self, types: bytes, codec: Codec, receipts: Sequence[StagedBucket]) -> list[Any]:
        collection = self._collection
        used = range(collection.bucket_count) if self._replace else sorted({written.number for written in receipts})
        places = {number: at for at, number in enumerate(used, 1)}
        keys = [self._mark, collection.temporary, collection.journal, *map(collection.bucket, used)]
        flags = [self._is_anonymous, int(bool(collection.shape.journal)), int(self._replace)]
        arguments = [types, types_of(codec), self._job, self._epoch, *flags, len(places)]
        for written in receipts:
            keys += written.keys
            arguments += [places[written.number], written.size, int(self._merge is not None)]
        return list(self._script(PUBLISH, keys, *arguments))

    def _merge_again(
        self, codec: Codec, receipts: Sequence[StagedBucket], differing: Sequence[tuple[int, bytes, bytes]]
    ) -> None:
        """Merge the new values of some keys with the values that are there by now."""
        by_receipt: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        for number, key, now in differing:
            by_receipt[number][key] = now
        for number, old in by_receipt.items():
            self._merge_with(codec, receipts[number].keys, old)

    def _merge_with(self, codec: Codec, keys: StagedKeys, old: dict[bytes, bytes]) -> None:
        assert self._merge is not None  # the script compares nothing otherwise
        with self._collection.pipeline(self._connection) as pipe:
            pipe.hmget(keys.new, list(old))
            [values] = pipe.execute()
        if None in values:
            raise removed_error(self._collection)
        _, entries = merged_with(codec, old, dict(zip(old, values, strict=True)), self._merge)
        with self._connection.pipeline() as pipe:
            pipe.hset(keys.entries, mapping=entries)
            pipe.hset(keys.old, mapping=old)
            pipe.execute()
