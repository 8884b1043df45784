"""Opening the files of every file source, on the worker that owns a split.

`found_files` finds them, `file_splits` divides the work, `lines` makes lines of what is opened here.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dstream.errors import SourceError
from dstream.values.secrets import resolved_url, scrub, shown_url
from dstream.values.url_schemes import opened_url
from sources.file_signatures import HEAD, refuse_misnamed, refuse_other_format

__all__ = ["XZ_MEMORY", "File", "ReferredFiles", "check_format", "is_compressed", "opened", "raw", "reading"]

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")
XZ_MEMORY = 256 << 20
"""Bytes of memory for decompressing xz, which a file may ask for; its strongest level asks for 65 MiB."""


@dataclass(frozen=True, slots=True)
class File:
    """One file, as it was found.

    Attributes:
        name: the absolute path or the URL without secrets, for people, and to sort by.
        path: what its file system opens.
        size: in bytes; None if it is unknown, as that of a pipe.
        fs: the fsspec file system; None for the machine's own.
        inode: the device and the inode, which tell whether two names are of one file; None if they are unknown.
    """

    name: str
    path: str
    size: int | None
    fs: Any = None
    inode: tuple[int, int] | None = None


class ReferredFiles:
    """The fsspec file system of a URL that refers to a secret, which each process looks up: it pickles as the URL."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __getattr__(self, name: str) -> Any:
        """Open the file system, of which fsspec keeps one for each process."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(opened_url(resolved_url(self._url, quoted=False))[0], name)

    def __reduce__(self) -> tuple[Any, ...]:
        return ReferredFiles, (self._url,)


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
            refuse_misnamed(file.name, stream.peek(HEAD), os.path.splitext(file.path)[1].lower())
            with _decompressed(stream, file.path.lower()) as content:
                yield content


def check_format(file: File, stream: io.BufferedReader, wanted: str = "text") -> None:
    """Look at the first bytes of a file that is open at its start; it stays there.

    Raises:
        SourceError: it is of another format, and how that is read.
    """
    refuse_other_format(file.name, stream.peek(HEAD), wanted=wanted, is_inside=is_compressed(file))


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

        return io.BufferedReader(_Members(stream, functools.partial(lzma.LZMADecompressor, memlimit=XZ_MEMORY)))
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
    if str(error) == "Memory usage limit exceeded":  # As lzma says it.
        return (
            f"to decompress it takes more than {XZ_MEMORY >> 20} MiB of memory: compress it with a smaller dictionary, "
            "as xz -9 does"
        )
    return f"{type(error).__name__}: {error}"
