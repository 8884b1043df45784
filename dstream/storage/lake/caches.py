"""Caches of a process: buckets of maps, files of lists, recently written rows, and copies of their values."""

from __future__ import annotations

import datetime
import decimal
import uuid
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import pyarrow as pa

from dstream.base.records import record
from dstream.delta.actions import DataFile
from dstream.filesystem.folders import StorageFolder
from dstream.schema.scalar_types import LARGE_VALUE
from dstream.storage.codec.collection import Codec
from dstream.storage.lake.pages import MISSING, PageCache
from dstream.storage.lake.tables import Layout, Read, batches, identities, newest_rows, opened, takes_more

__all__ = [
    "SHARED",
    "BucketCache",
    "FileCache",
    "Positions",
    "RecentRows",
    "Values",
    "own_copy",
    "rows_between",
    "same_value",
]


_ROWS_KEPT = 2_000_000
_FILES_KEPT = 1 << 30
"""Bytes of the files whose buckets are cached: rows alone bound no memory, as one of them may have any size."""
_NEW_ROWS = 8192
"""The most rows of new files of a bucket that are in a dict, above the pages of its older files."""
_NEW_BYTES = 16 << 20
"""The most bytes of these files."""
_BYTES_KEPT = 64 << 20
"""Bytes above which the files of a bucket are not cached if their entries are large as well."""


class Values(Protocol):
    """The values of a bucket by the identity of their keys: a dict, or an object that looks them up."""

    def get(self, key: Any, /) -> Any:
        """Return the value of a key, or None."""
        ...


@dataclass(slots=True)
class _Bucket:
    """The entries of a bucket.

    Attributes:
        files: the live files at the last update, which makes it as new as `version`.
        older: the first of them, if they are read page by page and are not in the entries.
        version: the commit up to which it is complete.
        entries: the values by the identity of their keys; None if the entry was removed and older files may have it.
        values: the values of all files.
        size: the bytes of the files of `entries`.
    """

    files: tuple[DataFile, ...]
    older: tuple[DataFile, ...]
    version: int
    entries: dict[Any, Any]
    values: Values
    size: int

    def change(self, key: Any, value: Any) -> None:
        """Set the value of a key; None if the entry was removed."""
        if value is None and not self.older:
            self.entries.pop(key, None)
        else:
            self.entries[key] = value


@record
class _Layers:
    """The values of a large bucket: new files in a dict, older files in pages."""

    entries: dict[Any, Any]
    pages: PageCache
    older: tuple[DataFile, ...]
    layout: Layout

    def get(self, key: Any, /) -> Any:
        value = self.entries.get(key, MISSING)
        if value is MISSING:
            value = self.pages.get(self.older, self.layout, key)
        return None if value is MISSING else value


