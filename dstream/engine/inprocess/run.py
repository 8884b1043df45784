"""`InProcessRun`: one run of a plan in the caller's process, vertex after vertex, and of each task after task.

The last vertex is lazy: its rows, or items that the caller pulls, come as its tasks read. Rows that other tasks read
stay in memory up to some bytes; what is beyond stands in files until the run ends.
"""

from __future__ import annotations

import functools
import os
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from dstream.base.memory import Bound
from dstream.engine.compiler import ClusterFacts
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.inprocess.tasks import InProcessTask, SharedByTasks, counted
from dstream.engine.physical.graph import Ask, AskForKept, Finish, Graph, Pulled, Report
from dstream.engine.physical.vertices import (
    CachedInput,
    FromTable,
    Input,
    Items,
    Rows,
    SourceSplits,
    Splits,
    Taken,
    Vertex,
    operations_of,
)
from dstream.engine.runs.graphs import GraphRun
from dstream.engine.runs.results import PlanRun
from dstream.engine.runs.rows import ShuffleFiles, by_target, rows_taken
from dstream.engine.tasks.process import InFunction
from dstream.engine.tasks.rows import ITEMS, Row, handed_on, size_of, whole
from dstream.engine.tasks.stage import Reader, Sink, rows_of_task
from dstream.errors import UnsupportedError
from dstream.operators.rows.batches import loads_items
from dstream.operators.rows.blocks import one_after_another
from dstream.operators.rows.caches import CachedItems, Caches
from dstream.operators.rows.operations import Operation, operated, some
from dstream.plan.operations.ends import End, Several
from dstream.plan.properties import is_ordered
from dstream.plan.steps import Step
from dstream.plan.walk import CacheContent

__all__ = ["InProcessRun"]


_IN_MEMORY = 64 * 2**20
"""The bytes of the rows of one vertex that stay in memory until other tasks have read them."""


@dataclass
class InProcessRun(PlanRun[Iterator[Row]]):
    """One run of a plan in this process.

    Attributes:
        shared: the state of all its tasks.
        files: hold what is large of the rows between its tasks.
        process: the id of the process that has begun it.
    """

    end: End | Several
    cluster_facts: ClusterFacts
    context_caches: Caches
    shared: SharedByTasks
    files: ShuffleFiles
    recovered: RecoveryReport | None = None
    process: int = field(default_factory=os.getpid)

    @property
    def facts(self) -> ClusterFacts:
        return self.cluster_facts

    @property
    def caches(self) -> Caches:
        return self.context_caches

    def __enter__(self) -> InProcessRun:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if os.getpid() != self.process:
            return  # A fork that leaves a loop: files, services and notes are the parent's.
        self.files.remove()
        # Before the letters: a service that fails at its end fails the run, whose letters are not delivered then.
        try:
            self.shared.services.destroy()
        except Exception:
            if exc_info[1] is None or isinstance(exc_info[1], GeneratorExit):
                raise
        if self.recovered is not None:
            self.recovered.__exit__(*exc_info)

    def of_one_end(self, end: End | Several) -> InProcessRun:
        return InProcessRun(end, self.cluster_facts, self.context_caches, self.shared, self.files, self.recovered)

    @functools.cached_property
    def running(self) -> InProcessGraphRun:
        """The run of its graph."""
        self.shared.actions.update(self.actions)
        return InProcessGraphRun(self.graph, self.facts, self.caches, self.shared, self.files)

    def last(self) -> tuple[Iterator[Row], Finish]:
        vertex, finish = self.running.last_vertex()
        return self.running.rows(vertex), finish

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        return (row for row in rows if row.channel <= ITEMS)

    def payloads(self, rows: Iterator[Row], channel: int = ITEMS) -> list[Any]:
        return [row.payload for row in rows if row.channel == channel]

    def data_frame(self, rows: Iterator[Row], step: Step) -> Any:
        raise UnsupportedError("only Spark has DataFrames: use to_arrow(), or connect() with the Spark engine")

    def pulled(self, ending: Pulled) -> Iterator[Any]:
        """Give the items one after another, as the caller asks for them."""
        items = self._pulled(ending.inputs)
        if ending.limit is None:
            yield from items
            return
        # Closed before the end is told, so that notes and services come before it.
        with closing(items):
            yield from some(items, ending.skipped, ending.limit.count)

    def _pulled(self, inputs: Items) -> Generator[Any, None, None]:
        with self:
            yield from self.running.items(inputs)

    def partitions(self, inputs: Items) -> list[Iterator[Any]]:
        """Return one lazy iterator for each partition; the run ends with the last of them."""
        tasks = list(self.running.tasks(self.running.decided(inputs), 0))
        running = len(tasks)

        def one_of(task: InProcessTask, items: Iterator[Any]) -> Iterator[Any]:
            nonlocal running
            error: BaseException | None = None
            try:
                yield from self.running.items_of_task(task, items)
            except BaseException as raised:
                error = raised
                raise
            finally:
                running -= 1
                if running == 0:
                    self.__exit__(None if error is None else type(error), error)

        return [one_of(*each) for each in tasks]


