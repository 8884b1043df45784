"""`Database`: an SQL database by its URL, and the check of values against its columns.

A password, or a reference that each process resolves when it connects, is only in the URL. All displayed text,
including errors of drivers, is filtered by `dstream.base.urls`.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import numbers
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from dstream.base.environment import pip_install
from dstream.base.showing import shown
from dstream.base.threads import contextmanager
from dstream.base.urls import resolved_url, scrub, shown_url, without_secrets
from dstream.connectors.sql.rows import unions_of_rows
from dstream.errors import SetupError, SinkError, SinkUnavailableError, SourceError, SourceUnavailableError
from dstream.failures.attribution import failed_on
from dstream.schema.encoders import NotJsonError, UnionField, plain
from dstream.schema.text_forms import TEXT_FORMS
from dstream.values.fields import field_names, name_of

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = [
    "Database",
    "StagedColumn",
    "database_of",
    "is_numpy_scalar",
    "python_scalar",
    "python_type",
    "row_of",
    "schema_and_table",
    "unfit",
]


_LONGEST = 500
_PATIENCE = 60
"""Seconds for which a writer waits while others write into the same file of SQLite, whose own limit is 5."""


def schema_and_table(text: str) -> tuple[str | None, str]:
    """Divide the name of a table at its last dot; a part that contains a dot is quoted, as in `"a.b"`."""
    found = re.fullmatch(rf"(?:({_PART})\.)?({_PART})", text)
    schema, name = (found[1], found[2]) if found else text.rpartition(".")[::2]
    return _unquoted(schema) if schema else None, _unquoted(name)


_PART = r'"(?:[^"]|"")+"|[^".]+'


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if len(part) > 2 and part[0] == part[-1] == '"' else part


@dataclass(frozen=True, slots=True, repr=False)
class Database:
    """A database, as a value that travels.

    Attributes:
        url: with its password, or a reference to it.
        failure: makes the error of a refusal of the database.
        call: the call that named it, for messages.
    """

    url: str
    failure: type[SourceError] | type[SinkError]
    call: str

    @contextmanager
    def connected(self) -> Iterator[sa.Connection]:
        """Connect for the time of a block, without a pool: tasks are many, and do not last."""
        import sqlalchemy as sa
        from sqlalchemy.pool import NullPool

        with self.refusals(is_connecting=True):
            self._check_file()
            patience = {"timeout": _PATIENCE} if self.url.startswith("sqlite") and "timeout=" not in self.url else {}
            url = resolved_url(self.url)
            connection = sa.create_engine(url, poolclass=NullPool, connect_args=patience).connect()
        try:
            yield connection
        finally:
            # The server may be lost, which must hide no failure before.
            with _ignored():
                connection.close()

    def _check_file(self) -> None:
        """Refuse a missing file: SQLite creates an empty one."""
        import sqlalchemy as sa

        path = sa.make_url(self.url).database
        if self.url.startswith("sqlite") and path and not path.startswith("file:") and not os.path.exists(path):
            raise self.failure(f"{self.call}: there is no file {path}")

    @contextmanager
    def refusals(self, is_connecting: bool = False) -> Iterator[None]:
        """Turn refusals of the database or its driver into an error that names the call.

        It is the error of an unavailable database if a retry may help. The block must not call a user's function.
        """
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except SQLAlchemyError as error:
            scrub(error, self.url)
            kind = _UNAVAILABLE[self.failure] if _may_pass(error, is_connecting) else self.failure
            raise kind(f"{self.call}: {self.words(error)}") from error

    def words(self, error: Any) -> str:
        """Return the message of a database, in one line."""
        original = getattr(error, "orig", None) or error
        scrub(original, self.url)
        words = without_secrets(" ".join(str(original).split())) or type(original).__name__
        words = words if len(words) <= _LONGEST else words[:_LONGEST] + "..."
        cut = "the connection was cut: " if getattr(error, "connection_invalidated", False) else ""
        return f"{cut}{words}{_LOCKED if words == 'database is locked' else ''}"

    def __repr__(self) -> str:
        return repr(shown_url(self.url))


_UNAVAILABLE: dict[type[SourceError] | type[SinkError], type[SourceError] | type[SinkError]] = {
    SourceError: SourceUnavailableError,
    SinkError: SinkUnavailableError,
}


def _may_pass(error: Any, is_connecting: bool) -> bool:
    """Return whether a failure is one of now: a connection was cut, or none can be made, or two writers met."""
    from sqlalchemy.exc import OperationalError

    state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    is_refused = is_connecting and isinstance(error, OperationalError)  # Drivers do not report why.
    return getattr(error, "connection_invalidated", False) or is_refused or state.startswith(_PASSING)


_PASSING = ("08", "40001", "40P01", "53300", "57P")
"""SQLSTATE's classes of failures of connections, deadlocks and the like, too many connections, a server that stops."""

