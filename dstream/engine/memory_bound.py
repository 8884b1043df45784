"""The memory bound of one worker: when data that an operation holds must move to disk."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from dstream.memory import resident_bytes

__all__ = [
    "DEFAULT_BOUND",
    "DEFAULT_BROADCAST",
    "Bound",
    "give_back",
    "give_back_large_blocks",
    "holding",
    "resident_bytes",
]

DEFAULT_BOUND = 512 * 2**20
"""How many bytes a worker process may have resident before operations spill, unless told otherwise.

PySpark's own workers begin to spill at 512 MB, too (`spark.python.worker.memory`).
"""

DEFAULT_BROADCAST = 256 * 2**20
"""How many bytes the right side of a hash join may have, unless told otherwise: each worker process holds all of it."""

_LEAST_GROWTH = 32 * 2**20


@functools.cache
def give_back_large_blocks() -> None:
    """Let the allocator return each large block as soon as it is free, in this process and from now on.

    glibc (2.36) does so at first, but once one was freed it keeps blocks of that size, up to 32 MB, for later use.
    """
    set_option = _of_the_allocator("mallopt")
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _LARGE_BLOCK)


_M_MMAP_THRESHOLD = -3
_LARGE_BLOCK = 2**20


def give_back() -> None:
    """Let allocators return what is free: glibc (2.36) keeps pages below any that are in use, that of Arrow any."""
    trim = _of_the_allocator("malloc_trim")
    if trim is not None:
        trim(0)
    if (pyarrow := sys.modules.get("pyarrow")) is not None:
        pyarrow.default_memory_pool().release_unused()


def _of_the_allocator(name: str) -> Callable[..., int] | None:
    """Return a function of the C library, if it has one of that name."""
    import ctypes  # Workers alone need it, and it takes 2 ms.

    function: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return function


class holding:
    """A time in which what is made mostly stays, such as the containers of groups: nobody looks through it again.

    A full collection comes whenever a quarter more is there, and took half of the time of grouping a million items by
    almost as many keys (CPython 3.11). Garbage that is young is still collected. Old garbage goes when the memory bound
    is reached, which whoever holds something asks about, and at the end of the task. In a caller's process this changes
    nothing.
    """

    _is_allowed = False
    _holders = 0
    _usual = (0, 0, 0)

    @staticmethod
    def allow() -> None:
        """Let it have an effect in this process from now on: a worker runs one task at a time, and nothing else."""
        holding._is_allowed = True

    def __enter__(self) -> None:
        # Counted, since generators begin and end in any order.
        if holding._holders == 0 and holding._is_allowed:
            holding._usual = gc.get_threshold()
            gc.set_threshold(*holding._usual[:2], _NEVER)
        holding._holders += 1

    def __exit__(self, *failure: object) -> None:
        holding._holders -= 1
        if holding._holders == 0 and holding._is_allowed:
            gc.set_threshold(*holding._usual)


_NEVER = 2**30


@dataclass
class Bound:
    """Says when an operation holds too much; asked once for every few hundred items.

    Where the allocator does not give memory back after a spill, the mark is raised a little: without that, every
    later question would be answered with yes and each spill would be tiny.
    """

    bytes: int = DEFAULT_BOUND
    _mark: int = field(init=False, default=0)
    _is_exceeded: bool = field(init=False, default=False)

    def exceeded(self, coming: int = 0) -> bool:
        """Say whether this process occupies more than it may, or would with so many bytes more."""
        if not self._mark:
            occupied = resident_bytes()
            if occupied > self.bytes:
                give_back()  # What earlier tasks have let go of is not held.
                occupied = resident_bytes()
            self._mark = max(self.bytes, occupied + _LEAST_GROWTH)
        self._is_exceeded = resident_bytes() + coming > self._mark
        return self._is_exceeded

    def spilled(self) -> None:
        """Take note that the operation moved its data to disk and let go of it."""
        if self._is_exceeded and resident_bytes() > self._mark - _LEAST_GROWTH // 2:
            # A few thousand tuples and floats that Python keeps for later use can hold back all the memory around them
            # (CPython 3.11); a full collection lets go of them.
            gc.collect()
            give_back()
        self._mark = max(self._mark, resident_bytes() + _LEAST_GROWTH // 2)
