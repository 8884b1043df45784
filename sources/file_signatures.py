"""Formats of files by their first bytes, whatever their names are, so that an error says how such a file is read."""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import NamedTuple

from dstream.errors import SourceError

__all__ = ["AVRO", "HEAD", "PARQUET", "Signature", "refuse_misnamed", "refuse_other_format", "signature_of"]

AVRO, PARQUET = "an Avro file", "a Parquet file"
HEAD = 512
"""Bytes from the start of a file that are looked at."""


class Signature(NamedTuple):
    """A format and its first bytes.

    Attributes:
        name: as a sentence says it: the file is ...
        pattern: matches the first bytes, and those of no text: behind letters it wants a control character.
        advice: how a file of this format is read.
        endings: names that end so are decompressed.
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
"""Encodings whose texts a reader of another one misreads: what is said, and the encoding."""


def signature_of(head: bytes) -> Signature | None:
    r"""Return the format that a file has by its first bytes, None if these are of none that is known.

    Example:
        >>> signature_of(b"PAR1\x15\x04").name
        'a Parquet file'
        >>> signature_of(b"PAR1,PAR2")
    """
    return next((each for each in _SIGNATURES if each.pattern.match(head)), None)


def refuse_other_format(name: str, head: bytes, *, wanted: str = "text", is_inside: bool = False) -> None:
    """Refuse what is not of the format that is read, as far as its first bytes tell.

    Args:
        name: that of the file.
        head: its first bytes.
        wanted: the name of the format that is read, "text" for that of lines; others have no advice for encodings.
        is_inside: the bytes are what decompressing the file gave.

    Raises:
        SourceError: it is of another one; the message says how it is read.
    """
    found = signature_of(head)
    if found is not None and found.name != wanted:
        holds = f"holds {found.name} where it is decompressed" if is_inside else f"is {found.name}"
        advice = "decompress it before" if found.endings and (is_inside or wanted == PARQUET) else found.advice
        raise SourceError(f"{name} {holds}, not {wanted}: {advice}")
    if found is None and wanted == "text":
        for pattern, said, encoding in _WIDE:
            if pattern.match(head):
                raise SourceError(f"{name} {said}: read it with encoding={encoding!r}")
        for encoding, high in (("utf-16-le", head[1:HEAD:2]), ("utf-16-be", head[:HEAD:2])):
            if _is_of_letters(head[:HEAD], high, encoding):
                said = "looks like UTF-16 without a byte order mark"
                raise SourceError(f"{name} {said}: read it with encoding={encoding!r}")


def _is_of_letters(head: bytes, high: bytes, encoding: str) -> bool:
    """Say whether bytes are a text of UTF-16 in letters of an alphabet, with a space, a digit or a line end.

    The high bytes of such letters are below that of a space, and that of a space is NUL. A text in another encoding has
    no such bytes in most of its second places, even if it holds NULs.

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
"""Categories of characters of which no text is made: control characters and those that are not assigned."""


def refuse_misnamed(name: str, head: bytes, ending: str) -> None:
    """Refuse what is of another format than its name, which ends as that of a compressed file, says.

    Raises:
        SourceError: it is of another one.
    """
    found = signature_of(head)
    if found is None and _is_text(head):
        raise SourceError(f"{name} is a text, and its name ends in {ending}: give it another name")
    if found is not None and ending not in found.endings:
        raise SourceError(f"{name} is {found.name}, and its name ends in {ending}: give it the name of its format")


def _is_text(head: bytes) -> bool:
    """Say whether bytes are a text in UTF-8, which no compressed file begins like."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return re.search(_CONTROL, head) is None
