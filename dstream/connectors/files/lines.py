"""Lines of text in an encoding: blocks, numbers, damaged and overlong lines.

The lines are those of `open(path, encoding=...)` without their line ends, and without the byte order mark that a file
in UTF-8 may begin with. A part of a file owns the stretches that end with a newline byte and start inside it; see
`line_blocks`.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import io
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

from dstream.connectors.base import MAX_RECORD
from dstream.connectors.files.sources import misread_at
from dstream.connectors.files.splits import LinePieces, Part
from dstream.errors import SourceError
from dstream.filesystem.access import HEAD, File, check_format, is_compressed, opened
from dstream.spi import Misread
from dstream.values.bad_records import EncodedLines

__all__ = [
    "JSON_SPACES",
    "Damaged",
    "LineNumbers",
    "TooLong",
    "blocks_of_lines",
    "blocks_of_text",
    "encoded_blocks",
    "from_the_start",
    "is_divisible",
    "is_like_ascii",
    "line_blocks",
    "lines_before",
    "lines_of_text",
    "lists_of_text",
    "splits_at_newlines",
    "too_long",
    "undamaged",
    "whole_lines",
]


JSON_SPACES = " \t\r\n"
"""Characters of which a blank line of JSON is made; it has no other white space."""
BLOCK = 240 << 10
"""The bytes that are read, decoded and divided into lines at a time.

