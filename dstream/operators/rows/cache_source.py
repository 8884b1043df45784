"""The source that reads cached items of one process, from memory or from a temporary file.

`CacheSource` gives it to workers: `connect(engine="auto")` may run a plan on Spark that reads what an earlier one kept
here.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any

from dstream.base.memory import Bound, pieces
from dstream.operators.rows.batches import Batcher, loads
from dstream.operators.rows.caches import HeldByContext
from dstream.plan.operations.streams import Read, ReadCache

__all__ = ["CacheSource", "CachedItems", "read_here"]


_CHUNK = 512
_LARGEST_SPLIT = 16_384


class CachedItems(HeldByContext):
    """Items that can be read again and again, by several readers at a time."""

    def __init__(self, items: Iterable[Any], bound: Bound) -> None:
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
        """Put all further items into a file without a name, which goes with this object."""
        import tempfile  # here: what fits into memory needs no file

        self._file = tempfile.TemporaryFile(prefix="dstream-")  # noqa: SIM115 - it lives as long as the items
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


@dataclass(frozen=True, slots=True, eq=False)
class CacheSource:
    """The kept items as a source, in splits of nearly equal size that are made one by one."""

    kept: CachedItems
    ordered: bool

    bounded = True
    in_caller = True

    def splits(self, parallelism: int) -> Iterator[CacheSplit]:
        """Read the items and divide them."""
        items, size = iter(self.kept), self._size(parallelism)
        for _ in range(self.count_splits(parallelism)):
            yield CacheSplit(list(islice(items, size)))

    def count_splits(self, parallelism: int) -> int:
        """Say how many splits there will be, at least one."""
        return max(1, -(-len(self.kept) // self._size(parallelism)))

    def _size(self, parallelism: int) -> int:
        return max(1, min(-(-len(self.kept) // max(1, parallelism)), _LARGEST_SPLIT))


@dataclass(frozen=True, slots=True)
class CacheSplit:
    """A stretch of kept items."""

    items: list[Any]

    def read(self) -> Iterator[Any]:
        """Give the items."""
        return iter(self.items)


def read_here(node: ReadCache) -> Read | None:
    """Return a reader of the items of `node` if the local engine keeps them in this process."""
    if not isinstance(node.items, CachedItems):
        return None
    return Read(CacheSource(node.items, node.is_ordered), step=node.step)
