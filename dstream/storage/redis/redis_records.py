"""Records on a server: a hash for each, and the names of all of them in a set."""

from __future__ import annotations

from typing import Any

from dstream.errors import EngineError, IllegalStateError
from dstream.spi.records import Record
from dstream.storage.record_frames import checked_name, framed, unframed
from dstream.storage.redis.scripts import Script
from dstream.storage.redis.server import Connection

__all__ = ["RedisRecords"]

_TAG = "{dst:records}"
_NAMES = f"{_TAG}:names"

_WRITE = Script.bare("""
-- Write a version, provided that it is the one behind the last.
local last = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if last + 1 ~= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'data', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
return 1
""")

_REMOVE = Script.bare("""
redis.call('UNLINK', KEYS[1])
redis.call('SREM', KEYS[2], ARGV[1])
return 1
""")


class RedisRecords:
    """Records of one server or cluster, all on one node of it. None of them expires."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, name: str) -> Record | None:
        """Return the last version of a record."""
        try:
            with self._connection.server.speaking():
                version, kept = self._client.hmget(_key(name), "version", "data")
        except EngineError as error:
            if "WRONGTYPE" not in str(error):
                raise
            raise IllegalStateError(f"the record {name} is damaged: {_key(name)} is no hash") from error
        if version is None and kept is None:
            return None
        if version is None or kept is None or not version.isdigit() or len(version) > 15:
            raise IllegalStateError(f"the record {name} is damaged: {_key(name)} has no version and data")
        return Record(int(version), unframed(name, int(version), kept))

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Write a version unless somebody else has."""
        kept = framed(checked_name(name), version, data)
        with self._connection.server.speaking():
            return bool(self._connection.run(_WRITE, [_key(name), _NAMES], name, version, kept))

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with a prefix, sorted."""
        with self._connection.server.speaking():
            found = [name.decode(errors="replace") for name in self._client.smembers(_NAMES)]
        return sorted(checked_name(name) for name in found if name.startswith(prefix))

    def remove(self, name: str) -> None:
        """Remove a record."""
        with self._connection.server.speaking():
            self._connection.run(_REMOVE, [_key(checked_name(name)), _NAMES], name)

    @property
    def _client(self) -> Any:
        return self._connection.client


def _key(name: str) -> str:
    return f"{_TAG}:{checked_name(name)}"
