"""`SparkEngine`: the ends of plans, as Spark jobs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from dstream.engine.columns import schema_of, table_of, unpacked_batches
from dstream.engine.compiler.ends import reads_only, reduced_apart
from dstream.engine.kernels import written, written_entries
from dstream.engine.progress import Call, Progress
from dstream.engine.recovering import Recovered
from dstream.engine.spark.borders import reduced
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Flow, Frame, Splits, piece_rows, rows_of, segment_rows
from dstream.engine.spark.looping import endless, page, part, waves
from dstream.engine.spark.run import Run
from dstream.engine.spark.troubles import translating
from dstream.engine.spark.work import ItemCounts, Work
from dstream.engine.submitted import Cancellation, Submitted
from dstream.engine.worker.readers import combine_groups, read_buckets, read_columns
from dstream.engine.worker.routing import RouteGroups
from dstream.engine.worker.rows import COLUMNS, ITEMS
from dstream.engine.worker.sinks import Accumulate, Act, RouteToBuckets, WriteColumns, WriteItems
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.plan import (
    Collect,
    Columns,
    End,
    ForEachPartition,
    Loop,
    Node,
    Partitions,
    Step,
    ToList,
    Write,
    configuration,
    is_bounded,
    is_ordered,
    rewrite,
    step_of,
)
from dstream.plan.captures import check_captures
from dstream.spi import Collector, MapWriter, Writer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["SparkEngine"]


class SparkEngine:
    """Runs plans on a Spark session."""

    name = "spark"

    def __init__(self, cluster: Cluster, stop: Callable[[], None], progress: Progress) -> None:
        self._cluster = cluster
        self._stop = stop
        self._progress = progress
        self._counts = ItemCounts(cluster.spark.sparkContext)

    @property
    def spark(self) -> Any:
        """The session that the plans run on."""
        return self._cluster.spark

    def submit(self, end: End) -> Submitted:
        """Return a run of the plan on Spark."""
        call = None if end.label() else Call.of_user()
        return Submitted(functools.partial(self._run, end, call))

    @translating
    def _run(self, plan: End, call: Call | None, cancellation: Cancellation) -> Any:
        check_captures(plan)
        self._cluster.check_running()
        end = rewrite(plan)
        assert isinstance(end, End)
        run = self._begun(end, call or Call.of_step(step_of(end)), cancellation)
        match end:
            case Loop():
                return _loop(end.upstream, run)
            case Partitions():
                return _partitions(end.upstream, run)
            case ToList() if page(end.upstream)[1] is not None:
                return list(_loop(end.upstream, run))
        with run:
            return self._result(end, step_of(end), run)

    def _begun(self, end: End, call: Call, cancellation: Cancellation) -> Run:
        """Return a run of a plan that ends in `call`."""
        work = Work(self._cluster.spark.sparkContext, self._progress, self._counts, call, cancellation.check)
        cancellation.by(work.cancel)
        cluster = self._cluster.at_work(work).with_settings(configuration(end))
        in_small_pieces = isinstance(end, Loop) and is_bounded(end) and reads_only(end.upstream)
        return Run(end, cluster, Recovered(end, self._progress), in_small_pieces)

    def _result(self, end: End, step: Step, run: Run) -> Any:
        match end:
            case ToList():
                return run.items(rows_of(run.lower(end.upstream), WriteItems(), run.cluster))
            case Collect():
                return _collected(end, step, run)
            case ForEachPartition(action=action):
                run.items(rows_of(run.lower(end.upstream), Act(action, step), run.cluster))
                return None
            case Write():
                return _written(end, step, run)
            case Columns(is_frame=is_frame):
                rows = rows_of(run.lower(end.upstream), WriteColumns(step), run.cluster)
                return _data_frame(rows, step, run) if is_frame else _arrow(rows, step, run)
        raise UnsupportedError(f"the Spark engine does not run a plan that ends in {end!r}")

    def data_frame(self, splits: Sequence[Any], schema: Any) -> DataFrame:
        """Return a lazy DataFrame over splits with `read_arrow`; each is read by one task, whenever Spark asks."""
        self._cluster.check_running()
        return self._cluster.table(splits, schema)

    def close(self) -> None:
        """Stop the session if this engine started it."""
        self._stop()


def _loop(core: Node, run: Run) -> Iterator[Any]:
    """Give the items in encounter order, lazily: the first partition, then more at a time."""
    if not is_bounded(core):
        return endless(run, core)
    skipped, limit = page(core)
    if limit is not None:
        return part(waves(run, limit.upstream, limit), skipped, limit.count)
    return waves(run, core, None)


def _partitions(core: Node, run: Run) -> list[Iterator[Any]]:
    """Return one lazy iterator for each partition, in encounter order; each runs a job of its own."""
    if not is_bounded(core):
        return [_loop(core, run)]
    iterators: list[Iterator[Any]] = []
    for segment in run.lower(core).segments:
        if isinstance(segment, Splits):
            frames: Iterable[DataFrame] = (
                piece_rows([piece], WriteItems(), number, run.cluster) for number, piece in enumerate(segment.pieces)
            )
        else:
            pinned = run.cluster.pinned(segment_rows(segment, WriteItems(), 0, run.cluster))
            # What `peek` saw in partitions of which there are no more now comes with the first one.
            beyond = f" or (channel > {ITEMS} and source >= {segment.partitions})"
            frames = (
                pinned.where(f"source = {number}{'' if number else beyond}") for number in range(segment.partitions)
            )
        iterators += [run.recovered.watching(run.lazily(frame)) for frame in frames]
    return iterators


def _collected(end: Collect, step: Step, run: Run) -> Any:
    """Reduce in parallel, combine in encounter order, finish once."""
    collector, sink = end.collector, Accumulate(end.collector, step)
    apart = None if run.recovered.has_letters else reduced_apart(end.upstream, collector)
    if apart is not None:
        rows = reduced(apart, run.lower(apart.gather.upstream), sink, run.cluster)
    else:
        flow = run.lower(end.upstream)
        if collector.keyed is not None and not flow.has_one_partition():
            return _collected_groups(end, step, flow, run)
        rows = rows_of(flow, sink, run.cluster)
    containers = run.containers(rows)
    with naming(step):
        (first,) = next(containers, None) or [collector.supplier()]
        combined = functools.reduce(collector.combined, (held for (held,) in containers), first)
        return collector.finisher(combined)


def _collected_groups(node: Collect, step: Step, flow: Flow, run: Run) -> Any:
    """Combine each group where the shuffle put it; the driver gets one finished value for each."""
    keyed = node.collector.keyed
    assert keyed is not None
    targets = run.facts.targets(flow.count_partitions())
    routed = run.cluster.shuffled(rows_of(flow, RouteGroups(node.collector, targets, step), run.cluster), targets)
    groups = Frame(routed, targets, read_columns).pipe(functools.partial(combine_groups, keyed.downstream, step))
    finished = run.items(segment_rows(groups, WriteItems(), 0, run.cluster))
    if is_ordered(node.upstream):
        finished.sort(key=itemgetter(0))
    with naming(step):
        return keyed.assemble((key, value) for _, key, value in finished)


def _written(end: Write, step: Step, run: Run) -> list[Any]:
    """Let the writer take the items where they are; return its receipts in encounter order."""
    flow = run.lower(end.upstream)
    if end.collector is None:
        receipts = flow.pipe(functools.partial(written, cast(Writer, end.writer), step))
    else:
        receipts = _entries(flow, cast(MapWriter, end.writer), end.collector, step, run)
    return run.items(rows_of(receipts, WriteItems(), run.cluster))


def _entries(flow: Flow, writer: MapWriter, collector: Collector[Any, Any, Any], step: Step, run: Run) -> Flow:
    """Return the receipts for the groups, each combined in the task that writes its bucket."""
    assert collector.keyed is not None, "entries come from a keyed collector"
    targets = min(run.facts.targets(flow.count_partitions()), writer.buckets)
    routed = rows_of(flow, RouteToBuckets(collector, writer, step), run.cluster)
    buckets = Frame(run.cluster.shuffled(routed, targets), targets, read_buckets)
    return Flow((buckets.pipe(functools.partial(written_entries, writer, collector.keyed.downstream, step)),))


def _arrow(rows: DataFrame, step: Step, run: Run) -> pa.Table:
    """Return columns as an Arrow table."""
    batches = [batch for payload in run.payloads(rows) for batch in unpacked_batches(payload)]
    with naming(step):
        return table_of(batches)


def _data_frame(rows: DataFrame, step: Step, run: Run) -> DataFrame:
    """Return a DataFrame that reads columns where they were computed."""
    pinned = run.cluster.pinned(rows)
    schemas = run.payloads(pinned.where(f"channel <> {ITEMS}"), COLUMNS)
    with naming(step):
        schema = schema_of(schemas)
    return run.cluster.columns(pinned.where(f"channel = {ITEMS}"), schema)
