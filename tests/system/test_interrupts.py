"""Ctrl-C in the middle of a Spark job, and a Spark that ends under a context; each in a process of its own."""

from __future__ import annotations

import pytest

from tests.system.conftest import environment

START = """
import os, signal, threading, time, traceback
import dstream as ds
from collectors import counting
from reducers import to_imap

ctx = ds.connect("local[2]", config={"spark.driver.memory": "512m"}, storage="memory:")
numbers = ctx.stream(range(4), 4)
assert numbers.count() == 4
"""
INTERRUPTED = """
tracker = ctx.spark.sparkContext.statusTracker()


def slow(n):
    time.sleep(60)


def interrupt():
    while not any(getattr(tracker.getStageInfo(stage), "numActiveTasks", 0) for stage in tracker.getActiveStageIds()):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


slowly = numbers.map(slow)
RUNS = {
    "to_list": lambda: slowly.to_list(),
    "collect": lambda: slowly.collect(counting()),
    "iterate": lambda: list(slowly),
    "reducer": lambda: slowly.collect(to_imap("m", str, str)),
    "notebook": lambda: slowly.collect(counting()),
}
for name, run in RUNS.items():
    if name == "notebook":  # Its kernel takes the signal back from PySpark.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    started = time.monotonic()
    try:
        run()
    except KeyboardInterrupt as error:
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        outside = sum(file != __file__ for file in frames)
        print(name, "interrupted", time.monotonic() - started < 30, "frames of others:", outside <= 1, error.__cause__)
    while tracker.getActiveJobsIds():
        time.sleep(0.05)
    print("jobs:", tracker.getActiveJobsIds(), "then:", numbers.map(str).to_list())
print("map:", dict(ctx.get_map("m")))
"""
ENDING = """
from pyspark import SparkContext


def attempt(run):
    try:
        run()
    except ds.errors.EngineError as error:
        print(error, "|", error.__notes__[2], "|", error.__cause__ or error.__context__)


def attempt_all(numbers):
    attempt(numbers.to_list)
    attempt(lambda: list(numbers))
    attempt(numbers.map(str).count)


ctx.spark.stop()
attempt_all(numbers)
with ds.connect("local[2]", config={"spark.driver.memory": "512m"}) as again:
    numbers = again.stream(range(4), 4)
    print(numbers.to_list())
    os.kill(SparkContext._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
    attempt_all(numbers)
ctx.close()
"""


@pytest.fixture(scope="module")
def interrupted(script, java):
    """What a script says of its runs: two lines of each, and one of what was written."""
    done = script(START + INTERRUPTED, env=environment(**java()))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("number", "run"), [(0, "to_list"), (1, "collect"), (2, "iterate"), (3, "reducer"), (4, "notebook")]
)
def test_ctrl_c_cancels_the_job_and_leaves_the_context_usable(interrupted, number, run):
    """It arrives as a KeyboardInterrupt, soon, with the user's frames; no task runs on."""
    assert interrupted[2 * number : 2 * number + 2] == [
        f"{run} interrupted True frames of others: True None",
        "jobs: [] then: ['0', '1', '2', '3']",
    ]


def test_ctrl_c_writes_nothing(interrupted):
    """The map of the reducer that was interrupted is empty."""
    assert interrupted[10:] == ["map: {}"]


@pytest.fixture(scope="module")
def ended(script):
    """What a script says whose Spark is stopped, and whose next one is killed."""
    done = script(START + ENDING)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("first", "words", "advice"),
    [
        (0, "the Spark session of this context was stopped", "close this context and connect() again"),
        (4, "Spark's Java process is gone", "start this process again"),
    ],
    ids=["stopped", "killed"],
)
def test_a_spark_that_ended_is_told_in_plain_words(ended, first, words, advice):
    """By every operation; the context can be closed."""
    lines = ended[first : first + 3]

    assert len(lines) == 3
    assert all(words in line and f"What to do: {advice}" in line and line.endswith("| None") for line in lines)


def test_a_context_can_be_opened_after_a_stop(ended):
    """With another Spark, in the same process, also while the context of the first one is open."""
    assert (ended[3], len(ended)) == ("[0, 1, 2, 3]", 7)
