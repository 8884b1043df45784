"""`InProcessGraphRun`: one run of a graph in the caller's process, vertex after vertex, and of each task after task.

The last vertex is lazy: its rows, or items that the caller pulls, are produced as its tasks read. Rows for other tasks
remain in memory up to a limit; the rest is in files until the run ends.
"""

from __future__ import annotations

import functools
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from dstream.engine.compiler import ClusterFacts
from dstream.engine.inprocess.tasks import InProcessTask, SharedByTasks, counted, give_container, give_items
from dstream.engine.physical.graph import Ask, AskForKept, Graph, Report
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
from dstream.engine.runs.item_use import ItemUse
from dstream.engine.runs.rows import ShuffleFiles, by_target, rows_taken
from dstream.engine.tasks.process import InFunction
from dstream.engine.tasks.rows import ITEMS, WATERMARKS, Row, handed_on, size_of, whole
from dstream.engine.tasks.sinks import Accumulate
from dstream.engine.tasks.stage import Reader, Sink, rows_of_task
from dstream.errors import UnsupportedError
from dstream.operators.rows.batches import loads, loads_items
from dstream.operators.rows.blocks import one_after_another
from dstream.operators.rows.caches import CachedItems, Caches, HeldByContext
from dstream.operators.rows.operations import OfPartitions, Operation, Watermarks, operated
from dstream.plan.operations.streams import Fork
from dstream.plan.properties import is_ordered
from dstream.plan.walk import CacheContent

__all__ = ["InProcessGraphRun"]


_IN_MEMORY = 64 * 2**20
"""The bytes of the rows of one vertex that remain in memory until other tasks have read them."""


_ANY_USE = ItemUse()


