"""`Collection`: what one collection is and which keys it has; it travels to tasks."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from dstream.errors import EngineError, IllegalStateError
from dstream.spi.store import Kind, Options
from dstream.storage.checking import NOT_UNDERSTOOD
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.described_codec import described_codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.redis.scripts import DESTROYED, LOST, Script
from dstream.storage.redis.server import Connection, Server
from dstream.storage.shape import Shape
from dstream.storage.vanished import destroyed_error, removed_error
from dstream.values.contexts import contextmanager

__all__ = ["Collection", "is_damage", "packed", "types_of"]

REGISTRY = "dstream:names"
"""The hash from kinds and names to the identities of collections."""


_SIGNS = ("WRONGTYPE", "not an integer", "would overflow", "user_script", "not a valid", "attempt to ")
"""What a server says, in its own words or in those of Lua, of content that is not what was expected."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection on a server. One of the same name that is made later has another identity."""

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
        """The key of the hash that says that the collection is there, and how it was made."""
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
        """Into how many parts the keys of a map are divided."""
        assert self.shape.buckets is not None  # the shape of a map has them
        return self.shape.buckets

    def bucket(self, number: int) -> str:
        """Return the key of one bucket."""
        return self.key(f"b:{number}")

    def key(self, part: str) -> str:
        """Return a key of this collection; the braces keep all of them on one node."""
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
            IllegalStateError: what was staged or pinned is no more.
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
        """Say which collection it is whose keys do not hold what they should.

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
        """Return the error that says that a key does not hold what dstream has written there."""
        return IllegalStateError(f"{self} is damaged: {why}; something else than dstream has changed its keys")


def is_damage(error: EngineError) -> bool:
    """Say whether a command or a script met something of another type than was written there."""
    said = str(error.__cause__)
    return isinstance(error.__cause__, redis.ResponseError) and any(sign in said for sign in _SIGNS)


def types_of(codec: Codec) -> bytes:
    """Return the types of a codec as they are stored."""
    return json.dumps(codec.to_json(), sort_keys=True).encode()


def packed(parts: Iterable[bytes]) -> bytes:
    """Return texts in one, each behind its length."""
    return b"".join([piece for part in parts for piece in (struct.pack(">I", len(part)), part)])
