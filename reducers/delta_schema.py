"""What a commit says of the columns of a table of Delta, and whether files fit the table that is there."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from dstream.errors import SinkError, UnsupportedError
from reducers.delta_log import NTZ, DeltaLog
from reducers.file_formats import ColumnTypes
from reducers.partition_folders import NONE

__all__ = ["check_table", "columns_of_all", "description_of", "partition_values"]

_KINDS_OF_FOLDERS = ("string", "long", "boolean", "date", "timestamp", "timestamp_ntz")


def columns_of_all(files: Iterable[ColumnTypes], title: str) -> ColumnTypes:
    """Return the columns of files that belong together, of each the type that one of them shows.

    Raises:
        SinkError: they have different columns.
    """
    columns: ColumnTypes = {}
    for index, file in enumerate(files):
        if index and file.keys() != columns.keys():
            raise _unlike(title, f"columns {', '.join(columns)}", f"columns {', '.join(file)}")
        for name, kind in file.items():
            known = columns.setdefault(name, kind)
            if kind and known and kind != known:
                raise _unlike(title, f"{known} in the column {name!r}", kind)
            columns[name] = known or kind
    return columns


def _unlike(title: str, one: str, other: str) -> SinkError:
    return SinkError(
        f"{title}: nothing was changed, since one partition has {one}, and another one {other}: "
        "name the columns, or a class that has them with their types, in columns=, or map() the items before"
    )


def description_of(columns: ColumnTypes, partitions: Sequence[str], title: str) -> list[dict[str, Any]]:
    """Return the actions that make a table of such columns.

    Raises:
        SinkError: the type of a column is not known, or two names differ in their case alone.
    """
    if missing := [name for name, kind in columns.items() if not kind]:
        raise SinkError(
            f"{title}: nothing was changed, since the column {missing[0]!r} has nothing but None so far, and a "
            "Delta table needs its type: say it with a class in columns="
        )
    if len({name.lower() for name in columns}) < len(columns):
        raise SinkError(
            f"{title}: nothing was changed: names of columns in Delta differ in more than upper and lower case"
        )
    fields = [_field(name, kind) for name, kind in columns.items()]
    naive = any("timestamp_ntz" in kind for kind in columns.values())
    features = {"readerFeatures": [NTZ], "writerFeatures": [NTZ]} if naive else {}
    return [
        {"protocol": {"minReaderVersion": 3 if naive else 1, "minWriterVersion": 7 if naive else 2, **features}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": list(partitions),
                "configuration": {},
                "createdTime": int(time.time() * 1000),
            }
        },
    ]


def _field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": json.loads(kind) if kind[0] == "{" else kind, "nullable": True, "metadata": {}}


def check_table(log: DeltaLog, columns: ColumnTypes, partitions: Sequence[str], *, replaces: bool) -> None:
    """Refuse files that do not fit the table that is there.

    Raises:
        SinkError: it has other columns, or other folders.
        UnsupportedError: it promises what is not kept here.
    """
    title, metadata = log.place.title, log.metadata
    settings = metadata.get("configuration") or {}
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise UnsupportedError(
            f"{title}: its Delta table gives columns other names in files, which to_files() does not know"
        )
    if replaces and settings.get("delta.appendOnly") == "true":
        raise SinkError(
            f"{title}: its Delta table takes files and gives none up (delta.appendOnly): leave out replacing()"
        )
    if list(metadata.get("partitionColumns") or ()) != list(partitions):
        there = ", ".join(metadata.get("partitionColumns") or ()) or "no columns"
        raise SinkError(
            f"{title}: its Delta table has folders by {there}, and these files by {', '.join(partitions) or 'none'}"
        )
    fields = {field["name"]: field for field in json.loads(metadata["schemaString"])["fields"]}
    _check_fields(title, fields, columns)


def _check_fields(title: str, fields: Mapping[str, Any], columns: ColumnTypes) -> None:
    if columns and fields.keys() != columns.keys():
        raise SinkError(
            f"{title}: nothing was changed, since the Delta table has the columns {', '.join(fields)}, "
            f"and the items have {', '.join(columns)}"
        )
    for name, field in fields.items():
        if any(key.startswith("delta.") for key in field.get("metadata") or ()):
            raise UnsupportedError(
                f"{title}: the column {name!r} of its Delta table has rules, which to_files() does not know"
            )
        if not field.get("nullable", True):
            raise UnsupportedError(
                f"{title}: the column {name!r} of its Delta table takes no None, which to_files() does not check"
            )
        there = field["type"] if isinstance(field["type"], str) else json.dumps(field["type"], sort_keys=True)
        if columns.get(name) and columns[name] != there:
            raise SinkError(
                f"{title}: nothing was changed, since the column {name!r} of the Delta table is {there}, "
                f"and the items have {columns[name]} there: map() them before, or write into another folder"
            )


def partition_values(folder: str, columns: ColumnTypes, title: str) -> dict[str, str | None]:
    """Return what the log says of a file in a folder that `partition_by` has named.

    Raises:
        SinkError: Delta has no form for a value.
    """
    values: dict[str, str | None] = {}
    for level in folder.split("/")[:-1]:
        name, _, text = level.partition("=")
        kind = columns.get(name, "")
        if kind and kind not in _KINDS_OF_FOLDERS:
            raise SinkError(f"{title}: nothing was changed, since no folder of a Delta table is called after {kind}")
        value = None if text == NONE else unquote(text)
        if value == "":
            raise SinkError(
                f"{title}: nothing was changed, since {name!r} is the empty text in partition_by, "
                "which Delta takes for None"
            )
        values[name] = _moment(value) if value is not None and kind.startswith("timestamp") else value
    return values


def _moment(text: str) -> str:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo is None else moment.astimezone(UTC)).strftime("%Y-%m-%d %H:%M:%S.%f")
