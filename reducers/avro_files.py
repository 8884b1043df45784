"""Files of Avro, by fastavro: blocks of records, with a schema that the values fit exactly."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import IO, Any, Literal, TypeAlias

from dstream.errors import SetupError
from dstream.values.distribution import pip_install
from reducers.column_files import ColumnContent
from reducers.column_forms import Struct
from reducers.file_formats import ColumnTypes, Compression, kept_open
from reducers.item_columns import ItemColumns, Wanted
from reducers.scalar_forms import Form

__all__ = ["AVRO_CODECS", "AvroCompression", "AvroContent", "AvroFormat", "check_fastavro"]

AvroCompression: TypeAlias = Compression | Literal["snappy"]

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


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """Files of Avro.

    Attributes:
        wanted: the fields; unset, those of the first item of each file.
        compression: of the blocks in the file.
    """

    wanted: Wanted | None
    compression: AvroCompression | None

    suffix = ".avro"
    piece = 4_096

    @property
    def is_known(self) -> bool:
        """Whether the schema is known without an item."""
        return self.wanted is not None

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> AvroContent:
        """Begin a file; the limit is that of its values in memory."""
        return AvroContent(self.wanted, file, AVRO_CODECS[self.compression], limit, held, known)

    def check_item(self, item: Any) -> None:
        """Refuse an item that has no such columns."""
        ItemColumns(self.wanted).of([item])

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
    """One file. Its values pass through Arrow, which sees what fastavro would write wrongly, such as long Decimals."""

    _writer: Any = None

    def begin(self, forms: dict[str, Form], schema: Any) -> None:
        """Write the schema.

        Raises:
            TypeError: a field has a name or a type that Avro has not.
        """
        from fastavro.write import Writer

        record = Struct(tuple(forms), tuple(forms.values())).avro("item")
        _check_names(record)
        self._writer = Writer(kept_open(self.file), record, codec=self.codec, sync_marker=_MARKER)

    def write_group(self, rows: Any) -> None:
        """Write a record for each row."""
        for record in rows.to_pylist():
            self._writer.write(record)

    def end(self) -> None:
        """Write the last block."""
        self._writer.flush()

    def discard(self) -> None:
        """Forget what waits."""
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


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
