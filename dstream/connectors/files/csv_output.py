"""Lines of CSV output.

None is an empty field of CSV, an empty string a quoted one. The `csv` module writes both alike (up to Python 3.11), and
so cannot be used. A row of one column that is None would be a blank line, which readers skip, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from dstream.connectors.base import readable
from dstream.failures.attribution import each, failed_on
from dstream.schema.columns import ColumnSelection, ItemColumns
from dstream.schema.file_column_types import ColumnTypes

__all__ = ["CsvLines", "CsvOfFile"]


@dataclass(frozen=True, slots=True)
class CsvLines:
    """Each item as a row.

    Attributes:
        wanted: the columns; unset, those of the first item of each file.
    """

    wanted: ColumnSelection | None

    @property
    def is_known(self) -> bool:
        """Whether the header is known without an item."""
        return self.wanted is not None

    def begun(self) -> CsvOfFile:
        """Begin a file."""
        return CsvOfFile(ItemColumns(self.wanted))

    def heading(self, columns: ColumnTypes) -> str:
        """Return their names."""
        return _header(columns)


def _header(names: Iterable[str]) -> str:
    return ",".join(map(_quoted, names)) + "\n"


class CsvOfFile:
    """The rows of one file."""

    def __init__(self, columns: ItemColumns) -> None:
        self._columns = columns

    def header(self, items: Sequence[Any]) -> str:
        """Return the names of the columns; nothing if none are known, and no item says them."""
        if not items and self._columns.wanted is None:
            return ""
        wanted = self._columns.begin(items[0] if items else None)
        return _header(wanted.names)

    def lines(self, items: Sequence[Any]) -> str:
        """Return the rows of some items.

        Raises:
            TypeError: an item has other columns, or a value that CSV has no form for.
            ValueError: a value would not be read as it was.
        """
        columns = self._columns.of(items)
        names = self._columns.begin(items[0]).names
        fields = [_fields(name, values, items) for name, values in zip(names, columns, strict=True)]
        if len(fields) == 1:
            _refuse_blank(names[0], fields[0], items)
        return "\n".join([*map(",".join, zip(*fields, strict=True)), ""])

    def escaped(self, items: Sequence[Any], encoding: str) -> str:
        """Say which item the encoding has no bytes for."""
        each(lambda item: readable(self.lines([item]), encoding).encode(encoding), items)
        return self.lines(items)

    def columns(self) -> ColumnTypes:
        """Return the names; a text has no type."""
        return {} if self._columns.wanted is None else dict.fromkeys(self._columns.wanted.names, "")


def _fields(name: str, values: Sequence[Any], items: Sequence[Any]) -> Sequence[str]:
    """Return the fields of a column; quickly, where all values are of one type."""
    kinds = set(map(type, values))
    if kinds == {str} and all(values) and not _SPECIAL.search("".join(values)):
        return values
    make = _FIELDS.get(kinds.pop()) if len(kinds) == 1 else None
    if make is not None:
        with suppress(ValueError):  # One of the items is to blame, which is looked for below.
            return list(map(make, values))
    return each(lambda value, _: _field(name, value), items, values)


_SPECIAL = re.compile('[",\r\n\0]')


def _field(name: str, value: Any) -> str:
    kind = type(value)
    if kind not in _FIELDS:
        value = value.value if isinstance(value, Enum) else value
        kind = next((each for each in _FIELDS if each in _SUBCLASSED and isinstance(value, each)), type(value))
    try:
        return _FIELDS[kind](value)
    except KeyError:
        raise TypeError(
            f"CSV has no form for {kind.__qualname__}, in the column {name!r}: make a str or a number of it before, or "
            "write format='json' or 'parquet'"
        ) from None
    except ValueError as error:
        raise ValueError(f"the column {name!r}: {error}") from error


def _quoted(text: str) -> str:
    """Return a text as a field; in quotes where a reader would see something else, or nothing."""
    if text and not _SPECIAL.search(text):
        return text
    if "\0" in text:
        raise ValueError("a text holds a NUL character, which readers of CSV refuse")
    return '"' + text.replace('"', '""') + '"'


_FIELDS: dict[type, Callable[[Any], str]] = {
    type(None): lambda value: "",
    bool: lambda value: "true" if value else "false",
    str: lambda value: _quoted(str.__str__(value)),
    int: int.__repr__,
    float: float.__repr__,
    Decimal: str,
    datetime: lambda value: value.isoformat(),
    date: lambda value: value.isoformat(),
    time: lambda value: value.isoformat(),
    UUID: str,
}
_SUBCLASSED = (bool, str, int, float)
"""Types whose subclasses are written as they are."""


def _refuse_blank(name: str, fields: Sequence[str], items: Sequence[Any]) -> None:
    for field, item in zip(fields, items, strict=True):
        if not field:
            error = ValueError(
                f"a row whose only column, {name!r}, is None would be a blank line, which readers skip: "
                "filter() such items out, or write format='json'"
            )
            failed_on(error, item)
            raise error
