"""`SparkRun`: one run of a plan on Spark, with its results or loops in the driver.

Partitions run in waves. The results of a wave are stored on the executors, and the caller holds a bounded part of them
in memory at a time. The number of partitions of a wave depends on the sizes of earlier ones.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dstream.base.memory import DEFAULT_BOUND, largest_side
from dstream.base.threads import contextmanager
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.compiler.ends import FEW
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.physical import vertices
from dstream.engine.physical.graph import Finish, Graph, Pulled
from dstream.engine.physical.vertices import BESIDE, EVERYTHING, Items, OutputPort
from dstream.engine.runs.results import PlanRun
from dstream.engine.runs.rows import ShuffleFiles, SideOutputActions
from dstream.engine.spark.port.errors import is_forked
from dstream.engine.spark.run.backend import frame_of_rows
from dstream.engine.spark.run.graphs import SparkGraphRun
from dstream.engine.spark.run.segments import (
    OrderedSegments,
    Segment,
    SplitSegment,
    chosen_rows,
    last_rows,
    piece_rows,
    rows_of,
    segment_rows,
)
from dstream.engine.spark.run.stage_runner import CarriedStage, LastRows, StageRunner
from dstream.engine.tasks.rows import COLUMNS, ITEMS, WAITING, Row
from dstream.engine.tasks.runtime import FEW_BYTES, SideRows
from dstream.engine.tasks.sinks import WriteItems, WriteParts
from dstream.failures import naming
from dstream.operators.rows.batches import loads, loads_items
from dstream.operators.rows.caches import Caches
from dstream.operators.rows.guards import Action
from dstream.operators.rows.operations import operation, some
from dstream.plan.operations.ends import End, Several
from dstream.plan.operations.streams import Node
from dstream.plan.properties import parallelism
from dstream.plan.steps import Step
from dstream.schema.tables import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "BROADCAST",
    "SparkRun",
    "bytes_of",
    "endless",
    "facts_of",
    "largest_small_side",
    "part",
    "pulled",
    "wave_items",
    "waves",
]


BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
"""Spark's own setting: the largest side in bytes that its joins broadcast; below 0, none. It also bounds ours."""

_UNSET = 10 * 2**20
"""The bound of a Spark whose user has set none (4.3): it is not known whether the same one was set."""

_ITEMS_OF_A_SMALL_PIECE = 16_384


def facts_of(root: Node, runner: StageRunner, *, in_small_pieces: bool) -> ClusterFacts:
    """Return the facts that the graph of a plan depends on.

    Args:
        root: the last core operation.
        runner: runs the stages, with the settings of the run.
        in_small_pieces: the caller's items are divided so that a task emits few items, for a loop in the caller.
    """
    backend = runner.backend
    requested, cores = parallelism(root) or (1 if runner.options.is_one_task else None), backend.cores
    bound = largest_small_side({BROADCAST: backend.setting(BROADCAST)}, backend.worker_memory)
    # A number of partitions that the user has set takes precedence.
    few = _ITEMS_OF_A_SMALL_PIECE if in_small_pieces and requested is None else None
    return ClusterFacts(requested or cores, cores, bound, few, backend.broadcast_limit, backend.column_mode)


def largest_small_side(settings: Mapping[str, str], worker_memory: int = DEFAULT_BOUND) -> int:
    """Return how many bytes of one side of a join may travel to every task; below 0, none."""
    largest, configured = largest_side(worker_memory), bytes_of(settings.get(BROADCAST, str(_UNSET)))
    return largest if configured == _UNSET else min(largest, configured)


def bytes_of(text: str) -> int:
    """Return a size as Spark writes it, `10485760b` or `4m`, in bytes; -1 if it is no size."""
    found = re.match(r"\s*(-?\d+)\s*([kmgtp]?)", text.lower())
    return int(found[1]) << 10 * " kmgtp".index(found[2] or " ") if found else -1


