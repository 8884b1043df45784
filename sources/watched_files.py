"""`watch_files`: lines that are appended to the files of a folder, for as long as somebody writes there."""

from __future__ import annotations

import datetime
import fnmatch
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, overload

from dstream.errors import SourceError, UnsupportedError
from dstream.spi.stream_source import StreamSource
from sources.file_access import File, is_compressed
from sources.file_positions import NOTHING_READ, Position, end_of_lines, is_of, position_at
from sources.file_splits import Part
from sources.jsonlines import json_problem
from sources.lines import JSON_SPACES, checked_encoding, line_blocks, splits_at_newlines
from sources.memory import NamesOfStreams
from sources.starts import Start, checked_start

__all__ = ["WatchedFiles", "WatchedSplit", "watch_files"]

_URL = re.compile(r"[A-Za-z][\w+.-]*://")
_SHOWN = 200


@overload
def watch_files(
    folder: str | os.PathLike[str],
    glob: str = "*",
    start: Start = "oldest",
    format: Literal["text"] = "text",
    *,
    encoding: str = "utf-8",
) -> StreamSource[str]: ...
@overload
def watch_files(
    folder: str | os.PathLike[str],
    glob: str = "*",
    start: Start = "oldest",
    *,
    format: Literal["json"],
    encoding: str = "utf-8",
) -> StreamSource[Any]: ...
def watch_files(
    folder: str | os.PathLike[str],
    glob: str = "*",
    start: Start = "oldest",
    format: str = "text",
    *,
    encoding: str = "utf-8",
) -> StreamSource[Any]:
    r"""Read the lines that are in the files of a folder, and those that are appended to them later on.

    A line is given once its "\n" is there, so none is torn. Files in folders below, and those whose names start with
    "." or "_", are left out. A file is known by its number in the file system (inode) and its first bytes:

    - renamed, as when logs are rotated, it goes on where it was, also if the glob does not match its new name;
    - truncated or written anew, it is read from its start;
    - deleted, it ends; lines that were there and nobody had asked for are lost, and a range that was to be read is an
      error.

    **Parallelism**: one task for each file that has news.
    **Guarantee**: exactly once: offsets are those of bytes, and a range gives the same lines as long as the file is
    there. The lines of a file are in order.
    **On re-run**: a new job begins at `start`; one that goes on, where it stood.

    Args:
        folder: a path; on a cluster, one that all machines share.
        glob: which names, such as `"*.log"`.
        start: of the files that are there at the beginning: `"oldest"`, all lines; `"current"`, those that are ended
            later; an aware datetime, all lines of files that were modified since then. Later files are read from their
            start.
        format: `"text"`, or `"json"` with a value on each line; blank lines are skipped then.
        encoding: as for `text_files`, one in which a line can be cut off at "\n".

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices, or lines of this encoding cannot be cut.
        LookupError: there is no such encoding.
        UnsupportedError: the folder is a URL of another machine.
        SourceError: when it runs: the folder is gone, a file cannot be read or is compressed by its name, or a line is
            not of this format.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.log").write_text("one\ntwo\nthr")
        >>> source = watch_files(folder, "*.log")
        >>> begin = source.begin()
        >>> reached = source.reach(begin)
        >>> [line for name in reached for line in source.split(name, begin[name], reached[name]).read()]
        ['one', 'two']
    """
    path: Any = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    for name, value in ("folder", path), ("glob", glob):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a str, not {type(value).__name__}")
        if not value:
            raise ValueError(f"{name} must not be empty")
    if _URL.match(path):
        raise UnsupportedError("watch_files() watches a folder that this machine has, also a mounted one, and no URL")
    if "/" in glob:
        raise ValueError(f"glob must match names of files in the folder itself, not {glob!r}")
    if format not in ("text", "json"):
        raise ValueError(f"format must be 'text' or 'json', not {format!r}")
    if not splits_at_newlines(checked_encoding(encoding)):
        raise ValueError(f"encoding must be one whose lines can be cut off at a newline byte, which {encoding} is not")
    absolute = os.path.abspath(os.path.expanduser(path))
    return WatchedFiles(absolute, glob, checked_start(start), format, encoding)


