"""`SqliteCollection`: the identity, tables, pinned states and common operations of a collection.

The triggers in `sqlite_schema` retain the values that pins need. A pin that never left its process is dropped with the
last split that uses it; a pin that was pickled remains for a day, since its readers are unknown.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import sqlite3
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dstream.base.threads import in_this_process
from dstream.base.validation import NOT_UNDERSTOOD
from dstream.errors import IllegalStateError
from dstream.spi.store import Kind, Options
from dstream.storage.base.options import Shape, destroyed_error
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import described_codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.sqlite.database import DAMAGE, DatabaseLocation, content_table, drop_statements, journal_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "KEEP_SECONDS",
    "CollectionRow",
    "Pin",
    "SqliteCollection",
    "SqliteHandle",
    "pinned",
    "removed_pins",
    "staged_folder",
    "types_of",
]


KEEP_SECONDS = 86_400.0
"""Seconds for which staged data and pins are retained if no process removes them."""


class CollectionRow(NamedTuple):
    """The entry of a collection in the database.

    Attributes:
        types: its types as they are stored.
        version: how often a list has changed.
        size: the number of items of a list; 0 for maps, whose entries are not counted.
    """

    types: str
    version: int
    size: int


# Without slots, since `cached_property` stores its value in the `__dict__`.
@dataclass(frozen=True)
class SqliteCollection:
    """Collection in a database. A later collection of the same name has another number."""

    place: DatabaseLocation
    number: int
    kind: Kind
    name: str
    shape: Shape
    asked: Options
    pickles: Pickles

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @functools.cached_property
    def table(self) -> str:
        """The table of its entries or items, quoted."""
        return content_table(self.kind, self.name, self.number)

    @property
    def journal(self) -> str:
        """The table of its changes, quoted."""
        return journal_of(self.table)

    @property
    def staged(self) -> str:
        """The folder of its tasks' staged output.

        Raises:
            IllegalStateError: it is a symbolic link, or one of its parents next to the database is.
        """
        folder = f"{staged_folder(self, self.place)}/{self.number}"
        _check_no_link(self, folder)
        return folder

    def state(self, connection: sqlite3.Connection) -> CollectionRow:
        """Read the state of the collection inside a transaction.

        Raises:
            CollectionDestroyedError: it is no more.
        """
        found = connection.execute("SELECT types, version, size FROM dstream_collections WHERE id = ?", (self.number,))
        row = found.fetchone()
        if row is None:
            raise destroyed_error(self)
        return CollectionRow(*row)

    def settle(self, connection: sqlite3.Connection, types: str, codec: Codec) -> None:
        """Write down types that were decided, inside a transaction that saw `types`."""
        settled = types_of(codec)
        if settled != types:
            connection.execute("UPDATE dstream_collections SET types = ? WHERE id = ?", (settled, self.number))

    @contextlib.contextmanager
    def changes_at_one_time(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Set the time of all events of a transaction to the time of its last statement: a trigger has only its own."""
        if not self.shape.journal:
            yield
            return
        newest = f"SELECT max(offset) FROM {self.journal}"
        since = connection.execute(newest).fetchone()[0] or 0
        yield
        time_of_newest = f"SELECT at FROM {self.journal} WHERE offset = ({newest})"
        connection.execute(f"UPDATE {self.journal} SET at = ({time_of_newest}) WHERE offset > ?", (since,))

    def codec(self, types: Any) -> Codec:
        """Return the codec of types as they are stored.

        Raises:
            IllegalStateError: they are no types.
        """
        try:
            data = json.loads(types)
        except NOT_UNDERSTOOD as error:
            raise self.damaged(f"dstream_collections holds no types of it: {error}") from error
        return described_codec(data, self.kind, self.name, self.asked, self.pickles)

    def check_items(self, found: int, start: int, stop: int) -> None:
        """Compare the number of items that were read with their positions, of which each has one item.

        Raises:
            IllegalStateError: some are missing.
        """
        if found != max(0, stop - start):
            raise self.damaged(f"of the items at positions {start} to {stop - 1} only {found} can be read")

    def damaged(self, why: str) -> IllegalStateError:
        """Return the error of a database whose contents were not written by dstream."""
        return IllegalStateError(f"{self} in the storage sqlite:{self.place.path} is damaged: {why}; {DAMAGE}")


def staged_folder(owner: object, place: DatabaseLocation) -> str:
    """Return the folder of the staged output for all collections of a database; errors as for one collection."""
    folder = f"{place.files}/staged"
    _check_no_link(owner, place.files)
    _check_no_link(owner, folder)
    return folder


def _check_no_link(owner: object, folder: str) -> None:
    """Refuse a symbolic link in place of a folder; the error names the owner.

    Raises:
        IllegalStateError: it is one.
    """
    if os.path.islink(folder):
        raise IllegalStateError(
            f"{owner}: {folder} is a symbolic link, which may lead anywhere; put the folder itself there"
        )


