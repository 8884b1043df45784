"""What tasks do for a job that writes entries: each stages the buckets that it owns."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from dstream.spi.store import Merge
from dstream.storage.checking import number as checked_number
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.codec_keys import bucket_of
from dstream.storage.encoded import EncodedEntries
from dstream.storage.portions import Portions
from dstream.storage.redis.redis_collection import Collection
from dstream.storage.redis.redis_staging import AT_A_TIME, Sender, Stage
from dstream.storage.redis.server import Connection
from dstream.storage.written_entries import encoded_bucket, merged_with
from dstream.storage.written_types import codec_by

__all__ = ["EntryWriter", "StagedBucket", "StagedKeys"]


class StagedKeys(NamedTuple):
    """The keys of a staged bucket.

    Attributes:
        entries: the hash of the entries, merged if the job merges; an empty value is that of no entry.
        old: the hash of the values that they were merged with, empty where there was none.
        new: the hash of the values before they were merged.
    """

    entries: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class StagedBucket:
    """How many entries an attempt has staged for which bucket."""

    stage: Stage
    codec: Codec
    number: int
    size: int

    @staticmethod
    def of(receipt: Any, collection: Collection, codec: Codec) -> StagedBucket:
        """Return what a receipt says."""
        stage = Stage.at(collection, receipt["at"])
        bucket = checked_number(receipt["bucket"], collection.bucket_count - 1)
        return StagedBucket(stage, codec_by(receipt["types"], codec), bucket, checked_number(receipt["size"]))

    @property
    def receipt(self) -> dict[str, Any]:
        """The same as plain data."""
        described = {"at": self.stage.prefix, "types": self.codec.to_json()}
        return {**described, "bucket": self.number, "size": self.size}

    @property
    def keys(self) -> StagedKeys:
        """Where they are."""
        return StagedKeys(self.stage.key("entries"), self.stage.key("old"), self.stage.key("new"))

    def check(self, connection: Connection, codec: Codec) -> None:
        """Read the entries, and raise what a strict map of other types refuses."""
        with connection.pipeline() as pipe:
            pipe.hgetall(self.keys.entries)
            [entries] = pipe.execute()
        for key, value in EncodedEntries(self.codec, [entry for entry in entries.items() if entry[1]]).read():
            codec.checked(key, value)


@dataclass(frozen=True, slots=True)
class EntryWriter:
    """Stages the entries of tasks.

    Attributes:
        run: what the places of all attempts of this run of the job begin with.
        merge: the pickled function that makes one value of an old and a new one.
    """

    collection: Collection
    codec: Codec
    run: str
    merge: bytes | None

    @property
    def buckets(self) -> int:
        """Into how many parts the keys are divided."""
        return self.collection.bucket_count

    def bucket_of(self, key: Any) -> int:
        """Return the bucket of a key."""
        return bucket_of(self.codec.encode_key(key), self.buckets)

    def check_item(self, entry: tuple[Any, Any]) -> None:
        """Refuse an entry that the map does not take, if nothing is merged with its value."""
        key, value = entry
        self.bucket_of(key)
        if self.merge is None:
            self.codec.checked(key, value)

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        """Stage the entries, and give one receipt for all of them."""
        attempt = _Attempt(self, bucket)
        portions = Portions(entries, AT_A_TIME)
        while some := portions.take():
            portions.learn(len(some), attempt.add(some))
            some.clear()
        if attempt.written.size:
            yield attempt.written.receipt


class _Attempt:
    """One attempt to write a bucket."""

    def __init__(self, writer: EntryWriter, bucket: int) -> None:
        self.written = StagedBucket(Stage.of(writer.collection, writer.run), writer.codec, bucket, 0)
        self._collection = writer.collection
        self._connection = writer.collection.server.shared()
        self._sender = Sender(self._connection, writer.collection)
        self._merge: Merge | None = None if writer.merge is None else pickle.loads(writer.merge)

    def add(self, items: Sequence[tuple[Any, Any]]) -> int:
        """Stage some entries, and return how many bytes they have."""
        collection, written = self._collection, self.written
        codec, new = encoded_bucket(written.codec, items, written.number, collection.bucket_count, self._merge)
        keys = self.written.keys
        if self._merge is None:
            added, *_ = self._sender.send(keys[:1], lambda pipe: pipe.hset(keys.entries, mapping=new))
        else:
            old = self._old(new)
            codec, entries = merged_with(codec, old, new, self._merge)
            hashes = {keys.entries: entries, keys.old: old, keys.new: new}
            added, *_ = self._sender.send(keys, lambda pipe: [pipe.hset(key, mapping=hashes[key]) for key in keys])
        self.written = StagedBucket(self.written.stage, codec, self.written.number, self.written.size + added)
        return sum(map(len, chain(new.keys(), new.values())))

    def _old(self, new: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Return the values that are there, empty where there is none."""
        with self._collection.pipeline(self._connection) as pipe:
            pipe.hmget(self._collection.bucket(self.written.number), list(new))
            [values] = pipe.execute()
        return {key: value or b"" for key, value in zip(new, values, strict=True)}
