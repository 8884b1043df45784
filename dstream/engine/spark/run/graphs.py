"""`SparkGraphRun`: a physical plan on Spark, as DataFrames of its vertices and jobs of its decisions.

Spark plans a shuffle anew for each run, which costs more than all else in an epoch of few events; a job of one stage is
planned once for all runs. So the rows of a small shuffle are sent to this process: large payloads remain in files of
this machine, and only their locations are sent.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from dstream.engine.compiler import ClusterFacts
from dstream.engine.physical.graph import (
    Ask,
    AskForKept,
    Finish,
    Framed,
    Graph,
    Report,
)
from dstream.engine.physical.vertices import (
    BESIDE_AND_FAILURES,
    CachedInput,
    FromTable,
    Input,
    Items,
    Rows,
    Splits,
    Taken,
    Vertex,
    operations_of,
)
from dstream.engine.runs.graphs import GraphRun
from dstream.engine.runs.rows import ShuffleFiles, SideOutputActions, by_target, rows_taken
from dstream.engine.runs.splits import Pieces
from dstream.engine.spark.run.segments import (
    CachedRows,
    DriverRows,
    Frame,
    OrderedSegments,
    PinnedTables,
    Segment,
    SplitSegment,
    chosen_rows,
    last_rows,
    rows_of,
)
from dstream.engine.spark.run.stage_runner import LastRows, StageRunner
from dstream.engine.tasks.process import Payloads
from dstream.engine.tasks.rows import COUNTS, ITEMS, ExpectedRows, Row, counts_itself
from dstream.engine.tasks.runtime import SideRows
from dstream.failures import naming
from dstream.operators.rows.operations import Operation
from dstream.plan.operations.streams import ReadCache
from dstream.plan.properties import is_ordered
from dstream.plan.walk import CacheContent, inputs_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkGraphRun"]


_DEEPEST = 32
"""The depth of a frame in stages at which its rows are stored: Spark plans a frame by recursion, and when that fails,
at about 180 stages, the caller waits for ever (4.3)."""


_MOST_PAIRS = 64
"""The most pairs of a writing and a reading task for which it is worth it: the rows of each go to all readers."""

_TRAVELLING = 8 * 1024
"""The bytes of the rows of one vertex that travel with the next job, to each of its tasks."""


class SparkGraphRun(GraphRun):
    """One run of a graph on Spark.

    Args:
        graph: the graph that runs.
        outputs: receives the side rows of jobs; None if there are none.
        files: contain large payloads of the rows that pass through this process; None if there are none.
    """

    def __init__(
        self,
        graph: Graph,
        facts: ClusterFacts,
        runner: StageRunner,
        outputs: SideOutputActions | None = None,
        files: ShuffleFiles | None = None,
    ) -> None:
        super().__init__(graph, facts, runner.backend.caches, runner.counting)
        self._runner = runner
        self._outputs = outputs
        self._files = files
        self._final: Vertex | None = None  # Its rows are sent to the caller, and no task reads them.
        self._frames: dict[int, DataFrame] = {}
        self._read_frames: dict[int, tuple[DataFrame, ExpectedRows | None]] = {}
        self._come: dict[int, bool] = {}  # Of the rows that a shuffle moves, whether they are sent to this process.
        self._handed_on: dict[int, list[Row]] = {}  # The rows of vertices that were sent to this process.
        self._rows_here: dict[int, tuple[tuple[Row, ...], ...]] = {}
        self._tables = PinnedTables(runner)
        self._asked: set[int] = set()  # Vertices about which a decision has requested a report.
        self._depths: dict[int, int] = {}  # The number of stages that Spark plans together for a frame.
        # Objects that are looked up by `id` must stay alive, so that the id is not reused.
        self._alive: list[object] = []

    def flow(self, items: Items) -> OrderedSegments:
        """Return the segments of items of the graph, after running the jobs that determine them."""
        return self._flow(self.decided(items))

    def last(self, are_read_twice: bool) -> tuple[LastRows, Finish]:
        """Return the rows of the last job in this process, and the function that finishes them in this process.

        Args:
            are_read_twice: whether the job is followed by another one, for other rows of the same frame.
        """
        vertex, finish = self.last_vertex()
        self._final = vertex
        are_read_twice |= isinstance(finish, Framed) and finish.is_frame
        return self._last_rows(vertex, are_read_twice), finish

    def _last_rows(self, vertex: Vertex, are_read_twice: bool) -> LastRows:
        segment = None if are_read_twice or vertex.is_kept else self._segment_without_plan(vertex)
        if segment is None:
            return self._frame(vertex)
        return last_rows(segment, vertex.output, vertex.first, self._runner_of(vertex))

    def _segment_without_plan(self, vertex: Vertex) -> SplitSegment | DriverRows | None:
        """Return the segment that the tasks of a vertex read, unless it is a frame of Spark's: then None."""
        match vertex.inputs:
            case (Splits() as splits,):
                return SplitSegment(Pieces(self.splits.pieces(splits)))
            case (Rows() as rows,) if self._come_here(rows):
                return self._brought(rows)
        return None

    def _needs_no_plan(self, vertex: Vertex, follow: int) -> bool:
        """Return whether a vertex has a segment that needs no plan, and a single shuffle reads its rows."""
        if vertex.is_kept or id(vertex) in self._asked or id(vertex) in self._frames:
            return False
        match vertex.inputs:
            case (Splits(),):
                return True
            case (Rows() as rows,):
                return self._come_here(rows, follow + 1)
        return False

    # ---------------------------------------------------------------------------------- requests of decisions

    def report(self, ask: Ask) -> Report:
        runner = self._runner.doing(ask.step, ask.purpose)
        partitions = self.partitions(ask.vertex.inputs)
        self._asked.add(id(ask.vertex))
        frame = self._frame(ask.vertex)
        if self._outputs is not None and ask.vertex.is_kept and ask.what != "bytes":
            return Report(ask.vertex, partitions, self._with_beside(ask, frame, runner, self._outputs))
        frame = chosen_rows(frame, ask.port)
        wanted = {"places": runner.places, "bytes": runner.sizes, "rows": runner.rows}[ask.what]
        return Report(ask.vertex, partitions, list(wanted(frame)))

    def count_of_others(self, each: Input) -> int:
        return OrderedSegments(tuple(self._segments(each))).count_partitions()

    def sent_to_all(self, payloads: Sequence[Any]) -> Payloads:
        return self._runner.backend.send_to_all(payloads, self)

    def _with_beside(self, ask: Ask, frame: DataFrame, runner: StageRunner, outputs: SideOutputActions) -> list[Any]:
        """Return the answer, and deliver the side rows: the reader of these may stop before it."""
        # Only the positions of items were requested, so their payloads, which are most of the bytes, are not sent.
        payload = "payload" if ask.what == "rows" else f"case when channel > {ITEMS} then payload else X'' end payload"
        wanted = chosen_rows(frame, ask.port.with_beside())
        beside, asked = SideRows(), list[Row]()
        for row in runner.rows(wanted.selectExpr("target", "source", "sequence", "channel", "size", payload)):
            beside.add(row) if row.channel > ITEMS else asked.append(row)
        self.delivered.add(id(ask.vertex))
        outputs.deliver(beside.in_order())
        return asked if ask.what == "rows" else [(row.source, row.sequence, row.channel, row.size) for row in asked]

    def computed(self, ask: AskForKept) -> CacheContent:
        rows, partitions = self._frame(ask.vertex), self.partitions(ask.vertex.inputs)
        beside = SideRows()
        others = chosen_rows(rows, BESIDE_AND_FAILURES)
        for row in self._runner.doing(ask.vertex.step, "keeping its items").rows(others):
            beside.add(row)
        if self._outputs is not None:
            self._outputs.deliver(beside.in_order())
        stored = CachedRows(rows, partitions, self._runner)
        return CacheContent(stored, is_ordered(ask.node), is_there=self._runner.port.is_running)

    # ----------------------------------------------------------------------------------------------------- vertices

    def _frame(self, vertex: Vertex) -> DataFrame:
        """Return the rows of a vertex; stored rows are computed by the first job that reads them."""
        for each in inputs_first(vertex, self._without_frame):
            if id(each) not in self._frames:
                self._frames[id(each)] = self._made(each)
                self._alive.append(each)
        return self._frames[id(vertex)]

    def _without_frame(self, vertex: Vertex) -> Sequence[Vertex]:
        """Return the vertices whose rows a vertex reads, as far as they have to be made for it."""
        is_made = id(vertex) in self._frames
        return [] if is_made else [each for each in self._read_by(vertex) if id(each) not in self._frames]

    def _read_by(self, vertex: Vertex) -> list[Vertex]:
        """Return the vertices whose frames a vertex reads."""
        inputs = (each for each in vertex.inputs if isinstance(each, Rows) and not self._come_here(each))
        return [taken.vertex for each in inputs for taken in each.taken]

    def _made(self, vertex: Vertex) -> DataFrame:
        before = (
            vertex.first if vertex.is_kept else 0
        )  # A vertex that is not stored runs in the job of the earlier ones.
        made = rows_of(self._flow(vertex.inputs), vertex.output, self._runner_of(vertex), vertex.first, before)
        depth = 1 + max((self._depths[id(each)] for each in self._read_by(vertex)), default=0)
        is_kept = vertex.is_kept or depth == _DEEPEST
        self._depths[id(vertex)] = 0 if is_kept else depth
        return self._runner.port.pinned(made) if is_kept else made

    def _runner_of(self, vertex: Vertex) -> StageRunner:
        # A request reads a subset of the rows: a failure that is sent as a row would be missed.
        options = self._runner.options
        return self._runner.with_options(
            replace(
                options,
                step=vertex.step,
                hands_failures_on=options.hands_failures_on and id(vertex) not in self._asked,
                counts_rows=options.counts_rows and vertex is not self._final,
            )
        )

    def _rows(self, taken: Taken, *, are_counted: bool) -> DataFrame:
        port = self.port_of(taken)
        frame = chosen_rows(self._frame(taken.vertex), port.with_counts() if are_counted else port)
        if taken.as_items:
            channel = f"case when channel = {COUNTS} then channel else {ITEMS} end as channel"
            frame = frame.selectExpr("target", "source", "sequence", channel, "size", "payload")
        return self._runner.backend.beside(frame, taken.behind) if taken.behind else frame

    # ------------------------------------------------------------------------------------------------------- inputs

    def _flow(self, items: Items) -> OrderedSegments:
        return OrderedSegments(tuple(chain.from_iterable(map(self._segments, items))))

    def _segments(self, each: Input) -> Sequence[Segment]:
        match each:
            case Splits():
                return (SplitSegment(Pieces(self.splits.pieces(each))),)
            case Rows():
                return (self._read(each),)
            case FromTable(node):
                return (replace(self._tables.frame(node), operations=operations_of(each.applied)),)
            case CachedInput(held):
                return self._recalled(held, operations_of(each.applied))
        raise AssertionError("decisions are made before their items are read")

    def _read(self, each: Rows) -> Frame | DriverRows:
        return self._brought(each) if self._come_here(each) else self._moved(each)

    def _moved(self, each: Rows) -> Frame:
        """Return rows that Spark shuffles to the tasks that read them, or that are not moved."""
        # Inputs that read the same rows differ in their calls alone: with one frame, Spark moves the rows once.
        if id(each.taken) not in self._read_frames:
            sent = self._sent(each)
            frames = (self._rows(taken, are_counted=sent is not None) for taken in each.taken)
            frame = functools.reduce(lambda left, right: left.union(right), frames)
            frame = frame if each.targets is None else self._runner.backend.shuffled(frame, each.targets)
            self._read_frames[id(each.taken)] = frame, sent
            self._alive.append(each.taken)
        frame, sent = self._read_frames[id(each.taken)]
        return Frame(frame, self._count(each), each.reader, operations_of(each.applied), sent)

    def _come_here(self, each: Rows, follow: int = 0) -> bool:
        """Return whether rows are shuffled through this process, after at most `_DEEPEST` shuffles of this kind."""
        if id(each.taken) not in self._come:
            self._come[id(each.taken)] = (
                each.targets is not None
                and self._runner.shuffle_folder() is not None
                and follow < _DEEPEST
                and all(self._needs_no_plan(taken.vertex, follow) for taken in each.taken)
                and sum(map(self._tasks, each.taken)) * each.targets <= _MOST_PAIRS
            )
            self._alive.append(each.taken)
        return self._come[id(each.taken)]

    def _brought(self, each: Rows) -> DriverRows:
        """Run the jobs whose rows a shuffle moves, and return the input of the tasks that receive the rows."""
        assert each.targets is not None, "what stays where it is comes through no shuffle"
        sent = self._sent(each)
        if id(each.taken) not in self._rows_here:
            taken_rows = (self._taken_here(taken, are_counted=sent is not None) for taken in each.taken)
            self._rows_here[id(each.taken)] = by_target(chain.from_iterable(taken_rows), each.targets)
        return DriverRows(self._rows_here[id(each.taken)], each.reader, operations_of(each.applied), sent)

    def _taken_here(self, taken: Taken, *, are_counted: bool) -> Iterator[Row]:
        port = self.port_of(taken)
        return rows_taken(self._rows_of(taken.vertex), taken, port.with_counts() if are_counted else port)

    def _rows_of(self, vertex: Vertex) -> list[Row]:
        """Run the job of a vertex, unless it has run, and return its rows for the tasks that read them."""
        if id(vertex) not in self._handed_on:
            segment = self._segment_without_plan(vertex)
            assert segment is not None, "a frame of Spark's is moved by Spark"
            folder, tasks = self._runner.shuffle_folder(), self.partitions(vertex.inputs)
            assert folder is not None, "Spark moves the rows of all other runs"
            assert self._files is not None, "a run whose rows come here has files"
            runner = self._runner_of(vertex).doing(vertex.step, "moving its results")
            runner = runner.with_options(
                replace(runner.options, storing=self._files.storing(folder, _TRAVELLING // max(tasks, 1)))
            )
            rows = last_rows(segment, vertex.output, vertex.first, runner)
            self._handed_on[id(vertex)] = list(runner.rows_to_hand_on(rows))
            self._alive.append(vertex)
        return self._handed_on[id(vertex)]

    def _sent(self, each: Rows) -> ExpectedRows | None:
        """Return the numbers of rows sent to their readers; None: they are not moved, or the run counts none."""
        is_counted = self._runner.options.counts_rows and each.targets is not None
        if not is_counted or any(counts_itself(taken.vertex.output) for taken in each.taken):
            return None
        ports = list(map(self.port_of, each.taken))
        (channels,) = {port.channels for port in ports}  # Sides that meet are read alike.
        has_beside = all(port.has_beside for port in ports)
        return ExpectedRows(sum(map(self._tasks, each.taken)), channels, has_beside, each.taken[0].vertex.step)

    def _tasks(self, taken: Taken) -> int:
        """Return how many tasks write rows that are taken."""
        first = taken.vertex.first
        last = first + self.partitions(taken.vertex.inputs)
        wanted = taken.port.sources
        return last - first if wanted is None else len(range(max(first, wanted.start), min(last, wanted.stop)))

    def _recalled(self, recall: ReadCache, operations: tuple[Operation, ...]) -> Sequence[Segment]:
        with naming(recall.step):
            stored: Frame = recall.items.frame(self._runner.port)
        return (replace(stored, operations=operations),)
