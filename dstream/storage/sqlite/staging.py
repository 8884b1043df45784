"""Files that one attempt of one task writes next to the database, until the driver commits their rows.

Such a file is a database too, without a log: no process reads it before its receipt is known.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from dstream.base.threads import contextmanager
from dstream.base.validation import checked_number, receipts_of
from dstream.errors import EngineError
from dstream.storage.base.options import removed_error
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import codec_by, settled
from dstream.storage.sqlite.collection import KEEP_SECONDS, SqliteCollection, staged_folder
from dstream.storage.sqlite.database import SQLITE_ERRORS, DatabaseLocation, Titled, failure
from dstream.storage.sqlite.rows import Cell

__all__ = ["AT_A_TIME", "Row", "SqliteJob", "Staged", "StagedFile", "removed_orphans"]


AT_A_TIME = 5000
"""The maximal number of entries or items in one write of a task."""

_NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}")
_NUMBER = re.compile(r"[1-9][0-9]{0,18}")

Row = tuple[Any, Cell | None, Cell | None, bytes | None]
"""The key, the new value, the value that it was merged with, and the written value; None if there is none."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Staged rows of one attempt, in a file."""

    collection: SqliteCollection
    name: str
    codec: Codec
    size: int

    @staticmethod
    def of(receipt: Any, collection: SqliteCollection, codec: Codec) -> Staged:
        """Return the staged rows of a receipt.

        Raises:
            ValueError: nothing of this collection is staged in a file of that name.
        """
        name = receipt["at"]
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError("it names no file of staged rows")
        return Staged(collection, name, codec_by(receipt["types"], codec), checked_number(receipt["size"]))

    @property
    def receipt(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"at": self.name, "types": self.codec.to_json(), "size": self.size}

    @property
    def path(self) -> str:
        """The path of the file."""
        return f"{self.collection.staged}/{self.name}"

    def rows(self) -> Iterator[Row]:
        """Yield the rows in the order in which they were written.

        Raises:
            IllegalStateError: they were removed.
        """
        found = 0
        with _naming_failures(self.collection), closing(self._opened()) as connection:
            for row in connection.execute("SELECT key, value, old, written FROM staged ORDER BY n"):
                found += 1
                yield row
        if found != self.size:
            # A file that was cut may read as one with fewer rows, which would be lost in silence.
            raise removed_error(self.collection)

    def _opened(self) -> sqlite3.Connection:
        path = self.path
        if not os.path.exists(path):
            raise removed_error(self.collection)
        # `immutable`: the file is finished, so SQLite needs neither locks nor a journal.
        return sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True)


class StagedFile:
    """The file of one attempt while it is written."""

    def __init__(self, collection: SqliteCollection, run: str) -> None:
        self.name = f"{run}-{uuid.uuid4().hex}"
        self._collection = collection
        self._path = f"{collection.staged}/{self.name}"
        self._connection: sqlite3.Connection | None = None

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows."""
        with _naming_failures(self._collection):
            connection = self._connection or self._made()
            connection.executemany("INSERT INTO staged (key, value, old, written) VALUES (?, ?, ?, ?)", rows)

    def _made(self) -> sqlite3.Connection:
        collection = self._collection
        try:
            staged = collection.staged
            for folder in (collection.place.files, os.path.dirname(staged), staged):
                with suppress(FileExistsError):
                    os.mkdir(folder, 0o700)  # that of this user alone, with any mask
            # SQLite itself would make the file with the permissions of the mask.
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            raise EngineError(f"{collection}: tasks cannot write into {self._path}: {error.strerror}") from error
        self._connection = connection = sqlite3.connect(self._path, isolation_level=None)
        # An unfinished file is removed as a whole, so nothing is ever rolled back.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute(f"PRAGMA synchronous = {'FULL' if collection.place.durable else 'OFF'}")
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE staged (n INTEGER PRIMARY KEY, key, value, old, written)")
        return connection

    def finish(self) -> None:
        """Commit the written rows."""
        if self._connection is not None:
            with _naming_failures(self._collection):
                self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file; it is removed if it was not finished."""
        if self._connection is not None:
            # `finish` has committed; a failed one leaves the transaction open.
            is_finished = not self._connection.in_transaction
            self._connection.close()
            if not is_finished:
                with suppress(OSError):
                    os.unlink(self._path)


