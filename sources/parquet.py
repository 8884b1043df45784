"""Rows of Parquet files, as dictionaries."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dstream.errors import SourceError
from dstream.spi.source import Source
from sources.files import OPENING, File, Paths, find_files, group, path_list, raw, written_call
from sources.names import checked_names

__all__ = ["ParquetFiles", "ParquetSplit", "RowGroup", "parquet_rows"]

BATCH_BYTES = 1 << 20
BATCH_ROWS = 8_192
"""Rows become dictionaries in batches of about 1 MiB of Parquet data, and of 8,192 rows at most."""


def parquet_rows(*paths: Paths, columns: Iterable[str] | None = None) -> Source[dict[str, Any]]:
    """Read the rows of Parquet files as dictionaries of Python values.

    Paths and order are those of `text_files`.

    **Parallelism**: row groups are divided among tasks; small neighbours share one. The driver
    reads only the metadata of each file.
    **Guarantee**: every row once, as long as nobody writes to the files meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        columns: the top-level columns to read, in this order; by default all.

    Raises:
        TypeError: `columns` is a str.
        ValueError: `columns` is empty or holds a name twice.
        SourceError: when it runs: a file is missing or no Parquet file, or lacks a column.

    Example:
        >>> import pathlib, tempfile, pyarrow, pyarrow.parquet
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.parquet"
        >>> pyarrow.parquet.write_table(pyarrow.table({"name": ["Ada"], "age": [36]}), path)
        >>> [row for split in parquet_rows(path).splits(2) for row in split.read()]
        [{'name': 'Ada', 'age': 36}]
    """
    return ParquetFiles(path_list(*paths), checked_names(columns, "columns"))


@dataclass(frozen=True, slots=True, repr=False)
class ParquetFiles:
    """What `parquet_rows` returns."""

    paths: tuple[str, ...]
    columns: tuple[str, ...] | None

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> list[ParquetSplit]:
        """Read the metadata of the files and divide their row groups."""
        units = itertools.chain.from_iterable(_row_groups(file, self.columns) for file in find_files(self.paths))
        groups = group(units, parallelism) or [()]
        return [ParquetSplit(each, self.columns) for each in groups]

    def __repr__(self) -> str:
        return written_call("parquet_rows", self.paths, columns=self.columns)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group of a file, and how many rows of it make a batch."""

    file: File
    index: int
    batch_rows: int


def _row_groups(file: File, columns: tuple[str, ...] | None) -> list[tuple[int, RowGroup]]:
    """Return each row group with its size in bytes."""
    with _parquet(file) as parquet:
        names = parquet.schema_arrow.names
        if unknown := [name for name in columns or () if name not in names]:
            raise SourceError(f"{file.name} has no column {', '.join(unknown)}; there are {', '.join(names)}")
        groups = map(parquet.metadata.row_group, range(parquet.metadata.num_row_groups))
        return [(OPENING + each.total_byte_size, _unit(file, index, each)) for index, each in enumerate(groups)]


def _unit(file: File, index: int, row_group: Any) -> RowGroup:
    row_bytes = max(1, row_group.total_byte_size // max(1, row_group.num_rows))
    return RowGroup(file, index, max(1, min(BATCH_ROWS, BATCH_BYTES // row_bytes)))


@dataclass(frozen=True, slots=True)
class ParquetSplit:
    """Row groups that one task reads one after another."""

    groups: tuple[RowGroup, ...]
    columns: tuple[str, ...] | None

    def read(self) -> Iterator[dict[str, Any]]:
        """Give the rows."""
        by_file = itertools.groupby(self.groups, key=lambda row_group: row_group.file)
        batches = itertools.chain.from_iterable(self._batches(file, list(groups)) for file, groups in by_file)
        return itertools.chain.from_iterable(batches)

    def _batches(self, file: File, groups: list[RowGroup]) -> Iterator[list[dict[str, Any]]]:
        rows = min(row_group.batch_rows for row_group in groups)
        with _parquet(file) as parquet:
            for batch in parquet.iter_batches(rows, [row_group.index for row_group in groups], self.columns):
                yield batch.to_pylist()


@contextlib.contextmanager
def _parquet(file: File) -> Iterator[Any]:
    # pyarrow takes some 200 ms to import, which only those who use it should pay.
    import pyarrow.parquet

    with raw(file) as stream, pyarrow.parquet.ParquetFile(stream) as parquet:
        yield parquet
