"""Compaction: many small files of a bucket become one. What is read stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as compute

from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import Layout, Read, batches, write_parts
from dstream.storage.lake.newest import newest_rows

__all__ = ["MAX_FILES", "Fold", "fold_all", "fold_small", "has_removed_rows"]

MAX_FILES = 64
"""How many files a bucket has before some are folded."""

_SMALL_ROWS = 1024
_SORTED_BYTES = 1 << 30
_SHORTEST_RUN = MAX_FILES // 2

Fold = tuple[tuple[DataFile, ...], tuple[DataFile, ...]]
"""Files, and those that replace them."""
Reader = Callable[[Sequence[DataFile], Layout], Read]
"""Makes what reads some files of a bucket, oldest first."""


def _plainly(files: Sequence[DataFile], layout: Layout) -> Read:
    return batches


def fold_small(folder: Folder, files: tuple[DataFile, ...], layout: Layout, reader: Reader = _plainly) -> Fold:
    """Fold the newest small files of a bucket, or all when the oldest is no longer much larger than the rest."""
    if 4 * sum(file.rows for file in files[1:]) > files[0].rows:
        return fold_all(folder, files, layout, reader)
    run = _newest_run(files)
    rows = (batch for _, batch in newest_rows(folder, run, layout, keep_removed=True, read=reader(run, layout)))
    return run, _one_file(folder, run, layout, rows)


def _newest_run(files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    """Return the newest files that have about as many rows as each other, without the oldest of all."""
    first, rows = len(files), 0
    while first > 1 and files[first - 1].rows <= max(_SMALL_ROWS, 2 * rows):
        first -= 1
        rows += files[first].rows
    return files[first:] if len(files) - first >= _SHORTEST_RUN else files[1:]


def fold_all(folder: Folder, files: tuple[DataFile, ...], layout: Layout, reader: Reader = _plainly) -> Fold:
    """Fold all files of a bucket into one, sorted by key, without the rows of removed entries."""
    rows = [batch for _, batch in newest_rows(folder, files, layout, read=reader(files, layout))]
    return files, _one_file(folder, files, layout, rows, sort=True)


def _one_file(
    folder: Folder, files: Sequence[DataFile], layout: Layout, rows: Iterable[pa.RecordBatch], sort: bool = False
) -> tuple[DataFile, ...]:
    """Write rows into one file that takes the place of the newest of `files`; no rows need no file.

    Old values belong to the journal, which reads the files that were folded, so they are left out.
    """
    schema = layout.schema
    table = pa.Table.from_batches([layout.adapted(batch, without_olds=True) for batch in rows], schema)
    if not table.num_rows:
        return ()
    # Sorting makes lookups faster, no more; pyarrow 26 cannot take rows from more than 2 GiB of one column.
    can_sort = "key" in schema.names and not pa.types.is_nested(schema.field("key").type)
    if sort and can_sort and table.nbytes <= _SORTED_BYTES:
        table = table.take(compute.sort_indices(table, [("key", "ascending")]))  # pyright: ignore[reportAttributeAccessIssue]
    written = write_parts(folder, table.combine_chunks().to_batches(), files[-1].bucket)
    return (written._replace(version=files[-1].version),)


def has_removed_rows(folder: Folder, file: DataFile, layout: Layout) -> bool:
    """Say whether a file holds rows of removed entries."""
    return any(layout.removed(batch).true_count for batch in batches(folder, file, ["_del"]))
