"""Output files in columns: Parquet and Avro, with types settled by the first items."""

from __future__ import annotations

import itertools
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import IO, Any, Literal, TypeAlias

from dstream.base.environment import pip_install
from dstream.connectors.files.formats import Compression, kept_open
from dstream.errors import SetupError
from dstream.schema.columns import ColumnSelection, ItemColumns, TypedColumns
from dstream.schema.record_types import RecordType
from dstream.schema.types import ColumnType, ColumnTypeError, ColumnTypes

__all__ = [
    "AVRO_CODECS",
    "PARQUET_CODECS",
    "AvroCompression",
    "AvroContent",
    "AvroFormat",
    "ColumnContent",
    "ColumnFormat",
    "ParquetContent",
    "ParquetFormat",
    "check_fastavro",
]


class ColumnContent(ABC):
    """Collects rows of one file, and writes them in groups. The types of the columns are fixed with the first group.

    Attributes:
        file: receives the bytes.
        codec: the compression.
    """

    def __init__(
        self,
        wanted: ColumnSelection | None,
        file: IO[bytes],
        codec: str,
        limit: int,
        held: int,
        known: dict[str, ColumnType],
    ) -> None:
        self.file = file
        self.codec = codec
        self._columns = TypedColumns(wanted)
        self._limit = limit
        self._most_held = held
        self._known = known
        self._waiting: list[list[Any]] = []
        self._held = 0
        self._size = 0
        self._begun: dict[str, ColumnType] | None = None

    @abstractmethod
    def begin(self, forms: dict[str, ColumnType], schema: Any) -> None:
        """Write the bytes before the first group."""

    @abstractmethod
    def write_group(self, rows: Any) -> None:
        """Write a table of rows."""

    @abstractmethod
    def end(self) -> None:
        """Write the bytes after the last group."""

    def write(self, items: Sequence[Any]) -> int:
        """Write the first items that fit; return their number.

        Raises:
            TypeError: an item has other columns, or a value does not fit its column.
        """
        columns, arrays = self._columns.arrays(items)
        if self._begun is not None:
            self._columns.refuse_what_changed(self._begun, items)
        self._known.update({name: form for name, form in self._columns.types.items() if not form.is_open})
        count = self._fitting(arrays)
        if count:
            arrays = [array[:count] for array in arrays]
            self._waiting.append([_settled(array, values) for array, values in zip(arrays, columns, strict=True)])
            grown = _bytes(arrays)
            self._held += grown
            self._size += grown
        if self._held >= self._most_held:
            self._write_waiting()
        return count

    def _fitting(self, arrays: list[Any]) -> int:
        """Return how many rows fit; of an empty file at least one."""
        count = len(arrays[0])
        # `nbytes` of a slice counts its own rows, so that no row is copied or encoded to be measured.
        while self._size + _bytes([array[:count] for array in arrays]) > self._limit:
            count //= 2
            if count == 0:
                return 0 if self._size else 1
        return count

    def _write_waiting(self) -> None:
        import pyarrow as pa

        if self._begun is None:
            self._use_what_is_known()
        forms = self._columns.types
        schema = pa.schema([(name, form.arrow) for name, form in forms.items()])
        if self._begun is None:
            self.begin(forms, schema)
            self._begun = dict(forms)
        if self._waiting:
            pieces = [_fitted(each, list(forms.values()), schema) for each in self._waiting]
            self.write_group(pa.Table.from_batches(pieces))
        self._waiting, self._held = [], 0

    def _use_what_is_known(self) -> None:
        """Set the type of columns without one from the task's other files: `partition_by` may leave only None."""
        for place, (name, form) in enumerate(self._columns.types.items()):
            other = self._known.get(name, form)
            if form.is_open and other != form:
                with suppress(ColumnTypeError):  # Then the commit reports that the files do not fit.
                    for piece in self._waiting:
                        other.array(piece[place] if isinstance(piece[place], Sequence) else [])
                    self._columns.types[name] = other

    def finish(self) -> ColumnTypes:
        """Write the buffered rows, and the end."""
        if self._waiting or self._begun is None:
            self._write_waiting()
        self.end()
        return self._columns.names()

    @abstractmethod
    def discard(self) -> None:
        """Do nothing: the file will be removed."""


def _bytes(arrays: list[Any]) -> int:
    return sum(array.nbytes for array in arrays)


def _settled(array: Any, values: Sequence[Any]) -> Any:
    """Return an array or, if the type of its values is still unknown, the original values.

    Arrow casts lists of None wrongly (pyarrow 26: to their own type), so the array is created again once the type is
    known.
    """
    return array if _is_settled(array.type) else values[: len(array)]


def _is_settled(kind: Any) -> bool:
    import pyarrow as pa

    inner = (kind.field(place).type for place in range(kind.num_fields))
    return not pa.types.is_null(kind) and all(map(_is_settled, inner))


def _fitted(parts: Sequence[Any], forms: Sequence[ColumnType], schema: Any) -> Any:
    """Return a piece of rows in the types that the columns have now."""
    import pyarrow as pa

    arrays = [
        part.cast(form.arrow) if isinstance(part, pa.Array) else form.array(part)
        for part, form in zip(parts, forms, strict=True)
    ]
    return pa.record_batch(arrays, schema)


