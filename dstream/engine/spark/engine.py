"""`SparkEngine`: the terminal operations, as Spark jobs."""

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
from dstream.engine.worker.readers import combine_groups, read_buckets, read_columns
from dstream.engine.worker.routing import RouteGroups
from dstream.engine.worker.rows import COLUMNS, ITEMS
from dstream.engine.worker.sinks import Accumulate, Act, RouteToBuckets, WriteColumns, WriteItems
from dstream.failures import naming
from dstream.plan import (
    Collect,
    Columns,
    ForEachPartition,
    Node,
    Step,
    Write,
    configuration,
    is_bounded,
    is_ordered,
    rewrite,
)
from dstream.plan.captures import check_captures
from dstream.spi import Collector, MapWriter, Writer
from dstream.values.contexts import contextmanager

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

    @translating
    def iterate(self, node: Node) -> Iterator[Any]:
        """Give the items in encounter order, lazily: the first partition, then more at a time."""
        self._check(node)
        call = Call.of_user()
        core = rewrite(node)
        if not is_bounded(node):
            return endless(self._run(core, call), core)
        skipped, limit = page(core)
        if limit is not None:
            return part(waves(self._run(core, call), limit.upstream, limit), skipped, limit.count)
        return waves(self._run(core, call, in_small_pieces=reads_only(core)), core, None)

    @translating
    def gather_all(self, node: Node) -> list[Any]:
        """Return all items in encounter order; every partition runs at once."""
        core = rewrite(node)
        if page(core)[1] is not None:
            return list(self.iterate(node))
        self._check(node)
        with self._run(core, Call.of_user()) as run:
            return run.items(rows_of(run.lower(core), WriteItems(), run.cluster))

    @translating
    def partitions(self, node: Node) -> list[Iterator[Any]]:
        """Return one lazy iterator for each partition, in encounter order; each runs a job of its own."""
        self._check(node)
        if not is_bounded(node):
            return [self.iterate(node)]
        run = self._run(rewrite(node), Call.of_user())
        flow = run.lower(run.root)
        iterators: list[Iterator[Any]] = []
        for segment in flow.segments:
            if isinstance(segment, Splits):
                frames: Iterable[DataFrame] = (
                    piece_rows([piece], WriteItems(), number, run.cluster)
                    for number, piece in enumerate(segment.pieces)
                )
            else:
                pinned = run.cluster.pinned(segment_rows(segment, WriteItems(), 0, run.cluster))
                frames = (pinned.where(f"source = {number}") for number in range(segment.partitions))
            iterators += [run.recovered.watching(run.lazily(frame)) for frame in frames]
        return iterators

    @translating
    def collect(self, node: Collect) -> Any:
        """Reduce in parallel as `node` says, combine in encounter order, finish once."""
        self._check(node)
        core = rewrite(node)
        assert isinstance(core, Collect)
        assert core.step is not None
        with self._run(core, Call.of_step(core.step)) as run:
            sink = Accumulate(core.collector, core.step)
            apart = None if run.recovered.has_letters else reduced_apart(core.upstream, core.collector)
            if apart is not None:
                rows = reduced(apart, run.lower(apart.gather.upstream), sink, run.cluster)
            else:
                flow = run.lower(core.upstream)
                if core.collector.keyed is not None and not flow.has_one_partition():
                    return self._collect_groups(core, core.step, flow, run)
                rows = rows_of(flow, sink, run.cluster)
            containers = run.containers(rows)
            with naming(core.step):
                (first,) = next(containers, None) or [core.collector.supplier()]
                combined = functools.reduce(core.collector.combined, (held for (held,) in containers), first)
                return core.collector.finisher(combined)

    def _collect_groups(self, node: Collect, step: Step, flow: Flow, run: Run) -> Any:
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

    @translating
    def for_each_partition(self, node: ForEachPartition) -> None:
        """Run the action of `node` on the worker that has each partition."""
        self._check(node)
        core = rewrite(node)
        assert isinstance(core, ForEachPartition)
        assert core.step is not None
        with self._run(core, Call.of_step(core.step)) as run:
            run.items(rows_of(run.lower(core.upstream), Act(core.action, core.step), run.cluster))

    @translating
    def write(self, node: Write) -> list[Any]:
        """Let the writer of `node` take the items where they are; return its receipts in encounter order."""
        self._check(node)
        core = rewrite(node)
        assert isinstance(core, Write)
        assert core.step is not None
        with self._run(core, Call.of_step(core.step)) as run:
            flow = run.lower(core.upstream)
            if core.collector is None:
                receipts = flow.pipe(functools.partial(written, cast(Writer, core.writer), core.step))
            else:
                receipts = self._entries(flow, cast(MapWriter, core.writer), core.collector, core.step, run)
            return run.items(rows_of(receipts, WriteItems(), run.cluster))

    def _entries(
        self, flow: Flow, writer: MapWriter, collector: Collector[Any, Any, Any], step: Step, run: Run
    ) -> Flow:
        """Return the receipts for the groups, each combined in the task that writes its bucket."""
        assert collector.keyed is not None, "entries come from a keyed collector"
        targets = min(run.facts.targets(flow.count_partitions()), writer.buckets)
        routed = rows_of(flow, RouteToBuckets(collector, writer, step), run.cluster)
        buckets = Frame(run.cluster.shuffled(routed, targets), targets, read_buckets)
        return Flow((buckets.pipe(functools.partial(written_entries, writer, collector.keyed.downstream, step)),))

    @translating
    def to_arrow(self, node: Columns) -> pa.Table:
        """Return all items as an Arrow table, whose columns the workers make."""
        with self._columns(node) as (run, rows, step):
            batches = [batch for payload in run.payloads(rows) for batch in unpacked_batches(payload)]
            with naming(step):
                return table_of(batches)

    @translating
    def to_data_frame(self, node: Columns) -> DataFrame:
        """Run the plan; return a DataFrame that reads its items where they were computed."""
        with self._columns(node) as (run, rows, step):
            pinned = run.cluster.pinned(rows)
            schemas = run.payloads(pinned.where(f"channel <> {ITEMS}"), COLUMNS)
            with naming(step):
                schema = schema_of(schemas)
            return run.cluster.columns(pinned.where(f"channel = {ITEMS}"), schema)

    @contextmanager
    def _columns(self, node: Columns) -> Iterator[tuple[Run, DataFrame, Step]]:
        """Give a run, and the rows that carry the items of `node` as columns."""
        self._check(node)
        core = rewrite(node)
        assert isinstance(core, Columns)
        assert core.step is not None
        with self._run(core, Call.of_step(core.step)) as run:
            flow = run.lower(core.upstream)
            yield run, rows_of(flow, WriteColumns(core.step), run.cluster), core.step

    def data_frame(self, splits: Sequence[Any], schema: Any) -> DataFrame:
        """Return a lazy DataFrame over splits with `read_arrow`; each is read by one task, whenever Spark asks."""
        self._cluster.check_running()
        return self._cluster.table(splits, schema)

    def close(self) -> None:
        """Stop the session if this engine started it."""
        self._stop()

    def _check(self, node: Node) -> None:
        """Refuse, before any job starts, what cannot run."""
        check_captures(node)
        self._cluster.check_running()

    def _run(self, root: Node, call: Call, *, in_small_pieces: bool = False) -> Run:
        """Return a run of a plan that ends in `call`."""
        work = Work(self._cluster.spark.sparkContext, self._progress, self._counts, call)
        cluster = self._cluster.at_work(work).with_settings(configuration(root))
        return Run(root, cluster, Recovered(root, self._progress), in_small_pieces)
