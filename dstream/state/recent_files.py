"""Small files that this process has written or read of late, so that putting changes together reads nothing.

A name is used once, by one attempt of one task, and what stands under it never changes: nothing here can be old.
"""

from __future__ import annotations

from dstream.spi.state_files import StateFiles
from dstream.values.forked_locks import RenewedLock

__all__ = ["RecentFiles", "recent_files"]

_SMALL = 256 << 10
_MOST = 16 << 20
"""In bytes. An epoch that touches 1,000 keys writes 20,000, and changes are put together after some twenty epochs."""


class RecentFiles:
    """The first bytes of files, by name; those that came first go first. Threads may share it."""

    def __init__(self) -> None:
        self._heads: dict[str, bytes] = {}
        self._size = 0
        self._lock = RenewedLock()

    def read(self, files: StateFiles, name: str, offset: int, length: int) -> bytes:
        """Return a part of a file; a small file is read as a whole, since its other parts will be wanted as well.

        Raises:
            FileNotFoundError: there is no such file.
        """
        end = offset + length
        head = self._heads.get(name)
        if head is None and end <= _SMALL:
            head = files.read(name, 0, _SMALL)
            self.put(name, head)
        return head[offset:end] if head is not None and end <= len(head) else files.read(name, offset, length)

    def put(self, name: str, data: bytes) -> None:
        """Keep what was written to a file, if that is small."""
        if len(data) > _SMALL:
            return
        with self._lock:
            self._size += len(data) - len(self._heads.pop(name, b""))
            self._heads[name] = data
            while self._size > _MOST:
                self._size -= len(self._heads.pop(next(iter(self._heads))))


recent_files = RecentFiles()
"""Those of this process."""
