"""Maps and caches in a table of cells by key, and the jobs that write to them in one transaction."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

from dstream.base import pickling
from dstream.base.records import record
from dstream.errors import IllegalStateError
from dstream.spi.sink import MapWriter, WriteJob
from dstream.spi.store import EntrySplit, Merge, Unchanged
from dstream.storage.base.encoded_entries import (
    EntryWriter,
    NumberedJournal,
    Portions,
    changed,
    check_answers,
    decoded,
    encoded_bucket,
    encoded_keys,
    journal_event,
    merged_with,
)
from dstream.storage.codec.collection import Codec
from dstream.storage.sqlite.collection import SqliteCollection, SqliteHandle, pinned
from dstream.storage.sqlite.database import UPSERT
from dstream.storage.sqlite.rows import (
    Cell,
    EntryStretch,
    cell_of_key,
    cell_of_value,
    key_cell,
    key_data,
    key_of,
    value_cell,
    value_data,
    value_of,
)
from dstream.storage.sqlite.staging import AT_A_TIME, Row, SqliteJob, Staged, StagedFile
from dstream.values.entries import JournalEvent

__all__ = ["SqliteEntryWriter", "SqliteMap", "SqliteMapJob"]


Merged = Mapping[Cell, tuple[Cell | None, Cell | None]]
"""By key, the current value and the merged value; None if there is none."""


@record
class SqliteEntryWriter(EntryWriter):
    """Writer of entries into files of rows until the job commits.

    Attributes:
        run: the beginning of the names of all attempts of this run of the job.
        merge: the pickled function that merges an old and a new value.
    """

    collection: SqliteCollection
    run: str
    merge: bytes | None

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        """Stage the entries in a file, and yield one receipt for all of them."""
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
        """Return the stored values, empty if there is none."""
        collection = self.collection
        sql = f"SELECT value FROM {collection.table} WHERE key = ?"
        with collection.place.shared().reading(collection) as connection:
            rows = {data: connection.execute(sql, (cell,)).fetchone() for data, cell in keys.items()}
        return {data: b"" if row is None else value_data(codec, row[0]) for data, row in rows.items()}


def _cell(codec: Codec, data: bytes) -> Cell | None:
    return value_cell(codec, data) if data else None


class SqliteMapJob(SqliteJob):
    """A job that writes entries.

    Tasks merge with the values that they find. The transaction commits only if these are unchanged; otherwise
    the others are merged again, outside of it, and it runs again.
    """

    def __init__(
        self,
        collection: SqliteCollection,
        codec: Codec,
        job: str | None,
        epoch: int,
        merge: Merge | None,
        replace: bool,
    ) -> None:
        super().__init__(collection, codec, job, epoch, replace)
        self._merge = None if replace else merge  # entries that disappear are not merged with

    @property
    def writer(self) -> SqliteEntryWriter:
        """The writer for the tasks."""
        pickled = None if self._merge is None else pickling.dumps(self._merge)
        buckets = self._collection.shape.buckets
        assert buckets is not None  # the shape of a map has them
        is_merging = pickled is not None
        return SqliteEntryWriter(self._began_with, buckets, is_merging, self._collection, self._run, pickled)

    def commit(self, receipts: Sequence[Any]) -> None:
        """Move all staged rows into the table in one transaction, and remove the files of losing attempts."""
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
            # Values that were merged in earlier rounds remain: they are compared again, like the values of tasks.
            again.update(merged)
        self._tidy(parts)

    def _check(self, codec: Codec, parts: Sequence[Staged]) -> None:
        """Read the entries, and raise the refusals of a strict map of other types."""
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
                # 1 equals 1.0 for Python as well, and they are different values.
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
        # A table, since the parameters of a statement are limited.
        connection.execute("CREATE TEMP TABLE staying (key PRIMARY KEY) WITHOUT ROWID")
        keys = ((key,) for key, _ in self._entries(parts))
        connection.executemany("INSERT INTO staying VALUES (?) ON CONFLICT DO NOTHING", keys)
        connection.execute(f"DELETE FROM {self._collection.table} WHERE key NOT IN (SELECT key FROM staying)")
        connection.execute("DROP TABLE staying")


EVENTS_AT_A_TIME = 1000


class SqliteMap(NumberedJournal, SqliteHandle):
    """A handle to the entries of a map or a cache."""

    def __init__(self, collection: SqliteCollection, types: str) -> None:
        super().__init__(collection, types)
        there = "WHERE key = ? AND value IS ? AND typeof(value) = typeof(?)"  # for SQLite 1 is 1.0
        self._select = f"SELECT value FROM {self._table} WHERE key = ?"
        self._insert = f"INSERT INTO {self._table} (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
        self._replace = f"UPDATE {self._table} SET value = ? {there}"
        self._delete = f"DELETE FROM {self._table} {there}"

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Return the values of the keys, all from one state."""
        codec = self._codec()
        cells = [cell_of_key(codec, key) for key in keys]
        if len(cells) == 1:
            # One statement sees one state without a transaction, which would take three.
            row = self._database.row(self._collection, self._select, cells)
            return [None if row is None else value_of(codec, row[0])]
        with self._database.reading(self._collection) as connection:
            self._collection.state(connection)
            rows = [connection.execute(self._select, (cell,)).fetchone() for cell in cells]
        return [None if row is None else value_of(codec, row[0]) for row in rows]

    # Changes

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Replace values: read, change, compare and write; retry if the old values have changed."""
        # The statement for one key decides no types: a transaction has to write these down, too.
        if len(keys) == 1 and self._is_decided:
            return self._update_one(self._known_codec, keys[0], change)
        encoded = encoded_keys(self._known_codec, keys)
        cells = [key_cell(self._known_codec, data) for data in encoded]
        while True:
            types, old, mark = self._look(cells)
            codec = self._codec_of(types)
            data = [None if cell is None else value_data(codec, cell) for cell in old]
            decided, changes = changed(codec, keys, encoded, change(decoded(codec, data)))
            settled = {
                cell: None if new is None else value_cell(decided, new)
                for cell, there in zip(cells, encoded, strict=True)
                if there in changes
                for new in (changes[there],)
            }
            if self._swap(types, decided, dict(zip(cells, old, strict=True)), settled, mark):
                return decoded(codec, data)

    def _update_one(self, codec: Codec, key: Any, change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Change the value of one key of known types: the comparison is part of the statement that writes."""
        cell = cell_of_key(codec, key)
        while True:
            row = self._database.row(self._collection, self._select, (cell,))
            there = None if row is None else row[0]
            made = change([None if row is None else value_of(codec, there)])
            check_answers(codec, (key,), made)
            if self._swap_one(codec, key, cell, there, made[0]):
                return [None if row is None else value_of(codec, there)]

    def _swap_one(self, codec: Codec, key: Any, cell: Cell, there: Cell | None, new: Any) -> bool:
        if isinstance(new, Unchanged) or (new is None and there is None):
            return True
        if new is None:
            return self._database.change(self._collection, self._delete, (cell, there, there)) == 1
        codec.checked(key, new)
        written = cell_of_value(codec, new)
        if there is None:
            return self._database.change(self._collection, self._insert, (cell, written)) == 1
        return self._database.change(self._collection, self._replace, (written, cell, there, there)) == 1

    def _look(self, cells: Sequence[Cell]) -> tuple[str, list[Cell | None], tuple[int, int]]:
        """Return the types, the values, and a mark that is constant while no process writes to the database."""
        with self._database.reading(self._collection) as connection:
            types = self._collection.state(connection).types
            rows = [connection.execute(self._select, (cell,)).fetchone() for cell in cells]
            mark = self._database.mark(connection)
        return types, [None if row is None else row[0] for row in rows], mark

    def _swap(
        self,
        types: str,
        decided: Codec,
        old: Mapping[Cell, Cell | None],
        new: Mapping[Cell, Cell | None],
        mark: tuple[int, int],
    ) -> bool:
        # A function that has only read needs no lock, which would block others.
        if not new:
            return True
        with self._database.writing(self._collection) as connection:
            now = self._collection.state(connection)
            # Where nothing was written, the old values need not be compared again.
            is_untouched = self._database.mark(connection) == mark
            if now.types != types or not (is_untouched or self._has(connection, old)):
                return False
            self._collection.settle(connection, types, decided)
            gone = [(cell,) for cell, value in new.items() if value is None]
            written = ((cell, value) for cell, value in new.items() if value is not None)
            with self._collection.changes_at_one_time(connection):
                connection.executemany(f"DELETE FROM {self._table} WHERE key = ?", gone)
                connection.executemany(UPSERT.format(table=self._table), written)
        return True

    def _has(self, connection: Any, old: Mapping[Cell, Cell | None]) -> bool:
        for cell, there in old.items():
            row = connection.execute(self._select, (cell,)).fetchone()
            now = None if row is None else row[0]
            if type(now) is not type(there) or now != there:
                return False
        return True

    def clear(self) -> None:
        """Remove all entries in one statement."""
        self._database.change(self._collection, f"DELETE FROM {self._table}")

    # Reading all of it

    def size(self) -> int:
        """Count the entries, which takes a few milliseconds for a million."""
        return int(self._database.row(self._collection, f"SELECT count(*) FROM {self._table}")[0])

    def splits(self, parallelism: int) -> Sequence[EntrySplit]:
        """Divide the entries by their keys, and pin them."""
        with self._database.writing(self._collection) as connection:
            self._collection.state(connection)
            # In the transaction of the pin, since each stretch has the number of its entries.
            [size] = connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()
            if not size:
                return []
            pin = pinned(connection, self._collection)
            step = -(-size // max(1, parallelism))
            edges: list[Cell | None] = [None]
            while (edge := self._edge(connection, edges[-1], step)) is not None:
                edges.append(edge)
        sizes = [*[step] * (len(edges) - 1), size - step * (len(edges) - 1)]
        bounds = zip(edges, [*edges[1:], None], sizes, strict=True)
        return [EntryStretch(self._collection, pin, low, high, entries) for low, high, entries in bounds]

    def _edge(self, connection: Any, low: Cell | None, step: int) -> Cell | None:
        """Return the key `step` rows after another one, or after the start."""
        above = "" if low is None else "WHERE key >= ?"
        sql = f"SELECT key FROM {self._table} {above} ORDER BY key LIMIT 1 OFFSET ?"
        row = connection.execute(sql, (step,) if low is None else (low, step)).fetchone()
        return None if row is None else row[0]

    # The journal

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Yield the events after offset `since` up to the last one now, page by page."""
        return self._events(since, self.journal_end())

    def _events(self, since: int, last: int) -> Iterator[JournalEvent]:
        while since < last:
            sql = f"SELECT offset, at, key, old, new FROM {self._collection.journal} WHERE offset > ? ORDER BY offset"
            page = self._database.rows(self._collection, f"{sql} LIMIT {EVENTS_AT_A_TIME}", (since,))
            codec = self._codec()
            if not page:
                raise self._trimmed(since)
            for offset, at, key, old, new in page:
                # The offsets are assigned by AUTOINCREMENT, without gaps, so a gap is a removed row.
                if offset != since + 1:
                    raise self._trimmed(since)
                since = offset
                before, after = (None if cell is None else value_data(codec, cell) for cell in (old, new))
                yield journal_event(codec, key_data(codec, key), before, after, at, offset)
                if since == last:
                    return

    def _trimmed(self, since: int) -> IllegalStateError:
        """Return the error for missing events, whose numbers have no gaps."""
        return IllegalStateError(
            f"the journal of {self._collection} no longer reaches back to offset {since}: something else than dstream "
            f"has removed rows of {self._collection.journal}"
        )

    def journal_end(self) -> int:
        """Return the offset of the last event."""
        return self._journaled("SELECT max(offset) FROM {journal}")

    def journal_before(self, when: int) -> int:
        """Search the events, the newest first."""
        return self._journaled("SELECT offset FROM {journal} WHERE at < ? ORDER BY offset DESC LIMIT 1", when)

    def _journaled(self, sql: str, *arguments: Any) -> int:
        if not self._collection.shape.journal:
            self._state()
            raise IllegalStateError(f"{self._collection} keeps no journal; make it with journal=True")
        row = self._database.row(self._collection, sql.format(journal=self._collection.journal), arguments)
        return 0 if row is None or row[0] is None else int(row[0])

    # Jobs

    def begin(
        self,
        job: str | None,
        epoch: int = 1,
        *,
        merge: Merge | None = None,
        replace: bool = False,
    ) -> WriteJob[MapWriter]:
        """Prepare a job; see `SqliteMapJob`."""
        return SqliteMapJob(self._collection, self._codec_of(self._state().types), job, epoch, merge, replace)
