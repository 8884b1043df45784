"""Truncation of a log behind a checkpoint, with the removal of files that its commits replaced.

A vacuum looks at all files of a collection. A job that commits five times a second cannot wait for one: it cuts a few
commits with each of its own. Handles that have not read so far begin anew at the checkpoint.
"""

from __future__ import annotations

import time
from typing import Any

from dstream.base.validation import NOT_UNDERSTOOD, checked_number
from dstream.delta.actions import LOG, condemned_in, entry_path, entry_version, read_entry
from dstream.delta.checkpoints import read_checkpoint, remove_checkpoints
from dstream.delta.log import Log

__all__ = ["LogTruncation"]


_SHORTEST = 5.0
"""Seconds for which everything stays: handles look for a cut once a second."""
_MOST = 50
"""Commits of one call."""
_PAUSE = 1.0
"""Seconds after which it is worth to look whether there is a newer checkpoint."""


class LogTruncation:
    """The cut of one log, in one process. Two processes may cut the same one.

    Args:
        log: that of the collection.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._first: int | None = None
        self._summed_up = -1
        self._not_before = 0.0

    def cut(self, older_than: float) -> int:
        """Cut a few of the oldest commits, if they are older than so many seconds; return how many.

        Commits that name what a vacuum removes stay: writers that began before them must see them.
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
        """Say whether a checkpoint that can be read stands for the first commit that is there."""
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
        """Remove the first commit and what it took out; False if it is too young."""
        assert self._first is not None, "it was looked for"
        version, folder = self._first, self._log.folder
        try:
            entry = read_entry(folder, version, self._log.all_sealed)
        except FileNotFoundError:  # another process was here
            self._first += 1
            return True
        if not _made_at(entry) < limit:
            return False
        taken_out = [action["remove"]["path"] for action in entry if "remove" in action]
        with self._log.lock:
            gone = [path for path in taken_out if not self._log.is_live(path)]
        for path in gone:
            folder.delete(path)
        if not condemned_in(entry):
            folder.delete(entry_path(version))
        self._first += 1
        return True


def _made_at(entry: list[dict[str, Any]]) -> float:
    """Return when a commit was made, in milliseconds since 1970; one that does not say counts as young."""
    for action in entry:
        try:
            return checked_number(action["commitInfo"]["timestamp"])
        except NOT_UNDERSTOOD:
            continue
    return float("inf")
