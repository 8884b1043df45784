"""Rows and columns of a collection, written to Parquet files and read from them.

The codec thinks in Arrow types; Delta has fewer. Other types are stored losslessly as types that every Delta reader
supports, and are cast back by the type of the codec:

    naive timestamp   -> timestamp with time zone UTC (Delta's naive one needs a table feature)
    duration          -> long, microseconds
    binary of a fixed size, such as a UUID -> binary

A map has the columns `key`, `_pk`, `value`, `_pv`, `_del` and with a journal `_old`, `_old_pv`; a list has
`value`, `_pv`. `_pk`, `_pv`, `_old_pv` contain values that do not fit the corresponding typed column; `_del` marks a
removed entry. A column without a type is not stored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as parquet

from dstream.base.records import record
from dstream.base.threads import contextmanager
from dstream.delta.actions import DataFile, new_path
from dstream.errors import DStreamError, IllegalStateError
from dstream.filesystem.checksums import MismatchError, SummingSink, checked, sums_of
from dstream.filesystem.folders import StorageFolder
from dstream.schema.scalar_types import LARGE_VALUE
from dstream.schema.types import ColumnTooLargeError, ColumnType, array_of
from dstream.storage.base.encoded_entries import PORTION_BYTES
from dstream.storage.base.named_folders import failed
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.keys import identity

__all__ = [
    "KEY_COLUMNS",
    "ORDERED",
    "ROWS_IN_GROUP",
    "DataWriter",
    "Layout",
    "Read",
    "batches",
    "identities",
    "in_parts",
    "logical",
    "newest_rows",
    "opened",
    "physical",
    "physical_type",
    "release_memory",
    "remove_quietly",
    "small_file",
    "sorted_by_key",
    "takes_more",
    "write_file",
    "write_parts",
]


@functools.lru_cache(maxsize=256)
def physical_type(kind: pa.DataType) -> pa.DataType:
    """Return the type under which a column of `kind` is stored."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", physical_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(physical_type(kind.key_type), physical_type(kind.item_type))
    if pa.types.is_time(kind):
        return pa.int64()  # Delta has no times of day.
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, physical_type(field.type)) for field in kind])
    return kind


def physical(column: Any) -> Any:
    """Return a column in its stored form."""
    return _cast(column, physical_type(column.type))


def logical(column: Any, kind: pa.DataType) -> Any:
    """Return a stored column in the type of the codec."""
    return _cast(column, kind)


def _cast(column: Any, kind: pa.DataType) -> Any:
    return column if column.type == kind else column.cast(kind)


T = TypeVar("T")

Read = Callable[[StorageFolder, DataFile, Sequence[str] | None], Iterator[pa.RecordBatch]]
"""Function that reads columns of a file, or all of them, as `batches` does."""

ORDERED = {int: pa.int64(), str: pa.string(), bytes: pa.binary()}
"""The types of keys whose order is the order of their column, with the type of the column."""

ROWS_IN_GROUP = 8192
"""Rows that are written, and later read, at a time."""
NOT_COMMITTED = -1
"""The version of a file that is not committed yet."""

_SMALL_FILE = 1000
_PLAIN_VALUE = 16 << 20
"""Bytes of a value above which a file is not compressed, since that takes as many bytes of memory again."""
_READ_AT_ONCE = 20_000
_BYTES_AT_ONCE = PORTION_BYTES


