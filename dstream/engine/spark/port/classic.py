"""`ClassicPort`: a Spark session of this process, and its placement of rows by hash.

`repartition(n, column)` puts a row into the partition `hash(column) mod n`, where the hash of an int is Murmur3 with
the seed 42 (`org.apache.spark.sql.catalyst.expressions.Murmur3Hash`, the same from 3.5 to 4.3). Each of its operations
can be inverted, so for each partition there is one int whose hash is the number of the partition.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from dstream.base.threads import RenewedLock, contextmanager
from dstream.engine.spark.port.code import Code
from dstream.engine.spark.port.errors import is_forked
from dstream.engine.spark.port.protocols import ArrowFunction, HowFar
from dstream.engine.tasks.process import CARRIED, InBroadcast
from dstream.engine.versions import Feature, has

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["ClassicPort", "int_with_hash", "placed_by_hash"]


_SEED = 42
_BITS = 2**32
_FIRST, _SECOND = 0xCC9E2D51, 0x1B873593
_FIFTH, _ADDED = 5, 0xE6546B64
_LENGTH = 4
"""In bytes, of an int."""
_LAST, _LAST_BUT_ONE = 0xC2B2AE35, 0x85EBCA6B


def placed_by_hash(frame: DataFrame, partitions: int, place: Column) -> DataFrame:
    """Return the rows, each in the partition whose number is in `place`.

    Args:
        frame: the rows.
        partitions: the number of partitions.
        place: an int of each row, from 0 to `partitions` - 1.
    """
    from pyspark.sql import functions

    return frame.repartition(partitions, functions.expr(_table(partitions))[place])


@functools.lru_cache(64)
def _table(partitions: int) -> str:
    """Return SQL for an array of the int of each partition, of which Spark makes a constant."""
    numbers = ",".join(map(str, map(int_with_hash, range(partitions))))
    return f"cast(split('{numbers}', ',') as array<int>)"


def int_with_hash(number: int) -> int:
    """Return the int whose hash in Spark is `number`.

    Args:
        number: from 0 to 2**31 - 1.
    """
    hashed = _unshifted(number, 16)
    hashed = _unshifted(_divided(hashed, _LAST), 13)
    hashed = _unshifted(_divided(hashed, _LAST_BUT_ONE), 16) ^ _LENGTH
    mixed = _rotated(_divided(hashed - _ADDED, _FIFTH), 32 - 13) ^ _SEED
    found = _divided(_rotated(_divided(mixed, _SECOND), 32 - 15), _FIRST)
    return found - _BITS if found >= _BITS // 2 else found


def _unshifted(number: int, bits: int) -> int:
    """Return x of `number` = x ^ (x >> bits)."""
    found = number
    for _ in range(32 // bits + 1):
        found = number ^ (found >> bits)
    return found


def _divided(number: int, factor: int) -> int:
    """Return x of `number` = x * `factor` in 32 bits."""
    return number * pow(factor, -1, _BITS) % _BITS


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) % _BITS


_has = functools.cache(has)
"""`has`, cached: the PySpark of a process does not change."""

_DESCRIPTION = "spark.job.description"
_GROUP = "spark.jobGroup.id"
_WORKER_LOGS = "spark.sql.pyspark.worker.logging.enabled"
_MAP_ARROW = 207
"""`PythonEvalType.SQL_MAP_ARROW_ITER_UDF` of PySpark, whose class moved from one module to another in 4.0."""
_ROWS_OF_A_BATCH = 64
_LONGEST_CANCEL = 10.0
_BETWEEN_CANCELS = 0.05
_defining = RenewedLock()
"""Acquired while a function is defined: all threads share the setting of the interpreter that runs it."""


class ClassicPort:
    """A session that Python reaches through Java.

    Args:
        session: the session.
        code: sends modules to workers that do not see the files of this process; None if they do.
    """

    def __init__(self, session: SparkSession, code: Code | None = None) -> None:
        self.session = session
        self._code = code
        self._columns: dict[str, Column] = {}
        self._java_memory: int | None = None

    def cores(self) -> int:
        """Return the present number of cores: executors come and go. PySpark (4.3) would call Java twice for it."""
        java: Any = self.session.sparkContext._jsc
        return int(java.defaultParallelism())

    def java_memory(self) -> int:
        """Return Java's memory, requested once: a command, a setting or the environment may determine it."""
        if self._java_memory is None:
            java: Any = self.session.sparkContext._jvm
            most = int(java.Runtime.getRuntime().maxMemory())
            if self._code is not None:
                context: Any = self.session.sparkContext._jsc
                most = min(most, int(context.sc().executorMemory()) * 2**20)
            self._java_memory = most
        return self._java_memory

    def is_running(self) -> bool:
        return not is_forked() and self.session.sparkContext._jsc is not None

    def is_alive(self) -> bool:
        from py4j.protocol import Py4JError

        if not self.is_running():
            return False
        java: Any = self.session.sparkContext._jsc
        try:
            return not java.sc().isStopped()
        except (Py4JError, ConnectionError):
            return False

    def with_settings(self, settings: Mapping[str, str]) -> ClassicPort:
        """Clone the session; `newSession` would begin with the defaults."""
        java: Any = self.session._jsparkSession
        clone = type(self.session)(self.session.sparkContext, java.cloneSession())
        for name, value in settings.items():
            clone.conf.set(name, value)
        port = ClassicPort(clone, self._code)
        # A clone has the same Java, which need not be asked again.
        port._java_memory = self._java_memory
        return port

    def workers_see_files(self) -> bool:
        return self._code is None

    def reads(self, frame: DataFrame) -> bool:
        return True

    def column(self, name: str) -> Column:
        """Return a column, made once: PySpark (4.3) calls Java fifteen times for each."""
        if name not in self._columns:
            from pyspark.sql import functions

            self._columns[name] = functions.col(name)
        return self._columns[name]

    def mapped(
        self, frame: DataFrame, function: ArrowFunction, schema: StructType | str, names: Sequence[str] | None = None
    ) -> DataFrame:
        if self._code is not None:
            self._code.ship()
        with _interpreter_of_the_driver(self.session.sparkContext):
            return frame.mapInArrow(function, schema) if names is None else self._mapped(frame, function, schema, names)

    def _mapped(
        self, frame: DataFrame, function: ArrowFunction, schema: StructType | str, names: Sequence[str]
    ) -> DataFrame:
        """Replace `mapInArrow` (4.3), without asking Java for the schema and each of the columns."""
        from pyspark.sql.pandas.functions import pandas_udf

        udf: Any = pandas_udf(function, schema, _MAP_ARROW)  # type: ignore[call-overload]
        java: Any = frame._jdf
        applied = udf(*map(self.column, names))._jc
        if _has(Feature.JAVA_COLUMNS):
            mapped = java.mapInArrow(applied, False, None)
        else:
            mapped = java.pythonMapInArrow(applied.expr(), False)
        return type(frame)(mapped, frame.sparkSession)

    def placed(self, frame: DataFrame, partitions: int, place: Column) -> DataFrame:
        if _has(Feature.REPARTITION_BY_ID):
            return frame.repartitionById(partitions, place)
        return placed_by_hash(frame, partitions, place)

    def frame_of(self, table: pa.Table) -> DataFrame:
        if _has(Feature.ARROW_TABLES):
            return self.session.createDataFrame(table)
        return _frame_of_stream(self.session, table)

    def batches(self, frame: DataFrame, stage: str | None = None) -> list[pa.RecordBatch]:
        """Replace `toArrow` (4.3), without asking Java for settings and the schema."""
        collecting: Any = frame
        with nullcontext() if stage is None else self._carrying(stage):
            batches: list[pa.RecordBatch] = collecting._collect_as_arrow()
        return batches

    @contextmanager
    def _carrying(self, stage: str) -> Iterator[None]:
        """Attach a stage to the jobs that start in this thread meanwhile."""
        context = self.session.sparkContext
        try:
            context.setLocalProperty(CARRIED, stage)
            yield
        finally:
            with suppress(Exception):  # Spark may have died, which the job's own exception reports.
                context.setLocalProperty(CARRIED, None)  # type: ignore[arg-type]  # None removes it

    def may_carry(self) -> bool:
        """Return whether no broadcast has to be sent along by Java, and no log of workers to be set by a plan (4.3)."""
        context: Any = self.session.sparkContext
        return (
            self._lets_carry
            and not any(context._pickled_broadcast_vars)
            and self.session.conf.get(_WORKER_LOGS, "false") != "true"
        )

    @functools.cached_property
    def _lets_carry(self) -> bool:
        """Whether workers get modules without a plan, and threads have their own properties, which are not logged.

        Spark writes the properties of each job into its event log, in plain text (4.3): also the captures of a stage,
        such as the password of a database, and tens of kilobytes for each job.
        """
        from py4j.clientserver import ClientServer

        context: Any = self.session.sparkContext
        are_written = context._conf.get("spark.eventLog.enabled", "false").lower() == "true"
        return self._code is None and isinstance(context._gateway, ClientServer) and not are_written

    def local_folder(self) -> str | None:
        """Return the folder of PySpark's own files (4.3): Java removes it, also if this process dies."""
        context: Any = self.session.sparkContext
        folder: str = context._temp_dir
        return folder if self._code is None else None

    def pinned(self, frame: DataFrame) -> DataFrame:
        return frame.localCheckpoint(eager=False)

    def partitions(self, pinned: DataFrame) -> int:
        executed: Any = pinned._jdf
        return int(executed.queryExecution().toRdd().getNumPartitions())

    def release(self, pinned: DataFrame) -> None:
        from py4j.protocol import Py4JError

        if self.is_running():
            with suppress(Py4JError, ConnectionError):  # A JVM that has died stores nothing.
                # No RDD runs. A frame that was checkpointed is a plan of one node, and inside of it is the only handle
                # by which Spark (4.3) releases the rows before Java's garbage collector runs; `unpersist()` of a frame
                # only releases rows of `persist()`.
                executed: Any = pinned._jdf
                executed.queryExecution().analyzed().rdd().unpersist(False)

    def in_turn(self, frame: DataFrame) -> Iterator[Row]:
        return iter(frame.toLocalIterator(prefetchPartitions=True))

    def jobs(self, tag: str) -> ClassicJobs:
        return ClassicJobs(self.session.sparkContext, tag)

    def where_workers_connect(self) -> tuple[str, str]:
        """Return the address by which executors of Spark reach its driver."""
        context = self.session.sparkContext
        master = context.master or ""
        if master == "local" or master.startswith("local["):
            return "127.0.0.1", "127.0.0.1"
        settings = context.getConf()
        host = settings.get("spark.driver.host") or "127.0.0.1"
        return host, settings.get("spark.driver.bindAddress") or host

    def send_to_all(self, name: str, payloads: Sequence[Any], holder: object) -> InBroadcast:
        """Put them into a file, from which Java takes them, and each executor once."""
        broadcast = self.session.sparkContext.broadcast(payloads)
        # At the exit of this process Spark ends, too, and may be gone already.
        weakref.finalize(holder, self._forget, broadcast).atexit = False
        return InBroadcast(name, broadcast)

    def _forget(self, broadcast: Any) -> None:
        from py4j.protocol import Py4JError

        if self.is_running():
            with suppress(Py4JError, OSError):  # A JVM that has died stores nothing.
                broadcast.destroy()

    def sums(self, adding: Any) -> Any:
        return self.session.sparkContext.accumulator({}, adding)


