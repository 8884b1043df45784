"""Look-ups of single keys in files: pages of rows, sorted by key, cached by their bytes.

A page is a row group of a file whose row groups are ordered by key, according to the statistics of Parquet. Any other
file is one page: its rows are sorted when they are read, or found by a hash if keys have no order in a column.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import pyarrow as pa

from dstream.delta.actions import DataFile
from dstream.filesystem.folders import StorageFolder
from dstream.schema.types import array_of
from dstream.storage.codec.keys import encode_key
from dstream.storage.lake.single_keys import is_left_out, matches
from dstream.storage.lake.tables import (
    ORDERED,
    Layout,
    identities,
    opened,
    sorted_by_key,
)

__all__ = ["MISSING", "PageCache"]


_COLUMNS = ("key", "_pk", "_del", "value", "_pv")
_PAGES_KEPT = 256 << 20
"""Bytes of the pages of a map that are cached, as Arrow has them."""
_LARGEST_PAGE = 64 << 20
_MOST_RUNS = 8
"""The number of sorted runs of a file, each of which may contain a key; more if each has several pages."""
_PAGES_OF_RUN = 16
_HASHED = 8192
"""Rows of a page whose keys are hashed at a time."""
_MOST_NULLS = 8192
"""Rows whose nulls are shared by all pages; those of larger pages belong to these, or they would never be released."""
_WORD = 8
"""Bytes of a string that are compared at once."""
_FOOTER = -1
"""Used instead of the number of a page."""

MISSING = object()
"""The result of a look-up in files without a row of the key."""


class PageCache:
    """Pages of files and the ranges of their keys, those used lately; bounded by their bytes. No file ever changes."""

    def __init__(self, folder: StorageFolder, bytes_kept: int = _PAGES_KEPT) -> None:
        self._folder = folder
        self._bytes_kept = bytes_kept
        self._files: dict[str, _FilePages] = {}
        self._cached: deque[tuple[_FilePages, int]] = deque()
        self._layout: Layout | None = None
        self.size = 0

    def clear(self) -> None:
        """Forget everything."""
        self._files.clear()
        self._cached.clear()
        self.size = 0

    def get(self, files: Sequence[DataFile], layout: Layout, key: Any) -> Any:
        """Return the value of a key by its identity in the newest file with a row of it.

        Args:
            files: the files of a bucket, oldest first.
            layout: the meaning of their columns.
            key: the identity of the key.

        Returns:
            The value; None if the entry was removed, `MISSING` if no file has a row of the key.
        """
        if layout is not self._layout:  # Pages find keys and make values by the current types of the map.
            self.clear()
            self._layout = layout
        for file in reversed(files):
            pages = self._files.get(file.path) or self._opened(file, layout)
            pages.is_used = True
            for number in pages.numbers(key):
                page = pages.pages[number] or self._read(file, pages, number, layout)
                if page is None:
                    break
                page.is_used = True
                row = page.row_of(key)
                if row >= 0:
                    return page.value(row)
            if not pages.groups:
                for _, value, is_removed in matches(self._folder, file, layout, [key]):
                    return None if is_removed else value
        return MISSING

    def _opened(self, file: DataFile, layout: Layout) -> _FilePages:
        with opened(self._folder, file) as reader:
            made = _FilePages(file.path, reader.metadata, _kind_of_keys(layout, reader.schema_arrow))
        self._files[file.path] = made
        self._keep(made, _FOOTER)
        return made

    def _read(self, file: DataFile, pages: _FilePages, number: int, layout: Layout) -> _Page | None:
        """Read a page; None if its rows are too large for one, which their encoded form does not show."""
        tables, size = [], 0
        with opened(self._folder, file, pages.metadata) as reader:
            columns = [name for name in _COLUMNS if name in reader.schema_arrow.names]
            for group in pages.groups[number]:
                tables.append(reader.read_row_group(group, columns, use_threads=False))
                size += tables[-1].nbytes
                if size > _LARGEST_PAGE:
                    self._forget_pages(pages)
                    return None
        table = pa.concat_tables(tables)
        [rows] = (table if pages.kind is None else sorted_by_key(table)).combine_chunks().to_batches()
        made = pages.pages[number] = _Page(layout, rows, pages.kind)
        self._keep(pages, number)
        return made

    def _forget_pages(self, pages: _FilePages) -> None:
        kept = [place for place in self._cached if place[0] is not pages or place[1] == _FOOTER]
        self.size -= sum(page.size for page in pages.pages if page is not None)
        self._cached = deque(kept)
        pages.read_whole()

    def _keep(self, pages: _FilePages, number: int) -> None:
        self._cached.append((pages, number))
        self.size += pages.size_of(number)
        while self.size > self._bytes_kept:
            self._drop_one()

    def _drop_one(self) -> None:
        """Drop the oldest page that was not used since it was the oldest before."""
        pages, number = place = self._cached.popleft()
        used = pages if number == _FOOTER else pages.pages[number]
        assert used is not None
        if used.is_used:
            used.is_used = False
            self._cached.append(place)
            return
        self.size -= pages.size_of(number)
        if number == _FOOTER:
            # Its pages are found by it, so they leave first: they are used whenever it is.
            del self._files[pages.path]
        else:
            pages.pages[number] = None


def _kind_of_keys(layout: Layout, schema: pa.Schema) -> type | None:
    """Return the type of keys that a column contains in an order of their own; None if there is no such column."""
    key = layout.codec.key
    if key is None or key.hint not in tuple(ORDERED) or "key" not in schema.names:
        return None
    kind: type = key.hint
    return kind if schema.field("key").type == ORDERED[kind] else None


class _Run(NamedTuple):
    """Row groups of which each has larger keys than the one before.

    Attributes:
        first: the number of the first one among the pages.
        lows: bounds from below of the keys of each.
        highs: bounds from above.
    """

    first: int
    lows: list[Any]
    highs: list[Any]


class _FilePages:
    """The pages of a file, and which keys each may have.

    Attributes:
        path: the path of the file.
        metadata: its footer.
        kind: the type of the ordered keys, or None.
        groups: the row groups of each page; empty if rows are too large, so that the file is read for each key.
        pages: the cached pages.
        is_used: whether a key was looked up since this was set to False.
    """

    def __init__(self, path: str, metadata: Any, kind: type | None) -> None:
        self.path = path
        self.metadata = metadata
        self.kind = kind
        self.is_used = False
        bounds = None if kind is None else _bounds(metadata, kind)
        self._others: tuple[int, ...] = (0,)
        self._runs = [] if bounds is None else _runs(bounds)
        groups = range(metadata.num_row_groups)
        sizes = [metadata.row_group(group).total_byte_size for group in groups]
        self.groups = [[group] for group in groups]
        if bounds is None or len(groups) < 2 or len(self._runs) > max(_MOST_RUNS, len(groups) // _PAGES_OF_RUN):
            self.groups, self._runs, sizes = [list(groups)], [], [sum(sizes)]
        else:
            self._others = tuple(group for group, bound in enumerate(bounds) if bound.has_others)
        self.pages: list[_Page | None] = [None] * len(self.groups)
        if not 0 < max(sizes) <= _LARGEST_PAGE:
            self.read_whole()

    def read_whole(self) -> None:
        """Have no pages."""
        self.pages, self.groups, self._runs, self._others = [], [], [], ()

    def size_of(self, number: int) -> int:
        """Return an estimate of the bytes of a cached page, or of all that is known of the file."""
        if number == _FOOTER:
            # A parsed footer of Parquet takes several times its bytes (pyarrow 26).
            return int(8 * self.metadata.serialized_size)
        page = self.pages[number]
        return 0 if page is None else page.size

    def numbers(self, key: Any) -> Sequence[int]:
        """Return the pages in which a key may be, by its identity."""
        if type(key) is not self.kind:
            return self._others
        found = []
        for first, lows, highs in self._runs:
            number = bisect_right(lows, key) - 1
            if number >= 0 and key <= highs[number]:
                found.append(first + number)
        return [*found, *self._others] if self._others else found


class _Bound(NamedTuple):
    """The bounds of the keys of a row group, which may also have keys of other types."""

    low: Any
    high: Any
    has_others: bool


def _bounds(metadata: Any, kind: type) -> list[_Bound] | None:
    """Return the bounds of each row group, None if one of them has no bounds of this type."""
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    bounds = []
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(names.index("key")).statistics
        if statistics is None or not statistics.has_min_max or not statistics.has_null_count:
            return None
        low, high = statistics.min, statistics.max
        if type(low) is not kind or type(high) is not kind or is_left_out(high):
            return None
        bounds.append(_Bound(low, high, statistics.null_count > 0))
    return bounds


def _runs(bounds: list[_Bound]) -> list[_Run]:
    runs: list[_Run] = []
    for number, (low, high, _) in enumerate(bounds):
        # Bounds that another program has rounded overlap at worst, and then the next run begins.
        if not runs or low <= runs[-1].highs[-1]:
            runs.append(_Run(number, [], []))
        runs[-1].lows.append(low)
        runs[-1].highs.append(high)
    return runs


class _Page:
    """Rows of a file; if keys have an order, sorted by key, followed by rows whose key is not in the column.

    Attributes:
        layout: the meaning of the columns.
        size: an estimate of its bytes.
        is_used: whether a key was looked up since this was set to False.
    """

    def __init__(self, layout: Layout, rows: pa.RecordBatch, kind: type | None) -> None:
        self.layout = layout
        self._kind = kind
        self._rows = rows = _sharing_nulls(rows)
        self._ordered = 0 if kind is None else rows.num_rows - rows.column("key").null_count
        self._find: Callable[[Any], int] | None = None
        if self._ordered:
            keys = rows.column("key").slice(0, self._ordered)
            self._find = _ints(keys) if kind is int else _texts(keys)
        self._hashes: Any = None
        if self._ordered < rows.num_rows:
            self._hashes, self._numbers = _hashed(layout, rows, self._ordered)
        self._values = _plain_values(layout, rows)
        self._removed = rows.column("_del") if layout.removed(rows).true_count else None
        own = sum(column.get_total_buffer_size() for column in rows if not _is_shared(column))
        hashes = 0 if self._hashes is None else 12 * len(self._hashes)
        self.size = own + hashes + (0 if kind in (None, int) else _WORD * rows.num_rows)
        self.is_used = False

    def row_of(self, key: Any) -> int:
        """Return the row of a key by its identity, or -1."""
        if self._find is not None and type(key) is self._kind:
            row = self._find(key)
            if row >= 0:
                return row
        return -1 if self._hashes is None else self._hashed_row(key)

    def _hashed_row(self, key: Any) -> int:
        wanted = _hash(key)
        place = bisect_left(self._hashes, wanted)
        while place < len(self._hashes) and self._hashes[place] == wanted:
            row: int = self._numbers[place]
            if identities(self.layout, self.layout.keys(self._rows.slice(row, 1))) == [key]:
                return row
            place += 1
        return -1

    def value(self, row: int) -> Any:
        """Return the value in a row, None if the entry was removed there."""
        if self._removed is not None and self._removed[row].as_py():
            return None
        if self._values is not None:
            return self._values(row)
        return self.layout.values(self._rows.slice(row, 1))[0]


def _sharing_nulls(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose columns without a value are shared with other pages: they have four bytes for each row."""
    columns = [_nulls().slice(0, rows.num_rows) if _is_shared(column) else column for column in rows]
    return pa.RecordBatch.from_arrays(columns, rows.schema.names)