Measured on 120 MB: 128 KiB to 1 MiB cost the same, and less is better for a reader of the first line alone.
"""


def is_divisible(file: File, encoding: str) -> bool:
    """Return whether several tasks may read the file, each a range of its bytes."""
    return not is_compressed(file) and splits_at_newlines(encoding)


@functools.cache
def splits_at_newlines(encoding: str) -> bool:
    r"""Return whether text in this encoding can be cut after every byte b"\n" and decoded piece by piece.

    This is true if each single byte of ASCII is its character (so UTF-16, EBCDIC and the stateful ISO-2022 codes fail),
    and if a newline after any other byte, or after any two, is still a newline (so it is never the tail of a longer
    character).
    """
    try:
        if any(bytes([byte]).decode(encoding) != chr(byte) for byte in range(128)):
            return False
        leads = _every_lead()
        return leads.decode(encoding, "replace").count("\n") == leads.count(b"\n")
    except (UnicodeError, LookupError):
        return False


def _every_lead() -> bytes:
    """Return every byte above ASCII, alone and before every other byte, each followed by a newline."""
    leads = [bytes([lead]) for lead in range(128, 256)]
    tails = [b"", *(bytes([tail]) for tail in range(256) if tail != 0x0A)]
    return b"".join(lead + tail + b"\n" for lead in leads for tail in tails)


class Damaged(list[str]):
    r"""The lines of a block, some of which cannot be decoded; their bad bytes are escaped as `\xe9`.

    Attributes:
        bad: the indexes of these lines.
        error: the reason why the first of them is bad, usually from the decoder.
        byte: its offset in the file.
    """

    def __init__(self, lines: Iterable[str], bad: Iterable[int], error: ValueError, byte: int) -> None:
        super().__init__(lines)
        self.bad = frozenset(bad)
        self.error = error
        self.byte = byte


class TooLong(Damaged):
    """A line of more bytes than the bound, cut.

    Attributes:
        has_quote: whether the complete line has a quote.
    """

    def __init__(self, line: str, most: int, byte: int, has_quote: bool) -> None:
        super().__init__([line], [0], ValueError(f"has more than max_record={most:,} bytes"), byte)
        self.has_quote = has_quote


class LineNumbers:
    """The numbers of the lines of a part in its file, which are counted when one is needed."""

    def __init__(self, part: Part, encoding: str, most: int = MAX_RECORD) -> None:
        self.part = part
        self._encoding = encoding
        self._most = most
        self._before: int | None = None

    def number(self, line: int) -> int:
        """Return the number of a line in the file, of its number in the part; both from 1."""
        if self._before is None:
            self._before = lines_before(self.part, self._encoding, self._most)
        return self._before + line

    def undecodable(self, block: Damaged, place: int, line: int) -> Misread:
        """Return the report on a damaged line, by its index in its block."""
        problem, text = block.error, block[place].rstrip("\r\n")
        if not isinstance(problem, UnicodeDecodeError):
            return misread_at(self.part.file, lambda: self.number(line), text, problem, f" {problem}")
        if place != min(block.bad):
            description = f" is not {self._encoding}"
            return misread_at(self.part.file, lambda: self.number(line), text, problem, description)

        def error() -> SourceError:
            found = _undecodable(self.part, self.number(line), block.byte, self._encoding, problem)
            found.__cause__ = problem
            return found

        record = misread_at(self.part.file, lambda: self.number(line), text, problem, "").record
        return Misread(problem, record, error)


def line_blocks(part: Part, encoding: str, most: int = MAX_RECORD) -> Iterator[list[str]]:
    r"""Yield the lines of a part in lists, one for each block of the file.

    Lines end with "\n", "\r\n" or "\r". Bytes are cut at b"\n" only, so a "\r\n" is never split. If the encoding does
    not allow that, the part is a complete file and is decoded from the start.

    Raises:
        SourceError: the file cannot be read, not decoded, or has a line of more bytes than `most`; earlier lines are
            yielded first.
    """
    given = 0
    for block in blocks_of_lines(part, encoding, most):
        yield from undamaged(block, LineNumbers(part, encoding, most), given)
        given += len(block)


def undamaged(block: list[str], numbers: LineNumbers, given: int) -> Iterator[list[str]]:
    """Yield the lines of a block, after `given` others of the part, up to one that cannot be decoded, or is too long.

    Raises:
        SourceError: there is such a line.
    """
    if not isinstance(block, Damaged):
        yield block
        return
    first = min(block.bad)
    yield block[:first]
    raise numbers.undecodable(block, first, given + first + 1).error()


def encoded_blocks(part: Part, encoding: str, most: int = MAX_RECORD) -> Iterator[Sequence[str]]:
    """Yield the same blocks, as bytes where these are ASCII or UTF-8, of which lines are made on demand.

    Raises:
        SourceError: the file cannot be read, or not decoded; earlier lines are yielded first.
    """
    if not is_like_ascii(encoding) or part.file.size is None:
        yield from line_blocks(part, encoding, most)
        return
    for block in _pieces_of_lines(part, encoding, _lines, most, _encoded):
        if isinstance(block, Damaged):
            yield block[: min(block.bad)]
            # The lines were not counted. A pipe, which cannot be read again, is not counted.
            deque(line_blocks(part, encoding, most), maxlen=0)
        yield block


_LIKE_ASCII = frozenset({"utf-8", "utf-8-sig", "ascii", "iso8859-1", "cp1252"})
"""Encodings in which bytes below 128 are always characters of ASCII."""


def _encoded(piece: bytes, codec: str) -> Sequence[str]:
    """Return the lines of a piece.

    Raises:
        UnicodeDecodeError: they are not in the encoding.
    """
    is_ascii = piece.isascii()
    if not is_ascii:
        text = piece.decode(codec)
        if not codec.startswith("utf-8"):
            return _lines(text)
        if codec == "utf-8-sig" and piece.startswith(codecs.BOM_UTF8):
            piece = piece.removeprefix(codecs.BOM_UTF8)
            is_ascii = piece.isascii()
    if b"\r" in piece:
        piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if piece and not piece.endswith(b"\n"):
        piece += b"\n"
    return EncodedLines(piece, is_ascii=is_ascii)


def blocks_of_lines(part: Part, encoding: str, most: int = MAX_RECORD) -> Iterator[list[str]]:
    """Yield the same, with `Damaged` blocks for bytes outside of the encoding, and a `TooLong` one for each such line.

    Where bytes cannot be cut at line ends the start of the next line is unknown, so that is an error, too.
    """
    if splits_at_newlines(encoding):
        return _pieces_of_lines(part, encoding, _lines, most)
    return _whole_file_of_lines(part.file, encoding, most)


def whole_lines(part: Part, encoding: str, most: int, quote: str) -> Generator[list[str], None, None]:
    """Yield blocks of lines with the line ends that they have; only of encodings that are cut at newlines."""
    return _pieces_of_lines(part, encoding, _lines_as_they_are, most, quote=quote)


def is_like_ascii(encoding: str) -> bool:
    """Return whether bytes below 128 are ASCII in this encoding, and text can be converted to UTF-8 losslessly."""
    return codecs.lookup(encoding).name in _LIKE_ASCII


def blocks_of_text(
    part: Part, encoding: str, most: int, quote: str = "", *, with_ends: bool
) -> Generator[Any, None, None]:
    """Yield the blocks of `blocks_of_lines` or `whole_lines` as bytes in UTF-8, several in one, but for damaged lines.

    Only of encodings that are like ASCII. `lines_of_text` divides a block.
    """
    lines = _lines_as_they_are if with_ends else _lines
    with contextlib.closing(_pieces_of_lines(part, encoding, lines, most, _in_utf8, quote)) as blocks:
        yield from itertools.islice(blocks, 1)  # Alone, for a reader of one item.
        some: list[bytes] = []
        try:
            for block in blocks:
                if isinstance(block, bytes):
                    some.append(block)
                if not isinstance(block, bytes) or sum(map(len, some)) >= _TEXT_BLOCK:
                    yield from filter(None, (b"".join(some),))
                    some.clear()
                if not isinstance(block, bytes):
                    yield block
        except Exception:
            yield from filter(None, (b"".join(some),))  # Lines before the error of a file are yielded first.
            raise
        yield from filter(None, (b"".join(some),))


_TEXT_BLOCK = 4 * BLOCK
"""Bytes of a block that is read in columns: its rows fit into the cache of a core.

