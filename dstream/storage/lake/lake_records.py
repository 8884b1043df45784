"""Records as files: one for each version, which nobody overwrites. The last version is the record."""

from __future__ import annotations

import re
from contextlib import suppress

from dstream.errors import EngineError
from dstream.spi.records import Record
from dstream.storage.lake.named_folder import FileGoneError, NamedFolder
from dstream.storage.record_frames import checked_name, framed, unframed

__all__ = ["RECORDS", "LakeRecords"]

RECORDS = "records"
"""The folder of the records in the folder of the storage."""
_LAST_CREATED = "_last_created"
"""A second name of the last version, which a local folder keeps."""
_VERSION = re.compile(r"([a-z0-9/-]+)/([0-9]{20})\.record")


class LakeRecords:
    """Records below one folder.

    A version is created under its number, which only one process can do. Those before it are removed then, so a process
    that has slept may create one that was removed: it finds a later one, and takes its own back.
    """

    def __init__(self, folder: NamedFolder) -> None:
        self._folder = folder

    def read(self, name: str) -> Record | None:
        """Return the last version of a record."""
        checked_name(name)
        self._folder.folders(name)
        while (version := self._last(name)) > 0:
            with suppress(FileGoneError):  # Somebody has written the next one, and removed this one.
                return Record(version, unframed(name, version, self._folder.read(_path(name, version))))
        return None

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Write a version unless somebody else has."""
        checked_name(name)
        self._folder.folders(name)
        there = self._versions(name)
        if version != (there[-1] if there else 0) + 1:
            return False
        if not self._folder.create(_path(name, version), framed(name, version, data)):
            return False
        if self._last(name) > version:
            self._folder.delete(_path(name, version))
            return False
        for older in there:
            with suppress(EngineError):  # It is in nobody's way; who writes next removes it.
                self._folder.delete(_path(name, older))
        return True

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with a prefix, sorted."""
        top = prefix.rpartition("/")[0]
        matches = (_VERSION.fullmatch(found.path) for found in self._folder.found(top))
        return sorted({match[1] for match in matches if match is not None and match[1].startswith(prefix)})

    def remove(self, name: str) -> None:
        """Remove a record: the last version goes last, so that none is taken for the record that was replaced."""
        for version in self._versions(checked_name(name)):
            self._folder.delete(_path(name, version))
        self._folder.delete(f"{name}/{_LAST_CREATED}")

    def _last(self, name: str) -> int:
        versions = self._versions(name)
        return versions[-1] if versions else 0

    def _versions(self, name: str) -> list[int]:
        matches = (_VERSION.fullmatch(found.path) for found in self._folder.found(name))
        return sorted(int(match[2]) for match in matches if match is not None and match[1] == name)


def _path(name: str, version: int) -> str:
    return f"{name}/{version:020d}.record"
