"""`Handle`: what stores of both kinds do in a database."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING, Any

from dstream.spi.store import Options
from dstream.storage.codec.codec import Codec
from dstream.storage.sqlite.sqlite_collection import Collection, State
from dstream.storage.sqlite.sqlite_pins import removed_pins
from dstream.storage.sqlite.sqlite_schema import drop_statements

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Handle"]


class Handle:
    """The part of a store that does not depend on its kind."""

    in_process = False
    location: str | None = None

    def __init__(self, collection: Collection, types: str) -> None:
        self._database = collection.place.shared()
        self._collection = collection
        self._table = collection.table
        self._know(types, collection.codec(types))

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._collection.name

    @property
    def identity(self) -> str:
        """What a later one of its name has not."""
        return str(self._collection.number)

    @property
    def options(self) -> Options:
        """How the collection was made, and the types that are known by now."""
        return self._collection.shape.options(self._codec())

    def destroy(self) -> None:
        """Remove the collection and its name in one transaction, then what tasks have staged for it."""
        collection = self._collection
        with self._database.writing(collection) as connection:
            collection.state(connection)
            for table in ("jobs", "pins", "undo"):
                connection.execute(f"DELETE FROM dstream_{table} WHERE collection = ?", (collection.number,))
            connection.execute("DELETE FROM dstream_collections WHERE id = ?", (collection.number,))
            for statement in drop_statements(self._table):
                connection.execute(statement)
        shutil.rmtree(collection.staged, ignore_errors=True)

    def schema(self) -> pa.Schema:
        """Return the columns of `read_arrow`."""
        return self._codec_of(self._state().types).schema()

    def compact(self) -> None:
        """Move what the write-ahead log holds into the database, as far as readers allow."""
        self._state()
        self._database.row(self._collection, "PRAGMA wal_checkpoint(PASSIVE)")

    def vacuum(self, older_than: float) -> int:
        """Remove what tasks staged and nobody committed, and what was kept for readers that began long ago."""
        collection = self._collection
        before = time.time() - older_than
        with self._database.writing(collection) as connection:
            collection.state(connection)
            pins = removed_pins(connection, collection.number, before)
        return pins + _removed_files(collection.staged, before)

    def _state(self) -> State:
        with self._database.reading(self._collection) as connection:
            return self._collection.state(connection)

    def _codec(self) -> Codec:
        return self._known_codec if self._is_decided else self._codec_of(self._state().types)

    def _codec_of(self, types: str) -> Codec:
        if types != self._known_types:
            self._know(types, self._collection.codec(types))
        return self._known_codec

    def _know(self, types: str, codec: Codec) -> None:
        self._known_types, self._known_codec, self._is_decided = types, codec, codec.is_decided

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it travel to tasks, which use the connection of their process."""
        return type(self), (self._collection, self._known_types)


def _removed_files(folder: str, before: float) -> int:
    removed = 0
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        if entry.stat(follow_symlinks=False).st_mtime <= before:
            os.unlink(entry.path)
            removed += 1
    return removed
