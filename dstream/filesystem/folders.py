"""`Folder`: the contract of all locations of files, and its extensions for storages and sinks.

`local` and `object_folder` implement folders of storages, `output_folders` folders of sinks.
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

    A path is relative, its parts divided by slashes. A folder is a value: it is sent to the tasks and opens its
    resources in them.
    """

    @property
    def title(self) -> str:
        """The name of the folder in errors, without secrets."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a complete file of that path exists."""
        ...

    def read(self, path: str) -> bytes:
        """Return the contents of a file.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def open(self, path: str) -> Any:
        """Return a file for random access, as pyarrow requires; errors as for `read`."""
        ...

    def create(self, path: str, data: bytes) -> bool:
        """Write a small file unless it exists; readers see all of it or nothing.

        Returns:
            False if it existed, and is unchanged.
        """
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file, in place of an existing one; readers see either the old or the new content."""
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
        """Return whether this process sees the storage of a collection; a worker may have another disk."""
        ...

    def child(self, path: str) -> StorageFolder:
        """Return a folder inside this one; nothing is made."""
        ...

    def folders(self, path: str) -> Sequence[os.stat_result | None]:
        """Return the status of the parents of a path and of its own folder, from the storage on; None if missing.

        Raises:
            OSError: one of them is a symbolic link, so the path may lead anywhere; the storage's own may be one.
        """
        ...

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return the paths without a file."""
        ...

    def read_part(self, path: str, start: int, length: int) -> bytes:
        """Return `length` bytes of a file, or fewer at its end; errors as for `read`."""
        ...

    def read_run(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Return the contents of files, in order, up to the first one that is missing; `paths` may be endless."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write a file with a unique name; a failure removes the partial file."""
        ...

    def writing(self, path: str) -> AbstractContextManager[Any]:
        """Return a sink for a file that is written in pieces; otherwise as `write`."""
        ...

    def last_created(self, path: str) -> bytes | None:
        """Return the contents of the file that `create` has made last in a folder; None if that is not recorded.

        Of several concurrent files it may be any.
        """
        ...

    def paths(self, path: str) -> Iterator[str]:
        """List all files below a path, recursively, without their status; none if the path does not exist."""
        ...

    def found(self, path: str = "", after: str = "") -> Iterator[Found]:
        """List all files below a path, recursively, whose path sorts after `after`; none if the path does not exist."""
        ...


class NewFile(Protocol):
    """A file that is being written. Once closed, it is complete and durable."""

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

    Methods raise `SinkError` for refused operations, and FileNotFoundError for a missing file.
    """

    @property
    def moves_at_once(self) -> bool:
        """Return whether a move is atomic and reversible, as a rename is."""
        ...

    def path_of(self, path: str) -> str:
        """Return the users' name of a file."""
        ...

    def make(self) -> None:
        """Create the folder, if missing, and the hidden folders in it."""
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder inside this one, if missing."""
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
        """Rename a file; under the new name it is always complete."""
        ...

    def flush(self, folders: set[str]) -> None:
        """Make the names in these folders durable."""
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
