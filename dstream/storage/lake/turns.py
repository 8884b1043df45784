"""Turns: who wants to commit waits until nobody else is at it, where the file system can say so.

Nothing depends on it: a commit is the file that only one writer can create (`log`). Without turns the losers of a
race read what the winner wrote, try again, and lose again. Readers take no turns.

A turn is an advisory lock of the kernel (`flock`) on the folder of the log. A process that dies gives it back. There is
none on an object store, and where locks are not supported; and nobody waits for longer than a second, since the one
whose turn it is may be stuck, or wait for another collection whose turn we have. Who has waited in vain does not wait
for the next half minute, unless the turn is free again.
"""

from __future__ import annotations

import fcntl
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from dstream.storage.lake.entries import LOG

__all__ = ["LONGEST_WAIT", "turn"]

LONGEST_WAIT = 1.0
"""Seconds after which a commit is tried whoever's turn it is."""

_STUCK_FOR = 30.0
"""Seconds for which nobody in this process waits for a turn that could not be had in time."""
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
    with ExitStack() as until_end:
        until = time.monotonic() + LONGEST_WAIT
        with _locked(url, until) as is_next:
            if is_next:
                until_end.enter_context(_locked(f"{url}/{LOG}", until))
        held.add(url)
        until_end.callback(held.discard, url)
        yield


@contextmanager
def _locked(path: str, until: float) -> Iterator[bool]:
    """Lock a folder if that is possible in time, and say whether it was."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # There is none yet, or it is the URL of an object store.
        yield False
        return
    try:
        yield _lock(folder, path, until)
    finally:
        # Closing is not enough: a process that was forked meanwhile has the folder open, too.
        with ExitStack() as closing:
            closing.callback(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_UN)


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
