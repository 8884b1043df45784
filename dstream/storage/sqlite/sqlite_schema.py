"""The tables of a storage in SQLite.

Each collection has a table of its own, such as `map_counts_7`, with the columns `key` and `value`; that of a list has
positions as keys, and `dstream_collections` its size. Triggers keep what else a change means, so that a change is one
statement:

- **The journal**, if there is one: `map_counts_7_journal`.
- **What pinned readers need.** A reader notes a number in `dstream_pins`. As long as there is one for a collection, the
  first change of each key after the newest pin keeps the old value in `dstream_undo`, NULL if there was none. A reader
  takes for each key the oldest value that was kept since its pin, and otherwise the one that stands in the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dstream.spi.store import Kind

__all__ = [
    "APPLICATION",
    "FORMAT",
    "TABLES",
    "UPSERT",
    "content_statements",
    "content_table",
    "drop_statements",
    "journal_of",
]

APPLICATION = 0x64737472
"""Says in the header of the file whose it is."""
FORMAT = 2

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
"""Never `INSERT OR ...`: its way with conflicts would be that of the triggers too."""

_NOW = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
"""Milliseconds since 1970. A Julian day is a float of whole milliseconds that is off by up to 0.04 of one, so it is
rounded; `unixepoch('subsec')` came with SQLite 3.42."""

_MOST_OF_A_NAME = 40


def content_table(kind: Kind, name: str, number: int) -> str:
    """Return the name of the table of a collection, quoted; it shows as much of the name as SQL knows to write."""
    shown = re.sub(r"[^A-Za-z0-9]+", "_", name)[:_MOST_OF_A_NAME]
    return f'"{kind}_{shown}_{number}"'


def content_statements(kind: Kind, name: str, number: int, has_journal: bool) -> Iterator[str]:
    """Give the statements that make the table of a collection, its triggers and its journal."""
    table = content_table(kind, name, number)
    if kind == "list":
        yield f"CREATE TABLE {table} (key INTEGER PRIMARY KEY, value NOT NULL)"
    else:
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
    """Give the statements that remove the table of a collection, with its triggers, and its journal."""
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
