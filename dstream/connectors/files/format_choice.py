"""Choice of the output format by argument or by suffix, and the lines of CSV output.

None is an empty field of CSV, an empty string a quoted one. The `csv` module writes both alike (up to Python 3.11), and
so cannot be used. A row of one column that is None would be a blank line, which readers skip, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from posixpath import basename, splitext
from typing import Any, get_args
from uuid import UUID

from dstream.arguments import checked_function
from dstream.base.urls import shown_url
from dstream.connectors.base import TextLines, checked_encoding, readable
from dstream.connectors.files.column_formats import (
    AVRO_CODECS,
    PARQUET_CODECS,
    AvroFormat,
    ParquetFormat,
    check_fastavro,
)
from dstream.connectors.files.delta import DeltaFormat
from dstream.connectors.files.formats import Compression, JoinedFormat, JsonLines, LineFormat
from dstream.connectors.files.writers import PartitionFolders
from dstream.failures.attribution import each, failed_on
from dstream.schema.columns import ColumnSelection, ItemColumns, checked_columns
from dstream.schema.file_column_types import ColumnTypes, ListColumn, StructColumn

__all__ = ["CsvLines", "CsvOfFile", "check_no_suffix", "checked_format", "format_of_path"]


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


_LINES = ("text", "json", "csv")
_COLUMNS = ("csv", "parquet", "avro", "delta")
_FORMATS = ("text", "json", "csv", "parquet", "avro", "delta")


def checked_format(
    format: str, to_string: Any, columns: Any, encoding: str, compression: Any, partitions: PartitionFolders
) -> JoinedFormat | DeltaFormat:
    """Return the format that the arguments of `to_files` say.

    Raises:
        TypeError: an argument is of another kind, or none that this format has.
        ValueError: an argument is none of its choices.
        LookupError: there is no such encoding.
        SetupError: the package that writes it is not installed.
    """
    if format not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(_FORMATS)}, not {format!r}")
    if to_string is not None and format != "text":
        raise TypeError(f"to_string makes texts, and format={format!r} writes none: map(...) makes other items before")
    if columns is not None and format not in _COLUMNS:
        raise TypeError(f"columns are those of {', '.join(_COLUMNS)}, and format={format!r} has none")
    if encoding != "utf-8" and format not in _LINES:
        raise TypeError(f"encoding is that of texts, and format={format!r} writes bytes")
    _check_compression(format, compression)
    if format == "delta":
        return DeltaFormat(checked_columns(columns), compression, partitions.fields())
    return _made(format, to_string, columns, checked_encoding(encoding), compression)


def _check_compression(format: str, compression: Any) -> None:
    inside: dict[str, dict[Any, str]] = {"parquet": PARQUET_CODECS, "delta": PARQUET_CODECS, "avro": AVRO_CODECS}
    codecs = inside.get(format, dict.fromkeys(get_args(Compression), ""))
    names = [repr(name) for name in codecs if name is not None]
    if compression is not None and (not isinstance(compression, str) or compression not in codecs):
        raise ValueError(f"compression must be {', '.join(names)} or None for format={format!r}, not {compression!r}")


def _made(format: str, to_string: Any, columns: Any, encoding: str, compression: Any) -> JoinedFormat:
    if format == "text":
        made = str if to_string is None else checked_function(to_string, "to_string")
        return LineFormat(TextLines(made), ".txt", encoding, compression)
    if format == "json":
        return LineFormat(JsonLines(), ".jsonl", encoding, compression)
    wanted = checked_columns(columns)
    if format == "csv":
        _refuse_parts(wanted)
        return LineFormat(CsvLines(wanted), ".csv", encoding, compression)
    if format == "avro":
        check_fastavro(compression)
        return AvroFormat(wanted, compression)
    return ParquetFormat(wanted, compression)


def _refuse_parts(wanted: ColumnSelection | None) -> None:
    for name, form in zip(wanted.names, wanted.forms, strict=True) if wanted is not None else ():
        if isinstance(form, ListColumn | StructColumn):
            raise TypeError(f"CSV has no form for what the field {name!r} holds: write format='json' or 'parquet'")


_SUFFIXES: Mapping[str, str] = {
    ".txt": "text",
    ".json": "json",
    ".jsonl": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".avro": "avro",
}
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")


def _suffixes(path: str) -> tuple[str, str]:
    """Return the ending that says a format, and that of a compression; both in lower case, or empty."""
    stem, ending = splitext(basename(path).lower())
    if ending in _COMPRESSIONS:
        return splitext(stem)[1], ending
    return ending, ""


def format_of_path(path: str, format: Any, compression: Any) -> tuple[Any, Any]:
    """Return format and compression, those of the name where none is given.

    Raises:
        ValueError: the name says no format, or contradicts what is given.
    """
    if format == "delta":
        raise ValueError("a table of Delta is a folder: to_files(folder, format='delta') writes it")
    ending, packed = _suffixes(path)
    said = _SUFFIXES.get(ending)
    if format is None and said is None:
        raise ValueError(f"{shown_url(path)!r} says no format: give it one of {', '.join(_SUFFIXES)}, or say format=")
    if format is not None and said is not None and format != said:
        raise ValueError(
            f"{shown_url(path)!r} is named as a file of {said} is, and format={format!r}: readers go by the name"
        )
    format = said if format is None else format
    if packed and format in ("parquet", "avro"):
        raise ValueError(
            f"{format} compresses inside of the file: leave {packed} out of {shown_url(path)!r}, say compression="
        )
    if packed and compression not in (None, packed[1:]):
        raise ValueError(f"{shown_url(path)!r} is named as one in {packed[1:]} is, and compression={compression!r}")
    if f".{compression}" in _COMPRESSIONS and not packed and format not in ("parquet", "avro"):
        raise ValueError(
            f"compression={compression!r} needs a name that ends in .{compression}, not {shown_url(path)!r}"
        )
    return format, compression or packed[1:] or None


def check_no_suffix(folder: str) -> None:
    """Refuse a folder that is called as a file is, unless a slash at its end says that it is one.

    Raises:
        ValueError: it ends in the suffix of a format.
    """
    if not folder.endswith("/") and _suffixes(folder)[0] in _SUFFIXES:
        shown = shown_url(folder)
        raise ValueError(
            f"to_files() would make a folder with the name of a file, {shown!r}: to_file({shown!r}) writes one file; "
            f"to_files({shown + '/'!r}) is a folder of this name"
        )