class InProcessGraphRun(GraphRun):
    """One run of a graph in this process.

    Attributes:
        ran: the vertices whose tasks have begun, in this order.
    """

    def __init__(
        self, graph: Graph, facts: ClusterFacts, caches: Caches, shared: SharedByTasks, files: ShuffleFiles
    ) -> None:
        super().__init__(graph, facts, caches, lambda: counted)  # type: ignore[arg-type, return-value]
        self.ran: list[Vertex] = []
        self._shared = shared
        self._files = files
        self._rows: dict[int, list[Row]] = {}
        self._held: list[Vertex] = []  # What is found by its `id` must stay, so that no other object gets that.

    def rows(self, vertex: Vertex) -> Iterator[Row]:
        """Run the tasks of a vertex one after another, and give the rows that they write."""
        self.ran.append(vertex)
        output: Sink = self._shared.of_a_stage(vertex.output)
        for task, items in self.tasks(vertex.inputs, vertex.first):
            with task.ending():
                yield from rows_of_task(output, items, task)

    def items(self, inputs: Items) -> Iterator[Any]:
        """Give the items of inputs, task after task, as they are asked for."""
        for task, items in self.tasks(self.decided(inputs), 0):
            yield from self.items_of_task(task, items)

    def items_of_task(self, task: InProcessTask, items: Iterator[Any]) -> Iterator[Any]:
        """Give the items of one task."""
        with task.ending():
            yield from items
            task.read_rest()
            task.last_side_rows()

    def tasks(self, inputs: Items, first: int) -> Iterator[tuple[InProcessTask, Iterator[Any]]]:
        """Give each task with its items; the first one has the number `first`."""
        for opened in chain.from_iterable(map(self._partitions_of, inputs)):
            task = InProcessTask(first, self._shared)
            yield task, opened(task)
            first += 1

    def _partitions_of(self, each: Input) -> Iterator[Callable[[InProcessTask], Iterator[Any]]]:
        """Give what opens each partition of an input, in a task."""
        match each:
            case Splits() if _is_whole(each):
                yield functools.partial(self._in_one_task, each)
            case Splits():
                # One after another: a source is not asked for the next split before this one is used up.
                for piece in self.splits.pieces(each):
                    yield self._shared.of_a_stage(piece).open
            case Rows():
                yield from self._of_rows(each)
            case CachedInput(recall):
                operations = self._shared.of_a_stage(operations_of(each.applied))
                yield lambda task: operated(operations, iter(recall.items), task)
            case FromTable():
                raise UnsupportedError("only Spark reads its DataFrames: connect() with the Spark engine")
            case _:
                raise AssertionError("decisions are made before their items are read")

    def _in_one_task(self, splits: Splits, task: InProcessTask) -> Iterator[Any]:
        """Give the items of all pieces, each of which is asked for when the one before it is used up."""
        items = one_after_another(chain.from_iterable(self._opened(part, task) for part in splits.parts))
        return operated(self._shared.of_a_stage(operations_of(splits.applied)), items, task)

    def _opened(self, part: SourceSplits | Splits, task: InProcessTask) -> Iterator[Iterator[Any]]:
        if isinstance(part, Splits) and _is_whole(part):
            yield self._in_one_task(part, task)
        else:
            for piece in self.splits.pieces(part if isinstance(part, Splits) else Splits((part,))):
                yield self._shared.of_a_stage(piece).open(task)

    def _of_rows(self, each: Rows) -> Iterator[Callable[[InProcessTask], Iterator[Any]]]:
        reader, operations = self._shared.of_a_stage((each.reader, operations_of(each.applied)))
        taken = [rows_taken(self._written(taken.vertex), taken, self.port_of(taken)) for taken in each.taken]
        if each.targets is not None:
            partitions: Iterable[tuple[Row, ...]] = by_target(chain.from_iterable(taken), each.targets)
        else:
            partitions = chain.from_iterable(map(self._by_source, each.taken, taken))
        for rows in partitions:
            yield functools.partial(_read, reader, operations, rows)

    def _by_source(self, taken: Taken, rows: Iterator[Row]) -> Iterator[tuple[Row, ...]]:
        """Give the rows of each task that has written some or none, where they are."""
        of_sources: dict[int, list[Row]] = {}
        for row in rows:
            of_sources.setdefault(row.source, []).append(row)
        first = taken.vertex.first
        for number in range(first, first + self.partitions(taken.vertex.inputs)):
            yield tuple(of_sources.get(number, ()))

    def _written(self, vertex: Vertex) -> list[Row]:
        """Return the rows of a vertex for tasks that read them; it runs now, unless it has run."""
        if id(vertex) not in self._rows:
            self._held.append(vertex)
            storing = self._files.storing(tempfile.gettempdir(), _IN_MEMORY)
            decided = replace(vertex, inputs=self.decided(vertex.inputs))
            self._rows[id(vertex)] = list(map(handed_on, storing.stored(self.rows(decided))))
        return self._rows[id(vertex)]

    # ------------------------------------------------------------------------------------- what decisions ask for

    def report(self, ask: Ask) -> Report:
        rows = filter(ask.port.has, self._written(ask.vertex))
        partitions = self.partitions(ask.vertex.inputs)
        match ask.what:
            case "places":
                return Report(
                    ask.vertex, partitions, [(each.source, each.sequence, each.channel, each.size) for each in rows]
                )
            case "bytes":
                return Report(ask.vertex, partitions, [(each.channel, size_of(each)) for each in rows])
        return Report(ask.vertex, partitions, list(map(whole, rows)))

    def computed(self, ask: AskForKept) -> CacheContent:
        items = chain.from_iterable(
            loads_items(whole(row).payload) for row in self._written(ask.vertex) if row.channel == ITEMS
        )
        kept = CachedItems(items, Bound(self._shared.worker_memory))
        return CacheContent(kept, is_ordered(ask.node), len(kept))

    def count_of_others(self, each: Input) -> int:
        return 1

    def sent_to_all(self, payloads: Sequence[Any]) -> InFunction:
        return InFunction(f"dstream-sent-{uuid.uuid4().hex}", tuple(map(bytes, payloads)))


def _is_whole(splits: Splits) -> bool:
    """Say whether one task reads all pieces, however many there are."""
    return splits.is_one_task and splits.for_each is None and splits.start == 0 and splits.stop is None


def _read(reader: Reader, operations: Sequence[Operation], rows: Iterable[Row], task: InProcessTask) -> Iterator[Any]:
    return operated(operations, reader(task.reading(map(whole, rows))), task)
