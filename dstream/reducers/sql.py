"""`to_sql`: items as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from dstream.arguments import checked_names
from dstream.connectors.base import checked_text
from dstream.connectors.sql.databases import database_of, schema_and_table
from dstream.connectors.sql.sinks import OnConflict, SqlSink
from dstream.connectors.sql.staging import Table
from dstream.errors import SinkError, UnsupportedError
from dstream.spi import Reducer

__all__ = ["to_sql"]


_UPSERTING = ("sqlite", "postgresql")


def to_sql(
    url: str,
    table: str,
    columns: Iterable[str] | None = None,
    on_conflict: OnConflict = "fail",
    *,
    job: str | None = None,
) -> Reducer[Any, None]:
    """Insert the items into a table of an SQL database, which has to exist.

    Items are mappings, dataclasses or named tuples, whose fields are called as the columns; a plain tuple or list has
    its values in the order of the columns. A value that its column does not take is an error that names the item: so is
    a moment without a zone for a column with one, to which the server would give its own zone, and the other way round.
    None is NULL in every column; the null of JSON is `sqlalchemy.JSON.NULL`.

    **Parallelism**: each partition that has items inserts them into a table of its own, called `dstream_...`, beside
    the target. Nothing is shuffled.
    **Guarantee**: the commit is one transaction, which moves all rows into the target and writes the number of the
    epoch into the table `dstream_epochs`: readers see all of a run or nothing, and a run that fails leaves nothing.
    Exactly once in jobs that publish again after a crash; see `dstream docs 0041` for what a crash leaves.
    **On re-run**: the rows are inserted again, unless `job` names the job or `on_conflict` settles it.

    Args:
        url: as for `sql_rows`. The user must be allowed to make tables.
        table: its name, behind a schema and a dot if it is not in the default one; `'"a.b"'` has a dot itself.
        columns: those that are written, for items that have others too, or fewer than the table; unset, all of them
            but those that the database computes.
        on_conflict: what is done with a row whose primary key exists, or is repeated: `"fail"`, which inserts nothing
            at all; `"update"` the row, where the last in encounter order wins; `"ignore"` it, also if it conflicts with
            another unique column, so the first one wins. SQLite and PostgreSQL have the last two.
        job: a job of this name is committed once, however often it runs.

    Raises:
        SetupError: SQLAlchemy or the driver is missing; `pip install 'dstream-spark[sql]'`.
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        UnsupportedError: another database than SQLite and PostgreSQL is to update or ignore.
        SinkError: when it runs: the database cannot be reached or refuses the rows, there is no such table or column,
            or an item does not fit.

    Example:
        >>> import pathlib, sqlite3, tempfile
        >>> from reducers import to_sql
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "shop.db"
        >>> connection = sqlite3.connect(path)
        >>> _ = connection.execute("CREATE TABLE sales (item TEXT PRIMARY KEY, price REAL)")
        >>> with connect(engine="local") as ctx:
        ...     ctx.stream([("tea", 2.5), ("cake", 4.0)]).collect(to_sql(f"sqlite:///{path}", "sales"))
        >>> list(connection.execute("SELECT * FROM sales"))
        [('tea', 2.5), ('cake', 4.0)]
        >>> connection.close()
    """
    database = database_of(url, "to_sql", SinkError, repr(checked_text(table, "table")))
    names = checked_names(columns, "columns")
    for name in names or ():
        checked_text(name, "a name in columns")
    if on_conflict not in get_args(OnConflict):
        raise ValueError(f"on_conflict must be 'fail', 'update' or 'ignore', not {on_conflict!r}")
    if on_conflict != "fail" and not database.url.startswith(_UPSERTING):
        raise UnsupportedError(f"{database.call}: on_conflict={on_conflict!r} is there for SQLite and PostgreSQL only")
    if job is not None:
        checked_text(job, "job")
    return SqlSink(database, Table(*schema_and_table(table)), names, on_conflict, database.call, job=job)