class BucketCache:
    """Buckets by number, those used last; bounded by the rows in all of them and the bytes of their files.

    Of a map that is larger than that, older files are read page by page.
    """

    def __init__(
        self, folder: StorageFolder, buckets: int, rows_kept: int = _ROWS_KEPT, files_kept: int = _FILES_KEPT
    ) -> None:
        self._folder = folder
        # Keys are spread over buckets by a hash, so one bucket shows how large the map is.
        self._parts = max(2, buckets)
        self._rows_kept = rows_kept
        self._files_kept = files_kept
        self._new_rows = min(_NEW_ROWS, rows_kept // (4 * self._parts))
        self._buckets: OrderedDict[int, _Bucket] = OrderedDict()
        self._pages = PageCache(folder)
        self._rows = 0
        self._size = 0

    def entries(self, bucket: int, files: tuple[DataFile, ...], version: int, layout: Layout) -> Values | None:
        """Return the values of a bucket by the identity of their keys, None if its values are too large to be cached.

        Its contents belong to the cache. `files` are the live ones as of the commit `version`.
        """
        known = self.up_to_date(bucket, files, layout)
        if known is not None:
            return known
        if _has_large_values(files):  # also if others have written them since it was cached
            self._drop(bucket)
            return None
        return self._brought_up_to_date(bucket, self._buckets.get(bucket), files, version, layout)

    def up_to_date(self, bucket: int, files: tuple[DataFile, ...] | None, layout: Layout) -> Values | None:
        """Return the values of a bucket that is cached as of these live files, or None."""
        cached = self._buckets.get(bucket)
        # The log makes a new tuple for each change of a bucket, so its identity is the whole comparison.
        if cached is None or cached.files is not files:
            return None
        values = cached.values
        if type(values) is _Layers and values.layout is not layout:
            return None
        self._buckets.move_to_end(bucket)
        return values

    def _brought_up_to_date(
        self, bucket: int, cached: _Bucket | None, files: tuple[DataFile, ...], version: int, layout: Layout
    ) -> Values:
        """Read the new rows, or all of them.

        Files newer than the cached version contain all changes since, even if they were compacted with older files:
        then they contain the newest rows of those too. But if the oldest file of all is newer, earlier removals have
        left no trace.
        """
        # It leaves the cache first, since its dict is changed in place, and a file that was removed may stop this
        # halfway.
        self._drop(bucket)
        older = self._older(cached, files)
        entries: dict[Any, Any] = {}
        if cached is not None and cached.older == older and files and files[0].version <= cached.version:
            entries, files_to_read = cached.entries, [file for file in files if file.version > cached.version]
        else:
            files_to_read = list(files[len(older) :])
        values: Values = _Layers(entries, self._pages, older, layout) if older else entries
        made = _Bucket(files, older, version, entries, values, _size(files[len(older) :]))
        for file in files_to_read:
            self._read_into(made, file, layout)
        self._keep(bucket, made)
        return values

    def _older(self, cached: _Bucket | None, files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
        """Return the first files of a bucket as far as they are to be read page by page."""
        rows, size = sum(file.rows for file in files), _size(files)
        # A dict remains one until others need its room, or concurrent writes exceed the room.
        parts = 1 if cached is not None and not cached.older else self._parts
        if parts * rows <= self._rows_kept and size <= self._files_kept:
            return ()
        layered = 0 if cached is None else len(cached.older)
        # Files do not change their layer with each commit, or all new ones would be read again.
        if cached is not None and files[:layered] == cached.older and self._is_new(files[layered:], 2):
            return cached.older
        count = len(files)
        while count > 1 and self._is_new(files[count - 1 :]):
            count -= 1
        return files[:count]

    def _is_new(self, files: tuple[DataFile, ...], factor: int = 1) -> bool:
        """Return whether the newest files have few enough entries for a dict."""
        rows = sum(file.rows for file in files)
        return rows <= factor * self._new_rows and _size(files) <= factor * _NEW_BYTES

    def _read_into(self, bucket: _Bucket, file: DataFile, layout: Layout) -> None:
        columns = ("key", "_pk", "_del", "value", "_pv")
        # Rows of removed entries are read as well: they remove entries of older files from the dict.
        for keys, batch in newest_rows(self._folder, [file], layout, columns, keep_removed=True):
            values = layout.values(batch)
            known = identities(layout, keys)
            bucket.entries.update(zip(known, values, strict=True))
            gone = layout.removed(batch)
            if gone.true_count:
                for key, removed in zip(known, gone.to_pylist(), strict=True):
                    if removed:
                        bucket.change(key, None)

    def committed(
        self, bucket: int, files: tuple[DataFile, ...], version: int, changes: Iterable[tuple[Any, Any]]
    ) -> None:
        """Apply this process's own commit, if the bucket is cached up to it.

        The last of `files` is the commit's own; a value of None means that the entry was removed.
        """
        cached = self._buckets.get(bucket)
        if cached is None or cached.files != files[:-1]:
            return
        if _has_large_values(files):
            self._drop(bucket)
            return
        self._drop(bucket)
        for key, value in changes:
            cached.change(key, value)
        cached.files, cached.version, cached.size = files, version, _size(files[len(cached.older) :])
        # Otherwise a process that changes more than it reads would have all its changes in the dict.
        if not cached.older or self._is_new(files[len(cached.older) :], 2):
            self._keep(bucket, cached)

    def size(self, bucket: int, files: tuple[DataFile, ...]) -> int | None:
        """Return the number of entries of a bucket, None if it is not known."""
        cached = self._buckets.get(bucket)
        if cached is None or cached.files is not files or cached.older:
            return None
        return len(cached.entries)

    def clear(self) -> None:
        """Forget everything."""
        self._buckets.clear()
        self._pages.clear()
        self._rows = self._size = 0

    def _drop(self, bucket: int) -> None:
        dropped = self._buckets.pop(bucket, None)
        if dropped is not None:
            self._rows -= len(dropped.entries)
            self._size -= dropped.size

    def _keep(self, bucket: int, cached: _Bucket) -> None:
        self._buckets[bucket] = cached
        self._rows += len(cached.entries)
        self._size += cached.size
        # The last one is dropped as well: a process that only writes would cache everything that it has written.
        while self._rows > self._rows_kept or self._size > self._files_kept:
            self._drop(next(iter(self._buckets)))


def _size(files: tuple[DataFile, ...]) -> int:
    return sum(file.size for file in files)


def _has_large_values(files: tuple[DataFile, ...]) -> bool:
    """Return whether the entries of files are so large that they are better read one by one."""
    size, rows = _size(files), sum(file.rows for file in files)
    return size > _BYTES_KEPT and size > rows * LARGE_VALUE


_MOST = 2048
_LARGEST = 2048


class RecentRows:
    """The rows of up to 2,048 small files, the last ones that were written, 4 MB in all. No file ever changes.

    Opening and reading a Parquet file of one row takes longer than writing it.
    """

    def __init__(self) -> None:
        self._rows: dict[str, pa.RecordBatch | tuple[Any, Any]] = {}

    def keep(self, rows: Mapping[str, pa.RecordBatch], entries: Mapping[str, tuple[Any, Any]] | None = None) -> None:
        """Cache the rows of files by their paths, and the entry of single-entry files; large rows are not cached.

        Keys and values of entries are strings, bytes and numbers.
        """
        self._rows.update((path, batch) for path, batch in rows.items() if not takes_more(batch, _LARGEST))
        for path, entry in (entries or {}).items():
            if all(isinstance(part, int | float) or len(part) < _LARGEST // 2 for part in entry):
                self._rows[path] = entry
        # A dict has insertion order, so the first one is the oldest.
        while len(self._rows) > _MOST:
            del self._rows[next(iter(self._rows))]

    def reader(self, files: Sequence[DataFile], layout: Layout) -> Read:
        """Return the reader of the files of a bucket, oldest first.

        The last ones with a single cached entry each are read together in place of the newest.
        """
        entries: dict[Any, Any] = {}
        together: set[str] = set()
        for file in reversed(files):
            entry = self._rows.get(file.path)
            if not isinstance(entry, tuple):
                break
            # The newest file is read first, so its value of a key wins.
            entries.setdefault(*entry)
            together.add(file.path)

        def read(
            folder: StorageFolder, file: DataFile, columns: Sequence[str] | None = None
        ) -> Iterator[pa.RecordBatch]:
            if file.path in together:
                if file is not files[-1]:
                    return iter(())
                return iter((layout.entries(list(entries), list(entries.values())),))
            kept = self._rows.get(file.path)
            if kept is None:
                return batches(folder, file, columns)
            return iter((layout.entries([kept[0]], [kept[1]]) if isinstance(kept, tuple) else kept,))

        return read


SHARED = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        str,
        bytes,
        datetime.date,
        datetime.datetime,
        datetime.timedelta,
        decimal.Decimal,
        uuid.UUID,
    }
)
"""Types of immutable values."""

# Floats are compared as bytes: NaN equals not even itself, and 0.0 equals -0.0.
_COMPARED = frozenset({bool, int, str, bytes})


def own_copy(codec: Codec, value: Any) -> Any:
    """Return a value that its receiver may change without changing `value`."""
    if type(value) in SHARED:
        return value
    # A value of another type than the map's may contain lists.
    if codec.value is not None and codec.value.is_immutable and codec.value.fits(value):
        return value
    return codec.decode_value(codec.encode_value(value))


def same_value(codec: Codec, left: Any, right: Any) -> bool:
    """Return whether two values cannot be distinguished; False if that is not certain."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if type(left) in _COMPARED:
        return bool(left == right)
    return codec.encode_value(left) == codec.encode_value(right)


_CACHED_FILE = 10_000
_CACHED_ROWS = 200_000
_CACHED_BYTES = 4 * _BYTES_KEPT

Files = tuple[DataFile, ...]


class Positions:
    """The positions at which the files of a list begin, counted in items."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._starts = list(accumulate((file.rows for file in files), initial=0))

    @property
    def size(self) -> int:
        """The number of items."""
        return self._starts[-1]

    def touched(self, start: int, stop: int) -> tuple[int, int]:
        """Return the first file with items from `start` up to, not including, `stop`, and the one after the last.

        An empty stretch touches the file that it is in; at the end of the list, none.
        """
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, max(stop, start + 1) - 1)
        return min(first, len(self.files)), min(last, len(self.files))

    def start(self, number: int) -> int:
        """Return the position of the first item of a file."""
        return self._starts[number]

    def parts(self, start: int, stop: int) -> Iterator[tuple[DataFile, int, int]]:
        """Yield the files between two positions, each with its rows in that range."""
        stop = min(stop, self.size)
        if start >= stop:
            return
        for number in range(*self.touched(start, stop)):
            offset, file = self._starts[number], self.files[number]
            yield file, max(start - offset, 0), min(stop - offset, file.rows)