@dataclass(frozen=True, slots=True, repr=False)
class WatchedFiles(NamesOfStreams):
    """What `watch_files` returns. A partition is a file, and is named by its inode."""

    folder: str
    glob: str
    start: Start
    format: str
    encoding: str

    @property
    def label(self) -> str:
        """The call."""
        more = [repr(self.glob)] if self.glob != "*" else []
        more += [] if self.start == "oldest" else [f"start={self.start!r}"]
        more += [] if self.format == "text" else [f"format={self.format!r}"]
        return f"watch_files({', '.join([repr(self.folder), *more])})"

    def begin(self) -> Mapping[str, list[Any]]:
        """Return the files that are there, and where each is begun."""
        meant = {name: path for name, path in self._files().items() if self._is_meant(path)}
        return self._positions(meant, lambda name, path: self._begun(path))

    def _positions(self, files: Mapping[str, str], of: Callable[[str, str], Position]) -> Mapping[str, list[Any]]:
        """Return a position in each file that is still there."""
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
        if since is not None and os.stat(path).st_mtime >= since:
            return NOTHING_READ
        return position_at(path, 0, end_of_lines(path, 0, None))

    def shown_offset(self, offset: Any) -> str:
        """Return how many bytes of a file were read."""
        return f"byte {Position.of(offset, self.label).byte:,}"

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, list[Any]]:
        """Return how far each file has ended lines; a file that is gone is left out."""
        read = {name: Position.of(offset, self.label) for name, offset in offsets.items()}
        meant = {name: path for name, path in self._files().items() if name in read or self._is_meant(path)}
        return self._positions(meant, lambda name, path: _reached(path, read.get(name, NOTHING_READ), most))

    def _is_meant(self, path: str) -> bool:
        name = os.path.basename(path)
        return name[0] not in "._" and fnmatch.fnmatchcase(name, self.glob)

    def _files(self) -> dict[str, str]:
        """Return the paths of all files by their inodes; of several names of one, such as links, one that is meant."""
        try:
            with os.scandir(self.folder) as entries:
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
        """Return where a file is now; None if it is gone."""
        return self._files().get(partition)

    def __repr__(self) -> str:
        return self.label


def _reached(path: str, read: Position, most: int | None) -> Position:
    if is_of(path, read):
        return position_at(path, read.generation, end_of_lines(path, read.byte, most))
    return position_at(path, read.generation + 1, end_of_lines(path, 0, most))


@dataclass(frozen=True, slots=True, repr=False)
class WatchedSplit:
    """Some lines of a file, between two positions."""

    source: WatchedFiles
    partition: str
    start: Position
    stop: Position

    def read(self) -> Iterator[Any]:
        """Give the lines, or what they hold.

        Raises:
            SourceError: they are no longer there.
        """
        first = self.start.byte if self.start.generation == self.stop.generation else 0
        if first >= self.stop.byte:
            return iter(())
        path = self.source.path_of(self.partition)
        if path is None or not is_of(path, self.stop):
            what = "deleted" if path is None else f"truncated or written anew ({path})"
            raise SourceError(
                f"{self.source.label}: a file was {what} before its lines were read, so they are lost; "
                "let files be for a while before they are removed"
            )
        file = File(path, path, self.stop.byte)
        blocks = line_blocks(Part(file, first, self.stop.byte), self.source.encoding)
        lines = itertools.chain.from_iterable(blocks)
        return lines if self.source.format == "text" else self._values(lines, path, first)

    def _values(self, lines: Iterator[str], path: str, first: int) -> Iterator[Any]:
        for number, line in enumerate(lines, start=1):
            if not line.strip(JSON_SPACES):
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                where = f"{path}, line {number:,} behind byte {first:,}"
                raise SourceError(f"{where} {json_problem(error)}: {line[:_SHOWN]}") from error
            yield value
