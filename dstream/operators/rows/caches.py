"""Caches: the cached items of the plans of a context, by engine; the items of one process, and their source.

`CachedItems` are in memory or in a temporary file. `CacheSource` sends them to workers: `connect(engine="auto")` may
run a plan on Spark that reads items which an earlier plan cached in this process.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import IO, Any, NoReturn
from weakref import WeakKeyDictionary

from dstream.base.memory import Bound, pieces
from dstream.base.records import record
from dstream.base.threads import RenewedLock
from dstream.errors import SerializationError
from dstream.operators.rows.batches import Batcher, loads
from dstream.plan.operations.streams import Cache, CacheIdentity, Read, ReadCache
from dstream.plan.walk import CacheContent
from dstream.spi.source import InputSize

__all__ = ["CacheSource", "CachedItems", "Caches", "HeldByContext", "read_here"]


class Caches:
    """The contents of `cache()` steps, which the engines of one context share until it is closed.

    A step is found by its identity, which is referenced weakly: the items are dropped with the last plan of the step.
    """

    def __init__(self) -> None:
        self._slots: WeakKeyDictionary[CacheIdentity, _Slot] = WeakKeyDictionary()
        self._fetched: WeakKeyDictionary[Any, CachedItems] = WeakKeyDictionary()

    def found(self, node: Cache) -> CacheContent | None:
        """Return the cached content of a step; None if there is none, or its owner was deleted."""
        slot = self._slots.get(node.identity)
        return None if slot is None else slot.found()

    def kept(self, node: Cache, compute: Callable[[], CacheContent]) -> CacheContent:
        """Return the cached content of a step; compute it if there is none, while other threads wait.

        A failure of `compute` is not cached.
        """
        slot = self._slots.setdefault(node.identity, _Slot())  # Two threads get the same one.
        with slot.lock:
            cached = slot.found()
            if cached is None:
                cached = slot.cached = compute()
        return cached

    def fetched(self, items: Iterable[Any], bound: Bound) -> CachedItems:
        """Return the content of a step that another engine has cached, as this process has it: fetched once.

        Args:
            items: the content; the copy is dropped with it.
            bound: how much of the copy may be in memory.
        """
        copy = self._fetched.get(items)
        if copy is None:
            copy = self._fetched[items] = CachedItems(items, bound)
        return copy

    def clear(self) -> None:
        """Release all items."""
        self._fetched = WeakKeyDictionary()
        self._slots = WeakKeyDictionary()


class HeldByContext:
    """Items that are cached for a context: they cannot be pickled, unlike a plan without cached items."""

    def __reduce__(self) -> NoReturn:
        raise SerializationError(
            "what cache() keeps belongs to its context and cannot be pickled; pickle the plan, which is computed again"
        )


class _Slot:
    """The cache slot of one step.

    Attributes:
        lock: acquired while the items are computed. It is reentrant: where a user's function reads its own stream,
            Python's error for endless recursion is better than a deadlock.
    """

    __slots__ = ("cached", "lock")

    def __init__(self) -> None:
        self.lock = RenewedLock()
        self.cached: CacheContent | None = None

    def found(self) -> CacheContent | None:
        cached = self.cached
        return cached if cached is not None and cached.is_there() else None


_CHUNK = 512
_LARGEST_SPLIT = 16_384


class CachedItems(HeldByContext):
    """Items that can be read again and again, by several readers at a time."""

    def __init__(self, items: Iterable[Any], bound: Bound) -> None:
        self._bound = bound  # As long as it exists, later runs count these items, too.
        self._held: list[Any] = []
        self._places: list[tuple[int, int]] = []
        self._file: IO[bytes] | None = None
        self._written = 0
        chunks = pieces(items, _CHUNK)
        for chunk in chunks:
            self._held += chunk
            if bound.exceeded():
                self._write(chain.from_iterable(chunks))
                bound.spilled()

    def _write(self, items: Iterator[Any]) -> None:
        """Write all further items to an unnamed file, which is deleted with this object."""
        import tempfile  # lazily: items that fit into memory need no file

        self._file = tempfile.TemporaryFile(prefix="dstream-")  # noqa: SIM115 - it is open as long as the items exist
        weakref.finalize(self, self._file.close)
        place = 0
        for count, data in Batcher().batches(items):
            self._written += count
            self._file.write(data)
            self._places.append((place, len(data)))
            place += len(data)
        # `pread` reads past the buffer of the file object.
        self._file.flush()

    def __len__(self) -> int:
        return len(self._held) + self._written

    def __iter__(self) -> Iterator[Any]:
        yield from self._held
        if self._file is not None:
            # `pread` moves no position, so several readers can share the file.
            for place, size in self._places:
                yield from loads(os.pread(self._file.fileno(), size, place))


@record(eq=False)
class CacheSource:
    """Source of cached items, in splits of nearly equal size that are created lazily."""

    kept: CachedItems
    ordered: bool

    bounded = True
    in_caller = True

    def input_size(self) -> InputSize:
        """Return the number of cached items."""
        return InputSize(len(self.kept), is_exact=True, is_held=True, is_near=True)

    def splits(self, parallelism: int) -> Iterator[CacheSplit]:
        """Read the items and divide them."""
        items, size = iter(self.kept), self._size(parallelism)
        for _ in range(self.count_splits(parallelism)):
            yield CacheSplit(list(islice(items, size)))

    def count_splits(self, parallelism: int) -> int:
        """Return the number of splits, at least one."""
        return max(1, -(-len(self.kept) // self._size(parallelism)))

    def _size(self, parallelism: int) -> int:
        return max(1, min(-(-len(self.kept) // max(1, parallelism)), _LARGEST_SPLIT))


@record
class CacheSplit:
    """A slice of the cached items."""

    items: list[Any]

    yields_its_items = True

    def read(self) -> Iterator[Any]:
        """Return an iterator over the items."""
        return iter(self.items)


def read_here(node: ReadCache) -> Read | None:
    """Return a reader of the items of `node` if they are cached in this process; otherwise None."""
    if not isinstance(node.items, CachedItems):
        return None
    return Read(CacheSource(node.items, node.is_ordered), step=node.step)
