"""Removal of files that nobody needs any more."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator

from dstream.storage.lake.entries import LOG
from dstream.storage.lake.files import Folder, Found, is_temporary
from dstream.storage.lake.log import Log

__all__ = ["STAGED_FOR", "vacuum"]

STAGED_FOR = 24 * 3600.0
"""Seconds for which a file that no commit names counts as the work of a writer that has yet to commit."""


def vacuum(log: Log, older_than: float) -> int:
    """Remove the files of a collection that were taken out, or never committed, long enough ago.

    When a file was taken out is known from the log entry that says so, and from nothing else: its own age
    says when it was written. The log itself stays, also that of a destroyed collection: a handle that was
    opened long ago reads on where it stopped.

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
    taken_out = dict(_taken_out(log.folder, (entry for entry in entries if entry.written_at > staged_limit)))
    unneeded = [file.path for file in unnamed if taken_out.get(file.path, _unknown(file, staged_limit)) <= limit]
    _read_on(log)  # what was committed while the folder was listed stays
    removed = [path for path in unneeded if not log.is_live(path)]
    for path in removed:
        log.folder.delete(path)
    return len(removed)


def _read_on(log: Log) -> None:
    with log.lock:
        log.is_destroyed()


def _divided(files: Iterable[Found]) -> tuple[list[Found], list[Found]]:
    """Tell the entries of the log from files that may go; what else the log folder holds is neither."""
    entries, others = [], []
    for file in files:
        if is_temporary(file.path) or not file.path.startswith(f"{LOG}/"):
            others.append(file)
        elif file.path.endswith(".json"):
            entries.append(file)
    return entries, others


def _taken_out(folder: Folder, entries: Iterable[Found]) -> Iterator[tuple[str, float]]:
    """Give the files that some log entries take out, and when."""
    for entry in entries:
        data = folder.read(entry.path)
        for line in data.splitlines() if b'"remove"' in data else ():
            action = json.loads(line)
            if "remove" in action:
                yield action["remove"]["path"], entry.written_at


def _unknown(file: Found, staged_limit: float) -> float:
    """Return when a file was taken out that no young entry names: long ago, or never, so it may be staged."""
    return file.written_at if file.written_at <= staged_limit else float("inf")
