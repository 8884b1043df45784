"""Files as sources: `text_files`, `json_lines`, `files`, `watch_files`.

Each factory loads its connector when it is called, `dstream.connectors.files`.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import IO, Any, Literal, TypeVar, overload

from dstream.base.urls import Paths
from dstream.connectors.base import MAX_RECORD, OnBad, Start, checked_encoding, checked_start
from dstream.errors import UnsupportedError
from dstream.spi import Reducer, Source
from dstream.spi.source import StreamSource
from dstream.values import DeadLetter
from dstream.values.user_functions import refuse_async

__all__ = ["files", "json_lines", "text_files", "watch_files"]


T = TypeVar("T")


@overload
def files(*paths: Paths, glob: str | None = ...) -> Source[tuple[str, bytes]]: ...
@overload
def files(*paths: Paths, glob: str | None = ..., read: Callable[[str, IO[bytes]], Iterable[T] | None]) -> Source[T]: ...
def files(
    *paths: Paths, glob: str | None = None, read: Callable[[str, IO[bytes]], Iterable[Any] | None] | None = None
) -> Source[Any]:
    """Read whole files: as pairs of path and bytes, or as the items that `read(path, open_file)` gives of each.

    Paths, order and compressed files are those of `text_files`.

    **Parallelism**: one task for each file; small neighbours share a task.
    **Guarantee**: every file once, as long as the files are not changed meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`; directories, if there is a `glob`.
        glob: which files below the directories, such as `"*.xml"` or `"**/*.xml"`.
        read: is given the path, absolute or a URL, and the file, open for reading bytes, decompressed. It gives the
            items, maybe lazily, or None if there are none. The file is closed behind the last one.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: there are no paths, or one of them is empty.
        SourceError: when it runs: a file is missing, unreadable or torn. What `read` raises itself arrives as it is.

    Example:
        >>> import json, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.json").write_text('[1, 2]')
        >>> _ = (folder / "b.json").write_text('[3]')
        >>> source = files(folder, glob="*.json", read=lambda path, open_file: json.load(open_file))
        >>> [item for split in source.splits(2) for item in split.read()]
        [1, 2, 3]
    """
    # here: a program that reads no files does not pay for their modules
    from dstream.connectors.files.sources import WholeFiles
    from dstream.filesystem.discovery import path_list

    if read is not None and not callable(read):
        raise TypeError(f"read must be a function of a path and an open file, not {type(read).__name__}")
    if read is not None:
        refuse_async(read, "read")
    if glob is not None and not isinstance(glob, str):
        raise TypeError(f"glob must be a str, not {type(glob).__name__}")
    return WholeFiles(path_list(*paths), glob, read)


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
    nothing else does. They are read in the order of the sorted paths, then of the lines. Files whose
    names end with .gz, .bz2, .xz or .zst are decompressed. The paths are looked up when a terminal
    operation starts.

    **Parallelism**: large files are cut into ranges of 1 to 64 MiB, and small neighbours share a
    task. A compressed file, and one in an encoding such as UTF-16, is read by one task.
    **Guarantee**: every line once, none torn, as long as the files are not changed meanwhile. A
    file that became shorter is an error; what is appended may or may not be seen.
    **On re-run**: the files are read again.

    Args:
        paths: one path or several, or lists of them: a file, a directory (the files directly inside, without those
            that start with "." or "_"), a glob (`**` too, which follows no links to folders), or any URL that fsspec
            knows.
        encoding: as for `open`; in UTF-8 the byte order mark that begins a file is dropped, which spreadsheets write.
        with_path: give pairs of the path, absolute or a URL, and the line.
        on_bad: what is done with a line that is not in the encoding: `"fail"` ends the run, `"skip"` leaves it out and
            reports at the end how many there were. In an encoding such as UTF-16, where it is unknown where the next
            line begins, it ends the run. The same holds for a line of more than `max_record` bytes.
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
    from dstream.connectors.files.sources import checked_max_record, options, shown_max_record
    from dstream.connectors.files.text import TextFiles, TextReader
    from dstream.filesystem.discovery import path_list

    format = TextReader(checked_encoding(encoding), checked_max_record(max_record))
    shown = (("encoding", encoding), shown_max_record(max_record))
    return TextFiles("text_files", path_list(*paths), format, options(with_path, on_bad, into), shown)


@overload
def json_lines(
    path: Paths,
    kind: type[T],
    /,
    *,
    encoding: str = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[T]: ...
@overload
def json_lines(
    path: Paths,
    kind: type[T],
    /,
    *,
    encoding: str = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, T]]: ...
@overload
def json_lines(
    *paths: Paths,
    kind: type[T],
    encoding: str = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[T]: ...
@overload
def json_lines(
    *paths: Paths,
    kind: type[T],
    encoding: str = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, T]]: ...
@overload
def json_lines(
    *paths: Paths,
    encoding: str = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[Any]: ...
@overload
def json_lines(
    *paths: Paths,
    encoding: str = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, Any]]: ...
def json_lines(
    *paths: Any,
    kind: Any = None,
    encoding: str = "utf-8",
    with_path: bool = False,
    on_bad: OnBad = "fail",
    into: Reducer[DeadLetter, Any] | None = None,
    max_record: int = MAX_RECORD,
) -> Source[Any]:
    r"""Read files that hold one JSON value a line; blank lines are skipped.

    Paths, line ends, order and compressed files are those of `text_files`; values are those of
    `json.loads`, which also takes NaN and Infinity.

    With a `kind`, each line is an object that becomes one, by the names and the types of its fields: `int`, `float`,
    `str`, `bool`, `None`, enumerations (by value), `Literal`, `X | Y`, lists, sets, tuples and dictionaries of these,
    and other such classes. `Decimal`, `Fraction`, `date`, `datetime`, `time`, `timedelta`, `UUID`, `Path`, addresses,
    `bytes` (in base64) and keys of dictionaries are read of the strings that `to_files` writes. A field with a default
    may be missing. Fields that the kind has not are left out. Nothing else is converted: a text with digits is no
    `int`. A pydantic model converts by its own rules. In a line of a kind with a `Decimal`, a number with more digits
    than a float holds does not fit: written as a text it keeps all of them.

    **Parallelism**: large files are cut into ranges of 1 to 64 MiB, and small neighbours share a
    task. A compressed file, and one in an encoding such as UTF-16, is read by one task.
    **Guarantee**: every value once, as long as the files are not changed meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        kind: a dataclass, a named tuple, a `TypedDict` or a pydantic model; behind a single path it may be passed
            without its name.
        encoding: as for `text_files`.
        with_path: give pairs of the path, absolute or a URL, and the value.
        on_bad: what is done with a line that is no such value: `"fail"` ends the run, `"skip"` leaves it out and
            reports at the end how many there were.
        into: a reducer that gets a `DeadLetter` for each such line instead, whose item is a `BadRecord`. To know the
            number of a line in a file that is read in ranges, the task counts the lines before its range, once.
        max_record: bytes that a line may have, as for `text_files`; a longer one is a bad record.

    Raises:
        LookupError: there is no such encoding.
        TypeError, ValueError: an argument is of another kind or none of its choices; a field of `kind` has a type that
            no JSON becomes.
        SourceError: when it runs: a file is missing, unreadable or torn, a line is not JSON, or does not become a
            `kind`; the message names the file, the line, and the field.

    Example:
        >>> import pathlib, tempfile
        >>> from typing import NamedTuple
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "events.jsonl"
        >>> _ = path.write_text('{"n": 1}\n\n{"n": 2, "more": 3}\n')
        >>> [value for split in json_lines(path).splits(2) for value in split.read()]
        [{'n': 1}, {'n': 2, 'more': 3}]
        >>> class Event(NamedTuple):
        ...     n: int
        >>> [value for split in json_lines(path, Event).splits(2) for value in split.read()]
        [Event(n=1), Event(n=2)]
    """
    from dstream.connectors.files.json_lines import JsonReader, exact_float
    from dstream.connectors.files.sources import RecordFiles, checked_max_record, options, shown_max_record
    from dstream.filesystem.discovery import path_list
    from dstream.schema.record_decoders import JSON, form_of, kind_behind

    paths, kind = kind_behind(paths, kind)
    form = None if kind is None else form_of(kind, JSON)
    # A function of Python takes much longer than the parser's own for each float.
    parse_float = exact_float if _has_decimals(form) else None
    format = JsonReader(checked_encoding(encoding), form, parse_float, checked_max_record(max_record))
    shown = (("encoding", encoding), ("kind", kind), shown_max_record(max_record))
    return RecordFiles("json_lines", path_list(*paths), format, options(with_path, on_bad, into), shown)


def _has_decimals(form: object) -> bool:
    """Return whether a `Decimal` may be made within a form."""
    from dstream.schema.decoders import MADE

    seen: dict[int, object] = {}
    waiting = [form]
    while waiting:
        each = waiting.pop()
        if each is MADE[Decimal]:
            return True
        if id(each) in seen:
            continue
        # The object is stored too: the id of one that was removed may be that of another one.
        seen[id(each)] = each
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, tuple | list):
            waiting += each
        elif dataclasses.is_dataclass(each):
            waiting += [getattr(each, field.name, None) for field in dataclasses.fields(each)]
    return False


_URL = re.compile(r"[A-Za-z][\w+.-]*://")


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

    A line is emitted once its "\n" is written, so none is torn. Files in folders below, and those whose names start
    with "." or "_", are left out. A file is known by its number in the file system (inode) and its first bytes:

    - renamed, as when logs are rotated, it continues where it was, also if the glob does not match its new name;
    - truncated or written anew, it is read from its start;
    - deleted, it ends; lines that were not read before are lost, and a range that was to be read is an
      error.

    **Parallelism**: one task for each file that has news.
    **Guarantee**: exactly once: offsets are those of bytes, and a range gives the same lines as long as the file is
    there. The lines of a file are in order.
    **On re-run**: a new job begins at `start`; one that resumes, where it was.

    Args:
        folder: a path; on a cluster, one that all machines share.
        glob: which names, such as `"*.log"`.
        start: of the files that exist at the beginning: `"oldest"`, all lines; `"current"`, those that are ended
            later; an aware datetime, all lines of files that were modified since then. Later files are read from their
            start.
        format: `"text"`, or `"json"` with a value on each line; blank lines are skipped then.
        encoding: as for `text_files`, one in which a line can be cut off at "\n".

    Raises:
        TypeError: an argument is of another kind.
        ValueError: an argument is none of its choices, or lines of this encoding cannot be cut.
        LookupError: there is no such encoding.
        UnsupportedError: the folder is a URL of another machine.
        SourceError: when it runs: the folder no longer exists, a file cannot be read or is compressed by its name, or a
            line is not of this format.

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
    from dstream.connectors.files.lines import splits_at_newlines
    from dstream.connectors.files.text import WatchedFiles

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
