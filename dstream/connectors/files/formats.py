"""Formats of output files: the contract, compression, and lines of text and of JSON.

A format is a value that is sent to the tasks; for each file that a task writes it creates a `Content`. `csv_output` has
the lines of CSV, `columnar_output` has Parquet and Avro.
"""

from __future__ import annotations

import codecs
import io
import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Literal, Protocol, TypeAlias, cast

from dstream.connectors.base import TextLines, UnnamedLines, readable
from dstream.errors import IllegalStateError
from dstream.failures.attribution import each
from dstream.schema.encoders import NotJsonError, plain
from dstream.schema.types import ColumnTypes

__all__ = [
    "NO_LIMIT",
    "Compression",
    "Content",
    "FileFormat",
    "JoinedFormat",
    "JsonLines",
    "LineContent",
    "LineFormat",
    "Lines",
    "compressed",
    "decompressed",
    "kept_open",
]


Compression: TypeAlias = Literal["gz", "bz2", "xz", "zst"]


NO_LIMIT = 1 << 62


class FileFormat(Protocol):
    """The contract of a format of output files."""

    @property
    def suffix(self) -> str:
        """The suffix of the files' names."""
        ...

    @property
    def piece(self) -> int:
        """The maximal number of items that a content receives at once."""
        ...

    @property
    def is_known(self) -> bool:
        """Return whether a file without items has contents all the same: its columns."""
        ...

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> Content:
        """Begin a file.

        Args:
            file: receives the bytes.
            limit: the size limit of the content, in bytes.
            held: the maximal bytes to buffer in memory.
            known: the types of columns in the files of a task, by name.
        """
        ...

    def check_item(self, item: Any) -> None:
        """Refuse an item that no file of this format accepts, regardless of other items; calls no user function."""
        ...


class JoinedFormat(FileFormat, Protocol):
    """The contract of a format whose files can be joined into one."""

    def join(self, files: Iterable[IO[bytes]], columns: ColumnTypes, into: IO[bytes]) -> None:
        """Write the items of files of this format into one, in order.

        Args:
            files: each complete, and read once.
            columns: the columns of each of them.
            into: receives the bytes, and remains open.
        """
        ...


class Content(Protocol):
    """The contents of a file that is being written."""

    def write(self, items: Sequence[Any]) -> int:
        """Write the first items that fit; return their number. The first item always fits."""
        ...

    def finish(self) -> ColumnTypes:
        """Write the buffered items, and the end of the file, which remains open; return the columns, if it has any."""
        ...

    def discard(self) -> None:
        """Do nothing: the file will be removed."""
        ...


