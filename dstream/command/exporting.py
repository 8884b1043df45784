"""Collections as files: Parquet, CSV, and lines of JSON."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from dstream.distributed import IStreamList, IStreamMap
from dstream.distributed.set import IStreamSet

__all__ = ["export_to", "refusal"]

AnyCollection = IStreamMap[Any, Any] | IStreamList[Any] | IStreamSet[Any]


def refusal(file: Path, force: bool) -> str | None:
    """Say why nothing can be written to `file`, or None."""
    if file.suffix.lower() not in _WRITERS:
        return f"{file} must end in {', '.join(_WRITERS)}: the ending says what is written"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}"
    if file.is_dir() or (file.exists() and not force):
        return f"{file} exists; --force replaces it" if not file.is_dir() else f"{file} is a folder"
    return None


def export_to(file: Path, collection: AnyCollection) -> int:
    """Write a collection into `file`, which appears when it is complete; return how many entries or items."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        count = _WRITERS[file.suffix.lower()](unfinished, collection)
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _parquet(file: Path, collection: AnyCollection) -> int:
    import pyarrow.parquet

    if isinstance(collection, IStreamSet):
        items = collection.to_arrow()
        pyarrow.parquet.write_table(items, file)
        return int(items.num_rows)
    count = 0
    with pyarrow.parquet.ParquetWriter(file, collection.store.schema()) as writer:
        for split in collection._splits():
            for batch in split.read_arrow():
                writer.write_batch(batch)
                count += batch.num_rows
    return count


def _csv(file: Path, collection: AnyCollection) -> int:
    with open(file, "w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(_columns(collection))
        count = 0
        for row in _rows(collection):
            writer.writerow(map(_cell, row))
            count += 1
    return count


def _cell(value: Any) -> Any:
    plain = _plain(value)
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list) else plain


def _json_lines(file: Path, collection: AnyCollection) -> int:
    columns = _columns(collection)
    with open(file, "w", encoding="utf-8") as text:
        count = 0
        for row in _rows(collection):
            item = dict(zip(columns, map(_plain, row), strict=True))
            text.write(json.dumps(item, ensure_ascii=False) + "\n")
            count += 1
    return count


_WRITERS: dict[str, Callable[[Path, AnyCollection], int]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".jsonl": _json_lines,
}


def _columns(collection: AnyCollection) -> tuple[str, ...]:
    return ("key", "value") if isinstance(collection, IStreamMap) else ("value",)


def _rows(collection: AnyCollection) -> Iterator[tuple[Any, ...]]:
    if isinstance(collection, IStreamMap):
        yield from ((entry[0], entry[1]) for entry in collection.items())
    else:
        yield from ((item,) for item in collection)


def _plain(value: Any) -> Any:
    """Return a value in the terms of JSON.

    Raises:
        TypeError: JSON has no terms for it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and (names := getattr(value, "_fields", ())):
        return {name: _plain(each) for name, each in zip(names, value, strict=True)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(each) for key, each in value.items()}
    raise TypeError(f"{value!r} has no form in JSON or CSV: export to .parquet, or write a program")