@record(slots=False)
class Layout:
    """The columns of a collection, and the conversion of entries and items into them.

    Attributes:
        codec: how keys and values are encoded.
        has_keys: whether it contains entries; a list contains items.
        journal: whether each change records the old value.
    """

    codec: Codec
    has_keys: bool
    journal: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that are stored; columns of unknown types are left out."""
        fields = [*self._key_fields(), *self._value_fields()]
        if self.has_keys:
            fields.append(pa.field("_del", pa.bool_()))
        if self.journal:
            fields.extend(pa.field(_OLD[field.name], field.type) for field in self._value_fields())
        return pa.schema(fields)

    @property
    def is_sorted(self) -> bool:
        """Return whether large files are sorted by key; a journal has the order of its events."""
        key = self.codec.key
        return self.has_keys and not self.journal and key is not None and key.hint in tuple(ORDERED)

    def _key_fields(self) -> list[pa.Field]:
        return _stored(self.codec.key, self.codec.key_schema()) if self.has_keys else []

    def _value_fields(self) -> list[pa.Field]:
        return _stored(self.codec.value, self.codec.value_schema())

    def entries(self, keys: Sequence[Any], values: Sequence[Any], olds: Sequence[Any] | None = None) -> pa.RecordBatch:
        """Return entries as stored; a value of None removes the entry."""
        columns: dict[str, Any] = dict(zip(("key", "_pk"), self.codec.key_columns(keys), strict=True))
        columns.update(zip(("value", "_pv"), self.codec.value_columns(values), strict=True))
        columns["_del"] = array_of([value is None for value in values], pa.bool_())
        if self.journal:
            known = olds if olds is not None else [None] * len(keys)
            columns.update(zip(("_old", "_old_pv"), self.codec.value_columns(known), strict=True))
        return self._batch(columns)

    def items(self, values: Sequence[Any]) -> pa.RecordBatch:
        """Return the items of a list as stored."""
        return self._batch(dict(zip(("value", "_pv"), self.codec.value_columns(values), strict=True)))

    def _batch(self, columns: dict[str, Any]) -> pa.RecordBatch:
        schema = self.schema
        return pa.RecordBatch.from_arrays([physical(columns[name]) for name in schema.names], schema=schema)

    def adapted(self, batch: pa.RecordBatch, without_olds: bool = False) -> pa.RecordBatch:
        """Return stored rows with all columns of this layout; one that the file did not have yet is null."""
        schema = self.schema
        kept = {name for name in batch.schema.names if not (without_olds and name.startswith("_old"))}
        columns = [
            self.column(batch, field.name, field.type) if field.name in kept else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def keys(self, batch: pa.RecordBatch) -> list[Any]:
        """Return the keys of stored rows."""
        typed, escape = self._typed(batch, "key", self.codec.key), self.column(batch, "_pk", pa.binary())
        if typed.null_count and typed.null_count + escape.null_count != batch.num_rows:
            raise IllegalStateError(f"{self.codec} is damaged: a row of one of its files has no key, or two")
        return self.codec.keys_from(typed, escape)

    def removed(self, batch: pa.RecordBatch) -> Any:
        """Return the column that marks the rows of removed entries."""
        return self.column(batch, "_del", pa.bool_())

    def column(self, batch: pa.RecordBatch, name: str, kind: pa.DataType) -> Any:
        """Return a column of stored rows in a type of the codec.

        Raises:
            IllegalStateError: the column is missing, or has another type.
        """
        try:
            return logical(batch.column(name), kind)
        except (KeyError, pa.ArrowException) as error:
            raise IllegalStateError(
                f"{self.codec} is damaged: the column {name} of one of its files is not there, or not of the type "
                f"{kind}: {error}"
            ) from error

    def values(self, batch: pa.RecordBatch, column: str = "value") -> list[Any]:
        """Return the values of stored rows, or the old values of column `_old`; None if there is none."""
        escape = {"value": "_pv", "_old": "_old_pv"}[column]
        typed = self._typed(batch, column, self.codec.value)
        return self.codec.values_from(typed, self.column(batch, escape, pa.binary()))

    def _typed(self, batch: pa.RecordBatch, name: str, kind: ColumnType | None) -> Any:
        """Return a typed column; all null if there was no type yet when the file was written."""
        arrow = None if kind is None else kind.arrow
        if arrow is None or name not in batch.schema.names:
            return pa.nulls(batch.num_rows, arrow or pa.null())
        return self.column(batch, name, arrow)


_OLD = {"value": "_old", "_pv": "_old_pv"}


def _stored(kind: ColumnType | None, fields: Sequence[pa.Field]) -> list[pa.Field]:
    has_column = kind is not None and kind.arrow is not None
    return [pa.field(field.name, physical_type(field.type)) for field in fields[0 if has_column else 1 :]]


def write_rows(folder: StorageFolder, batch: pa.RecordBatch, bucket: int, prefix: str = "") -> DataFile:
    """Write rows into a new file that no reader sees yet."""
    if batch.num_rows > _SMALL_FILE or takes_more(batch, PORTION_BYTES):
        with DataWriter(folder, batch.schema, bucket, prefix) as writer:
            writer.write(batch)
        return writer.file
    return write_file(folder, small_file(batch), batch.num_rows, bucket, prefix)


def small_file(batch: pa.RecordBatch) -> bytes:
    """Return a file of a few rows, neither compressed nor described: that halves the time it takes."""
    sink = pa.BufferOutputStream()
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False, "store_schema": False}
    with parquet.ParquetWriter(sink, batch.schema, **options) as rows:
        rows.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def write_file(folder: StorageFolder, data: bytes, rows: int, bucket: int, prefix: str = "") -> DataFile:
    """Write a new file, invisible for readers."""
    path = new_path(prefix)
    folder.write(path, data)
    return DataFile(NOT_COMMITTED, 0, bucket, path, len(data), rows, sums_of(data))


def takes_more(batch: pa.RecordBatch, size: int) -> bool:
    """Return whether rows take more than `size` bytes.

    The size of the buffers takes 0.2 us to compute. Rows may be a slice of them, whose size takes 9 us.
    """
    return bool(batch.get_total_buffer_size() > size and batch.nbytes > size)


def write_parts(folder: StorageFolder, parts: Sequence[pa.RecordBatch], bucket: int, prefix: str = "") -> DataFile:
    """Write rows, at least one, into a new file that no reader sees yet; more than 2 GiB of a column in parts."""
    if len(parts) == 1:
        return write_rows(folder, parts[0], bucket, prefix)
    with DataWriter(folder, parts[0].schema, bucket, prefix) as writer:
        for part in parts:
            writer.write(part)
    return writer.file


def in_parts(encode: Callable[[Sequence[T]], pa.RecordBatch], rows: Sequence[T]) -> list[pa.RecordBatch]:
    """Return rows as a batch, or as several where a column would pass 2 GiB."""
    try:
        return [encode(rows)]
    except ColumnTooLargeError:
        if len(rows) < 2:  # Then the error belongs to the single value.
            raise
    middle = len(rows) // 2
    return [*in_parts(encode, rows[:middle]), *in_parts(encode, rows[middle:])]


def sorted_by_key(rows: pa.Table) -> pa.Table:
    """Return rows sorted by their keys."""
    import pyarrow.compute as compute  # imported on use: it takes 20 ms, and a small map does not need it

    keys = rows.column("key")
    pairs = keys.slice(0, max(0, len(keys) - 1)), keys.slice(1)
    if not keys.null_count and compute.all(compute.less(*pairs), min_count=0).as_py():  # pyright: ignore[reportAttributeAccessIssue]
        return rows
    return rows.take(compute.sort_indices(rows, [("key", "ascending")]))  # pyright: ignore[reportAttributeAccessIssue]


class DataWriter:
    """Writes a new file batch by batch; `file` has its location after it was closed.

    A failure inside the `with` removes the file.
    """

    def __init__(self, folder: StorageFolder, schema: pa.Schema, bucket: int, prefix: str = "") -> None:
        self._bucket = bucket
        self._path = new_path(prefix)
        self._opened = folder.writing(self._path)
        self._sink = SummingSink(self._opened.__enter__())
        self._rows = 0
        self._schema = schema
        self._writer: parquet.ParquetWriter | None = None
        self._is_large = False

    def _begun(self, bytes_of_one: int) -> parquet.ParquetWriter:
        """Begin the file with options for the size of its first rows.

        A dictionary and statistics copy each value three times, and compression copies it once (pyarrow 26).
        """
        self._is_large = bytes_of_one > LARGE_VALUE
        options: dict[str, Any] = {"compression": "zstd", "compression_level": 1}
        if bytes_of_one > _PLAIN_VALUE:
            options = {"compression": "none"}
        if self._is_large:
            options.update(use_dictionary=False, write_statistics=False)
        return parquet.ParquetWriter(self._sink, self._schema, store_schema=False, **options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows, in groups of a few megabytes at most: a group is the unit of readers."""
        if self._writer is None:
            self._writer = self._begun(batch.nbytes // max(1, batch.num_rows))
        fitting = PORTION_BYTES * batch.num_rows // max(1, batch.nbytes)
        self._writer.write_batch(batch, row_group_size=max(1, min(fitting, ROWS_IN_GROUP)))
        self._rows += batch.num_rows

    def __enter__(self) -> DataWriter:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            try:
                self._end()
            except BaseException as failure:
                # The file is removed also after an interrupt, since nothing else would until a vacuum.
                self._give_up(failure)
                raise
            self._opened.__exit__(None, None, None)
            size, sums = self._sink.size, self._sink.sums.text()
            self.file = DataFile(NOT_COMMITTED, 0, self._bucket, self._path, size, self._rows, sums)
        else:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        """Remove the file. The Parquet writer must not try to end it, now or when it is collected."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
            self._writer.is_open = False
        self._opened.__exit__(type(error), error, error.__traceback__)

    def _end(self) -> None:
        if self._writer is None:
            # No row arrived, but a file without a footer would be none of Parquet.
            self._writer = self._begun(0)
        self._writer.close()
        if self._is_large:
            self._writer = None
            release_memory()


def release_memory() -> None:
    """Return memory that pyarrow has allocated for large values and would retain."""
    pa.default_memory_pool().release_unused()


def remove_quietly(folder: StorageFolder, paths: Iterable[str]) -> None:
    """Remove files that no commit names; the rest is left to the next vacuum."""
    for path in paths:
        try:
            folder.delete(path)
        except Exception:
            continue


@contextmanager
def opened(folder: StorageFolder, file: DataFile, metadata: Any = None) -> Iterator[parquet.ParquetFile]:
    """Open a file to read rows from it; they are compared with their checksums.

    Args:
        folder: where it is.
        file: as the log names it.
        metadata: its footer if that was read before.

    Raises:
        FileGoneError: a vacuum has removed the file.
        EngineError: the disk, or the network drive, fails.
        IllegalStateError: it is not as it was written, no Parquet file, or has more or fewer rows than in the log.
    """
    with folder.open(file.path) as handle:
        try:
            reader = parquet.ParquetFile(checked(handle, file.size, file.sums), metadata=metadata)
            if reader.metadata.num_rows != file.rows:
                raise MismatchError(f"it has {reader.metadata.num_rows} rows, and its log says {file.rows}")
            yield reader
        except (pa.ArrowException, MismatchError, OSError) as error:
            if isinstance(error, FileNotFoundError | DStreamError):
                raise
            if isinstance(error, OSError) and error.errno:  # pyarrow's own about contents have no number
                raise failed(folder.title, "reading", f"{folder.url}/{file.path}", error) from error
            raise IllegalStateError(
                f"{folder.title} is damaged: its file {folder.url}/{file.path}: {error}; restore it from a backup"
            ) from error


def batches(folder: StorageFolder, file: DataFile, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Read the rows of a file, a bounded number at a time; columns that it does not have are left out.

    Raises:
        FileGoneError: a vacuum has removed the file.
    """
    with opened(folder, file) as reader:
        names = None if columns is None else [name for name in columns if name in reader.schema_arrow.names]
        if file.rows <= _READ_AT_ONCE and _bytes_of(reader) <= _BYTES_AT_ONCE:
            # pyarrow's threads make a small file three times as slow (26), and tasks share the cores already.
            yield from reader.read(names, use_threads=False).combine_chunks().to_batches()
            return
        for group in range(reader.num_row_groups):
            yield from reader.read_row_group(group, names, use_threads=False).to_batches(ROWS_IN_GROUP)


def _bytes_of(reader: parquet.ParquetFile) -> int:
    """Return how many bytes all columns of a file have when they are not compressed."""
    return sum(reader.metadata.row_group(group).total_byte_size for group in range(reader.num_row_groups))


KEY_COLUMNS = ("key", "_pk", "_del")
"""The columns that decide which rows remain."""

_STAND_FOR_THEMSELVES = (str, int, bytes)


def newest_rows(
    folder: StorageFolder,
    files: Sequence[DataFile],
    layout: Layout,
    columns: Sequence[str] | None = None,
    keep_removed: bool = False,
    read: Read = batches,
) -> Iterator[tuple[list[Any], pa.RecordBatch]]:
    """Yield each key of a bucket once, with its newest row.

    The newest files are read first; the keys of all but the oldest, which is usually the largest, remain in memory. The
    oldest is streamed.

    Args:
        folder: the folder of the files.
        layout: the meaning of their columns.
        files: the files of one bucket, oldest first.
        columns: the columns to read; the key and `_del` must be among them.
        keep_removed: whether the rows of removed entries are yielded too.
        read: reads a file.

    Returns:
        Keys and the rows that belong to them.
    """
    seen: set[Any] = set()
    for number in range(len(files) - 1, -1, -1):
        for batch in read(folder, files[number], columns):
            keys = layout.keys(batch)
            known = identities(layout, keys)
            yield from _remaining(keys, known, batch, layout.removed(batch), seen, keep_removed)
            # A file has a key at most once, so the keys of the oldest one are compared with nothing.
            if number:
                seen.update(known)


def identities(layout: Layout, keys: list[Any]) -> list[Any]:
    """Return the identity of each key in a dict."""
    kind = layout.codec.key
    if (
        kind is not None
        and kind.hint in _STAND_FOR_THEMSELVES
        and all(map(_STAND_FOR_THEMSELVES.__contains__, map(type, keys)))
    ):
        return keys
    return list(map(identity, keys))


def _remaining(
    keys: list[Any], known: list[Any], batch: pa.RecordBatch, removed: Any, seen: set[Any], keep_removed: bool
) -> Iterator[tuple[list[Any], pa.RecordBatch]]:
    skips_removed = not keep_removed and removed.true_count > 0
    # Most batches lose no row, and to take rows would copy them.
    if not skips_removed and seen.isdisjoint(known):
        if keys:
            yield keys, batch
        return
    gone = removed.to_pylist() if skips_removed else [False] * len(keys)
    rows = [row for row, key in enumerate(known) if not gone[row] and key not in seen]
    if rows:
        yield [keys[row] for row in rows], batch.take(pa.array(rows, pa.int64()))
