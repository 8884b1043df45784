"""Lists on a server: one Redis list of encoded items."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.spi.sink import WriteJob, Writer
from dstream.spi.store import ItemSplit, ListView, Splice
from dstream.storage.encoded import checked_splice, decoded, divided, encoded_items, items_as
from dstream.storage.redis.list_jobs import ListJob
from dstream.storage.redis.list_scripts import EXTEND, PIN, READ, READ_VIEW, SIZE, SPLICE, VIEW
from dstream.storage.redis.redis_collection import packed, types_of
from dstream.storage.redis.redis_handle import Handle
from dstream.storage.redis.scripts import TYPES
from dstream.storage.redis.splits import StretchSplit
from dstream.storage.vanished import ViewOvertakenError

__all__ = ["RedisList"]

AT_ONCE = 5000
"""How many items one command appends; more are staged first, so that no command is too long."""


@dataclass(frozen=True, slots=True)
class _View:
    """The list in one version, which can be read as long as it is the current one."""

    store: RedisList
    version: bytes
    size: int

    def read(self, start: int, stop: int) -> list[Any]:
        items = self.store._read_version(self.version, start, min(stop, self.size))
        if items is None:
            raise ViewOvertakenError(self.store.name, self)
        return items


class RedisList(Handle):
    """A handle to the items of a list."""

    def size(self) -> int:
        """Count the items."""
        return int(self._run(SIZE, [self._collection.items]))

    def read(self, start: int, stop: int) -> list[Any]:
        """Read a stretch."""
        types, items = self._run(READ, [self._collection.items], *_between(start, stop))
        return decoded(self._codec_of(types), items)

    def extend(self, items: Iterable[Any]) -> None:
        """Append all items at once."""
        items = iter(items)
        first = list(itertools.islice(items, AT_ONCE + 1))
        if len(first) > AT_ONCE:
            self._extend_by_job(itertools.chain(first, items))
            return
        types, codec = self._known
        written = encoded_items(codec, first)
        while not self._run(EXTEND, [self._collection.items], types, types_of(written.codec), *written.items):
            types = self._run(TYPES, [])
            written = items_as(self._codec_of(types), [written])

    def _extend_by_job(self, items: Iterator[Any]) -> None:
        job = self.begin(None)
        try:
            job.commit(list(job.writer.write(items)))
        except BaseException:
            job.abort()
            raise

    def edit(self, change: Callable[[ListView], Splice | None]) -> None:
        """Replace a stretch: look, change here, compare and write there; again if the list did not stay."""
        done = False
        while not done:
            types, version, size = self._run(VIEW, [self._collection.items])
            view = _View(self, version, size)
            try:
                splice = change(view)
            except ViewOvertakenError as error:
                if error.view is not view:
                    raise
            else:
                done = splice is None or self._splice(types, version, checked_splice(self.name, splice, size))

    def _splice(self, types: bytes, version: bytes, splice: Splice) -> bool:
        written = encoded_items(self._codec_of(types), splice.items)
        keys = [self._collection.items, self._collection.temporary]
        arguments = [version, types, types_of(written.codec), splice.start, splice.stop, packed(written.items)]
        return bool(self._run(SPLICE, keys, *arguments))

    def _read_version(self, version: bytes, start: int, stop: int) -> list[Any] | None:
        answer = self._run(READ_VIEW, [self._collection.items], version, *_between(start, stop))
        return decoded(self._codec_of(answer[0]), answer[1]) if answer else None

    def splits(self, parallelism: int) -> Sequence[ItemSplit]:
        """Divide the items; a change other than appending keeps a copy of them from now on."""
        _, epoch, size = self._run(PIN, [self._collection.items])
        stretches = divided(range(size), parallelism)
        return [StretchSplit(self._collection, epoch, part[0], part[-1] + 1) for part in stretches]

    def begin(self, job: str | None, epoch: int = 1, *, replace: bool = False) -> WriteJob[Writer]:
        """Prepare a job; see `ListJob`."""
        return ListJob(self._connection, self._collection, self._fresh_codec(), job, epoch, replace)


def _between(start: int, stop: int) -> tuple[int, int]:
    """Return the first and the last position of a stretch; Redis counts negative ones from the end."""
    return (start, stop - 1) if start < stop else (1, 0)
