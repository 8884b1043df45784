"""Rows of a query in parallel ranges, rows of a growing table, and the items made of them."""

from __future__ import annotations

import datetime
import decimal
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from dstream.base.showing import shown
from dstream.connectors.memory import NamesOfStreams
from dstream.connectors.sql.databases import Database, schema_and_table
from dstream.connectors.sql.rows import LostValue, Maker, Rows, keep_lost, lost_in, refuse_months
from dstream.errors import SourceError
from dstream.schema.text_forms import TEXT_FORMS
from dstream.spi import Misread
from dstream.values import BadRecord

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["SqlChanges", "SqlRows", "SqlSplit"]


T = TypeVar("T")

PartitionOn: TypeAlias = tuple[str, Any, Any, int]
ROWS = 2_000
"""The number of rows that are fetched at a time."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges into which a column is cut.

    Attributes:
        borders: the boundaries between the parts, one fewer than parts.
    """

    column: str
    borders: tuple[Any, ...]


@dataclass(frozen=True, slots=True, repr=False)
class SqlRows(NamesOfStreams):
    """Result of `sql_rows`."""

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
        """Return whether the rows have an order, which only a single query has."""
        return self.ranges is None

    def count_splits(self, parallelism: int) -> int:
        """Return the number of queries."""
        return 1 if self.ranges is None else len(self.ranges.borders) + 1

    def splits(self, parallelism: int) -> list[SqlSplit]:
        """Divide the query by its ranges."""
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
        # NULL is on no side of a border, so its rows belong to the first part.
        if start is None:
            where = f"{where} OR {name} IS NULL"
        # On a line of its own, since the query may end in a comment.
        query = f"SELECT * FROM (\n{self.query}\n) AS dstream_rows WHERE {where}"
        return SqlSplit(self.database, query, (*self.params, *asked.items()), self.rows, column)

    def __repr__(self) -> str:
        return self.database.call


@dataclass(frozen=True, slots=True)
class SqlSplit:
    """The split that one query reads.

    Attributes:
        divided_by: the column of `partition_on`, which the rows must have: SQLite interprets an unknown name as a
            string, with which all rows would be in one part.
    """

    database: Database
    query: str
    params: tuple[tuple[str, Any], ...] = field(repr=False)
    rows: Rows
    divided_by: str | None = None

    def read(self) -> Iterator[Any]:
        """Run the query, and yield the rows."""
        return itertools.chain.from_iterable(self.read_blocks())

    def read_blocks(self) -> Iterator[list[Any]]:
        """Run the query, and yield the rows in lists, as they arrive from the network."""
        database = self.database
        with database.connected() as connection, closing(self._result(connection, ROWS)) as result:
            columns = tuple(result.keys())
            self._check_is_divided(columns)
            make = self.rows.maker(columns, database.call)
            for before, fetched in self._fetched(result):
                yield make(fetched, before)

    def read_past(self, misread: Callable[[Misread], Iterable[Any]]) -> Iterator[Any]:
        """Yield the items, with the result of `misread` in place of a row with a value that Python cannot represent."""
        database, lost = self.database, list[LostValue]()
        with database.connected() as connection, closing(self._result(connection, ROWS, lost)) as result:
            columns = tuple(result.keys())
            self._check_is_divided(columns)
            make = self.rows.maker(columns, database.call)
            lost.clear()
            for before, fetched in self._fetched(result):
                yield from self._past(columns, fetched, before, make, misread, has_lost=bool(lost))
                lost.clear()

    def _fetched(self, result: sa.CursorResult[Any]) -> Iterator[tuple[int, Sequence[Any]]]:
        """Yield the rows as they arrive, with the number of earlier rows."""
        before = 0
        while True:
            try:
                fetched = result.fetchmany(ROWS)
            except Exception as error:
                with self.database.refusals():
                    raise self._unread(before, error) or error from error
            if not fetched:
                return
            yield before, fetched
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
        # Databases fold the case of names without quotes.
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
            # Without a cursor of the server, psycopg fetches the complete result into memory.
            options = {"stream_results": True, "max_row_buffer": most}
            result = connection.execute(sa.text(self.query), dict(self.params), execution_options=options)
        if not result.returns_rows:
            raise SourceError(f"{database.call}: the query gives no rows, and what it changed was taken back")
        return result

    def _unread(self, before: int, error: Exception) -> SourceError | None:
        """Return the error of a row with a value that Python does not have; None if the failure is another one.

        Drivers do not report which row it is (psycopg 3.3, sqlite3), so the rows are fetched again, one at a time.
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
"""The message of sqlite3 about a string that cannot be decoded."""


SqlStart: TypeAlias = 'Literal["oldest", "current"] | datetime.datetime'
ONLY = "rows"
"""The name of the one partition."""


@dataclass(frozen=True, slots=True, repr=False)
class SqlChanges(NamesOfStreams):
    """Result of `sql_changes`. An offset has the values of the last row that was read, or none.

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
        """Return the offset of the last row."""
        return {ONLY: self._last(self._checked(offsets.get(ONLY)), most)}

    def _before(self, moment: datetime.datetime, last: list[Any]) -> list[Any]:
        """Query the offset of the last row that is older than a moment; empty if there are no such rows."""
        newest = self._value(last[0]) if last else moment
        if not isinstance(newest, datetime.datetime) or (newest.tzinfo is None) != (moment.tzinfo is None):
            wanted = "with" if moment.tzinfo is not None else "without"
            raise SourceError(
                f"{self.label}: start={moment.isoformat(' ')} needs a column of moments {wanted} a time zone, and "
                f"{self.columns[0]} holds {shown(newest)}"
            )
        return self._last_where(f"{self._quoted(self.columns[0])} < :moment", {"moment": moment}, None) or []

    def _last(self, offset: list[Any], most: int | None) -> list[Any]:
        """Query the last row after an offset, or the `most`-th one."""
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
        """Return the condition that rows are after an offset, or up to it; no condition without an offset."""
        first, *others = map(self._quoted, self.columns)
        if not offset:
            # NULL has no position in an order, so no offset would be after such a row.
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
        """Return the rows after one offset, up to another one."""
        if partition != ONLY:
            raise SourceError(f"{self.label}: there is no partition {partition!r}")
        behind, after = self._where(self._checked(start), ">", "start")
        up_to, before = self._where(self._checked(stop), "<=", "stop")
        if not before:
            up_to = "1 = 0"  # The table had no rows.
        names = ", ".join(map(self._quoted, self.columns))
        query = f"SELECT * FROM {self._table()} WHERE {behind} AND {up_to} ORDER BY {names}"
        return SqlSplit(self.database, query, tuple({**after, **before}.items()), self.rows)

    def _table(self) -> str:
        return ".".join(self._quoted(part) for part in schema_and_table(self.table) if part)

    def _quoted(self, name: str) -> str:
        import sqlalchemy as sa

        # `text` interprets a colon as a parameter.
        return sa.make_url(self.database.url).get_dialect()().identifier_preparer.quote(name).replace(":", r"\:")

    def __repr__(self) -> str:
        return self.label


_KINDS: dict[str, tuple[type, Any, Any]] = {
    kind.__name__.lower(): (kind, TEXT_FORMS[kind].write, TEXT_FORMS[kind].parse)
    for kind in (datetime.datetime, datetime.date, decimal.Decimal)
}
