"""`SparkEngine`: terminal operations as Spark jobs, with results as values or DataFrames."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dstream.engine.calls import Call, Cancellation, Progress, Submitted
from dstream.engine.compiler.ends import reads_only
from dstream.engine.compiler.inputs import parts_of
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.physical import vertices
from dstream.engine.physical.graph import Assembled, Combined, Each, Finish, Framed, Listed, Nothing, Pulled, Separated
from dstream.engine.physical.vertices import Items
from dstream.engine.spark.port.errors import translating
from dstream.engine.spark.run.backend import SparkBackend, packed_split
from dstream.engine.spark.run.driver_shuffle import ShuffleFiles
from dstream.engine.spark.run.execution import SparkRun, pulled
from dstream.engine.spark.run.jobs import CarriedStage, ItemCounts, LastRows, OperationJobs, RunOptions, StageRunner
from dstream.engine.spark.run.segments import SplitSegment, chosen_rows, last_rows, piece_rows, segment_rows
from dstream.engine.tasks.rows import COLUMNS, ITEMS
from dstream.engine.tasks.sinks import WriteItems
from dstream.engine.tasks.stage import Piece, read_columns, read_tables, search_path
from dstream.failures import naming
from dstream.plan.capture_checks import check_captures
from dstream.plan.operations.ends import End, Loop, Partitions, Several, ToList
from dstream.plan.properties import check, configuration, guards_of, is_bounded, is_of_epoch, served_steps
from dstream.plan.steps import Step
from dstream.plan.walk import of_one_run, recalled, topological
from dstream.schema.tables import schema_of, table_of, unpacked_batches
from dstream.spi import Collector
from dstream.values.attachments import files_here

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["SparkEngine", "columns_of_spark", "frame_of_rows", "frame_of_splits"]


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
        waiting = [field.type]
        while waiting:
            kind = waiting.pop()
            if isinstance(kind, pa.BaseExtensionType) or pa.types.is_time(kind):
                raise TypeError(_refusal(field.name, kind, "str"))
            if pa.types.is_decimal(kind) and kind.precision > _LONGEST_DECIMAL:
                digits = f"str, or to Decimals of {_LONGEST_DECIMAL} digits at most"
                raise TypeError(_refusal(field.name, kind, digits))
            waiting += (kind.field(place).type for place in range(kind.num_fields))
    return from_arrow_schema(schema)


def _refusal(column: str, kind: pa.DataType, instead: str) -> str:
    return (
        f"column {column!r} holds {kind}, and DataFrames of Spark have no such type: map() it before, as to {instead}"
    )


def frame_of_rows(frame: DataFrame, schema: pa.Schema, backend: SparkBackend) -> DataFrame:
    """Return a DataFrame of the Arrow batches that the payloads of `frame` hold, in the columns of `schema`."""
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


class SparkEngine:
    """Runs plans on a Spark session."""

    name = "spark"

    def __init__(self, backend: SparkBackend, stop: Callable[[], None], progress: Progress) -> None:
        self._backend = backend
        self._stop = stop
        self._progress = progress
        self._counts = ItemCounts(backend.port)

    @property
    def spark(self) -> Any:
        """The session that the plans run on."""
        return self._backend.port.session

    def submit(self, end: End | Several) -> Submitted:
        """Return a run of the plan on Spark."""
        # Looked for now: a run in a thread of its own has no frame of the user's above it.
        call = None if end.label() else Call.of_user()
        return Submitted(functools.partial(self._run, end, call))

    @translating
    def _run(self, plan: End | Several, call: Call | None, cancellation: Cancellation) -> Any:
        check_captures(plan)
        if isinstance(plan, Several):
            check(plan, needs_end=True)
        self._backend.check_running()
        end = recalled(of_one_run(plan), self._backend.caches.found)
        run = self._begun(end, call or Call.of_step(end.step), cancellation)
        if isinstance(end, Loop | Partitions):
            return _result(end, run)
        with run.supplied() as end:
            return _result(end, run)

    def _begun(self, end: End | Several, call: Call, cancellation: Cancellation) -> SparkRun:
        """Return a run of a plan that ends in `call`."""
        work = OperationJobs(self._backend.port, self._progress, self._counts, call, cancellation.check)
        cancellation.by(work.cancel)
        backend = self._backend.with_settings(configuration(end))
        is_epoch = is_of_epoch(end)
        options = RunOptions(
            work,
            work.call,
            files=self._backend.files_of_job(files_here()),
            hands_failures_on=is_epoch,
            counts_rows=is_epoch,
            is_one_task=is_epoch and isinstance(end, Several) and end.is_small,
        )
        in_small_pieces = isinstance(end, Loop) and is_bounded(end) and reads_only(end.upstream)
        operations = topological(end)
        if any(each.opened().shared for each in served_steps(operations)):
            options = replace(options, services=self._backend.service_listener())
        recovered = RecoveryReport(operations, self._progress) if any(guards_of(operations)) else None
        runner = StageRunner(backend, options)
        files = None if runner.shuffle_folder() is None else ShuffleFiles()
        return SparkRun(end, runner, recovered, in_small_pieces, files)

    def data_frame(self, splits: Sequence[Any], schema: Any) -> DataFrame:
        """Return a lazy DataFrame over splits with `read_arrow`; each is read by one task, whenever Spark asks."""
        self._backend.check_running()
        return frame_of_splits(splits, schema, self._backend)

    def cores(self) -> int:
        """Return how many tasks run at the same time."""
        return self._backend.cores

    def warm_up(self) -> None:
        """Run a job without items, so that workers run, and the packages of a first job are loaded."""
        nothing = [Piece(None, (), (), None)] * min(self.cores(), 2)
        runner = StageRunner(self._backend)
        list(runner.rows(last_rows(SplitSegment(nothing), WriteItems(), 0, runner)))

    def is_lost(self) -> bool:
        """Say whether Spark was stopped, or its process is gone."""
        return not self._backend.port.is_alive()

    def close(self) -> None:
        """Release the contents of `cache()` steps; stop the session if this engine started it."""
        self._backend.caches.clear()
        self._stop()


def _result(end: End | Several, run: SparkRun) -> Any:
    """Run a plan, and return its result."""
    if isinstance(end, Several):
        with run:
            return _of_each_end(end, run)
    match run.graph.ending:
        case Pulled() as ending:
            items = pulled(run, ending)
            return list(items) if isinstance(end, ToList) else [items] if isinstance(end, Partitions) else items
        case Each(inputs):
            return _partitions(inputs, run)
    with run:
        rows, finish = run.last()
        return _finished(rows, finish, end.step, run)


def _of_each_end(several: Several, run: SparkRun) -> list[Any]:
    """Run the graphs of a plan with several ends one after another; forks that several of them read are kept meanwhile.

    What one of them leaves behind beside its items is delivered when all have run.
    """
    results: dict[int, Any] = {}
    for part in parts_of(several):
        # This graph reads what an earlier one has cached, so the operations before that are not compiled again.
        end = recalled(part.end, run.runner.backend.caches.found)
        graph = replace(run, end=end, runner=run.runner.doing(end.step, ""))
        rows, finish = graph.last()
        result = _finished(rows, finish, end.step, graph)
        results.update(zip(part.numbers, result if isinstance(finish, Separated) else [result], strict=True))
    return [results[number] for number in range(len(results))]


def _finished(rows: LastRows, finish: Finish, step: Step, run: SparkRun) -> Any:
    """Run the last job, and make the result of its rows."""
    match finish:
        case Listed():
            return run.items(rows)
        case Nothing():
            run.items(rows)
            return None
        case Combined(collector):
            return _combined(rows, collector, step, run)
        case Assembled(collector, is_ordered):
            return _assembled(rows, collector, is_ordered, step, run)
        case Separated(sinks):
            return run.items_by_target(rows, sinks)
        case Framed(is_frame):
            if not is_frame:
                return _arrow(rows, step, run)
            assert not isinstance(rows, CarriedStage), "their rows are read again"
            return _data_frame(rows, step, run)


def _partitions(inputs: Items, run: SparkRun) -> list[Iterator[Any]]:
    """Return one lazy iterator for each partition, in encounter order; each runs a job of its own."""
    iterators: list[Iterator[Any]] = []
    for segment in run.flow(inputs).segments:
        if isinstance(segment, SplitSegment):
            frames: Iterable[DataFrame] = (
                piece_rows([piece], WriteItems(), number, run.runner) for number, piece in enumerate(segment.pieces)
            )
        else:
            pinned = run.runner.port.pinned(segment_rows(segment, WriteItems(), 0, run.runner))
            # What `peek` saw in partitions of which there are no more now comes with the first one.
            beyond = f" or (channel > {ITEMS} and source >= {segment.partitions})"
            frames = (
                pinned.where(f"source = {number}{'' if number else beyond}") for number in range(segment.partitions)
            )
        iterators += [run.watching(run.lazily(frame)) for frame in frames]
    return run.together(iterators)


def _combined(rows: LastRows, collector: Collector[Any, Any, Any], step: Step, run: SparkRun) -> Any:
    """Combine the containers of the tasks in encounter order, and finish once."""
    containers = run.containers(rows)
    with naming(step):
        (first,) = next(containers, None) or [collector.supplier()]
        combined = functools.reduce(collector.combined, (held for (held,) in containers), first)
        return collector.finisher(combined)


def _assembled(rows: LastRows, collector: Collector[Any, Any, Any], is_ordered: bool, step: Step, run: SparkRun) -> Any:
    """Put finished groups together."""
    assert collector.keyed is not None, "groups come from a keyed collector"
    finished = run.items(rows)
    if is_ordered:
        finished.sort(key=itemgetter(0))
    with naming(step):
        return collector.keyed.assemble((key, value) for _, key, value in finished)


def _arrow(rows: LastRows, step: Step, run: SparkRun) -> pa.Table:
    """Return columns as an Arrow table."""
    batches = [batch for payload in run.payloads(rows) for batch in unpacked_batches(payload)]
    with naming(step):
        return table_of(batches)


def _data_frame(rows: DataFrame, step: Step, run: SparkRun) -> DataFrame:
    """Return a DataFrame that reads columns where they were computed."""
    # Pinned, since the schemas are read now, and the columns by the DataFrame later, without another run.
    pinned = run.runner.port.pinned(rows)
    schemas = run.payloads(chosen_rows(pinned, vertices.SCHEMAS), COLUMNS)
    with naming(step):
        return frame_of_rows(chosen_rows(pinned, vertices.ITEMS), schema_of(schemas), run.runner.backend)
