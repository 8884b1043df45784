"""What tasks and driver do for `to_sql`: tasks fill tables that nobody reads, and one transaction empties them.

A table for each attempt of a task is called `dstream_`, the second in which its run began, the run, and the attempt. So
whoever commits finds it by its receipt, and whoever comes a week later knows that nobody will.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from more_itertools import chunked

from dstream.errors import IllegalStateError, SinkError
from dstream.spi import Receipt
from dstream.values.databases import Database
from reducers.sql_values import StagedColumn, row_of, unfit

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["EPOCHS", "SqlJob", "SqlWriter", "StagedColumn", "Table", "opened_table", "run_name", "swept"]

EPOCHS = "dstream_epochs"
PLACE = "dstream_place"
"""The column of a staged table that keeps the order of its rows."""
_STAGED = re.compile(r"(dstream_([0-9a-f]{8})_[0-9a-f]{16})_[0-9a-f]{16}")
_BATCH = 1_000
_WEEK = 7 * 24 * 60 * 60


class Table(NamedTuple):
    """The name of a table; without a schema it is in the default one."""

    schema: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


def run_name() -> str:
    """Return what the names of the staged tables of a run begin with."""
    return f"dstream_{int(time.time()):08x}_{uuid.uuid4().hex[:16]}"


def opened_table(
    database: Database, connection: sa.Connection, table: Table, names: tuple[str, ...] | None
) -> tuple[StagedColumn, ...]:
    """Return the columns of a table that are written; make the table of epochs if there is none.

    Raises:
        SinkError: there is no such table or column, or no table can be made.
    """
    import sqlalchemy as sa
    from sqlalchemy.exc import DBAPIError

    with database.refusals():
        inspector = sa.inspect(connection)
        if not inspector.has_table(table.name, table.schema):
            raise SinkError(f"{database.call}: there is no table {str(table)!r}: CREATE TABLE makes one")
        keys = inspector.get_pk_constraint(table.name, table.schema)["constrained_columns"]
        found = {each["name"]: each for each in inspector.get_columns(table.name, table.schema)}
        for missing in [name for name in names or () if name not in found]:
            raise SinkError(f"{database.call}: the table has no column {missing!r}, but {', '.join(found)}")
        chosen = [found[name] for name in names or found if names or not _is_made_there(found[name])]
        for untyped in [one["name"] for one in chosen if isinstance(one["type"], sa.types.NullType)]:
            raise SinkError(
                f"{database.call}: the column {untyped!r} has no type that is known here: columns=... names the others"
            )
        with suppress(DBAPIError):  # Another process makes it at the same time; else the next line tells.
            epochs_table(table).create(connection, checkfirst=True)
            connection.commit()
        connection.rollback()
        connection.execute(sa.select(sa.func.count()).select_from(epochs_table(table)))
    is_whole_key = set(keys) <= {one["name"] for one in chosen}
    return tuple(
        StagedColumn(one["name"], one["type"], one["nullable"], is_whole_key and one["name"] in keys) for one in chosen
    )


def _is_made_there(column: Any) -> bool:
    """Say whether the database itself gives a column its values, and takes none."""
    return "computed" in column or bool(column.get("identity", {}).get("always"))


def epochs_table(table: Table) -> sa.Table:
    """Return the table of the last epoch of each job in each table, which stands beside them."""
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
    """Return the names of what tasks have filled and nobody has removed."""
    import sqlalchemy as sa

    return list(filter(None, map(_STAGED.fullmatch, sa.inspect(connection).get_table_names(table.schema))))


def swept(connection: sa.Connection, table: Table, runs: frozenset[str] = frozenset()) -> None:
    """Remove what these runs have staged, and what others did a week ago and nobody committed; raises nothing."""
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

    old = time.time() - _WEEK
    with suppress(SQLAlchemyError):
        for name in staged_tables(connection, table):
            if name[1] in runs or int(name[2], 16) < old:
                sa.Table(name[0], sa.MetaData(), schema=table.schema).drop(connection, checkfirst=True)
                connection.commit()


@dataclass(frozen=True, slots=True)
class SqlWriter:
    """Travels to the tasks. Each attempt fills a table of its own.

    Attributes:
        run: what the names of its tables begin with.
        is_exact: items have no other fields than the columns.
    """

    database: Database
    table: Table
    columns: tuple[StagedColumn, ...]
    run: str
    is_exact: bool

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Give the name of the table and how many rows it has, unless there is no item."""
        name, count = f"{self.run}_{uuid.uuid4().hex[:16]}", 0
        for batch in chunked(items, _BATCH):
            # A connection for each batch would be dear, one for all would be idle while the next items are made; but
            # a file of SQLite is locked only as long as a transaction lasts.
            count = self._stage(name, batch, count)
        if count:
            yield [name, count]

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
        """Insert rows; if the database refuses them, say which item it was."""
        from sqlalchemy.exc import SQLAlchemyError

        refused = (SQLAlchemyError, TypeError, ValueError, ArithmeticError)
        try:
            connection.execute(staged.insert(), rows)
            connection.commit()
        except refused as error:
            if getattr(error, "connection_invalidated", False):
                with self.database.refusals():
                    raise
            for item, row in zip(batch, rows, strict=True):
                connection.rollback()
                try:
                    connection.execute(staged.insert(), row)
                except refused as first:
                    raise unfit(self.database, item, first) from first
            with self.database.refusals():
                raise


