"""Folders in which sinks publish files: of this machine, and URLs of fsspec such as `s3://bucket/folder`.

A local folder is the user's: links in it are followed, and new files have the default permissions. An object store has
neither a rename nor a lock. An object becomes visible when its writer closes it; a move is a copy, then a removal.
Commits are serialized by a lock file, as `RemoteOutput.locked` describes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

from dstream.base.threads import contextmanager
from dstream.base.urls import resolved_url, scrub, shown_url
from dstream.errors import SinkError, SinkTakenError, UnsupportedError
from dstream.filesystem.folders import NewFile, OutputFolder
from dstream.filesystem.local import flush_folder
from dstream.filesystem.urls import URL, check_scheme, opened_url

__all__ = ["HIDDEN", "NULL_PARTITION", "LocalOutput", "output_folder", "writing_to"]


HIDDEN = ".dstream"
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The name of the folder for None in Hive, Spark and DuckDB."""

LONGEST_WAIT = 60.0
"""Timeout in seconds for the lock. A commit has the lock until its files are renamed."""


def output_folder(folder: str) -> OutputFolder:
    """Return the folder of a path or URL, with an absolute path: the process that commits may run elsewhere.

    Nothing is opened yet.

    Raises:
        ValueError: fsspec does not support the URL.
        SetupError: the package that fsspec needs for it is not installed.
        UnsupportedError: it leads through an archive, or is one that cannot be written.
    """
    if not URL.match(folder) or folder.startswith("file:///"):
        return LocalOutput(os.path.abspath(os.path.expanduser(folder.removeprefix("file://"))))
    scheme = folder.partition(":")[0]
    if "::" in folder or scheme in ("http", "https"):
        raise UnsupportedError(f"to_files() writes whole files, which {shown_url(folder)} does not take")
    check_scheme(scheme, "to_files() cannot write to")
    return RemoteOutput(folder.rstrip("/"))


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
        return self.path

    def path_of(self, path: str) -> str:
        return os.path.join(self.path, path)

    def make(self) -> None:
        """Create the folder, with its parents.

        Raises:
            SinkError: it cannot be made or written, or a hidden folder is a link, which may lead anywhere.
        """
        hidden = self.path_of(HIDDEN)
        for folder in (hidden, os.path.join(hidden, "jobs")):
            # The user's own links are followed, but not these: files in hidden folders are removed by their age.
            if os.path.islink(folder):
                raise SinkError(f"cannot write {folder}: it is a symbolic link, which may lead anywhere; remove it")
        with writing_to(self.path):
            os.makedirs(os.path.join(hidden, "jobs"), exist_ok=True)
            for folder in (self.path, hidden):
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)

    def make_folder(self, path: str) -> None:
        with writing_to(self.path_of(path)):
            os.makedirs(self.path_of(path), exist_ok=True)

    def new_file(self, path: str) -> NewFile:
        final = self.path_of(path)
        with writing_to(final):
            return _LocalFile(open(final, "xb"), final)

    def open(self, path: str) -> IO[bytes]:
        return open(self.path_of(path), "rb")

    def read(self, path: str) -> bytes:
        try:
            with self.open(path) as file:
                return file.read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SinkError(f"cannot read {self.path_of(path)}: {error}") from error

    def create(self, path: str, data: bytes) -> bool:
        """Write a temporary file and link it: a link fails atomically if the name exists."""
        final = self.path_of(path)
        unfinished = os.path.join(self.path, HIDDEN, f"{uuid.uuid4().hex}.new")
        with writing_to(final):
            os.makedirs(os.path.dirname(final), exist_ok=True)
            _write_synced(unfinished, "xb", data)
            try:
                os.link(unfinished, final)
            except FileExistsError:
                return False
            finally:
                os.unlink(unfinished)
            flush_folder(os.path.dirname(final))
        return True

    def replace(self, path: str, data: bytes) -> None:
        """Write a temporary file and rename it."""
        final = self.path_of(path)
        # One name for all: only the owner of the lock replaces a file, and it overwrites what one that died has left.
        unfinished = os.path.join(self.path, HIDDEN, f"{os.path.basename(path)}.new")
        with writing_to(final):
            _write_synced(unfinished, "wb", data)
            os.replace(unfinished, final)
            flush_folder(os.path.dirname(final))

    def entries(self, path: str) -> Iterator[tuple[str, bool]]:
        with writing_to(self.path), os.scandir(self.path_of(path)) as entries:
            for entry in entries:
                yield entry.name, entry.is_dir(follow_symlinks=False)

    def exists(self, path: str) -> bool:
        """Return whether there is a file, a folder or a link, even a dangling one."""
        return os.path.lexists(self.path_of(path))

    def size(self, path: str) -> int:
        return os.stat(self.path_of(path)).st_size

    def age(self, path: str) -> float:
        return time.time() - os.stat(self.path_of(path)).st_mtime

    def move(self, old: str, new: str) -> None:
        """Rename it; the folder is made, if it is one of `partition_by`."""
        target = self.path_of(new)
        if "/" in new:
            os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(self.path_of(old), target)

    def flush(self, folders: set[str]) -> None:
        for folder in folders:
            flush_folder(self.path_of(folder))

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.path_of(path))

    def delete_folder(self, path: str) -> None:
        with suppress(OSError):
            os.rmdir(self.path_of(path))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Have a lock of the kernel, which frees it if the process dies.

        Raises:
            SinkError: another process has the lock for a minute, or the folder no longer exists.
        """
        with writing_to(self.path):
            descriptor = os.open(self.path_of(HIDDEN), os.O_RDONLY)
        try:
            _lock(descriptor, self.path)
            yield
        finally:
            os.close(descriptor)  # That releases the lock.


class _LocalFile:
    """A file whose failures report that it could not be written, also inside a compression library."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self._path = path
        self.size = 0

    def write(self, data: Any) -> int:
        with writing_to(self._path):
            written = self._file.write(data)
        self.size += written
        return written

    def flush(self) -> None:
        with writing_to(self._path):
            self._file.flush()

    def close(self) -> None:
        with writing_to(self._path):
            self._file.flush()
            # A commit names this file next, so its bytes must outlive a loss of power before its name does.
            os.fsync(self._file.fileno())
            self._file.close()

    def discard(self) -> None:
        with suppress(OSError):
            self._file.close()


