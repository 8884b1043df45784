"""Lists as Redis lists of encoded items, and the jobs that stage and append items."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.base.records import record
from dstream.base.validation import checked_number, receipts_of
from dstream.spi.sink import WriteJob, Writer
from dstream.spi.store import ItemSplit, ListView, Splice
from dstream.storage.base.encoded_entries import (
    EncodedItems,
    ItemWriter,
    Portions,
    decoded,
    divided,
    edit_list,
    encoded_items,
    items_as,
)
from dstream.storage.base.options import ViewOvertakenError
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import codec_by
from dstream.storage.redis.collection import RedisCollection, RedisHandle, StretchSplit, packed, types_of
from dstream.storage.redis.scripts import (
    LIST_EXTEND,
    LIST_PIN,
    LIST_PUBLISH,
    LIST_READ,
    LIST_READ_VIEW,
    LIST_SIZE,
    LIST_SPLICE,
    LIST_VIEW,
    TYPES,
)
from dstream.storage.redis.server import Connection
from dstream.storage.redis.staging import AT_A_TIME, RedisJob, Sender, Stage

__all__ = ["RedisItemWriter", "RedisList", "RedisListJob"]


@dataclass(frozen=True, slots=True)
class StagedItems:
    """Staged items of one attempt."""

    stage: Stage
    codec: Codec
    size: int

    @staticmethod
    def of(receipt: Any, collection: RedisCollection, codec: Codec) -> StagedItems:
        """Return the staged items of a receipt."""
        stage = Stage.at(collection, receipt["at"])
        return StagedItems(stage, codec_by(receipt["types"], codec), checked_number(receipt["size"]))

    @property
    def receipt(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"at": self.stage.prefix, "types": self.codec.to_json(), "size": self.size}

    @property
    def key(self) -> str:
        """The key of the staged list."""
        return self.stage.key("items")

    def check(self, connection: Connection, codec: Codec) -> None:
        """Read the items, and raise the refusals of a strict list of another type."""
        with connection.pipeline() as pipe:
            pipe.lrange(self.key, 0, -1)
            [items] = pipe.execute()
        for item in EncodedItems(self.codec, items).read():
            codec.checked(None, item)


@record
class RedisItemWriter(ItemWriter):
    """Writer of items into staging keys until the job commits.

    Attributes:
        run: the beginning of the names of all attempts of this run of the job.
    """

    collection: RedisCollection
    run: str

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        """Stage the items in order, and yield one receipt for all of them."""
        written = StagedItems(Stage.of(self.collection, self.run), self.codec, 0)
        sender = Sender(self.collection.server.shared(), self.collection)
        portions = Portions(items, AT_A_TIME)
        while some := portions.take():
            codec, encoded = encoded_items(written.codec, some)
            portions.learn(len(some), sum(map(len, encoded)))
            some.clear()
            [size] = sender.send([written.key], functools.partial(_append, written.key, encoded))
            written = StagedItems(written.stage, codec, size)
        if written.size:
            yield written.receipt


def _append(key: str, items: Sequence[bytes], pipe: Any) -> None:
    pipe.rpush(key, *items)


class RedisListJob(RedisJob):
    """A job that appends items."""

    @property
    def writer(self) -> RedisItemWriter:
        """The writer for the tasks."""
        return RedisItemWriter(self._began_with, self._collection, self._run)

    def commit(self, receipts: Sequence[Any]) -> None:
        """Append all staged lists in one script, and remove the lists of losing attempts."""
        known = self._began_with
        parts = receipts_of(
            self._collection, lambda receipt: StagedItems.of(receipt, self._collection, known), receipts
        )
        while not self.is_done:
            types, codec = self._types(parts)
            keys = [self._collection.items, self._collection.temporary, self._mark]
            flags = [self._is_anonymous, int(self._replace)]
            sizes = [written.size for written in parts]
            arguments = [types, types_of(codec), self._job, self._epoch, *flags, *sizes]
            self._script(LIST_PUBLISH, [*keys, *(written.key for written in parts)], *arguments)
        self._tidy(parts)


AT_ONCE = 5000
"""The most items that one command appends; more are staged first, so that no command is too long."""


@dataclass(frozen=True, slots=True)
class _View:
    """The list in one version, which can be read while it is current."""

    store: RedisList
    version: bytes
    size: int

    def read(self, start: int, stop: int) -> list[Any]:
        items = self.store._read_version(self.version, start, min(stop, self.size))
        if items is None:
            raise ViewOvertakenError(self.store.name, self)
        return items


class RedisList(RedisHandle):
    """A handle to the items of a list."""

    def size(self) -> int:
        """Count the items."""
        return int(self._run(LIST_SIZE, [self._collection.items]))

    def read(self, start: int, stop: int) -> list[Any]:
        """Read a stretch."""
        types, items = self._run(LIST_READ, [self._collection.items], *_between(start, stop))
        return decoded(self._codec_of(types), items)

    def extend(self, items: Iterable[Any]) -> None:
        """Append all items in one change."""
        items = iter(items)
        # One more than a command accepts, which shows whether there are more.
        first = list(itertools.islice(items, AT_ONCE + 1))
        if len(first) > AT_ONCE:
            self._extend_by_job(itertools.chain(first, items))
            return
        types, codec = self._known
        written = encoded_items(codec, first)
        # The script refuses items that were encoded by other types than the current ones.
        while not self._run(LIST_EXTEND, [self._collection.items], types, types_of(written.codec), *written.items):
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
        """Replace a range: read, change locally, compare and write on the server; retry if the list has changed."""
        edit_list(self.name, self._look, change, self._splice)

    def _look(self) -> tuple[bytes, _View]:
        types, version, size = self._run(LIST_VIEW, [self._collection.items])
        return types, _View(self, version, size)

    def _splice(self, types: bytes, view: _View, splice: Splice) -> bool:
        written = encoded_items(self._codec_of(types), splice.items)
        keys = [self._collection.items, self._collection.temporary]
        arguments = [view.version, types, types_of(written.codec), splice.start, splice.stop, packed(written.items)]
        return bool(self._run(LIST_SPLICE, keys, *arguments))

    def _read_version(self, version: bytes, start: int, stop: int) -> list[Any] | None:
        answer = self._run(LIST_READ_VIEW, [self._collection.items], version, *_between(start, stop))
        return decoded(self._codec_of(answer[0]), answer[1]) if answer else None

    def splits(self, parallelism: int) -> Sequence[ItemSplit]:
        """Divide the items; a change other than appending saves a copy of them from now on."""
        # The copy is made by the next change, if any: most lists do not change while they are read.
        _, epoch, size = self._run(LIST_PIN, [self._collection.items])
        stretches = divided(range(size), parallelism)
        return [StretchSplit(self._collection, epoch, part[0], part[-1] + 1) for part in stretches]

    def begin(self, job: str | None, epoch: int = 1, *, replace: bool = False) -> WriteJob[Writer]:
        """Prepare a job; see `RedisListJob`."""
        return RedisListJob(self._connection, self._collection, self._fresh_codec(), job, epoch, replace)


def _between(start: int, stop: int) -> tuple[int, int]:
    """Return the first and the last position of a stretch; Redis counts negative ones from the end."""
    return (start, stop - 1) if start < stop else (1, 0)
