"""Merges of the rows of a bucket: written by jobs, replaced by newer ones, compacted into one file."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.delta.actions import DataFile
from dstream.errors import NullElementError, UnstableKeyError
from dstream.filesystem.folders import StorageFolder
from dstream.spi.store import UNCHANGED, Merge, Revision, Update
from dstream.storage.base.encoded_entries import PORTION_BYTES, Portions
from dstream.storage.base.named_folders import FileGoneError
from dstream.storage.codec.keys import bucket_of, encode_key
from dstream.storage.lake.caches import own_copy
from dstream.storage.lake.tables import (
    KEY_COLUMNS,
    ROWS_IN_GROUP,
    DataWriter,
    Layout,
    Read,
    batches,
    identities,
    in_parts,
    newest_rows,
    sorted_by_key,
    write_parts,
)

__all__ = [
    "MAX_FILES",
    "Fold",
    "LakeEntryWriter",
    "MergePlan",
    "fold_all",
    "fold_small",
    "has_removed_rows",
    "merge_bucket",
    "rewritten",
    "update_bucket",
    "without_values",
    "write_portions",
]


_COLUMNS = ("key", "_pk", "_del", "value", "_pv")

Rows = tuple[list[Any], list[Any]]
"""Keys and values."""


@record
class MergePlan:
    """The strategy of a job for existing entries.

    Attributes:
        merge: merges the existing value with the new one; None if the new one replaces it.
        replace: entries that the job does not write are removed.
        journal: old values are recorded.
    """

    merge: Merge | None
    replace: bool
    journal: bool

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it with functions that the tasks could not import."""
        return _plan, (dumps(self.merge), self.replace, self.journal)

    @property
    def reads_current(self) -> bool:
        """Return whether the new entries depend on the old ones."""
        return self.merge is not None or self.journal


def _plan(merge: bytes, replace: bool, journal: bool) -> MergePlan:
    return MergePlan(pickle.loads(merge), replace, journal)


def merge_bucket(
    folder: StorageFolder,
    layout: Layout,
    bucket: int,
    new: tuple[DataFile, Layout] | None,
    current: Sequence[DataFile],
    plan: MergePlan,
    prefix: str,
) -> DataFile | None:
    """Write the rows of a bucket to commit; None if there are none.

    Args:
        folder: where files are.
        layout: how the rows are written.
        bucket: its number.
        new: the rows that a task has written, and how; None if the job has none in this bucket.
        current: the files of the bucket so far, oldest first.
        plan: what is done with the existing entries.
        prefix: how the name of the file begins.
    """
    olds = dict(_current(folder, layout, current, new, plan))
    with DataWriter(folder, layout.schema, bucket, prefix) as writer:
        rows = _Runs(writer, layout.is_sorted)
        for keys, values in _rows(folder, new):
            # Popped, so that a job that replaces everything removes the rest.
            before = [olds.pop(key, (None, None))[1] for key in identities(layout, keys)]
            if isinstance(plan.merge, Revision):  # Keys that are absent get no value.
                keys, before, values = _present(keys, before)
            rows.write(layout.entries(keys, _merged(layout, keys, before, values, plan), before))
        rows.end()
        if plan.replace and olds:
            gone = list(olds.values())
            writer.write(layout.entries([key for key, _ in gone], [None] * len(gone), [value for _, value in gone]))
    if not writer.file.rows:
        # The writer creates its file before it is known whether there are rows.
        folder.delete(writer.file.path)
        return None
    return writer.file


def without_values(layout: Layout) -> Layout:
    """Return the layout of a job's input for an `Update`: values of any type."""
    return replace(layout, codec=replace(layout.codec, value=None))


def update_bucket(
    folder: StorageFolder,
    layout: Layout,
    bucket: int,
    new: tuple[DataFile, Layout],
    current: Sequence[DataFile],
    plan: MergePlan,
    prefix: str,
) -> tuple[DataFile | None, Layout]:
    """Write the results of an `Update` for the rows of a bucket; arguments as for `merge_bucket`.

    Returns:
        The file, None if nothing changes; and the layout, whose types the first values have decided if they were open.
    """
    olds = dict(_current(folder, layout, current, new, plan))
    portions = filter(None, (_updated(layout, *rows, olds, plan) for rows in _rows(folder, new)))
    first = next(portions, None)
    if first is None:
        return None, layout
    layout = replace(
        layout, codec=layout.codec.decided_by([key for key, *_ in first], [value for _, value, _ in first])
    )
    with DataWriter(folder, layout.schema, bucket, prefix) as writer:
        rows = _Runs(writer, layout.is_sorted)
        for portion in chain([first], portions):
            for key, value, _ in portion:
                if value is not None:
                    layout.codec.checked(key, value)
            rows.write(layout.entries(*map(list, zip(*portion, strict=True))))
        rows.end()
    return writer.file, layout


