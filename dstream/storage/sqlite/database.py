"""`Database`: the connection of a process to one SQLite file, its tables and the causes of its errors.

Each collection has a separate table, such as `map_counts_7`, with the columns `key` and `value`; the table of a list
has positions as keys, and `dstream_collections` has its size. Triggers do the rest of a change, so that a change is one
statement:

- **The journal**, if there is one: `map_counts_7_journal`.
- **What pinned readers need.** A reader stores a number in `dstream_pins`. While a collection has a pin, the first
  change of each key after the newest pin saves the old value in `dstream_undo`, NULL if there was none. A reader uses
  for each key the oldest value that was saved since its pin, and otherwise the value in the table.

All handles of a process share one connection, under a lock; no code of users runs under it. A forked process opens its
own connection, and does not touch the inherited one: SQLite forbids its use or closing in the fork.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from dstream.base.threads import contextmanager, renewed_after_fork
from dstream.errors import DStreamError, EngineError, IllegalStateError, SetupError
from dstream.spi.store import Kind
from dstream.storage.base.options import destroyed_error

__all__ = [
    "APPLICATION",
    "DAMAGE",
    "FORMAT",
    "SQLITE_ERRORS",
    "TABLES",
    "UPSERT",
    "WAIT_SECONDS",
    "Database",
    "DatabaseLocation",
    "Owner",
    "Titled",
    "content_statements",
    "content_table",
    "drop_statements",
    "failure",
    "journal_of",
]


APPLICATION = 0x64737472
"""The application ID in the header of the file."""
FORMAT = 4

# `AUTOINCREMENT` never reuses a number: an old handle, or a pickled pin, never finds another collection.
TABLES = (
    "CREATE TABLE dstream_collections (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, "
    "shape TEXT NOT NULL, types TEXT NOT NULL, version INTEGER NOT NULL, size INTEGER NOT NULL, UNIQUE (kind, name))",
    "CREATE TABLE dstream_jobs (collection INTEGER, job TEXT, epoch INTEGER NOT NULL, removable_at REAL, "
    "PRIMARY KEY (collection, job)) WITHOUT ROWID",
    "CREATE TABLE dstream_pins (pin INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, at REAL NOT NULL)",
    "CREATE INDEX dstream_pins_of ON dstream_pins (collection, pin)",
    "CREATE TABLE dstream_undo (collection INTEGER, key, pin INTEGER, value, PRIMARY KEY (collection, key, pin)) "
    "WITHOUT ROWID",
    "CREATE TABLE dstream_records (name TEXT PRIMARY KEY, version INTEGER NOT NULL, data BLOB NOT NULL, "
    "sum INTEGER NOT NULL)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)

UPSERT = "INSERT INTO {table} (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
"""Never `INSERT OR ...`: its conflict clause would apply to the triggers too."""

_NOW = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
"""Milliseconds since 1970. A Julian day is a float of whole milliseconds that is off by up to 0.04 of one, so it is
rounded; `unixepoch('subsec')` was added in SQLite 3.42."""

_MOST_OF_A_NAME = 40


def content_table(kind: Kind, name: str, number: int) -> str:
    """Return the name of the table of a collection, quoted; it contains as much of the name as SQL can write."""
    shown = re.sub(r"[^A-Za-z0-9]+", "_", name)[:_MOST_OF_A_NAME]
    return f'"{kind}_{shown}_{number}"'


def content_statements(kind: Kind, name: str, number: int, has_journal: bool) -> Iterator[str]:
    """Yield the statements that create the table of a collection, its triggers and its journal."""
    table = content_table(kind, name, number)
    if kind == "list":
        # `INTEGER PRIMARY KEY` is the row id itself. No column has another type, to which SQLite would convert cells.
        yield f"CREATE TABLE {table} (key INTEGER PRIMARY KEY, value NOT NULL)"
    else:
        # Without a row id the table itself is sorted by key, and there is no index with each key a second time.
        yield f"CREATE TABLE {table} (key PRIMARY KEY, value NOT NULL) WITHOUT ROWID"
    for event, key, old in (
        ("INSERT", "NEW.key", "NULL"),
        ("UPDATE", "OLD.key", "OLD.value"),
        ("DELETE", "OLD.key", "OLD.value"),
    ):
        yield (
            f"CREATE TRIGGER {_named(table, f'undo_{event}')} AFTER {event} ON {table} "
            f"WHEN EXISTS (SELECT 1 FROM dstream_pins WHERE collection = {number}) BEGIN "
            f"INSERT INTO dstream_undo (collection, key, pin, value) VALUES ({number}, {key}, "
            f"(SELECT max(pin) FROM dstream_pins WHERE collection = {number}), {old}) ON CONFLICT DO NOTHING; END"
        )
    if has_journal:
        yield from _journal_statements(table)


def drop_statements(table: str) -> Iterator[str]:
    """Yield the statements that remove the table of a collection, with its triggers, and its journal."""
    yield f"DROP TABLE {table}"
    yield f"DROP TABLE IF EXISTS {journal_of(table)}"


def journal_of(table: str) -> str:
    """Return the name of the journal of a table."""
    return _named(table, "journal")


def _journal_statements(table: str) -> Iterator[str]:
    journal = journal_of(table)
    yield f"CREATE TABLE {journal} (offset INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, key, old, new)"
    for event, values in (
        ("INSERT", "NEW.key, NULL, NEW.value"),
        ("UPDATE", "OLD.key, OLD.value, NEW.value"),
        ("DELETE", "OLD.key, OLD.value, NULL"),
    ):
        yield (
            f"CREATE TRIGGER {_named(table, f'journal_{event}')} AFTER {event} ON {table} BEGIN "
            f"INSERT INTO {journal} (at, key, old, new) VALUES ({_NOW}, {values}); END"
        )


def _named(table: str, suffix: str) -> str:
    return f'{table[:-1]}_{suffix.lower()}"'


WAIT_SECONDS = 30.0
"""Seconds for which a writer waits for a lock."""

DAMAGE = "something else than dstream has changed it, or the disk has lost a part of it: restore it from a backup"

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Errors that `sqlite3` raises; the second where its message has a name out of a damaged schema (3.11)."""