@dataclass
class SparkRun(PlanRun[LastRows]):
    """One run of a plan on Spark.

    Attributes:
        in_small_pieces: the caller's items are divided so that a task emits few items, for a loop in the caller.
        files: store the large payloads of rows that pass through this process; None if Spark moves all rows.
        begun: the graph and the actions of a run that began in this process; None: those of the plan.
    """

    end: End | Several
    runner: StageRunner
    recovered: RecoveryReport | None = None
    in_small_pieces: bool = False
    files: ShuffleFiles | None = None
    begun: tuple[Graph, dict[int, Action]] | None = None
    _peeked_before: dict[int, int] = field(default_factory=dict)

    def __enter__(self) -> SparkRun:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if is_forked():
            return  # What was noted is the parent's to deliver.
        if self.files is not None:
            self.files.remove()
        # Before the letters: a service that fails at its end fails the run, whose letters are not delivered then.
        self.end_services(exc_info[1])
        if self.recovered is not None:
            self.recovered.__exit__(*exc_info)

    def end_services(self, before: BaseException | None) -> None:
        """Destroy the shared services of workers; a failure there does not hide an earlier one."""
        services = self.runner.options.services
        failed = None if services is None else services.end()
        if failed is not None and (before is None or isinstance(before, GeneratorExit)):
            raise failed

    def together(self, iterators: Sequence[Iterator[Any]]) -> list[Iterator[Any]]:
        """Return iterators of one run, which ends with the last of them."""
        if self.runner.options.services is None:
            return list(iterators)
        running = len(iterators)

        def ended(error: BaseException | None) -> None:
            nonlocal running
            running -= 1
            if running == 0 and not is_forked():
                self.end_services(error)

        def one_of(items: Iterator[Any]) -> Iterator[Any]:
            # Not `sys.exc_info()` in a `finally`: inside of a caller's `except` block that has the caller's exception.
            try:
                yield from items
            except BaseException as error:
                ended(error)
                raise
            ended(None)

        return [one_of(each) for each in iterators]

    @functools.cached_property
    def _compiled(self) -> tuple[Graph, dict[int, Action]]:
        return compiled(self.end, self.facts) if self.begun is None else self.begun

    @functools.cached_property
    def _side_outputs(self) -> SideOutputActions | None:
        """The actions on side rows; None if the plan has neither `peek` steps nor guards."""
        notes = {} if self.recovered is None else self.recovered.actions()
        actions = notes | self.actions
        return SideOutputActions(actions) if actions else None

    @functools.cached_property
    def _running(self) -> SparkGraphRun:
        # It references the contents of caches, which this run may still read after its context is closed.
        return SparkGraphRun(self.graph, self.facts, self.runner, self._side_outputs, self.files)

    def deliver(self, beside: SideRows) -> None:
        """Run the actions on side rows."""
        if self._side_outputs is not None:
            self._side_outputs.deliver(beside.in_order())

    @property
    def has_letters(self) -> bool:
        """Whether dead letters may follow the items."""
        return self.recovered is not None and self.recovered.has_letters

    def flow(self, items: Items) -> OrderedSegments:
        """Return the segments of the graph's items, after running the jobs that determine them."""
        with self.runner.waiting():
            return self._running.flow(items)

    def last(self) -> tuple[LastRows, Finish]:
        with self.runner.waiting():
            return self._running.last(self.has_letters)

    @functools.cached_property
    def facts(self) -> ClusterFacts:  # pyright: ignore[reportIncompatibleMethodOverride]
        return facts_of(self.end, self.runner, in_small_pieces=self.in_small_pieces)

    @contextmanager
    def in_parts(self, frame: DataFrame) -> Iterator[tuple[int, Iterator[Row]]]:
        """Run a job over rows of `WriteParts`; yield the bytes of its items, and the rows that contain them.

        The rows are in order. The first part of each partition is in this process; other parts remain where they were
        written, for the lifetime of the context, and are fetched one by one. The actions of `peek` steps have run
        before that.
        """
        pinned = self.runner.port.pinned(frame)
        try:
            # All at once, so that the actions have run before the caller gets the first item.
            rows = list(self._without_peeked(self._with_letters(pinned, EVERYTHING.to_targets(0, 1))))
            written = sum(row.sequence if row.channel == WAITING else len(row.payload) for row in rows)
            yield written, self._completed(rows, pinned)
        finally:
            self.runner.port.release(pinned)

    def _completed(self, rows: Iterable[Row], pinned: DataFrame) -> Iterator[Row]:
        """Yield the rows with items, including those of remaining parts."""
        for row in rows:
            if row.channel == ITEMS:
                yield row
                continue
            for part in range(1, row.size + 1):
                yield from self.runner.rows(pinned.where(f"source = {row.source} and target = {part}"))

    def rows(self, rows: LastRows) -> Iterator[Row]:
        return self._without_peeked(self._rows(rows))

    def payloads(self, rows: LastRows, channel: int = ITEMS) -> list[Any]:
        found = list(self.runner.rows(rows))
        list(self._without_peeked(found))
        return [row.payload for row in found if row.channel == channel]

    def data_frame(self, rows: LastRows, step: Step) -> DataFrame:
        """Return a DataFrame that reads columns where they were computed."""
        assert not isinstance(rows, CarriedStage), "their rows are read again"
        # Pinned, since the schemas are read now, and the columns by the DataFrame later, without another run.
        pinned = self.runner.port.pinned(rows)
        schemas = self.payloads(chosen_rows(pinned, vertices.SCHEMAS), COLUMNS)
        with naming(step):
            return frame_of_rows(chosen_rows(pinned, vertices.ITEMS), schema_of(schemas), self.runner.backend)

    @property
    def caches(self) -> Caches:
        return self.runner.backend.caches

    def of_one_end(self, end: End | Several) -> SparkRun:
        return replace(self, end=end, runner=self.runner.doing(end.step, ""))

    def items_again(self, frame: DataFrame) -> list[Any]:
        """Run a job that starts over; the actions see only items that they have not seen before."""
        counted: dict[int, int] = {}
        items: list[Any] = []
        for row in self._without_peeked(self._rows(frame), self._peeked_before, counted):
            items += loads_items(row.payload)
        self._peeked_before.update(counted)
        return items

    def lazily(self, frame: DataFrame) -> Iterator[Any]:
        """Run a job partition by partition and yield its items."""
        for row in self._without_peeked(self.runner.rows_one_partition_at_a_time(frame)):
            yield from loads(row.payload)

    def _rows(self, frame: LastRows) -> Iterator[Row]:
        """Run a job and return its rows; dead letters follow the others."""
        if isinstance(frame, CarriedStage) or not self.has_letters:
            return self.runner.rows(frame)
        return self._with_letters(self.runner.port.pinned(frame), EVERYTHING)

    def _with_letters(self, pinned: DataFrame, port: OutputPort) -> Iterator[Row]:
        """Yield the rows of a port, followed by dead letters, a part at a time."""
        if not self.has_letters:
            return self.runner.rows(chosen_rows(pinned, port))
        items = self.runner.rows(chosen_rows(pinned, port.without_beside()))
        return chain(items, self._letters(chosen_rows(pinned, BESIDE)))

    def _letters(self, frame: DataFrame) -> Iterator[Row]:
        size = sum(payload for _, payload in self.runner.sizes(frame))
        if size == 0:
            return iter(())
        return self.runner.rows(frame) if size <= FEW_BYTES else self.runner.rows_one_partition_at_a_time(frame)

    def _without_peeked(
        self,
        rows: Iterable[Row],
        before: Mapping[int, int] = MappingProxyType({}),
        counted: dict[int, int] | None = None,
    ) -> Iterator[Row]:
        """Yield the rows that carry items; at the end run the actions on the items of `peek` steps.

        Args:
            rows: all rows of a job.
            before: how many items the action of each channel has seen in an earlier run of the same job.
            counted: takes how many it has seen now.
        """
        outputs = self._side_outputs
        if outputs is None:
            yield from rows
            return
        beside = SideRows()
        try:
            for row in rows:
                if row.channel <= ITEMS:
                    yield row
                else:
                    beside.add(row)
        except GeneratorExit:  # The reader of the items has stopped; what was seen of earlier items is delivered.
            if not is_forked():
                outputs.deliver(beside.in_order(), before, counted)
            raise
        outputs.deliver(beside.in_order(), before, counted)


