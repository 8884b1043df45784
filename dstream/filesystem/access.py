"""Opening of files in tasks: compression, detection of formats by first bytes, errors with the path.

`dstream.filesystem.discovery` finds the files, `dstream.connectors.files.splits` divides the work.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import io
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dstream.base.records import record
from dstream.base.urls import resolved_url, scrub, shown_url
from dstream.errors import SourceError
from dstream.filesystem.urls import opened_url

__all__ = [
    "AVRO",
    "HEAD",
    "PARQUET",
    "XZ_MEMORY",
    "File",
    "ReferredFiles",
    "Signature",
    "check_format",
    "decompressed_stream",
    "is_compressed",
    "opened",
    "raw",
    "reading",
    "refuse_other_format",
    "signature_of",
]


AVRO, PARQUET = "an Avro file", "a Parquet file"
HEAD = 512
"""Bytes from the start of a file that are looked at."""


class Signature(NamedTuple):
    """A format and its first bytes.

    Attributes:
        name: completes the sentence: the file is ...
        pattern: matches the first bytes, but of no text: letters must be followed by a control character.
        advice: how a file of this format is read.
        endings: names with these endings are decompressed.
    """

    name: str
    pattern: re.Pattern[bytes]
    advice: str
    endings: tuple[str, ...] = ()


def _signature(name: str, pattern: bytes, advice: str) -> Signature:
    return Signature(name, re.compile(pattern, re.DOTALL), advice)


def _compressed(name: str, pattern: bytes, *endings: str) -> Signature:
    advice = f"give it a name that ends in {endings[0]}, and it is decompressed"
    return Signature(name, re.compile(pattern, re.DOTALL), advice, endings)


_WITH_PYARROW = "read it with pyarrow.ipc in files(path, read=...), or as a table for from_df"
_CONTROL = rb"[\0-\x08\x0e-\x1f]"
_SIGNATURES = (
    _compressed("gzip", rb"\x1f\x8b", ".gz"),
    _compressed("bzip2", rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)", ".bz2"),
    _compressed("xz", rb"\xfd7zXZ\0", ".xz"),
    _compressed("Zstandard", rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", ".zst", ".zstd"),
    _signature(
        "a zip archive (of which Excel's .xlsx is one)",
        rb"PK(\x03\x04|\x05\x06|\x07\x08)",
        "unpack it, or read it with zipfile or a reader of .xlsx in files(path, read=...)",
    ),
    _signature(PARQUET, rb"PAR[1E]" + _CONTROL, "parquet_rows() reads it"),
    _signature(AVRO, rb"Obj\x01", "avro_records() reads it"),
    _signature("an Arrow file", rb"ARROW1\0\0", _WITH_PYARROW),
    _signature("a stream of Arrow", rb"\xff\xff\xff\xff...\0", _WITH_PYARROW),
    _signature("an ORC file", rb"ORC.{0,3}" + _CONTROL, "read it with pyarrow.orc in files(path, read=...)"),
    _signature("a SQLite database", rb"SQLite format 3\0", "sql_rows('sqlite:///PATH', query) reads it"),
    _signature(
        "a tar archive",
        rb".{257}ustar(\0\d\d|  \0)",
        "unpack it, or read it with tarfile in files(path, read=...)",
    ),
    _signature("a 7z archive", rb"7z\xbc\xaf\x27\x1c", "unpack it before"),
    _signature("a RAR archive", rb"Rar!\x1a\x07", "unpack it before"),
    _signature("LZ4", rb"\x04\x22\x4d\x18", "decompress it before"),
    _signature("a file of compress (.Z)", rb"\x1f\x9d", "decompress it before"),
    _signature(
        "an OLE file (of which Excel's .xls is one)",
        rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "read it with a reader of .xls in files(path, read=...)",
    ),
    _signature("an HDF5 file", rb"\x89HDF\r\n\x1a\n", "read it with h5py in files(path, read=...)"),
    _signature("an array of NumPy", rb"\x93NUMPY" + _CONTROL, "read it with numpy.load in files(path, read=...)"),
)
_WIDE = (
    (re.compile(rb"\xff\xfe\0\0|\0\0\xfe\xff"), "begins with the byte order mark of UTF-32", "utf-32"),
    (re.compile(rb"\xff\xfe|\xfe\xff"), "begins with the byte order mark of UTF-16", "utf-16"),
    (re.compile(rb"([^\0][\0-\x1f]\0\0){4}"), "looks like UTF-32 without a byte order mark", "utf-32-le"),
    (re.compile(rb"(\0\0[\0-\x1f][^\0]){4}"), "looks like UTF-32 without a byte order mark", "utf-32-be"),
    (re.compile(rb"([^\0]\0){4}"), "looks like UTF-16 without a byte order mark", "utf-16-le"),
    (re.compile(rb"(\0[^\0]){4}"), "looks like UTF-16 without a byte order mark", "utf-16-be"),
)
"""Encodings that a reader of another encoding misreads: a description, and the encoding."""


def signature_of(head: bytes) -> Signature | None:
    r"""Return the format that a file has by its first bytes, None if these are of none that is known.

    Example:
        >>> signature_of(b"PAR1\x15\x04").name
        'a Parquet file'
        >>> signature_of(b"PAR1,PAR2")
    """
    return next((each for each in _SIGNATURES if each.pattern.match(head)), None)


def refuse_other_format(name: str, head: bytes, *, wanted: str = "text", is_inside: bool = False) -> None:
    """Refuse a file of another format, as far as its first bytes show.

    Args:
        name: the name of the file.
        head: its first bytes.
        wanted: the name of the expected format, "text" for lines; other formats have no advice for encodings.
        is_inside: the bytes are decompressed content of the file.

    Raises:
        SourceError: it is of another one; the message contains how it is read.
    """
    found = signature_of(head)
    # Before the encodings: most binary formats have NULs, by which UTF-16 is recognized.
    if found is not None and found.name != wanted:
        holds = f"holds {found.name} where it is decompressed" if is_inside else f"is {found.name}"
        advice = "decompress it before" if found.endings and (is_inside or wanted == PARQUET) else found.advice
        raise SourceError(f"{name} {holds}, not {wanted}: {advice}")
    if found is None and wanted == "text":
        for pattern, problem, encoding in _WIDE:
            if pattern.match(head):
                raise SourceError(f"{name} {problem}: read it with encoding={encoding!r}")
        for encoding, high in (("utf-16-le", head[1:HEAD:2]), ("utf-16-be", head[:HEAD:2])):
            if _is_of_letters(head[:HEAD], high, encoding):
                problem = "looks like UTF-16 without a byte order mark"
                raise SourceError(f"{name} {problem}: read it with encoding={encoding!r}")


def _is_of_letters(head: bytes, high: bytes, encoding: str) -> bool:
    """Return whether bytes are a text of UTF-16 in letters of an alphabet, with a space, a digit or a line end.

    The high bytes of such letters are below the byte of a space, and the high byte of a space is NUL. Text in another
    encoding does not have such bytes in most odd positions, even if it contains NULs.

    Args:
        head: the first bytes of a file.
        high: the high bytes of the characters.
        encoding: the order of the bytes.
    """
    if len(high) < _FEWEST or 0 not in high or 4 * sum(byte < 0x20 for byte in high) < 3 * len(high):
        return False
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return all(each.isspace() or unicodedata.category(each) not in _NO_TEXT for each in text)


_FEWEST = 4
"""Characters by which an encoding is known."""
_NO_TEXT = frozenset({"Cc", "Cn", "Co", "Cs"})
"""Categories of characters that do not occur in text: control characters and unassigned characters."""


def refuse_misnamed(name: str, head: bytes, ending: str) -> None:
    """Refuse a file whose format does not match its name's ending for compressed files.

    Raises:
        SourceError: it is of another one.
    """
    found = signature_of(head)
    if found is None and _is_text(head):
        raise SourceError(f"{name} is a text, and its name ends in {ending}: give it another name")
    if found is not None and ending not in found.endings:
        raise SourceError(f"{name} is {found.name}, and its name ends in {ending}: give it the name of its format")


def _is_text(head: bytes) -> bool:
    """Return whether bytes are a text in UTF-8, which no compressed file begins like."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return re.search(_CONTROL, head) is None


