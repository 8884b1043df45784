"""`LakeRecords`: records in a folder or an object store, where all that writers agree on is a file that one can create.

Who creates the file with the next number has written. Older files are removed, so a number can be free that was taken
long ago: a writer that was stopped meanwhile may create it. The file with the highest number is therefore the one that
counts, and a writer that finds a higher one than its own asks its history. `record_files` says what stands in a file.
"""

from __future__ import annotations

from dstream.errors import EngineError, IllegalStateError
from dstream.spi.records import Record
from dstream.storage.checking import NOT_UNDERSTOOD
from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import remove_quietly
from dstream.storage.lake.named_folder import FileGoneError, NamedFolder
from dstream.storage.lake.record_files import (
    KEPT,
    RECORDS,
    REMOVED,
    RecordFile,
    files_by_name,
    numbers_in,
    parsed_record,
    place_of,
    record_path,
)
from dstream.storage.lake.trust import Trust
from dstream.storage.record_names import check_prefix, check_record, check_write

__all__ = ["LakeRecords"]


class LakeRecords:
    """The records of one storage."""

    def __init__(self, folder: Folder, trust: Trust) -> None:
        self._folder = folder
        self._trust = trust
        self._pickles = trust.pickles
        self._unjudged: set[str] = set()

    def read(self, name: str) -> Record | None:
        """Return what the newest file holds."""
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
        """Return the names of the folders that hold a record."""
        check_prefix(prefix)
        top, _, _ = f"{RECORDS}/{prefix}".rpartition("/")
        files = files_by_name(NamedFolder(self._folder, self._folder.title).paths(top))
        found = {name: there for name, there in files.items() if name.startswith(prefix) and numbers_in(there)}
        return sorted(name for name, there in found.items() if REMOVED not in there or self.read(name) is not None)

    def remove(self, name: str) -> None:
        """Create a next file that says so; it stays."""
        check_record(name)
        while (newest := self._newest(name)) is not None and newest.version:
            self._folder_of(name).replace(f"{place_of(name)}/{REMOVED}", b"")
            if self._put(name, RecordFile.behind(newest, 0, b""), kept=1):
                return

    def forget(self, name: str) -> None:
        """Remove all files of a record, and their folder."""
        check_record(name)
        folder, place = self._folder_of(name), place_of(name)
        for path in list(folder.paths(place)):
            if "/" not in path[len(place) + 1 :]:  # What is below has a name of its own.
                folder.delete(path)
        folder.delete_folder(place)

    def pickles(self) -> Pickles:
        """Return which pickles of records are loaded, by who could write into the folders of those that were read.

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
        """Return the file that counts; None if there is none."""
        if self._trust.is_judging:
            self._unjudged.add(name)
        folder = self._folder_of(name)
        last = _Seen()
        while True:
            created = self._last_created(folder, name)
            number = max(_listed(folder, name), default=0)
            if created is not None and created.number >= number:
                # A network drive may list a new file late; then the file itself says what is there.
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
        """Return the file that was created last, as far as that was kept in mind: it may be an older one."""
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
        """Create a file, and say whether it came next: nobody else has written this number, now or before."""
        folder, path = self._folder_of(name), record_path(name, made.number)
        is_created = folder.create(path, made.packed(name))
        there = _listed(folder, name)
        is_next = (is_created and there[-1:] == [made.number]) or self._is_own(folder, name, made)
        if is_next:  # oldest first, so that one which is left is never older than one which is gone
            remove_quietly(folder, [record_path(name, number) for number in there if number <= made.number - kept])
        elif is_created:
            remove_quietly(folder, [path])
        return is_next

    def _is_own(self, folder: NamedFolder, name: str, made: RecordFile) -> bool:
        """Look into the newest file. A request to an object store that was sent twice meets its own file, for example.

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
    """Remembers what was found missing, so that a second time is one too many."""

    def __init__(self) -> None:
        self._number = 0

    def again(self, number: int) -> bool:
        """Say whether this number was the one before as well."""
        is_same = number == self._number
        self._number = number
        return is_same


def _listed(folder: NamedFolder, name: str) -> list[int]:
    """Return the numbers of the files of a record, in order.

    Linux lists a folder of so few files in one step, so whatever else happens the highest number is among them.
    """
    place = place_of(name)
    return numbers_in(path[len(place) + 1 :] for path in folder.paths(place))


def _damaged(folder: NamedFolder, path: str, what: str) -> IllegalStateError:
    return IllegalStateError(f"{folder.title} is damaged: {folder.url}/{path} {what}; restore the file from a backup")
