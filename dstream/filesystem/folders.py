"""`Folder`: the contract of all locations of files, and its extensions for storages and sinks.

`local` and `object_folder` have the folders of storages, `output_folders` those of sinks.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

__all__ = [
    "Folder",
    "Found",
    "NewFile",
    "OutputFolder",
    "SizedFile",
    "StorageFolder",
]


class Found(NamedTuple):
    """A file in a folder.

    Attributes:
        path: relative to the folder.
        written_at: when it was written, in seconds since 1970.
    """

    path: str
    written_at: float


class Folder(Protocol):
    """Files by path: the common contract of storages, sinks and the log of a table.

    A path is relative, its parts divided by slashes. A folder is a value: it travels to the tasks and opens what it
    needs there.
    """

    @property
    def title(self) -> str:
        """The name of the folder in errors, without secrets."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is a whole file of that path."""
        ...

    def read(self, path: str) -> bytes:
        """Return the contents of a file.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def open(self, path: str) -> Any:
        """Return a file to read any part of it, as pyarrow takes it; errors as for `read`."""
        ...

    def create(self, path: str, data: bytes) -> bool:
        """Write a small file unless there is one; readers see all of it or nothing.

        Returns:
            False if there was one, which stays as it is.
        """
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file, in place of an existing one; readers see all of the old one or all of the new one."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; a missing one is no error."""
        ...

    def delete_folder(self, path: str) -> None:
        """Remove a folder that is empty; one that is not, or is missing, is no error."""
        ...


class StorageFolder(Folder, Protocol):
    """A folder of a storage. Nothing in it is trusted: a link may lead anywhere, and a pipe would not end."""

    @property
    def url(self) -> str:
        """The path or the URL."""
        ...

    @property
    def storage(self) -> str:
        """The storage that this folder is in; empty for one outside of any."""
        ...

    def is_seen(self) -> bool:
        """Return whether this process sees the storage of a collection; a worker may have a disk of its own."""
        ...

    def child(self, path: str) -> StorageFolder:
        """Return a folder inside this one; nothing is made."""
        ...

    def folders(self, path: str) -> Sequence[os.stat_result | None]:
        """Look at the folders that lead to a path and at its own, from that of the storage on; None is not there.

        Raises:
            OSError: one of them is a symbolic link, so the path may lead anywhere; the storage's own may be one.
        """
        ...

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return the paths at which there is no file."""
        ...

    def read_part(self, path: str, start: int, length: int) -> bytes:
        """Return some bytes of a file, or fewer where it ends; errors as for `read`."""
        ...

    def read_run(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Return the contents of files, in order, up to the first one that is missing; `paths` may be endless."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write a file whose name no other writer has; a failure removes the written part."""
        ...

    def writing(self, path: str) -> AbstractContextManager[Any]:
        """Return a sink for a file that arrives in pieces, as `write` takes one that is whole."""
        ...

    def last_created(self, path: str) -> bytes | None:
        """Return the contents of the file that `create` has made last in a folder; None if that is not recorded.

        Of some that were made at the same time it may be any.
        """
        ...

    def paths(self, path: str) -> Iterator[str]:
        """List all files below a path, at any depth, without a look at each; none if there is no such path."""
        ...

    def found(self, path: str = "", after: str = "") -> Iterator[Found]:
        """List all files below a path, at any depth, whose path sorts behind `after`; none if there is no such path."""
        ...


class NewFile(Protocol):
    """A file that is being written. Closed, it is whole, and outlives a loss of power."""

    @property
    def size(self) -> int:
        """The number of bytes that were written."""
        ...

    def write(self, data: Any) -> int:
        """Write bytes; return how many."""
        ...

    def flush(self) -> None:
        """Write the buffer."""
        ...

    def close(self) -> None:
        """Complete it."""
        ...

    def discard(self) -> None:
        """Close it without regard to errors: it will be removed. Raises nothing."""
        ...


class OutputFolder(Folder, Protocol):
    """A folder that sinks publish files in, which may be on other machines.

    Methods raise `SinkError` for what is refused, and FileNotFoundError where a file is not there.
    """

    @property
    def moves_at_once(self) -> bool:
        """Return whether a move is one step that can be taken back, as a rename is."""
        ...

    def path_of(self, path: str) -> str:
        """Return the users' name of a file."""
        ...

    def make(self) -> None:
        """Make the folder, if it is not there, and the hidden folders in it."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder inside this one, if it is not there."""
        ...

    def new_file(self, path: str) -> NewFile:
        """Open a new file."""
        ...

    def entries(self, path: str) -> Iterator[tuple[str, bool]]:
        """List the names in a folder, and whether each is a folder."""
        ...

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def age(self, path: str) -> float:
        """Return how many seconds ago a file was written."""
        ...

    def move(self, old: str, new: str) -> None:
        """Rename a file; under the new name it is whole from the first moment on."""
        ...

    def flush(self, folders: set[str]) -> None:
        """Make sure that the names in these folders outlive a loss of power."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Lock out the commits of other processes."""
        ...


class SizedFile(io.RawIOBase):
    """A file of a known size; a class of it reads on from `_position`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position of the next read; nothing is fetched."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position
