"""What Spark's own errors mean, in plain words."""

from __future__ import annotations

import signal
import threading

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from dstream.engine.spark.port.errors import interruptible, translated
from dstream.errors import EngineError
from dstream.failures import blame, known_of

ABORTED = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: "
TEXTS = {
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)": "a Python worker died",
    "java.lang.OutOfMemoryError: Java heap space": "Spark's Java process ran out of memory",
    "Total size of serialized results of 8 tasks (1.2 GiB) is bigger than spark.driver": "the results are larger",
    "java.io.IOException: No space left on device": "a disk is full",
    "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)": "a machine that ran",
    "Checkpoint block rdd_3_1 not found! Either the executor is gone": "a machine that ran",
    "[SPARK_JOB_CANCELLED] Job 4 cancelled as part of cancellation of all jobs": "the job was cancelled",
    "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.": "was stopped",
    "Job 3 cancelled because SparkContext was shut down": "was stopped",
    "All masters are unresponsive! Giving up.": "the Spark master is gone",
    "Sent message larger than max (140003082 vs. 134217728)": "larger than a message to the server of Spark Connect",
    "failed to connect to all addresses; last error: UNKNOWN": "the server of Spark Connect cannot be reached",
    "[OPERATION_CANCELED] Operation has been canceled.": "the job was cancelled",
    "[INVALID_HANDLE.SESSION_CLOSED] The handle is invalid. Session was closed.": "was stopped",
    "Answer from Java side is empty": "Spark's Java process is gone",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_known_trouble_is_told_in_plain_words(text):
    """In one short sentence with an advice; Spark's own text stays at hand."""
    with pytest.raises(EngineError, match=TEXTS[text]) as caught, translated():
        raise Py4JError(f"{ABORTED}{text}\n\tat org.apache.spark.Foo.bar(Foo.scala:1)\n")

    assert "org.apache" not in str(caught.value)
    assert text in known_of(caught.value).remote_traceback
    assert known_of(caught.value).advice
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


def test_an_unknown_trouble_gives_the_innermost_cause():
    """Without the names of Java classes."""
    text = (
        "o.a.s.SparkException: Job aborted.\nCaused by: java.lang.Foo: first\nCaused by: java.lang.Bar: the disk sang"
    )
    with pytest.raises(EngineError) as caught, translated():
        raise Py4JError(text)

    assert str(caught.value) == "Spark could not run the job: the disk sang"


def test_what_ended_a_python_worker_on_a_server_is_told():
    """There the traceback begins in the line of Spark's own words, and a state of SQL stands behind it."""
    text = (
        "An exception was thrown from the Python worker:\n"
        "[PYTHON_EXCEPTION] An exception was thrown from Python: Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\nSystemExit: 3\n SQLSTATE: 38000\n\nJVM stacktrace:\nFoo: first\n'
    )
    with pytest.raises(EngineError) as caught, translated():
        raise Py4JError(text)

    assert str(caught.value) == "Spark could not run the job: a Python worker could not run it: SystemExit: 3"


def test_sparks_exception_is_the_cause_when_asked_for(monkeypatch):
    """With `DSTREAM_TRACEBACK=full`."""
    monkeypatch.setenv("DSTREAM_TRACEBACK", "full")
    with pytest.raises(EngineError) as caught, translated():
        raise Py4JNetworkError("Answer from Java side is empty")

    assert type(caught.value.__cause__) is Py4JNetworkError


def test_a_broken_connection_of_the_users_own_stays_what_it_is():
    """A function that talks to a service raises such exceptions too."""
    with pytest.raises(ConnectionResetError, match="mine"), translated():
        raise ConnectionResetError("mine")


def test_an_exception_of_spark_inside_of_a_function_stays_what_it_is(step):
    """A step is to blame: the function in the caller's process uses Spark itself."""
    error = Py4JError("mine")
    blame(error, step)
    with pytest.raises(Py4JError, match="mine"), translated():
        raise error


def of_pyspark(number, frame):
    """Stand in for the handler that a SparkContext sets, which cancels everybody's jobs."""
    raise AssertionError


of_pyspark.__module__ = "pyspark.core.context"


@pytest.mark.parametrize("handler", [signal.default_int_handler, of_pyspark])
def test_ctrl_c_cancels_what_the_main_thread_waits_for(handler):
    """Under Python's own handler, as in notebooks, and under PySpark's; afterwards the handler is as it was."""
    cancelled = []
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt), translated(), interruptible(lambda: cancelled.append("mine")):
            signal.raise_signal(signal.SIGINT)
        assert (cancelled, signal.getsignal(signal.SIGINT)) == (["mine"], handler)
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_leaves_the_jobs_of_other_threads_alone():
    """What another thread waits for goes on, and so does what is over."""
    cancelled = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    waiting, over = threading.Event(), threading.Event()

    def work():
        with translated(), interruptible(lambda: cancelled.append("another's")):
            waiting.set()
            over.wait()

    thread = threading.Thread(target=work)
    thread.start()
    waiting.wait()
    try:
        with interruptible(lambda: cancelled.append("over")):
            pass
        with pytest.raises(KeyboardInterrupt), translated():
            signal.raise_signal(signal.SIGINT)
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert cancelled == []


def test_another_handler_is_left_alone():
    """One of the user's."""
    handler = lambda number, frame: None  # noqa: E731 - a handler of the user's
    before = signal.signal(signal.SIGINT, handler)
    try:
        with translated():
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