def compressed(file: IO[bytes], how: Compression | None) -> IO[bytes]:
    """Return a file that writes into `file`, compressed. Closing it completes it; `file` remains open."""
    if how is None:
        return kept_open(file)
    if how == "gz":
        import gzip

        # The output is deterministic: no name and no time.
        return cast("IO[bytes]", gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
    if how == "bz2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if how == "xz":
        import lzma

        return lzma.LZMAFile(file, "wb")
    # The standard library writes Zstandard from Python 3.14 on; pyarrow is installed anyway, but slow to import.
    import pyarrow

    return cast("IO[bytes]", pyarrow.CompressedOutputStream(pyarrow.PythonFile(kept_open(file), mode="w"), "zstd"))


def decompressed(file: IO[bytes], how: Compression | None) -> IO[bytes]:
    """Return a file that reads the bytes written to `compressed`; `file` remains open."""
    if how is None:
        return file
    from dstream.filesystem.access import decompressed_stream  # imported on use: only joined files are read

    return decompressed_stream(io.BufferedReader(_KeptReader(file)), f".{how}")


def kept_open(file: IO[bytes]) -> IO[bytes]:
    """Return a view of the file whose `close` does not close the file."""
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

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        data = self._file.read(len(target))
        target[: len(data)] = data
        return len(data)


class Lines(Protocol):
    """Maker of the lines of one file."""

    def header(self, items: Sequence[Any]) -> str:
        """Return the header before the lines of the first items, with its end."""
        ...

    def lines(self, items: Sequence[Any]) -> str:
        """Return the lines of items, each with its line end."""
        ...

    def escaped(self, items: Sequence[Any], encoding: str) -> str:
        """Return lines with escapes where the encoding cannot represent `lines`, or raise, naming the item."""
        ...

    def columns(self) -> ColumnTypes:
        """Return the columns, if they have names."""
        ...


class LinesOfFiles(Protocol):
    """A value that begins the lines of a file."""

    @property
    def is_known(self) -> bool:
        """Return whether a file without items has a header."""
        ...

    def begun(self) -> Lines:
        """Return the maker of lines."""
        ...

    def heading(self, columns: ColumnTypes) -> str:
        """Return the header of files with these columns."""
        ...


@dataclass(frozen=True, slots=True)
class LineFormat:
    """Files of lines.

    Attributes:
        of: makes the lines.
        ending: the suffix of the names of the files, before the suffix of the compression.
        encoding: the encoding of the file.
    """

    of: LinesOfFiles
    ending: str
    encoding: str
    compression: Compression | None

    piece = 4_096

    @property
    def suffix(self) -> str:
        """The suffixes of the format and of the compression."""
        return self.ending + (f".{self.compression}" if self.compression else "")

    @property
    def is_known(self) -> bool:
        """Return whether there is a header."""
        return self.of.is_known

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> LineContent:
        """Begin a file; the limit applies to the uncompressed bytes. No bytes are buffered."""
        return LineContent(self.of.begun(), self.encoding, compressed(file, self.compression), limit)

    def check_item(self, item: Any) -> None:
        """Refuse an item that makes no line. Its string may come from a function of the user's."""
        if not isinstance(self.of, TextLines):
            self.of.begun().lines([item])

    def join(self, files: Iterable[IO[bytes]], columns: ColumnTypes, into: IO[bytes]) -> None:
        """Concatenate them, each but the first without its header and its byte order mark.

        Compressed files are copied, unless they begin with either: these are compressed again.
        """
        opening = self._opening(columns)
        for number, file in enumerate(files):
            skipped = b"" if number == 0 else opening or self._doubled_mark(file)
            if not skipped:
                # Compressed files that follow one another are read as one.
                shutil.copyfileobj(file, into)
                continue
            lines = decompressed(file, self.compression)
            if lines.read(len(skipped)) != skipped:
                raise IllegalStateError("a file that is to be joined with others does not begin as it was written")
            rest = compressed(into, self.compression)
            shutil.copyfileobj(lines, rest)
            rest.close()

    def _opening(self, columns: ColumnTypes) -> bytes:
        """Return the first bytes of a file, which do not depend on its items."""
        header = self.of.heading(columns)
        header = _MARK + header if header.startswith(_MARK) and self._is_utf8() else header
        # The encoder begins with the byte order mark that an encoding such as UTF-16 has.
        return codecs.getincrementalencoder(self.encoding)().encode(header)

    def _doubled_mark(self, file: IO[bytes]) -> bytes:
        """Return the byte order mark of a file whose first item begins with another one; otherwise empty."""
        mark = _MARK.encode()
        if not self._is_utf8():
            return b""
        begins = decompressed(file, self.compression).read(len(mark))
        file.seek(0)
        return mark if begins == mark else b""

    def _is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name == "utf-8"


_MARK = "\ufeff"
"""The byte order mark, which a string may begin with, too."""


class LineContent:
    """Encodes lines piece by piece; only the first has a byte order mark."""

    def __init__(self, lines: Lines, encoding: str, file: IO[bytes], limit: int) -> None:
        self._lines = lines
        self._encoding = encoding
        self._encoder = codecs.getincrementalencoder(encoding)()
        self._file = file
        self._limit = limit
        self._size = 0

    def write(self, items: Sequence[Any]) -> int:
        """Write the first items that fit.

        Raises:
            UnicodeEncodeError: the encoding cannot represent a character of a string.
        """
        # An encoder writes a byte order mark once: items that do not fit must not count as written.
        state = self._encoder.getstate()
        data = self._encoded(items)
        while self._size + len(data) > self._limit and (self._size or len(items) > 1):
            self._encoder.setstate(state)
            items = items[: len(items) // 2]
            if not items:
                return 0
            data = self._encoded(items)
        self._file.write(data)
        self._size += len(data)
        return len(items)

    def _encoded(self, items: Sequence[Any]) -> bytes:
        header = "" if self._size else self._lines.header(items)
        lines = header + self._lines.lines(items)
        if not self._size and lines.startswith(_MARK) and codecs.lookup(self._encoding).name == "utf-8":
            lines = _MARK + lines  # Readers drop the first mark, which would belong to the item.
        state = self._encoder.getstate()
        try:
            return self._encoder.encode(readable(lines, self._encoding))
        except UnicodeEncodeError:
            self._encoder.setstate(state)
            escaped = header + self._lines.escaped(items, self._encoding)
            return self._encoder.encode(readable(escaped, self._encoding))

    def finish(self) -> ColumnTypes:
        """Complete the file."""
        if not self._size:
            self._file.write(self._encoder.encode(self._lines.header([])))
        self._file.close()
        return self._lines.columns()

    def discard(self) -> None:
        """End the compression; its errors are ignored."""
        with suppress(Exception):
            self._file.close()


@dataclass(frozen=True, slots=True)
class JsonLines(UnnamedLines):
    """Each item as a line of JSON. Characters that the encoding has not are written as escapes."""

    def lines(self, items: Sequence[Any]) -> str:
        """Return the lines of items, each with its line end.

        Raises:
            TypeError: an item contains a value that JSON cannot represent.
        """
        return "\n".join([*each(_one_line, items), ""])

    def escaped(self, items: Sequence[Any], encoding: str) -> str:
        """Return the lines in ASCII."""
        return "\n".join([*(json.dumps(_plain_item(item)) for item in items), ""])


def _one_line(item: Any) -> str:
    return _ENCODER.encode(_plain_item(item))


def _plain_item(item: Any) -> Any:
    try:
        return plain(item)
    except NotJsonError as error:
        raise TypeError(str(error)) from error.__cause__


# `json.dumps` creates a new encoder in each call with such an argument (CPython 3.11).
_ENCODER = json.JSONEncoder(ensure_ascii=False)