_LOCKED = (
    f", and was so for {_PATIENCE} s: a stream that reads from a file of SQLite and writes into it waits for itself, "
    "unless PRAGMA journal_mode=WAL was set, which lets readers and a writer work at the same time"
)


@contextmanager
def _ignored() -> Iterator[None]:
    try:
        yield
    except Exception:
        return


def database_of(url: Any, maker: str, failure: type[SourceError] | type[SinkError], *more: str) -> Database:
    """Return the database of a URL, without connecting.

    Args:
        url: the URL in the format of SQLAlchemy.
        maker: the name of the called function.
        failure: makes the error of a refusal of the database.
        more: the other arguments, as they are shown.

    Raises:
        SetupError: SQLAlchemy, or the driver of this database, is not installed.
        TypeError: `url` is no str.
        ValueError: it is no URL of a database, or names one that no other process sees.
    """
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, not {type(url).__name__}")
    try:
        import sqlalchemy as sa
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError
    except ImportError as error:
        raise SetupError(f"{maker}() needs the package sqlalchemy: {pip_install('sql')}") from error
    try:
        parsed = sa.make_url(url)
        dialect = parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        # Their messages may contain the URL, so they are not chained. Without a scheme it is unknown where a password
        # is.
        given = repr(shown_url(url)) if "://" in url else "a text without '://'"
        raise ValueError(
            f"url must be one of a database, such as sqlite:///file.db or postgresql+psycopg://host/name, not {given}"
        ) from None
    try:
        # SQLAlchemy imports a driver with the engine, which would be in a task.
        dialect.import_dbapi()
    except ImportError as error:
        raise SetupError(f"{maker}() needs the driver {error.name} of {parsed.drivername}://: install it") from error
    full = _absolute(parsed).render_as_string(hide_password=False)
    return Database(full, failure, f"{maker}({', '.join([repr(shown_url(url)), *more])})")


def _absolute(url: sa.URL) -> sa.URL:
    """Return the URL with an absolute path: workers have other working directories."""
    if url.get_backend_name() != "sqlite" or (url.database or "").startswith("file:"):
        return url
    if not url.database or url.database == ":memory:":
        raise ValueError("url must name a file: a database in memory is another one in every process")
    return url.set(database=os.path.abspath(os.path.expanduser(url.database)))


@dataclass(frozen=True, slots=True)
class StagedColumn:
    """A column that is written.

    Attributes:
        type: the type of SQLAlchemy.
        is_key: it is a part of the primary key, all of which is written.
        keeps_floats: the database stores decimal numbers as floats, regardless of the type, and NaN as NULL.
        has_texts_of_moments: datetimes and times are strings in the database, as in SQLite.
        is_json: it has values of JSON.
    """

    name: str
    type: Any
    is_nullable: bool
    is_key: bool
    keeps_floats: bool = False
    has_texts_of_moments: bool = False
    is_json: bool = False

    @property
    def stored_type(self) -> Any:
        """The type of the values that are written."""
        import sqlalchemy as sa

        return sa.TEXT() if self.has_texts_of_moments else self.type


def row_of(item: Any, columns: tuple[StagedColumn, ...], call: str, is_exact: bool) -> dict[str, Any]:
    """Return the values of an item by the names of the columns.

    Args:
        item: a mapping, dataclass, named tuple, tuple or list.
        columns: the columns of its values.
        call: the reducer as the user wrote it.
        is_exact: it has no other fields than these.

    Raises:
        SinkError: it is none of these, a field is missing or is one too many, or a value does not fit.
    """
    try:
        fields = _fields(item, columns, is_exact)
        row = {}
        for column in columns:
            value = fields[column.name]
            if column.is_json or type(value) not in _NATIVE:
                value = _stored(column, value, item)
            _check(column, value)
            row[column.name] = _text_of_moment(value) if column.has_texts_of_moments else value
        for union in unions_of_rows(cast(Any, type(item))):
            if union.name in row:
                _check_union(union, fields[union.name], row[union.name], columns)
    except (_UnfitError, NotJsonError) as error:
        problem = SinkError(f"{call}: {error}: {shown(item)}")
        failed_on(problem, item)
        raise problem from None
    return row


