"""Lines of CSV output.

None is an empty field of CSV, an empty string a quoted one. The `csv` module writes both alike (up to Python 3.11), and
so cannot be used. A row of one column that is None would be a blank line, which readers skip, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID

from dstream.base.showing import shown
from dstream.connectors.base import readable
from dstream.failures.attribution import each, failed_on
from dstream.schema.columns import ColumnSelection, ItemColumns, checked_columns
from dstream.schema.decoders import dumped
from dstream.schema.encoders import unions_of, unsupported_field, written_names
from dstream.schema.record_decoders import TEXTS
from dstream.schema.text_forms import TEXT_FORMS, refusal, text_form, text_of
from dstream.schema.types import ColumnTypes
from dstream.values.fields import field_names, is_model, is_typed_dict, name_of

__all__ = ["CsvLines", "csv_columns"]


def csv_columns(columns: Any) -> ColumnSelection | None:
    """Return the columns of CSV by `columns=`; None for None.

    Raises:
        TypeError: it is neither a class with fields nor several names, or the type of a field has no text form.
        ValueError: there are none, or a name occurs twice.
    """
    if not isinstance(columns, type) or not (is_typed_dict(columns) or field_names(columns)):
        return checked_columns(columns)
    if found := unsupported_field(columns, TEXTS):
        raise TypeError(refusal("CSV", found[1], "write format='json' or 'parquet'", found[0], name_of(columns)))
    return ColumnSelection.of_names(written_names(columns))


@dataclass(frozen=True, slots=True)
class CsvLines:
    """Each item as a row.

    Attributes:
        wanted: the columns; unset, the columns of the first item of each file.
    """

    wanted: ColumnSelection | None

    @property
    def is_known(self) -> bool:
        return self.wanted is not None

    def begun(self) -> CsvOfFile:
        return CsvOfFile(ItemColumns(self.wanted))

    def heading(self, columns: ColumnTypes) -> str:
        return _header(columns)


def _header(names: Iterable[str]) -> str:
    return ",".join(map(_quoted, names)) + "\n"


class CsvOfFile:
    """The rows of one file."""

    def __init__(self, columns: ItemColumns) -> None:
        self._columns = columns

    def header(self, items: Sequence[Any]) -> str:
        """Return the names of the columns; empty if they are unset, and there is no item."""
        if not items and self._columns.wanted is None:
            return ""
        wanted = self._columns.begin(_rows(items[:1])[0] if items else None)
        return _header(wanted.names)

    def lines(self, items: Sequence[Any]) -> str:
        """Return the rows of items.

        Raises:
            TypeError: an item has other columns, or a value that CSV has no form for.
            ValueError: a value would not be read as it was.
        """
        rows = _rows(items)
        columns, wanted = self._columns.of(rows), self._columns.begin(rows[0])
        fields = [_fields(name, values, items) for name, values in zip(wanted.names, columns, strict=True)]
        _check_unions(wanted.names, columns, items)
        if len(fields) == 1:
            _refuse_blank(wanted.names[0], fields[0], items)
        return "\n".join([*map(",".join, zip(*fields, strict=True)), ""])

    def escaped(self, items: Sequence[Any], encoding: str) -> str:
        """Raise an error that names the item, and the field, that the encoding cannot represent."""
        each(lambda item: self._check_encoding(item, encoding), items)
        return self.lines(items)

    def _check_encoding(self, item: Any, encoding: str) -> None:
        [row] = _rows([item])
        for name, [value] in zip(self._columns.begin(row).names, self._columns.of([row]), strict=True):
            text = _field(name, value, item)
            try:
                readable(text, encoding).encode(encoding)
            except UnicodeEncodeError as error:
                sentence = refusal(
                    "CSV", f"str {shown(text)}", "write format='json', or another encoding=", name, _owner(item)
                )
                raise UnicodeEncodeError(
                    encoding, text, error.start, error.end, f"{error.reason}: {sentence}"
                ) from None

    def columns(self) -> ColumnTypes:
        return {} if self._columns.wanted is None else dict.fromkeys(self._columns.wanted.names, "")


def _rows(items: Sequence[Any]) -> Sequence[Any]:
    """Return items with columns: pydantic models serialize themselves, since they also parse themselves."""
    if not any(map(is_model, set(map(type, items)))):
        return items
    return each(lambda item: dumped(item) if is_model(type(item)) else item, items)


def _fields(name: str, values: Sequence[Any], items: Sequence[Any]) -> Sequence[str]:
    """Return the fields of a column; quickly, where all values are of one type."""
    kinds = set(map(type, values))
    # One search through the joined values costs less than one for each.
    if kinds == {str} and all(values) and not _SPECIAL.search("".join(values)):
        return values
    make = _FIELDS.get(kinds.pop()) if len(kinds) == 1 else None
    if make is not None:
        with suppress(ValueError):  # The failing item is searched below.
            return list(map(make, values))
    return each(lambda value, item: _field(name, value, item), items, values)


_SPECIAL = re.compile('[",\r\n\0]')


def _field(name: str, value: Any, item: Any) -> str:
    if value is None or (isinstance(value, Enum) and value.value is None):
        return ""
    form = text_form(value)
    if form is None:
        raise TypeError(refusal("CSV", type(value).__qualname__, _INSTEAD, name, _owner(item)))
    text = form.write(value)
    if "\0" in text:
        instead = "readers of CSV refuse it: write format='json' or 'parquet'"
        raise ValueError(
            refusal("CSV", f"{type(value).__qualname__} with a NUL character", instead, name, _owner(item))
        )
    return _quoted(text)


_INSTEAD = "map() it to a str or a number before, or write format='json' or 'parquet'"


def _owner(item: Any) -> str:
    return name_of(type(item))


def _quoted(text: str) -> str:
    """Return a string as a field; in quotes if a reader would parse another value, or nothing."""
    if text and not _SPECIAL.search(text):
        return text
    if "\0" in text:
        raise ValueError("a text holds a NUL character, which readers of CSV refuse")
    return '"' + text.replace('"', '""') + '"'


def _quoting(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: _quoted(write(value))


_PLAIN = (bool, int, float, Decimal, Fraction, date, time, datetime, timedelta, UUID, IPv4Address)
"""Classes whose text form is never empty and has no special character."""
_FIELDS: dict[type, Callable[[Any], str]] = {
    type(None): lambda value: "",
    **{kind: form.write if kind in _PLAIN else _quoting(form.write) for kind, form in TEXT_FORMS.items()},
}


def _check_unions(names: Sequence[str], columns: Sequence[Sequence[Any]], items: Sequence[Any]) -> None:
    """Refuse values of unions whose text form is ambiguous."""
    kinds = set(map(type, items))
    for union in [union for kind in kinds for union in unions_of(kind, TEXTS) if union.name in names]:
        for value, item in zip(columns[names.index(union.name)], items, strict=True):
            try:
                union.check("CSV", value, None if value is None else text_of(value))
            except TypeError as error:
                failed_on(error, item)
                raise


def _refuse_blank(name: str, fields: Sequence[str], items: Sequence[Any]) -> None:
    for field, item in zip(fields, items, strict=True):
        if not field:
            error = ValueError(
                f"a row whose only column, {name!r}, is None would be a blank line, which readers skip: "
                "filter() such items out, or write format='json'"
            )
            failed_on(error, item)
            raise error