def _is_shared(column: pa.Array) -> bool:
    return bool(column.type == pa.binary() and column.null_count == len(column) <= _MOST_NULLS)


@functools.cache
def _nulls() -> pa.Array:
    return pa.nulls(_MOST_NULLS, pa.binary())


def _ints(keys: pa.Array) -> Callable[[int], int]:
    numbers = memoryview(keys.buffers()[1]).cast("q")[keys.offset : keys.offset + len(keys)]
    count = len(keys)

    def find(key: int) -> int:
        row = bisect_left(numbers, key)
        return row if row < count and numbers[row] == key else -1

    return find


def _texts(keys: pa.Array) -> Callable[[Any], int]:
    """Return the search among strings, or bytes: in UTF-8 both have the order of their bytes."""
    count = len(keys)
    offsets = memoryview(keys.buffers()[1]).cast("i")[keys.offset : keys.offset + count + 1]
    data = memoryview(keys.buffers()[2] or b"")

    def at(row: int) -> bytes:
        return bytes(data[offsets[row] : offsets[row + 1]])

    shared = _shared(at(0), at(count - 1))
    start, stop = len(shared), len(shared) + _WORD
    words = _words(data, offsets, start)

    def find(key: Any) -> int:
        try:
            wanted = key.encode() if type(key) is str else key
        except UnicodeEncodeError:  # of a lone surrogate, for which the column has no form
            return -1
        if not wanted.startswith(shared):
            return -1
        word = int.from_bytes(wanted[start:stop].ljust(_WORD, b"\0"), "big")
        row = bisect_left(words, word)
        if row < count and words[row] == word and at(row) != wanted:
            row = bisect_left(range(count), wanted, row, bisect_right(words, word, row), key=at)
        return row if row < count and words[row] == word and at(row) == wanted else -1

    return find


