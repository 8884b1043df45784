"""`LocalFolder`: a folder of a local or a shared POSIX file system, and the turns of its writers."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dstream.base.records import record
from dstream.base.threads import contextmanager
from dstream.filesystem.folders import Found

__all__ = ["LONGEST_WAIT", "TEMPORARY", "LocalFolder", "flush_folder", "random_digits", "turn"]


TEMPORARY = ".tmp_"
"""The first letters of the names under which small files are prepared."""
_LAST_CREATED = "_last_created"
_READ_WHOLE = 1 << 20
_PRIVATE = ("records/", "jobs/")
"""The folders of plans of jobs, which may have passwords in them, and of their state."""
_LARGEST_READ = 1 << 30
"""In bytes. Descriptions and log entries are far smaller; a file with a hole in it may have any size."""
_ANY_SIZE = 1 << 63


@record
class LocalFolder:
    """A folder of a local or a shared POSIX file system.

    Attributes:
        root: its path.
        durable: flush what is written to the disk, also the folders above it.
        inside: the folder of the storage, in which this one is; empty if this one is it.
        private: only this user may read what is made in it.
    """

    root: str
    durable: bool = False
    inside: str = ""
    private: bool = False

    @property
    def url(self) -> str:
        return self.root

    @property
    def title(self) -> str:
        return f"the storage {self.root}"

    @property
    def storage(self) -> str:
        return self.inside

    def is_seen(self) -> bool:
        """Return whether the names of collections exist, which the driver has written before a task starts."""
        return not self.inside or os.path.isdir(f"{self.inside}/names")

    def child(self, path: str) -> LocalFolder:
        return LocalFolder(f"{self.root}/{path}", self.durable, self.inside or self.root, self.private)

    def folders(self, path: str) -> Sequence[os.stat_result | None]:
        place = self.inside or self.root
        found = [_status(place, os.stat)]
        for name in filter(None, f"{self.root}/{path}"[len(place) :].split("/")):
            place = f"{place}/{name}"
            found.append(_status(place, os.lstat))
            if found[-1] is not None and stat.S_ISLNK(found[-1].st_mode):
                raise _link_to_a_folder(place)
        return found

    def exists(self, path: str) -> bool:
        try:
            # `os.path.exists` returns False where a disk fails, which would pass for the end of a log.
            os.stat(f"{self.root}/{path}")
        except FileNotFoundError:
            return False
        return True

    def missing(self, paths: Sequence[str]) -> list[str]:
        return [path for path in paths if not self.exists(path)]

    def read(self, path: str) -> bytes:
        return _content(f"{self.root}/{path}")

    def read_part(self, path: str, start: int, length: int) -> bytes:
        return _part(f"{self.root}/{path}", start, length)

    def read_run(self, paths: Iterable[str]) -> Iterator[bytes]:
        for path in paths:
            try:
                yield self.read(path)
            except FileNotFoundError:
                return

    def open(self, path: str) -> Any:
        import pyarrow as pa  # imported on use: a storage in SQLite opens no file for pyarrow

        whole = f"{self.root}/{path}"
        # pyarrow opens files by name: it would follow a link, and block on a pipe.
        if _checked(whole, os.lstat(whole)).st_size > _READ_WHOLE:
            return pa.OSFile(whole, "rb")
        return pa.BufferReader(self.read(path))

    def create(self, path: str, data: bytes) -> bool:
        """Write the file under a temporary name and link it: a link fails atomically if the name exists.

        Opening with O_EXCL would not do, since a reader could see the file while it is still empty.
        """
        try:
            self._prepare(path, data, _link)
        except FileExistsError:
            return False
        return True

    def replace(self, path: str, data: bytes) -> None:
        """Prepare the file under another name and rename it."""
        self._prepare(path, data, os.replace)

    def _prepare(self, path: str, data: bytes, finish: Callable[[str, str], object]) -> None:
        final = f"{self.root}/{path}"
        folder = final.rpartition("/")[0]
        temporary = f"{folder}/{TEMPORARY}{random_digits()}"
        with _removed_after_failure(temporary):
            # If `durable`, the data are flushed before the name exists: a loss of power leaves all of it or none.
            self._fill(self._new(temporary), data)
            finish(temporary, final)
        if self.durable:
            flush_folder(folder)

    def write(self, path: str, data: bytes) -> None:
        """Write a new file; without a file object, which costs as much again as the writing."""
        final = f"{self.root}/{path}"
        descriptor = self._new(final)
        with _removed_after_failure(final):
            self._fill(descriptor, data)
            if self.durable:
                flush_folder(os.path.dirname(final))

    @contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        final = f"{self.root}/{path}"
        file = open(final, "wb", opener=self._new)  # noqa: SIM115 (closed before the file is judged complete)
        with _removed_after_failure(final):
            with file:
                yield file
                if self.durable:
                    file.flush()
                    os.fsync(file.fileno())
            if self.durable:
                flush_folder(os.path.dirname(final))

    def last_created(self, path: str) -> bytes | None:
        try:
            return self.read(f"{path}/{_LAST_CREATED}")
        except FileNotFoundError:
            return None

    def paths(self, path: str) -> Iterator[str]:
        """Name the files below a path; a link to a folder would hide files."""
        folders = [f"{self.root}/{path}".rstrip("/")]
        while folders:
            for entry in _entries(folders.pop()):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_symlink() and not entry.is_file() and not entry.name.startswith("."):
                    raise _link_to_a_folder(entry.path)  # perhaps one that is not mounted
                else:
                    yield entry.path[len(self.root) + 1 :]

    def found(self, path: str = "", after: str = "") -> Iterator[Found]:
        for inside in self.paths(path):
            if inside > after:
                # Other processes remove files while this one lists them.
                with suppress(FileNotFoundError):
                    yield Found(inside, os.stat(f"{self.root}/{inside}").st_mtime)

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(f"{self.root}/{path}")

    def delete_folder(self, path: str) -> None:
        try:
            os.rmdir(f"{self.root}/{path}")
        except OSError as error:
            if error.errno not in _NOT_EMPTY_OR_GONE:
                raise

    def _new(self, path: str, flags: int = 0) -> int:
        """Open a new file, and create its folder."""
        mode = 0o600 if self._is_private(path) else 0o644
        try:
            return _created(path, mode)
        except FileNotFoundError:
            # The folder is created only now: it almost always exists, and a check is a system call.
            self._make_folder(os.path.dirname(path))
            return _created(path, mode)

    def _is_private(self, path: str) -> bool:
        """Return whether only this user may read the files at a path, or below it."""
        return self.private or f"{path}/".startswith(_PRIVATE, len(self.inside or self.root) + 1)

    def _fill(self, descriptor: int, data: bytes) -> None:
        """Write all of a new file, and close it."""
        try:
            _write_all(descriptor, data)
            if self.durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _make_folder(self, path: str) -> None:
        """Create a folder and its parents; new folders are not writable by others, or not accessible at all."""
        missing = []
        place = Path(path)
        while not _is_there(str(place)):
            missing.append(place)
            place = place.parent
        for folder in reversed(missing):
            folder.mkdir(mode=0o700 if self._is_private(str(folder)) else 0o755, exist_ok=True)
            if self.durable:
                flush_folder(str(folder.parent))


# POSIX allows two numbers for a folder that is not empty.
_NOT_EMPTY_OR_GONE = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)


def random_digits() -> str:
    """Return 32 random hexadecimal digits; a UUID costs four times as much."""
    return os.urandom(16).hex()


def flush_folder(path: str) -> None:
    """Make the names in a folder of this machine durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _removed_after_failure(path: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def _link(prepared: str, final: str) -> None:
    """Link a prepared file; its temporary name becomes the name of the last created file, at no cost."""
    os.link(prepared, final)
    last = f"{final.rpartition('/')[0]}/{_LAST_CREATED}"
    try:
        # To rename over a file takes ext4 a quarter of a millisecond: it flushes the new file first.
        with suppress(FileNotFoundError):
            os.unlink(last)
        os.rename(prepared, last)
    except OSError:  # The file exists. The name that was created last is a second opinion, which may be old.
        with suppress(OSError):
            os.unlink(prepared)


def _is_there(path: str) -> bool:
    """Return whether a file or a folder exists; unlike `os.path.exists`, raise if the disk fails."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """List a folder; a missing folder is empty."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _link_to_a_folder(path: str) -> OSError:
    return OSError(f"{path} is a symbolic link, which may lead anywhere; put the folder itself there")


def _status(path: str, look: Callable[[str], os.stat_result]) -> os.stat_result | None:
    try:
        return look(path)
    except FileNotFoundError:
        return None


def _created(path: str, mode: int) -> int:
    """Open a new file, which only this user may write; a symbolic link is refused."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while len(rest):
        # Linux writes at most 2 GiB at once, and less on a disk that is nearly full.
        rest = rest[os.write(descriptor, rest) :]


def _content(path: str) -> bytes:
    """Read a file; without a file object, which costs as much again as the reading."""
    descriptor = _opened(path)
    try:
        parts = []
        while part := os.read(descriptor, _READ_WHOLE):
            parts.append(part)
    finally:
        os.close(descriptor)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _part(path: str, start: int, length: int) -> bytes:
    """Read a part of a file of any size."""
    descriptor = _opened(path, most=_ANY_SIZE)
    try:
        data = os.pread(descriptor, length, start)
        while len(data) < length and (more := os.pread(descriptor, length - len(data), start + len(data))):
            data += more  # Linux reads at most 2 GiB at once.
    finally:
        os.close(descriptor)
    return data


def _opened(path: str, most: int = _LARGEST_READ) -> int:
    """Open a file to read it; pipes and links are refused: a pipe would block, a link may lead anywhere."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(f"{path} is a symbolic link, and no file of the lake") from None
    try:
        if _checked(path, os.fstat(descriptor)).st_size > most:
            raise OSError(f"{path} is too large for a file of its kind")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _checked(path: str, status: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is no file of the lake, but a folder, a link, a pipe or a device")
    return status


LONGEST_WAIT = 1.0
"""Seconds after which a commit is tried out of turn."""

_STUCK_FOR = 30.0
"""Seconds for which this process does not wait for a turn after a timeout."""
_PAUSES = (0.0001, 0.001)

_mine = threading.local()
_stuck: dict[str, float] = {}
"""For each folder, the time until which its turn counts as stuck."""


@contextmanager
def turn(url: str, inside: str) -> Iterator[None]:
    """Wait for the turn to commit to the table in a folder, and release it at the end.

    Writers take turns for speed, not for correctness: a commit is the file that only one writer can create. Without
    turns the losers of a race read the commit of the winner, retry, and lose again. Readers need no turns.

    A turn is an advisory lock of the kernel (`flock`), which ends with its process. There are no turns on an object
    store, and where locks are not supported. A writer waits for at most one second, since the owner of the turn may be
    stuck, or wait for another collection whose turn this writer has. After a timeout it does not wait for half a
    minute, unless the turn is free again.

    Args:
        url: the folder of the table.
        inside: the folder of its log in `url`. Only one writer waits for it; the others wait for `url`. So the last
            owner of the turn cannot overtake the waiting writer.
    """
    held: set[str] = _mine.__dict__.setdefault("held", set())
    if url in held:  # A function of the user's changes the collection that it is called for.
        yield
        return
    lock = _waited_for(url, inside)
    held.add(url)
    try:
        yield
    finally:
        held.discard(url)
        if lock is not None:
            _give_back(lock)


def _waited_for(url: str, inside: str) -> int | None:
    until = time.monotonic() + LONGEST_WAIT
    behind = _locked(url, until)
    if behind is None:
        return None
    try:
        return _locked(f"{url}/{inside}", until)
    finally:
        _give_back(behind)


def _locked(path: str, until: float) -> int | None:
    """Lock a folder and return it open, None if that is not possible in time."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # The folder does not exist yet, or it is the URL of an object store.
        return None
    is_locked = False
    try:
        is_locked = _lock(folder, path, until)
    finally:
        if not is_locked:
            os.close(folder)
    return folder if is_locked else None


def _give_back(folder: int) -> None:
    """Unlock a folder. Closing is not enough: a process that was forked meanwhile has it open, too."""
    try:
        fcntl.flock(folder, fcntl.LOCK_UN)
    finally:
        os.close(folder)


def _lock(folder: int, path: str, until: float) -> bool:
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            if now < _stuck.get(path, 0):
                return False
            if now > until:
                _stuck[path] = now + _STUCK_FOR
                return False
            # Random pauses, so that waiting processes do not retry at the same time.
            time.sleep(random.uniform(*_PAUSES))
        except OSError:  # The file system has no such locks.
            return False
        else:
            _stuck.pop(path, None)
            return True
