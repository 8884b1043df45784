"""What tasks do for `to_sql`: each fills a table that nobody reads. `sql_job` moves the rows from there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from more_itertools import chunked

from dstream.spi import Receipt
from dstream.values.databases import Database
from reducers.sql_tables import PLACE, Table, staged_table
from reducers.sql_values import StagedColumn, row_of, unfit

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["SqlWriter"]

_BATCH = 1_000


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
