"""What remains of the files of a bucket when newer rows replace older ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute

from dstream.storage.codec.codec_keys import identity
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import Layout, Read, batches

__all__ = ["KEY_COLUMNS", "identities", "newest_rows"]

KEY_COLUMNS = ("key", "_pk", "_del")
"""What must be read to know which rows remain."""

_STAND_FOR_THEMSELVES = (str, int, bytes)


def newest_rows(
    folder: Folder,
    files: Sequence[DataFile],
    layout: Layout,
    columns: Sequence[str] | None = None,
    keep_removed: bool = False,
    read: Read = batches,
) -> Iterator[tuple[list[Any], pa.RecordBatch]]:
    """Give each key of a bucket once, with its newest row.

    The newest files come first; the keys of all but the oldest, which is the largest as a rule, stay in
    memory. The oldest streams.

    Args:
        folder: where the files are.
        layout: what their columns mean.
        files: those of one bucket, oldest first.
        columns: which to read; the key and `_del` must be among them.
        keep_removed: give also the rows that say that an entry was removed.
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
            if number:
                seen.update(known)


def identities(layout: Layout, keys: list[Any]) -> list[Any]:
    """Return what stands for each key in a dict."""
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
    skips_removed = not keep_removed and compute.any(removed).as_py()  # pyright: ignore[reportAttributeAccessIssue]
    if not skips_removed and seen.isdisjoint(known):
        if keys:
            yield keys, batch
        return
    gone = removed.to_pylist() if skips_removed else [False] * len(keys)
    rows = [row for row, key in enumerate(known) if not gone[row] and key not in seen]
    if rows:
        yield [keys[row] for row in rows], batch.take(pa.array(rows, pa.int64()))