_FAILURES = {
    sqlite3.SQLITE_BUSY: f"another process or thread has kept it locked for {WAIT_SECONDS:.0f} seconds; try again",
    sqlite3.SQLITE_LOCKED: f"another process or thread has kept it locked for {WAIT_SECONDS:.0f} seconds; try again",
    sqlite3.SQLITE_READONLY: "it cannot be written: the file, its folder or the file system is read-only for this user",
    sqlite3.SQLITE_PERM: "this user may not use it",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: is the folder there, and may this user write to it?",
    sqlite3.SQLITE_FULL: "there is no space left for it; nothing was changed",
    sqlite3.SQLITE_IOERR: "the file system failed",
    sqlite3.SQLITE_NOMEM: "there is no memory left for it",
    sqlite3.SQLITE_TOOBIG: "a key or a value has more than a gigabyte; nothing was changed",
}


class Owner(Protocol):
    """The subject of an operation: errors name it; a collection has its number in the database."""

    @property
    def number(self) -> int | None:
        """The number of a collection."""
        ...


@dataclass(frozen=True, slots=True)
class Titled:
    """The subject of an operation that is no collection."""

    title: str
    number: int | None = None

    def __str__(self) -> str:
        return self.title


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """The location of a database, as a value that travels.

    Attributes:
        path: the absolute path of the file.
        durable: an acknowledged change survives the death of the machine, too.
    """

    path: str
    durable: bool

    @property
    def files(self) -> str:
        """The folder next to it, for tasks' staged output and for states of jobs."""
        return f"{self.path}-files"

    def exists(self) -> bool:
        """Return whether there is a database."""
        try:
            return os.stat(self.path).st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise SetupError(f"the storage sqlite:{self.path} cannot be looked at: {error.strerror}") from error

    def shared(self) -> Database:
        """Return the database of this process."""
        return _databases.get(self) or _databases.setdefault(self, Database(self))


_databases: dict[DatabaseLocation, Database] = {}
_abandoned: list[Any] = []
"""Connections of the parent of a forked process: neither used nor closed here."""


