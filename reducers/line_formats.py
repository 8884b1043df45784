"""Formats of lines, in an encoding, compressed or not: here texts, in `json_objects` JSON, in `csv_lines` rows."""

from __future__ import annotations

import codecs
import functools
import io
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Protocol, Self

from dstream.errors import IllegalStateError
from dstream.values.blaming import each, failed_on
from reducers.file_formats import ColumnTypes, Compression, compressed, decompressed

__all__ = ["LineContent", "LineFormat", "Lines", "TextLines", "Unnamed", "checked_encoding", "readable"]


class Lines(Protocol):
    """Makes the lines of one file."""

    def header(self, items: Sequence[Any]) -> str:
        """Return what stands before the lines of the first items, with its end."""
        ...

    def lines(self, items: Sequence[Any]) -> str:
        """Return the lines of some items, each with its end."""
        ...

    def escaped(self, items: Sequence[Any], encoding: str) -> str:
        """Return lines that the encoding has bytes for, where it has none for `lines`, or say for which item."""
        ...

    def columns(self) -> ColumnTypes:
        """Return the columns, if they have names."""
        ...


class LinesOfFiles(Protocol):
    """A value that begins the lines of a file."""

    @property
    def is_known(self) -> bool:
        """Whether a file without items has a header."""
        ...

    def begun(self) -> Lines:
        """Return what makes them."""
        ...

    def heading(self, columns: ColumnTypes) -> str:
        """Return the header of files with these columns."""
        ...


@dataclass(frozen=True, slots=True)
class LineFormat:
    """Files of lines.

    Attributes:
        of: makes the lines.
        ending: of the names of the files, before that of the compression.
        encoding: of the file.
    """

    of: LinesOfFiles
    ending: str
    encoding: str
    compression: Compression | None

    piece = 4_096

    @property
    def suffix(self) -> str:
        """Both endings."""
        return self.ending + (f".{self.compression}" if self.compression else "")

    @property
    def is_known(self) -> bool:
        """Whether there is a header."""
        return self.of.is_known

    def content(self, file: IO[bytes], limit: int, held: int, known: dict[str, Any]) -> LineContent:
        """Begin a file; the limit is that of the bytes before they are compressed. None of them wait."""
        return LineContent(self.of.begun(), self.encoding, compressed(file, self.compression), limit)

    def check_item(self, item: Any) -> None:
        """Refuse an item that makes no line. To make the text of one is a function of the user's."""
        if not isinstance(self.of, TextLines):
            self.of.begun().lines([item])

    def join(self, files: Iterable[IO[bytes]], columns: ColumnTypes, into: IO[bytes]) -> None:
        """Put them one behind another, each but the first without its header and its byte order mark.

        Compressed ones stay as they are, but for those that begin with either: they are compressed anew.
        """
        opening = self._opening(columns)
        for number, file in enumerate(files):
            skipped = b"" if number == 0 else opening or self._doubled_mark(file)
            if not skipped:
                shutil.copyfileobj(file, into)
                continue
            lines = decompressed(file, self.compression)
            if lines.read(len(skipped)) != skipped:
                raise IllegalStateError("a file that is to be joined with others does not begin as it was written")
            rest = compressed(into, self.compression)
            shutil.copyfileobj(lines, rest)
            rest.close()

    def _opening(self, columns: ColumnTypes) -> bytes:
        """Return what a file begins with, whatever its items are."""
        header = self.of.heading(columns)
        header = _MARK + header if header.startswith(_MARK) and self._is_utf8() else header
        return codecs.getincrementalencoder(self.encoding)().encode(header)

    def _doubled_mark(self, file: IO[bytes]) -> bytes:
        """Return the mark that stands before one with which the first item begins."""
        mark = _MARK.encode()
        if not self._is_utf8():
            return b""
        begins = decompressed(file, self.compression).read(len(mark))
        file.seek(0)
        return mark if begins == mark else b""

    def _is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name == "utf-8"


