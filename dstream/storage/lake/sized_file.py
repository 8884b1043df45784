"""`SizedFile`: the place in a file whose bytes are fetched as they are read, for readers such as pyarrow."""

from __future__ import annotations

import io
import os

__all__ = ["SizedFile"]


class SizedFile(io.RawIOBase):
    """A file of a known size; a class of it reads on from `_position`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        """Say yes."""
        return True

    def seekable(self) -> bool:
        """Say yes."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Let the next read begin elsewhere; nothing is fetched."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position
