"""Jobs that write entries: tasks stage and merge them, one transaction of the driver moves them into the table."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dstream import pickling
from dstream.spi.store import Merge
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.codec_keys import bucket_of
from dstream.storage.portions import Portions
from dstream.storage.sqlite.sqlite_cells import Cell, key_cell, key_data, key_of, value_cell, value_data, value_of
from dstream.storage.sqlite.sqlite_collection import Collection
from dstream.storage.sqlite.sqlite_schema import UPSERT
from dstream.storage.sqlite.sqlite_staging import AT_A_TIME, Job, Row, Staged, StagedFile
from dstream.storage.written_entries import encoded_bucket, merged_with

__all__ = ["EntryWriter", "MapJob"]

Merged = Mapping[Cell, tuple[Cell | None, Cell | None]]
"""By key, the value that is there by now and what it makes of the new one; None is none."""


@dataclass(frozen=True, slots=True)
class EntryWriter:
    """Stages the entries of tasks.

    Attributes:
        run: what the names of all files of this run of the job begin with.
        merge: the pickled function that makes one value of an old and a new one.
    """

    collection: Collection
    codec: Codec
    run: str
    merge: bytes | None

    @property
    def buckets(self) -> int:
        """Into how many parts the keys are divided."""
        assert self.collection.shape.buckets is not None  # the shape of a map has them
        return self.collection.shape.buckets

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
        """Stage the entries in a file, and give one receipt for all of them."""
        merge: Merge | None = None if self.merge is None else pickle.loads(self.merge)
        codec, size = self.codec, 0
        with closing(StagedFile(self.collection, self.run)) as file:
            portions = Portions(entries, AT_A_TIME)
            while some := portions.take():
                codec, new = encoded_bucket(codec, some, bucket, self.buckets, merge)
                portions.learn(len(some), sum(map(len, chain(new.keys(), new.values()))))
                some.clear()
                codec, rows = self._rows(codec, new, merge)
                file.add(rows)
                size += len(rows)
            file.finish()
        if size:
            yield Staged(self.collection, file.name, codec, size).receipt

    def _rows(self, codec: Codec, new: dict[bytes, bytes], merge: Merge | None) -> tuple[Codec, list[Row]]:
        keys = {data: key_cell(codec, data) for data in new}
        if merge is None:
            return codec, [(keys[data], value_cell(codec, value), None, None) for data, value in new.items()]
        old = self._old(codec, keys)
        codec, values = merged_with(codec, old, new, merge)
        return codec, [
            (keys[data], _cell(codec, value), _cell(codec, old[data]), new[data]) for data, value in values.items()
        ]

    def _old(self, codec: Codec, keys: Mapping[bytes, Cell]) -> dict[bytes, bytes]:
        """Return the values that are there, empty where there is none."""
        collection = self.collection
        sql = f"SELECT value FROM {collection.table} WHERE key = ?"
        with collection.place.shared().reading(collection) as connection:
            rows = {data: connection.execute(sql, (cell,)).fetchone() for data, cell in keys.items()}
        return {data: b"" if row is None else value_data(codec, row[0]) for data, row in rows.items()}


def _cell(codec: Codec, data: bytes) -> Cell | None:
    return value_cell(codec, data) if data else None


class MapJob(Job):
    """A job that writes entries.

    Tasks merge with the values that they find. The transaction goes through only if these are there still; otherwise
    the others are merged again, outside of it, and it runs again.
    """

    def __init__(
        self, collection: Collection, codec: Codec, job: str | None, epoch: int, merge: Merge | None, replace: bool
    ) -> None:
        super().__init__(collection, codec, job, epoch, replace)
        self._merge = None if replace else merge  # what disappears is not merged with

    @property
    def writer(self) -> EntryWriter:
        """What travels to the tasks."""
        pickled = None if self._merge is None else pickling.dumps(self._merge)
        return EntryWriter(self._collection, self._began_with, self._run, pickled)

    def commit(self, receipts: Sequence[Any]) -> None:
        """Move all staged rows into the table in one transaction, and remove what losing attempts have staged."""
        parts = self._staged(receipts)
        again: dict[Cell, tuple[Cell | None, Cell | None]] = {}
        while True:
            types = self._types()
            codec = self._settled(types, parts)
            self._check(codec, parts)
            differing = self._publish(types, codec, parts, again)
            if differing == {}:
                break
            codec, merged = self._merged_again(codec, parts, differing or {})
            again.update(merged)
        self._tidy(parts)

    def _check(self, codec: Codec, parts: Sequence[Staged]) -> None:
        """Read the entries, and raise what a strict map of other types refuses."""
        for staged in parts:
            if codec.strict and (staged.codec.key, staged.codec.value) != (codec.key, codec.value):
                for key, value, _, _ in staged.rows():
                    if value is not None:
                        codec.checked(key_of(staged.codec, key), value_of(staged.codec, value))

    def _publish(
        self, types: str, codec: Codec, parts: Sequence[Staged], again: Merged
    ) -> dict[Cell, Cell | None] | None:
        """Write, unless values are not those that were merged with: return these. None: the types have changed."""
        collection = self._collection
        with self._database.writing(collection) as connection:
            now = collection.state(connection)
            if self._has_committed(connection):
                return {}
            if now.types != types:
                return None
            differing = self._differing(connection, parts, again) if self._merge else {}
            if differing:
                return differing
            collection.settle(connection, types, codec)
            with collection.changes_at_one_time(connection):
                self._write(connection, parts, again)
            self._note(connection)
        return {}

    def _differing(
        self, connection: sqlite3.Connection, parts: Sequence[Staged], again: Merged
    ) -> dict[Cell, Cell | None]:
        found: dict[Cell, Cell | None] = {}
        sql = f"SELECT value FROM {self._collection.table} WHERE key = ?"
        for staged in parts:
            for key, _, old, _ in staged.rows():
                assert key is not None  # the writer has made it
                row = connection.execute(sql, (key,)).fetchone()
                now = None if row is None else row[0]
                expected = again[key][0] if key in again else old
                if type(now) is not type(expected) or now != expected:
                    found[key] = now
        return found

    def _merged_again(
        self, codec: Codec, parts: Sequence[Staged], differing: Mapping[Cell, Cell | None]
    ) -> tuple[Codec, dict[Cell, tuple[Cell | None, Cell | None]]]:
        if not differing:
            return codec, {}
        assert self._merge is not None  # nothing is compared otherwise
        rows = {row[0]: row[3] for staged in parts for row in staged.rows() if row[0] in differing}
        cells = {key_data(codec, key): key for key in rows}
        new = {data: value_data(codec, rows[key]) for data, key in cells.items()}
        old = {
            data: b"" if differing[key] is None else value_data(codec, differing[key]) for data, key in cells.items()
        }
        codec, values = merged_with(codec, old, new, self._merge)
        return codec, {cells[data]: (differing[cells[data]], _cell(codec, value)) for data, value in values.items()}

    def _write(self, connection: sqlite3.Connection, parts: Sequence[Staged], again: Merged) -> None:
        table = self._collection.table
        if self._replace:
            self._remove_others(connection, parts)
        upsert, delete = UPSERT.format(table=table), f"DELETE FROM {table} WHERE key = ?"
        settled = ((key, again[key][1] if key in again else value) for key, value in self._entries(parts))
        if self._merge is None:
            connection.executemany(upsert, settled)
            return
        for key, value in settled:
            connection.execute(*((delete, (key,)) if value is None else (upsert, (key, value))))

    def _entries(self, parts: Sequence[Staged]) -> Iterator[tuple[Any, Cell | None]]:
        return ((key, value) for staged in parts for key, value, _, _ in staged.rows())

    def _remove_others(self, connection: sqlite3.Connection, parts: Sequence[Staged]) -> None:
        connection.execute("CREATE TEMP TABLE staying (key PRIMARY KEY) WITHOUT ROWID")
        keys = ((key,) for key, _ in self._entries(parts))
        connection.executemany("INSERT INTO staying VALUES (?) ON CONFLICT DO NOTHING", keys)
        connection.execute(f"DELETE FROM {self._collection.table} WHERE key NOT IN (SELECT key FROM staying)")
        connection.execute("DROP TABLE staying")