AvroCompression: TypeAlias = Compression | Literal["snappy"]
PARQUET_CODECS: dict[AvroCompression | None, str] = {None: "snappy", "gz": "gzip", "zst": "zstd"}


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """Files in columns.

    Attributes:
        wanted: the columns; unset, the columns of the first item of each file.
        compression: the compression inside of the file; unset, one that all programs read.
    """

    wanted: ColumnSelection | None
    compression: AvroCompression | None

    @property
    def is_known(self) -> bool:
        """Return whether the columns are known without an item."""
        return self.wanted is not None

    def check_item(self, item: Any) -> None:
        """Refuse an item that has no such columns."""
        ItemColumns(self.wanted).of([item])


class ParquetFormat(ColumnFormat):
    """Files of Parquet."""

    __slots__ = ()
    suffix = ".parquet"
    piece = 16_384

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> ParquetContent:
        """Begin a file; the limit applies to its values in memory."""
        return ParquetContent(self.wanted, file, PARQUET_CODECS[self.compression], limit, held, known)

    def join(self, files: Iterable[IO[bytes]], columns: ColumnTypes, into: IO[bytes]) -> None:
        """Write their rows in row groups of a few megabytes."""
        import pyarrow as pa
        import pyarrow.parquet

        rows = _row_groups(files)
        # Files that are joined have items, and so a row group.
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
    """Yield tables in lists of a few megabytes."""
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
"""The bytes that the rows of joined files have in memory when they become a row group."""


class ParquetContent(ColumnContent):
    """The contents of one Parquet file. A group of rows is a row group."""

    _writer: Any = None

    def begin(self, forms: dict[str, ColumnType], schema: Any) -> None:
        """Begin the file."""
        import pyarrow as pa
        import pyarrow.parquet

        file = pa.PythonFile(kept_open(self.file), mode="w")
        self._writer = pyarrow.parquet.ParquetWriter(file, schema, compression=self.codec)

    def write_group(self, rows: Any) -> None:
        """Write a row group."""
        # pyarrow refuses a size of 0, also for no rows (26).
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))

    def end(self) -> None:
        """Write the metadata."""
        self._writer.close()

    def discard(self) -> None:
        """Close buffers that pyarrow would close later, when the file is closed."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()


AVRO_CODECS: dict[AvroCompression | None, str] = {
    None: "null",
    "gz": "deflate",
    "bz2": "bzip2",
    "xz": "xz",
    "zst": "zstandard",
    "snappy": "snappy",
}


def check_fastavro(compression: AvroCompression | None) -> None:
    """Refuse to write Avro where that cannot be.

    Raises:
        SetupError: a package that it needs is not installed.
    """
    needed = ["fastavro", *_PACKAGES.get(compression, ())]
    if missing := [package for package in needed if not _is_installed(package)]:
        raise SetupError(
            f"to_files(format='avro') needs {' and '.join(missing)}, which is not installed: {pip_install('avro')}"
        )


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


_PACKAGES: dict[AvroCompression | None, tuple[str, ...]] = {
    "snappy": ("cramjam",),
    "zst": () if sys.version_info >= (3, 14) else ("backports.zstd",),
}
"""Packages that fastavro needs for a codec."""


class AvroFormat(ColumnFormat):
    """Files of Avro."""

    __slots__ = ()
    suffix = ".avro"
    piece = 4_096

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> AvroContent:
        """Begin a file; the limit applies to its values in memory."""
        return AvroContent(self.wanted, file, AVRO_CODECS[self.compression], limit, held, known)

    def join(self, files: Iterable[IO[bytes]], columns: ColumnTypes, into: IO[bytes]) -> None:
        """Copy their blocks."""
        from fastavro import block_reader
        from fastavro.write import Writer

        writer = None
        for file in files:
            blocks = block_reader(file)
            if writer is None:
                schema, codec = blocks.writer_schema, AVRO_CODECS[self.compression]
                writer = Writer(kept_open(into), schema, codec=codec, sync_marker=_MARKER)
            for block in blocks:
                writer.write_block(block)


_MARKER = b"dstream to_files"
"""Between blocks. Two runs of the same items make the same bytes: it need not be random."""


class AvroContent(ColumnContent):
    """The contents of one Avro file, whose values pass through Arrow, which refuses values that fastavro corrupts."""

    _writer: Any = None

    def begin(self, forms: dict[str, ColumnType], schema: Any) -> None:
        """Write the schema.

        Raises:
            TypeError: a field has a name or a type that Avro has not.
        """
        from fastavro.write import Writer

        record = RecordType(tuple(forms.items())).avro("item")
        _check_names(record)
        self._writer = Writer(kept_open(self.file), record, codec=self.codec, sync_marker=_MARKER)

    def write_group(self, rows: Any) -> None:
        """Write a record for each row."""
        # Strictly, since a dictionary would drop all but one of the values of a key that a map has twice.
        for record in rows.to_pylist(maps_as_pydicts="strict"):
            self._writer.write(record)

    def end(self) -> None:
        """Write the last block."""
        self._writer.flush()

    def discard(self) -> None:
        """Forget the buffered rows."""
        self._writer = None


def _check_names(schema: Any) -> None:
    if isinstance(schema, list):
        for part in schema:
            _check_names(part)
    if isinstance(schema, dict):
        for field in schema.get("fields", ()):
            if not _NAME.fullmatch(field["name"]):
                raise TypeError(f"Avro has letters, digits and _ in the names of fields, not {field['name']!r}")
            _check_names(field["type"])
        _check_names(schema.get("items"))
        _check_names(schema.get("values"))


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
