"""Reading single keys of a bucket that is too large to be kept in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute

from dstream.storage.codec.scalars import is_large
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_columns import physical
from dstream.storage.lake.lake_tables import Layout, opened, release_memory
from dstream.storage.lake.newest import identities

__all__ = ["look_up"]


def look_up(folder: Folder, files: Sequence[DataFile], layout: Layout, keys: Sequence[Any]) -> dict[Any, Any]:
    """Return the values of some keys; those without one are left out.

    Files are read from the newest to the oldest until every key was met. Of a file, the key columns are read
    row group by row group; the values only where a key stands. Keys are given and returned by their
    identities (`codec.keys`), `files` oldest first.
    """
    missing = set(keys)
    found: dict[Any, Any] = {}
    for file in reversed(files):
        if not missing:
            break
        for key, value, removed in _matches(folder, file, layout, list(missing)):
            missing.discard(key)
            if not removed:
                found[key] = value
    if any(map(is_large, found.values())):
        release_memory()
    return found


def _matches(folder: Folder, file: DataFile, layout: Layout, keys: list[Any]) -> list[tuple[Any, Any, bool]]:
    codec = layout.codec
    named = [codec.decode_key(known[0]) if type(known) is tuple else known for known in keys]
    typed, escaped = (physical(column).drop_null() for column in codec.key_columns(named))
    matches: list[tuple[Any, Any, bool]] = []
    with opened(folder, file) as reader:
        there = reader.schema_arrow.names
        for group in range(reader.num_row_groups):
            if not len(escaped) and _are_elsewhere(reader.metadata.row_group(group), typed):
                continue
            columns = [name for name in ("key", "_pk") if name in there]
            rows = _rows(reader.read_row_group(group, columns, use_threads=False), typed, escaped)
            if len(rows):
                table = reader.read_row_group(group, use_threads=False)
                if len(rows) < table.num_rows:  # It copies also what is all of it.
                    table = table.take(rows)
                table = table.combine_chunks()
                for batch in table.to_batches():
                    matches.extend(_decoded(batch, layout, set(keys)))
    return matches


def _are_elsewhere(group: Any, keys: pa.Array) -> bool:
    """Say whether no key can stand in a row group, by the smallest and the largest key in it."""
    column = group.column(0)
    statistics = column.statistics if column.path_in_schema == "key" else None
    if statistics is None or not statistics.has_min_max or type(statistics.min) not in (int, str, bytes):
        return False
    wanted = keys.to_pylist()
    if not wanted or type(wanted[0]) is not type(statistics.min):
        return False
    return bool(max(wanted) < statistics.min or min(wanted) > statistics.max)


def _rows(keys: pa.Table, typed: pa.Array, escaped: pa.Array) -> pa.Array:
    """Return the numbers of the rows that may hold one of the keys.

    Arrow cannot look for structs; then all rows of the type may.
    """
    wanted = None
    for name, values in (("key", typed), ("_pk", escaped)):
        if name in keys.column_names and len(values):
            column = keys.column(name)
            if pa.types.is_nested(column.type):
                mask = compute.is_valid(column)  # pyright: ignore[reportAttributeAccessIssue]
            else:
                mask = compute.is_in(column, values)  # pyright: ignore[reportAttributeAccessIssue]
            wanted = mask if wanted is None else compute.or_(wanted, mask)  # pyright: ignore[reportAttributeAccessIssue]
    return pa.array([], pa.int64()) if wanted is None else compute.indices_nonzero(wanted)  # pyright: ignore[reportAttributeAccessIssue]


def _decoded(batch: pa.RecordBatch, layout: Layout, keys: set[Any]) -> list[tuple[Any, Any, bool]]:
    known = identities(layout, layout.keys(batch))
    rows = zip(known, layout.values(batch), layout.removed(batch).to_pylist(), strict=True)
    return [row for row in rows if row[0] in keys]
