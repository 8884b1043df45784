"""Row groups of Parquet files: opening, batches within a memory bound, decoded sizes.

A dictionary contains a value once for any number of rows: 50 kB of a file may be gigabytes of rows.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from dstream.base.records import record
from dstream.connectors.files.sources import misread_at
from dstream.errors import SourceError
from dstream.filesystem.access import HEAD, PARQUET, File, raw, refuse_other_format
from dstream.schema.decoders import DecodeError
from dstream.schema.times import with_far_times
from dstream.spi import Misread

__all__ = [
    "DECODED_BYTES",
    "LARGEST_ROW",
    "OpenParquet",
    "RowGroup",
    "RowGroups",
    "batches",
    "has_dictionary",
    "largest_value",
    "longest_of_page",
    "misread_row",
    "opened_parquet",
    "pieces",
    "row_bytes",
]


LARGEST_ROW = 1 << 30
"""The maximal bytes of a row: a list may contain a value of a dictionary a million times."""
_LARGEST_SEARCHED = 16 << 20
"""The values of larger dictionaries are not looked at one by one: one may be as large as all."""


def largest_value(source: Any, chunk: Any, enough: int) -> int:
    """Return how many bytes the largest value in the dictionary of a column has at most; 0 if it has none of bytes.

    Args:
        source: the file, as Arrow reads it.
        chunk: the metadata of the column in a row group.
        enough: the search ends where the largest value has no more bytes than these.
    """
    whole: int = chunk.total_uncompressed_size
    if chunk.physical_type != "BYTE_ARRAY" or not any("DICTIONARY" in each for each in chunk.encodings):
        return 0
    if whole <= enough:
        return whole
    start = chunk.data_page_offset
    # Some writers omit the offset: the dictionary is first.
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    page = _dictionary_page(source.read_at(_HEADER, start))
    if page is None or not enough < page.size <= _LARGEST_SEARCHED:
        return whole if page is None else page.size
    content = _decompressed(source.read_at(page.stored, start + page.header), chunk.compression, page.size)
    longest = None if content is None else longest_of_page(content)
    return page.size if longest is None else longest


class _Page(NamedTuple):
    """The sizes of a page: decompressed, stored, and of its header, in bytes."""

    size: int
    stored: int
    header: int


_HEADER = 64
"""The header of a dictionary has about 25 bytes."""


def _dictionary_page(head: bytes) -> _Page | None:
    """Return the page that begins with these bytes, None if it is no dictionary.

    The header is a struct of Thrift in its compact protocol: the kind of the page, 2 for dictionaries, its size, its
    stored size, perhaps a checksum, and a struct: the number of values, their encoding, and whether they are sorted.
    """
    numbers: list[int] = []
    place = 0
    try:
        while head[place] in _FIELDS:
            if head[place] == _INT:
                number, place = _varint(head, place + 1)
                numbers.append(number)
            else:
                place += 1
        is_whole = head[place : place + 2] == b"\0\0" and len(numbers) in (5, 6)
    except IndexError:
        return None
    return _Page(numbers[1], numbers[2], place + 2) if is_whole and numbers[0] == 2 else None


_INT = 0x15
_FIELDS = (_INT, 0x11, 0x12, 0x3C, 0x4C)
"""The first byte of the next field: an int, true, false, and a struct after a checksum and without one."""


def _varint(head: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while head[place] & 0x80:
        number |= (head[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return (number | head[place] << shift) >> 1, place + 1  # Twice the number: none is negative, but a checksum.


def _decompressed(stored: bytes, codec: str, size: int) -> bytes | None:
    """Return the bytes of a page, None if Arrow does not decompress them alone."""
    import pyarrow as pa

    if codec == "UNCOMPRESSED":
        return stored
    try:
        name = "lz4_raw" if codec == "LZ4" else codec.lower()
        return bytes(pa.Codec(name).decompress(stored, size, asbytes=True))
    except (pa.ArrowException, OSError, ValueError):
        return None


def longest_of_page(page: bytes) -> int | None:
    r"""Return the size of the longest value of a page, each preceded by its size in four bytes; None if truncated.

    Example:
        >>> longest_of_page(b"\2\0\0\0ab\0\0\0\0\1\0\0\0c")
        2
    """
    longest = _longest_of_texts(page)
    return _longest_one_by_one(page) if longest is None else longest


def _longest_of_texts(page: bytes) -> int | None:
    """Return the longest size of strings without NUL, otherwise None: then only sizes have zeros. 15 times as fast."""
    import numpy as np

    content = np.frombuffer(page, np.uint8)
    zeros = np.flatnonzero(content == 0)
    is_next = np.diff(zeros, prepend=-9, append=-9) == 1
    places = zeros[is_next[:-1] & ~is_next[1:]] - 3  # The last one of two zeros and more ends a size.
    if not len(places) or places[0] != 0:
        return None
    sizes = content[places] + (content[places + 1].astype(np.int64) << 8)
    are_all = np.array_equal(places + 4 + sizes, np.append(places[1:], len(page)))  # So these are the values.
    return int(sizes.max()) if are_all else None


def _longest_one_by_one(page: bytes) -> int | None:
    size_at = struct.Struct("<I").unpack_from
    place = longest = 0
    while place + 4 <= len(page):
        (size,) = size_at(page, place)
        place += 4 + size
        longest = max(size, longest)
    return longest if place == len(page) else None


def pieces(columns: list[Any], size: int, most: int) -> Iterator[slice]:
    """Yield ranges of rows that take at most `most` bytes with the values of their dictionaries, or are one row.

    Args:
        columns: arrays of all rows.
        size: the number of rows.
        most: the maximal number of bytes.

    Raises:
        OverflowError: a row takes more than 1 GiB; its index is the argument.
    """
    import numpy as np

    if sum(map(_bound, columns)) <= most:
        yield slice(0, size)
        return
    ends = np.cumsum(sum(map(row_bytes, columns)))
    start, before = 0, 0
    while start < size:
        end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        if ends[end - 1] - before > LARGEST_ROW:
            raise OverflowError(start)
        yield slice(start, end)
        start, before = end, int(ends[end - 1])


def _bound(column: Any) -> int:
    """Return a cheap upper bound of the bytes of the values of dictionaries in an array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return 1 << 62 if has_dictionary(column.type) else 0
    lengths = _lengths(column)
    longest = 0 if lengths is None else pc.max(lengths).as_py()  # pyright: ignore[reportAttributeAccessIssue]
    return (longest or 0) * len(column)


