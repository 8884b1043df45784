"""The journal of a map: the log itself, since every file of new data holds each change with the old value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from dstream.errors import IllegalStateError
from dstream.storage.lake.actions import DataFile
from dstream.storage.lake.files import Folder
from dstream.storage.lake.lake_tables import Layout, batches
from dstream.storage.lake.log_additions import Addition
from dstream.storage.lake.named_folder import FileGoneError
from dstream.values.journal_events import JournalEvent

__all__ = [
    "events_after",
    "first_version",
    "journal_before",
    "journal_reach",
    "last_offset",
    "read_journal",
    "shown_offset",
]

_ROW_BITS = 32


def first_version(since: int) -> int:
    """Return the first commit that may hold events after an offset."""
    return max((since >> _ROW_BITS) - 1, 0)


def last_offset(version: int) -> int:
    """Return the largest offset that an event of a commit, or of one before it, can have."""
    return (version + 2 << _ROW_BITS) - 1


def shown_offset(offset: int) -> str:
    """Return the commit of an offset and the event in it, in words."""
    commit, event = (offset >> _ROW_BITS) - 1, offset & (1 << _ROW_BITS) - 1
    if commit < 0:
        return "the start"
    return f"the end of commit {commit:,}" if offset == last_offset(commit) else f"commit {commit:,}, event {event:,}"


def read_journal(
    folder: Folder, layout: Layout, commits: Iterator[Addition], since: int, title: str
) -> Iterator[JournalEvent]:
    """Give the events of some commits whose offsets are larger than `since`.

    An offset is made of the commit and the row in it, both counted from one so that none is 0.

    Raises:
        IllegalStateError: a vacuum has removed events that were asked for.
    """
    for version, timestamp, files in commits:
        offset = (version + 1) << _ROW_BITS
        for file in sorted(files):
            if offset + file.rows > since:
                yield from _events(folder, layout, file, offset, since, timestamp, title)
            offset += file.rows


def journal_before(commits: Iterator[Addition], when: int) -> int:
    """Return the offset of the last event of the first of some commits that was made before a time; 0: none was.

    Args:
        commits: all there are, the newest one first.
        when: milliseconds since 1970.
    """
    offsets = (
        ((version + 1) << _ROW_BITS) + sum(file.rows for file in files)
        for version, timestamp, files in commits
        if timestamp < when
    )
    return next(offsets, 0)


def journal_reach(commits: Iterator[Addition], since: int, most: int | None) -> int:
    """Return the offset of the last event, or of the `most`-th one after `since` if it is earlier.

    Args:
        commits: from that of `since` on; without `most` the newest one first.
        since: where to begin.
        most: how many events are counted; None: all.
    """
    reached, left = since, most
    for version, _, files in commits:
        first = max((version + 1) << _ROW_BITS, since)
        last = ((version + 1) << _ROW_BITS) + sum(file.rows for file in files)
        if left is None:
            return max(last, since)
        if last > first:
            if left <= last - first:
                return first + left if left else reached
            reached, left = last, left - (last - first)
    return reached


def events_after(commits: Iterator[Addition], since: int) -> int:
    """Return how many events some commits have whose offsets are larger than `since`."""
    firsts = ((version + 1 << _ROW_BITS, sum(file.rows for file in files)) for version, _, files in commits)
    return sum(max(0, first + rows - max(first, since)) for first, rows in firsts)


def _events(
    folder: Folder, layout: Layout, file: DataFile, offset: int, since: int, timestamp: int, title: str
) -> Iterator[JournalEvent]:
    try:
        for batch in batches(folder, file):
            for key, old, new in _changes(layout, batch):
                offset += 1
                if offset > since:
                    yield JournalEvent(_kind(old, new), key, old, new, offset, timestamp)
    except FileGoneError as error:
        next_commit = ((offset >> _ROW_BITS) + 1 << _ROW_BITS) - 1
        raise IllegalStateError(
            f"the journal of {title} no longer reaches back to offset {since}: a vacuum has removed events older than "
            f"it was told to keep; what happened after offset {next_commit} may still be there"
        ) from error


def _changes(layout: Layout, batch: pa.RecordBatch) -> Iterator[tuple[Any, Any, Any]]:
    return zip(layout.keys(batch), layout.values(batch, "_old"), layout.values(batch), strict=True)


def _kind(old: Any, new: Any) -> Any:
    if new is None:
        return "REMOVED"
    return "ADDED" if old is None else "UPDATED"
