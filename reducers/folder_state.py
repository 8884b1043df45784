"""`FolderState`: what a folder that `to_files` writes into says of itself.

What readers see: `<name>-<commit>-<part>.<suffix>`, each of them a complete file from its first moment on, and
`_SUCCESS`, a JSON object whose `files` are the names of all files of all finished commits, in order. `_SUCCESS` is
replaced in one step: who reads the files that it lists reads all of a commit or nothing of it.

What they do not see, in `.dstream`: the files that tasks write; for each job the last epoch that was committed; and
during a commit its journal, which says what gets which name. `reducers.publishing` has the commit.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dstream.errors import SinkError

__all__ = ["FOLDER", "NOTHING", "STAGED", "FolderState", "Publication", "number_of", "synced", "writing_to"]

STAGED = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}")
"""The names of what tasks write: the run, then the attempt."""

_RECORD = re.compile(r"[0-9a-f]{32}")
_LEVEL = r"[^/\0._=][^/\0=]*=[^/\0]*/"
FOLDER = re.compile(rf"(?:{_LEVEL})*")
"""What `partition_by` calls folders, `country=NO/`: none of them is hidden, or leads out of where it stands."""

_PUBLISHED = re.compile(rf"(?:{_LEVEL})*[^/\0._][^/\0]*-(\d{{6,}})-\d{{5,}}\.[a-z0-9.]+")
_REMOVED = re.compile(rf"(?:{_LEVEL})*[^/\0._][^/\0]*")


@dataclass(frozen=True, slots=True)
class Publication:
    """What a commit makes visible.

    Attributes:
        record: that of its job.
        epoch: its number.
        files: (name that a task gave, name that readers will see), in order.
        removed: files that these take the place of.
    """

    record: str
    epoch: int
    files: tuple[tuple[str, str], ...]
    removed: tuple[str, ...]

    def names(self) -> list[str]:
        """Return what readers will see."""
        return [name for _, name in self.files]


NOTHING = Publication("", 0, (), ())


@dataclass(frozen=True, slots=True)
class FolderState:
    """The folder, seen from the driver. Its files may be anybody's, so what they say is checked.

    Attributes:
        path: absolute.
    """

    path: str

    @property
    def hidden(self) -> str:
        """Where tasks write."""
        return os.path.join(self.path, ".dstream")

    def make(self) -> None:
        """Make the folder, with those above it, if it is not there.

        Raises:
            SinkError: it cannot be made, or not be written.
        """
        with writing_to(self.path):
            os.makedirs(os.path.join(self.hidden, "jobs"), exist_ok=True)
            for folder in (self.path, self.hidden):
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)

    def strangers(self) -> list[str]:
        """Return what readers see here and no commit has made."""
        with writing_to(self.path):
            seen = sorted(self.seen())
        # In this order: a commit that ends meanwhile is in the journal or in the list.
        own = {*self.unfinished().names(), *self.listed()}
        return [name for name in seen if name not in own and self.holds(name)]

    def seen(self, below: str = "") -> Iterator[str]:
        """Give the names of what is not hidden here: files, and folders that `partition_by` has not named."""
        with os.scandir(os.path.join(self.path, below)) as entries:
            for entry in entries:
                if entry.name[0] in "._":
                    continue
                if entry.is_dir(follow_symlinks=False) and FOLDER.fullmatch(f"{entry.name}/"):
                    yield from self.seen(f"{below}{entry.name}/")
                else:
                    yield below + entry.name

    def listed(self) -> list[str]:
        """Return the files of all finished commits that are still there, in order."""
        names = _texts(self._read(self._list, "files"))
        return [name for name in names if _REMOVED.fullmatch(name) and self.holds(name)]

    def holds(self, name: str) -> bool:
        """Say whether there is such a file."""
        return os.path.lexists(os.path.join(self.path, name))

    def epoch(self, record: str) -> int:
        """Return the number of the last epoch of a job that was committed here; 0 if there is none."""
        found = self._read(self._record(record), "epoch")
        return found if isinstance(found, int) else 0

    def files_of(self, record: str) -> list[str]:
        """Return the paths of the files of that epoch."""
        return [os.path.join(self.path, name) for name in _texts(self._read(self._record(record), "files"))]

    def unfinished(self) -> Publication:
        """Return what the journal of a commit says that has not finished; `NOTHING` if there is none.

        Raises:
            SinkError: it is damaged.
        """
        found = self._read(self._journal, "publication")
        if found is None:
            return NOTHING
        try:
            record, epoch, files, removed = found
            publication = Publication(record, epoch, tuple((staged, name) for staged, name in files), tuple(removed))
            _check(publication)
        except (TypeError, ValueError) as error:
            raise SinkError(f"{self._journal} is no journal of a commit: remove it if you know who wrote it") from error
        return publication

    def begin(self, publication: Publication) -> None:
        """Write the journal."""
        parts = [publication.record, publication.epoch, publication.files, publication.removed]
        self._write(self._journal, {"publication": parts})

    def end(self) -> None:
        """Remove the journal."""
        os.unlink(self._journal)

    def list_files(self, names: list[str]) -> None:
        """Let these be the files of all finished commits."""
        self._write(self._list, {"files": names})

    def remember(self, publication: Publication) -> None:
        """Write down that the epoch is committed, and what it made."""
        content = {"epoch": publication.epoch, "files": publication.names()}
        self._write(self._record(publication.record), content)

    def forget(self, record: str) -> None:
        """Remove what is written down of a job that nobody will commit again."""
        with contextlib.suppress(OSError):
            os.unlink(self._record(record))

    @property
    def _list(self) -> str:
        return os.path.join(self.path, "_SUCCESS")

    @property
    def _journal(self) -> str:
        return os.path.join(self.hidden, "publishing.json")

    def _record(self, record: str) -> str:
        return os.path.join(self.hidden, "jobs", f"{record}.json")

    def _read(self, path: str, key: str) -> Any:
        """Return a value of an object in a file; None if that is not there. Others leave an empty `_SUCCESS`."""
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            found = json.loads(text) if text else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise SinkError(f"cannot read {path}: {error}") from error
        return found.get(key) if isinstance(found, dict) else None

    def _write(self, path: str, content: Any) -> None:
        """Write a file in one step, which a loss of power does not undo."""
        unfinished = os.path.join(self.hidden, f"{os.path.basename(path)}.new")
        with open(unfinished, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        synced(os.path.dirname(path))


def _texts(found: Any) -> list[str]:
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _check(publication: Publication) -> None:
    """Refuse a journal that leads out of the folder."""
    matching = [(_RECORD, publication.record), *((_PUBLISHED, name) for name in publication.names())]
    matching += [(STAGED, staged) for staged, _ in publication.files]
    if not all(pattern.fullmatch(name) for pattern, name in matching) or not isinstance(publication.epoch, int):
        raise ValueError("a name in it is none that a commit gives")
    if not all(map(_REMOVED.fullmatch, publication.removed)):
        raise ValueError("it removes what no commit has made")


def number_of(name: str) -> int:
    """Return the number of the commit that gave a file its name; 0 if none did."""
    found = _PUBLISHED.fullmatch(name)
    return int(found[1]) if found else 0


def synced(folder: str) -> None:
    """Make sure that the names in a folder outlive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
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
