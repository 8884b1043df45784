"""`Server`: the location of Redis, sent to tasks. `Connection`: the connection of one process to it."""

from __future__ import annotations

import contextlib
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis.exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from dstream.base.threads import RenewedLock
from dstream.base.urls import resolved_url, scrub, shown_url
from dstream.errors import EngineError, SetupError
from dstream.spi.store import Durability
from dstream.storage.redis.scripts import Script

__all__ = ["Connection", "DurabilityWarning", "Server"]


TIMEOUT = 60.0
"""Seconds for a response, unless the URL has `socket_timeout=...`: publishing a large job takes longer than 5."""

BUSY_PAUSE = 0.05


class DurabilityWarning(UserWarning):
    """Acknowledged writes of the server may be lost when it ends."""


@dataclass(frozen=True)
class Server:
    """A server, or a cluster that this node belongs to.

    Attributes:
        url: where it is, the password or a reference to it included, so it is never shown.
        shown: the URL without its password.
        is_cluster: keys are spread over several nodes.
    """

    url: str = field(repr=False)
    shown: str
    is_cluster: bool = False

    @staticmethod
    def at(url: str) -> Server:
        """Read the kind and version of the server at `url`."""
        server = Server(url, shown_url(url))
        # A client for a single server, since one for a cluster cannot be made before it is known to be one.
        with contextlib.closing(server.connect()) as connection, server.speaking():
            is_cluster = bool(int(connection.client.info("cluster").get("cluster_enabled", 0)))
        if is_cluster and url.startswith("unix:"):
            raise SetupError(f"{server} is a node of a cluster; connect to a cluster by host and port")
        return Server(url, server.shown, is_cluster)

    def __str__(self) -> str:
        return f"Redis at {self.shown}"

    def connect(self) -> Connection:
        """Open a connection; nothing is sent before it is used."""
        # redis-py would send a command again that broke off; a change might then happen twice.
        arguments: dict[str, Any] = {"retry": Retry(NoBackoff(), 0), "socket_timeout": TIMEOUT}
        url = resolved_url(self.url)
        with self.speaking():
            make: Any = redis.RedisCluster if self.is_cluster else redis.Redis
            with contextlib.suppress(ValueError):  # the error about an invalid URL quotes the password
                return Connection(self, make.from_url(url, **arguments))
        raise ValueError(
            f"{self.shown} is not the URL of a Redis server; it reads redis://user:password@host:port/number, and a "
            "slash, #, ?, @ or % in a user or a password is written as %2F, %23, %3F, %40 or %25"
        )

    def shared(self) -> Connection:
        """Return the connection that all tasks of this process use, opened by the first of them."""
        with _opening:
            if self not in _shared:
                _shared[self] = self.connect()
            return _shared[self]

    @contextlib.contextmanager
    def speaking(self) -> Iterator[None]:
        """Turn errors of redis-py into ours; the message names the server.

        Raises:
            SetupError: the server refuses us.
            EngineError: it does not answer, or cannot run the command.
        """
        try:
            yield
        except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
            scrub(error, self.url)
            raise SetupError(f"{self} refuses the connection: {error}") from error
        except (redis.ConnectionError, redis.TimeoutError) as error:
            scrub(error, self.url)
            raise EngineError(
                f"{self} does not answer: {error}; check that it runs and that its address is right. "
                "Whether a change that was under way has happened is not known"
            ) from error
        except (redis.RedisError, redis.exceptions.RedisClusterException) as error:
            scrub(error, self.url)
            raise EngineError(f"{self} failed: {error}") from error


_shared: dict[Server, Connection] = {}
_opening = RenewedLock()


class Connection:
    """Runs scripts and commands on a server. Any number of threads may use it."""

    def __init__(self, server: Server, client: Any) -> None:
        self.server = server
        self.client = client
        # In a cycle of garbage, Python may finalize a socket before the client that would close it, and warn of it.
        weakref.finalize(self, _close, client, server.is_cluster).atexit = False

    def run(self, script: Script, keys: Sequence[str], *arguments: Any) -> Any:
        """Run a script, which is atomic; `keys` belong to one collection."""
        with self.server.speaking():
            while True:
                try:
                    return self.client.evalsha(script.digest, len(keys), *keys, *arguments)
                except redis.exceptions.NoScriptError:
                    # The server has restarted, or never seen the script; EVAL also caches it for the next time.
                    return self.client.eval(script.source, len(keys), *keys, *arguments)
                except redis.ResponseError as error:
                    if not str(error).startswith("BUSY "):
                        raise
                    # A script of another client runs for more than five seconds; this one has not started.
                    time.sleep(BUSY_PAUSE)

    @contextlib.contextmanager
    def pipeline(self) -> Iterator[Any]:
        """Collect commands, which its `execute` sends together."""
        # Without MULTI: atomic changes are scripts, and pipelines read, or write keys that are not read yet.
        with self.server.speaking(), self.client.pipeline(transaction=False) as pipe:
            yield pipe

    def check_durability(self, wanted: Durability) -> None:
        """Warn, or refuse, if the server does not persist acknowledged writes.

        Raises:
            SetupError: `"power"` is requested, and the server does not write every change to the disk immediately.
        """
        nodes = {"target_nodes": redis.RedisCluster.PRIMARIES} if self.server.is_cluster else {}
        with self.server.speaking():
            found = self.client.info("persistence", **nodes)
            # A cluster answers with a dict for each node.
            infos = [found] if "aof_enabled" in found else list(found.values())
            self._check_eviction(wanted, nodes)
        if not all(int(info.get("aof_enabled", 1)) for info in infos):
            self._warn(wanted)
        elif wanted == "power" and self._appendfsync(nodes) != {"always"}:
            raise SetupError(f'{self.server} has no "appendfsync always", which durability="power" needs')

    def _check_eviction(self, wanted: Durability, nodes: dict[str, Any]) -> None:
        found = self.client.info("memory", **nodes)
        infos = [found] if "used_memory" in found else list(found.values())
        evicting = [info for info in infos if str(info.get("maxmemory_policy")).startswith("allkeys")]
        if not any(int(info.get("maxmemory", 0)) for info in evicting):
            return
        lost = f"{self.server} evicts keys when its memory is full, and with them parts of collections"
        if wanted == "power":
            raise SetupError(f'{lost}; durability="power" needs "maxmemory-policy noeviction"')
        warnings.warn(f'{lost}; set "maxmemory-policy noeviction" there', DurabilityWarning, stacklevel=5)

    def _warn(self, wanted: Durability) -> None:
        lost = f"{self.server} keeps no append-only file: all that it acknowledged is lost when it ends"
        if wanted == "power":
            raise SetupError(f'{lost}; durability="power" needs "appendonly yes" and "appendfsync always"')
        warnings.warn(f'{lost}; set "appendonly yes" there', DurabilityWarning, stacklevel=5)

    def _appendfsync(self, nodes: dict[str, Any]) -> set[str]:
        try:
            found = self.client.config_get("appendfsync", **nodes)
        except redis.ResponseError as error:
            raise SetupError(
                f'{self.server} does not report its "appendfsync", and durability="power" needs it'
            ) from error
        configs = [found] if "appendfsync" in found else list(found.values())
        return {config["appendfsync"] for config in configs}

    def close(self) -> None:
        """Return the connections."""
        _close(self.client, self.server.is_cluster)


def _close(client: Any, is_cluster: bool) -> None:
    client.close()
    if is_cluster:
        for node in client.get_nodes():  # redis-py (8.1) leaves open what it has to the nodes of a cluster.
            if node.redis_connection is not None:
                node.redis_connection.connection_pool.disconnect()
