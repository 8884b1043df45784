"""`sql_rows`: what a query gives, read by several tasks if they are told how to divide it."""

from __future__ import annotations

import datetime
import decimal
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from dstream.errors import SourceError
from dstream.spi import Misread
from dstream.spi.source import Source
from dstream.values import BadRecord
from dstream.values.blaming import shown
from dstream.values.databases import Database, database_of
from sources.memory import NamesOfStreams
from sources.sql_records import Maker, Rows, rows_of
from sources.sql_values import LostValue, keep_lost, lost_in, refuse_months

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["SqlRows", "SqlSplit", "sql_rows"]

T = TypeVar("T")

PartitionOn: TypeAlias = tuple[str, Any, Any, int]
ROWS = 2_000
"""So many rows are fetched at a time."""
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
    """Read the rows that a query of an SQL database gives, as named tuples.

    Nothing is committed: a query that changes something changes nothing. The rows come in the order of the database,
    so an order needs an ORDER BY; divided by `partition_on` they have none.

    A column with a name that no field of a named tuple has, such as `count(*)`, `class` or `_id`, becomes `_0` by its
    position. A `TypedDict` as `kind` takes columns of any name.

    A row with a value that no object of Python can hold, such as a date of the year 10000, or that does not become a
    `kind`, is a bad record: `ignore`, `resolve` and `on_error` may stand behind the source, with SQLite and psycopg.

    **Parallelism**: one task; with `partition_on` as many as it says, each with its own query.
    **Guarantee**: every row once, if the database stays as it is meanwhile: each task sees what is there when it reads.
    **On re-run**: the query is asked again.

    Args:
        url: as SQLAlchemy has it, such as `"sqlite:///shop.db"` or `"postgresql+psycopg://ada:secret@host/shop"`.
            A password `env:NAME` or `file:/path` is looked up by each process that connects.
        query: a SELECT; `:name` stands for a parameter.
        params: the values of the parameters.
        partition_on: (column, lower, upper, n): n tasks, each with the rows of one stretch of a column that the query
            gives. The bounds say where to cut, and leave no row out: the first task has what is below and what is
            NULL, the last one what is above.
        kind: a dataclass, a named tuple or a `TypedDict` that each row becomes, by the names of its fields; as for
            `json_lines`, and what the driver gives of a field's type is taken as it is.

    Raises:
        SetupError: SQLAlchemy or the driver is missing; `pip install 'dstream-spark[sql]'`.
        TypeError: an argument is of another kind.
        ValueError: `url` names no database, a parameter has no value, or `partition_on` is none.
        SourceError: when it runs: the database cannot be reached or refuses the query, a name stands twice in the
            result or means two fields, or a row does not become a `kind`.

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
    stripped = query.strip().rstrip(";").rstrip()
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
    """Return the values of the parameters that stand in a query."""
    import sqlalchemy as sa

    if params is not None and not isinstance(params, Mapping):
        hint = f": kind={params.__qualname__} makes items of rows" if isinstance(params, type) else ""
        raise TypeError(f"params must be a mapping of the names in the query, not {type(params).__name__}{hint}")
    given = dict(params or {})
    named = set(sa.text(query).compile().params)
    for name in sorted(named - given.keys()):
        raise ValueError(rf"params has no {name!r}, which the query names; \:{name} is no parameter")
    for name in given.keys() - named:
        raise ValueError(f"params has {name!r}, which the query does not name")
    return tuple(given.items())


@dataclass(frozen=True, slots=True)
class Ranges:
    """How a column is cut.

    Attributes:
        borders: between the parts, one fewer than there are.
    """

    column: str
    borders: tuple[Any, ...]


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
    return lower + (step // count if isinstance(step, int | datetime.timedelta) else step / count)


@dataclass(frozen=True, slots=True, repr=False)
class SqlRows(NamesOfStreams):
    """What `sql_rows` returns."""

    database: Database
    query: str
    params: tuple[tuple[str, Any], ...]
    ranges: Ranges | None
    rows: Rows

    bounded = True
    in_caller = False
    on_bad = "fail"
    into = None

    @property
    def ordered(self) -> bool:
        """Whether the rows have an order: that of the one query."""
        return self.ranges is None

    def count_splits(self, parallelism: int) -> int:
        """Say how many queries there will be."""
        return 1 if self.ranges is None else len(self.ranges.borders) + 1

    def splits(self, parallelism: int) -> list[SqlSplit]:
        """Divide the query, as it was told."""
        if self.ranges is None or not self.ranges.borders:
            return [SqlSplit(self.database, self.query, self.params, self.rows)]
        ends = [None, *self.ranges.borders, None]
        return [self._part(self.ranges.column, start, stop) for start, stop in itertools.pairwise(ends)]

    def _part(self, column: str, start: Any, stop: Any) -> SqlSplit:
        import sqlalchemy as sa

        name = sa.make_url(self.database.url).get_dialect()().identifier_preparer.quote(column).replace(":", r"\:")
        within = {"dstream_start": start, "dstream_stop": stop}
        conditions = {"dstream_start": f"{name} >= :dstream_start", "dstream_stop": f"{name} < :dstream_stop"}
        asked = {key: value for key, value in within.items() if value is not None}
        where = " AND ".join(conditions[key] for key in asked)
        if start is None:
            where = f"{where} OR {name} IS NULL"
        # On a line of its own, since the query may end in a comment.
        query = f"SELECT * FROM (\n{self.query}\n) AS dstream_rows WHERE {where}"
        return SqlSplit(self.database, query, (*self.params, *asked.items()), self.rows, column)

    def __repr__(self) -> str:
        return self.database.call


@dataclass(frozen=True, slots=True)
class SqlSplit:
    """One query.

    Attributes:
        divided_by: the column of `partition_on`, which the rows must have: SQLite takes a name that it does not know
            for a text, with which all rows would be in one part.
    """

    database: Database
    query: str
    params: tuple[tuple[str, Any], ...] = field(repr=False)
    rows: Rows
    divided_by: str | None = None

    def read(self) -> Iterator[Any]:
        """Ask, and give the rows."""
        return itertools.chain.from_iterable(self.read_blocks())

    def read_blocks(self) -> Iterator[list[Any]]:
        """Ask, and give the rows in lists, as they come over the network."""
        database, before = self.database, 0
        with database.connected() as connection, closing(self._result(connection, ROWS)) as result:
            columns = tuple(result.keys())
            self._check_is_divided(columns)
            make = self.rows.maker(columns, database.call)
            while True:
                try:
                    fetched = result.fetchmany(ROWS)
                except Exception as error:
                    with database.refusals():
                        raise self._unread(before, error) or error from error
                if not fetched:
                    return
                yield make(fetched, before)
                before += len(fetched)

    def read_past(self, misread: Callable[[Misread], Iterable[Any]]) -> Iterator[Any]:
        """Give the items, and in the place of a row with a value that Python does not have what `misread` gives."""
        database, before, lost = self.database, 0, list[LostValue]()
        with database.connected() as connection, closing(self._result(connection, ROWS, lost)) as result:
            columns = tuple(result.keys())
            self._check_is_divided(columns)
            make = self.rows.maker(columns, database.call)
            while True:
                lost.clear()
                try:
                    fetched = result.fetchmany(ROWS)
                except Exception as error:
                    with database.refusals():
                        raise self._unread(before, error) or error from error
                if not fetched:
                    return
                yield from self._past(columns, fetched, before, make, misread, has_lost=bool(lost))
                before += len(fetched)

    def _past(
        self,
        columns: tuple[str, ...],
        fetched: Sequence[Any],
        before: int,
        make: Maker,
        misread: Callable[[Misread], Iterable[Any]],
        *,
        has_lost: bool,
    ) -> Iterable[Any]:
        if not has_lost:
            try:
                return make(fetched, before)
            except SourceError:  # A row is no `kind`: each is made alone.
                pass
        items: list[Any] = []
        for number, row in enumerate(fetched, before + 1):
            try:
                if (found := lost_in(columns, row)) is not None:
                    raise self._without_object(number, *found)
                items += make([row], number - 1)
            except SourceError as error:
                items += misread(self._misread(columns, row, number, error))
        return items

    def _without_object(self, number: int, column: str, value: LostValue) -> SourceError:
        problem = f"column {column!r}, {value}: {value.problem}"
        found = SourceError(f"{self.database.call}, row {number:,}: a value is none of Python: {problem}")
        found.__cause__ = value.problem
        return found

    def _misread(self, columns: tuple[str, ...], row: Any, number: int, error: SourceError) -> Misread:
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        text = repr(dict(zip(columns, row, strict=True)))
        return Misread(cause, lambda: BadRecord(self.database.call, number, text), lambda: error)

    def _check_is_divided(self, columns: tuple[str, ...]) -> None:
        if (missing := self.divided_by) is not None and missing.lower() not in map(str.lower, columns):
            raise SourceError(
                f"{self.database.call}: the query gives no column {missing!r} for partition_on, but "
                f"{', '.join(columns)}; name it as the query does, without its table"
            )

    def _result(
        self, connection: sa.Connection, most: int, lost: list[LostValue] | None = None
    ) -> sa.CursorResult[Any]:
        import sqlalchemy as sa

        database = self.database
        with database.refusals():
            refuse_months(connection) if lost is None else keep_lost(connection, lost)
            options = {"stream_results": True, "max_row_buffer": most}
            result = connection.execute(sa.text(self.query), dict(self.params), execution_options=options)
        if not result.returns_rows:
            raise SourceError(f"{database.call}: the query gives no rows, and what it changed was taken back")
        return result

    def _unread(self, before: int, error: Exception) -> SourceError | None:
        """Return what to say of a row with a value that Python does not have; None if the failure is another one.

        Drivers do not say which row it is (psycopg 3.3, sqlite3), so they are asked again, for one row at a time.
        """
        from sqlalchemy.exc import DataError, DBAPIError

        if not isinstance(error, DataError) and _NO_TEXT not in str(error):
            return None
        number = before
        connected = self.database.connected
        with suppress(DBAPIError), connected() as connection, closing(self._result(connection, 1)) as result:
            for _ in range(0, before, ROWS):
                result.fetchmany(ROWS)
            while result.fetchone() is not None:
                number += 1
        words = self.database.words(error)
        return SourceError(f"{self.database.call}, row {number + 1:,}: a value is none of Python: {words}")


_NO_TEXT = "Could not decode to UTF-8"
"""How sqlite3 says that a text is none."""
