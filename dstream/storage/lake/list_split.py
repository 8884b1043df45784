"""`LakeItemSplit`: a stretch of a list as it was at one commit, read in a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from dstream.errors import SourceError
from dstream.spi import ArrowRows
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.items import Positions, rows_between
from dstream.storage.lake.lake_rows import large_batches, rows_of_items
from dstream.storage.lake.lake_tables import Layout
from dstream.storage.lake.named_folder import FileGoneError
from dstream.values.contexts import contextmanager

__all__ = ["LakeItemSplit", "divided"]

Part = tuple[DataFile, int, int]
"""A file, and which rows of it."""


@dataclass(frozen=True, slots=True)
class LakeItemSplit:
    """Some items, in order.

    Attributes:
        title: what errors call the list.
        folder: where its files are.
        layout: what their columns mean.
        parts: which rows of which files. The files stay until a vacuum, also after a compaction.
    """

    title: str
    folder: Folder
    layout: Layout
    parts: tuple[Part, ...]

    def read(self) -> Iterator[Any]:
        """Give the items."""
        for batch in self._rows():
            yield from self.layout.values(batch)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Give the items in a column."""
        codec = self.layout.codec
        schema = codec.schema()
        for batch in self._rows():
            escape = self.layout.column(batch, "_pv", pa.binary())
            if escape.null_count == batch.num_rows and "value" in batch.schema.names:
                column = self.layout.column(batch, "value", schema.field("value").type)
                yield pa.RecordBatch.from_arrays([column], schema=schema)
            else:
                yield codec.batch([], self.layout.values(batch))

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[Any]]:
        """Give the items in columns, and in iterators those of batches of which some stand in none."""
        with self._explaining():
            for file, start, stop in self.parts:
                for batch in large_batches(self.folder, file, None, start, stop):
                    yield rows_of_items(self.layout, batch)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        with self._explaining():
            for part in self.parts:
                yield from rows_between(self.folder, *part)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except FileGoneError as error:
            raise SourceError(
                f"{self.title} was compacted and vacuumed while it was read ({error}); keep what a vacuum removes "
                "older than the longest job"
            ) from error


def divided(positions: Positions, parallelism: int) -> list[tuple[Part, ...]]:
    """Divide a list into stretches of about as many items each."""
    count = min(max(parallelism, 1), positions.size)
    bounds = [positions.size * number // count for number in range(count + 1)] if count else []
    return [tuple(positions.parts(start, stop)) for start, stop in pairwise(bounds)]
