"""`map_concurrent` against an HTTP server on this machine: fast, in order, within the rate, repeated where it fails."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dstream.gatherers import Retry, map_concurrent


class Service(ThreadingHTTPServer):
    """Answers `/name` with `name` after a while; `fails` says which names get a 503 the first time."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, pause=0.0, fails=lambda name: False):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pause, self.fails = pause, fails
        self.asked: list[tuple[float, str]] = []
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.shutdown()
        self.thread.join()
        self.server_close()

    def most_in_a_second(self):
        """Return how many requests at most came in any second."""
        times = sorted(when for when, _ in self.asked)
        return max(sum(start <= each < start + 1 for each in times) for start in times)


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self):
        name = self.path.removeprefix("/")
        is_first = all(name != other for _, other in self.server.asked) if self.server.fails(name) else False
        self.server.asked.append((time.monotonic(), name))
        time.sleep(self.server.pause)
        self.send_response(503 if is_first else 200)
        self.send_header("Content-Length", str(len(name)))
        self.end_headers()
        self.wfile.write(name.encode())

    def log_message(self, *args):
        pass


class Unavailable(Exception):
    """The service answered with 503."""


def plain(port):
    """Return a function that asks the service for a number."""

    def ask(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", f"/{number}")
            answer = connection.getresponse()
            if answer.status == 503:
                raise Unavailable(number)
            return int(answer.read())
        finally:
            connection.close()

    return ask


def asynchronous(port):
    """Return an async function that does the same."""

    async def ask(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(f"GET /{number} HTTP/1.0\r\n\r\n".encode())
            status = await reader.readline()
            if b" 503 " in status:
                raise Unavailable(number)
            answer = await reader.read()
            return int(answer.rpartition(b"\r\n")[2])
        finally:
            writer.close()

    return ask


@pytest.mark.parametrize("kind", [plain, asynchronous])
def test_a_thousand_calls_take_little_longer_than_their_share(spark_context, kind):
    """1,000 calls of 50 ms by two tasks with 50 in flight each: 50 s of waiting in a few; the order is kept.

    Half a second is the share; the bound leaves a busy machine all the time that it may need.
    """
    spark_context.stream(range(4), 2).map(str).to_list()  # Spark and its workers are there
    with Service(pause=0.05) as service:
        calls = spark_context.stream(range(1000), 2).gather(map_concurrent(50, kind(service.server_port)))
        started = time.monotonic()
        answers = calls.to_list()
        took = time.monotonic() - started

    assert (answers, took < 12) == (list(range(1000)), True)


@pytest.mark.parametrize("kind", [plain, asynchronous])
def test_the_service_never_sees_more_than_the_rate(engine, kind):
    """Five partitions follow one another on two cores; no second has more than 30 requests, and one.

    A machine that stands still for a moment bunches up what was sent apart, so the best of three runs counts;
    `test_a_rate_holds_over_all_tasks` looks at when the calls began, and has one.
    """
    seen = []
    while len(seen) < 3 and min(seen, default=99) > 31:
        with Service() as service:
            calls = engine.stream(range(40), 5).gather(map_concurrent(8, kind(service.server_port), rate=30))
            assert calls.to_list() == list(range(40))
            seen.append(service.most_in_a_second())

    assert min(seen) <= 31, seen


@pytest.mark.parametrize("kind", [plain, asynchronous])
def test_a_tenth_that_fails_is_asked_for_again(engine, kind):
    """Each of them once more, and no other; the results are complete and in order."""
    with Service(fails=lambda name: int(name) % 10 == 0) as service:
        ask = map_concurrent(8, kind(service.server_port), retry=Retry(2, delay=0.001, on=Unavailable))

        assert engine.stream(range(100), 2).gather(ask).to_list() == list(range(100))
        asked = sorted(int(name) for _, name in service.asked)
    assert asked == sorted([*range(100), *range(0, 100, 10)])