class Database:
    """Connection to a database file, opened on use; a closed one opens again."""

    def __init__(self, place: DatabaseLocation) -> None:
        self.place = place
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self.renew()
        renewed_after_fork(self)

    def renew(self) -> None:
        """Create a new lock, and abandon an inherited connection."""
        self._lock = threading.RLock()
        if self._connection is not None:
            _abandoned.append(self._connection)
            self._connection = None

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    # Single statements, each a separate transaction

    def row(self, owner: Owner, sql: str, arguments: Sequence[Any] = ()) -> Any:
        """Return the first row of an answer, or None."""
        with self._lock:
            try:
                return (self._connection or self._opened()).execute(sql, arguments).fetchone()
            except SQLITE_ERRORS as error:
                raise self._failed(owner, error) from error

    def rows(self, owner: Owner, sql: str, arguments: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of an answer."""
        with self._lock:
            try:
                return (self._connection or self._opened()).execute(sql, arguments).fetchall()
            except SQLITE_ERRORS as error:
                raise self._failed(owner, error) from error

    def change(self, owner: Owner, sql: str, arguments: Sequence[Any] = ()) -> int:
        """Run a statement, and return how many rows it has changed."""
        with self._lock:
            self.check_file()
            try:
                return (self._connection or self._opened()).execute(sql, arguments).rowcount
            except SQLITE_ERRORS as error:
                raise self._failed(owner, error) from error

    # Several statements

    @contextmanager
    def writing(self, owner: Owner) -> Iterator[sqlite3.Connection]:
        """Run statements in one transaction, alone; an exception undoes them."""
        with self._lock:
            self.check_file()
            with self._transaction(owner, "BEGIN IMMEDIATE") as connection:
                yield connection

    @contextmanager
    def reading(self, owner: Owner) -> Iterator[sqlite3.Connection]:
        """Run statements that see one state."""
        with self._lock, self._transaction(owner, "BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, owner: Owner, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._connection or self._opened()
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                # After some errors, such as a full disk, SQLite itself has rolled back, and a second one would fail.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except SQLITE_ERRORS as error:
            raise self._failed(owner, error) from error

    # Opening and failing

    def check_file(self) -> None:
        """Refuse to write into a file that was removed: SQLite would, and no process could read that."""
        if self._file is None or self._connection is None:
            return
        try:
            found = os.stat(self.place.path)
            if (found.st_dev, found.st_ino) == self._file:
                return
        except OSError:
            pass
        raise IllegalStateError(
            f"the storage sqlite:{self.place.path} was removed or replaced while it was in use; connect to it again"
        )

    def _opened(self) -> sqlite3.Connection:
        path = self.place.path
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _make_own_file(path)
        except OSError as error:
            raise EngineError(f"the storage sqlite:{path} cannot be made: {error.strerror}") from error
        # `isolation_level=None`: otherwise `sqlite3` begins implicit transactions before some statements.
        connection = sqlite3.connect(
            path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        try:
            _prepare(connection, self.place)
            _check_size(connection, self.place)
        except BaseException:
            connection.close()
            raise
        found = os.stat(path)
        self._file = found.st_dev, found.st_ino
        self._connection = connection
        return connection

    def mark(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Return a mark that is constant inside transactions while no process has written to the database."""
        [others] = connection.execute("PRAGMA data_version").fetchone()
        return others, connection.total_changes

    def _failed(self, owner: Owner, error: Exception) -> DStreamError:
        # SQLite has no error code for a missing table.
        if owner.number is not None and str(error).startswith("no such table") and self._is_destroyed(owner.number):
            return destroyed_error(owner)
        return failure(self.place, owner, error)

    def _is_destroyed(self, number: int) -> bool:
        assert self._connection is not None  # it has reported that there is no table
        try:
            found = self._connection.execute("SELECT 1 FROM dstream_collections WHERE id = ?", (number,)).fetchone()
        except sqlite3.Error:
            return False
        return found is None


def failure(place: DatabaseLocation, owner: object, error: Exception) -> DStreamError:
    """Return the error that an error of SQLite means."""
    # The low byte is the error, the rest the case of it, such as which call of the file system has failed.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    where = f"in the storage sqlite:{place.path}"
    if code in _FAILURES:
        return EngineError(f"{owner} {where}: {_FAILURES[code]} ({error})")
    return IllegalStateError(f"{owner} {where} is damaged: {error}; {DAMAGE}")


def _check_size(connection: sqlite3.Connection, place: DatabaseLocation) -> None:
    """Refuse a file that is shorter than in its header: SQLite reads the rest of its last page as zeros.

    Raises:
        IllegalStateError: it is shorter.
    """
    [page], [pages] = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_size", "page_count"))
    with suppress(FileNotFoundError):
        if os.stat(f"{place.path}-wal").st_size:
            return  # the log may have the pages that the file lacks
    size = os.stat(place.path).st_size
    if size < page * pages:
        raise IllegalStateError(
            f"the storage sqlite:{place.path} is damaged: it has {size:,} bytes of {page * pages:,}; {DAMAGE}"
        )


def _make_own_file(path: str) -> None:
    """Create the file, inaccessible to others regardless of the umask: jobs store their plans in it, with passwords.

    SQLite creates its log with the same permissions.

    An existing file is only opened by SQLite: closing another handle would release the locks of this process.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _prepare(connection: sqlite3.Connection, place: DatabaseLocation) -> None:
    """Set up a new connection, and create the tables that every database has.

    Raises:
        SetupError: the file was written by another program, or by a later version.
    """
    connection.execute("PRAGMA trusted_schema = OFF")  # a schema that others wrote calls no functions of ours
    # Damaged pages are found where they are read, and not where something is written by them.
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA cache_size = -65536")
    mode = _with_wal(connection)
    if mode != "wal":
        raise SetupError(f"the storage sqlite:{place.path} needs a write-ahead log, and the file system has it {mode}")
    # In a write-ahead log NORMAL damages nothing: a loss of power loses at most the last changes.
    connection.execute(f"PRAGMA synchronous = {'FULL' if place.durable else 'NORMAL'}")
    if _identified(connection, place):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _identified(connection, place):
            # Another process may have made the tables before this transaction began.
            for statement in TABLES:
                connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _identified(connection: sqlite3.Connection, place: DatabaseLocation) -> bool:
    """Return whether it is a storage already; False if it is empty."""
    [application], [version] = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if application == APPLICATION:
        if version != FORMAT:
            raise SetupError(f"the storage sqlite:{place.path} has format {version}; this dstream reads {FORMAT}")
        return True
    # Other programs leave both numbers 0, so tables count, too.
    if application or version or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise SetupError(f"{place.path} is an SQLite database of something else; name another file as storage")
    return False


def _with_wal(connection: sqlite3.Connection) -> str:
    """Switch to a write-ahead log. SQLite does not wait for a lock then (3.40), so concurrent callers would fail."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.005)
