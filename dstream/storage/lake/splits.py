"""Splits of maps and lists at one commit, read in tasks, with their rows as columns for engines."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import pyarrow as pa

from dstream.base.records import record
from dstream.base.threads import contextmanager
from dstream.delta.actions import DataFile
from dstream.errors import SourceError
from dstream.filesystem.folders import StorageFolder
from dstream.schema.containers import OptionalType
from dstream.schema.record_types import ClassType, DictType
from dstream.schema.types import ColumnType, Decode
from dstream.spi import ArrowRows
from dstream.storage.base.encoded_entries import PORTION_BYTES
from dstream.storage.base.named_folders import FileGoneError
from dstream.storage.lake.caches import Positions, rows_between
from dstream.storage.lake.tables import Layout, newest_rows, opened
from dstream.values.fields import field_names, has_plain_fields

__all__ = [
    "LakeEntrySplit",
    "LakeItemSplit",
    "divided",
    "grouped",
    "large_batches",
    "present",
    "rows_of_entries",
    "rows_of_items",
]


_ROWS = 32_768
"""Rows of numbers that fit into the cache of a core."""
_ITEMS = 8_192
"""Items that are made at a time, as where rows are read one by one."""
_AS_THEY_ARE = (int, float, bool, str, bytes)
"""Types whose values `to_pylist` returns."""


def large_batches(
    folder: StorageFolder, file: DataFile, columns: Sequence[str] | None = None, start: int = 0, stop: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Read rows of a file, or a range of them, in batches of several row groups if these are small.

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
        # By bytes as well as rows, since values of a megabyte each would make batches of gigabytes.
        for batch in reader.iter_batches(max(1, min(_ROWS, fitting)), wanted, names, use_threads=False):
            first, last = max(start - place, 0), min(stop - place, batch.num_rows)
            if first < last:
                yield batch.slice(first, last - first)
            place += batch.num_rows


def present(layout: Layout, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of existing entries."""
    removed = layout.removed(batch)
    if not removed.true_count:
        return batch
    import pyarrow.compute as compute

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
        parts[name] = partial(_part, kind, column, layout.codec.decode_value)
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
    decode = layout.codec.decode_value
    if isinstance(kind, ClassType) and not isinstance(kind, DictType):
        return _record(kind, column, items, decode)
    return ArrowRows(batch.num_rows, {"value": partial(_part, kind, column, decode)}, frozenset(), items, _ITEMS)


def _column(layout: Layout, batch: pa.RecordBatch, name: str, escape: str, kind: ColumnType | None) -> Any:
    """Return the typed column; None if rows are missing in it, or it cannot be loaded."""
    # A missing class is an error of the items that need it, raised when they are made.
    if kind is None or kind.arrow is None or name not in batch.schema.names or not _can_be_made(kind):
        return None
    beside = layout.column(batch, escape, pa.binary())
    return None if beside.null_count < batch.num_rows else layout.column(batch, name, kind.arrow)


def _can_be_made(kind: ColumnType) -> bool:
    """Return whether the classes of all values can be loaded: without them no value can be read."""
    if isinstance(kind, OptionalType):
        return _can_be_made(kind.inner)
    if isinstance(kind, ClassType):
        # A dict has no class, and can be made of any fields.
        is_found = kind.kind is not None or isinstance(kind, DictType)
        return is_found and all(_can_be_made(part) for _, part in kind.fields)
    return kind.hint is not None


def _part(kind: ColumnType, column: Any, decode: Decode) -> Any:
    """Return the column of a part, or rows; None if its values differ from `to_pylist`."""
    # None is the null of the column itself, so an optional type has the column of its inner one.
    while isinstance(kind, OptionalType):
        kind = kind.inner
    if kind.hint in _AS_THEY_ARE:
        return column
    if not isinstance(kind, ClassType) or isinstance(kind, DictType) or column.null_count:
        return None
    return _record(kind, column, partial(_at, column, partial(kind.from_array, decode=decode)), decode)


def _record(kind: ClassType, column: Any, items: Callable[[Any], Iterable[Any]], decode: Decode) -> ArrowRows:
    parts = {name: partial(_part, part, column.field(place), decode) for place, (name, part) in enumerate(kind.fields)}
    return ArrowRows(len(column), parts, _reached_by(kind), items, _ITEMS)


def _reached_by(kind: ClassType) -> frozenset[Literal["attribute", "key", "place"]]:
    made: Any = kind.kind
    names = tuple(name for name, _ in kind.fields)
    # An attribute may be computed, and then the column does not contain its value.
    if not has_plain_fields(made) or names != field_names(made):
        return frozenset()
    return frozenset({"attribute", "place"} if issubclass(made, tuple) else {"attribute"})


def _at(of: Any, make: Callable[[Any], Iterable[Any]], places: Any) -> Iterable[Any]:
    """Make items of rows."""
    return make(ArrowRows.chosen(of, places))