From 1 MiB on (`give_back_large_blocks`) a worker needs fresh pages for each block, and for its text, 0.4 ms for each.
"""


def lines_of_text(text: bytes, *, with_ends: bool) -> list[str]:
    """Return the lines of a block of text, with or without their line ends."""
    return (_lines_as_they_are if with_ends else _lines)(text.decode())


def lists_of_text(text: bytes) -> Iterator[list[str]]:
    """Yield the lines of a block without their ends, in lists that fit into the cache."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + _PIECE) + 1 or len(text)
        yield lines_of_text(text[start:end], with_ends=False)
        start = end


_PIECE = 64 << 10


def _in_utf8(piece: bytes, codec: str) -> bytes:
    """Return a piece in UTF-8.

    Raises:
        UnicodeDecodeError: it is not in its encoding.
    """
    if piece.isascii():
        return piece
    text = piece.decode(codec)
    return piece if codec == "utf-8" else text.encode()


def _pieces_of_lines(
    part: Part,
    encoding: str,
    lines: Callable[[str], list[str]],
    most: int,
    encoded: Callable[[bytes, str], Any] | None = None,
    quote: str = "",
) -> Generator[Any, None, None]:
    with opened(part.file) as stream:
        if not part.start:
            check_format(part.file, stream)
        for offset, piece, is_too_long, has_quote in LinePieces(
            stream, part, BLOCK, most, quote.encode(encoding, "replace")
        ).read():
            codec = from_the_start(encoding) if offset == 0 else _past_the_start(encoding)
            if is_too_long:
                yield TooLong(piece.decode(codec, "backslashreplace"), most, offset, has_quote)
                continue
            try:
                yield lines(piece.decode(codec)) if encoded is None else encoded(piece, codec)
            except UnicodeDecodeError as error:
                bad = len(piece) - len(error.object) + error.start  # UTF-8-sig counts from after its mark.
                yield _damaged(piece, codec, lines, error, offset + bad)


def _damaged(
    piece: bytes, codec: str, lines: Callable[[str], list[str]], error: UnicodeDecodeError, byte: int
) -> Damaged:
    r"""Find the bad lines: they look different with their bad bytes shown and replaced.

    Omitted, such a byte would leave an empty line, or join a "\r" before it to a "\n" after it.
    """
    shown, replaced = (lines(piece.decode(codec, errors)) for errors in ("backslashreplace", "replace"))
    pairs = zip(shown, replaced, strict=True)
    return Damaged(shown, [place for place, (one, other) in enumerate(pairs) if one != other], error, byte)


def from_the_start(encoding: str) -> str:
    """Return the encoding at the start of a file: UTF-8 with or without a byte order mark, which spreadsheets write."""
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def _past_the_start(encoding: str) -> str:
    """Return the encoding after the start of a file, where no byte order mark is dropped."""
    return "utf-8" if codecs.lookup(encoding).name == "utf-8-sig" else encoding


