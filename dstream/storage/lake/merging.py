"""Merging what a job has written for a bucket with what is there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from dstream.pickling import dumps
from dstream.spi.store import UNCHANGED, Merge, Revision, Update
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.copied_handles import own_copy
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import DataWriter, Layout, batches
from dstream.storage.lake.newest import KEY_COLUMNS, identities, newest_rows

__all__ = ["MergePlan", "merge_bucket", "rewritten", "update_bucket", "without_values"]

_COLUMNS = ("key", "_pk", "_del", "value", "_pv")

Rows = tuple[list[Any], list[Any]]
"""Keys and values."""


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a job does with the entries that are there.

    Attributes:
        merge: makes one value of the one that is there and the new one; None if the new one replaces it.
        replace: entries that the job does not write disappear.
        journal: old values are kept.
    """

    merge: Merge | None
    replace: bool
    journal: bool

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel with functions that the tasks could not import."""
        return _plan, (dumps(self.merge), self.replace, self.journal)

    @property
    def reads_current(self) -> bool:
        """Whether what is written depends on what is there."""
        return self.merge is not None or self.journal


def _plan(merge: bytes, replace: bool, journal: bool) -> MergePlan:
    return MergePlan(pickle.loads(merge), replace, journal)


def merge_bucket(
    folder: Folder,
    layout: Layout,
    bucket: int,
    new: tuple[DataFile, Layout] | None,
    current: Sequence[DataFile],
    plan: MergePlan,
    prefix: str,
) -> DataFile | None:
    """Write the rows of a bucket as they are to be committed; None if there are none.

    Args:
        folder: where files are.
        layout: how the rows are written.
        bucket: its number.
        new: the rows that a task has written, and how; None if the job has none in this bucket.
        current: the files of the bucket so far, oldest first.
        plan: what is done with the entries that are there.
        prefix: how the name of the file begins.
    """
    olds = dict(_current(folder, layout, current, new, plan))
    with DataWriter(folder, layout.schema, bucket, prefix) as writer:
        for keys, values in _rows(folder, new):
            before = [olds.pop(key, (None, None))[1] for key in identities(layout, keys)]
            if isinstance(plan.merge, Revision):  # Keys that are no longer there get no value.
                keys, before, values = _present(keys, before)
            writer.write(layout.entries(keys, _merged(layout, keys, before, values, plan), before))
        if plan.replace and olds:
            gone = list(olds.values())
            writer.write(layout.entries([key for key, _ in gone], [None] * len(gone), [value for _, value in gone]))
    if not writer.file.rows:
        folder.delete(writer.file.path)
        return None
    return writer.file


def without_values(layout: Layout) -> Layout:
    """Return the layout in which a job writes what an `Update` makes values of: it is of any type."""
    return replace(layout, codec=replace(layout.codec, value=None))


def update_bucket(
    folder: Folder,
    layout: Layout,
    bucket: int,
    new: tuple[DataFile, Layout],
    current: Sequence[DataFile],
    plan: MergePlan,
    prefix: str,
) -> tuple[DataFile | None, Layout]:
    """Write what an `Update` makes of the rows of a bucket; arguments as for `merge_bucket`.

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
        for portion in chain([first], portions):
            for key, value, _ in portion:
                if value is not None:
                    layout.codec.checked(key, value)
            writer.write(layout.entries(*map(list, zip(*portion, strict=True))))
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
    folder: Folder, layout: Layout, files: Sequence[DataFile], new: tuple[DataFile, Layout] | None, plan: MergePlan
) -> Iterator[tuple[Any, tuple[Any, Any]]]:
    """Give the entries that are there, by their identity; those that the job does not write only if they disappear."""
    wanted = None if plan.replace else set(_keys(folder, layout, new))
    for keys, batch in newest_rows(folder, files, layout, _COLUMNS):
        entries = zip(identities(layout, keys), zip(keys, layout.values(batch), strict=True), strict=True)
        yield from (entry for entry in entries if wanted is None or entry[0] in wanted)


def _keys(folder: Folder, layout: Layout, new: tuple[DataFile, Layout] | None) -> Iterator[Any]:
    """Give the identities of all rows that a task has written, without reading their values."""
    if new is not None:
        file, written_by = new
        for batch in batches(folder, file, KEY_COLUMNS):
            yield from identities(layout, written_by.keys(batch))


def _rows(folder: Folder, new: tuple[DataFile, Layout] | None) -> Iterator[Rows]:
    if new is not None:
        file, layout = new
        for batch in batches(folder, file):
            yield layout.keys(batch), layout.values(batch)


def _present(keys: list[Any], olds: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the keys that have a value, their values, and again these as what is written in their place."""
    there = [row for row, old in enumerate(olds) if old is not None]
    values = [olds[row] for row in there]
    return [keys[row] for row in there], values, values


def _merged(layout: Layout, keys: list[Any], olds: list[Any], values: list[Any], plan: MergePlan) -> list[Any]:
    if plan.merge is None:
        return values
    # A merge function may change the old value it gets; the journal wants it as it was.
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


def rewritten(folder: Folder, layout: Layout, file: DataFile, written_by: Layout, prefix: str) -> DataFile:
    """Write the rows of a file again by other types."""
    with DataWriter(folder, layout.schema, file.bucket, prefix) as writer:
        for keys, values in _rows(folder, (file, written_by)):
            for key, value in zip(keys, values, strict=True):
                layout.codec.checked(key, value)
            writer.write(layout.entries(keys, values))
    return writer.file
