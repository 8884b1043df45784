"""Mistakes in what a function takes along to the workers."""

from __future__ import annotations

import threading

from dstream.errors import SerializationError
from tests.mistakes.mistake import SPARK, mistake


@mistake(SerializationError, r"'lock'.*pickled", r"inside|before|instead", engines=SPARK)
def a_lock(desk):
    """A lambda captures a lock."""
    lock = threading.Lock()
    desk.ctx.stream([1], 2).map(lambda n: lock.locked()).to_list()  # here


@mistake(SerializationError, r"'file'", r"open it inside|inside", engines=SPARK)
def an_open_file(desk):
    """A lambda captures an open file."""
    with (desk.folder / "out.txt").open("w") as file:
        desk.ctx.stream([1], 2).map(lambda n: file.write(str(n))).to_list()  # here


@mistake(SerializationError, r"'ctx', a Context,", r"before", engines=SPARK)
def a_context(desk):
    """A lambda captures the context."""
    ctx = desk.ctx
    desk.ctx.stream([1], 2).map(lambda n: ctx.stream([n]).count()).to_list()  # here


@mistake(SerializationError, r"'other', a Stream,", r"before", engines=SPARK)
def a_stream(desk):
    """A lambda captures another stream."""
    other = desk.ctx.stream([2])
    desk.ctx.stream([1], 2).map(lambda n: n in other.to_list()).to_list()  # here


@mistake(SerializationError, r"'ages', an? IStreamMap,", r"before|dict", engines=SPARK)
def a_map(desk):
    """A lambda captures a distributed map."""
    ages = desk.ctx.get_map("ages")
    desk.ctx.stream(["Ada"], 2).map(lambda name: ages.get(name)).to_list()  # here


@mistake(SerializationError, r"'spark', a SparkSession,", r"before", engines=SPARK)
def a_spark_session(desk):
    """A lambda captures the Spark session."""
    spark = desk.ctx.spark
    desk.ctx.stream([1], 2).map(lambda n: spark.range(n).count()).to_list()  # here


@mistake(SerializationError, r"'lock'", r"inside|before|instead", engines=SPARK)
def a_lock_in_a_later_job(desk):
    """The step behind a sort captures a lock: no job starts."""
    lock = threading.Lock()
    ran = desk.ctx.stream([2, 1], 2).sorted()
    ran.map(lambda n: lock.locked()).to_list()  # here
