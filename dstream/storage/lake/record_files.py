"""The files of records: one for each version, in the folder `records/<name>`.

    dstream record <crc32>{"number":7,"version":4,"token":"...","before":"..."}
    <data>

The number counts the files of a name and becomes their names. The version is what readers know: it begins anew when a
record was removed, which is a file of version 0. The token is of one write alone, and `before` has those of the files
before this one, the newest first: so a writer finds out whether it was its own file that came next.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from dstream.storage.checking import number as checked_number
from dstream.storage.checking import text
from dstream.storage.lake.checksums import is_sealed, seal
from dstream.storage.record_names import MOST_BYTES, is_record_name

__all__ = [
    "KEPT",
    "RECORDS",
    "REMOVED",
    "RecordFile",
    "files_by_name",
    "numbers_in",
    "parsed_record",
    "place_of",
    "record_path",
]

KEPT = 3
"""How many files of a record stay, so that most readers find the one that they have seen in a listing."""

RECORDS = "records"
"""The folder of all records in that of the storage."""
REMOVED = "removed"
"""Is in the folder of a record before its first removal, so that listing names need not read the others."""

_HEAD = b"dstream record "
_FILE = re.compile(r"([0-9]{20})\.record")
_MOST_FILES = 10**20 - 2
_LONGEST_HEADER = 10_000
_DIGITS = 12
_REMEMBERED = 128
"""How many writes may come after one whose outcome its writer has yet to see."""
_TOKENS = re.compile(rf"(?:[0-9a-f]{{{_DIGITS}}})*")


class RecordFile(NamedTuple):
    """One file of a record.

    Attributes:
        number: which file of its name it is, from 1 on.
        version: that of the record; 0 says that it was removed.
        token: of this write alone.
        before: the tokens of the files before it, the newest first.
        data: what the record holds.
    """

    number: int
    version: int
    token: str
    before: str
    data: bytes

    @staticmethod
    def behind(newest: RecordFile | None, version: int, data: bytes) -> RecordFile:
        """Return the file that comes next."""
        token = secrets.token_hex(_DIGITS // 2)
        if newest is None:
            return RecordFile(1, version, token, "", data)
        before = (newest.token + newest.before)[: _DIGITS * _REMEMBERED]
        return RecordFile(newest.number + 1, version, token, before, data)

    def packed(self, name: str) -> bytes:
        """Return what the file holds."""
        header = {"number": self.number, "version": self.version, "token": self.token, "before": self.before}
        rest = json.dumps(header).encode() + b"\n" + self.data
        return seal(_HEAD, rest, record_path(name, self.number))

    def comes_after(self, other: RecordFile) -> bool | None:
        """Say whether a file with a smaller number was in this file's past; None if that is not known any more."""
        start = (self.number - other.number - 1) * _DIGITS
        token = self.before[start : start + _DIGITS]
        return token == other.token if token else None


def parsed_record(name: str, data: bytes, number: int | None = None) -> RecordFile:
    """Return what a file of a record holds.

    Args:
        name: that of the record.
        data: the bytes of the file.
        number: which file it is; None if the file itself says so.

    Raises:
        ValueError: it is not what was written there; what `NOT_UNDERSTOOD` names besides.
    """
    start = len(_HEAD) + 8
    end = data.find(b"\n", start, start + _LONGEST_HEADER)
    if not data.startswith(_HEAD) or end < 0:
        raise ValueError("it is no record")
    header = json.loads(data[start:end])
    found, version = checked_number(header["number"], _MOST_FILES), checked_number(header["version"])
    token, before = text(header["token"]), text(header["before"])
    if number not in (None, found) or not is_sealed(_HEAD, data, record_path(name, found)):
        raise ValueError("it is not what was written there")
    if len(token) != _DIGITS or not _TOKENS.fullmatch(token + before) or len(data) - end > MOST_BYTES + 1:
        raise ValueError("no record is like that")
    return RecordFile(found, version, token, before, data[end + 1 :])


def place_of(name: str) -> str:
    """Return the folder of a record."""
    return f"{RECORDS}/{name}"


def record_path(name: str, number: int) -> str:
    """Return where a file of a record stands."""
    return f"{place_of(name)}/{number:020d}.record"


def numbers_in(files: Iterable[str]) -> list[int]:
    """Return the numbers that the names of files say, in order; what others leave in folders is passed over."""
    return sorted(int(match[1]) for file in files if (match := _FILE.fullmatch(file)))


def files_by_name(paths: Iterable[str]) -> dict[str, list[str]]:
    """Sort the files below the folder of all records by the record that they belong to."""
    files: dict[str, list[str]] = {}
    for path in paths:
        name, _, file = path.removeprefix(f"{RECORDS}/").rpartition("/")
        if is_record_name(name):
            files.setdefault(name, []).append(file)
    return files