_FIRST_CHUNK = 1024
_FIRST_WAVE = 4
_GROWTH = 4
_WAVE_BYTES = 32 * 2**20
"""The target size of the output of a wave, unless it is no larger than the first one."""
_HELD_BYTES = 32 * 2**20
"""The bytes of a wave that are sent to the caller at once; the rest remains on the executors until it is read."""


def pulled(run: SparkRun, ending: Pulled) -> Iterator[Any]:
    """Yield the items of a run whose caller pulls them one by one."""
    if not ending.ends:
        return endless(run, ending)
    items = waves(run, ending)
    return items if ending.limit is None else part(items, ending.skipped, ending.limit.count)


def part(items: Generator[Any, None, None], skipped: int, count: int) -> Iterator[Any]:
    """Yield a slice of the items, and end their run before the end is reported."""
    with closing(items):
        yield from some(items, skipped, count)


def waves(run: SparkRun, ending: Pulled) -> Generator[Any, None, None]:
    """Run partitions wave by wave, and yield their items on request; with a limit, the first wave has one partition."""
    last = ending.limit
    with run:
        flow = run.flow(ending.inputs)
        if last is not None:
            flow = flow.pipe(operation(last))
        # A small number of items is fetched at once, so that the `peek` actions run before the first item.
        is_short = last is not None and last.count <= FEW
        for segment in flow.segments:
            yield from wave_items(run, segment, is_short=is_short, has_limit=last is not None)


