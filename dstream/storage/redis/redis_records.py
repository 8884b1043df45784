"""`RedisRecords`: records on a server, each a hash that a script reads or replaces as a whole."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from dstream.errors import EngineError, IllegalStateError
from dstream.spi.records import Record
from dstream.storage.checking import NOT_UNDERSTOOD, number
from dstream.storage.record_names import check_prefix, check_record, check_write, is_record_name
from dstream.storage.redis.record_scripts import INDEX, NAMES, READ, REMOVE, WRITE, record_key
from dstream.storage.redis.redis_collection import is_damage
from dstream.storage.redis.scripts import Script
from dstream.storage.redis.server import Connection
from dstream.values.contexts import contextmanager

__all__ = ["RedisRecords"]

_TOKEN = re.compile(rb"[0-9a-f]{16}")


class RedisRecords:
    """The records of one server or cluster."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, name: str) -> Record | None:
        """Return what the hash of a name holds."""
        check_record(name)
        *fields, is_there, is_known, size = self._run(name, READ, name)
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
        answer = self._run(name, WRITE, name, version, token, sums, data, version - 1)
        if answer < 0:
            raise self._damaged(f"record {name!r}", "its hash is missing, or its name in the index")
        return bool(answer)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin in some way, sorted."""
        check_prefix(prefix)
        with self._naming_damage("the index of records"):
            found = [name.decode("utf-8", "replace") for name in self._connection.run(NAMES, [INDEX], prefix)]
        if not all(is_record_name(name) for name in found):
            raise self._damaged("the index of records", "it has what is no name of a record")
        return found

    def remove(self, name: str) -> None:
        """Remove a hash and its name, in one script."""
        check_record(name)
        self._run(name, REMOVE, name)

    def forget(self, name: str) -> None:
        """Remove a hash and its name, of which nothing stays anyway."""
        self.remove(name)

    def _run(self, name: str, script: Script, *arguments: Any) -> Any:
        with self._naming_damage(f"record {name!r}"):
            return self._connection.run(script, [record_key(name), INDEX], *arguments)

    @contextmanager
    def _naming_damage(self, what: str) -> Iterator[None]:
        """Say which record it was that holds something else, or could not be reached."""
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
    found = Record(number(version.decode()), data)
    is_version = found.version > 0 and version == b"%d" % found.version
    if not is_version or not _TOKEN.fullmatch(token) or sums.decode() != _sum(name, *found):
        raise ValueError("it is not what was written there")
    return found


def _sum(name: str, version: int, data: bytes) -> str:
    """Return a checksum of a record, which no other record passes with."""
    return f"{crc32(data, crc32(f'{name} {version}'.encode())):08x}"