def _lines(text: str) -> list[str]:
    lines = _one_kind_of_end(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _lines_as_they_are(text: str) -> list[str]:
    return list(io.StringIO(text, newline=""))


def _ended(text: str) -> list[str]:
    """Return the complete lines of a text."""
    return _one_kind_of_end(text).split("\n")[:-1]


def _one_kind_of_end(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _whole_file_of_lines(file: File, encoding: str, most: int) -> Iterator[list[str]]:
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
    given, offset, rest = 0, 0, ""
    with opened(file) as stream:
        while True:
            block = stream.read(BLOCK)
            # A failed decoder returns nothing of its block: lines before a bad byte are decoded again from here.
            state = decoder.getstate()
            offset += len(block)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                bad = offset - len(error.object) + error.start
                before = _ended(rest + _decodable(decoder, state, block, len(error.object) - error.start))
                yield before
                raise _undecodable(Part(file), given + len(before) + 1, bad, encoding, error) from error
            if not block:
                break
            head, newline, tail = text.rpartition("\n")
            if newline:
                lines = _lines(rest + head + newline)
                yield from _short(lines, file, given, most)
                given, rest = given + len(lines), ""
            rest += tail
            if len(rest) > most:
                raise too_long(file, given + 1, rest, most)
        yield from _short(_lines(rest + text), file, given, most)


def _short(lines: list[str], file: File, given: int, most: int) -> Iterator[list[str]]:
    # An unfinished line is within the bound whenever a block is read, so that a line exceeds the bound by one block at
    # most: that matters for small bounds only.
    place = next((place for place, line in enumerate(lines) if len(line) > most), None) if most < 4 * BLOCK else None
    yield lines[:place]
    if place is not None:
        raise too_long(file, given + place + 1, lines[place], most)


def too_long(file: File, number: int, text: str, most: int) -> SourceError:
    """Return the error of a line with too many characters, after which reading stops."""
    description = f" has more than max_record={most:,} characters"
    return misread_at(file, lambda: number, text, ValueError(description[1:]), description).error()


def _decodable(decoder: io.IncrementalNewlineDecoder, state: tuple[bytes, int], block: bytes, bad: int) -> str:
    """Decode a block again, without its last `bad` bytes."""
    decoder.setstate(state)
    return decoder.decode(block[: max(0, len(block) - bad)])


def _undecodable(part: Part, line: int, offset: int, encoding: str, error: UnicodeDecodeError) -> SourceError:
    """Return the error of bytes outside of the encoding, or of a file that is no text at all."""
    head = error.object[:HEAD]
    if part.file.size is not None:  # A pipe cannot be read again.
        with opened(part.file) as stream:
            try:
                head = stream.peek(HEAD)[:HEAD]
                check_format(part.file, stream, "text" if splits_at_newlines(encoding) else f"text in {encoding}")
            except SourceError as other:
                return other
    if 0 not in head:
        advice = _advice(encoding, error.object)
    else:
        advice = _NO_TEXT if splits_at_newlines(encoding) else _MIXED
    found = error.object[error.start : max(error.end, error.start + 1)][:20]
    where = "decompressed byte" if is_compressed(part.file) else "byte"
    return SourceError(
        f"{part.file.name}, line {line:,}, {where} {offset:,}: {found!r} is not {encoding} ({error.reason}). {advice}"
    )


_MIXED = "What stands around it is: bytes of another encoding are in this file."
_NO_TEXT = (
    "Its first bytes hold NULs, as those of UTF-16 do, and of formats that are no text: "
    "files(path, read=...) reads these."
)


def _advice(encoding: str, data: bytes) -> str:
    """Return advice on bytes that are not in an encoding.

    Encodings that accept every byte, such as latin-1, are not suggested: they decode the quotes of Windows as control
    characters.
    """
    tried = codecs.lookup(encoding).name.removesuffix("-sig")
    text = data.decode("utf-8", "replace")
    bad, wide = text.count("\ufffd"), sum(character > "\x7f" for character in text)
    if tried == "utf-8" and wide > 2 * bad:
        return _MIXED
    if tried != "utf-8" and not bad:
        return "Say how the file was written, for example encoding='utf-8'."
    with contextlib.suppress(UnicodeDecodeError):
        if tried != "cp1252":
            data.decode("cp1252")
            return "Say how the file was written, for example encoding='cp1252'."
    return "Say how the file was written, if it is text: encoding='cp850' is that of DOS, 'shift_jis' one of Japan."


def lines_before(part: Part, encoding: str, most: int = MAX_RECORD) -> int:
    """Count the lines of the file that belong to earlier parts; only errors are worth this reading."""
    if not part.start:
        return 0
    return sum(map(len, blocks_of_lines(Part(part.file, 0, part.start), encoding, most)))