def _updated(
    layout: Layout, keys: list[Any], written: list[Any], olds: dict[Any, tuple[Any, Any]], plan: MergePlan
) -> list[tuple[Any, Any, Any]]:
    """Return the key, the new and the old value of each entry that changes."""
    assert isinstance(plan.merge, Update)
    changes = []
    for known, key, items in zip(identities(layout, keys), keys, written, strict=True):
        _, old = olds.get(known, (None, None))
        value = plan.merge.fn(key, own_copy(layout.codec, old) if plan.journal else old, items)
        if value is not UNCHANGED and not (old is None and value is None):
            changes.append((key, value, old))
    return changes


def _current(
    folder: StorageFolder,
    layout: Layout,
    files: Sequence[DataFile],
    new: tuple[DataFile, Layout] | None,
    plan: MergePlan,
) -> Iterator[tuple[Any, tuple[Any, Any]]]:
    """Yield the existing entries, by their identity; those that the job does not write only if they disappear."""
    wanted = None if plan.replace else set(_keys(folder, layout, new))
    for keys, batch in newest_rows(folder, files, layout, _COLUMNS):
        entries = zip(identities(layout, keys), zip(keys, layout.values(batch), strict=True), strict=True)
        yield from (entry for entry in entries if wanted is None or entry[0] in wanted)


def _keys(folder: StorageFolder, layout: Layout, new: tuple[DataFile, Layout] | None) -> Iterator[Any]:
    """Yield the identities of all rows that a task has written, without reading their values."""
    if new is not None:
        file, written_by = new
        for batch in batches(folder, file, KEY_COLUMNS):
            yield from identities(layout, written_by.keys(batch))


def _rows(folder: StorageFolder, new: tuple[DataFile, Layout] | None) -> Iterator[Rows]:
    if new is not None:
        file, layout = new
        for batch in batches(folder, file):
            yield layout.keys(batch), layout.values(batch)