_MARK = "\ufeff"
"""The byte order mark, which may begin a text, too."""


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
        """Write the first items, as many as fit.

        Raises:
            UnicodeEncodeError: the encoding has no bytes for a character of a text.
        """
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
            lines = _MARK + lines  # Readers drop the first one, which would be that of the item.
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
        """End the compression, whatever becomes of it."""
        with suppress(Exception):
            self._file.close()


class Unnamed:
    """What lines without columns have in common."""

    __slots__ = ()

    is_known = False

    def begun(self) -> Self:
        """Return it: a line knows no other."""
        return self

    def header(self, items: Sequence[Any]) -> str:
        """Return nothing."""
        return ""

    def columns(self) -> ColumnTypes:
        """Return none."""
        return {}

    def heading(self, columns: ColumnTypes) -> str:
        """Return nothing."""
        return ""


@dataclass(frozen=True, slots=True)
class TextLines(Unnamed):
    """Each item as a line of text.

    Attributes:
        to_string: makes the text of an item.
    """

    to_string: Callable[[Any], str]

    def lines(self, items: Sequence[Any]) -> str:
        """Return the lines of some items, each with its end.

        Raises:
            TypeError: `to_string` gives no text.
            ValueError: a text has a line break, so that readers would find two lines.
        """
        texts = items
        if self.to_string is not str or not {str}.issuperset(map(type, items)):
            texts = each(self.to_string, items)
            if not {str}.issuperset(map(type, texts)):
                _refuse(items, texts, lambda text: not isinstance(text, str), _no_text)
        made = "\n".join([*texts, ""])
        if "\r" in made or made.count("\n") != len(texts):
            _refuse(items, texts, lambda text: "\n" in text or "\r" in text, _broken)
        return made

    def escaped(self, items: Sequence[Any], encoding: str) -> str:
        """Say which item the encoding has no bytes for: a text has no escapes."""
        each(lambda item: readable(self.lines([item]), encoding).encode(encoding), items)
        return self.lines(items)


def _refuse(
    items: Sequence[Any], texts: Sequence[Any], is_wrong: Callable[[Any], bool], why: Callable[[Any], Exception]
) -> None:
    for item, text in zip(items, texts, strict=True):
        if is_wrong(text):
            error = why(text)
            failed_on(error, item)
            raise error


def _no_text(text: object) -> Exception:
    return TypeError(f"to_string must give a str, not {type(text).__name__}")


def _broken(text: object) -> Exception:
    return ValueError(
        "the text of an item has a line break, so it would be read as several lines; json.dumps(...) of it has none"
    )


def readable(text: str, encoding: str) -> str:
    """Return `text`, refusing what an encoding writes as another character, as Shift JIS does with the yen sign.

    Raises:
        UnicodeEncodeError: it holds one.
    """
    changed = _changed(encoding)
    if not changed or changed.isdisjoint(text):
        return text
    place = next(place for place, sign in enumerate(text) if sign in changed)
    raise UnicodeEncodeError(encoding, text, place, place + 1, "its bytes are read as another character")


@functools.cache
def _changed(encoding: str) -> frozenset[str]:
    """Return the characters that are written as others, which some encodings of East Asia have."""
    name = codecs.lookup(encoding).name
    if name.startswith(("utf", "ascii", "iso8859")):
        return frozenset()
    return frozenset(sign for sign in map(chr, range(0x80, 0x10000)) if not _comes_back(sign, name))


def _comes_back(sign: str, encoding: str) -> bool:
    try:
        data = sign.encode(encoding)
    except UnicodeError:
        return True
    return data.decode(encoding, "replace") == sign


def checked_encoding(encoding: str) -> str:
    """Return `encoding`, refusing what `open` would refuse.

    Raises:
        LookupError: there is no such text encoding.
        TypeError: `encoding` is no str.
    """
    if not isinstance(encoding, str):
        raise TypeError(f"encoding must be a str, not {type(encoding).__name__}")
    io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return encoding
