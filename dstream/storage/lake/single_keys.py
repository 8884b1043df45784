"""Changes of single keys in one commit, their small data files, and the lookup of single keys.

Most puts write a Parquet file of one row. Files of two entries differ only in the key and the value, if these have the
same types and lengths. So the bytes that pyarrow has written once for such an entry are a template for the next ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as parquet

from dstream.delta.actions import DataFile
from dstream.filesystem.folders import StorageFolder
from dstream.schema.scalar_types import is_large
from dstream.schema.type_inference import STORED_SCALARS
from dstream.storage.codec.collection import Codec
from dstream.storage.lake.tables import (
    Layout,
    identities,
    in_parts,
    opened,
    physical,
    release_memory,
    remove_quietly,
    small_file,
    write_file,
    write_parts,
)

__all__ = ["Change", "Changed", "SingleEntries", "is_left_out", "look_up", "matches"]


_MOST_FORMS = 1024
_KEYS = frozenset({str, int, bytes})


class _Form(NamedTuple):
    """A file without the key and the value: the bytes before, between and after them."""

    before: bytes
    between: bytes
    behind: bytes

    def filled(self, key: bytes, value: bytes) -> bytes:
        return b"".join((self.before, key, self.between, value, self.behind))


class SingleEntries:
    """The forms of files of one entry by one layout."""

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._forms: dict[tuple[int, int], _Form | None] = {}

    def file(self, layout: Layout, key: Any, value: Any) -> bytes | None:
        """Return the file that pyarrow would write for an entry, None if pyarrow has to write it.

        This applies to keys and values without a plain form in bytes, and to new lengths: strings of a thousand lengths
        would need a thousand templates, each used once.
        """
        if layout is not self._layout:
            self._layout, self._forms = layout, {}
        cells = _cells(layout, key, value)
        if cells is None:
            return None
        lengths = len(cells[0]), len(cells[1])
        form = self._forms.get(lengths)
        if form is None:
            if lengths not in self._forms:
                # All are removed at once: forms in use are added again with their next two entries, and need no order.
                if len(self._forms) == _MOST_FORMS:
                    self._forms.clear()
                # The first entry of a length makes no form, which costs more than the file that it would save.
                self._forms[lengths] = None
                return None
            form = self._forms[lengths] = _form(layout, key, value, cells)
        return None if form is None else form.filled(*cells)


def _cells(layout: Layout, key: Any, value: Any) -> tuple[bytes, bytes] | None:
    """Return a key and a value as in the pages of a file; None if one is not stored in its column."""
    kinds, codec = (type(key), type(value)), layout.codec
    if is_large(value):
        return None  # A form is made by copies of the value.
    if kinds[0] not in _KEYS or kinds[1] not in _CELLS or layout.journal or not layout.has_keys:
        return None
    if codec.key != STORED_SCALARS[kinds[0]] or codec.value != STORED_SCALARS[kinds[1]]:
        return None
    try:
        return _CELLS[kinds[0]](key), _CELLS[kinds[1]](value)
    except (OverflowError, UnicodeEncodeError):
        return None


_CELLS: dict[type, Callable[[Any], bytes]] = {
    str: str.encode,
    bytes: bytes,
    int: lambda number: number.to_bytes(8, "little", signed=True),
    float: struct.Struct("<d").pack,
    bool: lambda value: b"\1" if value else b"\0",
}
"""The types with a plain form, which is PLAIN in Parquet after the length of a string."""

_OTHERS: dict[type, Callable[[int], Any]] = {
    str: lambda length: "~" * length,
    bytes: lambda length: b"~" * length,
    int: lambda _: -2,
    float: lambda _: -0.5,
    bool: lambda _: False,
}
"""Values of a length that usually differ from the values in use."""


def _form(layout: Layout, key: Any, value: Any, cells: tuple[bytes, bytes]) -> _Form | None:
    """Derive the form from the file of another entry; None if it does not reproduce the file of this one.

    So a pyarrow that writes more about values, such as the least of them, would be noticed.
    """
    other = _OTHERS[type(key)](len(cells[0])), _OTHERS[type(value)](len(cells[1]))
    data = small_file(layout.entries([other[0]], [other[1]]))
    row = parquet.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    ends = {}
    for number in range(row.num_columns):
        column = row.column(number)
        ends[column.path_in_schema] = column.data_page_offset + column.total_compressed_size
    form = _Form(
        data[: ends["key"] - len(cells[0])],
        data[ends["key"] : ends["value"] - len(cells[1])],
        data[ends["value"] :],
    )
    return form if form.filled(*cells) == small_file(layout.entries([key], [value])) else None


class Changed(NamedTuple):
    """The change of one key.

    Attributes:
        bucket: where it belongs.
        known: its identity in a dict.
        key: the key itself.
        old: its value so far, None if it had none.
        new: its value from now on, None if it has none.
    """

    bucket: int
    known: Any
    key: Any
    old: Any
    new: Any


class Change:
    """Changes of different keys. The files of one attempt to commit serve the next one.

    Attributes:
        rows: the contents of the files that were written, by their paths.
        entries: the same for files of one entry that were made without rows, as pairs of a key and a value that cannot
            change.
    """

    def __init__(self, changes: Iterable[Changed], singles: SingleEntries) -> None:
        self.by_bucket: dict[int, list[Changed]] = {}
        for change in changes:
            self.by_bucket.setdefault(change.bucket, []).append(change)
        self._singles = singles
        self._layout: Layout | None = None
        self._files: list[DataFile] = []
        self.rows: dict[str, pa.RecordBatch] = {}
        self.entries: dict[str, tuple[Any, Any]] = {}

    def checked(self, codec: Codec) -> Codec:
        """Return the codec with types that were open inferred from the first change.

        Raises:
            NullElementError: a key is None.
            TypeError: the collection is strict and something is not of its type.
        """
        written = [change for changes in self.by_bucket.values() for change in changes if change.new is not None]
        if written and not codec.is_decided:
            codec = codec.decided_by([written[0].key], [written[0].new])
        for change in written:
            codec.checked(change.key, change.new)
        return codec

    def written(self, folder: StorageFolder, layout: Layout) -> tuple[DataFile, ...]:
        """Return one file per bucket with the changes."""
        if layout != self._layout:
            self.discard(folder)
            for bucket, changes in self.by_bucket.items():
                self._files.append(self._file(folder, layout, bucket, changes))
            self._layout = layout
        return tuple(self._files)

    def _file(self, folder: StorageFolder, layout: Layout, bucket: int, changes: Sequence[Changed]) -> DataFile:
        if len(changes) == 1:
            entry = changes[0].key, changes[0].new
            data = self._singles.file(layout, *entry)
            if data is not None:
                file = write_file(folder, data, 1, bucket)
                self.entries[file.path] = entry
                return file
        parts = in_parts(partial(_encoded, layout), changes)
        file = write_parts(folder, parts, bucket)
        if len(parts) == 1:
            self.rows[file.path] = parts[0]
        return file

    def discard(self, folder: StorageFolder) -> None:
        """Remove the files; no commit may name them."""
        remove_quietly(folder, [file.path for file in self._files])
        self._files, self._layout, self.rows, self.entries = [], None, {}, {}


def _encoded(layout: Layout, changes: Sequence[Changed]) -> pa.RecordBatch:
    olds = [change.old for change in changes]
    return layout.entries([change.key for change in changes], [change.new for change in changes], olds)


def look_up(folder: StorageFolder, files: Sequence[DataFile], layout: Layout, keys: Sequence[Any]) -> dict[Any, Any]:
    """Return the values of `keys`; absent keys are left out.

    Files are read from the newest to the oldest until every key was met. Of a file, the key columns are read
    row group by row group; the values only where a key is found. Keys are passed and returned by their identities
    (`codec.keys`), `files` oldest first.
    """
    missing = set(keys)
    found: dict[Any, Any] = {}
    for file in reversed(files):
        if not missing:
            break
        for key, value, removed in matches(folder, file, layout, list(missing)):
            missing.discard(key)
            if not removed:
                found[key] = value
    # pyarrow would retain the memory of large values.
    if any(map(is_large, found.values())):
        release_memory()
    return found


def matches(folder: StorageFolder, file: DataFile, layout: Layout, keys: list[Any]) -> list[tuple[Any, Any, bool]]:
    """Return the rows of a file with one of the keys: the key, the value, and whether the entry was removed."""
    codec = layout.codec
    named = [codec.decode_key(known[0]) if type(known) is tuple else known for known in keys]
    typed, escaped = (physical(column).drop_null() for column in codec.key_columns(named))
    found: list[tuple[Any, Any, bool]] = []
    with opened(folder, file) as reader:
        there = reader.schema_arrow.names
        for group in range(reader.num_row_groups):
            # A row group has statistics of its typed keys; escaped keys may be in any.
            if not len(escaped) and _are_elsewhere(reader.metadata.row_group(group), typed):
                continue
            columns = [name for name in ("key", "_pk") if name in there]
            rows = _rows(reader.read_row_group(group, columns, use_threads=False), typed, escaped)
            if len(rows):
                table = reader.read_row_group(group, use_threads=False)
                if len(rows) < table.num_rows:  # It copies even if the result is all of it.
                    table = table.take(rows)
                table = table.combine_chunks()
                for batch in table.to_batches():
                    found.extend(_decoded(batch, layout, set(keys)))
    return found


def _are_elsewhere(group: Any, keys: pa.Array) -> bool:
    """Return whether a row group cannot contain any of the keys, by the smallest and the largest key in it."""
    column = group.column(0)
    statistics = column.statistics if column.path_in_schema == "key" else None
    if statistics is None or not statistics.has_min_max or type(statistics.min) not in (int, str, bytes):
        return False
    if is_left_out(statistics.max):
        return False
    wanted = keys.to_pylist()
    if not wanted or type(wanted[0]) is not type(statistics.min):
        return False
    return bool(max(wanted) < statistics.min or min(wanted) > statistics.max)


def is_left_out(highest: Any) -> bool:
    """Return whether the statistics of a row group may lack the largest of its keys.

    One of more than 4 KB is not written, and some versions of pyarrow (14) read it as an empty string. An empty minimum
    is harmless.
    """
    return highest in ("", b"")


def _rows(keys: pa.Table, typed: pa.Array, escaped: pa.Array) -> pa.Array:
    """Return the numbers of the rows that may have one of the keys.

    Arrow cannot search structs; then all rows of the type are returned.
    """
    import pyarrow.compute as compute

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
