"""Lines of text and of JSON as sources, and the lines appended to files of a folder."""

from __future__ import annotations

import datetime
import fnmatch
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from dstream.base.records import record
from dstream.connectors.base import MAX_RECORD, Start
from dstream.connectors.files.json_lines import json_problem
from dstream.connectors.files.lines import (
    JSON_SPACES,
    Damaged,
    LineNumbers,
    blocks_of_lines,
    blocks_of_text,
    encoded_blocks,
    is_divisible,
    is_like_ascii,
    line_blocks,
    lines_of_text,
    undamaged,
)
from dstream.connectors.files.sources import RecordFiles, RecordSplit, rows_and_items
from dstream.connectors.files.splits import FEW_BYTES, Part, plan, size_of
from dstream.connectors.memory import NamesOfStreams
from dstream.errors import SourceError
from dstream.filesystem.access import File, is_compressed
from dstream.spi import ArrowRows, Reached
from dstream.values.bad_records import EncodedLines

if TYPE_CHECKING:
    from dstream.schema.record_decoders import OnMisread

__all__ = [
    "NOTHING_READ",
    "Position",
    "TextFiles",
    "TextReader",
    "TextSplit",
    "WatchedFiles",
    "WatchedSplit",
    "end_of_lines",
    "is_of",
    "position_at",
]


@record(repr=False)
class TextFiles(RecordFiles):
    """Result of `text_files`."""

    @property
    def gives_texts(self) -> bool:
        """Return whether its blocks may become columns of strings."""
        return not self.options.with_path and self.on_bad == "fail" and self.into is None

    @property
    def columns_if(self) -> str:
        """Return the condition on the files for that, in words that follow "if"."""
        return f"a task reads {FEW_BYTES >> 10} KB or more"

    def _split(self, parts: tuple[Any, ...]) -> RecordSplit:
        kind = RecordSplit if self.options.with_path else TextSplit
        return kind(parts, self.format, self.options.with_path)


@record
class TextReader:
    """Lines of text, and the limit of the bytes of a line."""

    encoding: str
    max_record: int = MAX_RECORD

    def divided(self, files: list[File], parallelism: int) -> list[tuple[Part, ...]]:
        """Divide the files by bytes."""
        return plan(files, parallelism, lambda file: is_divisible(file, self.encoding))

    def items(self, part: Part, misread: OnMisread) -> Iterator[str]:
        """Yield the lines; those that are not in the encoding, or too long, are bad records."""
        numbers, given = LineNumbers(part, self.encoding, self.max_record), 0
        for block in blocks_of_lines(part, self.encoding, self.max_record):
            if not isinstance(block, Damaged):
                yield from block
            else:
                for place, line in enumerate(block):
                    is_bad = place in block.bad
                    yield from misread(numbers.undecodable(block, place, given + place + 1)) if is_bad else (line,)
            given += len(block)

    def blocks(self, part: Part) -> Iterator[Sequence[str]]:
        """Yield the lines of one block of a file after another, up to one that is not in the encoding, or too long."""
        return encoded_blocks(part, self.encoding, self.max_record)

    def row_count(self, file: File) -> int:
        """Return about how many lines a file has, by its first ones."""
        head = b"" if is_compressed(file) else _first_bytes(file)
        lines = head.count(b"\n")
        return round((file.size or 0) / (len(head) / lines if lines else _USUAL_LINE))


def _first_bytes(file: File) -> bytes:
    try:
        with Path(file.path).open("rb") as opened:
            return opened.read(_SAMPLE)
    except OSError:  # The run raises it, with the file.
        return b""


_SAMPLE, _USUAL_LINE = 1 << 14, 64
"""Bytes of a file that are sampled, and the bytes of a line if the sample has none."""


@record
class TextSplit(RecordSplit):
    """Lines of text, which are read in blocks, most of them as bytes."""

    gives_texts: ClassVar[bool] = True

    def read(self) -> Iterator[str]:
        """Yield the lines; the file is closed at its end, or when the iterator is dropped."""
        return itertools.chain.from_iterable(self.read_blocks())

    def read_blocks(self) -> Iterator[Sequence[str]]:
        """Yield the lines of one block of a file after another."""
        blocks = cast(TextReader, self.format).blocks
        are_few = sum(map(size_of, self.parts)) < FEW_BYTES
        for block in itertools.chain.from_iterable(map(blocks, self.parts)):
            if isinstance(block, EncodedLines):
                block.are_few = are_few
            yield block


HEAD = 256
"""The bytes at the start of a file, or those that were read, that distinguish it from another one with its inode."""
_BLOCK = 256 << 10