class InProcessGraphRun(GraphRun):
    """One run of a graph in this process.

    Attributes:
        ran: the vertices whose tasks have begun, in this order.
        files: store the large payloads of rows between its tasks.

    Args:
        shared: the state of the run.
        use: the use of the caller's items.
    """

    def __init__(
        self,
        graph: Graph,
        facts: ClusterFacts,
        caches: Caches,
        shared: SharedByTasks,
        files: ShuffleFiles,
        use: ItemUse = _ANY_USE,
    ) -> None:
        super().__init__(graph, facts, caches, lambda: counted, use)
        self.ran: list[Vertex] = []
        self.files = files
        self._shared = shared
        self._rows: dict[int, list[Row]] = {}
        self._given: Vertex | None = None
        # Objects that are looked up by `id` must stay alive, so that the id is not reused.
        self._alive: list[Vertex] = []

    def rows(self, vertex: Vertex) -> Iterator[Row]:
        """Run the tasks of a vertex one after another, and yield the rows that they write."""
        self.ran.append(vertex)
        output = self.output_of(vertex)
        for task, items in self.tasks(vertex.inputs, vertex.first):
            with task.ending():
                yield from rows_of_task(output, items, task)

    def give(self, vertex: Vertex) -> None:
        """Configure the tasks of the last vertex in this process: their items or containers are not pickled."""
        self._given = vertex

    def output_of(self, vertex: Vertex) -> Sink:
        """Return what writes the rows of a vertex in this process."""
        if vertex is not self._given:
            return self._shared.of_a_stage(vertex.output)
        if isinstance(vertex.output, Accumulate):
            accumulate = self._shared.of_a_stage(vertex.output)
            return functools.partial(give_container, accumulate, lambda: self.splits.owns_results)
        return functools.partial(give_items, lambda: self.splits.owns_results)

    def items(self, inputs: Items) -> Iterator[Any]:
        """Yield the items of inputs, task after task, as they are asked for."""
        for task, items in self.tasks(self.decided(inputs), 0):
            yield from self.items_of_task(task, items)

    def items_of_task(self, task: InProcessTask, items: Iterator[Any]) -> Generator[Any, None, None]:
        """Yield the items of one task."""
        with task.ending():
            yield from items
            task.read_rest()
            task.last_side_rows()

    def tasks(self, inputs: Items, first: int) -> Iterator[tuple[InProcessTask, Iterator[Any]]]:
        """Yield each task with its items; the first one has the number `first`."""
        for opened in chain.from_iterable(map(self._partitions_of, inputs)):
            task = InProcessTask(first, self._shared)
            yield task, opened(task)
            first += 1

    def _partitions_of(self, each: Input) -> Iterator[Callable[[InProcessTask], Iterator[Any]]]:
        """Yield what opens each partition of an input, in a task."""
        match each:
            case Splits() if _is_whole(each):
                yield functools.partial(self._in_one_task, each)
            case Splits():
                # One after another: a source is not asked for the next split before this one is used up.
                for piece in self.splits.pieces(each):
                    yield self._shared.of_a_stage(piece).open
            case Rows():
                reader, operations = self._shared.of_a_stage((each.reader, operations_of(each.applied)))
                for rows in self.rows_by_partition(each):
                    yield functools.partial(_read, reader, operations, rows)
            case CachedInput(recall):
                operations = self._shared.of_a_stage(operations_of(each.applied))
                yield functools.partial(_recalled, self._recalled(recall.items), operations)
            case FromTable():
                raise UnsupportedError("only Spark reads its DataFrames: connect() with the Spark engine")
            case _:
                raise AssertionError("decisions are made before their items are read")

    def _recalled(self, items: Any) -> Any:
        """Return the content of a cache, or of a fork, in this process."""
        is_here = isinstance(items, CachedItems | _ForkedItems)
        return items if is_here else self._caches.fetched(items, self._shared.bound())

    def _in_one_task(self, splits: Splits, task: InProcessTask) -> Iterator[Any]:
        """Yield the items of all pieces, each of which is requested when the one before it is exhausted."""
        items = one_after_another(chain.from_iterable(self._opened(part, task) for part in splits.parts))
        return operated(self._shared.of_a_stage(operations_of(splits.applied)), items, task)

    def _opened(self, part: SourceSplits | Splits, task: InProcessTask) -> Iterator[Iterator[Any]]:
        if isinstance(part, Splits) and _is_whole(part):
            yield self._in_one_task(part, task)
        else:
            for piece in self.splits.pieces(part if isinstance(part, Splits) else Splits((part,))):
                yield self._shared.of_a_stage(piece).open(task)

    def rows_by_partition(self, each: Rows) -> Iterator[tuple[Row, ...]]:
        """Yield the rows of each partition of an input; a vertex that writes them runs now, unless it has run."""
        taken = (rows_taken(self._written(taken.vertex), taken, self.port_of(taken)) for taken in each.taken)
        if each.targets is not None:
            yield from by_target(chain.from_iterable(taken), each.targets)
        else:
            yield from chain.from_iterable(map(self._by_source, each.taken, taken))

    def _by_source(self, taken: Taken, rows: Iterator[Row]) -> Iterator[tuple[Row, ...]]:
        """Yield the rows of each task in the order of the tasks, empty for those without rows."""
        of_sources: dict[int, list[Row]] = {}
        for row in rows:
            of_sources.setdefault(row.source, []).append(row)
        first = taken.vertex.first
        for number in range(first, first + self.partitions(taken.vertex.inputs)):
            yield tuple(of_sources.get(number, ()))

    def _written(self, vertex: Vertex) -> list[Row]:
        """Return the rows of a vertex for tasks that read them; it runs now, unless it has run."""
        if id(vertex) not in self._rows:
            self._alive.append(vertex)
            self._rows[id(vertex)] = list(self.rows_to_hand_on(replace(vertex, inputs=self.decided(vertex.inputs))))
        return self._rows[id(vertex)]

    def rows_to_hand_on(self, vertex: Vertex) -> Iterator[Row]:
        """Run the tasks of a vertex, and yield their rows for other tasks; large payloads are in files."""
        return self.stored(self.rows(vertex))

    def stored(self, rows: Iterator[Row], most: int = _IN_MEMORY) -> Iterator[Row]:
        """Yield rows for other tasks, at most `most` bytes of which remain in memory."""
        return map(handed_on, self.files.storing(tempfile.gettempdir(), most).stored(rows))

    # ------------------------------------------------------------------------------------- requests of decisions

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
        cached = CachedItems(items, self._shared.bound())
        watermarks = self._watermarks(ask.vertex) if isinstance(ask.node, Fork) else {}
        content = _ForkedItems(cached, watermarks) if watermarks else cached
        return CacheContent(content, is_ordered(ask.node), len(cached))

    def _watermarks(self, vertex: Vertex) -> OfPartitions:
        """Return the merged watermarks of the tasks of a vertex."""
        known = Watermarks()
        for row in self._written(vertex):
            if row.channel == WATERMARKS:
                known.take(loads(whole(row).payload))
        return known.all()

    def count_of_others(self, each: Input) -> int:
        return 1

    def sent_to_all(self, payloads: Sequence[Any]) -> InFunction:
        return InFunction(f"dstream-sent-{uuid.uuid4().hex}", tuple(map(bytes, payloads)))


def _is_whole(splits: Splits) -> bool:
    """Return whether one task reads all pieces, however many there are."""
    return splits.is_one_task and splits.for_each is None and splits.start == 0 and splits.stop is None


class _ForkedItems(HeldByContext):
    """The items that several operations of one epoch read, and the watermarks after them."""

    def __init__(self, items: CachedItems, watermarks: OfPartitions) -> None:
        self._items = items
        self._watermarks = watermarks

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def read(self, task: InProcessTask) -> Iterator[Any]:
        """Yield the items to a task, which has the watermarks when it has read them."""
        yield from self._items
        task.watermarks.take(self._watermarks)


def _recalled(items: Any, operations: Sequence[Operation], task: InProcessTask) -> Iterator[Any]:
    return operated(operations, items.read(task) if isinstance(items, _ForkedItems) else iter(items), task)


def _read(reader: Reader, operations: Sequence[Operation], rows: Iterable[Row], task: InProcessTask) -> Iterator[Any]:
    return operated(operations, reader(task.reading(map(whole, rows))), task)
