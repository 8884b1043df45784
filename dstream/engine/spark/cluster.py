"""`Cluster`: the Spark session as the engine uses it: stages, shuffles, jobs, and their failures."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dstream.engine.spark.code import Code
from dstream.engine.spark.rows import SCHEMA, Row, from_record_batches
from dstream.engine.spark.shipping import packed, packed_split
from dstream.engine.spark.stage import Input, Piece, Sink, Stage, read_tables, run
from dstream.engine.spark.transport import from_worker
from dstream.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Cluster"]


class Cluster:
    """Builds DataFrames of rows and runs them.

    Attributes:
        spark: the session.
        worker_memory: how many bytes a worker may hold before operations spill.
    """

    def __init__(self, spark: SparkSession, worker_memory: int, code: Code | None = None) -> None:
        self.spark = spark
        self.worker_memory = worker_memory
        self._code = code

    @property
    def cores(self) -> int:
        """How many tasks run at the same time; asked anew, since executors come and go."""
        return self.spark.sparkContext.defaultParallelism

    def numbers(self, count: int) -> DataFrame:
        """Return `count` partitions with their number in each."""
        return self.spark.range(0, count, 1, max(count, 1))

    def shipped(self, pieces: Sequence[Piece]) -> DataFrame:
        """Return one partition for each piece, with the piece in it."""
        import pyarrow as pa

        numbers = pa.array(range(len(pieces)), type=pa.int32())
        table = pa.table({"target": numbers, "payload": pa.array(map(packed, pieces), type=pa.binary())})
        return self.spark.createDataFrame(table).repartitionById(len(pieces), "target")

    def stage(self, frame: DataFrame, source: Input, sink: Sink) -> DataFrame:
        """Return the rows of a stage over `frame`."""
        if self._code is not None:
            self._code.ship()
        pickled = packed(Stage(source, sink, self.worker_memory))
        path = tuple(os.path.abspath(entry) for entry in sys.path)

        def dstream_stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return run(pickled, path, batches)

        with _interpreter_of_the_driver(self.spark.sparkContext):
            return frame.mapInArrow(dstream_stage, _schema())

    def table(self, splits: Sequence[Any], schema: pa.Schema) -> DataFrame:
        """Return a DataFrame of the Arrow batches that splits read, one task for each."""
        from pyspark.sql.pandas.types import from_arrow_schema

        if self._code is not None:
            self._code.ship()
        pickled = [packed_split(split, "this collection") for split in splits]
        path = tuple(os.path.abspath(entry) for entry in sys.path)

        def dstream_table(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return read_tables(pickled, path, batches)

        with _interpreter_of_the_driver(self.spark.sparkContext):
            return self.numbers(len(pickled)).mapInArrow(dstream_table, from_arrow_schema(schema))

    def shuffled(self, frame: DataFrame, targets: int) -> DataFrame:
        """Return the rows each in the partition of its target, one target after another, in the order of their sources.

        Several targets share a partition if there are more of them than partitions.
        """
        from pyspark.sql import functions as F

        placed = frame.repartitionById(targets, F.col("target") % targets)
        return placed.sortWithinPartitions("target", "source", "sequence")

    def pinned(self, frame: DataFrame) -> DataFrame:
        """Return `frame` so that it is computed once, by the next job, and kept where it was computed."""
        return frame.localCheckpoint(eager=False)

    def rows(self, frame: DataFrame) -> Iterator[Row]:
        """Run one job over all partitions and give its rows in order."""
        with translated():
            batches = frame.toArrow().to_batches()
        return from_record_batches(batches)

    def places(self, frame: DataFrame) -> list[tuple[int, int, int, int]]:
        """Run one job and return (source, sequence, channel, size) of its rows, in order, without payloads."""
        with translated():
            table = frame.select("source", "sequence", "channel", "size").toArrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def rows_one_partition_at_a_time(self, frame: DataFrame) -> Iterator[Row]:
        """Give the rows partition by partition, the next one computed while this one is looked at."""
        iterator = iter(frame.toLocalIterator(prefetchPartitions=True))
        while True:
            with translated():
                row = next(iterator, None)
            if row is None:
                return
            yield Row(row.target, row.source, row.sequence, row.channel, row.size, memoryview(row.payload))

    @contextmanager
    def configured(self, settings: Mapping[str, str]) -> Iterator[None]:
        """Run jobs with these Spark SQL settings."""
        if not settings:
            yield
            return
        before = {name: self.spark.conf.get(name, None) for name in settings}
        for name, value in settings.items():
            self.spark.conf.set(name, value)
        try:
            yield
        finally:
            for name, old in before.items():
                self.spark.conf.unset(name) if old is None else self.spark.conf.set(name, old)


@contextmanager
def _interpreter_of_the_driver(context: SparkContext) -> Iterator[None]:
    """Let the function that is defined meanwhile run on this interpreter, also in a session that the user started.

    PySpark would take the first `python3` on the PATH, which may know nothing of this environment.
    """
    theirs = context.pythonExec
    if "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = theirs


@functools.cache
def _schema() -> StructType:
    """Return the parsed schema; Spark would parse its text for every stage."""
    from pyspark.sql.types import StructType

    parsed = StructType.fromDDL(SCHEMA)
    assert isinstance(parsed, StructType)
    return parsed


@contextmanager
def translated() -> Iterator[None]:
    """Turn Spark's exceptions into the user's own, or into an `EngineError` in plain words.

    Raises:
        KeyboardInterrupt: the user interrupted the job. PySpark 4.3 cancels it, and then raises an exception
            about the cancelled job instead.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        original = from_worker(str(error))
        if original is None:
            raise EngineError(f"Spark could not run the job: {_in_plain_words(error)}") from error
        raise original from None


def _was_interrupted(error: BaseException) -> bool:
    """Say whether `error` arose while a KeyboardInterrupt was handled."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None


def _in_plain_words(error: Exception) -> str:
    """Return the cause, which stands deep inside the text of Spark's exception."""
    text = str(error)
    if "Python worker exited unexpectedly" in text:
        return "a Python worker died: it was killed, ran out of memory, or crashed in native code"
    lines = [line.strip() for line in text.partition("JVM stacktrace")[0].splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    if causes:
        return _without_class(causes[-1].removeprefix("Caused by: "))
    if "Traceback (most recent call last):" in lines:
        return f"a Python worker could not run it: {lines[-1]}"
    return _without_class(lines[0]) if lines else type(error).__name__


def _without_class(line: str) -> str:
    """Drop the name of the Java exception in front of its message."""
    return re.sub(r"^(?:[a-z]\w*\.)+\w+: ", "", line)
