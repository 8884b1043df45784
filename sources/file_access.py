"""Files for every file source: finding them, dividing the work of reading them, opening them.

A path is a local path, a local glob, a directory, or any URL that fsspec knows. `find_files` runs
in the caller when a terminal operation starts; `opened` runs on the worker that owns a split.
`sources.lines` makes lines of what is opened here.
"""

from __future__ import annotations

import codecs
import contextlib
import fnmatch
import io
import itertools
import os
import re
import reprlib
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from dstream.errors import SourceError
from dstream.spi.functions import shown_function
from dstream.values.secrets import scrub, shown_url

__all__ = [
    "File",
    "Part",
    "Paths",
    "find_files",
    "group",
    "is_compressed",
    "opened",
    "path_list",
    "plan",
    "raw",
    "reading",
    "within",
    "written_call",
]

Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"
U = TypeVar("U")

SMALLEST_SPLIT = 1 << 20
LARGEST_SPLIT = 64 << 20
"""A split is about 1/parallelism of all bytes, but neither below 1 MiB nor above 64 MiB."""
OPENING = 64 << 10
"""What opening a file costs, in bytes that could be read instead: 10,000 empty files are work too."""

_URL = re.compile(r"[A-Za-z][\w+.-]*(::[A-Za-z][\w+.-]*)*://")
_SHORT = reprlib.Repr()
_SHORT.maxstring, _SHORT.maxlist, _SHORT.maxtuple = 80, 3, 3
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")


