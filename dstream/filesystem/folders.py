"""`Folder`: the operations of a file system or an object store that a table needs.

`local` and `object_store` implement it. A folder is a value: it travels to the tasks and opens what it needs there.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

__all__ = ["Folder", "Found", "SizedFile", "temporary_name"]


class Found(NamedTuple):
    """A file that stands in a folder.

    Attributes:
        path: where, from the folder on.
        written_at: when it was written, in seconds since 1970.
    """

    path: str
    written_at: float


class Folder(Protocol):
    """Files by path. A path is relative, its parts divided by slashes."""

    @property
    def url(self) -> str:
        """Where it is: a path or a URL."""
        ...

    @property
    def title(self) -> str:
        """What errors call that which is kept in it."""
        ...

    @property
    def storage(self) -> str:
        """Where the storage is in which this folder is; empty if nobody asks there for collections."""
        ...

    def is_seen(self) -> bool:
        """Say whether this process sees the storage of a collection; a worker may have a disk of its own."""
        ...

    def child(self, path: str) -> Folder:
        """Return a folder inside this one; nothing is made."""
        ...

    def folders(self, path: str) -> Sequence[os.stat_result | None]:
        """Look at the folders that lead to a path and at its own, from that of the storage on; None is not there.

        Raises:
            OSError: one of them is a symbolic link, so the path may lead anywhere; the storage's own may be one.
        """
        ...

    def exists(self, path: str) -> bool:
        """Say whether there is a whole file of that path."""
        ...

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return those of some paths at which there is no file."""
        ...

    def read(self, path: str) -> bytes:
        """Return what a file holds.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def read_part(self, path: str, start: int, length: int) -> bytes:
        """Return so many bytes of a file, or fewer where it ends; errors as for `read`."""
        ...

    def read_run(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Give what files hold, in order, up to the first one that is not there; `paths` may go on for ever."""
        ...

    def open(self, path: str) -> Any:
        """Return what `pyarrow.parquet.ParquetFile` reads a file from; errors as for `read`."""
        ...

    def create(self, path: str, data: bytes) -> bool:
        """Write a small file unless there is one; readers see all of it or nothing.

        Returns:
            False if there was one, which stays as it is.
        """
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file, in place of one that is there; readers see all of the old one or all of the new one."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write a file whose name nobody else knows; a failure removes what was written."""
        ...

    def writing(self, path: str) -> AbstractContextManager[Any]:
        """Give a sink for a file that comes in pieces, as `write` takes one that is whole."""
        ...

    def last_created(self, path: str) -> bytes | None:
        """Return what the file holds that `create` has made last in a folder; None where nobody keeps that in mind.

        Of some that were made at the same time it may be any.
        """
        ...

    def paths(self, path: str) -> Iterator[str]:
        """Name all files below a path, at any depth, without a look at each; none if there is no such path."""
        ...

    def found(self, path: str = "", after: str = "") -> Iterator[Found]:
        """List all files below a path, at any depth, whose path sorts behind `after`; none if there is no such path."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; one that is gone already is no error."""
        ...

    def delete_folder(self, path: str) -> None:
        """Remove a folder that is empty; one that is not, or is gone already, is no error."""
        ...


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


TEMPORARY = ".tmp_"


def temporary_name() -> str:
    """Return the name under which a small file is prepared."""
    return f"{TEMPORARY}{random_digits()}"


def random_digits() -> str:
    """Return 32 hexadecimal digits that nobody else has; those of a UUID cost four times as much."""
    return os.urandom(16).hex()
