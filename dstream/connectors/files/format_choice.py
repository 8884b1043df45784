"""Choice of the output format by argument or by suffix."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import basename, splitext
from typing import Any, get_args

from dstream.arguments import running_function
from dstream.base.urls import shown_url
from dstream.connectors.base import TextLines, checked_encoding
from dstream.connectors.files.columnar_output import (
    AVRO_CODECS,
    PARQUET_CODECS,
    AvroFormat,
    ParquetFormat,
    check_fastavro,
)
from dstream.connectors.files.csv_output import CsvLines, csv_columns
from dstream.connectors.files.delta import DeltaFormat
from dstream.connectors.files.formats import Compression, JoinedFormat, JsonLines, LineFormat
from dstream.connectors.files.writers import PartitionFolders
from dstream.schema.columns import checked_columns

__all__ = ["check_no_suffix", "checked_format", "format_of_path"]


_LINES = ("text", "json", "csv")
_COLUMNS = ("csv", "parquet", "avro", "delta")
_FORMATS = ("text", "json", "csv", "parquet", "avro", "delta")


def checked_format(
    format: str, to_string: Any, columns: Any, encoding: str, compression: Any, partitions: PartitionFolders
) -> JoinedFormat | DeltaFormat:
    """Return the format by the arguments of `to_files`.

    Raises:
        TypeError: an argument has another type, or is not supported by this format.
        ValueError: an argument is not one of its choices.
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
    # A value without a hash would fail in the look-up, with a message about hashes.
    if compression is not None and (not isinstance(compression, str) or compression not in codecs):
        raise ValueError(f"compression must be {', '.join(names)} or None for format={format!r}, not {compression!r}")


def _made(format: str, to_string: Any, columns: Any, encoding: str, compression: Any) -> JoinedFormat:
    if format == "text":
        made = str if to_string is None else running_function(to_string, "to_string")
        return LineFormat(TextLines(made), ".txt", encoding, compression)
    if format == "json":
        return LineFormat(JsonLines(), ".jsonl", encoding, compression)
    if format == "csv":
        return LineFormat(CsvLines(csv_columns(columns)), ".csv", encoding, compression)
    wanted = checked_columns(columns)
    if format == "avro":
        check_fastavro(compression)
        return AvroFormat(wanted, compression)
    return ParquetFormat(wanted, compression)


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
    """Return the file name's endings of the format and of the compression, in lower case, or empty."""
    stem, ending = splitext(basename(path).lower())
    if ending in _COMPRESSIONS:
        return splitext(stem)[1], ending
    return ending, ""


def format_of_path(path: str, format: Any, compression: Any) -> tuple[Any, Any]:
    """Return format and compression, by default from the name.

    Raises:
        ValueError: the name has no ending of a format, or contradicts an argument.
    """
    if format == "delta":
        raise ValueError("a table of Delta is a folder: to_files(folder, format='delta') writes it")
    ending, packed = _suffixes(path)
    named = _SUFFIXES.get(ending)
    if format is None and named is None:
        raise ValueError(f"{shown_url(path)!r} says no format: give it one of {', '.join(_SUFFIXES)}, or say format=")
    if format is not None and named is not None and format != named:
        raise ValueError(
            f"{shown_url(path)!r} is named as a file of {named} is, and format={format!r}: readers go by the name"
        )
    format = named if format is None else format
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
    """Refuse a folder with the name of a file, unless a slash at its end shows that it is a folder.

    Raises:
        ValueError: it ends in the suffix of a format.
    """
    if not folder.endswith("/") and _suffixes(folder)[0] in _SUFFIXES:
        shown = shown_url(folder)
        raise ValueError(
            f"to_files() would make a folder with the name of a file, {shown!r}: to_file({shown!r}) writes one file; "
            f"to_files({shown + '/'!r}) is a folder of this name"
        )
