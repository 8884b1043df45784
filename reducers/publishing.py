"""How what tasks wrote gets into the sight of readers: file after file, each whole, and then all in one list.

The journal is the commit. If a process dies after it wrote that, the next commit into the folder finishes it first; if
it dies before, nothing happened. One commit at a time has a lock of the place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from dstream.errors import SinkError
from reducers.file_receipts import check_staged
from reducers.folder_state import STAGED, FolderState, Publication, number_of
from reducers.places import HIDDEN, writing_to

__all__ = ["locked", "publish", "sweep"]

_WEEK = 7 * 24 * 60 * 60.0


@contextlib.contextmanager
def locked(folder: FolderState) -> Iterator[None]:
    """Let nobody else commit; finish what a process that died has left in the middle.

    Raises:
        SinkError: another process has the lock for a minute, or the folder is gone.
    """
    with folder.place.locked():
        with writing_to(folder.path):
            _finish(folder)
        yield


def publish(
    folder: FolderState,
    record: str,
    epoch: int,
    staged: Sequence[tuple[str, int]],
    named: Callable[[int, int], str],
    *,
    replace: bool,
    joined: Sequence[str] = (),
) -> None:
    """Give what tasks wrote the names that readers see; within `locked`.

    Args:
        folder: where.
        record: that of the job.
        epoch: its number.
        staged: name and size of what each task wrote, in order.
        named: gives the name of a file from the number of the commit, and its own within that.
        replace: all files of earlier commits disappear.
        joined: what tasks wrote, of which some of `staged` were made.

    Raises:
        IllegalStateError: something is not there, or not as it was written; nothing was changed.
        SinkError: the file system refuses.
    """
    check_staged(staged, folder)
    with writing_to(folder.path):
        earlier = folder.listed()
        number = 1 + max(map(number_of, [*folder.seen(), *earlier]), default=0)
        files = tuple((name, named(number, part)) for part, (name, _) in enumerate(staged))
        removed = (*(earlier if replace else ()), *(f"{HIDDEN}/{name}" for name in joined))
        publication = Publication(record, epoch, files, removed)
        try:
            folder.begin(publication)
            for name, seen in publication.files:
                folder.place.move(f"{HIDDEN}/{name}", seen)
            _show(folder, publication)
        except BaseException:
            _take_back(folder, publication, earlier)
            raise
        _clear(folder, publication)


def _show(folder: FolderState, publication: Publication) -> None:
    """Do what a journal says, up to the list that readers see, and what the folder remembers of the job."""
    for staged, name in publication.files:
        with contextlib.suppress(FileNotFoundError):  # It was moved before.
            folder.place.move(f"{HIDDEN}/{staged}", name)
    folder.place.settle({os.path.dirname(name) for name in ["", *publication.names()]})
    gone = {*publication.removed, *publication.names()}
    folder.list_files([*(name for name in folder.listed() if name not in gone), *publication.names()])
    folder.remember(publication)


def _take_back(folder: FolderState, publication: Publication, earlier: list[str]) -> None:
    """Undo what was shown of a commit that failed, where a move can be taken back, unless the job is told of it.

    Elsewhere, and where this fails too, whoever commits next goes on where it stopped.
    """
    if not folder.place.moves_at_once or folder.epoch(publication.record) >= publication.epoch:
        return
    if folder.listed() != earlier:
        folder.list_files(earlier)
    for staged, name in publication.files:
        if not folder.place.holds(
            f"{HIDDEN}/{staged}"
        ):  # Else it was not moved, and its name may be one that none has.
            folder.place.move(name, f"{HIDDEN}/{staged}")
            _remove_empty(folder, os.path.dirname(name))
    with contextlib.suppress(FileNotFoundError):  # It was not written.
        folder.end()


def _finish(folder: FolderState) -> None:
    """Do what is left of what a journal says."""
    publication = folder.unfinished()
    if publication.record:
        _show(folder, publication)
        _clear(folder, publication)


def _clear(folder: FolderState, publication: Publication) -> None:
    """Remove what a commit took the place of, and its journal."""
    for name in publication.removed:
        with contextlib.suppress(FileNotFoundError):
            folder.place.remove(name)
        _remove_empty(folder, os.path.dirname(name))
    folder.end()


def _remove_empty(folder: FolderState, below: str) -> None:
    """Remove the folders of `partition_by` that hold nothing any more."""
    while below:
        folder.place.remove_empty(below)
        below = os.path.dirname(below)


def sweep(folder: FolderState, runs: set[str]) -> None:
    """Remove what these runs have written, and what others wrote a week ago and nobody committed; raises nothing.

    What an unfinished commit names stays, and what jobs hold back.
    """
    with contextlib.suppress(OSError, SinkError):
        unfinished = {staged for staged, _ in folder.unfinished().files}
        held: set[str] | None = None
        for name, _ in list(folder.place.seen(HIDDEN)):
            if STAGED.fullmatch(name) and name not in unfinished:
                with contextlib.suppress(OSError, SinkError):
                    if name.partition("-")[0] in runs or folder.place.age(f"{HIDDEN}/{name}") > _WEEK:
                        held = folder.all_held() if held is None else held
                        if name not in held:
                            folder.place.remove(f"{HIDDEN}/{name}")
