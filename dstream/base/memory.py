"""The memory bound of one worker, beyond which the data of an operation is spilled to disk.

The size of an item cannot be determined quickly. So a loop that buffers many items checks the memory of the process: it
takes few items at first, twice the number in the next batch, and fewer if the last batch made the process grow. A check
takes 2 microseconds. A process with free memory from earlier work need not grow, so large strings and bytes are
measured individually.
"""

from __future__ import annotations

import functools
import gc
import os
import resource
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from time import perf_counter
from typing import Any, Generic, TypeVar
from weakref import WeakSet

__all__ = [
    "DEFAULT_BOUND",
    "DEFAULT_BROADCAST",
    "SMALL_SIDE",
    "BatchIterator",
    "BatchPace",
    "Bound",
    "Growth",
    "give_back",
    "give_back_large_blocks",
    "holding",
    "largest_side",
    "occupied_before",
    "pieces",
    "resident_bytes",
    "size_of",
    "small_lists",
]


T = TypeVar("T")

_FEWEST, _MOST = 8, 512
"""The least and the greatest number of items between two reads of the clock."""
_CLOCK = 1e-5
"""Seconds between two reads of the clock, which takes a hundredth of that."""
_SOON = 0.001
"""Seconds in which no process can grow by many megabytes: the kernel needs as long to provide them."""
_PIECE = 4 * 2**20
_MOST_GROWTH = 16 * 2**20
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LINE = 64
"""Bytes that contain the first three of the kernel's figures of a process."""


def resident_bytes() -> int:
    """Return the bytes of memory that this process occupies now (at its peak, outside of Linux)."""
    try:
        # `pread` moves no file position, so that threads can share the descriptor.
        return int(os.pread(_statm(), _LINE, 0).split(b" ", 2)[1]) * _PAGE
    except OSError:
        return _peak()


def _own_bytes() -> int:
    """Return the bytes that this process occupies, without pages of files and shared pages.

    The kernel may reclaim a hundred megabytes of pages of files at any moment, which would hide the growth of the
    process.
    """
    try:
        _, resident, shared, _ = os.pread(_statm(), _LINE, 0).split(b" ", 3)
    except OSError:
        return _peak()
    return (int(resident) - int(shared)) * _PAGE


_LARGE = 64 * 2**10


def _large_bytes(items: Sequence[Any]) -> int:
    """Return how many bytes items have that are all as large as the last one; 0 if that is small, or unknown."""
    size = _text_bytes(items[-1]) if items else 0
    return size * len(items) if size >= _LARGE else 0


_TEXTS: tuple[Any, ...] = (str, bytes, bytearray)
_FEW_PARTS = 8


def _text_bytes(item: Any, depth: int = 2) -> int:
    """Return the size in bytes of an item that is a string, or a short tuple with strings; 0 for all others.

    `__len__` of a class of the user's is not called.
    """
    for kind in _TEXTS:
        if isinstance(item, kind):
            length: int = kind.__len__(item)
            return length
    if depth and isinstance(item, tuple) and tuple.__len__(item) <= _FEW_PARTS:
        return sum(_text_bytes(part, depth - 1) for part in tuple.__iter__(item))
    return 0


def _peak() -> int:
    """Return the peak memory of this process, where the kernel has no other figure."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@functools.cache
def _statm() -> int:
    """Open the kernel's memory statistics of this process, once: opening takes five times as long as reading."""
    return os.open("/proc/self/statm", os.O_RDONLY)


# In a forked process the file would still speak of its parent.
os.register_at_fork(after_in_child=_statm.cache_clear)


def pieces(items: Iterable[T], most: int) -> Iterator[list[T]]:
    """Yield the items in lists of up to `most`, and of a few megabytes if the items are large.

    The next list is read on demand, while the caller may still have the last one. A list ends before an item that
    fails, and the next read raises the failure: a failure of the caller about the earlier items is raised first.
    """
    pace, count = BatchPace(most), 1
    take = BatchIterator(items).take if most > _MOST else _UpToFailure(items).take
    while piece := take(count):
        count = pace.look(piece)
        yield piece
        del piece  # It is released while the next list is made.


class BatchPace:
    """Number of items between two checks of the memory of the process, at most `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 1
        self._before = _own_bytes()

    def look(self, items: Sequence[Any] = ()) -> int:
        """Return the number of items until the next check, after the last batch if there is one: two at first."""
        now = _own_bytes()
        fitting = self._count * _PIECE // max(now - self._before, _large_bytes(items), 1)
        self._count, self._before = max(1, min(fitting, 2 * self._count, self._most)), now
        return self._count


class Growth:
    """Check whether the process has grown by megabytes since the last start, or since it was smaller."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Reset the growth to zero."""
        self._most = _own_bytes() + _MOST_GROWTH
        self._held = 0

    def exceeded(self, newest: Sequence[Any] = ()) -> bool:
        """Check the memory of the process, and the items since the last check, if there is a list of them."""
        now = _own_bytes()
        self._most = min(self._most, now + _MOST_GROWTH)
        self._held += _large_bytes(newest)
        return now > self._most or self._held > _MOST_GROWTH


