"""Files of Parquet, by pyarrow: row groups of some megabytes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from reducers.column_files import ColumnContent
from reducers.file_formats import ColumnTypes, Compression, kept_open
from reducers.item_columns import ItemColumns, Wanted
from reducers.scalar_forms import Form

__all__ = ["PARQUET_CODECS", "ParquetContent", "ParquetFormat"]

PARQUET_CODECS: dict[Compression | None, str] = {None: "snappy", "gz": "gzip", "zst": "zstd"}


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """Files of Parquet.

    Attributes:
        wanted: the columns; unset, those of the first item of each file.
        compression: of the columns in the file; unset, the one that all programs read.
    """

    wanted: Wanted | None
    compression: Compression | None

    suffix = ".parquet"
    piece = 16_384

    @property
    def is_known(self) -> bool:
        """Whether the columns are known without an item."""
        return self.wanted is not None

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> ParquetContent:
        """Begin a file; the limit is that of its values in memory."""
        return ParquetContent(self.wanted, file, PARQUET_CODECS[self.compression], limit, held, known)

    def check_item(self, item: Any) -> None:
        """Refuse an item that has no such columns."""
        ItemColumns(self.wanted).of([item])

    def join(self, files: Iterable[IO[bytes]], columns: ColumnTypes, into: IO[bytes]) -> None:
        """Write their rows in row groups of some megabytes."""
        import pyarrow as pa
        import pyarrow.parquet

        rows = _row_groups(files)
        first = next(rows)
        made = pa.PythonFile(kept_open(into), mode="w")
        with pyarrow.parquet.ParquetWriter(made, first.schema, compression=PARQUET_CODECS[self.compression]) as writer:
            for waiting in _gathered(itertools.chain([first], rows)):
                table = pa.concat_tables(waiting)
                writer.write_table(table, row_group_size=table.num_rows)


def _row_groups(files: Iterable[IO[bytes]]) -> Iterator[Any]:
    import pyarrow.parquet

    for file in files:
        with pyarrow.parquet.ParquetFile(file) as part:
            yield from map(part.read_row_group, range(part.num_row_groups))


def _gathered(tables: Iterable[Any]) -> Iterator[list[Any]]:
    """Give tables together that have some megabytes."""
    waiting, size = [], 0
    for table in tables:
        waiting.append(table)
        size += table.nbytes
        if size >= _GROUP:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


_GROUP = 16 * 2**20
"""How many bytes the rows of joined files have in memory when they become a row group."""


class ParquetContent(ColumnContent):
    """One file. A group of rows is a row group."""

    _writer: Any = None

    def begin(self, forms: dict[str, Form], schema: Any) -> None:
        """Begin the file."""
        import pyarrow as pa
        import pyarrow.parquet

        file = pa.PythonFile(kept_open(self.file), mode="w")
        self._writer = pyarrow.parquet.ParquetWriter(file, schema, compression=self.codec)

    def write_group(self, rows: Any) -> None:
        """Write a row group."""
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))

    def end(self) -> None:
        """Write the metadata."""
        self._writer.close()

    def discard(self) -> None:
        """Close what pyarrow would close later, when the file is gone."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