class _UnfitError(ValueError):
    """An item does not fit."""


def _stored(column: StagedColumn, value: Any, item: Any) -> Any:
    """Return the stored form of a value in a column: JSON, the value of a member, or a string if SQL has no type."""
    if column.is_json and type(value) not in _OF_JSON and not _is_null_of_json(value):
        try:
            return plain(value)
        except NotJsonError as error:
            raise error.within(column.name, name_of(type(item))) from None
    if isinstance(value, Enum):
        return _stored(column, value.value, item)
    kind = type(value)
    if kind in TEXT_FORMS and kind not in _NATIVE and python_type(column.type) is str:
        return TEXT_FORMS[kind].write(value)
    found = python_scalar(value)
    if is_numpy_scalar(found):  # Scalars of nanoseconds count as ints, and sqlite3 would store a BLOB.
        misfit = _misfit(column.type, found, column.has_texts_of_moments) or f"no {kind.__name__}"
        raise _UnfitError(f"the column {column.name!r} takes {misfit}")
    return found


_OF_JSON = frozenset({str, int, float, bool, type(None)})
_NATIVE = _OF_JSON | {bytes, decimal.Decimal, datetime.date, datetime.time, datetime.datetime}
"""Classes that databases have types for; others are strings in a column of strings."""


def python_scalar(value: Any) -> Any:
    """Return a scalar of NumPy as Python's; a scalar of nanoseconds, which Python lacks, is unchanged."""
    if not is_numpy_scalar(value):
        return value
    # sqlite3 stores the memory of an int of NumPy as bytes: a column of ints would get a BLOB, which equals no int.
    found = value.item()
    return value if value.dtype.kind in "mM" and isinstance(found, int) else found


def is_numpy_scalar(value: Any) -> bool:
    """Return whether a value is a scalar of NumPy."""
    numpy: Any = sys.modules.get("numpy")  # A process that has a value of it has imported it.
    return numpy is not None and isinstance(value, numpy.generic)


def python_type(kind: Any) -> type | None:
    """Return the class of the values of a type of SQLAlchemy, if it is known."""
    try:
        found: type = kind.python_type
    except NotImplementedError:
        return None
    return found


def _is_null_of_json(value: Any) -> bool:
    import sqlalchemy as sa

    return value is sa.JSON.NULL


def _check_union(union: UnionField, value: Any, stored: Any, columns: tuple[StagedColumn, ...]) -> None:
    [column] = [column for column in columns if column.name == union.name]
    try:
        union.check("SQL", value, _returned(column, stored))
    except TypeError as error:
        raise _UnfitError(str(error)) from None


def _returned(column: StagedColumn, value: Any) -> Any:
    """Return a driver's value with its type, as far as the driver may return another one."""
    expected = python_type(column.type)
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        return int(value) if isinstance(value, bool) and column.keeps_floats else value
    if expected is float:
        return float(value)
    if not column.keeps_floats:
        return decimal.Decimal(str(value)) if expected is decimal.Decimal else value
    # SQLite turns a float without a fraction into an int in a column of numeric affinity.
    return int(value) if value == value // 1 else float(value)


def _text_of_moment(value: Any) -> str | None:
    """Return the string that SQLAlchemy makes of a moment for SQLite, with the offset of the time zone if any."""
    if value is None:
        return None
    if type(value) is datetime.date:
        value = datetime.datetime.combine(value, datetime.time.min)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "microseconds")
    text: str = value.isoformat("microseconds")
    return text


def _fields(item: Any, columns: tuple[StagedColumn, ...], is_exact: bool) -> dict[str, Any]:
    names = [column.name for column in columns]
    fields = field_names(type(item))
    if not fields and not isinstance(item, Mapping):
        if not isinstance(item, tuple | list):
            raise _UnfitError(f"an item must be a mapping, dataclass or tuple, not {type(item).__name__}")
        if len(item) != len(names):
            raise _UnfitError(f"an item has {len(item)} values for {len(names)} columns ({', '.join(names)})")
        return dict(zip(names, item, strict=True))
    found = {name: getattr(item, name) for name in fields} if fields else dict(item)
    if missing := [name for name in names if name not in found]:
        raise _UnfitError(f"an item has no {missing[0]!r}: columns=[...] names the columns that items have")
    if is_exact and len(found) > len(names):
        other = next(name for name in found if name not in names)
        raise _UnfitError(f"the table has no column {other!r}: columns=[...] names those to write, and leaves it out")
    return {name: found[name] for name in names}


