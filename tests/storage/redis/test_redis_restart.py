"""Servers end, too: what they acknowledged is there when they are back."""

from __future__ import annotations

import operator
import select
import socket
import socketserver
import threading

import pytest

import dstream as ds
from dstream.errors import EngineError
from dstream.spi.store import Options, Splice
from dstream.storage import Settings, open_storage
from dstream.storage.redis.server import Server
from reducers import to_ilist
from sources import imap, imap_journal
from tests.jobs.unbounded.streams import eventually, pipeline_of


def test_redis_killed_and_restarted_keeps_what_it_acknowledged(start, written):
    """After SIGKILL of the server all changes are there, and old handles work on."""
    server = start("--appendonly", "yes", "--appendfsync", "always")
    storage = open_storage(server.url, Settings())
    store = storage.create("map", "m", Options(journal=True))
    items = storage.create("list", "l", Options())
    for n in range(100):
        store.update(["n", n], lambda old, n=n: [n, n])
        items.extend([n])
    items.edit(lambda view: Splice(0, 98, []))
    job = store.begin("job", merge=operator.add)
    job.commit(written(job, {"n": 1000}))
    server.kill()
    with pytest.raises(EngineError, match="does not answer"):
        store.get_many(["n"])
    server.start()

    assert store.get_many(["n", 5]) == [1099, 5]
    assert (store.size(), items.read(0, 9)) == (101, [98, 99])
    assert len(list(store.journal(0))) == 201
    assert store.begin("job").is_done
    assert store.update(["n"], lambda old: [old[0] + 1]) == [1099]


def test_a_job_goes_on_when_its_redis_is_back(start, tmp_path):
    """It reads a journal of a server that is killed: it starts again, and has each event once."""
    server = start("--appendonly", "yes", "--appendfsync", "always")
    source = imap_journal("m", storage=server.url, projection=lambda event: event.new_value)
    with ds.connect(engine="local", storage=tmp_path) as context:
        ages = context.elsewhere(server.url).get_map("m", journal=True)
        ages["a"] = 1
        config = ds.JobConfig(auto_restart=(1000, 0.02))
        job = context.new_job(pipeline_of(source, to_ilist("read")), config=config)
        eventually(lambda: context.get_list("read").copy() == [1])
        server.kill()
        eventually(lambda: job.metrics().runs > 1)
        with pytest.raises(EngineError, match=rf"Redis at redis://127.0.0.1:{server.port}/0 does not answer: "):
            context.read(imap("m", storage=server.url)).to_list()
        server.start()
        ages["b"] = 2
        eventually(lambda: len(context.get_list("read")) > 1)
        job.cancel()

        assert context.get_list("read").copy() == [1, 2]


def test_redis_that_forgot_its_scripts_gets_them_again(storage, server):
    """A server that was restarted knows no scripts; nobody notices."""
    store = storage.create("map", "m", Options())
    store.update(["k"], lambda old: [1])
    server.script_flush()

    assert store.update(["k"], lambda old: [2]) == [1]
    assert store.get_many(["k"]) == [2]


class Losing(socketserver.ThreadingTCPServer):
    """Stands before a server, hands everything on, and loses one answer when it is told to."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handing)
        self.port = port
        self.loses = False


class _Handing(socketserver.BaseRequestHandler):
    server: Losing

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.port)) as upstream:
            others = {self.request: upstream, upstream: self.request}
            while True:
                for end in select.select(list(others), [], [])[0]:
                    data = end.recv(1_000_000)
                    if not data or (end is upstream and self.server.loses):
                        self.server.loses = self.server.loses and not data
                        return
                    others[end].sendall(data)


@pytest.fixture
def losing(redis_server, server):
    """A way to the server of the test run on which answers are lost."""
    with Losing(redis_server.port) as proxy:
        threading.Thread(target=proxy.serve_forever).start()
        yield proxy
        proxy.shutdown()


def test_redis_change_whose_answer_was_lost_is_not_made_twice(losing):
    """Nobody knows then whether the change happened, so it is an error, which says so."""
    storage = open_storage(f"redis://127.0.0.1:{losing.server_address[1]}", Settings())
    items = storage.create("list", "l", Options())
    items.extend(["before"])
    assert items.read(0, 9) == ["before"]
    losing.loses = True

    with pytest.raises(EngineError, match="not known"):
        items.extend(["once"])
    assert items.read(0, 9) == ["before", "once"]
    storage.close()


@pytest.mark.parametrize("servers", ["redis_server", "redis_cluster"])
def test_redis_client_sends_no_command_again(request, servers):
    """redis-py would do so by itself, on a cluster even if it is not asked to."""
    nodes = request.getfixturevalue(servers)
    client = Server.at((nodes[0] if isinstance(nodes, list) else nodes).url).shared().client
    retry = client.retry if isinstance(nodes, list) else client.get_retry()

    assert retry.get_retries() == 0
