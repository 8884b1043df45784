"""Connecting: what is refused, what is warned about, and that passwords stay hidden."""

from __future__ import annotations

import gc
import pickle
import socket
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from dstream.errors import EngineError, SetupError, UnsupportedError
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage

SECRET = "correct-horse"


def test_redis_package_that_is_missing_is_named(monkeypatch):
    """Without redis-py the message says what to install."""
    monkeypatch.setitem(sys.modules, "redis", None)

    with pytest.raises(SetupError, match=r"pip install 'dstream-spark\[redis\]'"):
        open_storage("redis://localhost", Settings())


@pytest.mark.parametrize(
    "url",
    [
        f"redis://user:{SECRET}@127.0.0.1:1/0",
        f"redis://:{SECRET}@127.0.0.1:1",
        f"redis://127.0.0.1:1?password={SECRET}&db=0",
        f"rediss://u:{SECRET}@127.0.0.1:1?ssl_password={SECRET}",
        f"unix:///no/socket?username=u&password={SECRET}",
    ],
)
def test_redis_that_does_not_answer_is_named_without_its_password(url):
    """The message has the address, and nothing secret."""
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:1|/no/socket") as caught:
        open_storage(url, Settings())

    assert "***" in str(caught.value)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__


def chain(error):
    """Return all that an exception and those that led to it say."""
    said = ""
    while error is not None:
        said += f"{error} {error!r} {getattr(error, '__notes__', '')} "
        error = error.__cause__ or error.__context__
    return said


@pytest.mark.parametrize("mark", ["/", "#", "?", "[", "℀", "@", "%"])
@pytest.mark.parametrize("url", ["redis://:{}x@127.0.0.1:1/0", "rediss://ada:x{}@127.0.0.1:1"])
def test_redis_password_that_is_not_quoted_is_hidden(url, mark):
    """Such a URL cannot be understood; what is said then quotes no part of the password."""
    with pytest.raises((ValueError, EngineError)) as caught:
        open_storage(url.format(f"correct{mark}horse"), Settings())

    assert "correct" not in chain(caught.value)
    assert "horse" not in chain(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_redis_that_quotes_the_password_is_not_repeated():
    """A server that does not know the command AUTH says with which arguments it was called."""
    answer = f"-ERR unknown command 'AUTH', with args beginning with: '{SECRET}'\r\n".encode()
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        port = listener.getsockname()[1]
        pool.submit(_answer_all, listener, answer)
        with pytest.raises(EngineError, match="unknown command") as caught:
            open_storage(f"redis://:{SECRET}@127.0.0.1:{port}/0", Settings())

    assert SECRET not in chain(caught.value)


def _answer_all(listener, answer):
    connection, _ = listener.accept()
    with connection:
        while connection.recv(4096):
            connection.sendall(answer)


def test_redis_password_is_used_and_hidden(start, monkeypatch):
    """The right password connects and shows nowhere; a wrong one is a setup error; a reference travels to tasks."""
    server = start("--appendonly", "yes", "--requirepass", SECRET)
    monkeypatch.setenv("REDIS_PASSWORD", SECRET)
    referred = open_storage(f"redis://:env:REDIS_PASSWORD@127.0.0.1:{server.port}/0", Settings())
    assert SECRET.encode() not in pickle.dumps(referred.create("map", "m", Options()).begin("job").writer)
    assert referred.url == f"redis://:env:REDIS_PASSWORD@127.0.0.1:{server.port}/0"
    storage = open_storage(f"redis://:{SECRET}@127.0.0.1:{server.port}/0", Settings())
    store = storage.create("map", "m", Options())
    split = store.splits(1)[0]

    assert storage.url == f"redis://:***@127.0.0.1:{server.port}/0"
    assert SECRET not in repr([storage, store, split, store.begin("job").writer])
    assert list(pickle.loads(pickle.dumps(split)).read()) == []
    with pytest.raises(SetupError, match=r"redis://:\*\*\*@.* refuses") as caught:
        open_storage(f"redis://:wrong-{SECRET}@127.0.0.1:{server.port}/0", Settings())
    assert SECRET not in str(caught.value)


def test_redis_without_append_only_file_is_warned_about(start):
    """What such a server acknowledges is lost when it ends; with durability="power" it is refused."""
    from dstream.storage.redis.server import DurabilityWarning

    url = start("--appendonly", "no").url

    with pytest.warns(DurabilityWarning, match=r"redis://127.*appendonly yes"):
        open_storage(url, Settings())
    with pytest.raises(SetupError, match="appendonly yes"):
        open_storage(url, Settings(durability="power"))


def test_redis_durability_power_needs_appendfsync_always(redis_server, start):
    """Writing to the disk once a second is not enough for "power"."""
    with pytest.raises(SetupError, match="appendfsync always"):
        open_storage(redis_server.url, Settings(durability="power"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_storage(start("--appendonly", "yes", "--appendfsync", "always").url, Settings(durability="power"))


def test_redis_cluster_durability_is_asked_of_every_node(redis_cluster):
    """One node that does not write at once is one too many."""
    with pytest.raises(SetupError, match="appendfsync always"):
        open_storage(redis_cluster[1].url, Settings(durability="power"))


def test_redis_over_a_unix_socket(start, tmp_path):
    """A server on the same machine may be reached by its socket."""
    path = tmp_path / "s"
    start("--appendonly", "yes", "--unixsocket", str(path))
    store = open_storage(f"unix://{path}", Settings()).create("list", "l", Options())
    store.extend([1, 2])

    assert [item for part in store.splits(1) for item in part.read()] == [1, 2]


def test_redis_loads_no_pickles_of_unknown_classes(storage):
    """Whoever reaches the server can write there, so pickles are restricted unless the user says otherwise."""
    store = storage.create("map", "m", Options())

    with pytest.raises(TypeError, match="trusted"):
        store.update(["k"], lambda old: [Options()])
    assert store.size() == 0


def test_redis_that_was_closed_connects_again(storage):
    """A store outlives the closing of its storage."""
    store = storage.create("map", "m", Options())
    storage.close()
    storage.close()

    assert store.update(["k"], lambda old: [1]) == [None]


def test_redis_connections_that_are_dropped_are_closed(redis_server, redis_cluster):
    """Also where a cycle with an exception keeps them until garbage is collected: no socket is left to warn of."""
    for url in (redis_server.url, redis_cluster[0].url):
        for _ in range(3):
            cycle = [open_storage(url, Settings()).create("map", "dropped", Options())]
            cycle += [_raised_by(cycle[0])]
            cycle[0].destroy()
            cycle.append(cycle)
        del cycle
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            gc.collect()
        assert found == []


def _raised_by(store):
    try:
        return store.update(["k"], lambda old: 1 / 0)
    except ZeroDivisionError as error:
        return error


def test_redis_that_evicts_keys_is_warned_about(start):
    """A server that may drop any key loses buckets in silence; with durability="power" it is refused."""
    from dstream.storage.redis.server import DurabilityWarning

    url = start("--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru").url

    with pytest.warns(DurabilityWarning, match=r"redis://127.*evicts keys.*noeviction"):
        open_storage(url, Settings())
    with pytest.raises(SetupError, match="noeviction"):
        open_storage(url, Settings(durability="power"))


def test_redis_keeps_no_state_of_steps(storage):
    """It is said at once, with what to do."""
    with pytest.raises(UnsupportedError, match=r"keeps no state of steps.*JobConfig\(files_at=\.\.\.\)"):
        storage.state_files("0123456789ab-01234567")
