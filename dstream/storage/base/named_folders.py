"""`NamedFolder`: a folder whose errors name the collection; trust in its pickles; the files of the state of a job.

Unless the user has set `pickle=`, all pickles are loaded, as long as only this user can write into the folders that are
read: of the storage, of the name, and of the data. Each handle checks that once, so a storage that another user has
    created meanwhile is not trusted.
"""

from __future__ import annotations

import errno
import functools
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from dstream.base.environment import inside_a_worker
from dstream.base.records import record
from dstream.base.threads import contextmanager
from dstream.base.urls import scrub
from dstream.errors import DStreamError, EngineError, IllegalStateError, SetupError
from dstream.filesystem.folders import Found, StorageFolder
from dstream.filesystem.urls import short
from dstream.spi.records import StateFile
from dstream.storage.base.options import check_record
from dstream.storage.codec.pickles import Pickles, check_are_loaded, for_state

__all__ = ["FileGoneError", "FolderStateFiles", "NamedFolder", "Trust", "are_private", "failed"]


P = ParamSpec("P")
R = TypeVar("R")

_seen_here: set[str] = set()
"""The storages that this process has looked for."""


class FileGoneError(FileNotFoundError):
    """A file of a collection is missing: a vacuum has removed it. No user function raises this."""


def _named(
    method: Callable[Concatenate[StorageFolder, str, P], R], doing: str
) -> Callable[Concatenate[NamedFolder, str, P], R]:
    """Return a method of a folder that checks the parents of its path, and whose errors name the collection."""
    name = method.__name__

    @functools.wraps(method)
    def called(self: NamedFolder, path: str, /, *args: P.args, **options: P.kwargs) -> R:
        with self._naming(doing, path):
            self._look(path)
            result: R = getattr(self.folder, name)(path, *args, **options)
            return result

    return called


@record
class NamedFolder:
    """A folder that turns errors of the file system, such as a full disk, into an EngineError with a name in it.

    Errors of user functions while a file is open are not touched. A file that is missing is a FileGoneError,
    since that is how a vacuum shows.

    Attributes:
        folder: the folder itself.
        title: the name of the collection in errors.
        seen: the folders in it that are known to be no links. Each is checked once.
    """

    folder: StorageFolder
    title: str
    seen: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def url(self) -> str:
        """Return where it is."""
        return self.folder.url

    @property
    def storage(self) -> str:
        """Return where the storage is."""
        return self.folder.storage

    def is_seen(self) -> bool:
        """Return whether this process sees the storage."""
        return self.folder.is_seen()

    def child(self, path: str) -> NamedFolder:
        """Return a folder inside this one."""
        return NamedFolder(self.folder.child(path), self.title)

    def folders(self, path: str) -> Sequence[os.stat_result | None]:
        """Return the status of the parents of a path."""
        with self._naming("looking at", path):
            return self.folder.folders(path)

    def exists(self, path: str) -> bool:
        """Return whether a complete file exists; the target of a link is checked when it is read."""
        try:
            return self.folder.exists(path)
        except Exception as error:
            raise self._named(error, "looking for", path) from error

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return the paths without a file."""
        with self._naming("looking for", ""):
            return self.folder.missing(list(map(self._look, paths)))

    read = _named(StorageFolder.read, "reading")
    read_part = _named(StorageFolder.read_part, "reading")
    open = _named(StorageFolder.open, "reading")
    create = _named(StorageFolder.create, "writing")
    replace = _named(StorageFolder.replace, "writing")
    write = _named(StorageFolder.write, "writing")
    delete = _named(StorageFolder.delete, "removing")
    delete_folder = _named(StorageFolder.delete_folder, "removing")

    def read_run(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Yield the contents of files, up to the first one that is missing."""
        with self._naming("reading", ""):
            yield from self.folder.read_run(map(self._look, paths))

    @contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        """Yield a sink for a new file."""
        opened = self.folder.writing(path)
        with self._naming("writing", path):
            self._look(path)
            file = opened.__enter__()
        try:
            yield _Sink(self, file, path)
        except BaseException as error:
            with suppress(Exception):  # on a full disk closing fails as well, and would hide why
                opened.__exit__(type(error), error, error.__traceback__)
            raise
        with self._naming("writing", path):
            opened.__exit__(None, None, None)

    def last_created(self, path: str) -> bytes | None:
        """Return the contents of the file that was created last in a folder."""
        with self._naming("reading", path):
            self._look(f"{path}/")
            return self.folder.last_created(path)

    def paths(self, path: str) -> Iterator[str]:
        """Name the files below a path."""
        with self._naming("listing", path):
            self._look(f"{path}/")
            return iter(list(self.folder.paths(path)))

    def found(self, path: str = "", after: str = "") -> Iterator[Found]:
        """List the files below a path."""
        with self._naming("listing", path):
            self._look(f"{path}/")
            # A list, since the errors of a generator would be raised after this block.
            return iter(list(self.folder.found(path, after)))

    def _look(self, path: str) -> str:
        """Return a path that does not lead through a symbolic link."""
        if self.storage and self.storage not in _seen_here:
            self._check_is_seen()
        above = path.rpartition("/")[0]
        # A missing folder may still be created as a link, so it is checked again.
        if above not in self.seen and None not in self.folder.folders(above):
            self.seen.add(above)
        return path

    def _check_is_seen(self) -> None:
        """Refuse to read or write on a worker whose disk has no such storage: the caller could not read its files."""
        # The driver creates a missing storage, while on a worker an empty folder means another disk.
        if inside_a_worker() and not self.is_seen():
            raise SetupError(
                f"{self.title}: the worker on {socket.gethostname()} does not see the storage in "
                f"{self.storage}: there is no such folder on its disk, or another one. On a cluster a storage "
                "is a folder that all machines share under the same path, an object store, or Redis: "
                "connect(storage=...)"
            )
        _seen_here.add(self.storage)

    def _naming(self, doing: str, path: str) -> _Naming:
        return _Naming(self, doing, path)

    def _named(self, error: Exception, doing: str, path: str) -> Exception:
        if isinstance(error, DStreamError):
            return error
        # Where a file is written, it is a folder that is missing, which no vacuum removes.
        if isinstance(error, FileNotFoundError) and doing != "writing":
            return FileGoneError(path)
        scrub(error)
        short(error)
        return failed(self.title, doing, f"{self.url}/{path}" if path else self.url, error)


