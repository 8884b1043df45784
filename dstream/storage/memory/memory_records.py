"""`MemoryRecords`: records in a dict, under one lock."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from dstream.spi.records import Record
from dstream.storage.record_names import check_prefix, check_record, check_write

__all__ = ["MemoryRecords"]


@dataclass(slots=True, eq=False)
class MemoryRecords:
    """The records of one storage of this process."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _records: dict[str, Record] = field(default_factory=dict)

    def read(self, name: str) -> Record | None:
        """Look a name up."""
        check_record(name)
        with self._lock:
            return self._records.get(name)

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Replace a record if it has the version before this one."""
        check_write(name, data, version)
        with self._lock:
            there = self._records.get(name)
            if (0 if there is None else there.version) != version - 1:
                return False
            self._records[name] = Record(version, bytes(data))
            return True

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin in some way, sorted."""
        check_prefix(prefix)
        with self._lock:
            return sorted(name for name in self._records if name.startswith(prefix))

    def remove(self, name: str) -> None:
        """Remove a record."""
        check_record(name)
        with self._lock:
            self._records.pop(name, None)

    def forget(self, name: str) -> None:
        """Remove a record."""
        self.remove(name)