_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")
XZ_MEMORY = 256 << 20
"""Limit of memory in bytes for decompressing xz, which a file requests; its strongest level requests 65 MiB."""


@record
class File:
    """File found by discovery.

    Attributes:
        name: the absolute path or the URL without secrets, for people, and to sort by.
        path: the path for its file system.
        size: in bytes; None if unknown, as for a pipe.
        fs: the fsspec file system; None for the local one.
        inode: the device and the inode, which identify a file with two names; None if unknown.
    """

    name: str
    path: str
    size: int | None
    fs: Any = None
    inode: tuple[int, int] | None = None


class ReferredFiles:
    """The fsspec file system of a URL with a reference to a secret, which each process looks up: pickled as the URL."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __getattr__(self, name: str) -> Any:
        """Open the file system, which fsspec caches in each process."""
        # `copy` and `pickle` look up special methods, which must not open a connection.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(opened_url(resolved_url(self._url, quoted=False))[0], name)

    def __reduce__(self) -> tuple[Any, ...]:
        return ReferredFiles, (self._url,)


def is_compressed(file: File) -> bool:
    """Return whether the name of the file has the ending of a gzip, bzip2, xz or Zstandard file."""
    return file.path.lower().endswith(_COMPRESSED)


@contextlib.contextmanager
def opened(file: File) -> Iterator[io.BufferedReader]:
    """Open a file to read its bytes, decompressed if its name has the ending of a compression.

    Every failure inside the `with` block is raised as a `SourceError` that names the file, so
    only reading belongs there.

    Raises:
        SourceError: the file is missing, damaged, unreadable, or shorter than it was when it was found.
    """
    with raw(file) as stream:
        if not is_compressed(file) or not stream.peek(1):  # An empty file has no items, regardless of its name.
            yield stream
        else:
            refuse_misnamed(file.name, stream.peek(HEAD), os.path.splitext(file.path)[1].lower())
            with decompressed_stream(stream, f".{file.path.lower().rpartition('.')[2]}") as content:
                yield content


def check_format(file: File, stream: io.BufferedReader, wanted: str = "text") -> None:
    """Check the first bytes of a file that is open at its start, without moving its position.

    Raises:
        SourceError: it is of another format, and how that is read.
    """
    refuse_other_format(file.name, stream.peek(HEAD), wanted=wanted, is_inside=is_compressed(file))


@contextlib.contextmanager
def raw(file: File) -> Iterator[io.BufferedReader]:
    """Open a file to read its bytes as they are stored; see `opened`."""
    with reading(file.name), _open(file) as stream:
        if file.size is not None:
            # A file that was truncated meanwhile would silently yield fewer items.
            if (size := stream.seek(0, os.SEEK_END)) < file.size:
                raise SourceError(f"{file.name} shrank from {file.size:,} to {size:,} bytes after it was found")
            stream.seek(0)
        yield stream


def _open(file: File) -> io.BufferedReader:
    if file.fs is None:
        return open(file.path, "rb")
    return io.BufferedReader(file.fs.open(file.path, "rb"))


def decompressed_stream(stream: io.BufferedReader, ending: str) -> io.BufferedReader:
    """Decompress the content of a file by the ending of its name; all members are read, as `cat a.gz b.gz` makes."""
    if ending == ".gz":
        import gzip

        return io.BufferedReader(gzip.GzipFile(fileobj=stream))
    if ending == ".bz2":
        import bz2

        return io.BufferedReader(_Members(stream, bz2.BZ2Decompressor))
    if ending == ".xz":
        import lzma

        return io.BufferedReader(_Members(stream, functools.partial(lzma.LZMADecompressor, memlimit=XZ_MEMORY)))
    # The standard library reads Zstandard from Python 3.14 on; pyarrow is installed anyway, but slow to import.
    import pyarrow

    return io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, mode="r"), "zstd"))


class _Members(io.RawIOBase):
    """Content compressed in consecutive members, possibly with zeros between, as in `GzipFile`.

    Unlike this class, `BZ2File` and `LZMAFile` silently end at trailing data that is no member.
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
        """Return the next bytes, empty at the end."""
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
        """Return the bytes after a member, without leading zeros."""
        while not (rest := rest.lstrip(b"\0")) and (rest := self._stream.read(io.DEFAULT_BUFFER_SIZE)):
            pass
        return rest

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Seek the position, if need be from the start."""
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
    """Turn errors of reading `name` into a `SourceError`.

    Every exception is converted: no function of the user's runs in the block, and a remote file system raises any
    exception of its client library.
    """
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        # Client libraries may put URLs with their passwords into messages.
        scrub(error, name)
        raise SourceError(f"cannot read {shown_url(name)}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or directory"
    if isinstance(error, PermissionError):
        return "this process may not read it"
    # pyarrow raises an OSError for truncated Zstandard, which only the message shows (26).
    if isinstance(error, EOFError) or "Truncated compressed" in str(error):
        return "it is torn: the compressed data end too early"
    if str(error) == "Memory usage limit exceeded":  # The message of lzma.
        return (
            f"to decompress it takes more than {XZ_MEMORY >> 20} MiB of memory: compress it with a smaller dictionary, "
            "as xz -9 does"
        )
    return f"{type(error).__name__}: {error}"
