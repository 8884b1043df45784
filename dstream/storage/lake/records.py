"""`LakeRecords`: records as files, one for each version, in a folder or an object store.

dstream record <crc32>{"number":7,"version":4,"token":"...","before":"..."}
    <data>

The number counts the files of a name and is their file name. The version is returned to readers: it restarts after the
removal of a record, which is a file of version 0. The token is unique to a write, and `before` has the tokens of the
previous files, the newest first: so a writer can determine whether its own file was the next one.

The process that creates the file with the next number has written. Older files are removed, so a number that was taken
long ago can be free: a writer that was paused meanwhile may create it. Therefore only the file with the highest number
counts, and a writer that finds a higher number than its own checks its history.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from dstream.base.validation import NOT_UNDERSTOOD, checked_number, checked_text
from dstream.errors import EngineError, IllegalStateError
from dstream.filesystem.checksums import is_sealed, seal
from dstream.filesystem.folders import StorageFolder
from dstream.spi.records import Record
from dstream.storage.base.named_folders import FileGoneError, NamedFolder, Trust
from dstream.storage.base.options import MOST_BYTES, check_prefix, check_record, check_write, is_record_name
from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake.tables import remove_quietly

__all__ = ["KEPT", "RECORDS", "REMOVED", "LakeRecords", "files_by_name", "numbers_in", "place_of", "record_path"]


KEPT = 3
"""The number of files of a record that are retained, so that most readers find the file of their listing."""

RECORDS = "records"
"""The folder of all records in the folder of the storage."""
REMOVED = "removed"
"""Is in the folder of a record before its first removal, so that listing names need not read the others."""

_HEAD = b"dstream record "
_FILE = re.compile(r"([0-9]{20})\.record")
_MOST_FILES = 10**20 - 2
_LONGEST_HEADER = 10_000
_DIGITS = 12
_REMEMBERED = 128
"""The maximal number of writes after a write whose outcome is unknown to its writer."""
_TOKENS = re.compile(rf"(?:[0-9a-f]{{{_DIGITS}}})*")


class RecordFile(NamedTuple):
    """File of a record.

    Attributes:
        number: the number of the file, from 1 on.
        version: the version of the record; 0 if it was removed.
        token: unique to this write.
        before: the tokens of the previous files, the newest first.
        data: the contents of the record.
    """

    number: int
    version: int
    token: str
    before: str
    data: bytes

    @staticmethod
    def behind(newest: RecordFile | None, version: int, data: bytes) -> RecordFile:
        """Return the next file."""
        token = secrets.token_hex(_DIGITS // 2)
        if newest is None:
            return RecordFile(1, version, token, "", data)
        # Cut to a bound, or a record that is written each second would grow for as long as its job runs.
        before = (newest.token + newest.before)[: _DIGITS * _REMEMBERED]
        return RecordFile(newest.number + 1, version, token, before, data)

    def packed(self, name: str) -> bytes:
        """Return the contents of the file."""
        header = {"number": self.number, "version": self.version, "token": self.token, "before": self.before}
        rest = json.dumps(header).encode() + b"\n" + self.data
        return seal(_HEAD, rest, record_path(name, self.number))

    def comes_after(self, other: RecordFile) -> bool | None:
        """Return whether a file with a smaller number was in this file's past; None if that is not known any more."""
        start = (self.number - other.number - 1) * _DIGITS
        token = self.before[start : start + _DIGITS]
        return token == other.token if token else None


