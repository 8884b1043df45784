"""`RedisStorage`: the catalog of collections on a server, its records and their Lua scripts."""

from __future__ import annotations

import json
import re
import secrets
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn, cast, get_args
from zlib import crc32

from dstream.base.threads import contextmanager
from dstream.base.validation import NOT_UNDERSTOOD, checked_number
from dstream.base.validation import identity as checked_identity
from dstream.errors import CollectionDestroyedError, EngineError, IllegalStateError, UnsupportedError
from dstream.spi.records import Record
from dstream.spi.store import Kind, ListStore, MapStore, Options, Settings
from dstream.storage.base.options import (
    MOST_BYTES,
    Shape,
    check_format,
    check_name,
    check_prefix,
    check_record,
    check_write,
    is_record_name,
)
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles, for_state
from dstream.storage.redis.collection import REGISTRY, RedisCollection, is_damage, types_of
from dstream.storage.redis.lists import RedisList
from dstream.storage.redis.maps import RedisMap
from dstream.storage.redis.scripts import REGISTER, SETTLE, TYPES, Script
from dstream.storage.redis.server import Connection, Server

__all__ = [
    "RECORD_INDEX",
    "RECORD_NAMES",
    "RECORD_READ",
    "RECORD_REMOVE",
    "RECORD_WRITE",
    "RedisRecords",
    "RedisStorage",
    "record_key",
]


_FORMAT = "2"
"""The version of the format of the hash that describes a collection, and of the contents of its keys."""

RECORD_INDEX = "{dstream:records}:index"
"""The names of all records. The braces put it, and all records, on one node, so that a script may change both."""


def record_key(name: str) -> str:
    """Return the key of the hash of a record."""
    return f"{{dstream:records}}:r:{name}"


RECORD_READ = Script.bare(f"""
-- Give the fields of a record, and whether its name is known; what is too large for a record is not handed over.
local fields = redis.call('HMGET', KEYS[1], 'version', 'token', 'sum')
local size = redis.call('HSTRLEN', KEYS[1], 'data')
local data = size <= {MOST_BYTES} and redis.call('HGET', KEYS[1], 'data')
local known = redis.call('ZSCORE', KEYS[2], ARGV[1]) and 1 or 0
return {{fields[1], fields[2], fields[3], data, redis.call('EXISTS', KEYS[1]), known, size}}
""")

RECORD_WRITE = Script.bare("""
-- Replace a record that has the version before. A command that was sent twice meets its own token.
local known = redis.call('ZSCORE', KEYS[2], ARGV[1]) and 1 or 0
if redis.call('EXISTS', KEYS[1]) ~= known then return -1 end
local there = redis.call('HMGET', KEYS[1], 'version', 'token')
if there[1] == ARGV[2] and there[2] == ARGV[3] then return 1 end
if (there[1] or '0') ~= ARGV[6] then return 0 end
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'token', ARGV[3], 'sum', ARGV[4], 'data', ARGV[5])
return 1
""")

RECORD_NAMES = Script.bare("return redis.call('ZRANGEBYLEX', KEYS[1], '[' .. ARGV[1], '(' .. ARGV[1] .. '\\255')")

RECORD_REMOVE = Script.bare("""
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('UNLINK', KEYS[1])
return 1
""")


_TOKEN = re.compile(rb"[0-9a-f]{16}")


