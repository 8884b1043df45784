"""Ctrl-C in the middle of a Spark job, and a Spark that ends under a context; each in a process of its own."""

from __future__ import annotations

import pytest

START = """
import os, signal, sys, threading, time, traceback
import dstream as ds
from collectors import counting
from reducers import to_imap

ctx = ds.connect("local[2]", config={"spark.driver.memory": "512m"}, storage="memory:")
numbers = ctx.stream(range(4), 4)
assert numbers.count() == 4
"""
INTERRUPTED = """
if sys.argv[1] == "notebook":
    signal.signal(signal.SIGINT, signal.default_int_handler)
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
}
for name in sys.argv[2:]:
    run = RUNS[name]
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
def attempt(run):
    try:
        run()
    except ds.errors.EngineError as error:
        print(error, "|", error.__notes__[2], "|", error.__cause__ or error.__context__)


if sys.argv[1] == "stopped":
    ctx.spark.stop()
else:
    from pyspark import SparkContext

    os.kill(SparkContext._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
attempt(numbers.to_list)
attempt(lambda: list(numbers))
attempt(numbers.map(str).count)
ctx.close()
if sys.argv[1] == "stopped":
    with ds.connect("local[2]", config={"spark.driver.memory": "512m"}) as again:
        print(again.stream([1, 2]).to_list())
"""


@pytest.mark.parametrize(
    ("where", "runs"), [("script", ["to_list", "collect", "iterate", "reducer"]), ("notebook", ["collect"])]
)
def test_ctrl_c_cancels_the_job_and_leaves_the_context_usable(script, where, runs):
    """It arrives as a KeyboardInterrupt, soon, with the user's frames; no task runs on; nothing is written."""
    done = script(START + INTERRUPTED, where, *runs)

    expected = []
    for name in runs:
        expected += [f"{name} interrupted True frames of others: True None", "jobs: [] then: ['0', '1', '2', '3']"]
    assert done.stdout.splitlines() == [*expected, "map: {}"], done.stderr


@pytest.mark.parametrize(
    ("how", "words", "advice"),
    [
        ("stopped", "the Spark session of this context was stopped", "close this context and connect() again"),
        ("killed", "Spark's Java process is gone", "start this process again"),
    ],
)
def test_a_spark_that_ended_is_told_in_plain_words(script, how, words, advice):
    """By every operation; the context can be closed, and after a stop another one opened."""
    done = script(START + ENDING, how)
    lines = done.stdout.splitlines()

    assert all(words in line and f"What to do: {advice}" in line and line.endswith("| None") for line in lines[:3])
    assert lines[3:] == (["[1, 2]"] if how == "stopped" else []), done.stderr
