"""`UnkeptRecords`: the records of a job with the guarantee "none", which are gone with its run."""

from __future__ import annotations

from dstream.spi.records import Record

__all__ = ["UnkeptRecords"]


class UnkeptRecords:
    """Records that one thread keeps for itself."""

    def __init__(self) -> None:
        self._kept: dict[str, Record] = {}

    def read(self, name: str) -> Record | None:
        """Return what stands under a name; None if there is nothing."""
        return self._kept.get(name)

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Write the next version of a record."""
        there = self._kept[name].version if name in self._kept else 0
        if version == there + 1:
            self._kept[name] = Record(version, data)
        return version == there + 1

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin in some way, sorted."""
        return sorted(name for name in self._kept if name.startswith(prefix))

    def remove(self, name: str) -> None:
        """Remove a record."""
        self._kept.pop(name, None)

    def forget(self, name: str) -> None:
        """Remove a record."""
        self.remove(name)
