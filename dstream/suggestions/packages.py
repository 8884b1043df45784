"""Hints for unknown names of packages."""

from __future__ import annotations

from collections.abc import Mapping
from dis import opmap
from importlib import import_module
from types import FrameType

from dstream.suggestions.streams import closest, plain

__all__ = ["no_such_name", "place_of"]


_PLACES = ("collectors", "reducers", "sources", "dstream.windows", "dstream.gatherers", "dstream.core")


def no_such_name(module: str, name: str, frame: FrameType) -> Exception:
    """Return the error of a package that has no such name: an ImportError where an import asks for it.

    Python replaces an AttributeError within `from package import name` by its own error, which has no hint.

    Args:
        module: the package.
        name: the name.
        frame: that of the code that asks.
    """
    meant = "" if name.startswith("_") else _meant(module, name)
    hint = f"; {meant}" if meant else ""
    if frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import name {name!r} from {module!r}{hint}", name=name)
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)


def _meant(module: str, name: str) -> str:
    own = {plain(each): each for each in _names_of(module)}
    if (known := own.get(plain(name)) or _OF_JET.get(module, {}).get(plain(name))) is not None:
        return f"write {known}"
    if place := place_of(name):
        return place
    return f"write {close}" if (close := closest(name, own.values())) else ""


def place_of(name: str) -> str:
    """Return in which package a name is, and how it is imported; empty if it is in none."""
    for place in _PLACES:
        if (known := next((each for each in _names_of(place) if plain(each) == plain(name)), None)) is not None:
            return f"it is in {place}: from {place} import {known}"
    return ""


def _names_of(place: str) -> list[str]:
    """Return the public names of a package of `_PLACES`; a file of the user's may hide a short name."""
    home = place if place.startswith("dstream.") else f"dstream.{place}"
    names: list[str] = import_module(home).__all__
    return names


_OF_JET: Mapping[str, Mapping[str, str]] = {
    "collectors": {
        "average": "averaging",
        "avg": "averaging",
        "count": "counting",
        "groupby": "grouping_by",
        "sum": "summing",
        "todict": "to_map",
    },
    "sources": {
        "avro": "avro_records",
        "avrofiles": "avro_records",
        "cache": "icache",
        "cachejournal": "icache_journal",
        "csv": "csv_rows",
        "csvfile": "csv_rows",
        "csvfiles": "csv_rows",
        "filewatcher": "watch_files",
        "jdbc": "sql_rows",
        "json": "json_lines",
        "jsonfile": "json_lines",
        "jsonfiles": "json_lines",
        "list": "ilist",
        "map": "imap",
        "mapjournal": "imap_journal",
        "parquet": "parquet_rows",
        "parquetfile": "parquet_rows",
        "parquetfiles": "parquet_rows",
        "readcsv": "csv_rows",
        "readjson": "json_lines",
        "readparquet": "parquet_rows",
        "readtext": "text_files",
        "socket": "socket_lines",
        "textfile": "text_files",
    },
    "reducers": {
        "cache": "to_icache",
        "files": "to_files",
        "jdbc": "to_sql",
        "kafka": "to_kafka",
        "list": "to_ilist",
        "logger": "to_logger",
        "map": "to_imap",
        "mapwithupdating": "updating_imap",
        "noop": "to_nothing",
        "socket": "to_socket",
        "tocsv": 'to_files(folder, format="csv")',
        "todict": "to_imap",
        "tojson": 'to_files(folder, format="json")',
        "toparquet": 'to_files(folder, format="parquet")',
    },
}
"""Names in Jet's `Sources` and `Sinks`, and in other libraries, in lower case without underscores."""