def rows_between(folder: StorageFolder, file: DataFile, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file from `start` up to, not including, `stop`; only row groups with such rows are read."""
    with opened(folder, file) as reader:
        offset = 0
        for group in range(reader.num_row_groups):
            rows = reader.metadata.row_group(group).num_rows
            first, last = max(start - offset, 0), min(stop - offset, rows)
            if first < last:
                table = reader.read_row_group(group, use_threads=False)
                yield from table.slice(first, last - first).combine_chunks().to_batches()
            offset += rows


class FileCache:
    """The items of small files that were read last, bounded by their number and the bytes of the files."""

    def __init__(self, folder: StorageFolder) -> None:
        self._folder = folder
        self._items: OrderedDict[str, tuple[DataFile, list[Any]]] = OrderedDict()
        self._rows = 0
        self._size = 0

    def read(self, positions: Positions, layout: Layout, start: int, stop: int) -> list[Any]:
        """Return copies of the items between two positions."""
        items: list[Any] = []
        for file, first, last in positions.parts(start, stop):
            # For one item of a larger file its row group is read, and not everything else too.
            if file.rows <= _CACHED_FILE and file.size <= _CACHED_BYTES:
                items.extend(own_copy(layout.codec, item) for item in self._whole(file, layout)[first:last])
            else:
                for batch in rows_between(self._folder, file, first, last):
                    items.extend(layout.values(batch))
        return items

    def _whole(self, file: DataFile, layout: Layout) -> list[Any]:
        kept = self._items.get(file.path)
        if kept is not None:
            self._items.move_to_end(file.path)
            return kept[1]
        items = [item for batch in rows_between(self._folder, file, 0, file.rows) for item in layout.values(batch)]
        self._items[file.path] = file, items
        self._rows += len(items)
        self._size += file.size
        while len(self._items) > 1 and (self._rows > _CACHED_ROWS or self._size > _CACHED_BYTES):
            _, (dropped, gone) = self._items.popitem(last=False)
            self._rows -= len(gone)
            self._size -= dropped.size
        return items

    def clear(self) -> None:
        """Forget everything."""
        self._items.clear()
        self._rows = self._size = 0