def row_bytes(column: Any) -> Any:
    """Return the bytes of the values of dictionaries in each row of an array, as an array of NumPy."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, none = column.type, np.zeros(len(column), np.int64)
    if not has_dictionary(kind):
        return none
    if pa.types.is_dictionary(kind):
        lengths = _lengths(column)
        if lengths is None or not len(lengths):
            return none
        places = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
        valid = pc.is_valid(column)  # pyright: ignore[reportAttributeAccessIssue]
        return np.where(valid.to_numpy(zero_copy_only=False), lengths.to_numpy()[places], 0)
    if pa.types.is_struct(kind):
        return sum((row_bytes(column.field(index)) for index in range(kind.num_fields)), none)
    if pa.types.is_map(kind):
        parts = row_bytes(column.keys) + row_bytes(column.items)
    elif pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        return row_bytes(column.values.slice(column.offset * size, len(column) * size)).reshape(-1, size).sum(axis=1)
    else:
        parts = row_bytes(column.values)
    ends = np.append(0, np.cumsum(parts))[column.offsets.to_numpy()]
    return ends[1:] - ends[:-1]


def _lengths(column: Any) -> Any:
    """Return the sizes of the values of a dictionary; None if they are of a type that has no large ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        lengths = pc.binary_length(column.dictionary)  # pyright: ignore[reportAttributeAccessIssue]
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None
    return pc.fill_null(lengths.cast(pa.int64()), 0)


def has_dictionary(kind: Any) -> bool:
    """Return whether values of a type, or nested values, are in dictionaries.

    Example:
        >>> import pyarrow as pa
        >>> has_dictionary(pa.list_(pa.dictionary(pa.int32(), pa.string())))
        True
    """
    import pyarrow as pa

    fields = range(0 if pa.types.is_dictionary(kind) else kind.num_fields)
    return pa.types.is_dictionary(kind) or any(has_dictionary(kind.field(index).type) for index in fields)


DECODED_BYTES = 64 << 20
"""The decoded bytes of a batch of rows whose values are in dictionaries, unless that is one row."""
_FEWER_ROWS = 1_024
"""A batch of at least this size has no overhead; instead of a smaller one, values remain in dictionaries."""
_FEW_BYTES = 1 << 28
"""Columns of numbers are not measured individually if their total is smaller."""


