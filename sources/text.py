"""Lines of text files. `sources.lines` has the reading itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, overload

from dstream.spi.source import Source
from sources.files import Part, Paths, find_files, path_list, plan, written_call
from sources.lines import checked_encoding, is_divisible, line_blocks

__all__ = ["NamedTextFiles", "NamedTextSplit", "TextFiles", "TextSplit", "text_files"]


@overload
def text_files(*paths: Paths, encoding: str = ..., with_names: Literal[False] = ...) -> Source[str]: ...
@overload
def text_files(*paths: Paths, encoding: str = ..., with_names: Literal[True]) -> Source[tuple[str, str]]: ...
def text_files(
    *paths: Paths, encoding: str = "utf-8", with_names: bool = False
) -> Source[str] | Source[tuple[str, str]]:
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
            that start with "." or "_"), a glob (`**` too), or any URL that fsspec knows.
        encoding: as for `open`; "utf-8-sig" drops a byte order mark.
        with_names: give pairs of the path, absolute or a URL, and the line.

    Raises:
        LookupError: there is no such encoding.
        SourceError: when it runs: a file is missing, unreadable, torn, or not in this encoding.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.txt").write_text("one\ntwo\n")
        >>> _ = (folder / "b.txt").write_text("three")
        >>> source = text_files(folder / "*.txt")
        >>> [line for split in source.splits(2) for line in split.read()]
        ['one', 'two', 'three']
    """
    names = path_list(*paths)
    if not isinstance(with_names, bool):
        raise TypeError(f"with_names must be True or False, not {type(with_names).__name__}")
    if with_names:
        return NamedTextFiles(names, checked_encoding(encoding))
    return TextFiles(names, checked_encoding(encoding))


@dataclass(frozen=True, slots=True, repr=False)
class TextFiles:
    """What `text_files` returns."""

    paths: tuple[str, ...]
    encoding: str

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> list[TextSplit]:
        """Find the files and divide them by bytes."""
        return [TextSplit(parts, self.encoding) for parts in _parts(self.paths, self.encoding, parallelism)]

    def __repr__(self) -> str:
        return written_call("text_files", self.paths, encoding=self.encoding)


@dataclass(frozen=True, slots=True, repr=False)
class NamedTextFiles:
    """What `text_files(..., with_names=True)` returns."""

    paths: tuple[str, ...]
    encoding: str

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> list[NamedTextSplit]:
        """Find the files and divide them by bytes."""
        return [NamedTextSplit(parts, self.encoding) for parts in _parts(self.paths, self.encoding, parallelism)]

    def __repr__(self) -> str:
        return written_call("text_files", self.paths, encoding=self.encoding, with_names=True)


def _parts(paths: tuple[str, ...], encoding: str, parallelism: int) -> list[tuple[Part, ...]]:
    return plan(find_files(paths), parallelism, lambda file: is_divisible(file, encoding))


@dataclass(frozen=True, slots=True)
class TextSplit:
    """Parts of files that one task reads one after another."""

    parts: tuple[Part, ...]
    encoding: str

    def read(self) -> Iterator[str]:
        """Give the lines; the file is closed at its end, or when the iterator is dropped."""
        return itertools.chain.from_iterable(self.read_blocks())

    def read_blocks(self) -> Iterator[list[str]]:
        """Give the lines in lists, one for each block of a file."""
        return itertools.chain.from_iterable(line_blocks(part, self.encoding) for part in self.parts)


@dataclass(frozen=True, slots=True)
class NamedTextSplit:
    """Parts of files that one task reads one after another, each line with the name of its file."""

    parts: tuple[Part, ...]
    encoding: str

    def read(self) -> Iterator[tuple[str, str]]:
        """Give the pairs of name and line."""
        return itertools.chain.from_iterable(
            zip(itertools.repeat(part.file.name), TextSplit((part,), self.encoding).read(), strict=False)
            for part in self.parts
        )
