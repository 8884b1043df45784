"""Jobs that write items: each task stages a file, one transaction appends all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from dstream.storage.codec.codec import Codec
from dstream.storage.encoded import encoded_items
from dstream.storage.portions import Portions
from dstream.storage.sqlite.sqlite_cells import Cell, value_cell, value_of
from dstream.storage.sqlite.sqlite_collection import Collection, State
from dstream.storage.sqlite.sqlite_staging import AT_A_TIME, Job, Staged, StagedFile

__all__ = ["ItemWriter", "ListJob", "bump", "end_of", "insert_items"]


def end_of(connection: sqlite3.Connection, collection: Collection, state: State) -> int:
    """Return the position behind the last item of a list.

    Raises:
        IllegalStateError: that is not its size.
    """
    [end] = connection.execute(f"SELECT coalesce(max(key) + 1, 0) FROM {collection.table}").fetchone()
    if end != state.size:
        raise collection.damaged(f"it has {state.size} items, and its last position is {end - 1}")
    return state.size


def insert_items(connection: sqlite3.Connection, table: str, start: int, cells: Iterable[Cell | None]) -> None:
    """Write items from a position on, where there are none."""
    connection.executemany(f"INSERT INTO {table} (key, value) VALUES (?, ?)", enumerate(cells, start))


def bump(connection: sqlite3.Connection, collection: Collection, size: int) -> None:
    """Give a list its next version, and its size."""
    sql = "UPDATE dstream_collections SET version = version + 1, size = ? WHERE id = ?"
    connection.execute(sql, (size, collection.number))


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Stages the items of tasks.

    Attributes:
        run: what the names of all files of this run of the job begin with.
    """

    collection: Collection
    codec: Codec
    run: str

    def check_item(self, item: Any) -> None:
        """Refuse an item that the list does not take."""
        self.codec.checked(None, item)

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        """Stage the items in order in a file, and give one receipt for all of them."""
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


class ListJob(Job):
    """A job that appends items."""

    @property
    def writer(self) -> ItemWriter:
        """What travels to the tasks."""
        return ItemWriter(self._collection, self._began_with, self._run)

    def commit(self, receipts: Sequence[Any]) -> None:
        """Append all staged rows in one transaction, and remove what losing attempts have staged."""
        parts = self._staged(receipts)
        while not self._attempt(parts):
            pass
        self._tidy(parts)

    def _attempt(self, parts: Sequence[Staged]) -> bool:
        types = self._types()
        codec = self._settled(types, parts)
        for staged in parts:
            if codec.strict and staged.codec.value != codec.value:
                for _, cell, _, _ in staged.rows():
                    codec.checked(None, value_of(staged.codec, cell))
        collection = self._collection
        with self._database.writing(collection) as connection:
            now = collection.state(connection)
            if self._has_committed(connection):
                return True
            if now.types != types:
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
