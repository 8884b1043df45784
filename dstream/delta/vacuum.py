"""Removal of files that no reader needs, by a vacuum or with the truncation of the log before a checkpoint.

A vacuum lists all files of a collection. A job that commits five times a second cannot wait for one: it truncates a few
commits with each of its commits. Handles that lag restart at the checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from dstream.base.validation import NOT_UNDERSTOOD, checked_number
from dstream.delta.actions import (
    ENTRY,
    LOG,
    Actions,
    condemned_in,
    entry_path,
    entry_version,
    is_removable,
    is_temporary,
    read_entry,
)
from dstream.delta.checkpoints import read_checkpoint, remove_checkpoints
from dstream.delta.collection_log import CollectionLog
from dstream.errors import CollectionDestroyedError
from dstream.filesystem.folders import Found

__all__ = ["STAGED_FOR", "LogTruncation", "vacuum"]


STAGED_FOR = 24 * 3600.0
"""Seconds for which a file that no commit names counts as the work of a writer that has yet to commit."""


def vacuum(log: CollectionLog, older_than: float) -> int:
    """Remove the files of a collection that were removed from it, or never committed, long enough ago.

    The time of removal of a file is known only from its log entry: the age of the file is the time of its write. The
    log itself remains, also of a destroyed collection: a handle that was opened long ago continues where it stopped.

    With a wrong clock, a file whose writer still runs may look like an orphan. So orphans are named in a commit first,
    and no later commit can add them (`CollectionLog.publish`): the writer fails, and the collection remains consistent.

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
    # Older entries need not be read: files that they removed were written still earlier, and `_unknown` treats them as
    # old.
    taken_out = dict(_taken_out(log, (entry for entry in entries if entry.written_at > staged_limit)))
    unneeded = [file.path for file in unnamed if taken_out.get(file.path, _unknown(file, staged_limit)) <= limit]
    # No path is added twice, so a removed file needs no such commit; nor does a file that no commit can name.
    _condemn(log, [path for path in unneeded if path not in taken_out and not is_temporary(path)])
    removed = [path for path in unneeded if not log.is_live(path)]  # files that were committed meanwhile remain
    for path in removed:
        log.folder.delete(path)
    return len(removed)


def _read_on(log: CollectionLog) -> None:
    with log.lock:
        log.is_destroyed()


def _condemn(log: CollectionLog, orphans: Sequence[str]) -> None:
    """Commit the removal of orphans; a destroyed collection accepts no commit."""

    def named() -> Actions | None:
        condemned = tuple(path for path in orphans if not log.is_live(path))
        return Actions(condemned=condemned) if condemned else None

    # A writer to a destroyed collection cannot commit, so its orphans need not be named first.
    with suppress(CollectionDestroyedError):
        log.commit(named)


def _divided(files: Iterable[Found]) -> tuple[list[Found], list[Found]]:
    """Separate the entries of the log from files that may be removed; foreign files are neither."""
    entries, others = [], []
    for file in files:
        if is_removable(file.path):
            others.append(file)
        elif ENTRY.fullmatch(file.path):
            entries.append(file)
    return entries, others


def _taken_out(log: CollectionLog, entries: Iterable[Found]) -> Iterator[tuple[str, float]]:
    """Yield the files that log entries remove, with the time."""
    for entry in entries:
        version = entry_version(entry.path)
        if version is None or not log.has_entry(version):
            continue  # It was cut since it was listed, with what it took out.
        for action in log.entry(version):
            if "remove" in action:
                yield action["remove"]["path"], entry.written_at


def _unknown(file: Found, staged_limit: float) -> float:
    """Return the removal time of a file that no recent entry names: long ago, or never, so it may be staged."""
    return file.written_at if file.written_at <= staged_limit else float("inf")


_SHORTEST = 5.0
"""Minimal seconds of retention: handles check for truncation once a second."""
_MOST = 50
"""Commits of one call."""
_PAUSE = 1.0
"""Seconds between checks for a newer checkpoint."""


class LogTruncation:
    """The cut of one log, in one process. Two processes may cut the same one.

    Args:
        log: the log of the collection.
    """

    def __init__(self, log: CollectionLog) -> None:
        self._log = log
        self._first: int | None = None
        self._summed_up = -1
        self._not_before = 0.0

    def cut(self, older_than: float) -> int:
        """Truncate at most 50 of the oldest commits, if they are older than `older_than` seconds; return the number.

        Commits that name files that a vacuum removes are retained: writers that began before them must read them.
        """
        if time.monotonic() < self._not_before:
            return 0
        limit, removed = (time.time() - max(older_than, _SHORTEST)) * 1000, 0
        with self._log.lock:
            if self._log.is_destroyed():
                return 0
        while removed < _MOST and self._is_summed_up():
            if not self._cut_first(limit):
                self._not_before = time.monotonic() + min(_PAUSE, older_than / 10)
                break
            removed += 1
        return removed

    def _is_summed_up(self) -> bool:
        """Return whether a checkpoint that can be read sums up the first commit that exists."""
        folder = self._log.folder
        if self._first is None:
            versions = [version for path in folder.paths(LOG) if (version := entry_version(path)) is not None]
            self._first = min(versions, default=0)
        if self._first >= self._summed_up:
            found = read_checkpoint(folder)
            before, self._summed_up = self._summed_up, -1 if found is None else found.version
            if self._summed_up > before:
                remove_checkpoints(folder, self._summed_up)
            else:
                self._not_before = time.monotonic() + _PAUSE
        return self._first < self._summed_up

    def _cut_first(self, limit: float) -> bool:
        """Remove the first commit and its removed files; False if it is too young."""
        assert self._first is not None, "it was looked for"
        version, folder = self._first, self._log.folder
        try:
            entry = read_entry(folder, version, self._log.all_sealed)
        except FileNotFoundError:  # another process has removed it
            self._first += 1
            return True
        if not _made_at(entry) < limit:
            return False
        taken_out = [action["remove"]["path"] for action in entry if "remove" in action]
        with self._log.lock:
            gone = [path for path in taken_out if not self._log.is_live(path)]
        # The entry is removed last: if the process dies here, the names of the files remain for the next truncation.
        for path in gone:
            folder.delete(path)
        # A writer that began before the vacuum reads these names at its commit, also if a checkpoint sums them up.
        if not condemned_in(entry):
            folder.delete(entry_path(version))
        self._first += 1
        return True


def _made_at(entry: list[dict[str, Any]]) -> float:
    """Return when a commit was made, in milliseconds since 1970; one without a time counts as young."""
    for action in entry:
        try:
            return checked_number(action["commitInfo"]["timestamp"])
        except NOT_UNDERSTOOD:
            continue
    return float("inf")
