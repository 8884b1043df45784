"""`sql_changes`: rows of a table that grows, found by a column whose values grow."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, overload

from dstream.errors import SourceError
from dstream.spi.stream_source import StreamSource
from dstream.values.blaming import shown
from dstream.values.databases import Database, database_of, schema_and_table
from sources.memory import NamesOfStreams
from sources.sql_queries import SqlSplit
from sources.sql_records import Rows, rows_of

__all__ = ["SqlChanges", "sql_changes"]

T = TypeVar("T")

SqlStart: TypeAlias = 'Literal["oldest", "current"] | datetime.datetime'
ONLY = "rows"
"""The name of the one partition."""


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

    The column is asked for what is larger than before, so give it an index. It may hold numbers, texts, dates or times.
    Where several rows may have one value, as a time, `key` tells them apart. A row whose value is raised, as a time of
    change is, comes again.

    **Parallelism**: one task reads a range of rows.
    **Guarantee**: exactly once for rows that become visible in the order of the column and stay as they are. A row that
    gets a smaller value than one that was read is never seen: also that of a transaction which took its number early
    and commits late. Rows without a value are left out. A table that is dropped and made anew under its name counts as
    the same one: its rows are given from the last value that was read on.
    **On re-run**: a new job begins at `start`; one that goes on, where it stood.

    Args:
        url: as for `sql_rows`.
        table: its name, behind a schema and a dot if it is not in the default one; `'"a.b"'` has a dot itself.
        key: a column that is different for rows that are equal in `order_by`; unset, there are none.
        order_by: the column whose values grow.
        start: `"oldest"`, all rows; `"current"`, those that come from now on; of a column of moments a datetime, with a
            time zone if they have one: of the rows that are there at the beginning those that are not older.
        kind: as for `sql_rows`.

    Raises:
        SetupError: SQLAlchemy or the driver is missing; `pip install 'dstream-spark[sql]'`.
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices.
        SourceError: when it runs: the database cannot be reached, there is no such table or column, the column holds
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


@dataclass(frozen=True, slots=True, repr=False)
class SqlChanges(NamesOfStreams):
    """What `sql_changes` returns. An offset has the values of the last row that was read, or none.

    Attributes:
        columns: that order the rows.
    """

    database: Database
    table: str
    columns: tuple[str, ...]
    start: SqlStart
    rows: Rows

    @property
    def label(self) -> str:
        """The call."""
        return self.database.call

    @property
    def identity(self) -> str:
        """The table and the columns whose values offsets are."""
        return repr((self.table, *self.columns))

    def begin(self) -> Mapping[str, list[Any]]:
        """Return where a new job begins."""
        if self.start == "oldest":
            return {ONLY: []}
        last = self._last([], None)
        return {ONLY: self._before(self.start, last) if isinstance(self.start, datetime.datetime) else last}

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, list[Any]]:
        """Return the place of the last row."""
        return {ONLY: self._last(self._checked(offsets.get(ONLY)), most)}

    def _before(self, moment: datetime.datetime, last: list[Any]) -> list[Any]:
        """Ask for the place of the last row that is older than a moment; none is, if there are no rows."""
        newest = self._value(last[0]) if last else moment
        if not isinstance(newest, datetime.datetime) or (newest.tzinfo is None) != (moment.tzinfo is None):
            wanted = "with" if moment.tzinfo is not None else "without"
            raise SourceError(
                f"{self.label}: start={moment.isoformat(' ')} needs a column of moments {wanted} a time zone, and "
                f"{self.columns[0]} holds {shown(newest)}"
            )
        return self._last_where(f"{self._quoted(self.columns[0])} < :moment", {"moment": moment}, None) or []

    def _last(self, offset: list[Any], most: int | None) -> list[Any]:
        """Ask for the last row behind an offset, or for the `most`-th one."""
        return offset if most == 0 else self._last_where(*self._where(offset, ">", "start"), most) or offset

    def _last_where(self, where: str, values: Mapping[str, Any], most: int | None) -> list[Any] | None:
        import sqlalchemy as sa

        names = ", ".join(map(self._quoted, self.columns))
        rows = f"SELECT {names} FROM {self._table()} WHERE {where}"
        if most is not None:
            rows = f"SELECT * FROM ({rows} ORDER BY {names} LIMIT {int(most)}) AS dstream_rows"
        last = f"{rows} ORDER BY {', '.join(f'{self._quoted(each)} DESC' for each in self.columns)} LIMIT 1"
        with self.database.connected() as connection, self.database.refusals():
            found = connection.execute(sa.text(last), values).first()
        return None if found is None else [self._plain(value) for value in found]

    def _plain(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        if isinstance(value, int | str | float) and not isinstance(value, bool):
            return value
        for name, (kind, write, _) in _KINDS.items():
            if type(value) is kind:
                return {name: write(value)}
        raise SourceError(f"{self.label}: {self.columns} must hold numbers, texts, dates or times, not {shown(value)}")

    def _checked(self, offset: Any) -> list[Any]:
        if offset is None or offset == []:
            return []
        if not isinstance(offset, list) or len(offset) != len(self.columns):
            raise SourceError(f"{self.label}: {offset!r} is no offset of a row")
        return offset

    def _where(self, offset: list[Any], comparison: str, name: str) -> tuple[str, dict[str, Any]]:
        """Return the condition that rows are behind an offset, or up to it; there is none without one."""
        first, *others = map(self._quoted, self.columns)
        if not offset:
            return f"{first} IS NOT NULL", {}
        values = {f"{name}_{place}": self._value(value) for place, value in enumerate(offset)}
        if not others:
            return f"{first} {comparison} :{name}_0", values
        strict = comparison[0]
        tie = f"({first} = :{name}_0 AND {others[0]} {comparison} :{name}_1)"
        return f"({first} {strict} :{name}_0 OR {tie})", values

    def _value(self, plain: Any) -> Any:
        if not isinstance(plain, dict):
            return plain
        try:
            [(name, text)] = plain.items()
            return _KINDS[name][2](text)
        except (KeyError, ValueError, TypeError, ArithmeticError) as error:
            raise SourceError(f"{self.label}: {plain!r} is no value of an offset") from error

    def split(self, partition: str, start: Any, stop: Any) -> SqlSplit:
        """Return the rows behind one place, up to another one."""
        if partition != ONLY:
            raise SourceError(f"{self.label}: there is no partition {partition!r}")
        behind, after = self._where(self._checked(start), ">", "start")
        up_to, before = self._where(self._checked(stop), "<=", "stop")
        if not before:
            up_to = "1 = 0"  # Nothing was there.
        names = ", ".join(map(self._quoted, self.columns))
        query = f"SELECT * FROM {self._table()} WHERE {behind} AND {up_to} ORDER BY {names}"
        return SqlSplit(self.database, query, tuple({**after, **before}.items()), self.rows)

    def _table(self) -> str:
        return ".".join(self._quoted(part) for part in schema_and_table(self.table) if part)

    def _quoted(self, name: str) -> str:
        import sqlalchemy as sa

        # `text` takes a colon for a parameter.
        return sa.make_url(self.database.url).get_dialect()().identifier_preparer.quote(name).replace(":", r"\:")

    def __repr__(self) -> str:
        return self.label


_KINDS: dict[str, tuple[type, Any, Any]] = {
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
}