@record
class RowGroup:
    """A row group of a file, the number of rows before it, and the number of rows of a batch."""

    file: File
    index: int
    before: int
    batch_rows: int


@record
class RowGroups:
    """Row groups of one file that one task reads one after another."""

    file: File
    groups: tuple[RowGroup, ...]


class OpenParquet:
    """An open file of Parquet.

    Attributes:
        file: a `pyarrow.parquet.ParquetFile`.
        source: the bytes, as Arrow reads them: several of its threads may.
    """

    def __init__(self, file: Any, source: Any) -> None:
        self.file = file
        self.source = source

    @cached_property
    def has_lists(self) -> bool:
        """Return whether a row may have several values in a column."""
        schema = self.file.schema
        return any(schema.column(index).max_repetition_level for index in range(len(schema)))

    def chunks(self, group: int, names: Iterable[str]) -> Iterator[Any]:
        """Yield the metadata of columns of a row group: of each part of them, and of others with the name of a part."""
        metadata = self.file.metadata.row_group(group)
        return (metadata.column(index) for name in names for index in self._indices.get(name, ()))

    @cached_property
    def _indices(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, column in enumerate(map(self.file.schema.column, range(len(self.file.schema)))):
            ends = (end for end, each in enumerate(column.path + ".") if each == ".")
            for end in ends:
                found.setdefault(column.path[:end], []).append(index)
        return found

    def most_of_numbers(self, group: int, rows: int, names: Iterable[str]) -> int:
        """Return a bound on the bytes of columns of a row group: 8 for each value, or the bound of its type."""
        most = self._row_of_numbers * rows
        if self.has_lists or most > _FEW_BYTES:
            most = sum(each.num_values * self._widths[each.path_in_schema] for each in self.chunks(group, names))
        return most

    @cached_property
    def _row_of_numbers(self) -> int:
        return sum(self._widths.values())

    @cached_property
    def _widths(self) -> dict[str, int]:
        schema = self.file.schema
        return {each.path: max(8, each.length) for each in map(schema.column, range(len(schema)))}

    @cached_property
    def int96(self) -> list[str]:
        """The names of columns of times of 12 bytes, which Arrow reads as nanoseconds unless it gets another unit."""
        import pyarrow as pa

        columns = map(self.file.schema.column, range(len(self.file.schema)))
        names = {each.path for each in columns if each.physical_type == "INT96"}
        return [each.name for each in self.file.schema_arrow if each.name in names and pa.types.is_timestamp(each.type)]

    @cached_property
    def of_microseconds(self) -> Any:
        """The file as a `ParquetFile` whose times of 12 bytes are read as microseconds."""
        return type(self.file)(
            self.source,
            metadata=self.file.metadata,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )

    def with_dictionaries(self, paths: Iterable[str]) -> Any:
        """Return the `ParquetFile` that retains the dictionaries of strings or bytes at `paths`."""
        names = list(paths)
        return type(self.file)(
            self.source, metadata=self.file.metadata, read_dictionary=names, page_checksum_verification=True
        )


@contextlib.contextmanager
def opened_parquet(file: File) -> Iterator[OpenParquet]:
    """Open a file.

    Raises:
        SourceError: it is missing, or no Parquet file.
    """
    # pyarrow takes some 200 ms to import, which only its users should pay for.
    import pyarrow as pa
    import pyarrow.parquet

    if file.fs is None and file.size is None and not os.path.isfile(file.path):
        raise SourceError(f"cannot read {file.name}: it is a pipe or a device, and Parquet is read from its end")
    with raw(file) as stream:
        source = pa.PythonFile(stream, mode="r")
        try:
            # By default pyarrow does not compare the checksums of pages, and returns damaged values.
            parquet = pyarrow.parquet.ParquetFile(source, page_checksum_verification=True)
        except pa.ArrowInvalid:
            stream.seek(0)
            refuse_other_format(file.name, stream.peek(HEAD), wanted=PARQUET)
            raise
        with parquet:
            yield OpenParquet(parquet, source)


def misread_row(file: File, number: int, row: dict[str, Any], problem: DecodeError) -> Misread:
    """Return the report on a row that becomes no item, by its number in the file, from 1."""
    return misread_at(file, lambda: number, repr(row), problem, f": {problem.message('column')}", unit="row")


def batches(parquet: OpenParquet, groups: Sequence[RowGroup], columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of row groups in Arrow batches.

    If the values of a dictionary are so large that the rows of a batch may take more than `DECODED_BYTES` with them, a
    batch has fewer rows. Below `_FEWER_ROWS`, the values remain in dictionaries, and a batch has only rows that fit
    when they are decoded, at least one.

    Raises:
        SourceError: a row takes more than 1 GiB with these values.
    """
    rows = min(group.batch_rows for group in groups)
    together: list[RowGroup] = []
    most = 1  # The first rows are decoded after reading one dictionary, and the others soon.
    for group in groups:
        large = _Large([], rows) if _is_small(parquet, group, rows) else _large_values(parquet, group, columns, rows)
        if is_usual := large.rows == rows:
            together.append(group)
            if len(together) < most:
                continue
        yield from _read(parquet, parquet.file, together, columns, rows)
        together, most = [], min(most * 2, 64)
        if large.paths:
            yield from _cut(parquet, parquet.with_dictionaries(large.paths), group, columns, rows)
        elif not is_usual:
            yield from _read(parquet, parquet.file, [group], columns, large.rows)
    yield from _read(parquet, parquet.file, together, columns, rows)


class _Large(NamedTuple):
    """The reading of a row group: the large values that remain in dictionaries, and the rows of a batch."""

    paths: list[str]
    rows: int


def _is_small(parquet: OpenParquet, group: RowGroup, rows: int) -> bool:
    """Return whether the rows of a batch are small even if each had all values of its row group."""
    metadata = parquet.file.metadata.row_group(group.index)
    least = min(rows, metadata.num_rows) * metadata.total_byte_size
    return not metadata.num_rows or (least <= DECODED_BYTES and not parquet.has_lists)


def _read(
    parquet: OpenParquet, file: Any, groups: Sequence[RowGroup], columns: Sequence[str], rows: int
) -> Iterable[Any]:
    if not groups:
        return ()
    indices = [group.index for group in groups]
    # Arrow also interprets the name of a column as a path: "a.b" as the b of a.
    found = (batch.select(columns) for batch in file.iter_batches(rows, indices, columns))
    times = [name for name in parquet.int96 if name in columns]
    if not times:
        return found
    again = (parquet.of_microseconds.iter_batches(rows, indices, times) for _ in range(1))  # Opened if it is needed.
    return with_far_times(found, itertools.chain.from_iterable(again), times)


def _cut(parquet: OpenParquet, file: Any, group: RowGroup, columns: Sequence[str], rows: int) -> Iterator[Any]:
    number = group.before + 1
    for batch in _read(parquet, file, [group], columns, rows):
        try:
            for few in pieces(batch.columns, batch.num_rows, DECODED_BYTES):
                yield batch.slice(few.start, few.stop - few.start)
        except OverflowError as error:
            raise too_large(group.file, number + error.args[0]) from None
        number += batch.num_rows


def too_large(file: File, number: int) -> SourceError:
    """Return the error for a row that exceeds the memory limit."""
    problem = f"row {number} takes more than {LARGEST_ROW:,} bytes with the values of its dictionaries"
    return SourceError(f"{file.name}, {problem}; read other columns with columns=")


def _large_values(parquet: OpenParquet, group: RowGroup, columns: Sequence[str], rows: int) -> _Large:
    """Determine from the dictionaries of a row group how it is read."""
    metadata = parquet.file.metadata.row_group(group.index)
    chunks = [each for each in parquet.chunks(group.index, columns) if each.physical_type == "BYTE_ARRAY"]
    of_batch = min(rows, metadata.num_rows)
    together, is_uneven = 0, False
    paths: list[str] = []
    for chunk in chunks:
        values = -(-of_batch * chunk.num_values // metadata.num_rows)
        enough = DECODED_BYTES // len(chunks) // max(1, values)
        largest = largest_value(parquet.source, chunk, enough)
        together += largest * values
        # A list may have all values of the row group, regardless of the average.
        has_uneven = chunk.num_values > metadata.num_rows and largest * chunk.num_values > LARGEST_ROW
        is_uneven |= has_uneven
        if largest > enough or has_uneven:
            paths.append(chunk.path_in_schema)
    if together <= DECODED_BYTES and not is_uneven:
        return _Large([], rows)
    fewer = of_batch * DECODED_BYTES // max(1, together)
    if fewer >= _FEWER_ROWS and not is_uneven:
        return _Large([], fewer)
    return _Large(paths, 0)
