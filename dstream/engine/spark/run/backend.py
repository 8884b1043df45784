"""`SparkBackend`: a Spark session, with the caches that all runs on it share, and DataFrames of it for the caller."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dstream.base.by_value import dumps_by_value
from dstream.base.memory import DEFAULT_BROADCAST
from dstream.engine.compiler import ColumnMode
from dstream.engine.runs.splits import packed_split
from dstream.engine.spark.port.errors import check_process, stopped, translated
from dstream.engine.spark.port.protocols import Port
from dstream.engine.spark.run.service_listener import ServiceListener
from dstream.engine.tasks.process import InFunction, Payloads, SentFiles, archived, carried_stage
from dstream.engine.tasks.rows import (
    LARGEST,
    arrow_schema,
    too_large_for_java,
)
from dstream.engine.tasks.stage import Piece, Stage, read_columns, read_tables, run, search_path
from dstream.errors import SerializationError
from dstream.failures.transport import SECRET
from dstream.operators.rows.caches import Caches
from dstream.values.attachments import JobFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from dstream.plan.steps import Step

__all__ = [
    "LARGEST_PASSENGER",
    "MOST_PLANS",
    "KnownPlans",
    "SparkBackend",
    "frame_of_rows",
    "frame_of_splits",
    "packed",
    "schema_of_rows",
]


MOST_PLANS = 64
"""The number of plans of each kind in the cache."""


class KnownPlans:
    """Functions that make parts of plans, with a cache of their results; nothing in it differs from job to job.

    Attributes:
        numbers: returns *n* partitions, each with its number.
        places: returns the target of each row among *n* partitions, as a column.
        carrying: returns the rows of *n* tasks, which find modules on a path and run the stage that their job
            carries.
    """

    def __init__(self, port: Port) -> None:
        # A cache per session: a module-level cache would keep sessions alive for ever.
        remembering = functools.lru_cache(MOST_PLANS)
        self.numbers = remembering(functools.partial(_numbers, port))
        self.places = remembering(functools.partial(_targets, port))
        self.carrying = remembering(functools.partial(_carrying, port, self.numbers))


def _numbers(port: Port, count: int) -> DataFrame:
    return port.session.range(0, count, 1, max(count, 1))


def _targets(port: Port, targets: int) -> Column:
    return port.column("target") % targets


def _carrying(port: Port, numbers: Callable[[int], DataFrame], tasks: int, path: tuple[str, ...]) -> DataFrame:
    secret = SECRET

    def dstream_stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(carried_stage(), path, batches, secret)

    return port.mapped(numbers(tasks), dstream_stage, schema_of_rows())


@functools.cache
def schema_of_rows() -> StructType:
    """Return the schema of rows, parsed; Spark would parse a string for every stage."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow_schema())


def packed(stage: Stage | Piece) -> bytes:
    """Pickle a stage, or a piece of a source with its operations.

    The captures of its functions were checked when the run began (`dstream.plan.capture_checks`).

    Raises:
        SerializationError: something else in it cannot travel.
    """
    try:
        return dumps_by_value(stage)
    except Exception as error:
        raise SerializationError(f"this pipeline cannot be sent to the workers: {error}") from error


LARGEST_PASSENGER = 4 * 2**20
"""The most bytes of splits, or of payloads for all, that travel with the function that needs them, to every task."""

_SHARE_OF_ROW = 16
"""Java's memory contains a row this many times: six times during a transfer (4.3), with two or more tasks at once."""

_MOST_SHIPPED = 2
"""The limit of all pieces of sources that this process sends together, in rows of the largest size."""


