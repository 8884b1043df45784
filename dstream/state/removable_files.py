"""Which files of the state of a job may go. Files that are needed are named by records; the others only take space.

A job that folds calls `removable` with what it drops and what it keeps, removes these files, and then the records that
it drops: if it dies in between, the next fold finds the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from dstream.spi.epochs import ShardChange
from dstream.spi.state_files import StateFiles
from dstream.state.shard_index import ShardIndex

__all__ = ["files_of", "orphans", "removable", "remove_all"]


def files_of(changes: Iterable[ShardChange]) -> set[str]:
    """Return the names of the files that the changes of an epoch are in."""
    return {change.file for change in changes if change.length}


def removable(dropped: Iterable[Iterable[str]], kept: Iterable[Iterable[str]]) -> list[str]:
    """Return the files that only records name which are dropped, sorted, so that the oldest of a step come first.

    Args:
        dropped: of each record that is dropped, the files that it names: `files()` of the indexes of a checkpoint, and
            `files_of` its changes.
        kept: of each record that is kept the same: those checkpoints that a job can start at again, every record after
            the last checkpoint, and those that are not published yet. And the files of the index as it is now.
    """
    named = set().union(*kept)
    return sorted(set().union(*dropped) - named)


def orphans(files: StateFiles, indexes: Iterable[ShardIndex], named: Iterable[str], older_than: float) -> list[str]:
    """Return the files that nobody names: attempts of tasks wrote them that did not count. All files are listed.

    Args:
        files: of the job.
        indexes: of each step, as it is now and in each checkpoint that is kept.
        named: by the records that are kept.
        older_than: a time, in seconds since 1970: a file that was written later may be named by a record soon.
    """
    known = set(named).union(*(index.files() for index in indexes))
    return sorted(file.name for file in files.found() if file.written_at < older_than and file.name not in known)


def remove_all(files: StateFiles) -> None:
    """Remove the state of a job that has ended."""
    for file in list(files.found()):
        files.remove(file.name)