def _frame_of_stream(session: SparkSession, table: pa.Table) -> DataFrame:
    """Create a DataFrame of a table as `createDataFrame` does of pandas (3.5), which takes no table."""
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer
    from pyspark.sql.pandas.types import from_arrow_schema

    context: Any = session.sparkContext
    java: Any = session._jvm
    batches = table.to_batches(max_chunksize=_ROWS_OF_A_BATCH)
    rows = context._serialize_to_jvm(
        batches, ArrowStreamSerializer(), java.PythonSQLUtils.readArrowStreamFromFile, java.ArrowIteratorServer
    )
    frame = java.PythonSQLUtils.toDataFrame(rows, from_arrow_schema(table.schema).json(), session._jsparkSession)
    return DataFrame(frame, session)


class ClassicJobs:
    """Jobs of a job group, or with a job tag if the user's thread has its own group."""

    def __init__(self, context: SparkContext, tag: str) -> None:
        self._context = context
        self._tag = tag
        self._is_tagged = False
        self._named = 0

    @contextmanager
    def named(self, description: str) -> Iterator[None]:
        """Set the description in the thread's local properties.

        An iterator that Spark creates meanwhile uses the description for the jobs that it starts later.
        """
        context = self._context
        theirs, their_group = context.getLocalProperty(_DESCRIPTION), context.getLocalProperty(_GROUP)
        self._is_tagged = their_group is not None
        context.setLocalProperty(_DESCRIPTION, description)
        context.addJobTag(self._tag) if self._is_tagged else context.setLocalProperty(_GROUP, self._tag)
        self._named += 1
        try:
            yield
        finally:
            self._named -= 1
            with suppress(Exception):  # Spark may have died, which the job's own exception reports.
                context.setLocalProperty(_DESCRIPTION, theirs)  # type: ignore[arg-type]  # None removes it
                if self._is_tagged:
                    context.removeJobTag(self._tag)
                else:
                    context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]

    def cancel(self) -> None:
        if self._is_tagged:
            self._context.cancelJobsWithTag(self._tag)
        elif _has(Feature.FUTURE_JOBS):
            java: Any = self._context._jsc  # `cancelJobGroup` of PySpark 4.3 leaves a job alone that is not known yet.
            java.sc().cancelJobGroupAndFutureJobs(self._tag)
        else:
            self._cancel_until_known()

    def _cancel_until_known(self) -> None:
        """Cancel the jobs of the group, again until one was running that Spark listed before."""
        tracker = self._context.statusTracker()
        until = time.monotonic() + _LONGEST_CANCEL
        while True:
            running = {*tracker.getActiveJobsIds()} & {*tracker.getJobIdsForGroup(self._tag)}
            self._context.cancelJobGroup(self._tag)
            if running or not self._named or time.monotonic() > until:
                return
            time.sleep(_BETWEEN_CANCELS)

    def how_far(self) -> HowFar | None:
        java: Any = self._context._jsc
        spark = java.sc()
        tracker = spark.statusTracker()
        numbers = tracker.getJobIdsForTag(self._tag) if self._is_tagged else tracker.getJobIdsForGroup(self._tag)
        if len(numbers) == 0:
            return None
        job = spark.statusStore().job(numbers[0])
        stages, ended = job.stageIds().size(), job.numCompletedStages() + job.numSkippedStages()
        if ended >= stages:  # The next one has yet to begin.
            return None
        return HowFar((job.numCompletedTasks(), job.numTasks() - job.numSkippedTasks()), (ended + 1, stages))


@contextmanager
def _interpreter_of_the_driver(context: SparkContext) -> Iterator[None]:
    """Select this interpreter for functions that are defined in the block, also in a session that the user started.

    PySpark would take the first `python3` on the PATH, which may lack this environment's packages.
    """
    if "PYSPARK_PYTHON" in os.environ:
        yield
        return
    with _defining:
        theirs, context.pythonExec = context.pythonExec, sys.executable
        try:
            yield
        finally:
            context.pythonExec = theirs
