"""`socket_lines(durable=True)`: stored first, then read; against servers that do what the test tells them."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime

import pytest

import dstream as ds
from collectors import counting
from dstream.connectors.sockets import LineReceiver
from dstream.errors import IllegalStateError, SourceError
from dstream.spi import Source, StreamSource
from dstream.windows import tumbling
from reducers import to_ilist
from sources import socket_lines
from tests.jobs.unbounded.streams import eventually


@pytest.fixture(params=["lake", "memory"])
def context(request, tmp_path):
    """A context on each kind of storage that needs no server."""
    with ds.connect(engine="local", storage=tmp_path if request.param == "lake" else "memory:") as context:
        yield context


class Server:
    """Accepts connections one after another, and sends what it is told."""

    def __init__(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.listening.settimeout(20)
        self.port = self.listening.getsockname()[1]
        self.connections = []

    def accept(self):
        self.connections.append(self.listening.accept()[0])

    def send(self, text, encoding="utf-8"):
        self.connections[-1].sendall(text.encode(encoding))

    def hang_up(self):
        self.connections[-1].close()

    def reset(self):
        self.connections[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.hang_up()


@pytest.fixture
def server():
    """A server whose sockets are closed at the end."""
    server = Server()
    yield server
    for each in [server.listening, *server.connections]:
        each.close()


def lines_of(server, context, **options):
    """Open the source, and let the server accept its connection."""
    source = socket_lines("127.0.0.1", server.port, durable="lines", **options).opened(context)
    source.reach(source.begin())
    server.accept()
    return source


def awaited(job, count):
    """Read until so many lines have come, or ten seconds went by."""
    lines, last = [], time.monotonic() + 10
    while len(lines) < count and time.monotonic() < last:
        lines += job.news()
    return lines


def test_lines_are_stored_and_read(context, server, follow):
    """Whole ones; a line break may be cut in two."""
    job = follow(lines_of(server, context))
    server.send("one\r")
    assert awaited(job, 0) == []
    server.send("\ntwo\rth")
    assert awaited(job, 2) == ["one", "two"]
    server.send("ree\n")

    assert awaited(job, 1) == ["three"]
    assert list(context.get_list("lines")) == ["one", "two", "three"]


def test_what_was_stored_is_read_again(context, server, follow):
    """By a job that goes on, with another connection; it begins where it stood."""
    first = follow(lines_of(server, context))
    server.send("a\nb\n")
    assert awaited(first, 2) == ["a", "b"]
    second = follow(lines_of(server, context))
    second.offsets = {"lines": 1}
    server.send("c\n")

    assert awaited(second, 2) == ["b", "c"]


def test_it_ends_when_the_server_does(context, server, follow):
    """All that was sent is given before, also a last line without an end."""
    source = lines_of(server, context)
    job = follow(source)
    server.send("a\nb")
    server.hang_up()

    assert awaited(job, 2) == ["a", "b"]
    assert source.reach({"lines": 2}) == {}
    assert source.reach({"lines": 1}) == {"lines": 2}


def test_a_job_that_is_behind_lets_the_server_wait(context, server, monkeypatch):
    """Nothing more is stored while enough lines wait in the list; a limit bounds a range."""
    monkeypatch.setattr("dstream.connectors.sockets.ENOUGH", 2)
    source = lines_of(server, context)
    server.send("a\nb\n")
    while source.reach({"lines": 0}) != {"lines": 2}:
        pass
    server.send("c\n")

    assert [source.reach({"lines": 0})["lines"] for _ in range(3)] == [2, 2, 2]
    assert source.reach({"lines": 0}, most=1) == {"lines": 1}
    while source.reach({"lines": 1}) != {"lines": 3}:
        pass


def test_a_failure_names_the_source(context, server, follow):
    """What is not in the encoding; a server that is gone; a list that was destroyed."""
    job = follow(lines_of(server, context))
    server.send("ä\n", "latin-1")
    with pytest.raises(
        SourceError, match=r"socket_lines\(.*, durable='lines'\): what comes behind line 0 is not utf-8"
    ):
        awaited(job, 1)
    server.listening.close()
    with pytest.raises(SourceError, match="cannot connect"):
        job.news()
    context.get_list("lines").destroy()
    with pytest.raises(SourceError, match="destroyed"):
        job.news()


def test_lines_in_front_of_a_failure_are_stored(context, server, follow):
    """A connection that is cut is told behind what has come before; then it connects again."""
    job = follow(lines_of(server, context))
    server.send("a\nb\nc")
    server.reset()

    assert awaited(job, 2) == ["a", "b"]
    with pytest.raises(SourceError, match="the connection was cut behind line 2: "):
        job.news()
    job.news()
    server.accept()
    server.send("d\n")
    assert awaited(job, 1) == ["d"]
    assert list(context.get_list("lines")) == ["a", "b", "d"]


def test_a_receiver_closes_a_connection_that_failed(server):
    """It connects again for each retry, and a server that sends no lines for hours would use up all descriptors."""
    receiver, before = LineReceiver("127.0.0.1", server.port, "utf-8", "lines"), open_descriptors()
    for _ in range(3):
        receiver.arrived()
        server.accept()
        server.send("ä\n", "latin-1")
        with pytest.raises(SourceError, match="is not utf-8"):
            eventually(receiver.arrived)
        server.hang_up()

    # Others, such as a session that has ended, may let go of some meanwhile.
    assert open_descriptors() <= before


def open_descriptors():
    """Return the number of open files and sockets of this process."""
    return len(os.listdir("/dev/fd"))


def test_lines_that_are_gone_are_an_error(context, server):
    """Somebody has shortened the list."""
    source = lines_of(server, context)
    with pytest.raises(SourceError, match="the lines from 0 to 3 are not in the list any more"):
        source.split("lines", 0, 3)
    with pytest.raises(SourceError, match="'x' is no place of a line"):
        source.reach({"lines": "x"})
    with pytest.raises(SourceError, match="there is no partition 'other'"):
        source.split("other", 0, 0)


def test_a_job_ends_with_its_server(context, server):
    """All lines are written first, also the last one, which has no line break."""
    pipeline = ds.Pipeline()
    pipeline.read_from(socket_lines("127.0.0.1", server.port, durable="lines")).write_to(to_ilist("read"))
    with context.new_job(pipeline, name="lines") as job:
        server.accept()
        server.send("one\ntwo")
        server.hang_up()
        job.join(timeout=20)

    assert context.get_list("read").copy() == ["one", "two"]


def test_a_job_connects_again(context, server):
    """A connection that is cut is no fault of the pipeline: the job starts again, and goes on in the list."""
    pipeline = ds.Pipeline()
    pipeline.read_from(socket_lines("127.0.0.1", server.port, durable="lines")).write_to(to_ilist("read"))
    with context.new_job(pipeline, config=ds.JobConfig(auto_restart=(9, 0.01))) as job:
        server.accept()
        server.send("one\n")
        eventually(lambda: context.get_list("read").copy() == ["one"])
        server.reset()
        server.accept()
        server.send("two")
        server.hang_up()
        job.join(timeout=20)

    assert (context.get_list("read").copy(), job.metrics().runs) == (["one", "two"], 2)


@pytest.mark.parametrize(("start", "read"), [("oldest", ["one", "two"]), ("current", ["two"])])
def test_a_new_job_begins_where_start_says(context, server, start, read):
    """With all lines of the list, or behind those that another job has stored."""
    context.get_list("lines").append("one")
    pipeline = ds.Pipeline()
    lines = socket_lines("127.0.0.1", server.port, durable="lines", start=start)
    pipeline.read_from(lines).write_to(to_ilist("read"))
    with context.new_job(pipeline) as job:
        server.accept()
        server.send("two")
        server.hang_up()
        job.join(timeout=20)

    assert context.get_list("read").copy() == read
    assert context.get_list("lines").copy() == ["one", "two"]


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"start": "current"}, ValueError, "start='current' needs durable=True: a socket sends nothing twice"),
        ({"durable": True, "start": "latest"}, ValueError, "start must be 'oldest', 'current'"),
        ({"durable": True, "start": datetime(2026, 1, 1)}, ValueError, "lines of a socket have no time of their own"),
        ({"durable": True, "start": 3}, TypeError, "start must be 'oldest', 'current'"),
    ],
)
def test_start_is_checked(more, error, said):
    """At the call."""
    with pytest.raises(error, match=said):
        socket_lines("h", 1, **more)
    assert repr(socket_lines("h", 1, durable=True, start="current")).endswith("durable=True, start='current')")


def windows_over(lines):
    """Return the pipeline that counts the lines of each second."""
    pipeline = ds.Pipeline()
    timed = pipeline.read_from(lines).map(int).add_timestamps(lambda number: number)
    timed.window(tumbling(1000)).aggregate(counting()).write_to(to_ilist("windows"))
    return pipeline


@pytest.mark.parametrize("durable", [False, "lines"])
def test_windows_close_while_the_server_sends(context, server, durable):
    """Their results do not wait for its end, whether lines are stored or not."""
    pipeline = windows_over(socket_lines("127.0.0.1", server.port, durable=durable))
    with context.new_job(pipeline) as job:
        server.accept()
        server.send("0\n100\n1100\n")
        eventually(lambda: [each.result for each in context.get_list("windows")] == [2])
        server.send("2500\n")
        eventually(lambda: [each.result for each in context.get_list("windows")] == [2, 1])
        server.hang_up()
        job.join(timeout=20)

    assert [(each.start, each.result) for each in context.get_list("windows")] == [(0, 2), (1000, 1), (2000, 1)]


def test_a_stream_of_lines_goes_on_behind_those_that_were_read(context, server):
    """It connects again after a failure, and what was read is not read again."""
    pipeline = ds.Pipeline()
    lines = pipeline.read_from(socket_lines("127.0.0.1", server.port)).add_timestamps(lambda line: 0)
    lines.write_to(to_ilist("read"))
    with context.new_job(pipeline, config=ds.JobConfig(auto_restart=(9, 0.01))) as job:
        server.accept()
        server.send("one\n")
        eventually(lambda: context.get_list("read").copy() == ["one"])
        server.reset()
        server.accept()
        server.send("two\nthree")
        server.hang_up()
        job.join(timeout=20)

    assert context.get_list("read").copy() == ["one", "two", "three"]


def test_lines_that_were_read_are_forgotten(server):
    """A stream of lines that is not stored keeps those alone that no committed epoch has read."""
    lines = socket_lines("127.0.0.1", server.port).as_stream()
    lines.reach(lines.begin())
    server.accept()
    server.send("a\nb\nc\n")
    eventually(lambda: lines.reach({"lines": 0}) == {"lines": 3})

    assert lines.reach({"lines": 0}, 2) == {"lines": 2}
    assert (list(lines.split("lines", None, 2).read()), lines.reach({"lines": 2})) == (["a", "b"], {"lines": 3})
    assert list(lines.split("lines", 2, 3).read()) == ["c"]
    with pytest.raises(SourceError, match="the lines from 0 to 2 are not in the list any more"):
        lines.split("lines", 0, 2)


def test_it_is_a_source_without_an_end(server):
    """Which needs a list; without `durable` it is one that ends."""
    source = socket_lines("h", 1, durable=True)

    assert (isinstance(source, StreamSource), isinstance(source, Source)) == (True, False)
    assert isinstance(socket_lines("h", 1), Source)
    assert (source.name, repr(source)) == ("socket_lines h:1", "socket_lines('h', 1, durable=True)")
    for ask in source.begin, lambda: source.reach({}), lambda: source.split("lines", 0, 1):
        with pytest.raises(IllegalStateError, match=r"needs a list, which \.opened\(context\) finds"):
            ask()


@pytest.mark.parametrize(
    ("durable", "error", "said"),
    [
        (1, TypeError, "durable must be True, False or the name of a list, not int"),
        ("", ValueError, "durable must not be empty"),
    ],
)
def test_durable_is_checked(durable, error, said):
    """At the call."""
    with pytest.raises(error, match=said):
        socket_lines("h", 1, durable=durable)