@dataclass(frozen=True, slots=True)
class File:
    """One file, as it was found.

    Attributes:
        name: the absolute path or the URL without secrets, for people, and to sort by.
        path: what its file system opens.
        size: in bytes; None if it is unknown, as that of a pipe.
        fs: the fsspec file system; None for the machine's own.
    """

    name: str
    path: str
    size: int | None
    fs: Any = None


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a file: the bytes from `start` up to `end`, or up to the end of the file."""

    file: File
    start: int = 0
    end: int | None = None


def path_list(*given: Paths) -> tuple[str, ...]:
    """Return the paths that a source was given, each of them one or several, as strings that are not yet looked up.

    Raises:
        TypeError: a path is neither a str nor an `os.PathLike` of one, or it is the name of an encoding.
        ValueError: there are no paths, or a path is empty.
    """
    for path in given[1:]:
        _refuse_encoding(path)
    names = tuple(map(_text, itertools.chain.from_iterable(map(_each, given))))
    if not all(names):
        raise ValueError("a path is empty")
    if not names:
        raise ValueError("paths is empty: name at least one file, directory or glob")
    return names


def _refuse_encoding(path: Paths) -> None:
    """Refuse an encoding among the paths, unless there is a file of that name."""
    if not isinstance(path, str) or os.path.exists(path):
        return
    with contextlib.suppress(LookupError, ValueError):
        codecs.lookup(path)
        raise TypeError(f"{path!r} is the name of an encoding, not of a file: write encoding={path!r}")


def _each(paths: Paths) -> Iterable[str | os.PathLike[str]]:
    if isinstance(paths, str | os.PathLike):
        return [paths]
    given: Any = paths  # Whatever the types say.
    is_one = isinstance(given, bytes | bytearray) or hasattr(given, "read") or not isinstance(given, Iterable)
    return [_text(paths)] if is_one else paths


def written_call(maker: str, paths: tuple[str, ...], **others: object) -> str:
    """Return the call that makes a source as its user would write it, without what is the default.

    Example:
        >>> written_call("text_files", ("a.txt",), encoding="utf-8", with_path=True)
        "text_files('a.txt', with_path=True)"
    """
    given = [
        *(_SHORT.repr(shown_url(path)) for path in paths[: _SHORT.maxlist]),
        *(["..."] if len(paths) > _SHORT.maxlist else []),
    ]
    named = [f"{name}={_shown(other)}" for name, other in others.items() if other not in (None, "utf-8")]
    return f"{maker}({', '.join([*given, *named])})"


def _shown(value: object) -> str:
    if isinstance(value, type):
        return value.__qualname__.rpartition("<locals>.")[2]
    return shown_function(value) if callable(value) else _SHORT.repr(value)


def _text(path: object) -> str:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(name, str):
        raise TypeError(f"a path must be a str or an os.PathLike, not {type(name).__name__}{_instead_of(name)}")
    return name


def _instead_of(path: object) -> str:
    """Say what to write where somebody gave a file that is open, or bytes."""
    if isinstance(path, bytes | bytearray | os.PathLike):
        return ": os.fsdecode(path) makes a str of it"
    if hasattr(path, "read"):
        return (
            ": give the name of the file, which the workers open themselves; "
            "the lines of a file that is open are ctx.stream(file)"
        )
    return ""


def within(directory: str, pattern: str) -> str:
    """Return the path for the files below a directory that match a glob.

    Example:
        >>> within("logs[1]", "*.txt")
        'logs[[]1]/*.txt'
    """
    import glob

    is_url = _URL.match(directory) is not None  # fsspec knows no escapes.
    return f"{(directory if is_url else glob.escape(directory)).rstrip('/')}/{pattern}"


def find_files(paths: Iterable[str]) -> list[File]:
    """Return the files behind the paths, sorted by name, each of them once.

    A path that exists is itself, even with a `*` in its name; else it is a glob. A glob means the
    files that it matches, a directory the files directly inside it; both without those whose names start
    with "." or "_", such as `_SUCCESS`, unless the glob has such a name itself.

    Raises:
        SourceError: a path does not exist, a glob matches no file, a directory holds none.
    """
    found: dict[str, File] = {}
    for path in paths:
        with reading(path):
            found.update((file.name, file) for file in _find(path))
    return sorted(found.values(), key=lambda file: file.name)


def _find(path: str) -> list[File]:
    if not _URL.match(path):
        return _find_local(path)
    # fsspec takes some 50 ms to import, which only those who use it should pay.
    import fsspec

    fs, inside = fsspec.core.url_to_fs(path)
    if "file" in ((fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol):
        return _find_local(inside)
    return _find_remote(fs, inside, path)


def _find_local(path: str) -> list[File]:
    import glob

    path = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(path):
        with os.scandir(path) as entries:
            names = [entry.path for entry in entries if not _is_hidden(entry.name) and not entry.is_dir()]
        return _some([_local(name) for name in names], f"the directory {path} holds no files")
    if not glob.has_magic(path) or os.path.lexists(path):
        return [_local(path)]
    names = [name for name in _matches(path) if _is_meant(name, path) and not os.path.isdir(name)]
    return _some([_local(name) for name in names], f"no file matches {path} ({_PASSED_OVER})")


def _matches(pattern: str) -> list[str]:
    """Return what matches a glob; `glob` itself passes over directories that cannot be listed."""
    import glob

    above, last = os.path.split(pattern)
    folders = _matches(above) if glob.has_magic(above) else [above]
    names = glob.glob(pattern, recursive=True)
    for folder in [*folders, *(names if last == "**" else ())]:
        if os.path.isdir(folder):
            os.scandir(folder).close()
    return names


def _local(path: str) -> File:
    with reading(path):
        status = os.stat(path)
    return File(path, path, status.st_size if stat.S_ISREG(status.st_mode) else None)


def _find_remote(fs: Any, path: str, url: str) -> list[File]:
    chain = "".join(url.partition("::")[1:])  # What is left of "zip://*.txt::s3://bucket/a.zip".
    fs.invalidate_cache()  # fsspec keeps listings, and would not see a file that came since the last run.
    try:
        info = fs.info(path)
    except FileNotFoundError:
        if "*" not in path and "?" not in path and "[" not in path:
            raise
        infos = [each for each in fs.glob(path, detail=True).values() if _is_meant(each["name"], path)]
        found = [_remote(fs, each, chain) for each in infos if each["type"] == "file"]
        return _some(found, f"no file matches {shown_url(url)} ({_PASSED_OVER})")
    if info["type"] != "directory":
        return [_remote(fs, info, chain)]
    infos = [each for each in fs.ls(path, detail=True) if each["type"] == "file"]
    infos = [each for each in infos if not _is_hidden(each["name"].rstrip("/").rpartition("/")[2])]
    return _some([_remote(fs, each, chain) for each in infos], f"the directory {shown_url(url)} holds no files")


def _remote(fs: Any, info: dict[str, Any], chain: str) -> File:
    size = info.get("size") if info.get("partial", True) else None  # Some web servers give no ranges.
    return File(shown_url(fs.unstrip_protocol(info["name"]) + chain), info["name"], size, fs)


_PASSED_OVER = "a glob matches no directories, and no names that begin with '.' or '_' unless it has them itself"


def _is_meant(name: str, pattern: str) -> bool:
    """Say whether a match is no marker, and in no folder of markers, of which the glob says nothing."""
    asked = [part for part in pattern.split("/") if _is_hidden(part)]
    hidden = filter(_is_hidden, name.split("/"))
    return all(any(fnmatch.fnmatchcase(part, each) for each in asked) for part in hidden)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _some(files: list[File], complaint: str) -> list[File]:
    if not files:
        raise SourceError(complaint) from FileNotFoundError(complaint)
    return files


def plan(files: Iterable[File], parallelism: int, divisible: Callable[[File], bool]) -> list[tuple[Part, ...]]:
    """Divide the files among splits: large files are cut by bytes, small neighbours share a split.

    Args:
        files: in the order of the items.
        parallelism: how many splits keep every core busy.
        divisible: whether the file may be cut at any byte; one that may not is read by one task.

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
            cuts = [0, *range(target - position % target, file.size, target), file.size]
        for start, end in itertools.pairwise(cuts):
            placed.append((min(position + (start or 0), total - 1), Part(file, start or 0, end)))
        position += file.size or 0
    return _bins(placed, target)


def group(units: Iterable[tuple[int, U]], parallelism: int) -> list[tuple[U, ...]]:
    """Divide indivisible units, given as (bytes, unit), among splits in the same manner as `plan`."""
    units = list(units)
    starts = itertools.accumulate((size for size, _ in units), initial=0)
    placed = [(start, unit) for start, (_, unit) in zip(starts, units, strict=False)]
    return _bins(placed, _target(sum(size for size, _ in units), parallelism))