def _shared(first: bytes, last: bytes) -> bytes:
    """Return the longest prefix of both, and so of all that are between them."""
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((place for place, (left, right) in pairs if left != right), min(len(first), len(last)))]


def _words(data: memoryview, offsets: Any, start: int) -> Any:
    """Return the first bytes of sorted strings after their common prefix, as numbers of the same order.

    A comparison of two strings costs 0.4 us, of two numbers 0.03.
    """
    import numpy as np  # imported on use: most programs look up no key of a large map

    ends, letters = np.asarray(offsets, np.int64), np.frombuffer(bytes(data) + b"\0", np.uint8)
    words = np.zeros(len(ends) - 1, np.uint64)
    for place in range(start, start + _WORD):
        places = ends[:-1] + place
        # A string that ends before is smaller than one that continues, or equal to it in these bytes.
        found = np.where(places < ends[1:], letters[np.minimum(places, len(letters) - 1)], 0)
        words = (words << np.uint64(8)) | found.astype(np.uint64)
    return memoryview(words.data)


def _hashed(layout: Layout, rows: pa.RecordBatch, first: int) -> tuple[Any, Any]:
    """Return the hashes of the keys from a row on, sorted, and the row of each."""
    import pyarrow.compute as compute

    # As Python has keys, they take several times the bytes of a page, so a part of them is made at a time.
    parts = [
        array_of(list(map(_hash, identities(layout, layout.keys(rows.slice(start, _HASHED))))), pa.uint32())
        for start in range(first, rows.num_rows, _HASHED)
    ]
    hashes = pa.concat_arrays(parts)
    order = compute.sort_indices(hashes)  # pyright: ignore[reportAttributeAccessIssue]
    numbers = compute.add(order.cast(pa.int64()), first)  # pyright: ignore[reportAttributeAccessIssue]
    return _view(hashes.take(order), "I"), _view(numbers, "q")


def _hash(key: Any) -> int:
    """Return a hash of the identity of a key; equal hashes of others cost a comparison."""
    return crc32(key[0] if type(key) is tuple else encode_key(key))


def _view(column: Any, form: Any) -> Any:
    return memoryview(column.buffers()[1]).cast(form)[column.offset : column.offset + len(column)]


def _plain_values(layout: Layout, rows: pa.RecordBatch) -> Callable[[int], Any] | None:
    """Return the reader of a value of a row without a separate batch; None if values need one."""
    kind = layout.codec.value
    # A bool, and a string of a class, are read as any other value.
    if kind is None or kind.hint not in tuple(_FORMS) or "value" not in rows.schema.names:
        return None
    column = rows.column("value")
    if column.null_count or column.type != kind.arrow:
        return None
    form = _FORMS[kind.hint]
    if form:
        number: Callable[[int], Any] = _view(column, form).__getitem__
        return number
    return lambda row: column[row].as_py()


_FORMS = {int: "q", float: "d", str: "", bytes: ""}
"""The types whose values `as_py` returns, with the memory format of numbers."""
