"""Endings of names, and the formats that they say: for `to_file`, and against folders that are called as files are."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import basename, splitext
from typing import Any

from dstream.values.secrets import shown_url

__all__ = ["check_no_suffix", "format_of_path"]

_FORMATS: Mapping[str, str] = {
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
    said = _FORMATS.get(ending)
    if format is None and said is None:
        raise ValueError(f"{shown_url(path)!r} says no format: give it one of {', '.join(_FORMATS)}, or say format=")
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
    if not folder.endswith("/") and _suffixes(folder)[0] in _FORMATS:
        shown = shown_url(folder)
        raise ValueError(
            f"to_files() would make a folder with the name of a file, {shown!r}: to_file({shown!r}) writes one file; "
            f"to_files({shown + '/'!r}) is a folder of this name"
        )