class RedisRecords:
    """The records of one server or cluster."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, name: str) -> Record | None:
        """Return the contents of the hash of a name."""
        check_record(name)
        *fields, is_there, is_known, size = self._run(name, RECORD_READ, name)
        if not is_there and not is_known:
            return None
        if not (is_there and is_known):
            raise self._damaged(f"record {name!r}", "its hash is missing, or its name in the index")
        try:
            return _record(name, fields)
        except NOT_UNDERSTOOD as error:
            why = f"its hash, with {size} bytes of data, holds no record"
            raise self._damaged(f"record {name!r}", why) from error

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Replace a hash that has the version before, in one script."""
        check_write(name, data, version)
        token, sums = secrets.token_hex(8), _sum(name, version, data)
        answer = self._run(name, RECORD_WRITE, name, version, token, sums, data, version - 1)
        if answer < 0:
            raise self._damaged(f"record {name!r}", "its hash is missing, or its name in the index")
        return bool(answer)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted."""
        check_prefix(prefix)
        with self._naming_damage("the index of records"):
            found = [
                name.decode("utf-8", "replace") for name in self._connection.run(RECORD_NAMES, [RECORD_INDEX], prefix)
            ]
        if not all(is_record_name(name) for name in found):
            raise self._damaged("the index of records", "it has what is no name of a record")
        return found

    def remove(self, name: str) -> None:
        """Remove a hash and its name, in one script."""
        check_record(name)
        self._run(name, RECORD_REMOVE, name)

    def forget(self, name: str) -> None:
        """Remove a hash and its name, without a trace."""
        self.remove(name)

    def _run(self, name: str, script: Script, *arguments: Any) -> Any:
        with self._naming_damage(f"record {name!r}"):
            return self._connection.run(script, [record_key(name), RECORD_INDEX], *arguments)

    @contextmanager
    def _naming_damage(self, what: str) -> Iterator[None]:
        """Name the record in an error if its contents are damaged or it could not be reached."""
        try:
            yield
        except EngineError as error:
            if is_damage(error):
                raise self._damaged(what, str(error.__cause__)) from error
            raise EngineError(f"{what}: {error}") from error

    def _damaged(self, what: str, why: str) -> IllegalStateError:
        return IllegalStateError(
            f"{what} in {self._connection.server} is damaged: {why}; something else than dstream has changed it"
        )


def _record(name: str, fields: list[Any]) -> Record:
    version, token, sums, data = fields
    found = Record(checked_number(version.decode()), data)
    is_version = found.version > 0 and version == b"%d" % found.version
    if not is_version or not _TOKEN.fullmatch(token) or sums.decode() != _sum(name, *found):
        raise ValueError("it is not what was written there")
    return found


def _sum(name: str, version: int, data: bytes) -> str:
    """Return a checksum of a record, which no other record passes with."""
    return f"{crc32(data, crc32(f'{name} {version}'.encode())):08x}"


class RedisStorage:
    """A handle to the collections of one server or cluster."""

    def __init__(self, connection: Connection, pickles: Pickles) -> None:
        self._connection = connection
        self._pickles = pickles

    @staticmethod
    def connect(url: str, settings: Settings) -> RedisStorage:
        """Connect, and check whether the server persists acknowledged writes."""
        connection = Server.at(url).connect()
        try:
            connection.check_durability(settings.durability)
        except BaseException:
            connection.close()
            raise
        return RedisStorage(connection, Pickles(settings.pickle or "restricted", settings.allowed))

    @property
    def url(self) -> str:
        """The URL of the connection, without its password."""
        return self._connection.server.shown

    @property
    def records(self) -> RedisRecords:
        """The records next to the collections."""
        return RedisRecords(self._connection)

    def load_pickle(self, data: bytes) -> Any:
        """Load a pickle by the policy for values, or a pickle of the state of steps."""
        return for_state(self._pickles).load(data)

    def state_files(self, job: str) -> NoReturn:
        """Refuse: state is megabytes that are constantly rewritten, which do not belong in memory.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"{self._connection.server} keeps no state of steps, which the job {job} has: name a folder that all "
            "workers share, or an object store, with JobConfig(files_at=...)"
        )

    def create(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore:
        """Return the store of that name, created if it does not exist."""
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
                # `destroy` removes the description first, and may not have removed the name yet.
                pipe.exists(_meta(identity))
            alive = pipe.execute()
        return sorted(name for name, lives in zip(found, alive, strict=True) if lives)

    def vacuum(self, older_than: float) -> int:
        """Remove staged data that was not committed from all collections; destroyed ones leave no data."""
        removed = 0
        for kind, name in self.names():
            store = self.open(kind, name, Options())
            with suppress(CollectionDestroyedError):  # by another process, a moment ago
                removed += 0 if store is None else store.vacuum(older_than)
        return removed

    def close(self) -> None:
        """Return the connections to the pool; stores of this storage connect again if they are used."""
        self._connection.close()

    @property
    def _client(self) -> Any:
        return self._connection.client

    def _identity(self, kind: Kind, name: str) -> str:
        """Return the identity of a name; its collection may have been destroyed."""
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
        """Create a collection under the name, unless another client was faster."""
        identity = uuid.uuid4().hex
        shape = json.dumps(Shape.of(kind, name, options).to_json())
        types = types_of(Codec.of(kind, name, options, self._pickles))
        content = {"kind": kind, "name": name, "shape": shape, "types": types, "format": _FORMAT}
        with self._connection.server.speaking():
            # The description is written before the name, so that each client that finds the name can open the
            # collection.
            self._client.hset(_meta(identity), mapping=content)
            if not self._connection.run(REGISTER, [REGISTRY], f"{kind}:{name}", stale, identity):
                self._client.delete(_meta(identity))

    def _opened(self, kind: Kind, name: str, identity: str, options: Options) -> MapStore | ListStore | None:
        found = self._described(kind, name, identity)
        if found is None:
            return None
        shape, types = found
        shape.check(kind, name, options)
        collection = RedisCollection(self._connection.server, identity, kind, name, shape, options, self._pickles)
        settled = self._settled(collection, types)
        if settled is None:
            return None
        make = RedisList if kind == "list" else RedisMap
        return make(self._connection, collection, settled)

    def _described(self, kind: Kind, name: str, identity: str) -> tuple[Shape, bytes] | None:
        """Return how a collection was made, and its types; None if it is no more."""
        try:
            with self._connection.server.speaking():
                fields = ("kind", "name", "shape", "types", "format")
                there, called, shape, types, stored = self._client.hmget(_meta(identity), *fields)
            if types is None:
                return None
            is_its_own = (there, called) == (kind.encode(), name.encode())
            # A newer format may have other fields, so its number is compared before they are judged.
            if is_its_own or stored is not None:
                check_format(f"{kind} {name!r}", None if stored is None else stored.decode(errors="replace"), _FORMAT)
            if not is_its_own:
                raise ValueError(f"it describes {there!r:.50} {called!r:.200}")
            return Shape.from_json(json.loads(shape), kind), types
        except (*NOT_UNDERSTOOD, EngineError) as error:
            # A server that does not answer is no damage.
            if isinstance(error, EngineError) and "WRONGTYPE" not in str(error):
                raise
            raise IllegalStateError(
                f"{kind} {name!r} is damaged: {_meta(identity)} does not say how it was made: {error}"
            ) from error

    def _settled(self, collection: RedisCollection, types: bytes) -> bytes | None:
        """Decide open types from `options`, so that no other client decides otherwise."""
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