class SparkBackend:
    """A Spark session, with the caches that all runs on it share.

    Attributes:
        port: the session.
        worker_memory: the bytes of memory that a worker may use before operations spill.
        caches: the contents of `cache()` steps, shared with other engines of the context.
        broadcast_limit: the largest right side in bytes of a hash join without its own limit.
        column_mode: whether functions are compiled to expressions, which run instead of them.
        plans: cached parts of plans that all jobs share.
    """

    def __init__(
        self,
        port: Port,
        worker_memory: int,
        caches: Caches | None = None,
        broadcast_limit: int = DEFAULT_BROADCAST,
        column_mode: ColumnMode = "auto",
    ) -> None:
        self.port = port
        self.worker_memory = worker_memory
        self.broadcast_limit = broadcast_limit
        self.column_mode: ColumnMode = column_mode
        self.caches = Caches() if caches is None else caches
        self.plans = KnownPlans(port)
        self._archives: WeakKeyDictionary[JobFiles, Payloads] = WeakKeyDictionary()

    def with_settings(self, settings: Mapping[str, str]) -> SparkBackend:
        """Return a copy of the backend with these Spark SQL settings, which no other run sees."""
        if not settings:
            return self
        port = self.port.with_settings(settings)
        # The same caches: contents cached under other settings are read under these, too.
        return SparkBackend(port, self.worker_memory, self.caches, self.broadcast_limit, self.column_mode)

    def files_of_job(self, files: JobFiles | None) -> SentFiles | None:
        """Return the files of a job for its tasks; they are sent once to each session."""
        if files is None:
            return None
        return SentFiles(files, None if self.port.workers_see_files() else self._archive(files))

    def _archive(self, files: JobFiles) -> Payloads:
        if files not in self._archives:
            self._archives[files] = self.send_to_all(archived(files.folder), files)
        return self._archives[files]

    def service_listener(self) -> ServiceListener | None:
        """Return where workers may wait for the end of a run; None if they do not reach this process."""
        reached = self.port.where_workers_connect()
        return None if reached is None else ServiceListener(*reached)

    def largest_row(self) -> int:
        """Return how many bytes of pickled items a row may have."""
        return min(self.port.java_memory() // _SHARE_OF_ROW, LARGEST)

    def check_running(self) -> None:
        """Refuse to go on if the user stopped Spark, or if it works for the process that this one was forked from.

        Raises:
            EngineError: Spark was stopped, or is not ours to talk to.
        """
        check_process()
        if not self.port.is_running():
            raise stopped()

    @property
    def cores(self) -> int:
        """The number of tasks that run at the same time."""
        check_process()
        return self.port.cores()

    def numbers(self, count: int) -> DataFrame:
        """Return `count` partitions with their number in each; Spark plans them once."""
        check_process()
        return self.plans.numbers(count)

    def shipped(self, pieces: Sequence[Piece]) -> DataFrame:
        """Return one partition for each piece, with the piece in it."""
        check_process()
        import pyarrow as pa

        payloads, most = list(map(packed, pieces)), _MOST_SHIPPED * self.largest_row()
        if (size := sum(map(len, payloads))) > most:
            advice = "let the workers read them, from a file or from a distributed map or list"
            raise too_large_for_java("the items of the source have", size, most, _step_of(pieces[0]), advice)
        numbers = pa.array(range(len(pieces)), type=pa.int32())
        table = pa.table({"target": numbers, "payload": pa.array(payloads, type=pa.binary())})
        return self.port.placed(self.port.frame_of(table), len(pieces), self.port.column("target"))

    def send_to_all(self, payloads: Sequence[Any], holder: object) -> Payloads:
        """Make payloads available in every worker process, at least for the lifetime of `holder`."""
        check_process()
        name = f"dstream-sent-{uuid.uuid4().hex}"
        if sum(map(len, payloads)) <= LARGEST_PASSENGER:
            return InFunction(name, tuple(map(bytes, payloads)))
        with translated(self.port.session):
            return self.port.send_to_all(name, payloads, holder)

    def shuffled(self, frame: DataFrame, targets: int) -> DataFrame:
        """Return the rows each in the partition of its target, one target after another, in the order of their sources.

        Several targets share a partition if there are more of them than partitions.
        """
        placed = self.port.placed(frame, targets, self.plans.places(targets))
        return placed.sortWithinPartitions(*map(self.port.column, ("target", "source", "sequence")))

    def beside(self, frame: DataFrame, targets: int) -> DataFrame:
        """Return the rows with targets after those of others, which `shuffled` brings into the same partitions."""
        return frame.withColumn("target", self.port.column("target") + targets)

    def setting(self, name: str) -> str:
        """Return a setting of the session, which is there or has a default."""
        return self.port.session.conf.get(name) or ""


def _step_of(piece: Piece) -> Step | None:
    """Return the step of the first source of a piece."""
    while piece.split is None and piece.parts:
        piece = piece.parts[0]
    return piece.step


_LONGEST_DECIMAL = 38
"""The most digits of a Decimal of Spark."""


def columns_of_spark(schema: pa.Schema) -> StructType:
    """Return the types that Spark has for columns of Arrow.

    Raises:
        TypeError: it has none for one of them. Times of day it has, and refuses in most of what a DataFrame does (4.3).
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    for field in schema:
        pending = [field.type]
        while pending:
            kind = pending.pop()
            if isinstance(kind, pa.BaseExtensionType) or pa.types.is_time(kind):
                raise TypeError(_refusal(field.name, kind, "str"))
            if pa.types.is_decimal(kind) and kind.precision > _LONGEST_DECIMAL:
                digits = f"str, or to Decimals of {_LONGEST_DECIMAL} digits at most"
                raise TypeError(_refusal(field.name, kind, digits))
            pending += (kind.field(place).type for place in range(kind.num_fields))
    return from_arrow_schema(schema)


def _refusal(column: str, kind: pa.DataType, instead: str) -> str:
    return (
        f"column {column!r} holds {kind}, and DataFrames of Spark have no such type: map() it before, as to {instead}"
    )


def frame_of_rows(frame: DataFrame, schema: pa.Schema, backend: SparkBackend) -> DataFrame:
    """Return a DataFrame of the Arrow batches in the payloads of `frame`, in the columns of `schema`."""
    columns, path = columns_of_spark(schema), search_path()

    def dstream_columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_columns(schema, path, batches)

    return backend.port.mapped(frame, dstream_columns, columns)


def frame_of_splits(splits: Sequence[Any], schema: pa.Schema, backend: SparkBackend) -> DataFrame:
    """Return a DataFrame of the Arrow batches that splits read, one task for each."""
    columns, path = columns_of_spark(schema), search_path()
    pickled = [packed_split(split, "this collection") for split in splits]

    def dstream_table(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_tables(pickled, path, batches)

    return backend.port.mapped(backend.numbers(len(pickled)), dstream_table, columns)
