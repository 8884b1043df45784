"""`socket_lines` and `to_socket`, against servers of a thread."""

from __future__ import annotations

import queue
import socket
import threading

import pytest

from dstream.connectors.sockets import connected_to
from dstream.errors import SinkError, SourceError
from reducers import to_socket
from sources import socket_lines


@pytest.fixture
def serve():
    """Serve each connection with a function, from a thread; the port is what it returns."""
    listening, threads = [], []

    def start(handle):
        server = socket.create_server(("127.0.0.1", 0))

        def run():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    handle(connection)

        listening.append(server)
        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return server.getsockname()[1]

    yield start
    for server in listening:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    for thread in threads:
        thread.join(10)


def test_lines_are_read_until_the_server_closes(engine, serve):
    """All kinds of ends; the last line needs none."""
    port = serve(lambda connection: connection.sendall("one\r\ntwo é\n\nthr\ree".encode()))

    assert engine.context.read(socket_lines("127.0.0.1", port)).to_list() == ["one", "two é", "", "thr", "ee"]


def test_lines_come_as_they_arrive(serve, local_context):
    """Whoever wants one does not wait for the next."""
    is_over = threading.Event()

    def handle(connection):
        connection.sendall(b"now\n")
        is_over.wait(10)

    assert local_context.read(socket_lines("127.0.0.1", serve(handle))).find_first().get() == "now"
    assert not is_over.is_set()
    is_over.set()


def test_what_is_not_in_the_encoding_is_an_error(serve, local_context):
    """It says behind which line."""
    port = serve(lambda connection: connection.sendall(b"a\n" * 10_000 + b"\xff\n"))

    with pytest.raises(SourceError, match=r"socket_lines\(.*\): what comes behind line [\d,]+ is not utf-8"):
        local_context.read(socket_lines("127.0.0.1", port)).to_list()
    assert local_context.read(socket_lines("127.0.0.1", port, "latin-1")).count() == 10_001


def test_a_connection_that_is_cut_is_an_error(serve, local_context):
    """It is not the end of the lines."""
    is_read = threading.Event()

    def cut(connection):
        connection.sendall(b"a\n")
        is_read.wait(10)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    lines = socket_lines("127.0.0.1", serve(cut)).read()
    assert next(lines) == "a"
    is_read.set()
    with pytest.raises(SourceError, match=r"the connection was cut behind line 1"):
        next(lines)


def test_a_host_that_is_gone_is_noticed(serve):
    """It cuts no connection, so after a minute without a word the machine asks whether it is there."""
    port = serve(lambda connection: connection.recv(1))
    with connected_to("127.0.0.1", port) as connection:
        options = {name: connection.getsockopt(*place) for name, place in ASKING.items()}

    assert options == {"asks": 1, "after": 60, "every": 10, "times": 6}


ASKING = {
    "asks": (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
    "after": (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
    "every": (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
    "times": (socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
}


def unused_port():
    """Return a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_nobody_listening_is_an_error(local_context):
    """Of the source, and of the sink."""
    port = unused_port()
    with pytest.raises(SourceError, match=rf"socket_lines\('127.0.0.1', {port}\): cannot connect: .*refused"):
        local_context.read(socket_lines("127.0.0.1", port)).to_list()
    with pytest.raises(SinkError, match=rf"to_socket\('127.0.0.1', {port}\): the server is not there.*refused"):
        local_context.stream([1]).collect(to_socket("127.0.0.1", port))


def test_items_are_sent_as_lines(engine, serve):
    """Each partition over a connection of its own, in order."""
    received = queue.Queue()

    def handle(connection):
        with connection.makefile("rb") as stream:
            received.put(stream.read().decode())

    port = serve(handle)
    engine.stream([], 2).collect(to_socket("127.0.0.1", port))
    engine.stream(["é", "b", "c"], 1).collect(to_socket("127.0.0.1", port, str.upper))
    assert received.get(timeout=10) == "É\nB\nC\n"
    engine.stream(range(4), 2).collect(to_socket("127.0.0.1", port))
    lines = []
    while len(lines) < 4:
        lines += received.get(timeout=10).splitlines()

    assert sorted(lines) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "utf-16-le", "iso2022_jp", "hz", "utf-7"])
def test_lines_of_any_encoding_are_one_text(serve, local_context, encoding):
    """A byte order mark is at the beginning, and there alone."""
    received = queue.Queue()

    def handle(connection):
        with connection.makefile("rb") as stream:
            received.put(stream.read())

    local_context.stream(["a", "\u65e5", "c"], 1).collect(to_socket("127.0.0.1", serve(handle), encoding=encoding))

    assert received.get(timeout=10) == "a\n\u65e5\nc\n".encode(encoding)


def test_a_text_with_a_line_break_is_refused(serve, local_context):
    """Its reader would find two lines; so is one that is no text, and one that cannot be encoded."""
    port = serve(lambda connection: connection.recv(1))
    with pytest.raises(ValueError, match="line break"):
        local_context.stream(["a\nb"]).collect(to_socket("127.0.0.1", port))
    with pytest.raises(TypeError, match="to_string must give a str, not int"):
        local_context.stream([1]).collect(to_socket("127.0.0.1", port, abs))
    with pytest.raises(UnicodeEncodeError):
        local_context.stream(["é"]).collect(to_socket("127.0.0.1", port, encoding="ascii"))
    with pytest.raises(UnicodeEncodeError, match="read as another character"):
        local_context.stream(["¥"]).collect(to_socket("127.0.0.1", port, encoding="shift_jis"))


def test_a_server_that_leaves_is_an_error(serve, local_context):
    """As soon as the machine says so."""
    port = serve(lambda connection: None)

    with pytest.raises(SinkError, match="has cut the connection"):
        local_context.stream(["x" * 1000] * 100_000).collect(to_socket("127.0.0.1", port))


@pytest.mark.parametrize("make", [socket_lines, to_socket])
def test_wrong_addresses_are_refused_at_the_call(make):
    """Before anything connects."""
    with pytest.raises(ValueError, match="port must be between 1 and 65,535, not 0"):
        make("h", 0)
    with pytest.raises(TypeError, match="port must be an int, not bool"):
        make("h", True)
    with pytest.raises(LookupError):
        make("h", 1, encoding="no-such")
