"""Turns of the writers of one table.

Writers take turns for speed, not for correctness: a commit is the file that only one writer can create (`log`). Without
turns the losers of a race read what the winner wrote, try again, and lose again. Readers take no turns.

A turn is an advisory lock of the kernel (`flock`) on the folder of the log, which ends with its process. There is none
on an object store, and where locks are not supported. A writer waits for at most one second, since the owner of the
turn may be stuck, or wait for another collection whose turn this writer has. After a wait in vain it does not wait for
the next half minute, unless the turn is free again.
"""

from __future__ import annotations

import fcntl
import os
import random
import threading
import time
from collections.abc import Iterator

from dstream.base.threads import contextmanager
from dstream.delta.actions import LOG

__all__ = ["LONGEST_WAIT", "turn"]


LONGEST_WAIT = 1.0
"""Seconds after which a commit is tried whoever's turn it is."""

_STUCK_FOR = 30.0
"""Seconds for which this process does not wait for a turn that could not be had in time."""
_PAUSES = (0.0001, 0.001)

_mine = threading.local()
_stuck: dict[str, float] = {}
"""Until when the turns at some folders count as stuck."""


@contextmanager
def turn(url: str) -> Iterator[None]:
    """Wait for the turn to commit to the collection in a folder, and give it back at the end.

    Only one waits for the folder of the log; the others stand behind it, at the folder of the collection. So whoever
    had the turn cannot take it again before the one who waits.
    """
    held: set[str] = _mine.__dict__.setdefault("held", set())
    if url in held:  # A function of the user's changes the collection that it is called for.
        yield
        return
    lock = _waited_for(url)
    held.add(url)
    try:
        yield
    finally:
        held.discard(url)
        if lock is not None:
            _give_back(lock)


def _waited_for(url: str) -> int | None:
    until = time.monotonic() + LONGEST_WAIT
    behind = _locked(url, until)
    if behind is None:
        return None
    try:
        return _locked(f"{url}/{LOG}", until)
    finally:
        _give_back(behind)


def _locked(path: str, until: float) -> int | None:
    """Lock a folder and return it open, None if that is not possible in time."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # There is none yet, or it is the URL of an object store.
        return None
    is_locked = False
    try:
        is_locked = _lock(folder, path, until)
    finally:
        if not is_locked:
            os.close(folder)
    return folder if is_locked else None


def _give_back(folder: int) -> None:
    """Unlock a folder. Closing is not enough: a process that was forked meanwhile has it open, too."""
    try:
        fcntl.flock(folder, fcntl.LOCK_UN)
    finally:
        os.close(folder)


def _lock(folder: int, path: str, until: float) -> bool:
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            if now < _stuck.get(path, 0):
                return False
            if now > until:
                _stuck[path] = now + _STUCK_FOR
                return False
            time.sleep(random.uniform(*_PAUSES))
        except OSError:  # The file system has no such locks.
            return False
        else:
            _stuck.pop(path, None)
            return True
