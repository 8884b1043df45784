"""The sink of `to_sql`, its target and its job: one transaction moves the staged rows into the table."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from dstream.connectors.base import Replaceable
from dstream.connectors.sql.databases import Database, StagedColumn
from dstream.connectors.sql.staging import (
    PLACE,
    STAGED,
    SqlWriter,
    Table,
    conflict,
    epochs_table,
    opened_table,
    run_name,
    staged_table,
    staged_tables,
    swept,
)
from dstream.errors import IllegalStateError, SinkError
from dstream.spi import Collections, Receipt

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["SqlJob", "SqlSink", "SqlTarget"]


@dataclass(slots=True)
class SqlJob:
    """Transaction of one epoch of a job on a table, in the driver.

    Attributes:
        name: the name of the job in the table of epochs.
        is_named: other processes may commit it too.
        replace: the rows replace all existing ones.
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
        """Return whether this epoch, or a later one, was committed."""
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
                # After the commit: until then the receipts name these tables, and a retry reads them.
                runs = frozenset(match[1] for name, _ in staged if (match := STAGED.fullmatch(name)))
                swept(connection, table, runs | {self.writer.run})
                self._forget(connection)

    def _register(self, connection: sa.Connection) -> None:
        """Insert a row for the job, which each commit locks."""
        from sqlalchemy.exc import IntegrityError

        row = {"target": str(self.writer.table), "job": self.name, "epoch": 0}
        try:
            # In a separate transaction: after an error PostgreSQL refuses everything else in a transaction.
            connection.execute(epochs_table(self.writer.table).insert(), row)
            connection.commit()
        except IntegrityError:
            connection.rollback()

    def _is_next(self, connection: sa.Connection) -> bool:
        """Write the number of the epoch if the last one was smaller; others cannot until the transaction ends."""
        epochs = epochs_table(self.writer.table)
        # One UPDATE that compares: it locks the row, where a SELECT before it would let two drivers pass.
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
            self._insert(connection, target, rows)

    def _insert(self, connection: sa.Connection, target: sa.Table, rows: sa.Table) -> None:
        from sqlalchemy.exc import IntegrityError

        writer = self.writer
        try:
            connection.execute(_moving(connection.dialect.name, target, rows, writer.columns, self.on_conflict))
        except IntegrityError as error:
            failed = conflict(writer.database, connection, error, rows, target, writer.columns)
            if failed is None or self.on_conflict != "fail":
                raise
            raise failed from error

    def _forget(self, connection: sa.Connection) -> None:
        """Remove the row of a job that will not be committed again; raises nothing."""
        from sqlalchemy.exc import SQLAlchemyError

        if not self.is_named:
            epochs = epochs_table(self.writer.table)
            with suppress(SQLAlchemyError):
                connection.execute(epochs.delete().where(self._is_ours(epochs)))
                connection.commit()

    def abort(self) -> None:
        """Remove the rows staged by this run's tasks."""
        with suppress(Exception), self.writer.database.connected() as connection:
            swept(connection, self.writer.table, frozenset({self.writer.run}))
            self._forget(connection)


def _checked(receipt: Receipt, database: Database) -> tuple[str, int]:
    """Return the parts of a receipt. It is untrusted, so it is validated, and refers to no other table."""
    match receipt:
        case [str(name), int(count)] if STAGED.fullmatch(name):
            return name, count
    raise IllegalStateError(f"{database.call}: nothing was changed, since {receipt!r} is no receipt of rows")


def _target(table: Table, columns: Sequence[StagedColumn]) -> sa.Table:
    import sqlalchemy as sa

    each = [sa.Column(column.name, column.stored_type) for column in columns]
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
        selected = selected.where(sa.true())  # SQLite needs a WHERE to distinguish ON CONFLICT from the ON of a join.
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


T = TypeVar("T")
OnConflict = Literal["fail", "update", "ignore"]


@dataclass(frozen=True, slots=True, repr=False)
class SqlSink(Replaceable, Generic[T]):
    """Result of `to_sql`.

    Attributes:
        columns: the columns to write; None: all.
        label: the reducer as the user wrote it.
        replace: the rows replace all earlier ones.
    """

    database: Database
    table: Table
    columns: tuple[str, ...] | None
    on_conflict: OnConflict
    label: str
    replace: bool = field(default=False, kw_only=True)
    job: str | None = field(default=None, kw_only=True)

    @property
    def collector(self) -> None:
        """None: the items are written as they are."""
        return

    def open(self, context: Collections) -> SqlTarget:
        """Inspect the table, and create the table of epochs if it does not exist."""
        with self.database.connected() as connection:
            columns = opened_table(self.database, connection, self.table, self.columns)
            # What the tasks of drivers have left that died a week ago or earlier.
            swept(connection, self.table)
        if self.on_conflict == "update" and not any(column.is_key for column in columns):
            raise SinkError(f"{self.label}: on_conflict='update' needs the primary key of the table among its columns")
        return SqlTarget(self, columns)

    def __repr__(self) -> str:
        return self.label


@dataclass(frozen=True, slots=True, repr=False)
class SqlTarget:
    """The table, opened in the driver."""

    sink: SqlSink[Any]
    columns: tuple[StagedColumn, ...]

    def begin(self, job: str | None, epoch: int = 1) -> SqlJob:
        """Begin an epoch."""
        sink, run = self.sink, run_name()
        writer = SqlWriter(sink.database, sink.table, self.columns, run, sink.columns is None)
        name = uuid.uuid4().hex if job is None else job
        return SqlJob(writer, name, job is not None, epoch, sink.on_conflict, sink.replace)

    def result(self) -> None:
        """Return None: the rows are in the table."""