@contextmanager
def _naming_failures(collection: SqliteCollection) -> Iterator[None]:
    try:
        yield
    except SQLITE_ERRORS as error:
        raise failure(collection.place, f"what tasks wrote for {collection}", error) from error


class SqliteJob:
    """The driver's part of both kinds of jobs."""

    def __init__(self, collection: SqliteCollection, codec: Codec, job: str | None, epoch: int, replace: bool) -> None:
        self._collection = collection
        self._database = collection.place.shared()
        self._began_with = codec
        self._run = uuid.uuid4().hex
        self._job = self._run if job is None else job
        self._is_anonymous = job is None
        self._epoch = epoch
        self._replace = replace

    @property
    def is_done(self) -> bool:
        """Return whether this epoch of the job, or a later one, has committed."""
        with self._database.reading(self._collection) as connection:
            self._collection.state(connection)
            return self._has_committed(connection)

    def abort(self) -> None:
        """Remove the staged output of this run's tasks."""
        self._remove({self._run})

    def _staged(self, receipts: Sequence[Any]) -> list[Staged]:
        collection, known = self._collection, self._began_with
        return receipts_of(collection, lambda receipt: Staged.of(receipt, collection, known), receipts)

    def _settled(self, types: str, parts: Sequence[Staged]) -> Codec:
        """Return the codec that a commit leaves; the first receipt decides types that are open."""
        codec = self._collection.codec(types)
        return settled(codec, parts[0].codec) if parts else codec

    def _types(self) -> str:
        with self._database.reading(self._collection) as connection:
            return self._collection.state(connection).types

    def _has_committed(self, connection: sqlite3.Connection) -> bool:
        sql = "SELECT 1 FROM dstream_jobs WHERE collection = ? AND job = ? AND epoch >= ?"
        return connection.execute(sql, (self._collection.number, self._job, self._epoch)).fetchone() is not None

    def _note(self, connection: sqlite3.Connection) -> None:
        """Store that the epoch is committed, and remove jobs without a name that are too old."""
        number, now = self._collection.number, time.time()
        connection.execute(
            "INSERT INTO dstream_jobs (collection, job, epoch, removable_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET epoch = excluded.epoch",
            (number, self._job, self._epoch, now + KEEP_SECONDS if self._is_anonymous else None),
        )
        connection.execute("DELETE FROM dstream_jobs WHERE collection = ? AND removable_at < ?", (number, now))

    def _tidy(self, parts: Sequence[Staged]) -> None:
        """Remove the output staged by this run and by those that wrote the receipts, losing attempts included."""
        self._remove({self._run, *(staged.name[:32] for staged in parts)})

    def _remove(self, runs: set[str]) -> None:
        with suppress(OSError):  # vacuum removes it later
            for entry in list(os.scandir(self._collection.staged)):
                if entry.name[:32] in runs:
                    os.unlink(entry.path)


def removed_orphans(place: DatabaseLocation, before: float) -> int:
    """Remove the folders of destroyed collections in which nothing is newer than a time, and count their files.

    `destroy` removes the folder after the collection, so a failure in between leaves it, and a running task may
    recreate it.

    Raises:
        EngineError: the file system refuses it.
    """
    title = Titled("staged output of destroyed collections")
    # The folders first: folders of collections that are created in between are not among them.
    folders = list(_numbered(staged_folder(title, place)))
    known = {number for (number,) in place.shared().rows(title, "SELECT id FROM dstream_collections")}
    return sum(_removed_folder(title, path, before) for number, path in folders if number not in known)


def _numbered(folder: str) -> Iterator[tuple[int, str]]:
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        if _NUMBER.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            yield int(entry.name), entry.path


def _removed_folder(title: Titled, folder: str, before: float) -> int:
    try:
        with suppress(FileNotFoundError):  # another vacuum has removed it
            entries = list(os.scandir(folder))
            times = [os.stat(folder).st_mtime, *(entry.stat(follow_symlinks=False).st_mtime for entry in entries)]
            if max(times) <= before:
                shutil.rmtree(folder)
                return len(entries)
    except OSError as error:
        raise EngineError(f"{title}: {folder} cannot be removed: {error.strerror}") from error
    return 0
