"""Items as rows: which value of an item goes into which column, and whether it fits there."""

from __future__ import annotations

import decimal
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
    """

    name: str
    type: Any
    is_nullable: bool
    is_key: bool


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
    """Refuse a value of a wrong type: SQLite would keep it, and drivers convert some."""
    if value is None:
        if not column.is_nullable:
            raise _UnfitError(f"the column {column.name!r} takes no None")
        return
    try:
        expected = column.type.python_type
    except NotImplementedError:
        return  # The database knows.
    accepted = _ACCEPTED.get(expected)
    if accepted is None:
        return
    if not isinstance(value, accepted) or (isinstance(value, bool) and expected is not bool):
        raise _UnfitError(f"the column {column.name!r} takes {expected.__name__}, not {type(value).__name__}")


_ACCEPTED: dict[type, Any] = {
    bool: bool,
    bytes: (bytes, bytearray, memoryview),
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
