"""`SparkEngine`: the terminal operations, as Spark jobs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from dstream.engine.batches import loads, loads_items
from dstream.engine.columns import schema_of, table_of, unpacked_batches
from dstream.engine.kernels import operation, written, written_entries
from dstream.engine.progress import Call, Progress
from dstream.engine.recovering import Recovered
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Flow, Frame, Splits, piece_rows, rows_of, segment_rows
from dstream.engine.spark.lowering import Lowering
from dstream.engine.spark.readers import combine_groups, read_buckets, read_groups
from dstream.engine.spark.rows import COLUMNS, ITEMS, Row
from dstream.engine.spark.side_rows import FEW_BYTES, SideRows
from dstream.engine.spark.sinks import Accumulate, Act, RouteGroups, RouteToBuckets, WriteColumns, WriteItems
from dstream.engine.spark.troubles import translating
from dstream.engine.spark.work import ItemCounts, Work
from dstream.failures import naming
from dstream.plan import (
    Collect,
    Columns,
    ForEachPartition,
    Limit,
    Node,
    Skip,
    Step,
    Write,
    configuration,
    is_bounded,
    is_ordered,
    rewrite,
)
from dstream.plan.captures import check_captures
from dstream.spi import Collector, MapWriter, Writer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["FEW", "SparkEngine", "page"]

_FIRST_CHUNK = 1024
FEW = 10_000
_WAVE_GROWTH = 4


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
        if not is_bounded(node):
            return self._endless(node, call)
        core = rewrite(node)
        skipped, limit = page(core)
        if limit is not None:
            return _part(self._waves(limit.upstream, limit, 1, call), skipped, limit.count)
        return self._waves(core, None, self._cluster.cores, call)

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
            return [self._endless(node, Call.of_user())]
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
            flow = run.lower(core.upstream)
            if core.collector.keyed is not None and not flow.has_one_partition():
                return self._collect_groups(core, core.step, flow, run)
            containers = run.containers(rows_of(flow, Accumulate(core.collector, core.step), run.cluster))
            with naming(core.step):
                (first,) = next(containers, None) or [core.collector.supplier()]
                combined = functools.reduce(core.collector.combined, (held for (held,) in containers), first)
                return core.collector.finisher(combined)

    def _collect_groups(self, node: Collect, step: Step, flow: Flow, run: _Run) -> Any:
        """Combine each group where the shuffle put it; the driver gets one finished value for each."""
        keyed = node.collector.keyed
        assert keyed is not None
        targets = run.lowering.targets(flow.count_partitions())
        routed = run.cluster.shuffled(rows_of(flow, RouteGroups(node.collector, targets, step), run.cluster), targets)
        groups = Frame(routed, targets, read_groups).pipe(functools.partial(combine_groups, keyed.downstream, step))
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
        self, flow: Flow, writer: MapWriter, collector: Collector[Any, Any, Any], step: Step, run: _Run
    ) -> Flow:
        """Return the receipts for the groups, each combined in the task that writes its bucket."""
        assert collector.keyed is not None, "entries come from a keyed collector"
        targets = min(run.lowering.targets(flow.count_partitions()), writer.buckets)
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
    def _columns(self, node: Columns) -> Iterator[tuple[_Run, DataFrame, Step]]:
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
        return self._cluster.table(splits, schema)

    def close(self) -> None:
        """Stop the session if this engine started it."""
        self._stop()

    def _check(self, node: Node) -> None:
        """Refuse, before any job starts, what cannot run."""
        check_captures(node)
        self._cluster.check_running()

    def _run(self, root: Node, call: Call) -> _Run:
        """Return a run of a plan that ends in `call`."""
        work = Work(self._cluster.spark.sparkContext, self._progress, self._counts, call)
        cluster = self._cluster.at_work(work)
        recovered = Recovered(root, self._progress)
        return _Run(root, Lowering(root, cluster, recovered.actions()), cluster, recovered)

    def _waves(self, core: Node, last: Limit | None, first_wave: int, call: Call) -> Generator[Any, None, None]:
        """Run some partitions, give their items, and go on with more only when asked."""
        with self._run(core, call) as run:
            flow = run.lower(core)
            if last is not None:
                flow = flow.pipe(operation(last))
            for segment in flow.segments:
                if isinstance(segment, Frame):
                    rows = segment_rows(segment, WriteItems(), 0, run.cluster)
                    # Few items come at once, so that what `peek` saw of them comes before the first is given.
                    is_short = last is not None and last.count <= FEW
                    yield from run.items(rows) if is_short else run.lazily(rows)
                    continue
                pieces, size = iter(segment.pieces), first_wave
                while wave := list(islice(pieces, size)):
                    yield from run.items(piece_rows(wave, WriteItems(), 0, run.cluster))
                    size = size * _WAVE_GROWTH if last is not None else size

    def _endless(self, node: Node, call: Call) -> Iterator[Any]:
        """Give an infinite stream chunk by chunk; each chunk of an endless part is computed again from its start."""
        core = rewrite(node)
        with self._run(core, call) as run:
            for segment in run.lower(core).segments:
                if isinstance(segment, Frame):
                    yield from run.lazily(segment_rows(segment, WriteItems(), 0, run.cluster))
                else:
                    yield from self._chunks(Flow((segment,)).in_one_task(), run)

    def _chunks(self, flow: Flow, run: _Run) -> Iterator[Any]:
        start, size, growth = 0, _FIRST_CHUNK, _WAVE_GROWTH
        while True:
            part = flow.pipe(functools.partial(_range, start, start + size))
            try:
                chunk = run.items_again(rows_of(part, WriteItems(), run.cluster))
            except Exception:
                if size == 1:
                    raise
                # The failing item may lie behind what the caller wants: come to it in smaller steps.
                size, growth = max(size // _WAVE_GROWTH, 1), 1
                continue
            yield from chunk
            if len(chunk) < size:
                return
            start, size = start + size, size * growth


def page(core: Node) -> tuple[int, Limit | None]:
    """Return how many items to leave out before a limit, and the limit, if a plan ends in these two."""
    if isinstance(core, Skip) and core.count <= FEW and isinstance(core.upstream, Limit):
        return core.count, core.upstream
    return 0, core if isinstance(core, Limit) else None


def _part(items: Generator[Any, None, None], skipped: int, count: int) -> Iterator[Any]:
    """Give some of the items, and end the run that gives them before the end is told."""
    with closing(items):
        yield from islice(items, skipped, count)


def _range(start: int, stop: int, items: Iterator[Any], task: Any) -> Iterator[Any]:
    return islice(items, start, stop)


@dataclass
class _Run:
    """One run of a plan: its settings, what its `peek` steps saw, and what its guards noted."""

    root: Node
    lowering: Lowering
    cluster: Cluster
    recovered: Recovered
    _peeked_before: dict[int, int] = field(default_factory=dict)

    def __enter__(self) -> _Run:
        self._settings = self.cluster.configured(configuration(self.root))
        self._settings.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._settings.__exit__(*exc_info)
        self.recovered.__exit__(*exc_info)

    def lower(self, node: Node) -> Flow:
        """Return the flow of a node of this plan."""
        with self.cluster.waiting():
            return self.lowering.lower(node)

    def items(self, frame: DataFrame) -> list[Any]:
        """Run a job and return its items; then run the actions of the `peek` steps."""
        items: list[Any] = []
        for row in self._without_peeked(self._rows(frame)):
            items += loads_items(row.payload)
        return items

    def payloads(self, frame: DataFrame, channel: int = ITEMS) -> list[Any]:
        """Run a job and return what its rows on one channel carry; then run the actions of the `peek` steps."""
        rows = list(self.cluster.rows(frame))
        list(self._without_peeked(rows))
        return [row.payload for row in rows if row.channel == channel]

    def items_again(self, frame: DataFrame) -> list[Any]:
        """Run a job that starts over; the actions see only what they have not seen before."""
        counted: dict[int, int] = {}
        items: list[Any] = []
        for row in self._without_peeked(self._rows(frame), self._peeked_before, counted):
            items += loads_items(row.payload)
        self._peeked_before.update(counted)
        return items

    def lazily(self, frame: DataFrame) -> Iterator[Any]:
        """Run a job partition by partition and give its items."""
        for row in self._without_peeked(self.cluster.rows_one_partition_at_a_time(frame)):
            yield from loads(row.payload)

    def containers(self, frame: DataFrame) -> Iterator[list[Any]]:
        """Run a job and give the container of each partition, in order, each in a list of its own."""
        held = bytearray()
        for row in self._without_peeked(self._rows(frame)):
            if row.sequence == 0 and held:
                yield loads(held)
                held = bytearray()
            held += row.payload
        if held:
            yield loads(held)

    def _rows(self, frame: DataFrame) -> Iterator[Row]:
        """Run a job and give its rows; if there may be dead letters, they come behind the others, a part at a time."""
        if not self.recovered.has_letters:
            return self.cluster.rows(frame)
        pinned = self.cluster.pinned(frame)
        items = self.cluster.rows(pinned.where(f"channel <= {ITEMS}"))
        return chain(items, self._letters(pinned.where(f"channel > {ITEMS}")))

    def _letters(self, frame: DataFrame) -> Iterator[Row]:
        size = sum(payload for _, payload in self.cluster.sizes(frame))
        if size == 0:
            return iter(())
        return self.cluster.rows(frame) if size <= FEW_BYTES else self.cluster.rows_one_partition_at_a_time(frame)

    def _without_peeked(
        self,
        rows: Iterable[Row],
        before: Mapping[int, int] = MappingProxyType({}),
        counted: dict[int, int] | None = None,
    ) -> Iterator[Row]:
        """Give the rows that carry items; at the end run the actions on what `peek` steps saw.

        Args:
            rows: all rows of a job.
            before: how many items the action of each channel has seen in an earlier run of the same job.
            counted: takes how many it has seen now.
        """
        beside = SideRows()
        for row in rows:
            if row.channel == ITEMS:
                yield row
            elif row.channel > ITEMS:
                beside.add(row)
        self.lowering.act(beside.in_order(), before, {} if counted is None else counted)
