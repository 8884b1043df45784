"""Folders that files are published in: the contract, and folders of this machine.

Names are relative to the folder, with slashes. `dstream.filesystem.fsspec_outputs` has the folders behind URLs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from dstream.errors import SinkError, SinkTakenError

__all__ = ["HIDDEN", "LONGEST_WAIT", "LocalOutput", "NewFile", "OutputFolder", "writing_to"]


HIDDEN = ".dstream"

LONGEST_WAIT = 60.0
"""Seconds until who waits for the lock gives up. A commit has it for as long as its files take to be renamed."""


class NewFile(Protocol):
    """A file that is being written. Closed, it is whole, and outlives a loss of power."""

    def write(self, data: Any) -> int:
        """Write bytes; return how many."""
        ...

    def flush(self) -> None:
        """Write what waits."""
        ...

    def close(self) -> None:
        """Complete it."""
        ...

    def discard(self) -> None:
        """Close it, whatever becomes of it: it will be removed. Raises nothing."""
        ...


class OutputFolder(Protocol):
    """What is written into. A value: it travels to tasks, which may be on other machines.

    Methods raise `SinkError` for what is refused, and FileNotFoundError where a file is not there.
    """

    @property
    def title(self) -> str:
        """What messages call it."""
        ...

    @property
    def moves_at_once(self) -> bool:
        """Whether a move is one step that can be taken back, as a rename is."""
        ...

    def path_of(self, name: str) -> str:
        """Return what users call a file."""
        ...

    def make(self) -> None:
        """Make the place, if it is not there, and the folders in it that nobody sees."""
        ...

    def create(self, name: str) -> NewFile:
        """Open a new file."""
        ...

    def open(self, name: str) -> IO[bytes]:
        """Open a file that is there, to read any part of it."""
        ...

    def make_folder(self, name: str) -> None:
        """Make a folder in the place, if it is not there."""
        ...

    def put_new(self, name: str, content: bytes) -> bool:
        """Write a small file in one step, unless there is one; say whether there was none."""
        ...

    def seen(self, below: str) -> Iterator[tuple[str, bool]]:
        """Give the names of what is in a folder, and whether each is a folder."""
        ...

    def holds(self, name: str) -> bool:
        """Say whether there is such a file or folder."""
        ...

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def age(self, name: str) -> float:
        """Return how many seconds ago a file was written."""
        ...

    def read(self, name: str) -> bytes:
        """Return what is in a small file."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Write a small file in one step."""
        ...

    def move(self, old: str, new: str) -> None:
        """Give a file another name, under which it is whole from the first moment on."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file."""
        ...

    def settle(self, folders: set[str]) -> None:
        """Make sure that the names in these folders outlive a loss of power."""
        ...

    def remove_empty(self, folder: str) -> None:
        """Remove a folder if it holds nothing; raises nothing."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Let nobody else commit."""
        ...