def _check(column: StagedColumn, value: Any) -> None:
    """Refuse a value that is not of the type of its column: SQLite would store it, and servers change it."""
    if value is None:
        if not column.is_nullable:
            raise _UnfitError(f"the column {column.name!r} takes no None")
    elif misfit := _misfit(column.type, value, column.has_texts_of_moments) or _changed(column, value):
        raise _UnfitError(f"the column {column.name!r} takes {misfit}")


def _changed(column: StagedColumn, value: Any) -> str | None:
    """Return the type of a column of numbers, and the value, if another one would be read back."""
    expected = python_type(column.type)
    if expected not in (float, decimal.Decimal):
        return None
    if isinstance(value, float):
        return "no NaN, which it would keep as NULL" if column.keeps_floats and value != value else None
    scale = getattr(column.type, "scale", None)
    if expected is float or column.keeps_floats:
        return None if _is_float(value) else f"floats, of which none is {value}"
    if isinstance(value, decimal.Decimal) and value.is_finite() and scale is not None:
        digits = -int(value.normalize().as_tuple().exponent)
        return f"{scale} digits behind the point, not {value}" if digits > scale else None
    return None


def _is_float(value: Any) -> bool:
    """Return whether a number is one that Python shows of a float."""
    try:
        return bool(decimal.Decimal(repr(float(value))) == value)
    except (ArithmeticError, TypeError, ValueError):
        return False


def _misfit(kind: Any, value: Any, keeps_zones: bool = False) -> str | None:
    """Return the values of a type, and the value, if that is another one."""
    if (expected := python_type(kind)) is None:
        return None  # The database decides.
    if expected is list:
        return _misfit_within(kind, value)
    if expected in (datetime.datetime, datetime.time):
        return None if keeps_zones and isinstance(value, expected) else _misfit_in_time(kind, expected, value)
    accepted = _ACCEPTED.get(expected)
    # Of these, Python makes the one a subclass of the other.
    is_other = isinstance(value, bool | datetime.datetime) and expected is not type(value)
    if accepted is None or (isinstance(value, accepted) and not is_other):
        return None
    return f"{expected.__name__}, not {type(value).__name__}"


def _misfit_within(array: Any, value: Any) -> str | None:
    """Check the values of an array, which may contain arrays."""
    if not isinstance(value, list | tuple):
        return None  # The database decides.
    inner = ((array if isinstance(each, list | tuple) else array.item_type, each) for each in value if each is not None)
    return next(filter(None, itertools.starmap(_misfit, inner)), None)


def _misfit_in_time(kind: Any, expected: type, value: Any) -> str | None:
    """Check a moment or a time of the day: without a zone it would get the server's zone, or else lose its own."""
    # SQLAlchemy has no flag for this type of SQL Server (2.0).
    has_zone = kind.timezone or type(kind).__name__ == "DATETIMEOFFSET"
    takes = f"{expected.__name__}s {'with' if has_zone else 'without'} a zone"
    if expected is datetime.datetime and not has_zone and type(value) is datetime.date:
        return None  # Its midnight.
    if not isinstance(value, expected):
        return f"{takes}, not {type(value).__name__}"
    moment: Any = value
    if has_zone and moment.utcoffset() is None:
        return f"{takes}, not {expected.__name__}s without one"
    return f"{takes}, not {expected.__name__}s with one" if not has_zone and moment.tzinfo is not None else None


_ACCEPTED: dict[type, Any] = {
    bool: bool,
    bytes: (bytes, bytearray, memoryview),
    datetime.date: datetime.date,
    decimal.Decimal: (numbers.Real, decimal.Decimal),
    float: (numbers.Real, decimal.Decimal),
    int: numbers.Integral,
    str: str,
}


def unfit(database: Database, item: Any, error: Exception) -> SinkError:
    """Return the error of an item that the database refuses."""
    problem = SinkError(f"{database.call}: the database refuses an item: {database.words(error)}: {shown(item)}")
    failed_on(problem, item)
    return problem
