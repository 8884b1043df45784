"""Tables of `to_sql`: target, epochs, staging tables that tasks fill, and conflicts of keys.

A table for each attempt of a task is called `dstream_`, the second in which its run began, the run, and the attempt. So
the commit finds it by its receipt, and a later run removes it after a week, when no commit will need it.
"""

from __future__ import annotations

import datetime
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from more_itertools import chunked

from dstream.base.showing import shown
from dstream.connectors.sql.databases import Database, StagedColumn, python_type, row_of, unfit
from dstream.errors import SinkError
from dstream.spi import Receipt

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = [
    "EPOCHS",
    "PLACE",
    "STAGED",
    "SqlWriter",
    "Table",
    "conflict",
    "epochs_table",
    "opened_table",
    "run_name",
    "staged_table",
    "staged_tables",
    "swept",
]


EPOCHS = "dstream_epochs"
PLACE = "dstream_place"
"""The column of a staged table with the order of its rows."""
STAGED = re.compile(r"(dstream_([0-9a-f]{8})_[0-9a-f]{16})_[0-9a-f]{16}")
_WEEK = 7 * 24 * 60 * 60


class Table(NamedTuple):
    """The name of a table; without a schema it is in the default one."""

    schema: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


def run_name() -> str:
    """Return the common prefix of the names of a run's staged tables."""
    return f"dstream_{int(time.time()):08x}_{uuid.uuid4().hex[:16]}"


def opened_table(
    database: Database, connection: sa.Connection, table: Table, names: tuple[str, ...] | None
) -> tuple[StagedColumn, ...]:
    """Return the columns of a table that are written; create the table of epochs if it does not exist.

    Raises:
        SinkError: there is no such table or column, or no table can be created.
    """
    import sqlalchemy as sa
    from sqlalchemy.exc import DBAPIError

    with database.refusals():
        inspector = sa.inspect(connection)
        if not inspector.has_table(table.name, table.schema):
            is_one_name = table.schema is not None and inspector.has_table(str(table))
            advice = (
                f"""one with a dot in its name is written '"{table}"'""" if is_one_name else "CREATE TABLE makes one"
            )
            raise SinkError(f"{database.call}: there is no table {str(table)!r}: {advice}")
        keys = inspector.get_pk_constraint(table.name, table.schema)["constrained_columns"]
        found = {each["name"]: each for each in inspector.get_columns(table.name, table.schema)}
        for missing in [name for name in names or () if name not in found]:
            raise SinkError(f"{database.call}: the table has no column {missing!r}, but {', '.join(found)}")
        chosen = [found[name] for name in names or found if names or not _is_made_there(found[name])]
        for untyped in [one["name"] for one in chosen if isinstance(one["type"], sa.types.NullType)]:
            raise SinkError(
                f"{database.call}: the column {untyped!r} has no type that is known here: columns=... names the others"
            )
        with suppress(DBAPIError):  # Another process may have created it; otherwise the next line raises.
            epochs_table(table).create(connection, checkfirst=True)
            connection.commit()
        # After an error PostgreSQL refuses all else in a transaction.
        connection.rollback()
        connection.execute(sa.select(sa.func.count()).select_from(epochs_table(table)))
    is_whole_key = set(keys) <= {one["name"] for one in chosen}
    is_sqlite = connection.dialect.name == "sqlite"
    return tuple(
        StagedColumn(
            one["name"],
            _with_null(one["type"]),
            one["nullable"],
            is_whole_key and one["name"] in keys,
            keeps_floats=is_sqlite,
            has_texts_of_moments=is_sqlite and python_type(one["type"]) in (datetime.datetime, datetime.time),
            is_json=isinstance(one["type"], sa.JSON),
        )
        for one in chosen
    )


def _is_made_there(column: Any) -> bool:
    """Return whether the database computes the values of a column, and accepts none."""
    return "computed" in column or bool(column.get("identity", {}).get("always"))


def _with_null(kind: Any) -> Any:
    """Return the type of a column such that None is NULL in it: SQLAlchemy writes the JSON value null for it (2.1)."""
    import sqlalchemy as sa

    if isinstance(kind, sa.JSON):
        kind = kind.copy()
        kind.none_as_null = True
    elif isinstance(kind, sa.ARRAY):
        kind = kind.copy()
        kind.item_type = _with_null(kind.item_type)
    return kind