def types_of(codec: Codec) -> str:
    """Return the types of a codec as they are stored."""
    return json.dumps(codec.to_json(), sort_keys=True)


_dropped: dict[DatabaseLocation, deque[int]] = defaultdict(deque)
"""Pins that this process needs no more. The next call that pins removes them: no finalizer runs a statement."""


@dataclass(eq=False)
class Pin:
    """A number in `dstream_pins`."""

    number: int

    def __post_init__(self) -> None:
        self._at_end: Any = None

    def drop_at_end(self, place: DatabaseLocation) -> None:
        """Drop the pin when it has no reference in this process any more."""
        # A forked process drops its copy of the pin, which this process still reads by.
        self._at_end = weakref.finalize(self, in_this_process(_dropped[place].append, self.number))
        # At the end of the process the note would not be read any more: such a pin is removed after a day.
        self._at_end.atexit = False

    def __reduce__(self) -> tuple[Any, ...]:
        if self._at_end is not None:
            self._at_end.detach()
        return Pin, (self.number,)


def pinned(connection: sqlite3.Connection, collection: SqliteCollection) -> Pin:
    """Pin the state of a collection inside a transaction, and remove pins that are not needed."""
    dropped = _dropped[collection.place]
    while dropped:
        connection.execute("DELETE FROM dstream_pins WHERE pin = ?", (dropped.popleft(),))
    removed_pins(connection, collection.number, time.time() - KEEP_SECONDS)
    made = connection.execute(
        "INSERT INTO dstream_pins (collection, at) VALUES (?, ?)", (collection.number, time.time())
    )
    pin = Pin(made.lastrowid or 0)
    pin.drop_at_end(collection.place)
    return pin


def removed_pins(connection: sqlite3.Connection, number: int, before: float) -> int:
    """Remove the pins of a collection that are older, inside a transaction, and the values that no other one needs."""
    found = connection.execute("DELETE FROM dstream_pins WHERE collection = ? AND at <= ?", (number, before))
    # A reader uses the oldest value that was saved since its pin, so values older than all pins are not needed.
    connection.execute(
        "DELETE FROM dstream_undo WHERE collection = ? "
        "AND pin < coalesce((SELECT min(pin) FROM dstream_pins WHERE collection = ?), 9223372036854775807)",
        (number, number),
    )
    return found.rowcount


class SqliteHandle:
    """The part of a store that does not depend on its kind."""

    in_process = False
    location: str | None = None

    def __init__(self, collection: SqliteCollection, types: str) -> None:
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
        """The identity, which differs from a later one of its name."""
        return str(self._collection.number)

    @property
    def options(self) -> Options:
        """The options of its creation, and the current types."""
        return self._collection.shape.options(self._codec())

    def destroy(self) -> None:
        """Remove the collection and its name in one transaction, then its tasks' staged output."""
        collection = self._collection
        with self._database.writing(collection) as connection:
            collection.state(connection)
            for table in ("jobs", "pins", "undo"):
                connection.execute(f"DELETE FROM dstream_{table} WHERE collection = ?", (collection.number,))
            # The row is removed in the same transaction as the table: a handle without a table reads the reason in it.
            connection.execute("DELETE FROM dstream_collections WHERE id = ?", (collection.number,))
            for statement in drop_statements(self._table):
                connection.execute(statement)
        # Files last: a job that is about to commit finds the collection gone before its rows are. After a failure here,
        # a vacuum of the storage removes the rest.
        shutil.rmtree(collection.staged, ignore_errors=True)

    def schema(self) -> pa.Schema:
        """Return the columns of `read_arrow`."""
        return self._codec_of(self._state().types).schema()

    def compact(self) -> None:
        """Move the contents of the write-ahead log into the database, as far as readers allow."""
        self._state()
        self._database.row(self._collection, "PRAGMA wal_checkpoint(PASSIVE)")

    def vacuum(self, older_than: float) -> int:
        """Remove staged output that was not committed, and old data that was retained for readers."""
        collection = self._collection
        before = time.time() - older_than
        with self._database.writing(collection) as connection:
            collection.state(connection)
            pins = removed_pins(connection, collection.number, before)
        return pins + _removed_files(collection.staged, before)

    def _state(self) -> CollectionRow:
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
        """Pickle it for tasks, which use the connection of their process."""
        return type(self), (self._collection, self._known_types)


def _removed_files(folder: str, before: float) -> int:
    removed = 0
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        with contextlib.suppress(FileNotFoundError):  # a job has removed it, or another vacuum
            if entry.stat(follow_symlinks=False).st_mtime <= before:
                os.unlink(entry.path)
                removed += 1
    return removed
