"""What the JVM and its workers write to stderr, and what of it the user sees."""

from __future__ import annotations

import os

import pytest

from dstream.engine.spark.chatter import Pump

TRACEBACK = "Traceback (most recent call last):\n"
DAEMON = '  File "pyspark.zip/pyspark/daemon.py", line 95, in worker\n'
WORKER = '  File "pyspark.zip/pyspark/worker.py", line 12, in main\n    outfile.flush()\n'
BROKEN = "BrokenPipeError: [Errno 32] Broken pipe\n"


@pytest.fixture
def shown(capsys):
    """A function that returns what the user sees of what is written."""

    def shown(*texts):
        reading, writing = os.pipe()
        with os.fdopen(reading, "r") as stream:
            pump = Pump(stream)
            pump.let_through()
            os.write(writing, "".join(texts).encode())
            os.close(writing)
            pump.held_back()
        return capsys.readouterr().err

    return shown


def test_lines_pass_but_for_chatter(shown):
    """A user's own output comes through; Spark's word about its log level does not."""
    assert shown("mine\n", "Setting Spark log level to OFF\n", "last, without an end") == "mine\nlast, without an end"


@pytest.mark.parametrize("frames", [(), (DAEMON,), (DAEMON, DAEMON)], ids=len)
def test_an_idle_worker_ends_without_a_word(shown, frames):
    """A worker that waits for its next task finds its socket closed when Spark stops; nobody needs to know."""
    assert shown("before\n", TRACEBACK, *frames, BROKEN, "after\n") == "before\nafter\n"
    assert shown("before\n", TRACEBACK, *frames) == "before\n"


@pytest.mark.parametrize(
    "texts",
    [
        (TRACEBACK, DAEMON, WORKER, BROKEN),
        (TRACEBACK, DAEMON, "MemoryError\n"),
        (TRACEBACK, TRACEBACK, DAEMON, "OSError: disk\n"),
        (TRACEBACK, WORKER),
        (TRACEBACK, '  File "/home/me/my_daemon.py", line 3, in <module>\n', BROKEN),
        (BROKEN,),
    ],
)
def test_every_other_traceback_passes(shown, texts):
    """Of what a worker was at, of another error, and of one that breaks off, all lines are shown, in order."""
    assert shown("before\n", *texts) == "".join(["before\n", *texts])
