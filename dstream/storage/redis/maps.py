"""Maps and caches in one hash per bucket, and the jobs that stage and publish entries."""

from __future__ import annotations

import pickle
import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from dstream.base import pickling
from dstream.base.records import record
from dstream.base.validation import checked_number, receipts_of
from dstream.errors import IllegalStateError
from dstream.spi.sink import MapWriter, WriteJob
from dstream.spi.store import Assignment, EntrySplit, Merge
from dstream.storage.base.encoded_entries import (
    EncodedEntries,
    EntryWriter,
    NumberedJournal,
    Portions,
    changed,
    decoded,
    divided,
    encoded_bucket,
    encoded_keys,
    journal_event,
    merged_with,
)
from dstream.storage.base.options import removed_error
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import codec_by
from dstream.storage.codec.keys import bucket_of
from dstream.storage.redis.collection import BucketSplit, RedisCollection, RedisHandle, types_of
from dstream.storage.redis.scripts import MAP_CLEAR, MAP_EVENTS, MAP_GET, MAP_PUBLISH, MAP_SIZE, MAP_SWAP
from dstream.storage.redis.server import Connection
from dstream.storage.redis.staging import AT_A_TIME, RedisJob, Sender, Stage
from dstream.values.entries import JournalEvent

__all__ = ["RedisEntryWriter", "RedisMap", "RedisMapJob", "StagedBucket", "StagedKeys"]


class StagedKeys(NamedTuple):
    """The keys of a staged bucket.

    Attributes:
        entries: the hash of the entries, merged if the job merges; an empty value means no entry.
        old: the hash of the values that they were merged with, empty if there was none.
        new: the hash of the values before they were merged.
    """

    entries: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class StagedBucket:
    """Staged entries of one attempt for one bucket."""

    stage: Stage
    codec: Codec
    number: int
    size: int

    @staticmethod
    def of(receipt: Any, collection: RedisCollection, codec: Codec) -> StagedBucket:
        """Return the staged bucket of a receipt."""
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
        """The keys of the staged hashes."""
        return StagedKeys(self.stage.key("entries"), self.stage.key("old"), self.stage.key("new"))

    def check(self, connection: Connection, codec: Codec) -> None:
        """Read the entries, and raise the refusals of a strict map of other types."""
        with connection.pipeline() as pipe:
            pipe.hgetall(self.keys.entries)
            [entries] = pipe.execute()
        for key, value in EncodedEntries(self.codec, [entry for entry in entries.items() if entry[1]]).read():
            codec.checked(key, value)


@record
class RedisEntryWriter(EntryWriter):
    """Writer of entries into staging keys until the job commits.

    Attributes:
        run: the beginning of the names of all attempts of this run of the job.
        merge: the pickled function that merges an old and a new value.
    """

    collection: RedisCollection
    run: str
    merge: bytes | None

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        """Stage the entries, and yield one receipt for all of them."""
        attempt = _Attempt(self, bucket)
        portions = Portions(entries, AT_A_TIME)
        while some := portions.take():
            portions.learn(len(some), attempt.add(some))
            some.clear()
        if attempt.written.size:
            yield attempt.written.receipt