def epochs_table(table: Table) -> sa.Table:
    """Return the table of the last epoch of each job in each table, which is in their schema."""
    import sqlalchemy as sa

    return sa.Table(
        EPOCHS,
        sa.MetaData(),
        sa.Column("target", sa.String(255), primary_key=True),
        sa.Column("job", sa.String(255), primary_key=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        schema=table.schema,
    )


def staged_tables(connection: sa.Connection, table: Table) -> list[re.Match[str]]:
    """Return the names of the staged tables that exist."""
    import sqlalchemy as sa

    return list(filter(None, map(STAGED.fullmatch, sa.inspect(connection).get_table_names(table.schema))))


def swept(connection: sa.Connection, table: Table, runs: frozenset[str] = frozenset()) -> None:
    """Remove the tables of these runs, and uncommitted ones of others that are a week old; raises nothing."""
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

    old = time.time() - _WEEK
    with suppress(SQLAlchemyError):
        for name in staged_tables(connection, table):
            if name[1] in runs or int(name[2], 16) < old:
                sa.Table(name[0], sa.MetaData(), schema=table.schema).drop(connection, checkfirst=True)
                connection.commit()


def staged_table(name: str, table: Table, columns: Sequence[StagedColumn]) -> sa.Table:
    """Return the table of one attempt: the columns, and the position of a row."""
    import sqlalchemy as sa

    each = [sa.Column(column.name, column.stored_type, nullable=column.is_nullable) for column in columns]
    place = sa.Column(PLACE, sa.BigInteger, nullable=False)
    return sa.Table(name, sa.MetaData(), place, *each, schema=table.schema)


_UNIQUE = "SQLITE_CONSTRAINT_UNIQUE"
_REPEATED = {"23505", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID", _UNIQUE}
"""The words of PostgreSQL and SQLite for a violation of uniqueness."""


def conflict(
    database: Database,
    connection: sa.Connection,
    error: Any,
    rows: sa.Table,
    target: sa.Table,
    columns: Sequence[StagedColumn],
) -> SinkError | None:
    """Return the error of rows refused for a value that must be unique; None: it was something else.

    Args:
        database: names the call.
        connection: the transaction in which they were refused.
        error: the error of SQLAlchemy.
        rows: the staged rows.
        target: the table that they are for.
        columns: the columns that are written.
    """
    original = getattr(error, "orig", None)
    [name] = {getattr(original, "sqlstate", None), getattr(original, "sqlite_errorname", None)} & _REPEATED or {None}
    if name is None:
        return None
    keys = [column.name for column in columns if column.is_key]
    # PostgreSQL names the key, and answers nothing in a transaction that has failed.
    which = _repeated(connection, rows, target, keys) if keys and name not in ("23505", _UNIQUE) else ""
    update = "" if name == _UNIQUE else "on_conflict='update' updates the row of the key, "
    words = database.words(error).rstrip(".")
    return SinkError(
        f"{database.call}: {words}{which}: nothing was inserted; {update}on_conflict='ignore' leaves such items out"
    )


def _repeated(connection: sa.Connection, rows: sa.Table, target: sa.Table, keys: Sequence[str]) -> str:
    """Return the message about a key that exists already, or is repeated."""
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

    staged = [rows.c[key] for key in keys]
    is_there = sa.exists().where(*[target.c[key] == rows.c[key] for key in keys])
    there = sa.select(*staged).where(is_there).order_by(rows.c[PLACE])
    twice = sa.select(*staged).group_by(*staged).having(sa.func.count() > 1)
    with suppress(SQLAlchemyError):
        for query, what in (there, "has a row already"), (twice, "comes twice"):
            if (found := connection.execute(query.limit(1)).first()) is not None:
                values = ", ".join(f"{key}={shown(value)}" for key, value in zip(keys, found, strict=True))
                return f", since {values} {what}"
    return ""


_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class SqlWriter:
    """Writer that is sent to the tasks. Each attempt fills a separate table.

    Attributes:
        run: the beginning of the names of its tables.
        is_exact: items have no other fields than the columns.
    """

    database: Database
    table: Table
    columns: tuple[StagedColumn, ...]
    run: str
    is_exact: bool

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Yield the name of the table and its number of rows, unless there is no item."""
        name, count = f"{self.run}_{uuid.uuid4().hex[:16]}", 0
        for batch in chunked(items, _BATCH):
            # A connection for each batch would be dear, one for all would be idle while the next items are made; but
            # a file of SQLite is locked only as long as a transaction lasts.
            count = self._stage(name, batch, count)
        if count:
            yield [name, count]

    def check_item(self, item: Any) -> None:
        """Refuse an item that is no row of the table."""
        row_of(item, self.columns, self.database.call, self.is_exact)

    def _stage(self, name: str, batch: list[Any], count: int) -> int:
        rows = [
            {PLACE: place, **row_of(item, self.columns, self.database.call, self.is_exact)}
            for place, item in enumerate(batch, start=count)
        ]
        with self.database.connected() as connection:
            staged = staged_table(name, self.table, self.columns)
            if not count:
                with self.database.refusals():
                    staged.create(connection)
                    connection.commit()
            self._insert(connection, staged, batch, rows)
        return count + len(batch)

    def _insert(
        self, connection: sa.Connection, staged: sa.Table, batch: list[Any], rows: list[dict[str, Any]]
    ) -> None:
        """Insert rows; if the database refuses them, name the item in the error."""
        from sqlalchemy.exc import SQLAlchemyError

        refused = (SQLAlchemyError, TypeError, ValueError, ArithmeticError)
        try:
            connection.execute(staged.insert(), rows)
            connection.commit()
        except refused as error:
            # No item is to blame for a connection that was cut.
            if getattr(error, "connection_invalidated", False):
                with self.database.refusals():
                    raise
            # Each row is tried alone and rolled back, since a driver does not report which one of a batch was refused.
            for item, row in zip(batch, rows, strict=True):
                connection.rollback()
                try:
                    connection.execute(staged.insert(), row)
                except refused as first:
                    raise unfit(self.database, item, first) from first
            with self.database.refusals():
                raise
