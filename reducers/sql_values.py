"""Items as rows: which value of an item goes into which column, and whether it fits there."""

from __future__ import annotations

import datetime
import decimal
import itertools
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dstream.errors import SinkError
from dstream.values.blaming import failed_on, shown
from dstream.values.databases import Database
from dstream.values.fields import field_names

__all__ = ["StagedColumn", "row_of", "unfit"]


@dataclass(frozen=True, slots=True)
class StagedColumn:
    """A column that is written.

    Attributes:
        type: that of SQLAlchemy.
        is_key: it is a part of the primary key, all of which is written.
        keeps_floats: the database keeps numbers with a point as floats, whatever the type says, and NaN as NULL.
    """

    name: str
    type: Any
    is_nullable: bool
    is_key: bool
    keeps_floats: bool = False


def row_of(item: Any, columns: tuple[StagedColumn, ...], call: str, is_exact: bool) -> dict[str, Any]:
    """Return the values of an item by the names of the columns.

    Args:
        item: a mapping, dataclass, named tuple, tuple or list.
        columns: where its values go.
        call: the reducer as the user wrote it.
        is_exact: it has no other fields than these.

    Raises:
        SinkError: it is none of these, a field is missing or is one too many, or a value does not fit.
    """
    try:
        row = _fields(item, columns, is_exact)
        for column in columns:
            _check(column, row[column.name])
    except _UnfitError as error:
        problem = SinkError(f"{call}: {error}: {shown(item)}")
        failed_on(problem, item)
        raise problem from None
    return row


class _UnfitError(ValueError):
    """An item does not fit."""


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
    """Refuse a value that is not of the type of its column: SQLite would keep it, and drivers and servers change it."""
    if value is None:
        if not column.is_nullable:
            raise _UnfitError(f"the column {column.name!r} takes no None")
    elif misfit := _misfit(column.type, value) or _changed(column, value):
        raise _UnfitError(f"the column {column.name!r} takes {misfit}")


def _changed(column: StagedColumn, value: Any) -> str | None:
    """Return what a column of numbers takes, and what the value is, if another one would come back."""
    try:
        expected = column.type.python_type
    except NotImplementedError:
        return None
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
    """Say whether a number is what Python shows of a float."""
    try:
        return bool(decimal.Decimal(repr(float(value))) == value)
    except (ArithmeticError, TypeError, ValueError):
        return False


def _misfit(kind: Any, value: Any) -> str | None:
    """Return what a type takes, and what the value is, if that is something else."""
    try:
        expected = kind.python_type
    except NotImplementedError:
        return None  # The database knows.
    if expected is list:
        return _misfit_within(kind, value)
    if expected in (datetime.datetime, datetime.time):
        return _misfit_in_time(kind, expected, value)
    accepted = _ACCEPTED.get(expected)
    # Of these, Python makes the one a subclass of the other.
    is_other = isinstance(value, bool | datetime.datetime) and expected is not type(value)
    if accepted is None or (isinstance(value, accepted) and not is_other):
        return None
    return f"{expected.__name__}, not {type(value).__name__}"


def _misfit_within(array: Any, value: Any) -> str | None:
    """Look at the values of an array, which may hold arrays."""
    if not isinstance(value, list | tuple):
        return None  # The database knows.
    inner = ((array if isinstance(each, list | tuple) else array.item_type, each) for each in value if each is not None)
    return next(filter(None, itertools.starmap(_misfit, inner)), None)


def _misfit_in_time(kind: Any, expected: type, value: Any) -> str | None:
    """Look at a moment or a time of the day: without a zone it would get that of the server, or else lose its own."""
    # SQLAlchemy has no flag for the one type of SQL Server (2.0).
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
    """Return that the database refuses an item."""
    problem = SinkError(f"{database.call}: the database refuses an item: {database.words(error)}: {shown(item)}")
    failed_on(problem, item)
    return problem
