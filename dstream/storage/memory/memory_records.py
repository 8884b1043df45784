"""The records of one process: what the contract of `dstream.spi.records` means."""

from __future__ import annotations

import threading

from dstream.spi.records import Record
from dstream.storage.record_frames import checked_name

__all__ = ["MemoryRecords"]


class MemoryRecords:
    """Records by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[str, Record] = {}

    def read(self, name: str) -> Record | None:
        """Return the last version of a record."""
        return self._records.get(checked_name(name))

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Write a version unless somebody else has."""
        with self._lock:
            last = self._records.get(checked_name(name))
            if version != (1 if last is None else last.version + 1):
                return False
            self._records[name] = Record(version, bytes(data))
            return True

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with a prefix, sorted."""
        with self._lock:
            return sorted(name for name in self._records if name.startswith(prefix))

    def remove(self, name: str) -> None:
        """Remove a record."""
        with self._lock:
            self._records.pop(checked_name(name), None)
