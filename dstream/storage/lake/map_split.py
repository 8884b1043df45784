"""`LakeEntrySplit`: some buckets of a map as they were at one commit, read in a task."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dstream.errors import SourceError
from dstream.spi import ArrowRows
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_rows import large_batches, present, rows_of_entries
from dstream.storage.lake.lake_tables import Layout
from dstream.storage.lake.named_folder import FileGoneError
from dstream.storage.lake.newest import newest_rows
from dstream.values.contexts import contextmanager

__all__ = ["LakeEntrySplit", "grouped"]

_COLUMNS = ("key", "_pk", "_del", "value", "_pv")


@dataclass(frozen=True, slots=True)
class LakeEntrySplit:
    """The entries of some buckets.

    Attributes:
        title: what errors call the map.
        folder: where its files are.
        layout: what their columns mean.
        buckets: the files of each bucket, oldest first. They stay until a vacuum, also after a compaction.
    """

    title: str
    folder: Folder
    layout: Layout
    buckets: tuple[tuple[DataFile, ...], ...]

    def read(self) -> Iterator[tuple[Any, Any]]:
        """Give the entries as (key, value)."""
        for keys, batch in self._rows():
            yield from zip(keys, self.layout.values(batch), strict=True)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Give the entries in columns."""
        schema = self.layout.codec.schema()
        for keys, batch in self._rows():
            escapes = [self.layout.column(batch, name, pa.binary()) for name in ("_pk", "_pv")]
            if all(escape.null_count == batch.num_rows for escape in escapes):
                columns = [self.layout.column(batch, field.name, field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
            else:
                yield self.layout.codec.batch(keys, self.layout.values(batch))

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[tuple[Any, Any]]]:
        """Give the entries in columns, and in iterators those of batches of which some stand in none."""
        with self._explaining():
            for files in self.buckets:
                for batch in self._newest(files):
                    yield rows_of_entries(self.layout, batch)

    def _newest(self, files: tuple[DataFile, ...]) -> Iterator[pa.RecordBatch]:
        """Give the entries of a bucket; the keys of one file need not be looked at."""
        if len(files) > 1:
            for _, batch in newest_rows(self.folder, files, self.layout, _COLUMNS):
                yield batch
            return
        for file in files:
            for batch in large_batches(self.folder, file, _COLUMNS):
                yield present(self.layout, batch)

    def _rows(self) -> Iterator[tuple[list[Any], pa.RecordBatch]]:
        with self._explaining():
            for files in self.buckets:
                yield from newest_rows(self.folder, files, self.layout, _COLUMNS)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except FileGoneError as error:
            raise SourceError(
                f"{self.title} was compacted and vacuumed while it was read ({error}); keep what a vacuum removes "
                "older than the longest job"
            ) from error


def grouped(groups: Mapping[int, tuple[DataFile, ...]], parallelism: int) -> list[tuple[tuple[DataFile, ...], ...]]:
    """Divide buckets into groups of about as many rows each; empty buckets are left out."""
    sizes = sorted(
        ((sum(file.rows for file in files), bucket) for bucket, files in groups.items() if files), reverse=True
    )
    chosen: list[list[int]] = [[] for _ in range(min(max(parallelism, 1), len(sizes)))]
    heap = [(0, number) for number in range(len(chosen))]
    for rows, bucket in sizes:
        total, number = heapq.heappop(heap)
        chosen[number].append(bucket)
        heapq.heappush(heap, (total + rows, number))
    return [tuple(groups[bucket] for bucket in sorted(buckets)) for buckets in chosen]
