"""Opening Parquet files, and reading their rows in batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.spi import Misread
from sources.file_access import File, raw
from sources.file_signatures import HEAD, PARQUET, refuse_other_format
from sources.forms import Unfit
from sources.record_files import misread_at

__all__ = ["RowGroup", "RowGroups", "batches", "misread_row", "opened_parquet"]


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


@contextlib.contextmanager
def opened_parquet(file: File) -> Iterator[Any]:
    """Open a file as a `pyarrow.parquet.ParquetFile`.

    Raises:
        SourceError: it is missing, or no Parquet file.
    """
    # pyarrow takes some 200 ms to import, which only those who use it should pay.
    import pyarrow.parquet

    with raw(file) as stream:
        try:
            parquet = pyarrow.parquet.ParquetFile(stream)
        except pyarrow.ArrowInvalid:
            stream.seek(0)
            refuse_other_format(file.name, stream.peek(HEAD), wanted=PARQUET)
            raise
        with parquet:
            yield parquet


def misread_row(file: File, number: int, row: dict[str, Any], problem: Unfit) -> Misread:
    """Return what is said of a row that becomes no item, by its number in the file, from 1."""
    return misread_at(file, lambda: number, repr(row), problem, f": {problem.said('column')}", unit="row")


def batches(parquet: Any, groups: Sequence[RowGroup], columns: Sequence[str] | None) -> Iterator[Any]:
    """Give the rows of some row groups in Arrow batches."""
    rows = min(row_group.batch_rows for row_group in groups)
    found = parquet.iter_batches(rows, [row_group.index for row_group in groups], columns)
    # Arrow takes the name of a column for that of a part of another one, too: "a.b" for the b of a.
    return found if columns is None else (batch.select(columns) for batch in found)
