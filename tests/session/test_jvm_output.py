"""What the JVM and its workers write to stderr, and what of it the user sees."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dstream.engine.spark.session.startup import Pump, _without_last_words

TRACEBACK = "Traceback (most recent call last):\n"
DAEMON = '  File "pyspark.zip/pyspark/daemon.py", line 95, in worker\n'
WORKER = '  File "pyspark.zip/pyspark/worker.py", line 12, in main\n    outfile.flush()\n'
SOCKET = '  File "/usr/lib/python3.11/socket.py", line 724, in write\n    return self._sock.send(b)\n'
USERS = ('  File "/home/me/jobs.py", line 3, in <module>\n    run()\n',)
BROKEN = "BrokenPipeError: [Errno 32] Broken pipe\n"


@pytest.fixture
def shown(capsys):
    """A function that returns what the user sees of what is written."""

    def shown(*texts):
        reading, writing = os.pipe()
        stream = os.fdopen(reading, "r")
        pump = Pump(stream)
        pump.let_through()
        os.write(writing, "".join(texts).encode())
        os.close(writing)
        pump.held_back()
        assert stream.closed
        return capsys.readouterr().err

    return shown


def test_lines_pass_but_for_chatter(shown):
    """A user's own output comes through; Spark's word about its log level does not."""
    assert shown("mine\n", "Setting Spark log level to OFF\n", "last, without an end") == "mine\nlast, without an end"


@pytest.mark.parametrize("frames", [(), (DAEMON,), (DAEMON, DAEMON), (DAEMON, WORKER), (DAEMON, SOCKET)], ids=len)
def test_a_worker_that_finds_its_socket_closed_ends_without_a_word(shown, frames):
    """When Spark stops, or a job has failed elsewhere; nobody needs to know."""
    assert shown("before\n", TRACEBACK, *frames, BROKEN, "after\n") == "before\nafter\n"
    assert shown("before\n", TRACEBACK, *frames) == "before\n"


@pytest.mark.parametrize(
    "texts",
    [
        (TRACEBACK, DAEMON, "MemoryError\n"),
        (TRACEBACK, DAEMON, WORKER, "OSError: disk\n"),
        (TRACEBACK, *USERS),
        (TRACEBACK, *USERS, "mine.Boom\n", "behind\n"),
        (TRACEBACK, *USERS, BROKEN),
        (TRACEBACK, '  File "/home/me/my_daemon.py", line 3, in <module>\n', BROKEN),
        (BROKEN,),
    ],
)
def test_every_other_traceback_passes(shown, texts):
    """Of another error, of the user's code, and of one that breaks off, all lines are shown, in order."""
    assert shown("before\n", *texts) == "".join(["before\n", *texts])


@pytest.mark.parametrize("indented", ["    mine\n", "        mine\n", "    ^ mine\n"])
def test_an_indented_line_of_the_users_is_no_source_of_a_frame(shown, indented):
    """Unless it stands right behind a frame, where a source stands once, and below it marks."""
    marks = "    ^^^^^\n"

    assert shown(TRACEBACK, indented, WORKER, marks, indented, DAEMON, BROKEN, indented) == 3 * indented


def test_a_message_about_a_flush_goes_with_its_traceback(shown):
    """And so does the empty line behind it, but no other."""
    message = "PySpark daemon failed to flush the output to the worker process:\n"

    assert shown("\n", message, TRACEBACK, DAEMON, BROKEN, "\n", "\n", "mine\n") == "\n\nmine\n"


def test_a_traceback_may_begin_inside_of_a_line(shown):
    """A worker prints a text and the end of its line in two pieces."""
    assert shown("on a worker: 1", TRACEBACK, "\n", DAEMON, BROKEN, "mine\n") == "on a worker: 1\nmine\n"


@pytest.mark.parametrize("piece", [DAEMON, BROKEN])
def test_every_piece_may_begin_inside_of_a_line(shown, piece):
    """What a user has printed of a line stays, and so does a line that names such an error itself."""
    pieces = [TRACEBACK, DAEMON, BROKEN]
    pieces.insert(pieces.index(piece), "mine 4")

    assert shown(*pieces, "\n") == "mine 4\n"
    assert shown(TRACEBACK, DAEMON, f"caught {BROKEN}", BROKEN) == f"caught {BROKEN}"


@given(st.data(), st.lists(st.sampled_from([DAEMON, SOCKET]), max_size=2), st.integers(1, 4))
def test_texts_come_through_whose_ends_come_behind_pieces_of_others(data, more, workers):
    """Workers print a text and the end of its line in two pieces; all of both come, in order, and nothing else does."""
    tracebacks = [[TRACEBACK, DAEMON, *more, BROKEN] for _ in range(workers)]
    prints = [piece for number in range(5) for piece in (f"mine {number}", "\n")]
    lines = "".join(woven(data.draw, [*tracebacks, prints])).splitlines(keepends=True)

    assert "".join(_without_last_words(lines)) == "".join(prints)


def woven(draw, parts):
    """Return the pieces of several writers in some order that keeps that of each."""
    left = [list(part) for part in parts]
    pieces = []
    while any(left):
        pieces.append(draw(st.sampled_from([part for part in left if part])).pop(0))
    return pieces


PIECES = st.sampled_from([DAEMON, WORKER, SOCKET])
LAST = st.sampled_from([BROKEN, "ConnectionResetError: [Errno 104] Connection reset by peer\n"])
OF_PYSPARK = st.builds(
    lambda first, more, last: [TRACEBACK, first, *more, last], st.just(DAEMON), st.lists(PIECES), LAST
)
OF_THE_USER = st.lists(st.sampled_from(["mine\n", "  mine, indented\n", "\n", "Traceback of mine\n", "Error\n"]))


@given(st.data(), st.lists(OF_PYSPARK, min_size=1, max_size=4), OF_THE_USER)
def test_tracebacks_that_stand_inside_each_other_are_left_out(data, tracebacks, prints):
    """Whatever comes between their pieces: the user's own lines all come, in order, and nothing else does."""
    pieces = woven(data.draw, [*tracebacks, [f"{number} {text}" for number, text in enumerate(prints)]])
    lines = "".join(pieces).splitlines(keepends=True)

    assert list(_without_last_words(lines)) == [f"{number} {text}" for number, text in enumerate(prints)]


@given(st.data(), st.lists(st.sampled_from([DAEMON, WORKER])))
def test_a_traceback_of_the_users_comes_through_beside_that_of_a_worker(data, frames):
    """All of its lines, in order; which of two equal first lines is shown, nobody can tell."""
    tracebacks = [[TRACEBACK, DAEMON, *frames, BROKEN]]
    users = [TRACEBACK, *USERS, *USERS, "ValueError: mine\n"]
    lines = "".join(woven(data.draw, [*tracebacks, users])).splitlines(keepends=True)
    shown = [line for line in _without_last_words(lines) if line != TRACEBACK]

    assert shown == "".join(users[1:]).splitlines(keepends=True)
