"""What `to_sql` says of a row whose key is there already, or comes twice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dstream.errors import SinkError
from dstream.values.blaming import shown
from dstream.values.databases import Database
from reducers.sql_tables import PLACE
from reducers.sql_values import StagedColumn

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["conflict"]

_UNIQUE = "SQLITE_CONSTRAINT_UNIQUE"
_REPEATED = {"23505", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID", _UNIQUE}
"""How PostgreSQL and SQLite call a value that may be there once."""


def conflict(
    database: Database,
    connection: sa.Connection,
    error: Any,
    rows: sa.Table,
    target: sa.Table,
    columns: Sequence[StagedColumn],
) -> SinkError | None:
    """Return what to say of rows that were refused for a value that may be there once; None: it was something else.

    Args:
        database: names the call.
        connection: the transaction in which they were refused.
        error: that of SQLAlchemy.
        rows: the staged ones.
        target: where they should go.
        columns: those that are written.
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
    """Say which key is there already, or comes twice."""
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
