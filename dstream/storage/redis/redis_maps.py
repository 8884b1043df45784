"""Maps and caches on a server: one hash per bucket, from encoded keys to encoded values."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dstream.errors import IllegalStateError
from dstream.spi.sink import MapWriter, WriteJob
from dstream.spi.store import EntrySplit, Merge
from dstream.storage.checking import number
from dstream.storage.codec.codec_keys import bucket_of
from dstream.storage.encoded import changed, decoded, divided, encoded_keys, journal_event
from dstream.storage.redis.map_jobs import MapJob
from dstream.storage.redis.map_scripts import CLEAR, EVENTS, GET, SIZE, SWAP
from dstream.storage.redis.redis_collection import Collection, types_of
from dstream.storage.redis.redis_handle import Handle
from dstream.storage.redis.splits import BucketSplit
from dstream.values.journal_events import JournalEvent

__all__ = ["RedisMap"]

EVENTS_AT_A_TIME = 1000
_LOOK = struct.Struct(">II")
_LENGTH = struct.Struct(">I")
_CHANGES = struct.Struct(">B")


def _in_this_process(collection: Collection, types: bytes) -> RedisMap:
    return RedisMap(collection.server.shared(), collection, types)


class RedisMap(Handle):
    """A handle to the entries of a map or a cache."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it travel to tasks, which use the connection of their process."""
        return _in_this_process, (self._collection, self._known[0])

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Look the keys up, all in one script."""
        types, values = self._look(list(map(self._known[1].encode_key, keys)))
        return decoded(self._codec_of(types), values)

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Replace values: read, change here, compare and write there; again if the old values did not stay."""
        encoded = encoded_keys(self._known[1], keys)
        while True:
            types, old = self._look(encoded)
            codec = self._codec_of(types)
            decided, changes = changed(codec, keys, encoded, change(decoded(codec, old)))
            if self._swap(types, types_of(decided), dict(zip(encoded, old, strict=True)), changes):
                return decoded(codec, old)

    def _look(self, encoded: Sequence[bytes]) -> tuple[bytes, list[bytes | None]]:
        """Return the types and the value of each key."""
        places, buckets = self._places(encoded, 2)
        pieces = [piece for key in encoded for piece in (_LOOK.pack(places[key], len(key)), key)]
        types, *values = self._run(GET, buckets, b"".join(pieces))
        return types, values

    def _swap(
        self, types: bytes, settled: bytes, old: Mapping[bytes, bytes | None], changes: Mapping[bytes, bytes | None]
    ) -> bool:
        places, buckets = self._places(list(old), 3)
        pieces = []
        for key, there in old.items():
            now = changes.get(key) or b""
            pieces += [_LOOK.pack(places[key], len(key)), key, _LENGTH.pack(len(there or b"")), there or b""]
            pieces += [_CHANGES.pack(key in changes), _LENGTH.pack(len(now)), now]
        journal = int(bool(self._collection.shape.journal))
        return bool(self._run(SWAP, [self._collection.journal, *buckets], types, settled, journal, b"".join(pieces)))

    def _places(self, encoded: Sequence[bytes], first: int) -> tuple[dict[bytes, int], list[str]]:
        """Return the position of each key's bucket among the keys of a script, from `first` on, and the buckets."""
        numbers = {key: bucket_of(key, self._collection.bucket_count) for key in encoded}
        positions = {number: first + at for at, number in enumerate(dict.fromkeys(numbers.values()))}
        places = {key: positions[number] for key, number in numbers.items()}
        return places, list(map(self._collection.bucket, positions))

    def size(self) -> int:
        """Count the entries, all buckets at one moment."""
        return int(self._run(SIZE, self._collection.buckets))

    def clear(self) -> None:
        """Remove all entries in one script."""
        journal = int(bool(self._collection.shape.journal))
        self._run(CLEAR, [self._collection.journal, *self._collection.buckets], journal)

    def splits(self, parallelism: int) -> Sequence[EntrySplit]:
        """Divide the buckets; what each holds is read when its turn comes."""
        self._run(SIZE, [])
        return [
            BucketSplit(self._collection, part) for part in divided(range(self._collection.bucket_count), parallelism)
        ]

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Give the events after offset `since` up to the last one that there is now, page by page."""
        return self._events(since, self.journal_end())

    def journal_reach(self, since: int, most: int | None = None) -> int:
        """Return the offset of the last event, or an earlier one: they have no gaps."""
        last = max(since, self.journal_end())
        return last if most is None else min(last, since + most)

    def journal_end(self) -> int:
        """Return the offset of the last event."""
        _, last, _ = self._run(EVENTS, [self._collection.journal], "0", "0", 1)
        if not self._collection.shape.journal:
            raise IllegalStateError(f"{self._collection} keeps no journal; make it with journal=True")
        return self._offset(last)

    def journal_left(self, since: int) -> int | None:
        """Subtract: offsets have no gaps."""
        return max(0, self.journal_end() - since)

    def shown_offset(self, offset: int) -> str:
        """Return the number of an event: offsets have no gaps."""
        return f"event {offset:,}"

    def journal_before(self, when: int) -> int:
        """Look at some twenty events: the clock of the server goes forward."""
        last = self.journal_end()
        return bisect_left(range(1, last + 1), when, key=lambda offset: self._time(offset, last))

    def _time(self, offset: int, last: int) -> int:
        """Return when the event at an offset happened, or the next one that is still there; 0 if that was not kept."""
        _, _, page = self._run(EVENTS, [self._collection.journal], offset, last, 1)
        *_, when = self._change(page[0][1]) if page else (None,)
        return when or 0

    def _events(self, since: int, last: int) -> Iterator[JournalEvent]:
        while since < last:
            types, _, page = self._run(EVENTS, [self._collection.journal], since + 1, last, EVENTS_AT_A_TIME)
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
        """Say that events are missing: each has the number after the one before it."""
        return IllegalStateError(
            f"the journal of {self._collection} no longer reaches back to offset {since}: something else than dstream "
            f"has trimmed the stream {self._collection.journal}"
        )

    def _offset(self, data: bytes) -> int:
        try:
            return number(data.decode())
        except ValueError as error:
            raise self._collection.damaged(f"its journal has the offset {data!r:.200}") from error

    def _change(self, fields: Sequence[bytes]) -> tuple[bytes, bytes, bytes, int | None]:
        """Return the key, the old and the new value of an event, and when it happened, which was not always kept."""
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
        """Prepare a job; see `MapJob`."""
        return MapJob(self._connection, self._collection, self._fresh_codec(), job, epoch, merge, replace)
