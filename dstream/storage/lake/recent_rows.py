"""`RecentRows`: what this process has written lately, so that folding small files need not read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import batches, takes_more

__all__ = ["RecentRows"]

_MOST = 2048
_LARGEST = 2048


class RecentRows:
    """The rows of up to 2,048 small files, the last ones that were written, 4 MB in all. No file ever changes.

    Opening and reading a Parquet file of one row takes longer than writing it.
    """

    def __init__(self) -> None:
        self._rows: dict[str, pa.RecordBatch] = {}

    def keep(self, rows: Mapping[str, pa.RecordBatch]) -> None:
        """Keep the rows of files by their paths; large ones are left to be read."""
        self._rows.update((path, batch) for path, batch in rows.items() if not takes_more(batch, _LARGEST))
        while len(self._rows) > _MOST:
            del self._rows[next(iter(self._rows))]

    def read(self, folder: Folder, file: DataFile, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows of a file, with more columns than are asked for if they are at hand."""
        batch = self._rows.get(file.path)
        return batches(folder, file, columns) if batch is None else iter((batch,))
