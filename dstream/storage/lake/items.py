"""Reading the items of a list from its files, by position."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import pyarrow as pa

from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.copied_handles import own_copy
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import Layout, opened

__all__ = ["FileCache", "Positions", "rows_between"]

_CACHED_FILE = 10_000
_ROWS_KEPT = 200_000

Files = tuple[DataFile, ...]


class Positions:
    """Where the files of a list begin, counted in items."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._starts = list(accumulate((file.rows for file in files), initial=0))

    @property
    def size(self) -> int:
        """The number of items."""
        return self._starts[-1]

    def touched(self, start: int, stop: int) -> tuple[int, int]:
        """Return the first file that holds items from `start` up to, not including, `stop`, and the one after the last.

        An empty stretch touches the file in which it stands; at the end of the list, none.
        """
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, max(stop, start + 1) - 1)
        return min(first, len(self.files)), min(last, len(self.files))

    def start(self, number: int) -> int:
        """Return the position of the first item of a file."""
        return self._starts[number]

    def parts(self, start: int, stop: int) -> Iterator[tuple[DataFile, int, int]]:
        """Give the files between two positions, each with the rows that belong there."""
        stop = min(stop, self.size)
        if start >= stop:
            return
        for number in range(*self.touched(start, stop)):
            offset, file = self._starts[number], self.files[number]
            yield file, max(start - offset, 0), min(stop - offset, file.rows)


def rows_between(folder: Folder, file: DataFile, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Give the rows of a file from `start` up to, not including, `stop`; only row groups that hold some are read."""
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
    """The items of small files that were read last."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._items: OrderedDict[str, list[Any]] = OrderedDict()
        self._rows = 0

    def read(self, positions: Positions, layout: Layout, start: int, stop: int) -> list[Any]:
        """Return copies of the items between two positions."""
        items: list[Any] = []
        for file, first, last in positions.parts(start, stop):
            if file.rows <= _CACHED_FILE:
                items.extend(own_copy(layout.codec, item) for item in self._whole(file, layout)[first:last])
            else:
                for batch in rows_between(self._folder, file, first, last):
                    items.extend(layout.values(batch))
        return items

    def _whole(self, file: DataFile, layout: Layout) -> list[Any]:
        items = self._items.get(file.path)
        if items is None:
            items = [item for batch in rows_between(self._folder, file, 0, file.rows) for item in layout.values(batch)]
            self._items[file.path] = items
            self._rows += len(items)
            while self._rows > _ROWS_KEPT and len(self._items) > 1:
                self._rows -= len(self._items.popitem(last=False)[1])
        else:
            self._items.move_to_end(file.path)
        return items

    def clear(self) -> None:
        """Forget everything."""
        self._items.clear()
        self._rows = 0
