"""Removal of files that nobody needs any more."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from dstream.errors import CollectionDestroyedError
from dstream.storage.lake.actions import Actions
from dstream.storage.lake.entries import entry_version
from dstream.storage.lake.files import Found
from dstream.storage.lake.log import Log
from dstream.storage.lake.paths import ENTRY, is_removable, is_temporary

__all__ = ["STAGED_FOR", "vacuum"]

STAGED_FOR = 24 * 3600.0
"""Seconds for which a file that no commit names counts as the work of a writer that has yet to commit."""


def vacuum(log: Log, older_than: float) -> int:
    """Remove the files of a collection that were taken out, or never committed, long enough ago.

    When a file was taken out is known from the log entry that says so, and from nothing else: its own age
    says when it was written. The log itself stays, also that of a destroyed collection: a handle that was
    opened long ago reads on where it stopped.

    A clock that is wrong may make a file look like an orphan whose writer still lives. So orphans are named in a
    commit first, and no later commit can add them (`Log.publish`): the writer fails, and the collection stays whole.

    Args:
        log: the log of the collection.
        older_than: seconds that a file must have been without use.

    Returns:
        How many files were removed.
    """
    _read_on(log)
    now = time.time()
    limit, staged_limit = now - older_than, min(now - older_than, now - STAGED_FOR)
    entries, others = _divided(log.folder.found())
    unnamed = [file for file in others if file.written_at <= limit and not log.is_live(file.path)]
    taken_out = dict(_taken_out(log, (entry for entry in entries if entry.written_at > staged_limit)))
    unneeded = [file.path for file in unnamed if taken_out.get(file.path, _unknown(file, staged_limit)) <= limit]
    _condemn(log, [path for path in unneeded if path not in taken_out and not is_temporary(path)])
    removed = [path for path in unneeded if not log.is_live(path)]  # what was committed meanwhile stays
    for path in removed:
        log.folder.delete(path)
    return len(removed)


def _read_on(log: Log) -> None:
    with log.lock:
        log.is_destroyed()


def _condemn(log: Log, orphans: Sequence[str]) -> None:
    """Commit that orphans are removed; to a collection that was destroyed nobody commits any more."""

    def named() -> Actions | None:
        condemned = tuple(path for path in orphans if not log.is_live(path))
        return Actions(condemned=condemned) if condemned else None

    with suppress(CollectionDestroyedError):
        log.commit(named)


def _divided(files: Iterable[Found]) -> tuple[list[Found], list[Found]]:
    """Tell the entries of the log from files that may go; what the lake has not made is neither."""
    entries, others = [], []
    for file in files:
        if is_removable(file.path):
            others.append(file)
        elif ENTRY.fullmatch(file.path):
            entries.append(file)
    return entries, others


def _taken_out(log: Log, entries: Iterable[Found]) -> Iterator[tuple[str, float]]:
    """Give the files that some log entries take out, and when."""
    for entry in entries:
        version = entry_version(entry.path)
        if version is None or not log.has_entry(version):
            continue  # It was cut since it was listed, with what it took out.
        for action in log.entry(version):
            if "remove" in action:
                yield action["remove"]["path"], entry.written_at


def _unknown(file: Found, staged_limit: float) -> float:
    """Return when a file was taken out that no young entry names: long ago, or never, so it may be staged."""
    return file.written_at if file.written_at <= staged_limit else float("inf")
