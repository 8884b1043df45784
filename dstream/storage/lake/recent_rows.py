"""`RecentRows`: what this process has written lately, so that folding small files need not read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import Layout, Read, batches, takes_more

__all__ = ["RecentRows"]

_MOST = 2048
_LARGEST = 2048


class RecentRows:
    """The rows of up to 2,048 small files, the last ones that were written, 4 MB in all. No file ever changes.

    Opening and reading a Parquet file of one row takes longer than writing it.
    """

    def __init__(self) -> None:
        self._rows: dict[str, pa.RecordBatch | tuple[Any, Any]] = {}

    def keep(self, rows: Mapping[str, pa.RecordBatch], entries: Mapping[str, tuple[Any, Any]] | None = None) -> None:
        """Keep the rows of files by their paths, and the entry of those that hold one; large ones are left to be read.

        Keys and values of entries are texts, bytes and numbers.
        """
        self._rows.update((path, batch) for path, batch in rows.items() if not takes_more(batch, _LARGEST))
        for path, entry in (entries or {}).items():
            if all(isinstance(part, int | float) or len(part) < _LARGEST // 2 for part in entry):
                self._rows[path] = entry
        while len(self._rows) > _MOST:
            del self._rows[next(iter(self._rows))]

    def reader(self, files: Sequence[DataFile], layout: Layout) -> Read:
        """Return what reads these files, which are those of a bucket, oldest first.

        The last ones, as far as each holds an entry that is at hand, are read together in the place of the newest.
        """
        entries: dict[Any, Any] = {}
        together: set[str] = set()
        for file in reversed(files):
            entry = self._rows.get(file.path)
            if not isinstance(entry, tuple):
                break
            entries.setdefault(*entry)
            together.add(file.path)

        def read(folder: Folder, file: DataFile, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
            if file.path in together:
                if file is not files[-1]:
                    return iter(())
                return iter((layout.entries(list(entries), list(entries.values())),))
            kept = self._rows.get(file.path)
            if kept is None:
                return batches(folder, file, columns)
            return iter((layout.entries([kept[0]], [kept[1]]) if isinstance(kept, tuple) else kept,))

        return read