def wave_items(
    run: SparkRun, segment: Segment, *, is_short: bool = False, has_limit: bool = False
) -> Generator[Any, None, None]:
    """Yield the items of a segment, wave after wave.

    Args:
        run: the run that reads them.
        segment: the segment.
        is_short: few items are requested, which are fetched at once.
        has_limit: the first wave has one partition, since it may be enough.
    """
    if not isinstance(segment, SplitSegment):
        rows = segment_rows(segment, WriteItems(), 0, run.runner)
        yield from run.items(rows) if is_short else run.lazily(rows)
    elif is_short:
        yield from _all_of_few(run, segment)
    else:
        yield from _in_parts(run, segment, 1 if has_limit else min(run.runner.backend.cores, _FIRST_WAVE))


def _all_of_few(run: SparkRun, segment: SplitSegment) -> Iterator[Any]:
    rows_of_wave = segment_rows if run.has_letters else last_rows  # Dead letters are fetched by a separate job.
    pieces, size = iter(segment.pieces), 1
    while wave := list(islice(pieces, size)):
        yield from run.items(rows_of_wave(SplitSegment(wave), WriteItems(), 0, run.runner))
        size *= _GROWTH


def _in_parts(run: SparkRun, segment: SplitSegment, least: int) -> Iterator[Any]:
    pieces, size = iter(segment.pieces), least
    while wave := list(islice(pieces, size)):
        frame = piece_rows(wave, WriteParts(_HELD_BYTES // len(wave)), 0, run.runner)
        with run.in_parts(frame) as (written, rows):
            fitting = _WAVE_BYTES * len(wave) // max(written, 1)
            size = max(least, min(size * _GROWTH, fitting))
            for row in rows:
                yield from loads(row.payload)


def endless(run: SparkRun, ending: Pulled) -> Iterator[Any]:
    """Yield an infinite stream chunk by chunk; each chunk of an endless piece is computed again from its start."""
    with run:
        for segment in run.flow(ending.inputs).segments:
            if not isinstance(segment, SplitSegment):
                yield from run.lazily(segment_rows(segment, WriteItems(), 0, run.runner))
            else:
                yield from _chunks(OrderedSegments((segment,)).in_one_task(), run)


def _chunks(flow: OrderedSegments, run: SparkRun) -> Iterator[Any]:
    start, size, growth = 0, _FIRST_CHUNK, _GROWTH
    while True:
        flow_part = flow.pipe(functools.partial(_range, start, start + size))
        try:
            chunk = run.items_again(rows_of(flow_part, WriteItems(), run.runner))
        except Exception:
            if size == 1:
                raise
            # The failing item may be after the items that the caller needs: approach it in smaller steps.
            size, growth = max(size // _GROWTH, 1), 1
            continue
        yield from chunk
        if len(chunk) < size:
            return
        start, size = start + size, size * growth


def _range(start: int, stop: int, items: Iterator[Any], task: Any) -> Iterator[Any]:
    return islice(items, start, stop)