class _Attempt:
    """Attempt to write a bucket."""

    def __init__(self, writer: RedisEntryWriter, bucket: int) -> None:
        self.written = StagedBucket(Stage.of(writer.collection, writer.run), writer.codec, bucket, 0)
        self._collection = writer.collection
        self._connection = writer.collection.server.shared()
        self._sender = Sender(self._connection, writer.collection)
        self._merge: Merge | None = None if writer.merge is None else pickle.loads(writer.merge)

    def add(self, items: Sequence[tuple[Any, Any]]) -> int:
        """Stage entries, and return their number of bytes."""
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
        # The count is the number of new fields, from HSET: the script compares it with the size of the hash.
        self.written = StagedBucket(self.written.stage, codec, self.written.number, self.written.size + added)
        return sum(map(len, chain(new.keys(), new.values())))

    def _old(self, new: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Return the stored values, empty if there is none."""
        with self._collection.pipeline(self._connection) as pipe:
            pipe.hmget(self._collection.bucket(self.written.number), list(new))
            [values] = pipe.execute()
        return {key: value or b"" for key, value in zip(new, values, strict=True)}


class RedisMapJob(RedisJob):
    """A job that writes entries.

    Tasks merge with the values that they find. The script publishes only if these are unchanged; otherwise it returns
    those that are not, which are merged again, and it runs again.
    """

    def __init__(
        self,
        connection: Connection,
        collection: RedisCollection,
        codec: Codec,
        job: str | None,
        epoch: int,
        merge: Merge | None,
        replace: bool,
    ) -> None:
        super().__init__(connection, collection, codec, job, epoch, replace)
        self._merge = None if replace else merge  # entries that disappear are not merged with
        pickled = None if self._merge is None else pickling.dumps(self._merge)
        is_merging = pickled is not None
        self._writer = RedisEntryWriter(codec, collection.bucket_count, is_merging, collection, self._run, pickled)

    @property
    def writer(self) -> RedisEntryWriter:
        """The writer for the tasks."""
        return self._writer

    def commit(self, receipts: Sequence[Any]) -> None:
        """Publish all staged buckets in one script, and remove the buckets of losing attempts."""
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
        # Replacing empties also the buckets for which nothing was staged.
        used = range(collection.bucket_count) if self._replace else sorted({written.number for written in receipts})
        places = {number: at for at, number in enumerate(used, 1)}
        keys = [self._mark, collection.temporary, collection.journal, *map(collection.bucket, used)]
        flags = [self._is_anonymous, int(bool(collection.shape.journal)), int(self._replace)]
        arguments = [types, types_of(codec), self._job, self._epoch, *flags, len(places)]
        for written in receipts:
            keys += written.keys
            arguments += [places[written.number], written.size, int(self._merge is not None)]
        return list(self._script(MAP_PUBLISH, keys, *arguments))

    def _merge_again(
        self, codec: Codec, receipts: Sequence[StagedBucket], differing: Sequence[tuple[int, bytes, bytes]]
    ) -> None:
        """Merge the new values of keys with the current values."""
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
        # Staged keys expire after a day, or a vacuum has removed them.
        if None in values:
            raise removed_error(self._collection)
        _, entries = merged_with(codec, old, dict(zip(old, values, strict=True)), self._merge)
        with self._connection.pipeline() as pipe:
            # The script compares the old values once more when it runs again, so these are renewed as well.
            pipe.hset(keys.entries, mapping=entries)
            pipe.hset(keys.old, mapping=old)
            pipe.execute()


EVENTS_AT_A_TIME = 1000
_LOOK = struct.Struct(">II")
_LENGTH = struct.Struct(">I")
_CHANGES = struct.Struct(">B")


def _in_this_process(collection: RedisCollection, types: bytes) -> RedisMap:
    return RedisMap(collection.server.shared(), collection, types)


class RedisMap(NumberedJournal, RedisHandle):
    """A handle to the entries of a map or a cache."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it for tasks, which use the connection of their process."""
        return _in_this_process, (self._collection, self._known[0])

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Return the values of the keys, all in one script."""
        types, values = self._look(list(map(self._known[1].encode_key, keys)))
        return decoded(self._codec_of(types), values)

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Replace values: read, change locally, compare and write on the server; retry if they have changed."""
        encoded = encoded_keys(self._known[1], keys)
        if isinstance(change, Assignment):
            return self._assigned(keys, encoded, change)
        while True:
            types, old = self._look(encoded)
            codec = self._codec_of(types)
            decided, changes = changed(codec, keys, encoded, change(decoded(codec, old)))
            if self._swap(types, types_of(decided), dict(zip(encoded, old, strict=True)), changes):
                return decoded(codec, old)

    def _assigned(self, keys: Sequence[Any], encoded: Sequence[bytes], change: Assignment) -> list[Any]:
        """Write values unconditionally, in one script; old values are not read, and may be unreadable."""
        while True:
            types, codec = self._known
            decided, changes = changed(codec, keys, encoded, change.values)
            if self._swap(types, types_of(decided), dict.fromkeys(encoded), changes, is_assignment=True):
                return [None] * len(keys)
            self._fresh_codec()  # Another process has decided the types.

    def _look(self, encoded: Sequence[bytes]) -> tuple[bytes, list[bytes | None]]:
        """Return the types and the value of each key."""
        places, buckets = self._places(encoded, 2)
        pieces = [piece for key in encoded for piece in (_LOOK.pack(places[key], len(key)), key)]
        types, *values = self._run(MAP_GET, buckets, b"".join(pieces))
        return types, values

    def _swap(
        self,
        types: bytes,
        settled: bytes,
        old: Mapping[bytes, bytes | None],
        changes: Mapping[bytes, bytes | None],
        *,
        is_assignment: bool = False,
    ) -> bool:
        """Run `MAP_SWAP`; False if the data has changed since it was read."""
        places, buckets = self._places(list(old), 3)
        pieces = []
        for key, there in old.items():
            now = changes.get(key) or b""
            pieces += [_LOOK.pack(places[key], len(key)), key, _LENGTH.pack(len(there or b"")), there or b""]
            pieces += [_CHANGES.pack(key in changes), _LENGTH.pack(len(now)), now]
        keys, journal = [self._collection.journal, *buckets], int(bool(self._collection.shape.journal))
        return bool(self._run(MAP_SWAP, keys, types, settled, journal, b"".join(pieces), int(is_assignment)))

    def _places(self, encoded: Sequence[bytes], first: int) -> tuple[dict[bytes, int], list[str]]:
        """Return the position of each key's bucket among the keys of a script, from `first` on, and the buckets."""
        numbers = {key: bucket_of(key, self._collection.bucket_count) for key in encoded}
        positions = {number: first + at for at, number in enumerate(dict.fromkeys(numbers.values()))}
        places = {key: positions[number] for key, number in numbers.items()}
        return places, list(map(self._collection.bucket, positions))

    def size(self) -> int:
        """Count the entries, all buckets at one moment."""
        return int(self._run(MAP_SIZE, self._collection.buckets))

    def clear(self) -> None:
        """Remove all entries in one script."""
        journal = int(bool(self._collection.shape.journal))
        self._run(MAP_CLEAR, [self._collection.journal, *self._collection.buckets], journal)

    def splits(self, parallelism: int) -> Sequence[EntrySplit]:
        """Divide the buckets; the contents of each are read in its turn."""
        # For its head alone, which refuses a map that was destroyed: the splits are read later.
        self._run(MAP_SIZE, [])
        return [
            BucketSplit(self._collection, part) for part in divided(range(self._collection.bucket_count), parallelism)
        ]

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Yield the events after offset `since` up to the last one now, page by page."""
        return self._events(since, self.journal_end())

    def journal_end(self) -> int:
        """Return the offset of the last event."""
        _, last, _ = self._run(MAP_EVENTS, [self._collection.journal], "0", "0", 1)
        if not self._collection.shape.journal:
            raise IllegalStateError(f"{self._collection} keeps no journal; make it with journal=True")
        return self._offset(last)

    def journal_before(self, when: int) -> int:
        """Search about twenty events: the clock of the server only moves forward."""
        last = self.journal_end()
        return bisect_left(range(1, last + 1), when, key=lambda offset: self._time(offset, last))

    def _time(self, offset: int, last: int) -> int:
        """Return the time of the event at an offset, or of the next existing one; 0 if it was not recorded."""
        _, _, page = self._run(MAP_EVENTS, [self._collection.journal], offset, last, 1)
        *_, when = self._change(page[0][1]) if page else (None,)
        return when or 0

    def _events(self, since: int, last: int) -> Iterator[JournalEvent]:
        while since < last:
            types, _, page = self._run(MAP_EVENTS, [self._collection.journal], since + 1, last, EVENTS_AT_A_TIME)
            codec = self._codec_of(types)
            if not page:
                raise self._trimmed(since)
            for name, fields in page:
                offset = self._offset(name.partition(b"-")[0])
                if offset != since + 1:
                    raise self._trimmed(since)
                since = offset
                key, old, new, when = self._change(fields)
                yield journal_event(codec, key, old or None, new or None, when, since)

    def _trimmed(self, since: int) -> IllegalStateError:
        """Return the error for missing events, whose numbers have no gaps."""
        return IllegalStateError(
            f"the journal of {self._collection} no longer reaches back to offset {since}: something else than dstream "
            f"has trimmed the stream {self._collection.journal}"
        )

    def _offset(self, data: bytes) -> int:
        try:
            return checked_number(data.decode())
        except ValueError as error:
            raise self._collection.damaged(f"its journal has the offset {data!r:.200}") from error

    def _change(self, fields: Sequence[bytes]) -> tuple[bytes, bytes, bytes, int | None]:
        """Return the key, the old and the new value of an event, and its time, which was not always recorded."""
        names = list(fields[::2])
        if names not in ([b"k", b"o", b"n"], [b"k", b"o", b"n", b"t"]) or not fields[1]:
            raise self._collection.damaged(f"{self._collection.journal} holds an event that is none")
        key, old, new, *when = fields[1::2]
        return key, old, new, self._offset(when[0]) if when else None

    def begin(
        self,
        job: str | None,
        epoch: int = 1,
        *,
        merge: Merge | None = None,
        replace: bool = False,
    ) -> WriteJob[MapWriter]:
        """Prepare a job; see `RedisMapJob`."""
        return RedisMapJob(self._connection, self._collection, self._fresh_codec(), job, epoch, merge, replace)
