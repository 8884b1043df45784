"""Opening Parquet files, and reading their rows in batches."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from dstream.errors import SourceError
from dstream.spi import Misread
from sources.arrow_times import in_microseconds
from sources.file_access import File, raw
from sources.file_signatures import HEAD, PARQUET, refuse_other_format
from sources.forms import Unfit
from sources.parquet_sizes import LARGEST_ROW, largest_value, pieces
from sources.record_files import misread_at

__all__ = ["DECODED_BYTES", "OpenParquet", "RowGroup", "RowGroups", "batches", "misread_row", "opened_parquet"]

DECODED_BYTES = 64 << 20
"""Rows whose values are in dictionaries become Python's in batches of so many decoded bytes, or one by one."""
_FEWER_ROWS = 1_024
"""A batch may have so few rows at no cost; where it had to have less, values stay in dictionaries."""
_FEW_BYTES = 1 << 28
"""Columns of numbers are not counted apart if all together take no more."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group of a file, how many rows stand before it, and how many of it make a batch."""

    file: File
    index: int
    before: int
    batch_rows: int


@dataclass(frozen=True, slots=True)
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
        """Whether a row may have several values in a column."""
        schema = self.file.schema
        return any(schema.column(index).max_repetition_level for index in range(len(schema)))

    def chunks(self, group: int, names: Iterable[str]) -> Iterator[Any]:
        """Give the metadata of some columns of a row group: of each part of them, and of others called like a part."""
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
        """Return how many bytes some columns of a row group may have if each value takes 8, or what its type says."""
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
        """The same `ParquetFile`, whose times of 12 bytes are read as microseconds."""
        return type(self.file)(
            self.source,
            metadata=self.file.metadata,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )

    def with_dictionaries(self, paths: Iterable[str]) -> Any:
        """Return the same `ParquetFile`, whose values stay in dictionaries where a path leads to texts or bytes."""
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
    # pyarrow takes some 200 ms to import, which only those who use it should pay.
    import pyarrow as pa
    import pyarrow.parquet

    if file.fs is None and file.size is None and not os.path.isfile(file.path):
        raise SourceError(f"cannot read {file.name}: it is a pipe or a device, and Parquet is read from its end")
    with raw(file) as stream:
        source = pa.PythonFile(stream, mode="r")
        try:
            parquet = pyarrow.parquet.ParquetFile(source, page_checksum_verification=True)
        except pa.ArrowInvalid:
            stream.seek(0)
            refuse_other_format(file.name, stream.peek(HEAD), wanted=PARQUET)
            raise
        with parquet:
            yield OpenParquet(parquet, source)


def misread_row(file: File, number: int, row: dict[str, Any], problem: Unfit) -> Misread:
    """Return what is said of a row that becomes no item, by its number in the file, from 1."""
    return misread_at(file, lambda: number, repr(row), problem, f": {problem.said('column')}", unit="row")


def batches(parquet: OpenParquet, groups: Sequence[RowGroup], columns: Sequence[str]) -> Iterator[Any]:
    """Give the rows of some row groups in Arrow batches.

    Where a dictionary has such large values that the rows of a batch may take more than `DECODED_BYTES` with them, a
    batch has fewer rows. Where these were less than `_FEWER_ROWS`, the values stay in dictionaries, and a batch has
    only as many rows as take no more when they are decoded, or one.

    Raises:
        SourceError: a row takes more than 1 GiB with these values.
    """
    rows = min(group.batch_rows for group in groups)
    together: list[RowGroup] = []
    most = 1  # The first rows are there after a look at one dictionary, and the others soon.
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
    """How a row group with large values is read: which of its values stay in dictionaries, and rows of a batch."""

    paths: list[str]
    rows: int


def _is_small(parquet: OpenParquet, group: RowGroup, rows: int) -> bool:
    """Whether the rows of a batch take few bytes even if each had all values of its row group."""
    metadata = parquet.file.metadata.row_group(group.index)
    least = min(rows, metadata.num_rows) * metadata.total_byte_size
    return least <= DECODED_BYTES and not parquet.has_lists


def _read(
    parquet: OpenParquet, file: Any, groups: Sequence[RowGroup], columns: Sequence[str], rows: int
) -> Iterable[Any]:
    if not groups:
        return ()
    indices = [group.index for group in groups]
    # Arrow takes the name of a column for that of a part of another one, too: "a.b" for the b of a.
    found = (batch.select(columns) for batch in file.iter_batches(rows, indices, columns))
    times = [name for name in parquet.int96 if name in columns]
    if not times:
        return found
    again = (parquet.of_microseconds.iter_batches(rows, indices, times) for _ in range(1))  # Opened if it is needed.
    return _with_far_times(found, itertools.chain.from_iterable(again), times)


def _with_far_times(read: Iterable[Any], again: Iterable[Any], names: Sequence[str]) -> Iterator[Any]:
    """Give batches in which times beyond the years 1677 to 2262, of which no nanoseconds are, have their microseconds.

    Arrow (26) gives others for them, without an error, of which none is a whole number of microseconds.

    Args:
        read: the batches.
        again: the same, with microseconds in the columns of times; read if there are such times.
        names: those of these columns.
    """
    import pyarrow as pa

    others, done = iter(again), 0
    for number, batch in enumerate(read):
        try:
            in_microseconds(batch.select(names))
        except pa.ArrowInvalid:
            other, done = next(itertools.islice(others, number - done, None)), number + 1
            yield from _far_times(batch, other, names)
        else:
            yield batch


def _far_times(batch: Any, other: Any, names: Sequence[str]) -> Iterator[Any]:
    """Give the rows of a batch, with the times of another one where these are the same, or overflow to the same."""
    import numpy as np
    import pyarrow as pa

    pairs = [(_numbers(batch.column(name)), _numbers(other.column(name))) for name in names]
    are_same = np.array([microseconds * 1_000 == nanoseconds for nanoseconds, microseconds in pairs])
    ends = [0, *(np.flatnonzero(np.any(are_same[:, 1:] != are_same[:, :-1], axis=0)) + 1), batch.num_rows]
    for start, stop in itertools.pairwise(map(int, ends)):
        exact = {name for name, is_same in zip(names, are_same[:, start], strict=True) if is_same}
        columns = [(other if name in exact else batch).column(name) for name in batch.schema.names]
        found = pa.RecordBatch.from_arrays(columns, batch.schema.names)
        yield found.slice(start, stop - start)


def _numbers(times: Any) -> Any:
    import pyarrow as pa

    return times.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)


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
    """Return the error for a row that takes more memory than any may."""
    told = f"row {number} takes more than {LARGEST_ROW:,} bytes with the values of its dictionaries"
    return SourceError(f"{file.name}, {told}; read other columns with columns=")


def _large_values(parquet: OpenParquet, group: RowGroup, columns: Sequence[str], rows: int) -> _Large:
    """Look into the dictionaries of a row group how it is read."""
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
        # A list may have all values of the row group, whatever lists have on average.
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
