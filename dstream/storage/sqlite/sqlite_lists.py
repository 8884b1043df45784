"""Lists in a database: one table, from positions to the cells of items."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.spi.sink import WriteJob, Writer
from dstream.spi.store import ItemSplit, ListView, Splice
from dstream.storage.encoded import checked_splice, divided, encoded_items, items_as
from dstream.storage.sqlite.sqlite_cells import value_cell, value_of
from dstream.storage.sqlite.sqlite_collection import State
from dstream.storage.sqlite.sqlite_handle import Handle
from dstream.storage.sqlite.sqlite_list_jobs import ListJob, bump, end_of, insert_items
from dstream.storage.sqlite.sqlite_pins import pinned
from dstream.storage.sqlite.sqlite_splits import ItemStretch
from dstream.storage.vanished import ViewOvertakenError

__all__ = ["SqliteList"]


@dataclass(frozen=True, slots=True)
class _View:
    """The list in one version, which can be read as long as it is the current one."""

    store: SqliteList
    version: int
    size: int

    def read(self, start: int, stop: int) -> list[Any]:
        version, items = self.store._read(start, min(stop, self.size))
        if version != self.version:
            raise ViewOvertakenError(self.store.name, self)
        return items


class SqliteList(Handle):
    """A handle to the items of a list."""

    def size(self) -> int:
        """Look at the size that is noted, and at the last position."""
        with self._database.reading(self._collection) as connection:
            return end_of(connection, self._collection, self._collection.state(connection))

    def read(self, start: int, stop: int) -> list[Any]:
        """Read a stretch."""
        return self._read(start, stop)[1]

    def _read(self, start: int, stop: int) -> tuple[int, list[Any]]:
        """Read a stretch, and say of which version it is."""
        with self._database.reading(self._collection) as connection:
            state = self._collection.state(connection)
            start, stop = min(start, state.size), min(stop, state.size)
            sql = f"SELECT value FROM {self._table} WHERE key >= ? AND key < ? ORDER BY key"
            rows = connection.execute(sql, (start, stop)).fetchall()
        self._collection.check_items(len(rows), start, stop)
        codec = self._codec_of(state.types)
        return state.version, [value_of(codec, cell) for (cell,) in rows]

    def extend(self, items: Iterable[Any]) -> None:
        """Append all items in one transaction."""
        written = encoded_items(self._known_codec, items)
        while written.items:
            types = self._state().types
            written = items_as(self._codec_of(types), [written])
            cells = [value_cell(written.codec, data) for data in written.items]
            with self._database.writing(self._collection) as connection:
                state = self._collection.state(connection)
                if state.types != types:
                    continue
                self._collection.settle(connection, types, written.codec)
                size = end_of(connection, self._collection, state)
                insert_items(connection, self._table, size, cells)
                bump(connection, self._collection, size + len(cells))
                return

    def edit(self, change: Callable[[ListView], Splice | None]) -> None:
        """Replace a stretch: look, change here, compare and write there; again if the list did not stay."""
        done = False
        while not done:
            with self._database.reading(self._collection) as connection:
                state = self._collection.state(connection)
                size = end_of(connection, self._collection, state)
            view = _View(self, state.version, size)
            try:
                splice = change(view)
            except ViewOvertakenError as error:
                if error.view is not view:
                    raise
            else:
                done = splice is None or self._splice(state, checked_splice(self.name, splice, size))

    def _splice(self, state: State, splice: Splice) -> bool:
        written = encoded_items(self._codec_of(state.types), splice.items)
        cells = [value_cell(written.codec, data) for data in written.items]
        with self._database.writing(self._collection) as connection:
            if self._collection.state(connection) != state:
                return False
            self._collection.settle(connection, state.types, written.codec)
            kept = splice.stop - splice.start
            more = len(cells) - kept
            if more:
                self._move(connection, splice.stop, more)
                kept = min(kept, len(cells))
            update = f"UPDATE {self._table} SET value = ? WHERE key = ?"
            places = range(splice.start, splice.start + kept)
            connection.executemany(update, zip(cells[:kept], places, strict=True))
            insert_items(connection, self._table, splice.start + kept, cells[kept:])
            bump(connection, self._collection, state.size + more)
        return True

    def _move(self, connection: sqlite3.Connection, start: int, by: int) -> None:
        """Move the items from a position on; those that they come to stand upon disappear."""
        connection.execute("CREATE TEMP TABLE moving (key INTEGER PRIMARY KEY, value)")
        connection.execute(f"INSERT INTO moving SELECT key + ?, value FROM {self._table} WHERE key >= ?", (by, start))
        connection.execute(f"DELETE FROM {self._table} WHERE key >= ?", (min(start, start + by),))
        connection.execute(f"INSERT INTO {self._table} (key, value) SELECT key, value FROM moving ORDER BY key")
        connection.execute("DROP TABLE moving")

    def splits(self, parallelism: int) -> Sequence[ItemSplit]:
        """Divide the items by their positions, and pin them."""
        with self._database.writing(self._collection) as connection:
            state = self._collection.state(connection)
            stretches = divided(range(end_of(connection, self._collection, state)), parallelism)
            if not stretches:
                return []
            pin = pinned(connection, self._collection)
        return [ItemStretch(self._collection, pin, part[0], part[-1] + 1) for part in stretches]

    def begin(self, job: str | None, epoch: int = 1, *, replace: bool = False) -> WriteJob[Writer]:
        """Prepare a job; see `ListJob`."""
        return ListJob(self._collection, self._codec_of(self._state().types), job, epoch, replace)