def staged_table(name: str, table: Table, columns: Sequence[StagedColumn]) -> sa.Table:
    """Return the table of one attempt: the columns, and the place of a row."""
    import sqlalchemy as sa

    each = [sa.Column(column.name, column.type, nullable=column.is_nullable) for column in columns]
    place = sa.Column(PLACE, sa.BigInteger, nullable=False)
    return sa.Table(name, sa.MetaData(), place, *each, schema=table.schema)


@dataclass(slots=True)
class SqlJob:
    """One epoch of a job on its way into a table, in the driver.

    Attributes:
        name: that of the job in the table of epochs.
        is_named: others may commit it too.
        replace: the rows take the place of all that are there.
    """

    writer: SqlWriter
    name: str
    is_named: bool
    epoch: int
    on_conflict: str
    replace: bool
    _is_committed: bool = field(default=False, init=False)

    @property
    def is_done(self) -> bool:
        """Whether this epoch, or a later one, was committed."""
        import sqlalchemy as sa

        if self._is_committed or not self.is_named:
            return self._is_committed
        epochs = epochs_table(self.writer.table)
        with self.writer.database.connected() as connection, self.writer.database.refusals():
            found = connection.scalar(sa.select(epochs.c.epoch).where(self._is_ours(epochs)))
        return found is not None and found >= self.epoch

    def _is_ours(self, epochs: sa.Table) -> sa.ColumnElement[bool]:
        return (epochs.c.target == str(self.writer.table)) & (epochs.c.job == self.name)

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Move the rows that the receipts name into the table, unless the epoch was committed meanwhile."""
        database, table = self.writer.database, self.writer.table
        staged = [_checked(each, database) for each in receipts]
        if not self._is_committed:
            with database.connected() as connection:
                with database.refusals():
                    self._register(connection)
                    if self._is_next(connection):
                        self._move(connection, staged)
                    connection.commit()
                self._is_committed = True
                runs = frozenset(match[1] for name, _ in staged if (match := _STAGED.fullmatch(name)))
                swept(connection, table, runs | {self.writer.run})
                self._forget(connection)

    def _register(self, connection: sa.Connection) -> None:
        """Let the job have a row, which whoever commits locks."""
        from sqlalchemy.exc import IntegrityError

        row = {"target": str(self.writer.table), "job": self.name, "epoch": 0}
        try:
            connection.execute(epochs_table(self.writer.table).insert(), row)
            connection.commit()
        except IntegrityError:
            connection.rollback()

    def _is_next(self, connection: sa.Connection) -> bool:
        """Write the number of the epoch if the last one was smaller; nobody else can until the transaction ends."""
        epochs = epochs_table(self.writer.table)
        is_older = self._is_ours(epochs) & (epochs.c.epoch < self.epoch)
        return connection.execute(epochs.update().where(is_older).values(epoch=self.epoch)).rowcount > 0

    def _move(self, connection: sa.Connection, staged: list[tuple[str, int]]) -> None:
        import sqlalchemy as sa

        there = {match[0] for match in staged_tables(connection, self.writer.table)}
        target = _target(self.writer.table, self.writer.columns)
        if self.replace:
            connection.execute(target.delete())
        for name, count in staged:
            rows = staged_table(name, self.writer.table, self.writer.columns)
            found = connection.scalar(sa.select(sa.func.count()).select_from(rows)) if name in there else None
            if found != count:
                raise IllegalStateError(
                    f"{self.writer.database.call}: nothing was changed, since a task staged {count:,} rows in {name}, "
                    + ("which is no more" if found is None else f"and {found:,} are there")
                )
            connection.execute(_moving(connection.dialect.name, target, rows, self.writer.columns, self.on_conflict))

    def _forget(self, connection: sa.Connection) -> None:
        """Remove the row of a job that nobody will commit again; raises nothing."""
        from sqlalchemy.exc import SQLAlchemyError

        if not self.is_named:
            epochs = epochs_table(self.writer.table)
            with suppress(SQLAlchemyError):
                connection.execute(epochs.delete().where(self._is_ours(epochs)))
                connection.commit()

    def abort(self) -> None:
        """Remove what the tasks of this run have staged."""
        with suppress(Exception), self.writer.database.connected() as connection:
            swept(connection, self.writer.table, frozenset({self.writer.run}))


def _checked(receipt: Receipt, database: Database) -> tuple[str, int]:
    """Return the parts of a receipt. It may have been kept anywhere, so it is input, and leads to no other table."""
    match receipt:
        case [str(name), int(count)] if _STAGED.fullmatch(name):
            return name, count
    raise IllegalStateError(f"{database.call}: nothing was changed, since {receipt!r} is no receipt of rows")


def _target(table: Table, columns: Sequence[StagedColumn]) -> sa.Table:
    import sqlalchemy as sa

    each = [sa.Column(column.name, column.type) for column in columns]
    return sa.Table(table.name, sa.MetaData(), *each, schema=table.schema)


def _moving(dialect: str, target: sa.Table, rows: sa.Table, columns: Sequence[StagedColumn], on_conflict: str) -> Any:
    """Return the statement that inserts staged rows, in their order."""
    import sqlalchemy as sa

    names = [column.name for column in columns]
    keys = [column.name for column in columns if column.is_key]
    selected = sa.select(*[rows.c[name] for name in names]).order_by(rows.c[PLACE])
    if on_conflict == "fail":
        return target.insert().from_select(names, selected)
    if on_conflict == "update":
        # PostgreSQL updates no row twice in one statement.
        last = sa.select(sa.func.max(rows.c[PLACE])).group_by(*[rows.c[key] for key in keys])
        selected = selected.where(rows.c[PLACE].in_(last))
    else:
        selected = selected.where(sa.true())  # SQLite needs a WHERE to tell ON CONFLICT from the ON of a join.
    inserting = _upserting(dialect)(target).from_select(names, selected)
    others = [name for name in names if name not in keys]
    if on_conflict == "ignore" or not others:
        return inserting.on_conflict_do_nothing()
    return inserting.on_conflict_do_update(
        index_elements=keys, set_={name: inserting.excluded[name] for name in others}
    )


def _upserting(dialect: str) -> Any:
    from sqlalchemy.dialects import postgresql, sqlite

    return postgresql.insert if dialect == "postgresql" else sqlite.insert
