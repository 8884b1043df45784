"""`Handle`: what stores of both kinds do on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dstream.spi.store import Options
from dstream.storage.codec.codec import Codec
from dstream.storage.redis.redis_collection import REGISTRY, Collection
from dstream.storage.redis.scripts import DESTROY, REGISTER, TYPES, VACUUM, Script
from dstream.storage.redis.server import Connection

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Handle"]


class Handle:
    """The part of a store that does not depend on its kind."""

    in_process = False
    location: str | None = None

    def __init__(self, connection: Connection, collection: Collection, types: bytes) -> None:
        self._connection = connection
        self._collection = collection
        self._known = (types, collection.codec(types))

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._collection.name

    @property
    def identity(self) -> str:
        """What a later one of its name has not."""
        return self._collection.identity

    @property
    def options(self) -> Options:
        """How the collection was made, and the types that are known by now."""
        return self._collection.shape.options(self._codec())

    def destroy(self) -> None:
        """Remove the collection, which is one step, and then its name, which stands for nothing from that step on."""
        collection = self._collection
        content = [*collection.buckets, collection.items, collection.journal, collection.key("jobs")]
        self._run(DESTROY, [collection.temporary, *content])
        name = f"{collection.kind}:{collection.name}"
        self._connection.run(REGISTER, [REGISTRY], name, collection.identity, "")

    def schema(self) -> pa.Schema:
        """Return the columns of `read_arrow`."""
        return self._fresh_codec().schema()

    def compact(self) -> None:
        """Do nothing: changes leave nothing behind."""
        self._run(TYPES, [])

    def vacuum(self, older_than: float) -> int:
        """Remove what tasks staged and nobody committed, and lists as they were when somebody began to read them."""
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