class Position(NamedTuple):
    """The position of a line in a file.

    Attributes:
        generation: how often the file was truncated or rewritten.
        byte: the number of bytes before it.
        head: the number of its first bytes that are hashed.
        known: their hash.
    """

    generation: int
    byte: int
    head: int
    known: str

    def plain(self) -> list[Any]:
        """Return the position as data of JSON."""
        return list(self)

    @staticmethod
    def of(offset: Any, label: str) -> Position:
        """Return the position of an offset, which is validated; None: the start.

        Raises:
            SourceError: it is none.
        """
        match offset:
            case None:
                return NOTHING_READ
            case [int(generation), int(byte), int(head), str(known)] if 0 <= head <= byte and generation >= 0:
                return Position(generation, byte, head, known)
        raise SourceError(f"{label}: {offset!r} is no offset of a file")


NOTHING_READ = Position(0, 0, 0, "")


def position_at(path: str, generation: int, byte: int) -> Position:
    """Return the position after a number of bytes of a file."""
    head = min(byte, HEAD)
    return Position(generation, byte, head, _hash(path, head))


def is_of(path: str, position: Position) -> bool:
    """Return whether a position belongs to the current file."""
    # A file that was truncated may have the same first bytes.
    return os.stat(path).st_size >= position.byte and _hash(path, position.head) == position.known


def _hash(path: str, size: int) -> str:
    import hashlib  # imported on use: only a watched folder needs it

    if not size:
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(size)).hexdigest()[:32]


def end_of_lines(path: str, start: int, most: int | None) -> tuple[int, int]:
    r"""Return the end of the last complete line after `start`, and an estimate of the number of lines after it.

    Args:
        path: of the file.
        start: where a line begins.
        most: the most lines to read; None: all of them.
    """
    with open(path, "rb") as file:
        return (_last_end(file, start), 0) if most is None else _end_of_some(file, start, most)


def _last_end(file: Any, start: int) -> int:
    """Search from the end, a block at a time."""
    stop = file.seek(0, os.SEEK_END)
    while stop > start:
        first = max(start, stop - _BLOCK)
        file.seek(first)
        place = file.read(stop - first).rfind(b"\n")
        if place >= 0:
            return int(first + place + 1)
        stop = first
    return start


def _end_of_some(file: Any, start: int, most: int) -> tuple[int, int]:
    end = read = int(file.seek(start))
    lines = 0
    while lines < most and (block := file.read(_BLOCK)):
        found = block.count(b"\n")
        if lines + found >= most:
            # As if later lines were as long as these.
            end = read + len(block) - len(block.split(b"\n", most - lines)[-1])
            return end, max(os.fstat(file.fileno()).st_size - end, 0) * most // (end - start)
        end = read + block.rfind(b"\n") + 1 if found else end
        lines, read = lines + found, read + len(block)
    return end, 0


_SHOWN = 200
_FEW_BYTES = 64 << 10
"""The bytes below which, as in a slow feed, no columns are made: so few lines would not be faster."""


@record
class WatchedFiles(NamesOfStreams):
    """Result of `watch_files`. A partition is a file, and is named by its inode."""

    folder: str
    glob: str
    start: Start
    format: str
    encoding: str

    @property
    def has_columns(self) -> bool:
        """Return whether its items can be read in columns."""
        return self.format == "json" and is_like_ascii(self.encoding)

    @property
    def label(self) -> str:
        """The call."""
        more = [repr(self.glob)] if self.glob != "*" else []
        more += [] if self.start == "oldest" else [f"start={self.start!r}"]
        more += [] if self.format == "text" else [f"format={self.format!r}"]
        return f"watch_files({', '.join([repr(self.folder), *more])})"

    def begin(self) -> Mapping[str, list[Any]]:
        """Return the files that exist, and where each is begun."""
        meant = {name: path for name, path in self._files().items() if self._is_meant(path)}
        return self._positions(meant, lambda name, path: self._begun(path))

    def _positions(self, files: Mapping[str, str], of: Callable[[str, str], Position]) -> Mapping[str, list[Any]]:
        """Return a position in each existing file."""
        found = {}
        for name, path in files.items():
            if is_compressed(File(path, path, None)):
                words = "is compressed by its name, and lines that are appended to such a file are not read"
                raise SourceError(f"{self.label}: {path} {words}: leave it out by glob=, or read it with text_files()")
            try:
                found[name] = of(name, path).plain()
            except FileNotFoundError:
                continue  # It was deleted meanwhile.
            except OSError as error:
                raise SourceError(f"{self.label}: cannot read {path}: {error}") from error
        return found

    def _begun(self, path: str) -> Position:
        if self.start == "oldest":
            return NOTHING_READ
        since = self.start.timestamp() if isinstance(self.start, datetime.datetime) else None
        # It is not known which of its lines are older, so none is left out.
        if since is not None and os.stat(path).st_mtime >= since:
            return NOTHING_READ
        return position_at(path, 0, end_of_lines(path, 0, None)[0])

    def shown_offset(self, offset: Any) -> str:
        """Return how many bytes of a file were read."""
        return f"byte {Position.of(offset, self.label).byte:,}"

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, list[Any]]:
        """Return how far each file has ended lines; a missing file is left out."""
        read = {name: Position.of(offset, self.label) for name, offset in offsets.items()}
        meant = {name: path for name, path in self._files().items() if name in read or self._is_meant(path)}
        expected = 0

        def reached(name: str, path: str) -> Position:
            nonlocal expected
            position, behind = _reached(path, read.get(name, NOTHING_READ), most)
            expected += behind
            return position

        return Reached(self._positions(meant, reached), expected=expected)

    def _is_meant(self, path: str) -> bool:
        name = os.path.basename(path)
        return name[0] not in "._" and fnmatch.fnmatchcase(name, self.glob)

    def _files(self) -> dict[str, str]:
        """Return the paths of all files by their inodes; of several names of one, such as links, one that is meant."""
        try:
            with os.scandir(self.folder) as entries:
                # Paths that are meant are last, so that in the dictionary they replace other names of their inode.
                paths = sorted((entry.path for entry in entries if entry.is_file()), key=self._rank)
            return {str(os.stat(path).st_ino): path for path in paths}
        except FileNotFoundError as error:
            if os.path.isdir(self.folder):
                return self._files()  # A file was deleted meanwhile.
            raise SourceError(f"{self.label}: the folder {self.folder} is not there") from error
        except OSError as error:
            raise SourceError(f"{self.label}: the folder {self.folder} cannot be read: {error}") from error

    def _rank(self, path: str) -> tuple[bool, str]:
        return self._is_meant(path), path

    def split(self, partition: str, start: Any, stop: Any) -> WatchedSplit:
        """Return the lines between two offsets of a file."""
        positions = Position.of(start, self.label), Position.of(stop, self.label)
        return WatchedSplit(self, partition, *positions)

    def path_of(self, partition: str) -> str | None:
        """Return where a file is now; None if it no longer exists."""
        return self._files().get(partition)

    def __repr__(self) -> str:
        return self.label


