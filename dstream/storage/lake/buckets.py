"""The buckets of a map that this process has read, kept as dicts and brought up to date file by file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dstream.storage.codec.scalars import LARGE_VALUE
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import Layout
from dstream.storage.lake.newest import identities, newest_rows

__all__ = ["BucketCache"]

_ROWS_KEPT = 2_000_000
_BYTES_KEPT = 64 << 20
"""Bytes above which the files of a bucket are not kept if their entries are large as well."""


@dataclass(slots=True)
class _Bucket:
    """The entries of a bucket.

    Attributes:
        files: the live files when it was last brought up to date, which makes it as new as `version`.
        version: the commit up to which it is complete.
        entries: the values by the identity of their keys.
    """

    files: tuple[DataFile, ...]
    version: int
    entries: dict[Any, Any]


class BucketCache:
    """Buckets by number, those used last; bounded by the rows in all of them."""

    def __init__(self, folder: Folder, rows_kept: int = _ROWS_KEPT) -> None:
        self._folder = folder
        self._rows_kept = rows_kept
        self._buckets: OrderedDict[int, _Bucket] = OrderedDict()
        self._rows = 0

    def entries(self, bucket: int, files: tuple[DataFile, ...], version: int, layout: Layout) -> dict[Any, Any] | None:
        """Return the values of a bucket by the identity of their keys, None if it is too large to be kept.

        The dict and what it holds stay the cache's own. `files` are the live ones as of the commit `version`.
        """
        known = self.up_to_date(bucket, files)
        if known is not None:
            return known
        cached = self._buckets.get(bucket)
        if cached is None and (2 * sum(file.rows for file in files) > self._rows_kept or _has_large_values(files)):
            return None
        return self._brought_up_to_date(bucket, cached, files, version, layout)

    def up_to_date(self, bucket: int, files: tuple[DataFile, ...] | None) -> dict[Any, Any] | None:
        """Return the values of a bucket that is known as of these live files, None if it is not."""
        cached = self._buckets.get(bucket)
        if cached is None or cached.files is not files:
            return None
        self._buckets.move_to_end(bucket)
        return cached.entries

    def _brought_up_to_date(
        self, bucket: int, cached: _Bucket | None, files: tuple[DataFile, ...], version: int, layout: Layout
    ) -> dict[Any, Any] | None:
        """Read what is new, or everything.

        Files newer than the cached version hold all that was changed since, also when they were folded
        together with older ones meanwhile: then they hold the newest of those too. But when the oldest
        file of all is newer, what was removed before has left no trace.
        """
        self._drop(bucket)
        entries: dict[Any, Any] = {}
        if cached is not None and files and files[0].version <= cached.version:
            entries, files_to_read = cached.entries, [file for file in files if file.version > cached.version]
        else:
            files_to_read = list(files)
        for file in files_to_read:
            self._read_into(entries, file, layout)
        self._keep(bucket, _Bucket(files, version, entries))
        return entries

    def _read_into(self, entries: dict[Any, Any], file: DataFile, layout: Layout) -> None:
        columns = ("key", "_pk", "_del", "value", "_pv")
        for keys, batch in newest_rows(self._folder, [file], layout, columns, keep_removed=True):
            values = layout.values(batch)
            known = identities(layout, keys)
            entries.update(zip(known, values, strict=True))
            gone = layout.removed(batch)
            if gone.true_count:
                for key, removed in zip(known, gone.to_pylist(), strict=True):
                    if removed:
                        entries.pop(key, None)

    def committed(
        self, bucket: int, files: tuple[DataFile, ...], version: int, changes: Iterable[tuple[Any, Any]]
    ) -> None:
        """Take over what this process has committed itself, if the bucket is known up to there.

        The last of `files` is the commit's own; a value of None says that the entry was removed.
        """
        cached = self._buckets.get(bucket)
        if cached is None or cached.files != files[:-1]:
            return
        if _has_large_values(files):
            self._drop(bucket)
            return
        before = len(cached.entries)
        for key, value in changes:
            if value is None:
                cached.entries.pop(key, None)
            else:
                cached.entries[key] = value
        cached.files, cached.version = files, version
        self._rows += len(cached.entries) - before

    def size(self, bucket: int, files: tuple[DataFile, ...]) -> int | None:
        """Return the number of entries of a bucket, None if it is not known."""
        cached = self._buckets.get(bucket)
        return len(cached.entries) if cached is not None and cached.files is files else None

    def clear(self) -> None:
        """Forget everything."""
        self._buckets.clear()
        self._rows = 0

    def _drop(self, bucket: int) -> None:
        dropped = self._buckets.pop(bucket, None)
        if dropped is not None:
            self._rows -= len(dropped.entries)

    def _keep(self, bucket: int, cached: _Bucket) -> None:
        self._buckets[bucket] = cached
        self._rows += len(cached.entries)
        while self._rows > self._rows_kept and len(self._buckets) > 1:
            _, dropped = self._buckets.popitem(last=False)
            self._rows -= len(dropped.entries)


def _has_large_values(files: tuple[DataFile, ...]) -> bool:
    """Say whether the entries of files take so much memory that they are better read one by one."""
    size, rows = sum(file.size for file in files), sum(file.rows for file in files)
    return size > _BYTES_KEPT and size > rows * LARGE_VALUE
