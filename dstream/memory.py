"""How much memory this process occupies, and how many items it may take at once.

Items have no size that could be asked for quickly. So whoever takes many of them looks at the process: it takes few at
first, twice as many the next time, and fewer where the last ones made the process grow. A look takes a microsecond.
"""

from __future__ import annotations

import functools
import os
import resource
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

__all__ = ["UNSEEN", "Pace", "pieces", "resident_bytes", "taken"]

T = TypeVar("T")

UNSEEN = 512
"""So many items may come, after small ones, before anybody looks whether they are large."""

_PIECE = 4 * 2**20
_MOST_GROWTH = 16 * 2**20
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Return the bytes of memory that this process occupies now (at its peak, outside of Linux)."""
    try:
        return int(os.pread(_statm(), 64, 0).split(b" ", 2)[1]) * _PAGE
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


@functools.cache
def _statm() -> int:
    """Open what the kernel says of this process, once: opening takes five times as long as reading."""
    return os.open("/proc/self/statm", os.O_RDONLY)


# In a forked process the file would still speak of its parent.
os.register_at_fork(after_in_child=_statm.cache_clear)


def pieces(items: Iterable[T], most: int) -> Iterator[list[T]]:
    """Give the items in lists of up to `most`, of few megabytes where the items are large.

    The next list is read when it is asked for, while the caller may still hold the last one.
    """
    items, pace, count = iter(items), Pace(most), 1
    while piece := taken(items, count):
        count = pace.look()
        yield piece
        del piece  # It is not held while the next one is made.


class Pace:
    """How many items may come between two looks at the process, at most `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 1
        self._before = resident_bytes()

    def look(self) -> int:
        """Return how many items may come until the next look: two at first."""
        now = resident_bytes()
        fitting = self._count * _PIECE // max(now - self._before, 1)
        self._count, self._before = max(1, min(fitting, 2 * self._count, self._most)), now
        return self._count


def taken(items: Iterator[T], count: int) -> list[T]:
    """Return the next `count` items, or fewer, but not none, as soon as they make the process grow by megabytes."""
    if count <= UNSEEN:
        return list(islice(items, count))
    most = resident_bytes() + _MOST_GROWTH
    found: list[T] = []
    for size in range(UNSEEN, count + UNSEEN, UNSEEN):
        found += islice(items, min(size, count) - len(found))
        if len(found) < size or resident_bytes() > most:
            break
    return found
