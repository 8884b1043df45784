"""What the worker and the driver make of failures around Spark's own jobs and tables."""

from __future__ import annotations

import pickle
import sys
import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from dstream.engine.spark.port.classic import ClassicPort
from dstream.engine.spark.port.errors import translated
from dstream.engine.tasks.stage import read_tables
from dstream.errors import EngineError


class Refused:
    """A split whose entries do not fit."""

    def read_arrow(self):
        raise TypeError("the value of 2 is 'two' of type str, no int")


def cancelled():
    """End as PySpark does when the user presses Ctrl-C."""
    try:
        raise KeyboardInterrupt
    finally:
        raise Py4JError("[SPARK_JOB_CANCELLED] Job 1 cancelled")


def test_an_interrupt_stays_an_interrupt():
    """`except Exception` around a job does not catch Ctrl-C."""
    with pytest.raises(KeyboardInterrupt), translated():
        cancelled()


def test_a_job_that_somebody_else_cancelled_is_an_engine_error():
    """Without an interrupt in this process."""
    with pytest.raises(EngineError, match="the job was cancelled"), translated():
        raise Py4JError("[SPARK_JOB_CANCELLED] Job 1 cancelled")


def test_a_table_that_cannot_be_read_says_why_in_plain_text():
    """Spark shows the user what stands in the exception, so nothing is packed into it."""
    numbers = pa.record_batch({"id": [0]})

    with pytest.raises(TypeError, match="the value of 2 is 'two'"):
        list(read_tables([pickle.dumps(Refused())], (), iter([numbers])))


def test_threads_that_define_functions_at_once_run_the_interpreter_of_the_driver(monkeypatch):
    """In a session of the user's own, which goes on with its own."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    spark = SimpleNamespace(pythonExec="python3")
    port = ClassicPort(SimpleNamespace(sparkContext=spark))
    second_begins, first_ended = threading.Event(), threading.Event()
    ran: list[str] = []

    class Frame:
        def mapInArrow(self, function, schema):
            if threading.current_thread() is first:
                second_begins.wait(0.5)  # It waits for the first, where they take turns.
            else:
                second_begins.set()
                first_ended.wait(0.5)
            ran.append(spark.pythonExec)

    def define():
        port.mapped(Frame(), iter, "")

    def define_first():
        define()
        first_ended.set()

    first, second = threading.Thread(target=define_first), threading.Thread(target=define)
    first.start()
    second.start()
    first.join()
    second.join()

    assert (ran, spark.pythonExec) == ([sys.executable] * 2, "python3")


def test_what_a_dead_jvm_kept_needs_no_release():
    """The failure that ended the job is told, not that nobody could clean up."""

    class Pinned:
        @property
        def _jdf(self):
            raise Py4JNetworkError("An error occurred while trying to connect to the Java server")

    running = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=object()))

    ClassicPort(running).release(Pinned())
