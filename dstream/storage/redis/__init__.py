"""The storage over the network: maps, lists and caches on a Redis or Valkey server, or a cluster of them.

- `server` connects, `scripts` has the scripts that run inside the server, `collection` has the keys of a collection.
- `catalog` finds collections by name; `maps` and `lists` are the stores and the jobs that write to them, `staging` has
  the keys that tasks write.

All keys of a collection share one hash tag, so they are on one node of a cluster and a script may change them together.
A script makes each operation atomic: no other command runs meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dstream.base.environment import pip_install
from dstream.errors import SetupError
from dstream.spi.store import Settings

if TYPE_CHECKING:
    from dstream.storage.redis.catalog import RedisStorage

__all__ = ["open_redis"]


def open_redis(url: str, settings: Settings) -> RedisStorage:
    """Connect to a server, or to a cluster through any of its nodes.

    Args:
        url: `redis://`, `rediss://` (TLS) or `unix://`, as redis-py understands it.
        settings: which pickled values are loaded; unset, pickles of plain types and of `allowed` classes, since every
            client of the server can write.

    Raises:
        SetupError: redis-py is missing, the server refuses us, or it cannot guarantee the settings.
        EngineError: the server does not answer.
    """
    try:
        import redis  # noqa: F401
    except ImportError as error:
        raise SetupError(f"storage in Redis needs the package redis: {pip_install('redis')}") from error
    # After the check, since the catalog imports redis, which is optional.
    from dstream.storage.redis.catalog import RedisStorage

    return RedisStorage.connect(url, settings)
