"""Jobs that write items: each task stages a list, one script appends all of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.storage.checking import number, receipts_of
from dstream.storage.codec.codec import Codec
from dstream.storage.encoded import EncodedItems, encoded_items
from dstream.storage.portions import Portions
from dstream.storage.redis.list_scripts import PUBLISH
from dstream.storage.redis.redis_collection import Collection, types_of
from dstream.storage.redis.redis_staging import AT_A_TIME, Job, Sender, Stage
from dstream.storage.redis.server import Connection
from dstream.storage.written_types import codec_by

__all__ = ["ItemWriter", "ListJob"]


@dataclass(frozen=True, slots=True)
class StagedItems:
    """How many items an attempt has staged."""

    stage: Stage
    codec: Codec
    size: int

    @staticmethod
    def of(receipt: Any, collection: Collection, codec: Codec) -> StagedItems:
        """Return what a receipt says."""
        stage = Stage.at(collection, receipt["at"])
        return StagedItems(stage, codec_by(receipt["types"], codec), number(receipt["size"]))

    @property
    def receipt(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"at": self.stage.prefix, "types": self.codec.to_json(), "size": self.size}

    @property
    def key(self) -> str:
        """The key of the staged list."""
        return self.stage.key("items")

    def check(self, connection: Connection, codec: Codec) -> None:
        """Read the items, and raise what a strict list of another type refuses."""
        with connection.pipeline() as pipe:
            pipe.lrange(self.key, 0, -1)
            [items] = pipe.execute()
        for item in EncodedItems(self.codec, items).read():
            codec.checked(None, item)


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Stages the items of tasks.

    Attributes:
        run: what the places of all attempts of this run of the job begin with.
    """

    collection: Collection
    codec: Codec
    run: str

    def check_item(self, item: Any) -> None:
        """Refuse an item that the list does not take."""
        self.codec.checked(None, item)

    def write(self, items: Iterator[Any]) -> Iterator[Any]:
        """Stage the items in order, and give one receipt for all of them."""
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


class ListJob(Job):
    """A job that appends items."""

    @property
    def writer(self) -> ItemWriter:
        """What travels to the tasks."""
        return ItemWriter(self._collection, self._began_with, self._run)

    def commit(self, receipts: Sequence[Any]) -> None:
        """Append all staged lists in one script, and remove what losing attempts have staged."""
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
            self._script(PUBLISH, [*keys, *(written.key for written in parts)], *arguments)
        self._tidy(parts)