def _write_synced(path: str, mode: str, data: bytes) -> None:
    with open(path, mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _holder(descriptor: int) -> str:
    """Return the holder of the lock of a file, as far as Linux shows it: its locks name processes of this machine."""
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


@contextlib.contextmanager
def writing_to(path: str) -> Iterator[None]:
    """Turn refusals of a file system into a `SinkError` with the file and the reason.

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


SETTLED = 0.5
"""Seconds after which a lock file is valid if it was not overwritten: longer than a check and a write take."""
_NOTE = f"{HIDDEN}/committing"


@dataclass(frozen=True, slots=True)
class RemoteOutput:
    """A folder of a URL. Each process opens it itself.

    Attributes:
        url: as the user wrote it, which may contain secrets.
    """

    url: str

    moves_at_once = False

    @property
    def title(self) -> str:
        return shown_url(self.url)

    def path_of(self, path: str) -> str:
        """Return the URL of a file, with the options to read it."""
        return f"{self.url}/{path}"

    @contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        """Turn errors of a client library into a `SinkError`. No function of the user's runs in the block."""
        try:
            yield
        except (SinkError, FileNotFoundError):
            raise
        except Exception as error:
            url = self.path_of(path)
            scrub(error, url)
            raise SinkError(f"cannot write {shown_url(url)}: {type(error).__name__}: {error}") from error

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[Any, str]]:
        """Yield the file system, and its name of a file; errors in the block as for `_writing`."""
        with self._writing(path):
            fs, inside = opened_url(resolved_url(self.url, quoted=False))
            fs.invalidate_cache()  # fsspec caches listings, and would miss files of other writers.
            yield fs, f"{inside.rstrip('/')}/{path.rstrip('/')}" if path else inside

    def make(self) -> None:
        self.make_folder(f"{HIDDEN}/jobs")

    def make_folder(self, path: str) -> None:
        with self._opened(path) as (fs, inside):
            fs.makedirs(inside, exist_ok=True)

    def new_file(self, path: str) -> NewFile:
        with self._opened(path) as (fs, inside):
            return _RemoteFile(self, path, fs.open(inside, "wb"))

    def open(self, path: str) -> IO[bytes]:
        with self._opened(path) as (fs, inside):
            return cast("IO[bytes]", fs.open(inside, "rb"))

    def read(self, path: str) -> bytes:
        with self._opened(path) as (fs, inside):
            return cast("bytes", fs.cat_file(inside))

    def create(self, path: str, data: bytes) -> bool:
        """Check for the file, then put it: no other process can interfere, as long as all writers use the lock."""
        if self.exists(path):
            return False
        if "/" in path:
            self.make_folder(path.rpartition("/")[0])
        self.replace(path, data)
        return True

    def replace(self, path: str, data: bytes) -> None:
        with self._opened(path) as (fs, inside):
            fs.pipe_file(inside, data)

    def entries(self, path: str) -> Iterator[tuple[str, bool]]:
        """List a folder; one without objects has no entries."""
        with self._opened(path) as (fs, inside):
            try:
                found = fs.ls(inside, detail=True)
            except FileNotFoundError:
                return
        for each in found:
            name = each["name"].rstrip("/").rpartition("/")[2]
            if name and each["name"].strip("/") != inside.strip("/"):  # Some stores list the folder itself.
                yield name, each["type"] == "directory"

    def exists(self, path: str) -> bool:
        with suppress(FileNotFoundError):
            self._info(path)
            return True
        return False

    def size(self, path: str) -> int:
        return int(self._info(path).get("size") or 0)

    def _info(self, path: str) -> dict[str, Any]:
        with self._opened(path) as (fs, inside):
            return cast("dict[str, Any]", fs.info(inside))

    def age(self, path: str) -> float:
        """Return how old it is; 0 where the file system does not have it."""
        found = self._info(path)
        times = (found.get(key) for key in ("LastModified", "last_modified", "mtime", "updated", "created"))
        written: datetime | None = next((each for each in times if isinstance(each, datetime)), None)
        # Zero counts as new: what has no age is never removed for being old.
        return 0.0 if written is None else (datetime.now(UTC) - written.astimezone(UTC)).total_seconds()

    def move(self, old: str, new: str) -> None:
        """Copy it, then remove it. A copy that was finished before, and not removed, is the same."""
        with self._opened(new) as (fs, target):
            source = target.removesuffix(new) + old
            if not fs.exists(source):
                raise FileNotFoundError(source)
            if "/" in new:
                fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            fs.cp_file(source, target)
            fs.rm_file(source)

    def flush(self, folders: set[str]) -> None:
        """Do nothing: put files are durable."""

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError), self._opened(path) as (fs, inside):
            fs.rm_file(inside)

    def delete_folder(self, path: str) -> None:
        with suppress(Exception), self._opened(path) as (fs, inside):
            fs.rmdir(inside)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Have a note in the folder that no other process overwrites while it settles.

        fsspec has no conditional write. So each commit waits until there is no lock file, writes its own and, if that
        still exists after concurrent writers must have written theirs, has the lock.

        Raises:
            SinkError: another lock file remains for a minute.
        """
        mine = uuid.uuid4().hex.encode()
        last = time.monotonic() + LONGEST_WAIT
        while True:
            if self._note() is None:
                self.replace(_NOTE, mine)
                time.sleep(SETTLED)
                if self._note() == mine:
                    break
            if time.monotonic() >= last:
                raise SinkError(
                    f"{self.title}: another process is in the middle of a commit. If it died there, remove "
                    f"{shown_url(self.path_of(_NOTE))}: the next commit then finishes what it began"
                )
            time.sleep(SETTLED / 5)
        try:
            yield
        finally:
            # A user may have removed the lock file after an error, and another process may have the lock: its file
            # remains.
            if self._note() == mine:
                self.delete(_NOTE)

    def _note(self) -> bytes | None:
        try:
            return self.read(_NOTE)
        except FileNotFoundError:
            return None


class _RemoteFile:
    """An object that is being written, whose failures name it."""

    def __init__(self, folder: RemoteOutput, path: str, file: Any) -> None:
        self._folder = folder
        self._path = path
        self._file = file
        self.size = 0

    def write(self, data: Any) -> int:
        with self._folder._writing(self._path):
            self._file.write(bytes(data))  # Arrow passes buffers.
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: a part of an object is nothing."""

    def close(self) -> None:
        with self._folder._writing(self._path):
            self._file.close()

    def discard(self) -> None:
        with suppress(Exception):
            self._file.close()
