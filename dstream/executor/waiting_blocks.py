"""`WaitingBlocks`: blocks that wait for their turn, on disk if they are many."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections import deque
from typing import IO, Any

from dstream.memory import Growth
from dstream.pickling import dumps

__all__ = ["WaitingBlocks"]

_IN_MEMORY = 100_000
"""So many items wait in memory, if they are small."""


class WaitingBlocks:
    """A queue of blocks, each with who sent it. What does not fit into memory goes into a file without a name.

    Much is what makes the process grow by megabytes while something waits.

    Args:
        spills: whether it may be much; otherwise whoever puts blocks has bounded them.
    """

    __slots__ = ("__weakref__", "_file", "_first", "_growth", "_held", "_in_file", "_read", "_spills", "_written")

    def __init__(self, spills: bool = True) -> None:
        self._first: deque[tuple[int, list[Any]]] = deque()
        self._spills = spills
        self._growth = Growth()
        self._held = 0
        self._file: IO[bytes] | None = None
        self._in_file = 0
        self._read = 0
        self._written = 0

    def __len__(self) -> int:
        return len(self._first) + self._in_file

    def put(self, sender: int, items: list[Any]) -> None:
        """Add a block."""
        if not self._first and not self._in_file:
            self._growth.start()
        if not self._in_file and not self._is_much():
            self._held += len(items)
            self._first.append((sender, items))
        else:
            self._write(dumps((sender, items)))

    def _is_much(self) -> bool:
        return self._spills and bool(self._first) and (self._held >= _IN_MEMORY or self._growth.exceeded())

    def take(self) -> tuple[int, list[Any]]:
        """Return the first block, of which there is one."""
        if self._first:
            sender, items = self._first.popleft()
            self._held -= len(items)
            return sender, items
        return self._from_file()

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="dstream-")  # noqa: SIM115 - it lives as long as the queue
            weakref.finalize(self, self._file.close)
        self._file.seek(self._written)
        self._file.write(len(data).to_bytes(8, "little"))
        self._file.write(data)
        self._written = self._file.tell()
        self._in_file += 1

    def _from_file(self) -> tuple[int, list[Any]]:
        assert self._file is not None, "a block was written"
        self._file.seek(self._read)
        size = int.from_bytes(self._file.read(8), "little")
        sender, items = pickle.loads(self._file.read(size))
        self._read = self._file.tell()
        self._in_file -= 1
        if not self._in_file:
            self._file.truncate(0)
            self._read = self._written = 0
        return sender, items
