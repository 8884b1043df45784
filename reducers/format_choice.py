"""Which format `to_files` writes, and whether the other arguments are ones that it has."""

from __future__ import annotations

from typing import Any, get_args

from reducers.avro_files import AVRO_CODECS, AvroFormat, check_fastavro
from reducers.column_forms import Listed, Struct
from reducers.csv_lines import CsvLines
from reducers.delta_files import DeltaFormat
from reducers.file_formats import Compression, JoinedFormat
from reducers.item_columns import Wanted, checked_columns
from reducers.json_objects import JsonLines
from reducers.line_formats import LineFormat, TextLines, checked_encoding
from reducers.parquet_files import PARQUET_CODECS, ParquetFormat
from reducers.partition_folders import PartitionFolders
from reducers.writing import checked_function

__all__ = ["checked_format"]

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


def _refuse_parts(wanted: Wanted | None) -> None:
    for name, form in zip(wanted.names, wanted.forms, strict=True) if wanted is not None else ():
        if isinstance(form, Listed | Struct):
            raise TypeError(f"CSV has no form for what the field {name!r} holds: write format='json' or 'parquet'")
