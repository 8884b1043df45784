"""Lines of text files. `sources.lines` has the reading itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast, overload

from dstream.spi import Reducer, Source
from dstream.values import DeadLetter
from dstream.values.encoded_lines import EncodedLines
from sources.file_access import File
from sources.file_splits import Part, plan
from sources.found_files import Paths, path_list
from sources.lines import Damaged, LineNumbers, blocks_of_lines, checked_encoding, encoded_blocks, is_divisible
from sources.record_files import (
    MAX_RECORD,
    OnBad,
    OnMisread,
    RecordFiles,
    RecordSplit,
    checked_max_record,
    options,
    shown_max_record,
)

__all__ = ["TextFiles", "TextFormat", "TextSplit", "text_files"]


@overload
def text_files(
    *paths: Paths,
    encoding: str = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[str]: ...
@overload
def text_files(
    *paths: Paths,
    encoding: str = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, str]]: ...
def text_files(
    *paths: Paths,
    encoding: str = "utf-8",
    with_path: bool = False,
    on_bad: OnBad = "fail",
    into: Reducer[DeadLetter, Any] | None = None,
    max_record: int = MAX_RECORD,
) -> Source[Any]:
    r"""Read the lines of text files, without their line ends.

    The lines are those of `open(path, encoding=encoding)`: "\n", "\r\n" and "\r" end a line and
    nothing else does. They come in the order of the sorted paths, then of the lines. Files whose
    names end with .gz, .bz2, .xz or .zst are decompressed. The paths are looked up when a terminal
    operation starts.

    **Parallelism**: large files are cut into ranges of 1 to 64 MiB, and small neighbours share a
    task. A compressed file, and one in an encoding such as UTF-16, is read by one task.
    **Guarantee**: every line once, none torn, as long as nobody writes to the files meanwhile. A
    file that became shorter is an error; what is appended may or may not be seen.
    **On re-run**: the files are read again.

    Args:
        paths: one path or several, or lists of them: a file, a directory (the files directly inside, without those
            that start with "." or "_"), a glob (`**` too, which follows no links to folders), or any URL that fsspec
            knows.
        encoding: as for `open`; in UTF-8 the byte order mark that begins a file is dropped, which spreadsheets write.
        with_path: give pairs of the path, absolute or a URL, and the line.
        on_bad: what becomes of a line that is not in the encoding: `"fail"` ends the run, `"skip"` leaves it out and
            says at the end how many there were. In an encoding such as UTF-16, where nobody knows where the next line
            begins, it ends the run. The same holds for a line of more than `max_record` bytes.
        into: a reducer that gets a `DeadLetter` for each such line instead, whose item is a `BadRecord`.
        max_record: bytes that a line may have, decompressed, 64 MiB by default; characters in an encoding such as
            UTF-16, in which a longer line ends the run.

    Raises:
        LookupError: there is no such encoding.
        TypeError, ValueError: an argument is of another kind, or none of its choices.
        SourceError: when it runs: a file is missing, unreadable, torn, not in this encoding, or has a line that is too
            long.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.txt").write_text("one\ntwo\n")
        >>> _ = (folder / "b.txt").write_text("three")
        >>> source = text_files(folder / "*.txt")
        >>> [line for split in source.splits(2) for line in split.read()]
        ['one', 'two', 'three']
    """
    format = TextFormat(checked_encoding(encoding), checked_max_record(max_record))
    shown = (("encoding", encoding), shown_max_record(max_record))
    return TextFiles("text_files", path_list(*paths), format, options(with_path, on_bad, into), shown)


@dataclass(frozen=True, slots=True, repr=False)
class TextFiles(RecordFiles):
    """What `text_files` returns."""

    @property
    def gives_texts(self) -> bool:
        """Whether its blocks may become columns of texts."""
        return not self.options.with_path and self.on_bad == "fail" and self.into is None

    @property
    def columns_if(self) -> str:
        """What has to be true of the files for that, in words that follow "if"."""
        return f"a task reads {_FEW_BYTES >> 10} KB or more"

    def _split(self, parts: tuple[Any, ...]) -> RecordSplit:
        kind = RecordSplit if self.options.with_path else TextSplit
        return kind(parts, self.format, self.options.with_path)


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Lines of text, and how many bytes one may have."""

    encoding: str
    max_record: int = MAX_RECORD

    def divided(self, files: list[File], parallelism: int) -> list[tuple[Part, ...]]:
        """Divide the files by bytes."""
        return plan(files, parallelism, lambda file: is_divisible(file, self.encoding))

    def items(self, part: Part, misread: OnMisread) -> Iterator[str]:
        """Give the lines; those that are not in the encoding, or too long, are bad records."""
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
        """Give the lines of one block of a file after another, up to one that is not in the encoding, or too long."""
        return encoded_blocks(part, self.encoding, self.max_record)


@dataclass(frozen=True, slots=True)
class TextSplit(RecordSplit):
    """Lines of text, which come in blocks anyway, most of them as bytes."""

    gives_texts: ClassVar[bool] = True

    def read(self) -> Iterator[str]:
        """Give the lines; the file is closed at its end, or when the iterator is dropped."""
        return itertools.chain.from_iterable(self.read_blocks())

    def read_blocks(self) -> Iterator[Sequence[str]]:
        """Give the lines of one block of a file after another."""
        blocks = cast(TextFormat, self.format).blocks
        are_few = sum(map(_size, self.parts)) < _FEW_BYTES
        for block in itertools.chain.from_iterable(map(blocks, self.parts)):
            if isinstance(block, EncodedLines):
                block.are_few = are_few
            yield block


_FEW_BYTES = 512 << 10
"""Of fewer bytes no columns are made: what does that takes 30 ms to load (pyarrow 26)."""


def _size(part: Part) -> int:
    """Return the bytes of a part; of a file whose size nobody knows, many."""
    end = part.file.size if part.end is None else part.end
    return _FEW_BYTES if end is None else end - part.start