def _reached(path: str, read: Position, most: int | None) -> tuple[Position, int]:
    """Return the end of the complete lines of a file, and an estimate of the number of later lines."""
    goes_on = is_of(path, read)
    end, behind = end_of_lines(path, read.byte if goes_on else 0, most)
    return position_at(path, read.generation if goes_on else read.generation + 1, end), behind


@record(repr=False)
class WatchedSplit:
    """The lines of a file between two positions."""

    source: WatchedFiles
    partition: str
    start: Position
    stop: Position

    def read(self) -> Iterator[Any]:
        """Yield the lines, or their contents.

        Raises:
            SourceError: they no longer exist.
        """
        part = self._part()
        if part is None:
            return iter(())
        lines = itertools.chain.from_iterable(line_blocks(part, self.source.encoding))
        return lines if self.source.format == "text" else self._values(lines, part, 0)

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[Any]] | None:
        """Yield the contents in columns, and blocks that are not columnar; None: there are no columns.

        Raises:
            SourceError: the lines no longer exist.
        """
        part = self._part() if self.source.has_columns else None
        return None if part is None or size_of(part) < _FEW_BYTES else rows_and_items(self._blocks(part))

    def _blocks(self, part: Part) -> Iterator[Any]:
        from dstream.connectors.files.json_columns import JsonColumns  # imported on use: lines of text need none

        encoding, columns, given = self.source.encoding, JsonColumns(None), 0
        for block in blocks_of_text(part, encoding, MAX_RECORD, with_ends=False):
            rows = columns.rows(block) if isinstance(block, bytes) else None
            if rows is not None:
                yield rows
                given += rows.size
                continue
            lines = lines_of_text(block, with_ends=False) if isinstance(block, bytes) else block
            whole = undamaged(lines, LineNumbers(part, encoding), given)
            yield self._values(itertools.chain.from_iterable(whole), part, given)
            given += len(lines)

    def _part(self) -> Part | None:
        """Return the part of the file between the positions; None if it is empty."""
        # A file that was rewritten is read from its start.
        first = self.start.byte if self.start.generation == self.stop.generation else 0
        if first >= self.stop.byte:
            return None
        path = self.source.path_of(self.partition)
        if path is None or not is_of(path, self.stop):
            what = "deleted" if path is None else f"truncated or written anew ({path})"
            raise SourceError(
                f"{self.source.label}: a file was {what} before its lines were read, so they are lost; "
                "let files be for a while before they are removed"
            )
        return Part(File(path, path, self.stop.byte), first, self.stop.byte)

    def _values(self, lines: Iterator[str], part: Part, given: int) -> Iterator[Any]:
        for number, line in enumerate(lines, start=given + 1):
            if not line.strip(JSON_SPACES):
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                where = f"{part.file.name}, line {number:,} behind byte {part.start:,}"
                raise SourceError(f"{where} {json_problem(error)}: {line[:_SHOWN]}") from error
            yield value
