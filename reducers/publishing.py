"""How what tasks wrote gets into the sight of readers: file after file, each whole, and then all in one list.

The journal is the commit. If a process dies after it wrote that, the next commit into the folder finishes it first; if
it dies before, nothing happened. One commit at a time has a lock of the kernel, which frees it if its process dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence

from dstream.errors import IllegalStateError, SinkError
from reducers.folder_state import STAGED, FolderState, Publication, number_of, synced, writing_to

__all__ = ["locked", "publish", "sweep"]

LONGEST_WAIT = 60.0
"""Seconds until who waits for the lock gives up. A commit has it for as long as its files take to be renamed."""
_WEEK = 7 * 24 * 60 * 60.0


@contextlib.contextmanager
def locked(folder: FolderState) -> Iterator[None]:
    """Let nobody else commit; finish what a process that died has left in the middle.

    Raises:
        SinkError: another process has the lock for a minute, or the folder is gone.
    """
    with writing_to(folder.path):
        descriptor = os.open(folder.hidden, os.O_RDONLY)
    try:
        _lock(descriptor, folder)
        with writing_to(folder.path):
            _finish(folder)
        yield
    finally:
        os.close(descriptor)  # The lock goes with it.


def _lock(descriptor: int, folder: FolderState) -> None:
    last = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= last:
                raise SinkError(
                    f"{folder.path}: another process is in the middle of a commit, and does not end"
                ) from error
            time.sleep(0.01)
        except OSError as error:
            raise SinkError(f"{folder.path}: this file system has no locks ({error})") from error
        else:
            return


def publish(
    folder: FolderState,
    record: str,
    epoch: int,
    staged: Sequence[tuple[str, int]],
    named: Callable[[int, int], str],
    *,
    replace: bool,
) -> None:
    """Give what tasks wrote the names that readers see; within `locked`.

    Args:
        folder: where.
        record: that of the job.
        epoch: its number.
        staged: name and size of what each task wrote, in order.
        named: gives the name of a file from the number of the commit, and its own within that.
        replace: all files of earlier commits disappear.

    Raises:
        IllegalStateError: something is not there, or not as it was written; nothing was changed.
        SinkError: the file system refuses.
    """
    _check(folder, staged)
    with writing_to(folder.path):
        earlier = folder.listed()
        number = 1 + max(map(number_of, [*folder.seen(), *earlier]), default=0)
        files = tuple((name, named(number, part)) for part, (name, _) in enumerate(staged))
        publication = Publication(record, epoch, files, tuple(earlier) if replace else ())
        folder.begin(publication)
        _move_all(folder, publication)
        _finish(folder)


def _check(folder: FolderState, staged: Sequence[tuple[str, int]]) -> None:
    for name, size in staged:
        try:
            found = os.stat(os.path.join(folder.hidden, name)).st_size
        except FileNotFoundError as error:
            raise IllegalStateError(
                f"{folder.path}: nothing was changed, since what a task wrote is no more, or is on another machine: "
                "the folder must be one that all machines share"
            ) from error
        if found != size:
            raise IllegalStateError(
                f"{folder.path}: nothing was changed, since a task wrote {size:,} bytes, and {found:,} are there"
            )


def _move_all(folder: FolderState, publication: Publication) -> None:
    """Move all files or, if one cannot be moved, none of them."""
    moved: list[tuple[str, str]] = []
    try:
        for staged, name in publication.files:
            _move(folder, staged, name)
            moved.append((staged, name))
    except BaseException:
        for staged, name in moved:
            os.rename(os.path.join(folder.path, name), os.path.join(folder.hidden, staged))
        folder.end()
        raise


def _move(folder: FolderState, staged: str, name: str) -> None:
    target = os.path.join(folder.path, name)
    if "/" in name:
        os.makedirs(os.path.dirname(target), exist_ok=True)
    os.rename(os.path.join(folder.hidden, staged), target)


def _finish(folder: FolderState) -> None:
    """Do what is left of what a journal says."""
    publication = folder.unfinished()
    if not publication.record:
        return
    for staged, name in publication.files:
        with contextlib.suppress(FileNotFoundError):  # It was moved before.
            _move(folder, staged, name)
    for below in {os.path.dirname(name) for name in ["", *publication.names()]}:
        synced(os.path.join(folder.path, below))
    gone = {*publication.removed, *publication.names()}
    folder.list_files([*(name for name in folder.listed() if name not in gone), *publication.names()])
    folder.remember(publication)
    for name in publication.removed:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder.path, name))
        _remove_empty(folder, os.path.dirname(name))
    folder.end()


def _remove_empty(folder: FolderState, below: str) -> None:
    """Remove the folders of `partition_by` that hold nothing any more."""
    while below:
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(folder.path, below))
        below = os.path.dirname(below)


def sweep(folder: FolderState, runs: set[str]) -> None:
    """Remove what these runs have written, and what others wrote a week ago and nobody committed; raises nothing.

    What an unfinished commit names stays.
    """
    with contextlib.suppress(OSError, SinkError):
        kept = {staged for staged, _ in folder.unfinished().files}
        old = time.time() - _WEEK
        for entry in os.scandir(folder.hidden):
            if STAGED.fullmatch(entry.name) and entry.name not in kept:
                with contextlib.suppress(OSError):
                    if entry.name.partition("-")[0] in runs or entry.stat().st_mtime < old:
                        os.unlink(entry.path)