def failed(title: str, doing: str, place: str, error: Exception) -> EngineError:
    """Return the error for something that a file system refused, or could not do."""
    return EngineError(f"{title}: {doing} {place} failed: {error}{_to_do(error, doing)}")


def _to_do(error: Exception, doing: str) -> str:
    """Return advice against an error of the file system; nothing for others."""
    code = error.errno if isinstance(error, OSError) else None
    if type(error).__module__.startswith("obstore"):
        return (
            "; look whether the store answers there, and at the endpoint, the region and the credentials that the "
            "environment names (`dstream docs object-stores` says more)"
        )
    if code in (errno.ENOSPC, errno.EDQUOT):
        return "; free some space there"
    if code in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
        verb = "write" if doing in ("writing", "removing") else "read"
        return f"; let this user {verb} there, or name another place with connect(storage=...)"
    if code in (errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN, errno.ETIMEDOUT, errno.ENXIO, errno.ENODEV):
        return "; the disk or the network drive fails: mend or mount it again, then try again"
    return ""


class _Naming:
    """Context that adds the name of the collection to an error. A generator would take three times as long."""

    __slots__ = ("_doing", "_folder", "_path")

    def __init__(self, folder: NamedFolder, doing: str, path: str) -> None:
        self._folder, self._doing, self._path = folder, doing, path

    def __enter__(self) -> None:
        """Do nothing before."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            raise self._folder._named(error, self._doing, self._path) from error


class _Sink:
    """A file that is being written."""

    closed = False

    def __init__(self, folder: NamedFolder, file: Any, path: str) -> None:
        self._folder, self._file, self._path = folder, file, path

    def write(self, data: Any) -> Any:
        try:
            return self._file.write(data)
        except Exception as error:
            raise self._folder._named(error, "writing", self._path) from error

    def tell(self) -> int:
        return int(self._file.tell())

    def flush(self) -> None:
        """Do nothing: the folder flushes when the file is complete."""

    def close(self) -> None:
        """Do nothing: the folder closes the file."""


@record
class Trust:
    """The user's trust in pickles, or none.

    Attributes:
        folder: the folder of the storage.
        pickles: the pickles that are loaded at most.
        is_judging: the user has not set which pickles are loaded: it depends on the users that can write to the folder.
    """

    folder: StorageFolder
    pickles: Pickles
    is_judging: bool = False

    def in_folders(self, *paths: str) -> Pickles:
        """Return which pickles are loaded from these folders.

        Raises:
            OSError: one of them is a symbolic link.
        """
        if not self.is_judging or all(are_private(self.folder.folders(path), os.getuid()) for path in paths):
            return self.pickles
        return replace(self.pickles, mode="restricted")


def are_private(folders: Iterable[os.stat_result | None], user: int) -> bool:
    """Return whether only one user can write into folders; a missing folder is empty.

    Access lists count too: the mode of a folder that has one shows the most that it grants as that of the group.
    """
    return all(found is None or (found.st_uid == user and not found.st_mode & 0o022) for found in folders)


@record
class FolderStateFiles:
    """The files of the state of one job, below `jobs/<id>/state`, as a value that travels.

    Attributes:
        folder: the folder of the storage, with the name of the state in errors.
        place: the path of the state in it.
        pickles: which pickles are loaded, as decided where the job began.
    """

    folder: NamedFolder
    place: str
    pickles: Pickles

    @staticmethod
    def of(trust: Trust, job: str) -> FolderStateFiles:
        """Check which users can write into the folder, and return the files in it.

        Raises:
            IllegalStateError: it is a symbolic link.
            TypeError: no pickles are loaded from this storage.
        """
        place = f"jobs/{job}/state"
        check_record(place)
        title = f"the state of the job {job}"
        try:
            pickles = trust.in_folders(place)
        except OSError as error:
            raise IllegalStateError(f"{title} is not read: {error}") from error
        check_are_loaded(pickles, title)
        return FolderStateFiles(NamedFolder(trust.folder, title), place, pickles)

    @property
    def title(self) -> str:
        """The title in errors."""
        return f"{self.folder.title} in {self.folder.url}/{self.place}"

    def write(self, name: str, data: bytes) -> None:
        """Write a new file."""
        with self.folder.writing(f"{self.place}/{name}") as file:
            file.write(data)

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return a part of a file."""
        return self.folder.read_part(f"{self.place}/{name}", offset, length)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self.folder.delete(f"{self.place}/{name}")

    def found(self) -> Iterator[StateFile]:
        """List all files."""
        start = len(self.place) + 1
        return (StateFile(file.path[start:], file.written_at) for file in self.folder.found(self.place))

    def dump(self, value: Any) -> bytes:
        """Pickle a value."""
        return for_state(self.pickles).dump(value)

    def load(self, data: bytes) -> Any:
        """Load a pickle."""
        return for_state(self.pickles).load(data)
