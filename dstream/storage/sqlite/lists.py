"""Lists in a table of cells by position, and the jobs that append to them in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from dstream.base.records import record
from dstream.spi.sink import WriteJob, Writer
from dstream.spi.source import InputSize
from dstream.spi.store import ItemSplit, ListView, Splice
from dstream.storage.base.encoded_entries import ItemWriter, Portions, divided, edit_list, encoded_items, items_as
from dstream.storage.base.options import ViewOvertakenError
from dstream.storage.sqlite.collection import CollectionRow, SqliteCollection, SqliteHandle, pinned
from dstream.storage.sqlite.rows import Cell, ItemStretch, value_cell, value_of
from dstream.storage.sqlite.staging import AT_A_TIME, SqliteJob, Staged, StagedFile

__all__ = ["SqliteItemWriter", "SqliteList", "SqliteListJob", "bump", "end_of", "insert_items"]


def end_of(connection: sqlite3.Connection, collection: SqliteCollection, state: CollectionRow) -> int:
    """Return the position after the last item of a list.

    Raises:
        IllegalStateError: that is not its size.
    """
    [end] = connection.execute(f"SELECT coalesce(max(key) + 1, 0) FROM {collection.table}").fetchone()
    if end != state.size:
        raise collection.damaged(f"it has {state.size} items, and its last position is {end - 1}")
    return state.size


def insert_items(connection: sqlite3.Connection, table: str, start: int, cells: Iterable[Cell | None]) -> None:
    """Write items from an unused position on."""
    connection.executemany(f"INSERT INTO {table} (key, value) VALUES (?, ?)", enumerate(cells, start))


def bump(connection: sqlite3.Connection, collection: SqliteCollection, size: int) -> None:
    """Set the next version of a list, and its size."""
    sql = "UPDATE dstream_collections SET version = version + 1, size = ? WHERE id = ?"
    connection.execute(sql, (size, collection.number))


@record
class SqliteItemWriter(ItemWriter):
    """Writer of items into files of rows until the job commits.

    Attributes:
        run: the beginning of the names of all attempts of this run of the job.
    """

    collection: SqliteCollection
    run: str

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        """Stage the items in order in a file, and yield one receipt for all of them."""
        codec, size = self.codec, 0
        with closing(StagedFile(self.collection, self.run)) as file:
            portions = Portions(items, AT_A_TIME)
            while some := portions.take():
                codec, encoded = encoded_items(codec, some)
                portions.learn(len(some), sum(map(len, encoded)))
                some.clear()
                file.add([(None, value_cell(codec, data), None, None) for data in encoded])
                size += len(encoded)
            file.finish()
        if size:
            yield Staged(self.collection, file.name, codec, size).receipt


class SqliteListJob(SqliteJob):
    """A job that appends items."""

    @property
    def writer(self) -> SqliteItemWriter:
        """The writer for the tasks."""
        return SqliteItemWriter(self._began_with, self._collection, self._run)

    def commit(self, receipts: Sequence[Any]) -> None:
        """Append all staged rows in one transaction, and remove the files of losing attempts."""
        parts = self._staged(receipts)
        while not self._attempt(parts):
            pass
        self._tidy(parts)

    def _attempt(self, parts: Sequence[Staged]) -> bool:
        types = self._types()
        codec = self._settled(types, parts)
        for staged in parts:
            # Decoding may run code of the user's classes, so the rows are checked before the file is locked.
            if codec.strict and staged.codec.value != codec.value:
                for _, cell, _, _ in staged.rows():
                    codec.checked(None, value_of(staged.codec, cell))
        collection = self._collection
        with self._database.writing(collection) as connection:
            now = collection.state(connection)
            if self._has_committed(connection):
                return True
            if now.types != types:
                # Another process has decided the types since the rows were checked.
                return False
            collection.settle(connection, types, codec)
            size = 0 if self._replace else end_of(connection, collection, now)
            if self._replace:
                connection.execute(f"DELETE FROM {collection.table}")
            cells = (cell for staged in parts for _, cell, _, _ in staged.rows())
            insert_items(connection, collection.table, size, cells)
            bump(connection, collection, size + sum(staged.size for staged in parts))
            self._note(connection)
        return True


@dataclass(frozen=True, slots=True)
class _View:
    """The list in one version, which can be read while it is current."""

    store: SqliteList
    version: int
    size: int

    def read(self, start: int, stop: int) -> list[Any]:
        version, items = self.store._read(start, min(stop, self.size))
        if version != self.version:
            raise ViewOvertakenError(self.store.name, self)
        return items


class SqliteList(SqliteHandle):
    """A handle to the items of a list."""

    def size(self) -> int:
        """Check the recorded size against the last position."""
        with self._database.reading(self._collection) as connection:
            return end_of(connection, self._collection, self._collection.state(connection))

    def input_size(self) -> InputSize:
        """Return the recorded number of items; the entries of a map would have to be counted."""
        return InputSize(self.size(), is_near=True)

    def read(self, start: int, stop: int) -> list[Any]:
        """Read a stretch."""
        return self._read(start, stop)[1]

    def _read(self, start: int, stop: int) -> tuple[int, list[Any]]:
        """Read a stretch, and return it with its version."""
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
        """Replace a range: read, change, compare and write; retry if the list has changed."""
        edit_list(self.name, self._look, change, self._splice)

    def _look(self) -> tuple[CollectionRow, _View]:
        with self._database.reading(self._collection) as connection:
            state = self._collection.state(connection)
            size = end_of(connection, self._collection, state)
        return state, _View(self, state.version, size)

    def _splice(self, state: CollectionRow, view: _View, splice: Splice) -> bool:
        written = encoded_items(self._codec_of(state.types), splice.items)
        # Encoded before: no code of the user's runs while the file is locked.
        cells = [value_cell(written.codec, data) for data in written.items]
        with self._database.writing(self._collection) as connection:
            # The state has the version of the list: after any change of it the splice is computed again.
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
        """Move the items from a position on; those at their new positions are overwritten."""
        # Not one UPDATE of the keys: SQLite checks each row, and would find keys that are still in use.
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
        """Prepare a job; see `SqliteListJob`."""
        return SqliteListJob(self._collection, self._codec_of(self._state().types), job, epoch, replace)