def parsed_record(name: str, data: bytes, number: int | None = None) -> RecordFile:
    """Return the parsed contents of a file of a record.

    Args:
        name: the name of the record.
        data: the bytes of the file.
        number: the number of the file; None if the file itself contains it.

    Raises:
        ValueError: the contents are damaged; or another error of `NOT_UNDERSTOOD`.
    """
    start = len(_HEAD) + 8
    end = data.find(b"\n", start, start + _LONGEST_HEADER)
    if not data.startswith(_HEAD) or end < 0:
        raise ValueError("it is no record")
    header = json.loads(data[start:end])
    # The checksum is compared only below, since the path that it covers is that of the number in the header.
    found, version = checked_number(header["number"], _MOST_FILES), checked_number(header["version"])
    token, before = checked_text(header["token"]), checked_text(header["before"])
    if number not in (None, found) or not is_sealed(_HEAD, data, record_path(name, found)):
        raise ValueError("it is not what was written there")
    if len(token) != _DIGITS or not _TOKENS.fullmatch(token + before) or len(data) - end > MOST_BYTES + 1:
        raise ValueError("no record is like that")
    return RecordFile(found, version, token, before, data[end + 1 :])


def place_of(name: str) -> str:
    """Return the folder of a record."""
    return f"{RECORDS}/{name}"


def record_path(name: str, number: int) -> str:
    """Return the path of a file of a record."""
    return f"{place_of(name)}/{number:020d}.record"


def numbers_in(files: Iterable[str]) -> list[int]:
    """Return the numbers in the names of files, in order; other files in the folders are passed over."""
    return sorted(int(match[1]) for file in files if (match := _FILE.fullmatch(file)))


def files_by_name(paths: Iterable[str]) -> dict[str, list[str]]:
    """Sort the files below the folder of all records by the record that they belong to."""
    files: dict[str, list[str]] = {}
    for path in paths:
        name, _, file = path.removeprefix(f"{RECORDS}/").rpartition("/")
        if is_record_name(name):
            files.setdefault(name, []).append(file)
    return files