def _present(keys: list[Any], olds: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the keys that have a value, and their values twice: also as the written values."""
    there = [row for row, old in enumerate(olds) if old is not None]
    values = [olds[row] for row in there]
    return [keys[row] for row in there], values, values


def _merged(layout: Layout, keys: list[Any], olds: list[Any], values: list[Any], plan: MergePlan) -> list[Any]:
    if plan.merge is None:
        return values
    # A merge function may change the old value; the journal needs the original.
    given = [own_copy(layout.codec, old) for old in olds] if plan.journal else olds
    assert not isinstance(plan.merge, Update)  # `update_bucket` has these.
    if isinstance(plan.merge, Revision):
        merged = list(map(plan.merge.fn, keys, given))
    else:
        merged = [value if old is None else plan.merge(old, value) for old, value in zip(given, values, strict=True)]
    for key, value in zip(keys, merged, strict=True):
        if value is not None:  # it removes the entry
            layout.codec.checked(key, value)
    return merged


def rewritten(folder: StorageFolder, layout: Layout, file: DataFile, written_by: Layout, prefix: str) -> DataFile:
    """Write the rows of a file again by other types."""
    with DataWriter(folder, layout.schema, file.bucket, prefix) as writer:
        for keys, values in _rows(folder, (file, written_by)):
            for key, value in zip(keys, values, strict=True):
                layout.codec.checked(key, value)
            writer.write(layout.entries(keys, values))
    return writer.file


T = TypeVar("T")

_RUN_BYTES = 32 << 20
"""Bytes of rows that a writer sorts at a time: a reader of one key reads a row group of each run."""


def write_portions(
    folder: StorageFolder,
    layout: Layout,
    encode: Callable[[Sequence[T]], pa.RecordBatch],
    portions: Portions[T],
    some: list[T],
    bucket: int,
    prefix: str,
    is_sorted: bool = False,
) -> DataFile:
    """Write `some` rows, at least one, and the rows of later portions into a new file, invisible for readers."""
    if not portions.has_more():
        return write_parts(folder, in_parts(encode, some), bucket, prefix)
    with DataWriter(folder, layout.schema, bucket, prefix) as writer:
        rows = _Runs(writer, is_sorted)
        while some:
            for batch in in_parts(encode, some):
                rows.write(batch)
                portions.learn(batch.num_rows, batch.nbytes)
                # Released before the next portion is made, or two of them would be in memory at once.
                del batch
            some.clear()  # The caller has this list, too.
            some = portions.take()
        rows.end()
    return writer.file


class _Runs:
    """Writes rows in runs that are sorted by key, or as they arrive."""

    def __init__(self, writer: DataWriter, is_sorted: bool) -> None:
        self._writer = writer
        self._is_sorted = is_sorted
        self._run: list[pa.RecordBatch] = []
        self._size = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; large batches are written unsorted, since sorting copies them."""
        size = batch.nbytes
        if self._size + size > _RUN_BYTES:
            self.end()
        if not self._is_sorted or size > 2 * PORTION_BYTES:
            self._writer.write(batch)
        else:
            self._run.append(batch)
            self._size += size

    def end(self) -> None:
        """Write the added rows."""
        if self._run:
            table = sorted_by_key(pa.Table.from_batches(self._run))
            self._run, self._size = [], 0
            for batch in table.combine_chunks().to_batches():
                self._writer.write(batch)


@record
class LakeEntryWriter:
    """Writes the entries of a task into one new file per bucket, which no reader sees before the commit.

    Attributes:
        folder: where files are written.
        layout: their columns; types that are open are decided by the first entry.
        buckets: into how many buckets keys are divided.
        prefix: how the names of this job's files begin.
        plan: what is done with the existing entries.
        groups: the files of each bucket when the job began, if the plan reads them.
        begun: the newest commit at that moment.
    """

    folder: StorageFolder
    layout: Layout
    buckets: int
    prefix: str
    plan: MergePlan
    groups: Mapping[int, tuple[DataFile, ...]]
    begun: int

    def bucket_of(self, key: Any) -> int:
        try:
            return bucket_of(encode_key(key), self.buckets)
        except (NullElementError, UnstableKeyError):
            self.layout.codec.encode_key(key)  # raises the same with the name of the collection
            raise

    def check_item(self, entry: tuple[Any, Any]) -> None:
        """Refuse an entry that the map does not take, if nothing is merged with its value."""
        key, value = entry
        self.bucket_of(key)
        if self.plan.merge is None:
            self.layout.codec.checked(key, value)

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        portions = Portions(entries, ROWS_IN_GROUP)
        some = portions.take()
        if not some:
            return
        layout = self._layout_by(*some[0])
        encode, is_sorted = partial(_batch, layout), layout.is_sorted and not self._calls_function(bucket)
        file = write_portions(self.folder, layout, encode, portions, some, bucket, self.prefix, is_sorted)
        yield self._receipt(layout, file)

    def _calls_function(self, bucket: int) -> bool:
        """Return whether a user's function is called with the rows, in their order; its results are sorted then."""
        merge = self.plan.merge
        return merge is not None and (isinstance(merge, Revision | Update) or bool(self.groups.get(bucket)))

    def _layout_by(self, key: Any, value: Any) -> Layout:
        """Return the layout of the rows as they arrive, with the types that are open as the first one has them."""
        if isinstance(self.plan.merge, Update):
            return without_values(replace(self.layout, codec=self.layout.codec.decided_by([key], [])))
        return replace(self.layout, codec=self.layout.codec.decided_by([key], [value]))

    def _receipt(self, layout: Layout, new: DataFile) -> Any:
        if isinstance(self.plan.merge, Update):
            return self._updated(layout, new)
        types = layout.codec.to_json()
        if not self.plan.reads_current:
            return self.begun, types, tuple(new), None
        current = self.groups.get(new.bucket, ())
        if not current and not isinstance(self.plan.merge, Revision):
            return self.begun, types, tuple(new), tuple(new)  # there is nothing to merge with
        try:
            merged = merge_bucket(self.folder, layout, new.bucket, (new, layout), current, self.plan, self.prefix)
        except FileGoneError:
            merged = None  # compacted and vacuumed since the job began; the driver merges with the entries of that time
        return self.begun, types, tuple(new), merged and tuple(merged)

    def _updated(self, written_by: Layout, new: DataFile) -> Any:
        """Make the values, and return a receipt with the types that they have."""
        layout = replace(self.layout, codec=replace(self.layout.codec, key=written_by.codec.key))
        made, current = None, self.groups.get(new.bucket, ())
        with suppress(FileGoneError):  # As below, the driver makes them then.
            made, layout = update_bucket(
                self.folder, layout, new.bucket, (new, written_by), current, self.plan, self.prefix
            )
        return self.begun, layout.codec.to_json(), tuple(new), made and tuple(made)


def _batch(layout: Layout, entries: Sequence[tuple[Any, Any]]) -> pa.RecordBatch:
    keys, values = [key for key, _ in entries], [value for _, value in entries]
    # A check of the types in C saves a call for most entries.
    if layout.codec.strict or type(None) in {*map(type, keys), *map(type, values)}:
        for key, value in entries:
            layout.codec.checked(key, value)
    return layout.entries(keys, values)


MAX_FILES = 64
"""The number of files of a bucket before a compaction."""

_SMALL_ROWS = 1024
_SORTED_BYTES = 1 << 30
_SHORTEST_RUN = MAX_FILES // 2

Fold = tuple[tuple[DataFile, ...], tuple[DataFile, ...]]
"""Files, and those that replace them."""
Reader = Callable[[Sequence[DataFile], Layout], Read]
"""Function that returns the reader of files of a bucket, oldest first."""


def _plainly(files: Sequence[DataFile], layout: Layout) -> Read:
    return batches


def fold_small(folder: StorageFolder, files: tuple[DataFile, ...], layout: Layout, reader: Reader = _plainly) -> Fold:
    """Fold the newest small files of a bucket, or all when the oldest is no longer much larger than the rest."""
    # All of a bucket is written again only once a quarter as much has been added, which bounds the cost of a row.
    if 4 * sum(file.rows for file in files[1:]) > files[0].rows:
        return fold_all(folder, files, layout, reader)
    run = _newest_run(files)
    # Rows of removed entries remain, since older files may contain the entries.
    rows = (batch for _, batch in newest_rows(folder, run, layout, keep_removed=True, read=reader(run, layout)))
    return run, _one_file(folder, run, layout, rows)


def _newest_run(files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    """Return the newest files of about equal size, without the oldest of all."""
    first, rows = len(files), 0
    while first > 1 and files[first - 1].rows <= max(_SMALL_ROWS, 2 * rows):
        first -= 1
        rows += files[first].rows
    return files[first:] if len(files) - first >= _SHORTEST_RUN else files[1:]


def fold_all(folder: StorageFolder, files: tuple[DataFile, ...], layout: Layout, reader: Reader = _plainly) -> Fold:
    """Fold all files of a bucket into one, sorted by key, without the rows of removed entries."""
    rows = [batch for _, batch in newest_rows(folder, files, layout, read=reader(files, layout))]
    return files, _one_file(folder, files, layout, rows, sort=True)


def _one_file(
    folder: StorageFolder, files: Sequence[DataFile], layout: Layout, rows: Iterable[pa.RecordBatch], sort: bool = False
) -> tuple[DataFile, ...]:
    """Write rows into one file that replaces the newest of `files`; no rows need no file.

    Old values belong to the journal, which reads the files that were folded, so they are left out.
    """
    schema = layout.schema
    table = pa.Table.from_batches([layout.adapted(batch, without_olds=True) for batch in rows], schema)
    if not table.num_rows:
        return ()
    # Sorting makes lookups faster, no more; pyarrow 26 cannot take rows from more than 2 GiB of one column.
    can_sort = "key" in schema.names and not pa.types.is_nested(schema.field("key").type)
    if can_sort and (sort or table.num_rows > ROWS_IN_GROUP) and table.nbytes <= _SORTED_BYTES:
        table = sorted_by_key(table)
    written = write_parts(folder, table.combine_chunks().to_batches(), files[-1].bucket)
    # With the version of the newest input it is older than concurrent commits, which win.
    return (written._replace(version=files[-1].version),)


def has_removed_rows(folder: StorageFolder, file: DataFile, layout: Layout) -> bool:
    """Return whether a file has rows of removed entries."""
    return any(layout.removed(batch).true_count for batch in batches(folder, file, ["_del"]))