@dataclass(frozen=True, slots=True)
class LocalOutput:
    """A folder of this machine, also one that is mounted.

    Attributes:
        path: absolute.
    """

    path: str

    moves_at_once = True

    @property
    def title(self) -> str:
        """The path."""
        return self.path

    def path_of(self, name: str) -> str:
        """Return the path of a file."""
        return os.path.join(self.path, name)

    def make(self) -> None:
        """Make the folder, with those above it.

        Raises:
            SinkError: it cannot be made or written, or a hidden folder is a link, which may lead anywhere.
        """
        hidden = self.path_of(HIDDEN)
        for folder in (hidden, os.path.join(hidden, "jobs")):
            if os.path.islink(folder):
                raise SinkError(f"cannot write {folder}: it is a symbolic link, which may lead anywhere; remove it")
        with writing_to(self.path):
            os.makedirs(os.path.join(hidden, "jobs"), exist_ok=True)
            for folder in (self.path, hidden):
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)

    def create(self, name: str) -> NewFile:
        """Open a new file."""
        path = self.path_of(name)
        with writing_to(path):
            return _Synced(open(path, "xb"), path)

    def open(self, name: str) -> IO[bytes]:
        """Open it."""
        return open(self.path_of(name), "rb")

    def make_folder(self, name: str) -> None:
        """Make it, with those above it."""
        with writing_to(self.path_of(name)):
            os.makedirs(self.path_of(name), exist_ok=True)

    def put_new(self, name: str, content: bytes) -> bool:
        """Write another file and link it: a link fails if there is one, in one step."""
        path = self.path_of(name)
        unfinished = os.path.join(self.path, HIDDEN, f"{uuid.uuid4().hex}.new")
        with writing_to(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(unfinished, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(unfinished, path)
            except FileExistsError:
                return False
            finally:
                os.unlink(unfinished)
            _sync_folder(os.path.dirname(path))
        return True

    def seen(self, below: str) -> Iterator[tuple[str, bool]]:
        """List a folder."""
        with writing_to(self.path), os.scandir(self.path_of(below)) as entries:
            for entry in entries:
                yield entry.name, entry.is_dir(follow_symlinks=False)

    def holds(self, name: str) -> bool:
        """Look for it, also for a link to nothing."""
        return os.path.lexists(self.path_of(name))

    def size(self, name: str) -> int:
        """Ask the file system."""
        return os.stat(self.path_of(name)).st_size

    def age(self, name: str) -> float:
        """Ask the file system."""
        return time.time() - os.stat(self.path_of(name)).st_mtime

    def read(self, name: str) -> bytes:
        """Read it whole."""
        try:
            with open(self.path_of(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SinkError(f"cannot read {self.path_of(name)}: {error}") from error

    def replace(self, name: str, content: bytes) -> None:
        """Write another file, which then takes its name."""
        path = self.path_of(name)
        unfinished = os.path.join(self.path, HIDDEN, f"{os.path.basename(name)}.new")
        with writing_to(path):
            with open(unfinished, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
            _sync_folder(os.path.dirname(path))

    def move(self, old: str, new: str) -> None:
        """Rename it; the folder is made, if it is one of `partition_by`."""
        target = self.path_of(new)
        if "/" in new:
            os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(self.path_of(old), target)

    def remove(self, name: str) -> None:
        """Unlink it."""
        os.unlink(self.path_of(name))

    def settle(self, folders: set[str]) -> None:
        """Sync the folders."""
        for folder in folders:
            _sync_folder(self.path_of(folder))

    def remove_empty(self, folder: str) -> None:
        """Try to."""
        with suppress(OSError):
            os.rmdir(self.path_of(folder))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Have a lock of the kernel, which frees it if the process dies.

        Raises:
            SinkError: another process has the lock for a minute, or the folder is gone.
        """
        with writing_to(self.path):
            descriptor = os.open(self.path_of(HIDDEN), os.O_RDONLY)
        try:
            _lock(descriptor, self.path)
            yield
        finally:
            os.close(descriptor)  # The lock goes with it.


class _Synced:
    """A file whose failures say that it could not be written, also below a library that compresses."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self._path = path

    def write(self, data: Any) -> int:
        with writing_to(self._path):
            return self._file.write(data)

    def flush(self) -> None:
        with writing_to(self._path):
            self._file.flush()

    def close(self) -> None:
        with writing_to(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def discard(self) -> None:
        """Close it, whatever becomes of it."""
        with suppress(OSError):
            self._file.close()


def _holder(descriptor: int) -> str:
    """Return who has the lock of a file, as far as Linux says it: its locks name processes of this machine."""
    inode = f":{os.fstat(descriptor).st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1:2] == ["FLOCK"] and words[5].endswith(inode):
                return f"the process {words[4]}"
    return "another process"


def _lock(descriptor: int, path: str) -> None:
    last = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= last:
                raise SinkTakenError(
                    f"{path}: {_holder(descriptor)} is in the middle of a commit, and does not end; let it go on "
                    "(kill -CONT) or end it"
                ) from error
            time.sleep(0.01)
        except OSError as error:
            raise SinkError(f"{path}: this file system has no locks ({error})") from error
        else:
            return


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def writing_to(path: str) -> Iterator[None]:
    """Turn what a file system refuses into a `SinkError` that says what cannot be written, and why.

    No function of the user's belongs into the block.
    """
    try:
        yield
    except SinkError:
        raise
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"{type(error).__name__}: {error}")
        raise SinkError(f"cannot write {error.filename or path}: {reason}") from error


_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "this process may not write it",
    errno.EPERM: "this process may not write it",
    errno.EROFS: "the file system is read-only",
    errno.ENOENT: "it is gone, or is not on this machine: the folder must be one that all machines share",
    errno.ENOTDIR: "a part of it is a file",
    errno.EEXIST: "it is a file",
    errno.ENAMETOOLONG: "its name is too long for the file system",
}


NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""How Hive, Spark and DuckDB write None."""
