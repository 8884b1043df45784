"""Stored rows as columns for engines: those of entries, and those of the items of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as compute

from dstream.spi import ArrowRows
from dstream.storage.codec.kinds import OptionalOf, Record
from dstream.storage.codec.types import Type
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import Layout, opened
from dstream.storage.portions import PORTION_BYTES
from dstream.values.fields import field_names, has_plain_fields

__all__ = ["large_batches", "present", "rows_of_entries", "rows_of_items"]

_ROWS = 32_768
"""So many rows of numbers stay in the cache of a core."""
_ITEMS = 8_192
"""So many items are made at a time, as where rows are read one by one."""
_AS_THEY_ARE = (int, float, bool, str, bytes)
"""Types whose values `to_pylist` gives."""


def large_batches(
    folder: Folder, file: DataFile, columns: Sequence[str] | None = None, start: int = 0, stop: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Read rows of a file, or some of them, in batches that hold several row groups if these are small.

    Raises:
        FileGoneError: a vacuum has removed the file.
    """
    with opened(folder, file) as reader:
        names = None if columns is None else [name for name in columns if name in reader.schema_arrow.names]
        sizes = [reader.metadata.row_group(group).num_rows for group in range(reader.num_row_groups)]
        bytes_there = sum(reader.metadata.row_group(group).total_byte_size for group in range(reader.num_row_groups))
        fitting = PORTION_BYTES * file.rows // max(1, bytes_there)
        stop = file.rows if stop is None else stop
        wanted: list[int] = []
        before = skipped = 0
        for group, size in enumerate(sizes):
            if before < stop and start < before + size:
                if not wanted:
                    skipped = before
                wanted.append(group)
            before += size
        if not wanted:
            return
        place = skipped
        for batch in reader.iter_batches(max(1, min(_ROWS, fitting)), wanted, names, use_threads=False):
            first, last = max(start - place, 0), min(stop - place, batch.num_rows)
            if first < last:
                yield batch.slice(first, last - first)
            place += batch.num_rows


def present(layout: Layout, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of entries that are there."""
    removed = layout.removed(batch)
    if not compute.any(removed).as_py():  # pyright: ignore[reportAttributeAccessIssue]
        return batch
    kept = compute.invert(compute.fill_null(removed, False))  # pyright: ignore[reportAttributeAccessIssue]
    return batch.filter(kept)


def rows_of_entries(layout: Layout, batch: pa.RecordBatch) -> ArrowRows | Iterator[tuple[Any, Any]]:
    """Return entries in columns; (key, value) of each, if one of them does not fit the type of its column."""
    types = {"key": layout.codec.key, "value": layout.codec.value}
    parts: dict[str, Callable[[], Any]] = {}
    for (name, kind), escape in zip(types.items(), ("_pk", "_pv"), strict=True):
        column = _column(layout, batch, name, escape, kind)
        if kind is None or column is None or column.null_count:
            return _entries(layout, batch)
        parts[name] = partial(_part, kind, column)
    items = partial(_at, batch, partial(_entries, layout))
    return ArrowRows(batch.num_rows, parts, frozenset({"place"}), items, _ITEMS)


def _entries(layout: Layout, batch: pa.RecordBatch) -> Iterator[tuple[Any, Any]]:
    return zip(layout.keys(batch), layout.values(batch), strict=True)


def rows_of_items(layout: Layout, batch: pa.RecordBatch) -> ArrowRows | Iterator[Any]:
    """Return items in columns; each of them, if one does not fit the type of the column."""
    kind = layout.codec.value
    column = _column(layout, batch, "value", "_pv", kind)
    if column is None or column.null_count or kind is None:
        return iter(layout.values(batch))
    items = partial(_at, batch, layout.values)
    if isinstance(kind, Record):
        return _record(kind, column, items)
    return ArrowRows(batch.num_rows, {"value": partial(_part, kind, column)}, frozenset(), items, _ITEMS)


def _column(layout: Layout, batch: pa.RecordBatch, name: str, escape: str, kind: Type | None) -> Any:
    """Return the typed column; None if some of the rows stand beside it, or cannot be loaded."""
    if kind is None or kind.arrow is None or name not in batch.schema.names or not _can_be_made(kind):
        return None
    beside = layout.column(batch, escape, pa.binary())
    return None if beside.null_count < batch.num_rows else layout.column(batch, name, kind.arrow)


def _can_be_made(kind: Type) -> bool:
    """Say whether the classes of all values are there: without them nothing can be read."""
    if isinstance(kind, OptionalOf):
        return _can_be_made(kind.inner)
    if isinstance(kind, Record):
        return kind.kind is not None and all(_can_be_made(part) for _, part in kind.fields)
    return kind.hint is not None


def _part(kind: Type, column: Any) -> Any:
    """Return the column of a part, or rows; None if its values are not those of `to_pylist`."""
    while isinstance(kind, OptionalOf):
        kind = kind.inner
    if kind.hint in _AS_THEY_ARE:
        return column
    if not isinstance(kind, Record) or column.null_count:
        return None
    return _record(kind, column, partial(_at, column, kind.from_array))


def _record(kind: Record, column: Any, items: Callable[[Any], Iterable[Any]]) -> ArrowRows:
    parts = {name: partial(_part, part, column.field(place)) for place, (name, part) in enumerate(kind.fields)}
    return ArrowRows(len(column), parts, _reached_by(kind), items, _ITEMS)


def _reached_by(kind: Record) -> frozenset[Literal["attribute", "key", "place"]]:
    made: Any = kind.kind
    names = tuple(name for name, _ in kind.fields)
    if not has_plain_fields(made) or names != field_names(made):
        return frozenset()
    return frozenset({"attribute", "place"} if issubclass(made, tuple) else {"attribute"})


def _at(of: Any, make: Callable[[Any], Iterable[Any]], places: Any) -> Iterable[Any]:
    """Make items of some rows."""
    return make(ArrowRows.chosen(of, places))
