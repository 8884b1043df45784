"""Databases as sources: `sql_rows`, `sql_changes`."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Mapping
from typing import Any, TypeVar, overload

from dstream.base.showing import shown
from dstream.connectors.sql.databases import database_of, is_numpy_scalar, python_scalar
from dstream.connectors.sql.rows import rows_of
from dstream.connectors.sql.sources import PartitionOn, Ranges, SqlChanges, SqlRows, SqlStart
from dstream.errors import SourceError
from dstream.spi.source import Source, StreamSource

__all__ = ["sql_changes", "sql_rows"]


T = TypeVar("T")


_MOST = 10_000


@overload
def sql_rows(
    url: str, query: str, params: Mapping[str, Any] | None = None, partition_on: PartitionOn | None = None
) -> Source[Any]: ...
@overload
def sql_rows(
    url: str,
    query: str,
    params: Mapping[str, Any] | None = None,
    partition_on: PartitionOn | None = None,
    *,
    kind: type[T],
) -> Source[T]: ...
def sql_rows(
    url: str,
    query: str,
    params: Mapping[str, Any] | None = None,
    partition_on: PartitionOn | None = None,
    kind: type[Any] | None = None,
) -> Source[Any]:
    """Read the rows of a query of an SQL database, as named tuples.

    Nothing is committed: a query that changes something changes nothing. The rows have the order of the database,
    so an order needs an ORDER BY; divided by `partition_on` they have none.

    A column with a name that a field of a named tuple cannot have, such as `count(*)`, `class` or `_id`, becomes
    `_0` by its position. A `TypedDict` as `kind` accepts columns of any name.

    A row with a value that Python cannot represent, such as a date of the year 10000, or that cannot be converted to a
    `kind`, is a bad record: `ignore`, `resolve` and `on_error` may follow the source, with SQLite and psycopg.

    **Parallelism**: one task; with `partition_on` the number in it, each with its own query.
    **Guarantee**: every row once, if the database is not changed meanwhile: each task sees the rows that exist when it
    reads. **On re-run**: the query is executed again.

    Args:
        url: as SQLAlchemy has it, such as `"sqlite:///shop.db"` or `"postgresql+psycopg://ada:secret@host/shop"`.
            A password `env:NAME` or `file:/path` is looked up by each process that connects.
        query: a SELECT; `:name` is a parameter.
        params: the values of the parameters.
        partition_on: (column, lower, upper, n): n tasks, each with the rows of one range of a column of the query. The
            bounds only divide the rows: the first task also reads smaller values and NULL, the last one larger values.
        kind: a dataclass, a named tuple or a `TypedDict` that each row becomes, by the names of its fields; as for
            `json_lines`, and a value of the driver that has a field's type is unchanged.

    Raises:
        SetupError: SQLAlchemy or the driver is missing; `pip install 'dstream-spark[sql]'`.
        TypeError: an argument is of another kind.
        ValueError: `url` names no database, a parameter has no value, or `partition_on` is invalid.
        SourceError: when it runs: the database cannot be reached or refuses the query, a name is repeated in the
            result or is ambiguous, or a row cannot be converted to a `kind`.

    Example:
        >>> import pathlib, sqlite3, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "shop.db"
        >>> with sqlite3.connect(path) as connection:
        ...     _ = connection.execute("CREATE TABLE sales (item TEXT, price REAL)")
        ...     _ = connection.executemany("INSERT INTO sales VALUES (?, ?)", [("tea", 2.5), ("cake", 4.0)])
        >>> connection.close()
        >>> with connect(engine="local") as ctx:
        ...     ctx.read(sql_rows(f"sqlite:///{path}", "SELECT * FROM sales WHERE price > :p", {"p": 3})).to_list()
        [Row(item='cake', price=4.0)]
    """
    _check_text(query, "query")
    database = database_of(url, "sql_rows", SourceError, shown(query))
    # With `partition_on` it becomes a part of another query, in which a semicolon would be an error.
    stripped = query.strip().rstrip(";").rstrip()
    # pandas and Spark accept the name of a table, too; a database would report a syntax error.
    if not re.search(r"[\s(]", stripped):
        raise ValueError(
            f"query must be a SELECT, and {stripped!r} reads as the name of a table: 'SELECT * FROM {stripped}'"
        )
    values = _checked_params(stripped, params)
    ranges = None if partition_on is None else _ranges(partition_on)
    return SqlRows(database, stripped, values, ranges, rows_of(kind))


def _check_text(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if not value.strip():
        raise ValueError(f"{name} must not be empty")


def _checked_params(query: str, params: Any) -> tuple[tuple[str, Any], ...]:
    """Return the values of the parameters of a query."""
    import sqlalchemy as sa

    if params is not None and not isinstance(params, Mapping):
        hint = f": kind={params.__qualname__} makes items of rows" if isinstance(params, type) else ""
        raise TypeError(f"params must be a mapping of the names in the query, not {type(params).__name__}{hint}")
    given = {name: python_scalar(value) for name, value in (params or {}).items()}
    named = set(sa.text(query).compile().params)
    for name in sorted(named - given.keys()):
        raise ValueError(rf"params has no {name!r}, which the query names; \:{name} is no parameter")
    for name in given.keys() - named:
        raise ValueError(f"params has {name!r}, which the query does not name")
    for name, value in given.items():
        if is_numpy_scalar(value):
            raise TypeError(
                f"params has {name!r}, and databases have no type for {shown(value)}: give a value of Python"
            )
    return tuple(given.items())


def _ranges(given: Any) -> Ranges:
    if not isinstance(given, tuple | list) or len(given) != 4:
        raise TypeError(f"partition_on must be (column, lower, upper, n), not {shown(given)}")
    column, lower, upper, count = given
    _check_text(column, "the column of partition_on")
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"the n of partition_on must be an int, not {type(count).__name__}")
    if not 1 <= count <= _MOST:
        raise ValueError(f"the n of partition_on must be between 1 and {_MOST:,}, not {count:,}")
    if type(lower) is not type(upper) or not isinstance(lower, _ON_A_LINE) or isinstance(lower, bool):
        raise TypeError(
            "the bounds of partition_on must be two numbers, dates or datetimes of one type, "
            f"not {shown(lower)} and {shown(upper)}"
        )
    if not lower < upper:
        raise ValueError(f"partition_on must have a lower bound below the upper one, not {lower} and {upper}")
    return Ranges(column, tuple(_border(lower, upper, part, count) for part in range(1, count)))


_ON_A_LINE = (int, float, decimal.Decimal, datetime.date)


def _border(lower: Any, upper: Any, part: int, count: int) -> Any:
    step = (upper - lower) * part
    # Whole numbers and durations are divided exactly: a float loses digits beyond 2**53.
    return lower + (step // count if isinstance(step, int | datetime.timedelta) else step / count)


@overload
def sql_changes(
    url: str, table: str, key: str | None = None, *, order_by: str, start: SqlStart = "oldest"
) -> StreamSource[Any]: ...
@overload
def sql_changes(
    url: str, table: str, key: str | None = None, *, order_by: str, start: SqlStart = "oldest", kind: type[T]
) -> StreamSource[T]: ...
def sql_changes(
    url: str,
    table: str,
    key: str | None = None,
    *,
    order_by: str,
    start: SqlStart = "oldest",
    kind: type[Any] | None = None,
) -> StreamSource[Any]:
    """Read the rows of a table, and those that are added later on, in the order of a column whose values grow.

    The column is queried for values larger than before, so it should have an index. It may contain numbers, strings,
    dates or times. If several rows may have one value, such as a time, `key` distinguishes them. A row whose value is
    raised, such as a time of change, is read again.

    **Parallelism**: one task reads a range of rows.
    **Guarantee**: exactly once for rows that become visible in the order of the column and are not changed. A row with
    a smaller value than an already read row is never seen: also a row of a transaction that took its number early and
    commits late. Rows without a value are skipped. A table that is dropped and created again under its name counts as
    the same table: its rows are read from the last value on.
    **On re-run**: a new job begins at `start`; one that resumes, where it was.

    Args:
        url: as for `sql_rows`.
        table: its name, after a schema and a dot if it is not in the default schema; quoted if it has a dot: `'"a.b"'`.
        key: a column that differs between rows with equal `order_by`; unset, there are no such rows.
        order_by: the column whose values grow.
        start: `"oldest"`, all rows; `"current"`, those that are inserted from now on; of a column of moments a
            datetime, with a time zone if they have one: of the rows that exist at the beginning those that are not
                older.
        kind: as for `sql_rows`.

    Raises:
        SetupError: SQLAlchemy or the driver is missing; `pip install 'dstream-spark[sql]'`.
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        SourceError: when it runs: the database cannot be reached, there is no such table or column, the column has
            values of another kind, or no moments that can be compared with `start`.

    Example:
        >>> import pathlib, sqlite3, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "shop.db"
        >>> connection = sqlite3.connect(path)
        >>> _ = connection.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, item TEXT)")
        >>> _ = connection.execute("INSERT INTO sales (item) VALUES ('tea'), ('cake')")
        >>> connection.commit()
        >>> connection.close()
        >>> source = sql_changes(f"sqlite:///{path}", "sales", order_by="id")
        >>> begin = source.begin()
        >>> [row for row in source.split("rows", begin["rows"], source.reach(begin)["rows"]).read()]
        [Row(id=1, item='tea'), Row(id=2, item='cake')]
    """
    for name, value in ("table", table), ("order_by", order_by), *([] if key is None else [("key", key)]):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a str, not {type(value).__name__}")
        if not value:
            raise ValueError(f"{name} must not be empty")
    if not isinstance(start, str | datetime.datetime):
        raise TypeError(f"start must be 'oldest', 'current' or a datetime, not {type(start).__name__}")
    if isinstance(start, str) and start not in ("oldest", "current"):
        raise ValueError(f"start must be 'oldest', 'current' or a datetime, not {start!r}")
    database = database_of(url, "sql_changes", SourceError, repr(table), f"order_by={order_by!r}")
    return SqlChanges(database, table, (order_by,) if key is None else (order_by, key), start, rows_of(kind))
