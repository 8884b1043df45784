"""`RedisStorage`: collections by kind and name, on a server."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from typing import Any, NoReturn, cast, get_args

from dstream.errors import CollectionDestroyedError, EngineError, IllegalStateError, UnsupportedError
from dstream.spi.store import Kind, ListStore, MapStore, Options
from dstream.storage.checking import NOT_UNDERSTOOD
from dstream.storage.checking import identity as checked_identity
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.redis.redis_collection import REGISTRY, Collection, types_of
from dstream.storage.redis.redis_lists import RedisList
from dstream.storage.redis.redis_maps import RedisMap
from dstream.storage.redis.redis_records import RedisRecords
from dstream.storage.redis.scripts import REGISTER, SETTLE, TYPES
from dstream.storage.redis.server import Connection, Server
from dstream.storage.settings import Settings
from dstream.storage.shape import Shape, check_name
from dstream.storage.state_pickles import for_state

__all__ = ["RedisStorage"]


class RedisStorage:
    """A handle to the collections of one server or cluster."""

    def __init__(self, connection: Connection, pickles: Pickles) -> None:
        self._connection = connection
        self._pickles = pickles

    @staticmethod
    def connect(url: str, settings: Settings) -> RedisStorage:
        """Connect, and look whether the server keeps what it acknowledges."""
        connection = Server.at(url).connect()
        try:
            connection.check_durability(settings.durability)
        except BaseException:
            connection.close()
            raise
        return RedisStorage(connection, Pickles(settings.pickle or "restricted", settings.allowed))

    @property
    def url(self) -> str:
        """What was connected to, without its password."""
        return self._connection.server.shown

    @property
    def records(self) -> RedisRecords:
        """What is kept beside the collections."""
        return RedisRecords(self._connection)

    def load_pickle(self, data: bytes) -> Any:
        """Load a pickle as those of values are, or one of what steps keep."""
        return for_state(self._pickles).load(data)

    def state_files(self, job: str) -> NoReturn:
        """Refuse: state is megabytes that are written and dropped all the time, which is nothing for memory.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"{self._connection.server} keeps no state of steps, which the job {job} has: name a folder that all "
            "workers share, or an object store, with JobConfig(files_at=...)"
        )

    def create(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore:
        """Return the store of that name, made if there is none."""
        check_name(name)
        while True:
            identity = self._identity(kind, name)
            found = self._opened(kind, name, identity, options) if identity else None
            if found is not None:
                return found
            self._make(kind, name, identity, options)

    def open(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore | None:
        """Return the store of that name, or None."""
        check_name(name)
        identity = self._identity(kind, name)
        return self._opened(kind, name, identity, options) if identity else None

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all stores, sorted."""
        with self._connection.server.speaking():
            registered = self._client.hgetall(REGISTRY)
        found = {self._split(name): self._checked(identity) for name, identity in registered.items()}
        with self._connection.pipeline() as pipe:
            for identity in found.values():
                pipe.exists(_meta(identity))
            alive = pipe.execute()
        return sorted(name for name, lives in zip(found, alive, strict=True) if lives)

    def vacuum(self, older_than: float) -> int:
        """Remove from all collections what tasks staged and nobody committed; destroyed ones leave nothing behind."""
        removed = 0
        for kind, name in self.names():
            store = self.open(kind, name, Options())
            with suppress(CollectionDestroyedError):  # by another process, a moment ago
                removed += 0 if store is None else store.vacuum(older_than)
        return removed

    def close(self) -> None:
        """Give back the connections; stores of this storage connect again if they are used."""
        self._connection.close()

    @property
    def _client(self) -> Any:
        return self._connection.client

    def _identity(self, kind: Kind, name: str) -> str:
        """Return what a name stands for; it may have been destroyed."""
        with self._connection.server.speaking():
            found = self._client.hget(REGISTRY, f"{kind}:{name}")
        return self._checked(found) if found else ""

    def _checked(self, data: bytes) -> str:
        """Return an identity, which becomes part of keys."""
        try:
            return checked_identity(data.decode())
        except ValueError as error:
            raise self._damaged(f"the identity {data!r:.200}") from error

    def _split(self, data: bytes) -> tuple[Kind, str]:
        kind, _, name = data.decode(errors="replace").partition(":")
        if kind not in get_args(Kind) or not name:
            raise self._damaged(f"the name {data!r:.200}")
        return cast("Kind", kind), name

    def _damaged(self, what: str) -> IllegalStateError:
        return IllegalStateError(
            f"{self._connection.server} is damaged: {REGISTRY} holds {what}, which dstream has not written"
        )

    def _make(self, kind: Kind, name: str, stale: str, options: Options) -> None:
        """Make a collection, and give it the name, unless somebody else was faster."""
        identity = uuid.uuid4().hex
        shape = json.dumps(Shape.of(kind, name, options).to_json())
        types = types_of(Codec.of(kind, name, options, self._pickles))
        content = {"kind": kind, "name": name, "shape": shape, "types": types}
        with self._connection.server.speaking():
            self._client.hset(_meta(identity), mapping=content)
            if not self._connection.run(REGISTER, [REGISTRY], f"{kind}:{name}", stale, identity):
                self._client.delete(_meta(identity))

    def _opened(self, kind: Kind, name: str, identity: str, options: Options) -> MapStore | ListStore | None:
        found = self._described(kind, name, identity)
        if found is None:
            return None
        shape, types = found
        shape.check(kind, name, options)
        collection = Collection(self._connection.server, identity, kind, name, shape, options, self._pickles)
        settled = self._settled(collection, types)
        if settled is None:
            return None
        make = RedisList if kind == "list" else RedisMap
        return make(self._connection, collection, settled)

    def _described(self, kind: Kind, name: str, identity: str) -> tuple[Shape, bytes] | None:
        """Return how a collection was made, and its types; None if it is no more."""
        try:
            with self._connection.server.speaking():
                there, called, shape, types = self._client.hmget(_meta(identity), "kind", "name", "shape", "types")
            if types is None:
                return None
            if (there, called) != (kind.encode(), name.encode()):
                raise ValueError(f"it describes {there!r:.50} {called!r:.200}")
            return Shape.from_json(json.loads(shape), kind), types
        except (*NOT_UNDERSTOOD, EngineError) as error:
            if isinstance(error, EngineError) and "WRONGTYPE" not in str(error):
                raise
            raise IllegalStateError(
                f"{kind} {name!r} is damaged: {_meta(identity)} does not say how it was made: {error}"
            ) from error

    def _settled(self, collection: Collection, types: bytes) -> bytes | None:
        """Decide types that are open and are given now, so that nobody decides otherwise."""
        while True:
            settled = types_of(collection.codec(types))
            try:
                if settled == types or collection.run(self._connection, SETTLE, [], types, settled):
                    return settled
                types = collection.run(self._connection, TYPES, [])
            except CollectionDestroyedError:
                return None


def _meta(identity: str) -> str:
    return f"{{dst:{identity}}}:meta"
