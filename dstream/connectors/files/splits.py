"""Splits of files among tasks, and pieces of a file that end at a line end."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from dstream.base.records import record
from dstream.errors import SourceError
from dstream.filesystem.access import File

__all__ = ["FEW_BYTES", "OPENING", "LinePieces", "Part", "Piece", "group", "plan", "size_of"]


U = TypeVar("U")

SMALLEST_SPLIT = 1 << 20
LARGEST_SPLIT = 64 << 20
"""A split is about 1/parallelism of all bytes, but neither below 1 MiB nor above 64 MiB."""
OPENING = 64 << 10
"""The cost of opening a file, in bytes that could be read instead: 10,000 empty files are work too."""


@record
class Part:
    """A stretch of a file: the bytes from `start` up to `end`, or up to the end of the file."""

    file: File
    start: int = 0
    end: int | None = None


FEW_BYTES = 512 << 10
"""The bytes below which no columns are made: importing that module takes 30 ms (pyarrow 26)."""


def size_of(part: Part) -> int:
    """Return the bytes of a part; of a file of unknown size, many."""
    end = part.file.size if part.end is None else part.end
    return FEW_BYTES if end is None else end - part.start


def plan(files: Iterable[File], parallelism: int, divisible: Callable[[File], bool]) -> list[tuple[Part, ...]]:
    """Divide the files among splits: large files are cut by bytes, small neighbours share a split.

    Args:
        files: the files in the order of the items.
        parallelism: the number of splits that keeps every core busy.
        divisible: whether the file may be cut at any byte; otherwise one task reads it.

    Returns:
        For each split the parts that it reads one after another, in order.
    """
    files = list(files)
    total = sum(OPENING + (file.size or 0) for file in files)
    target = _target(total, parallelism)
    placed: list[tuple[int, Part]] = []
    position = 0
    for file in files:
        position += OPENING
        cuts: list[int | None] = [0, None]
        if file.size and divisible(file):
            # Cut at multiples of the target over all files, so that no part reaches into two bins.
            cuts = [0, *range(target - position % target, file.size, target), file.size]
        for start, end in itertools.pairwise(cuts):
            # An empty file at the end begins after all bytes, where it would be a separate split.
            placed.append((min(position + (start or 0), total - 1), Part(file, start or 0, end)))
        position += file.size or 0
    return _bins(placed, target)


def group(units: Iterable[tuple[int, U]], parallelism: int) -> list[tuple[U, ...]]:
    """Divide indivisible units, as pairs (bytes, unit), among splits in the same manner as `plan`."""
    units = list(units)
    starts = itertools.accumulate((size for size, _ in units), initial=0)
    # `accumulate` with `initial` yields one more number than units.
    placed = [(start, unit) for start, (_, unit) in zip(starts, units, strict=False)]
    return _bins(placed, _target(sum(size for size, _ in units), parallelism))


def _target(total: int, parallelism: int) -> int:
    """Return how many bytes a split should have."""
    fewest, most = -(-total // LARGEST_SPLIT), max(1, total // SMALLEST_SPLIT)
    return max(1, -(-total // min(max(parallelism, fewest, 1), most)))


def _bins(placed: Iterable[tuple[int, U]], target: int) -> list[tuple[U, ...]]:
    bins = itertools.groupby(placed, key=lambda pair: pair[0] // target)
    return [tuple(unit for _, unit in members) for _, members in bins]


_SHOWN = 64 << 10
"""Bytes of a line that is too long which are retained for its dead letter."""


class Piece(NamedTuple):
    """Bytes of a file.

    Attributes:
        offset: their offset.
        data: complete lines, or the beginning of one that is too long.
        is_too_long: they are such a beginning.
        has_quote: the line that is too long has a quote.
    """

    offset: int
    data: bytes
    is_too_long: bool = False
    has_quote: bool = False


class LinePieces:
    r"""The bytes of a part of a file, in pieces that end where a line ends.

    A line ends with b"\n", or with b"\r" if no b"\n" follows within the bound.

    Args:
        stream: the file.
        part: the range of its bytes.
        block: the number of bytes to read at a time.
        most: the limit of the bytes of a line. The rest of a longer one is read and dropped.
        quote: the quote of CSV, which is searched in lines that are too long.
    """

    def __init__(self, stream: io.BufferedReader, part: Part, block: int, most: int, quote: bytes = b"") -> None:
        self._stream = stream
        self._part = part
        self._block = block
        self._most = most
        self._quote = quote

    def read(self) -> Iterator[Piece]:
        """Yield the pieces.

        Raises:
            SourceError: the file became shorter meanwhile.
        """
        stream, end, rest = self._stream, self._part.end, b""
        position = self.first_line()
        while rest or end is None or position < end:
            wanted = self._block if end is None else max(0, min(self._block, end - position - len(rest)))
            data, rest = rest + stream.read(wanted), b""
            if not data:
                break
            if not data.endswith(b"\n"):
                # Two bytes more, since a line of the largest size may end with b"\r\n".
                more = stream.readline(self._most + 2)
                data += more
                if len(more) > self._most + 1 and not more.endswith(b"\n"):
                    ended = data.rfind(b"\n") + 1
                    ended = data.rfind(b"\r", ended, len(data) - 1) + 1 or ended  # The last byte may belong to b"\r\n".
                    data, rest = data[:ended], data[ended:]
            if data:
                yield from self._bounded(position, data)
                position += len(data)
            if len(rest) > self._most + 1:
                found = Piece(position, rest[:_SHOWN], True)
                if not self._quote:
                    yield found  # Before the rest is read, which may be the larger part by far.
                size, rest, has_quote = self._skipped(rest)
                if self._quote:
                    yield found._replace(has_quote=has_quote)
                position += size
        if end is not None and position < end:
            raise SourceError(f"{self._part.file.name} shrank to {position:,} bytes while it was read")

    def first_line(self) -> int:
        """Move to the first line that starts inside the part, and return its offset."""
        part, stream = self._part, self._stream
        if not part.start:
            return 0
        assert part.end is not None
        position = stream.seek(part.start - 1)  # A line starts at `start` if the byte before ends one.
        while position < part.end:  # Never search further, or a file of one line would be read by every task.
            skipped = stream.readline(min(self._block, part.end - position))
            position += len(skipped)
            if skipped.endswith(b"\n") or not skipped:
                break
        return position

    def _bounded(self, position: int, data: bytes) -> Iterator[Piece]:
        """Yield lines, those that are too long apart from others."""
        done = 0
        if len(data) > self._most:
            for line in re.finditer(rb"[^\r\n]{%d,}" % (self._most + 1), data):
                start, end = line.span()
                if start > done:
                    yield Piece(position + done, data[done:start])
                yield Piece(position + start, data[start : min(end, start + _SHOWN)], True, self._has_quote(line[0]))
                done = end + (2 if data.startswith(b"\r\n", end) else 1)
        if done < len(data):
            yield Piece(position + done, data[done:] if done else data)

    def _skipped(self, data: bytes) -> tuple[int, bytes, bool]:
        """Skip a line with a given prefix; return its size, the bytes read after it, and its quote."""
        size, has_quote = 0, False
        while data:
            if data.endswith(b"\r"):
                data += self._stream.readline(1)
            # A regular expression takes ten times as long.
            ends = [place for place in map(data.find, (b"\n", b"\r")) if place >= 0]
            end = min(ends, default=len(data))
            has_quote = has_quote or self._has_quote(data[:end])
            if ends:
                end += 2 if data.startswith(b"\r\n", end) else 1
                return size + end, data[end:], has_quote
            size += end
            # From a file of a single task, more than the line may be read, which is faster.
            data = self._stream.read(self._block) if self._part.end is None else self._stream.readline(self._block)
        return size, b"", has_quote

    def _has_quote(self, data: bytes) -> bool:
        # Between two blocks a quote of several bytes would be overlooked.
        return bool(self._quote) and (len(self._quote) > 1 or self._quote in data)