def _target(total: int, parallelism: int) -> int:
    """Return how many bytes a split should have."""
    fewest, most = -(-total // LARGEST_SPLIT), max(1, total // SMALLEST_SPLIT)
    return max(1, -(-total // min(max(parallelism, fewest, 1), most)))


def _bins(placed: Iterable[tuple[int, U]], target: int) -> list[tuple[U, ...]]:
    bins = itertools.groupby(placed, key=lambda pair: pair[0] // target)
    return [tuple(unit for _, unit in members) for _, members in bins]


def is_compressed(file: File) -> bool:
    """Whether the name of the file ends as that of a gzip, bzip2, xz or Zstandard file."""
    return file.path.lower().endswith(_COMPRESSED)


@contextlib.contextmanager
def opened(file: File) -> Iterator[io.BufferedReader]:
    """Open a file to read its bytes, decompressed if its name says that they are compressed.

    Whatever goes wrong inside the `with` block is raised as a `SourceError` that names the file, so
    only reading belongs there.

    Raises:
        SourceError: the file is gone, torn, unreadable, or shorter than it was when it was found.
    """
    with raw(file) as stream:
        if not is_compressed(file) or not stream.peek(1):  # An empty file has no items, whatever its name.
            yield stream
        else:
            with _decompressed(stream, file.path.lower()) as content:
                yield content


@contextlib.contextmanager
def raw(file: File) -> Iterator[io.BufferedReader]:
    """Open a file to read its bytes as they are stored; see `opened`."""
    with reading(file.name), _open(file) as stream:
        if file.size is not None:
            if (size := stream.seek(0, os.SEEK_END)) < file.size:
                raise SourceError(f"{file.name} shrank from {file.size:,} to {size:,} bytes after it was found")
            stream.seek(0)
        yield stream


def _open(file: File) -> io.BufferedReader:
    if file.fs is None:
        return open(file.path, "rb")
    return io.BufferedReader(file.fs.open(file.path, "rb"))


def _decompressed(stream: io.BufferedReader, path: str) -> io.BufferedReader:
    """Decompress a stream; files of several members, as `cat a.gz b.gz` makes, are read to the end."""
    if path.endswith(".gz"):
        import gzip

        return io.BufferedReader(gzip.GzipFile(fileobj=stream))
    if path.endswith(".bz2"):
        import bz2

        return io.BufferedReader(_Members(stream, bz2.BZ2Decompressor))
    if path.endswith(".xz"):
        import lzma

        return io.BufferedReader(_Members(stream, lzma.LZMADecompressor))
    # The standard library reads Zstandard from Python 3.14 on; pyarrow is here anyway, but slow to import.
    import pyarrow

    return io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, mode="r"), "zstd"))


class _Members(io.RawIOBase):
    """What is compressed in members, one behind the other, maybe with zeros between, as `GzipFile` takes them.

    Unlike here, the end is silent in `BZ2File` and `LZMAFile` where something follows a member that is none.
    """

    def __init__(self, stream: io.BufferedReader, new_member: Callable[[], Any]) -> None:
        self._stream = stream
        self._new_member = new_member
        self._member = new_member()
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        data = self._next(len(target))
        target[: len(data)] = data
        return len(data)

    def _next(self, most: int) -> bytes:
        """Return some of what is left, nothing at the end."""
        while True:
            given = b""
            if self._member.eof:
                if not (given := self._behind(self._member.unused_data)):
                    return b""
                self._member = self._new_member()
            elif self._member.needs_input and not (given := self._stream.read(io.DEFAULT_BUFFER_SIZE)):
                raise EOFError("there is no end of a member")
            data: bytes = self._member.decompress(given, most)
            if data:
                self._position += len(data)
                return data

    def _behind(self, rest: bytes) -> bytes:
        """Return what follows a member, from the first byte on that is no zero."""
        while not (rest := rest.lstrip(b"\0")) and (rest := self._stream.read(io.DEFAULT_BUFFER_SIZE)):
            pass
        return rest

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go there, if need be from the start."""
        if whence == os.SEEK_END:
            while self._next(io.DEFAULT_BUFFER_SIZE):
                pass
        wanted = offset if whence == os.SEEK_SET else self._position + offset
        if wanted < self._position:
            self._stream.seek(0)
            self._member, self._position = self._new_member(), 0
        while self._position < wanted and self._next(min(io.DEFAULT_BUFFER_SIZE, wanted - self._position)):
            pass
        return self._position


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn what goes wrong while `name` is read into a `SourceError` that says so.

    Every exception is taken: no function of the user's runs in here, and a remote file system
    raises whatever its client library raises.
    """
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        scrub(error, name)
        raise SourceError(f"cannot read {shown_url(name)}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or directory"
    if isinstance(error, PermissionError):
        return "this process may not read it"
    if isinstance(error, EOFError) or "Truncated compressed" in str(error):
        return "it is torn: the compressed data end too early"
    return f"{type(error).__name__}: {error}"