_COLUMNS = ("key", "_pk", "_del", "value", "_pv")


@record
class LakeEntrySplit:
    """The entries of a group of buckets.

    Attributes:
        title: the name of the map in errors.
        folder: the folder of its files.
        layout: the meaning of their columns.
        buckets: the files of each bucket, oldest first. They remain until a vacuum, also after a compaction.
    """

    title: str
    folder: StorageFolder
    layout: Layout
    buckets: tuple[tuple[DataFile, ...], ...]

    def read(self) -> Iterator[tuple[Any, Any]]:
        for keys, batch in self._rows():
            yield from zip(keys, self.layout.values(batch), strict=True)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        schema = self.layout.codec.schema()
        for keys, batch in self._rows():
            escapes = [self.layout.column(batch, name, pa.binary()) for name in ("_pk", "_pv")]
            if all(escape.null_count == batch.num_rows for escape in escapes):
                columns = [self.layout.column(batch, field.name, field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
            else:
                yield self.layout.codec.batch(keys, self.layout.values(batch))

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[tuple[Any, Any]]]:
        """Yield the entries in columns, or in an iterator where a batch has entries outside of the columns."""
        with _explaining(self.title):
            for files in self.buckets:
                for batch in self._newest(files):
                    yield rows_of_entries(self.layout, batch)

    def _newest(self, files: tuple[DataFile, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the entries of a bucket; the keys of one file need not be looked at."""
        if len(files) > 1:
            for _, batch in newest_rows(self.folder, files, self.layout, _COLUMNS):
                yield batch
            return
        for file in files:
            for batch in large_batches(self.folder, file, _COLUMNS):
                yield present(self.layout, batch)

    def _rows(self) -> Iterator[tuple[list[Any], pa.RecordBatch]]:
        with _explaining(self.title):
            for files in self.buckets:
                yield from newest_rows(self.folder, files, self.layout, _COLUMNS)


@contextmanager
def _explaining(title: str) -> Iterator[None]:
    """Name the cause of a missing file: no other program removes one that a reader needs."""
    try:
        yield
    except FileGoneError as error:
        raise SourceError(
            f"{title} was compacted and vacuumed while it was read ({error}); keep what a vacuum removes "
            "older than the longest job"
        ) from error


def grouped(groups: Mapping[int, tuple[DataFile, ...]], parallelism: int) -> list[tuple[tuple[DataFile, ...], ...]]:
    """Divide buckets into groups with about equal numbers of rows; empty buckets are left out."""
    sizes = sorted(
        ((sum(file.rows for file in files), bucket) for bucket, files in groups.items() if files), reverse=True
    )
    chosen: list[list[int]] = [[] for _ in range(min(max(parallelism, 1), len(sizes)))]
    heap = [(0, number) for number in range(len(chosen))]
    # The largest first, so that the small ones even out the groups at the end.
    for rows, bucket in sizes:
        total, number = heapq.heappop(heap)
        chosen[number].append(bucket)
        heapq.heappush(heap, (total + rows, number))
    return [tuple(groups[bucket] for bucket in sorted(buckets)) for buckets in chosen]


Part = tuple[DataFile, int, int]
"""A file, and which rows of it."""


@record
class LakeItemSplit:
    """Some items, in order.

    Attributes:
        title: the name of the list in errors.
        folder: the folder of its files.
        layout: the meaning of their columns.
        parts: ranges of rows of files. The files remain until a vacuum, also after a compaction.
    """

    title: str
    folder: StorageFolder
    layout: Layout
    parts: tuple[Part, ...]

    def read(self) -> Iterator[Any]:
        for batch in self._rows():
            yield from self.layout.values(batch)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        codec = self.layout.codec
        schema = codec.schema()
        for batch in self._rows():
            escape = self.layout.column(batch, "_pv", pa.binary())
            if escape.null_count == batch.num_rows and "value" in batch.schema.names:
                column = self.layout.column(batch, "value", schema.field("value").type)
                yield pa.RecordBatch.from_arrays([column], schema=schema)
            else:
                yield codec.batch([], self.layout.values(batch))

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[Any]]:
        """Yield the items in columns, or in an iterator where a batch has items outside of the columns."""
        with _explaining(self.title):
            for file, start, stop in self.parts:
                for batch in large_batches(self.folder, file, None, start, stop):
                    yield rows_of_items(self.layout, batch)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        with _explaining(self.title):
            for part in self.parts:
                yield from rows_between(self.folder, *part)


def divided(positions: Positions, parallelism: int) -> list[tuple[Part, ...]]:
    """Divide a list into ranges of about equal size."""
    count = min(max(parallelism, 1), positions.size)
    bounds = [positions.size * number // count for number in range(count + 1)] if count else []
    return [tuple(positions.parts(start, stop)) for start, stop in pairwise(bounds)]
