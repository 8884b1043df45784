"""What a format of files is: how items become the bytes of one file, piece by piece.

A format is a value that travels to the tasks; for each file that a task writes it makes a `Content`. Those of lines
stand in `reducers.line_formats`, those of columns in `reducers.parquet_files` and `reducers.avro_files`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import IO, Any, Literal, Protocol, TypeAlias, cast

__all__ = [
    "NO_LIMIT",
    "ColumnTypes",
    "Compression",
    "Content",
    "FileFormat",
    "JoinedFormat",
    "compressed",
    "decompressed",
    "kept_open",
]

Compression: TypeAlias = Literal["gz", "bz2", "xz", "zst"]

ColumnTypes: TypeAlias = dict[str, str]
"""The columns of a file: of each its name, and its type in words; empty if there is none, or if it is not known."""

NO_LIMIT = 1 << 62


class FileFormat(Protocol):
    """How items become files."""

    @property
    def suffix(self) -> str:
        """What the names of the files end with."""
        ...

    @property
    def piece(self) -> int:
        """How many items a content is given at once, at most."""
        ...

    @property
    def is_known(self) -> bool:
        """Whether a file without items says something all the same: what its columns are."""
        ...

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> Content:
        """Begin a file.

        Args:
            file: takes the bytes.
            limit: of the content, in bytes.
            held: how many bytes may wait in memory until they are written.
            known: what the files of a task have learned of their columns, by name.
        """
        ...

    def check_item(self, item: Any) -> None:
        """Refuse an item that no file of this format takes, whatever the others are; no function is called for it."""
        ...


class JoinedFormat(FileFormat, Protocol):
    """One whose files several can be made into one."""

    def join(self, files: Iterable[IO[bytes]], columns: ColumnTypes, into: IO[bytes]) -> None:
        """Write the items of some files of this format into one, in order.

        Args:
            files: each complete, and read once.
            columns: of each of them.
            into: takes the bytes, and stays open.
        """
        ...


class Content(Protocol):
    """What is on its way into one file."""

    def write(self, items: Sequence[Any]) -> int:
        """Take items from the front; return how many fit. The first one always does."""
        ...

    def finish(self) -> ColumnTypes:
        """Write what waits, and the end of the file, which stays open; return the columns, none of lines."""
        ...

    def discard(self) -> None:
        """Leave it as it is: the file will be removed."""
        ...


def compressed(file: IO[bytes], how: Compression | None) -> IO[bytes]:
    """Return what writes into `file`, compressed. To close it completes it; `file` stays open."""
    if how is None:
        return kept_open(file)
    if how == "gz":
        import gzip

        # The same items make the same bytes: no name and no time.
        return cast("IO[bytes]", gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
    if how == "bz2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if how == "xz":
        import lzma

        return lzma.LZMAFile(file, "wb")
    # The standard library writes Zstandard from Python 3.14 on; pyarrow is here anyway, but slow to import.
    import pyarrow

    return cast("IO[bytes]", pyarrow.CompressedOutputStream(pyarrow.PythonFile(kept_open(file), mode="w"), "zstd"))


def decompressed(file: IO[bytes], how: Compression | None) -> IO[bytes]:
    """Return what reads the bytes that `compressed` took; `file` stays open."""
    if how is None:
        return file
    if how == "gz":
        import gzip

        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    if how == "bz2":
        import bz2

        return bz2.BZ2File(file)
    if how == "xz":
        import lzma

        return lzma.LZMAFile(file)
    import pyarrow

    content = pyarrow.CompressedInputStream(pyarrow.PythonFile(_KeptReader(file), mode="r"), "zstd")
    return cast("IO[bytes]", io.BufferedReader(content))


def kept_open(file: IO[bytes]) -> IO[bytes]:
    """Return the file as one that who closes it does not close."""
    return cast("IO[bytes]", _Kept(file))


class _Kept(io.RawIOBase):
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.write = file.write  # type: ignore[method-assign]  # A call less for each piece.

    def writable(self) -> bool:
        return True


class _KeptReader(io.RawIOBase):
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def readable(self) -> bool:
        return True