class LakeRecords:
    """The records of one storage."""

    def __init__(self, folder: StorageFolder, trust: Trust) -> None:
        self._folder = folder
        self._trust = trust
        self._pickles = trust.pickles
        self._unjudged: set[str] = set()

    def read(self, name: str) -> Record | None:
        """Return the contents of the newest file."""
        check_record(name)
        newest = self._newest(name)
        return Record(newest.version, newest.data) if newest is not None and newest.version else None

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Create the next file, if the newest one has the version before."""
        check_write(name, data, version)
        newest = self._newest(name)
        there = 0 if newest is None else newest.version
        return there == version - 1 and self._put(name, RecordFile.behind(newest, version, data), KEPT)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the folders that contain a record."""
        check_prefix(prefix)
        top, _, _ = f"{RECORDS}/{prefix}".rpartition("/")
        files = files_by_name(NamedFolder(self._folder, self._folder.title).paths(top))
        found = {name: there for name, there in files.items() if name.startswith(prefix) and numbers_in(there)}
        return sorted(name for name, there in found.items() if REMOVED not in there or self.read(name) is not None)

    def remove(self, name: str) -> None:
        """Create a next file of version 0, which is retained."""
        check_record(name)
        while (newest := self._newest(name)) is not None and newest.version:
            # The mark is written first, or a crash in between would leave a removed record among the names.
            self._folder_of(name).replace(f"{place_of(name)}/{REMOVED}", b"")
            if self._put(name, RecordFile.behind(newest, 0, b""), kept=1):
                return

    def forget(self, name: str) -> None:
        """Remove all files of a record, and their folder."""
        check_record(name)
        folder, place = self._folder_of(name), place_of(name)
        for path in list(folder.paths(place)):
            if "/" not in path[len(place) + 1 :]:  # A folder below belongs to another name.
                folder.delete(path)
        folder.delete_folder(place)
        # A folder that is missing counts as private, and an unbounded job forgets a name in each epoch.
        self._unjudged.discard(name)

    def pickles(self) -> Pickles:
        """Return which pickles of records are loaded, by the users that could write into the folders that were read.

        Raises:
            IllegalStateError: one of them is a symbolic link.
        """
        names = tuple(self._unjudged)
        try:
            judged = self._trust.in_folders(*map(place_of, names))
        except OSError as error:
            raise IllegalStateError(f"pickles of records are not loaded: {error}") from error
        if judged != self._trust.pickles:
            self._pickles = judged
        self._unjudged.difference_update(names)
        return self._pickles

    def _folder_of(self, name: str) -> NamedFolder:
        return NamedFolder(self._folder, f"record {name!r}")

    def _newest(self, name: str) -> RecordFile | None:
        """Return the newest file; None if there is none."""
        if self._trust.is_judging:
            self._unjudged.add(name)
        folder = self._folder_of(name)
        last = _Seen()
        while True:
            created = self._last_created(folder, name)
            number = max(_listed(folder, name), default=0)
            if created is not None and created.number >= number:
                # A network drive may list a new file late; then the file itself is looked up.
                if created.number == number or folder.exists(record_path(name, created.number)):
                    return created
                number = created.number
            elif number == 0:
                return None
            else:
                try:
                    return self._read(folder, name, number)
                except FileGoneError:  # since it was listed, newer ones have been written
                    pass
            if last.again(number):
                raise _damaged(folder, record_path(name, number), "is missing")

    def _last_created(self, folder: NamedFolder, name: str) -> RecordFile | None:
        """Return the last created file, as far as recorded: it may be an older one."""
        data = folder.last_created(place_of(name))
        try:
            return None if data is None else parsed_record(name, data)
        except NOT_UNDERSTOOD:  # something else has written it; the files count
            return None

    def _read(self, folder: NamedFolder, name: str, number: int) -> RecordFile:
        path = record_path(name, number)
        data = folder.read(path)
        try:
            return parsed_record(name, data, number)
        except NOT_UNDERSTOOD as error:
            raise _damaged(folder, path, f"is damaged: {error}") from error

    def _put(self, name: str, made: RecordFile, kept: int) -> bool:
        """Create a file, and return whether it is the next one: no other process has ever written this number."""
        folder, path = self._folder_of(name), record_path(name, made.number)
        is_created = folder.create(path, made.packed(name))
        there = _listed(folder, name)
        # Where the number was taken and removed long ago, creating the file succeeds, and a higher number exists.
        is_next = (is_created and there[-1:] == [made.number]) or self._is_own(folder, name, made)
        if is_next:  # oldest first, so that a remaining file is never older than a removed one
            remove_quietly(folder, [record_path(name, number) for number in there if number <= made.number - kept])
        elif is_created:
            remove_quietly(folder, [path])
        return is_next

    def _is_own(self, folder: NamedFolder, name: str, made: RecordFile) -> bool:
        """Check the newest file. For example, a request to an object store that was sent twice finds its own file.

        Raises:
            EngineError: too much was written since.
        """
        newest = self._newest(name)
        if newest is None or newest.number < made.number:
            raise _damaged(folder, record_path(name, made.number), "cannot be found, and cannot be made")
        if newest.number == made.number:
            return newest.token == made.token
        was_next = newest.comes_after(made)
        if was_next is None:
            raise EngineError(
                f"{folder.title}: whether version {made.version} was written is not known: so many others were written "
                "meanwhile; read it again"
            )
        return was_next


class _Seen:
    """Set of missing files, so that a second time is one too many."""

    def __init__(self) -> None:
        self._number = 0

    def again(self, number: int) -> bool:
        """Return whether the number before was the same."""
        is_same = number == self._number
        self._number = number
        return is_same


def _listed(folder: NamedFolder, name: str) -> list[int]:
    """Return the numbers of the files of a record, in order.

    Linux lists a folder of so few files atomically, so the highest number is always among them.
    """
    place = place_of(name)
    return numbers_in(path[len(place) + 1 :] for path in folder.paths(place))


def _damaged(folder: NamedFolder, path: str, what: str) -> IllegalStateError:
    return IllegalStateError(f"{folder.title} is damaged: {folder.url}/{path} {what}; restore the file from a backup")
