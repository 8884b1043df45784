"""Maps and caches in a database: one table, from the cells of keys to those of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dstream.errors import IllegalStateError
from dstream.spi.sink import MapWriter, WriteJob
from dstream.spi.store import EntrySplit, Merge, Unchanged
from dstream.storage.codec.codec import Codec
from dstream.storage.encoded import changed, check_answers, decoded, encoded_keys, journal_event
from dstream.storage.sqlite.sqlite_cells import (
    Cell,
    cell_of_key,
    cell_of_value,
    key_cell,
    key_data,
    value_cell,
    value_data,
    value_of,
)
from dstream.storage.sqlite.sqlite_collection import Collection
from dstream.storage.sqlite.sqlite_handle import Handle
from dstream.storage.sqlite.sqlite_map_jobs import MapJob
from dstream.storage.sqlite.sqlite_pins import pinned
from dstream.storage.sqlite.sqlite_schema import UPSERT
from dstream.storage.sqlite.sqlite_splits import EntryStretch
from dstream.values.journal_events import JournalEvent

__all__ = ["SqliteMap"]

EVENTS_AT_A_TIME = 1000


class SqliteMap(Handle):
    """A handle to the entries of a map or a cache."""

    def __init__(self, collection: Collection, types: str) -> None:
        super().__init__(collection, types)
        there = "WHERE key = ? AND value IS ? AND typeof(value) = typeof(?)"  # for SQLite 1 is 1.0
        self._select = f"SELECT value FROM {self._table} WHERE key = ?"
        self._insert = f"INSERT INTO {self._table} (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
        self._replace = f"UPDATE {self._table} SET value = ? {there}"
        self._delete = f"DELETE FROM {self._table} {there}"

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Look the keys up, all in one state."""
        codec = self._codec()
        cells = [cell_of_key(codec, key) for key in keys]
        if len(cells) == 1:
            row = self._database.row(self._collection, self._select, cells)
            return [None if row is None else value_of(codec, row[0])]
        with self._database.reading(self._collection) as connection:
            self._collection.state(connection)
            rows = [connection.execute(self._select, (cell,)).fetchone() for cell in cells]
        return [None if row is None else value_of(codec, row[0]) for row in rows]

    # Changes

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Replace values: read, change here, compare and write there; again if the old values did not stay."""
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
        """Do the same for one key of known types: the comparison stands in the statement that writes."""
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
        """Return the types, the values, and a mark that stays as long as nobody writes into the database."""
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
        if not new:
            return True
        with self._database.writing(self._collection) as connection:
            now = self._collection.state(connection)
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
        """Count the entries, which takes some milliseconds for a million."""
        return int(self._database.row(self._collection, f"SELECT count(*) FROM {self._table}")[0])

    def splits(self, parallelism: int) -> Sequence[EntrySplit]:
        """Divide the entries by their keys, and pin them."""
        with self._database.writing(self._collection) as connection:
            self._collection.state(connection)
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
        """Return the key that many rows behind another one, or behind the start."""
        above = "" if low is None else "WHERE key >= ?"
        sql = f"SELECT key FROM {self._table} {above} ORDER BY key LIMIT 1 OFFSET ?"
        row = connection.execute(sql, (step,) if low is None else (low, step)).fetchone()
        return None if row is None else row[0]

    # The journal

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Give the events after offset `since` up to the last one that there is now, page by page."""
        return self._events(since, self.journal_end())

    def _events(self, since: int, last: int) -> Iterator[JournalEvent]:
        while since < last:
            sql = f"SELECT offset, at, key, old, new FROM {self._collection.journal} WHERE offset > ? ORDER BY offset"
            page = self._database.rows(self._collection, f"{sql} LIMIT {EVENTS_AT_A_TIME}", (since,))
            codec = self._codec()
            if not page:
                raise self._trimmed(since)
            for offset, at, key, old, new in page:
                if offset != since + 1:
                    raise self._trimmed(since)
                since = offset
                before, after = (None if cell is None else value_data(codec, cell) for cell in (old, new))
                yield journal_event(codec, key_data(codec, key), before, after, at, offset)
                if since == last:
                    return

    def _trimmed(self, since: int) -> IllegalStateError:
        """Say that events are missing: each has the number after the one before it."""
        return IllegalStateError(
            f"the journal of {self._collection} no longer reaches back to offset {since}: something else than dstream "
            f"has removed rows of {self._collection.journal}"
        )

    def journal_end(self) -> int:
        """Return the offset of the last event."""
        return self._journaled("SELECT max(offset) FROM {journal}")

    def journal_reach(self, since: int, most: int | None = None) -> int:
        """Return the offset of the last event, or an earlier one: they have no gaps."""
        last = max(since, self.journal_end())
        return last if most is None else min(last, since + most)

    def journal_left(self, since: int) -> int | None:
        """Subtract: offsets have no gaps."""
        return max(0, self.journal_end() - since)

    def shown_offset(self, offset: int) -> str:
        """Return the number of an event: offsets have no gaps."""
        return f"event {offset:,}"

    def journal_before(self, when: int) -> int:
        """Look at the events, the newest first."""
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
        """Prepare a job; see `MapJob`."""
        return MapJob(self._collection, self._codec_of(self._state().types), job, epoch, merge, replace)