class _UpToFailure(Generic[T]):
    """Reader of items in lists, which end before an item that fails: its failure is raised by the next read.

    So a function of the items fails at the first erroneous item, as if each had arrived alone.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._ahead: list[T] = []
        self._failure: Exception | None = None

    def take(self, count: int) -> list[T]:
        """Return `count` of the next items, fewer before a failure, none at the end only."""
        found = self._ahead
        self._ahead = []
        self.add_to(found, max(count - len(found), 0))
        return found

    def add_to(self, found: list[T], count: int) -> None:
        """Append the next `count` items to a list, or raise the failure if the list is empty."""
        if self._failure is not None and not found:
            failure, self._failure = self._failure, None
            raise failure
        if self._failure is None:
            try:
                found += islice(self._items, count)
            except Exception as failure:
                if not found:
                    raise
                # Another call will raise it, and the search for its item follows the frames of the calls.
                self._failure = failure.with_traceback(failure.__traceback__ and failure.__traceback__.tb_next)

    def has_more(self) -> bool:
        """Return whether there is another item; it reads one item ahead."""
        self._ahead = self.take(1)
        return bool(self._ahead)


class BatchIterator(Generic[T]):
    """Reader of items in lists of any length, or shorter ones as soon as they make the process grow by megabytes.

    A list ends before an item that fails, and the next read raises the failure.

    Attributes:
        is_careful: whether the last list was cut by the sizes of its items, since these made the process grow.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items = _UpToFailure(items)
        self._waiting: Iterator[list[T]] = iter(())
        self._at_once = _FEWEST
        self.is_careful = False

    def take(self, count: int) -> list[T]:
        """Return the next items, none at the end only."""
        few = next(self._waiting, None)
        self.is_careful = few is not None
        if few:
            return few
        items, at_once, before = self._items, self._at_once, _own_bytes()
        most = before + _MOST_GROWTH
        found = items.take(0)  # The item that `has_more` has read ahead, if any.
        known, size = 0, len(found)
        looked = last = perf_counter()
        while size < count:
            size = min(size + at_once, count)
            items.add_to(found, size - len(found))
            is_end, now = len(found) < size, perf_counter()
            at_once = max(at_once // 2, _FEWEST) if now - last > _CLOCK else min(at_once * 2, _MOST)
            last = now
            if now - looked > _SOON or is_end or size == count:
                occupied = _own_bytes()
                if occupied > most or occupied - before > _PIECE or _large_bytes(found) > _MOST_GROWTH:
                    # The process has grown since the last check: each of these items is measured.
                    self._waiting = small_lists(found[known:])
                    del found[known:]
                    break
                known, looked, before = len(found), now, occupied
            if is_end:
                break
        self._at_once = at_once
        return found or self._first_waiting()

    def _first_waiting(self) -> list[T]:
        self.is_careful = True
        return next(self._waiting, [])

    def has_more(self) -> bool:
        """Return whether there is another item; it reads one item ahead."""
        if few := next(self._waiting, None):
            self._waiting = chain((few,), self._waiting)
            return True
        return self._items.has_more()


def small_lists(items: list[T]) -> Iterator[list[T]]:
    """Empty a list into lists of few megabytes, or of one item that is larger; each item is measured, which is slow."""
    waiting = deque(items)
    # From now on each item has one owner, so that the memory of a yielded list is free before the next list.
    items.clear()
    few: list[T] = []
    total = 0
    while waiting:
        size = size_of(waiting[0])
        if few and total + size > _PIECE:
            yield few
            few, total = [], 0
        few.append(waiting.popleft())
        total += size
    if few:
        yield few


def size_of(item: Any) -> int:
    """Return how many bytes an item has when it is pickled; megabytes if it cannot be."""
    import pickle  # With its imports it takes 2 ms, and small items are never measured.

    try:
        return len(pickle.dumps(item, protocol=5))
    except Exception:  # The code that sends or encodes the item reports what is wrong with it, if anything is.
        return _PIECE


DEFAULT_BOUND = 512 * 2**20
"""The number of bytes that a worker process may have resident before operations spill, by default.

PySpark's own workers begin to spill at 512 MB, too (`spark.python.worker.memory`).
"""

DEFAULT_BROADCAST = 256 * 2**20
"""The number of bytes that the right side of a hash join may have by default: each worker process has it in memory."""

SMALL_SIDE = 4 * 2**20
"""A side of a join of at most this number of bytes is broadcast to all tasks: the shuffle alone takes as long."""


def largest_side(worker_memory: int) -> int:
    """Return the maximal number of bytes of a side of a join that is broadcast, regardless of the cost of a shuffle.

    This is 16 MB if a worker has 512. A task has the side in memory and cannot spill it: in columns with the table of
    its keys it takes three times its pickled bytes, as objects up to twenty times.
    """
    return worker_memory // 32


@functools.cache
def give_back_large_blocks() -> None:
    """Configure the allocator to return each large block as soon as it is free, in this process and from now on.

    glibc (2.36) does so at first, but after a large block was freed it caches blocks of that size, up to 32 MB. Smaller
    blocks at the end of its memory would be returned beyond 128 KB, and fresh pages for the next block cost 0.4 ms for
    each MB: a few MB of these remain cached.
    """
    set_option = _of_the_allocator("mallopt")
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        set_option(_M_TRIM_THRESHOLD, _MOST_AT_END)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE_BLOCK = 2**20
_MOST_AT_END = 4 * 2**20


def give_back() -> None:
    """Return free memory to the system: glibc (2.36) retains pages below any that are in use, Arrow any page."""
    trim = _of_the_allocator("malloc_trim")
    if trim is not None:
        trim(0)
    if (pyarrow := sys.modules.get("pyarrow")) is not None:
        pyarrow.default_memory_pool().release_unused()


def _of_the_allocator(name: str) -> Callable[..., int] | None:
    """Return a function of the C library, if it has one of that name."""
    import ctypes  # Only workers need it, and it takes 2 ms.

    function: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return function


class holding:
    """Context in which most new objects are retained, as containers of groups: the garbage collector skips them.

    A full collection starts whenever there are a quarter more objects, and took half of the time of grouping a million
    items by almost as many keys (CPython 3.11). Young garbage is still collected. Old garbage is collected when the
    memory bound is reached and at the end of the task. In a caller's process this has no effect.
    """

    _is_allowed = False
    _holders = 0
    _usual: tuple[int, int, int] | None = None

    @staticmethod
    def allow() -> None:
        """Enable it in this process from now on: a worker runs one task at a time, and nothing else."""
        holding._is_allowed = True

    def __enter__(self) -> None:
        # Counted, since generators begin and end in any order.
        if holding._holders == 0 and holding._is_allowed:
            holding._usual = gc.get_threshold()
            gc.set_threshold(*holding._usual[:2], _NEVER)
        holding._holders += 1

    def __exit__(self, *failure: object) -> None:
        holding._holders -= 1
        if holding._holders == 0 and holding._usual is not None:
            gc.set_threshold(*holding._usual)
            holding._usual = None


_NEVER = 2**30


_LEAST_GROWTH = 32 * 2**20


@dataclass(eq=False)
class Bound:
    """Memory bound of an operation, checked once for every few hundred items.

    A worker has only the memory of its tasks. The process of a program has the data of the program, too: its bound is
    relative to the memory at the start of the run.

    If the allocator does not return memory after a spill, the threshold is raised a little: otherwise every later check
    would trigger a tiny spill.

    Attributes:
        bytes: how many bytes the process may occupy.
        before: the bytes that it occupied before the run, which do not count; see `occupied_before`.
    """

    bytes: int = DEFAULT_BOUND
    before: int = 0
    _mark: int = field(init=False, default=0)
    _is_exceeded: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if self.before:
            with _lock:
                _of_runs.add(self)

    def exceeded(self, coming: int = 0) -> bool:
        """Return whether this process occupies more than it may, or would with `coming` bytes more."""
        if not self._mark:
            occupied = resident_bytes()
            if occupied > self.bytes:
                give_back()  # Memory that earlier tasks, or runs, have released does not count.
                occupied = resident_bytes()
            self._mark = max(self.bytes + min(self.before, occupied), occupied + _LEAST_GROWTH)
        self._is_exceeded = resident_bytes() + coming > self._mark
        return self._is_exceeded

    def spilled(self) -> None:
        """Record that the operation moved its data to disk and released it."""
        if self._is_exceeded and resident_bytes() > self._mark - _LEAST_GROWTH // 2:
            # A few thousand tuples and floats in the free lists of Python can retain all the memory around them
            # (CPython 3.11); a full collection releases them.
            gc.collect()
            give_back()
        self._mark = max(self._mark, resident_bytes() + _LEAST_GROWTH // 2)


def occupied_before() -> int:
    """Return the memory that does not count for a run that begins in this process.

    It is what the process occupied before the oldest run that has not ended, or whose items are cached: the buffers of
    all of them together have one bound.
    """
    with _lock:
        return min((resident_bytes(), *(bound.before for bound in _of_runs)))


_lock = threading.Lock()
_of_runs: WeakSet[Bound] = WeakSet()
