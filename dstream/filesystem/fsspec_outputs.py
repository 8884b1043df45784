"""`RemoteOutput`: an output folder behind a URL of fsspec, such as `s3://bucket/folder`.

An object store has neither a rename nor a lock. An object appears whole when its writer closes it; a move is a copy,
then a removal. Commits take turns by a note in the folder, as `RemoteOutput.locked` says.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any, cast

from dstream.base.threads import contextmanager
from dstream.base.urls import resolved_url, scrub, shown_url
from dstream.errors import SinkError, UnsupportedError
from dstream.filesystem.output_folders import HIDDEN, LONGEST_WAIT, LocalOutput, NewFile, OutputFolder
from dstream.filesystem.urls import check_scheme, opened_url

__all__ = ["RemoteOutput", "place_of", "remote_place"]


SETTLED = 0.5
"""Seconds after which a note that nobody has overwritten holds: longer than a write takes from its first look on."""
_NOTE = f"{HIDDEN}/committing"


_URL = re.compile(r"[A-Za-z][\w+.-]*(::[A-Za-z][\w+.-]*)*://")


def place_of(folder: str) -> OutputFolder:
    """Return what is written into, with an absolute path: the process that commits may stand elsewhere."""
    if _URL.match(folder) and not folder.startswith("file:///"):
        return remote_place(folder)
    return LocalOutput(os.path.abspath(os.path.expanduser(folder.removeprefix("file://"))))


def remote_place(url: str) -> RemoteOutput:
    """Return the place behind a URL; nothing is opened yet.

    Raises:
        ValueError: fsspec knows no such URL.
        SetupError: the package that fsspec needs for it is not installed.
        UnsupportedError: it leads through an archive, or is one that nobody writes to.
    """
    scheme = url.partition(":")[0]
    if "::" in url or scheme in ("http", "https"):
        raise UnsupportedError(f"to_files() writes whole files, which {shown_url(url)} does not take")
    check_scheme(scheme, "to_files() cannot write to")
    return RemoteOutput(url.rstrip("/"))


@dataclass(frozen=True, slots=True)
class RemoteOutput:
    """A folder behind a URL. Each process opens it anew.

    Attributes:
        url: as the user wrote it, which may hold secrets.
    """

    url: str

    moves_at_once = False

    @property
    def title(self) -> str:
        """The URL without secrets."""
        return shown_url(self.url)

    def path_of(self, name: str) -> str:
        """Return the URL of a file, with what it takes to read it."""
        return f"{self.url}/{name}"

    def _opened(self, name: str) -> tuple[Any, str]:
        """Return the file system, and what it calls a file."""
        fs, inside = opened_url(resolved_url(self.url, quoted=False))
        return fs, f"{inside.rstrip('/')}/{name}" if name else inside

    def make(self) -> None:
        """Make the folder where there are folders."""
        with self._writing(""):
            fs, inside = self._opened(f"{HIDDEN}/jobs")
            fs.makedirs(inside, exist_ok=True)

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Turn what a client library raises into a `SinkError`. No function of the user's runs in the block."""
        try:
            yield
        except (SinkError, FileNotFoundError):
            raise
        except Exception as error:
            url = self.path_of(name)
            scrub(error, url)
            raise SinkError(f"cannot write {shown_url(url)}: {type(error).__name__}: {error}") from error

    def create(self, name: str) -> NewFile:
        """Begin an object."""
        with self._writing(name):
            fs, inside = self._opened(name)
            return _RemoteFile(self, name, fs.open(inside, "wb"))

    def open(self, name: str) -> IO[bytes]:
        """Open an object, of which parts are fetched as they are read."""
        with self._writing(name):
            fs, inside = self._opened(name)
            fs.invalidate_cache()
            return cast("IO[bytes]", fs.open(inside, "rb"))

    def make_folder(self, name: str) -> None:
        """Make the folder where there are folders."""
        with self._writing(name):
            fs, inside = self._opened(name.rstrip("/"))
            fs.makedirs(inside, exist_ok=True)

    def put_new(self, name: str, content: bytes) -> bool:
        """Look for it, then put it: nobody comes between, as long as all who write here have the lock."""
        if self.holds(name):
            return False
        if "/" in name:
            self.make_folder(name.rpartition("/")[0])
        self.replace(name, content)
        return True

    def seen(self, below: str) -> Iterator[tuple[str, bool]]:
        """List a folder; none is one without objects."""
        with self._writing(below):
            fs, inside = self._opened(below.rstrip("/"))
            fs.invalidate_cache()  # fsspec keeps listings, and would not see what others wrote.
            try:
                found = fs.ls(inside, detail=True)
            except FileNotFoundError:
                return
        for each in found:
            name = each["name"].rstrip("/").rpartition("/")[2]
            if name and each["name"].strip("/") != inside.strip("/"):  # Some stores list the folder itself.
                yield name, each["type"] == "directory"

    def holds(self, name: str) -> bool:
        """Ask for it."""
        with suppress(FileNotFoundError):
            self.size(name)
            return True
        return False

    def size(self, name: str) -> int:
        """Ask for its size."""
        return int(self._info(name).get("size") or 0)

    def _info(self, name: str) -> dict[str, Any]:
        with self._writing(name):
            fs, inside = self._opened(name)
            fs.invalidate_cache()
            found: dict[str, Any] = fs.info(inside)
            return found

    def age(self, name: str) -> float:
        """Return how old it is; 0 where the file system does not say."""
        found = self._info(name)
        times = (found.get(key) for key in ("LastModified", "last_modified", "mtime", "updated", "created"))
        written: datetime | None = next((each for each in times if isinstance(each, datetime)), None)
        return 0.0 if written is None else (datetime.now(UTC) - written.astimezone(UTC)).total_seconds()

    def read(self, name: str) -> bytes:
        """Read it whole."""
        with self._writing(name):
            fs, inside = self._opened(name)
            fs.invalidate_cache()
            content: bytes = fs.cat_file(inside)
            return content

    def replace(self, name: str, content: bytes) -> None:
        """Put an object, which appears whole."""
        with self._writing(name):
            fs, inside = self._opened(name)
            fs.pipe_file(inside, content)

    def move(self, old: str, new: str) -> None:
        """Copy it, then remove it. A copy that was finished before, and not removed, is the same."""
        with self._writing(new):
            fs, source = self._opened(old)
            target = self._opened(new)[1]
            fs.invalidate_cache()
            if not fs.exists(source):
                raise FileNotFoundError(source)
            if "/" in new:
                fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            fs.cp_file(source, target)
            fs.rm_file(source)

    def remove(self, name: str) -> None:
        """Remove an object."""
        with self._writing(name):
            fs, inside = self._opened(name)
            fs.rm_file(inside)

    def settle(self, folders: set[str]) -> None:
        """Do nothing: what was put is durable."""

    def remove_empty(self, folder: str) -> None:
        """Remove it where there are folders."""
        with suppress(Exception):
            fs, inside = self._opened(folder)
            fs.rmdir(inside)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Have a note in the place that nobody overwrites while it settles.

        fsspec has no write that fails if another one came first. So whoever commits waits until there is no note,
        writes its own and, if that is still there when others who saw none must have written theirs, has its turn.

        Raises:
            SinkError: another note stays for a minute.
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
            if self._note() == mine:
                self.remove(_NOTE)

    def _note(self) -> bytes | None:
        try:
            return self.read(_NOTE)
        except FileNotFoundError:
            return None


class _RemoteFile:
    """An object on its way, whose failures name it."""

    def __init__(self, place: RemoteOutput, name: str, file: Any) -> None:
        self._place = place
        self._name = name
        self._file = file

    def write(self, data: Any) -> int:
        with self._place._writing(self._name):
            self._file.write(bytes(data))  # Arrow gives buffers.
        return len(data)

    def flush(self) -> None:
        """Wait for the end: a part of an object is nothing."""

    def close(self) -> None:
        with self._place._writing(self._name):
            self._file.close()

    def discard(self) -> None:
        with suppress(Exception):
            self._file.close()
