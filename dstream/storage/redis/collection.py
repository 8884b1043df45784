"""`RedisCollection`: the identity, keys and common operations of a collection, and its splits for tasks."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import redis

from dstream.base.threads import contextmanager
from dstream.base.validation import NOT_UNDERSTOOD
from dstream.errors import EngineError, IllegalStateError
from dstream.spi.store import Kind, Options
from dstream.storage.base.encoded_entries import EncodedEntries, EncodedItems
from dstream.storage.base.options import Shape, destroyed_error, removed_error
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.description import described_codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.redis.scripts import DESTROY, DESTROYED, LIST_READ_PINNED, LOST, REGISTER, TYPES, VACUUM, Script
from dstream.storage.redis.server import Connection, Server

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BucketSplit", "RedisCollection", "RedisHandle", "StretchSplit", "is_damage", "packed", "types_of"]


REGISTRY = "dstream:names"
"""The hash from kinds and names to the identities of collections."""


_SIGNS = ("WRONGTYPE", "not an integer", "would overflow", "user_script", "not a valid", "attempt to ")
"""Parts of messages of the server, or of Lua in it, about unexpected content."""


@dataclass(frozen=True, slots=True)
class RedisCollection:
    """Collection on a server. A later collection of the same name has another identity."""

    server: Server
    identity: str
    kind: Kind
    name: str
    shape: Shape
    asked: Options
    pickles: Pickles

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @property
    def meta(self) -> str:
        """The key of the hash with the description of the collection; without it there is no collection."""
        return self.key("meta")

    @property
    def temporary(self) -> str:
        """The key of the sorted set of keys that may be removed when they are old, with their times."""
        return self.key("temporary")

    @property
    def journal(self) -> str:
        """The key of the stream of changes."""
        return self.key("journal")

    @property
    def items(self) -> str:
        """The key of the items of a list."""
        return self.key("items")

    @property
    def buckets(self) -> list[str]:
        """The keys of the entries, by bucket."""
        return [self.bucket(number) for number in range(self.shape.buckets or 0)]

    @property
    def bucket_count(self) -> int:
        """The number of parts into which the keys of a map are divided."""
        assert self.shape.buckets is not None  # the shape of a map has them
        return self.shape.buckets

    def bucket(self, number: int) -> str:
        """Return the key of one bucket."""
        return self.key(f"b:{number}")

    def key(self, part: str) -> str:
        """Return a key of this collection; the braces put all of them on one node."""
        return f"{{dst:{self.identity}}}:{part}"

    def codec(self, types: bytes) -> Codec:
        """Return the codec of types as they are stored.

        Raises:
            IllegalStateError: they are no types.
        """
        try:
            data = json.loads(types)
        except NOT_UNDERSTOOD as error:
            raise self.damaged(f"{self.meta} holds no types: {error}") from error
        return described_codec(data, self.kind, self.name, self.asked, self.pickles)

    def run(self, connection: Connection, script: Script, keys: Sequence[str], *arguments: Any) -> Any:
        """Run a script on this collection; the meta hash is added to its keys.

        Raises:
            CollectionDestroyedError: the collection is no more.
            IllegalStateError: staged or pinned data were removed.
        """
        try:
            with self.naming_damage():
                return connection.run(script, [self.meta, *keys], *arguments)
        except EngineError as error:
            if DESTROYED in str(error.__cause__):
                raise destroyed_error(self) from None
            if LOST in str(error.__cause__):
                raise removed_error(self) from None
            raise

    @contextmanager
    def pipeline(self, connection: Connection) -> Iterator[Any]:
        """Collect commands on keys of this collection; see `Connection.pipeline`."""
        with self.naming_damage(), connection.pipeline() as pipe:
            yield pipe

    @contextmanager
    def naming_damage(self) -> Iterator[None]:
        """Name the collection in the error of a key with wrong contents.

        Raises:
            IllegalStateError: a command or a script met something of another type.
        """
        try:
            yield
        except EngineError as error:
            if is_damage(error):
                raise self.damaged(str(error.__cause__)) from error
            raise

    def damaged(self, why: str) -> IllegalStateError:
        """Return the error of a key whose contents were not written by dstream."""
        return IllegalStateError(f"{self} is damaged: {why}; something else than dstream has changed its keys")


def is_damage(error: EngineError) -> bool:
    """Return whether a command or a script found data of an unexpected type."""
    # Redis has no codes for most of its errors, only messages.
    message = str(error.__cause__)
    return isinstance(error.__cause__, redis.ResponseError) and any(sign in message for sign in _SIGNS)


def types_of(codec: Codec) -> bytes:
    """Return the types of a codec as they are stored."""
    return json.dumps(codec.to_json(), sort_keys=True).encode()


def packed(parts: Iterable[bytes]) -> bytes:
    """Return strings joined, each preceded by its length."""
    return b"".join([piece for part in parts for piece in (struct.pack(">I", len(part)), part)])


class RedisHandle:
    """The part of a store that does not depend on its kind."""

    in_process = False
    location: str | None = None

    def __init__(self, connection: Connection, collection: RedisCollection, types: bytes) -> None:
        self._connection = connection
        self._collection = collection
        self._known = (types, collection.codec(types))

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._collection.name

    @property
    def identity(self) -> str:
        """The identity, which differs from a later one of its name."""
        return self._collection.identity

    @property
    def options(self) -> Options:
        """The options of its creation, and the current types."""
        return self._collection.shape.options(self._codec())

    def destroy(self) -> None:
        """Remove the collection, which is one step, and then its name, which is meaningless after that step."""
        collection = self._collection
        content = [*collection.buckets, collection.items, collection.journal, collection.key("jobs")]
        # Handles find out by the missing description, so a crash before the name is removed does no harm.
        self._run(DESTROY, [collection.temporary, *content])
        name = f"{collection.kind}:{collection.name}"
        self._connection.run(REGISTER, [REGISTRY], name, collection.identity, "")

    def schema(self) -> pa.Schema:
        """Return the columns of `read_arrow`."""
        return self._fresh_codec().schema()

    def compact(self) -> None:
        """Do nothing: changes leave no old data."""
        self._run(TYPES, [])

    def vacuum(self, older_than: float) -> int:
        """Remove staged data that was not committed, and old states of lists that were retained for readers."""
        return int(self._run(VACUUM, [self._collection.temporary], older_than))

    def _run(self, script: Script, keys: list[str], *arguments: Any) -> Any:
        return self._collection.run(self._connection, script, keys, *arguments)

    def _codec(self) -> Codec:
        codec = self._known[1]
        return codec if codec.is_decided else self._fresh_codec()

    def _fresh_codec(self) -> Codec:
        return self._codec_of(self._run(TYPES, []))

    def _codec_of(self, types: bytes) -> Codec:
        known = self._known
        if known[0] != types:
            self._known = known = (types, self._collection.codec(types))
        return known[1]


ITEMS_AT_A_TIME = 8192


@dataclass(frozen=True, slots=True)
class BucketSplit:
    """Group of buckets of a map, read one after another."""

    collection: RedisCollection
    buckets: Sequence[int]

    def read(self) -> Iterator[tuple[Any, Any]]:
        """Yield the entries, bucket by bucket."""
        for entries in self._entries():
            yield from entries.read()

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Yield the entries in columns, bucket by bucket."""
        for entries in self._entries():
            yield from entries.read_arrow()

    def _entries(self) -> Iterator[EncodedEntries]:
        collection = self.collection
        connection = collection.server.shared()
        for number in self.buckets:
            with collection.pipeline(connection) as pipe:
                pipe.hgetall(collection.bucket(number))
                pipe.hget(collection.meta, "types")  # afterwards: if it exists, the bucket was complete
                entries, types = pipe.execute()
            if types is None:
                raise destroyed_error(collection)
            if entries:
                yield EncodedEntries(collection.codec(types), list(entries.items()))


@dataclass(frozen=True, slots=True)
class StretchSplit:
    """The items of a list from one position up to another, as they were in one epoch."""

    collection: RedisCollection
    epoch: bytes
    start: int
    stop: int

    def read(self) -> Iterator[Any]:
        """Yield the items in order."""
        for items in self._items():
            yield from items.read()

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Yield the items in a column."""
        for items in self._items():
            yield from items.read_arrow()

    def _items(self) -> Iterator[EncodedItems]:
        collection = self.collection
        connection = collection.server.shared()
        for start in range(self.start, self.stop, ITEMS_AT_A_TIME):
            stop = min(start + ITEMS_AT_A_TIME, self.stop)
            types, items = collection.run(connection, LIST_READ_PINNED, [collection.items], self.epoch, start, stop - 1)
            yield EncodedItems(collection.codec(types), items)
