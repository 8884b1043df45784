"""Tasks in the caller's process, and their shared state: counts, the actions of `peek` steps, notes and services."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dstream.base.by_value import dumps_with_shared, loads_with_shared
from dstream.base.functions import refuse_awaitable
from dstream.base.memory import BatchIterator, Bound, occupied_before
from dstream.engine.calls import Cancellation
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.tasks.process import Payloads
from dstream.engine.tasks.rows import ITEMS, Row
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import Accumulate
from dstream.errors import SerializationError
from dstream.failures import blame, naming
from dstream.keys.hashing import hash_without_seed
from dstream.operators.joins.lookup import LookupTable, table_of
from dstream.operators.rows.batches import copies
from dstream.operators.rows.blocks import Block, ColumnItems
from dstream.operators.rows.group_tables import collected
from dstream.operators.rows.guards import Action
from dstream.operators.rows.operations import ItemCount, Task, in_chain
from dstream.operators.rows.services import TaskServices
from dstream.plan.operations.elementwise import ServiceFunction
from dstream.plan.steps import NO_CALL, Guard, Op, Step

__all__ = ["InProcessTask", "SharedByTasks", "counted", "give_container", "give_items"]

T = TypeVar("T")


@dataclass
class SharedByTasks:
    """The state of a run that all its tasks share.

    Attributes:
        worker_memory: the bytes of memory that a task may use before its operations spill.
        actions: the functions to call with each item that a `peek` step sees, by channel.
        recovered: takes the notes of guards; None if there are none.
        cancellation: whether the run continues.
        is_counting: whether items are counted as they are read, since the number is shown, or costs are measured.
        counts_blocks: whether items in blocks are counted, too.
        is_shared: whether functions run without copies, since none captures a mutable object.
        reads_all: whether tasks also read items that a writer has left, as in epochs: watermarks are last.
        items: the number of items that ended tasks have read.
        services: those that tasks share.
        tables: the right sides of hash joins, by the names under which they were sent.
        occupied_before: the memory that the bound of the run does not count.
    """

    worker_memory: int
    actions: dict[int, Action]
    recovered: RecoveryReport | None
    cancellation: Cancellation
    is_counting: bool
    counts_blocks: bool = True
    is_shared: bool = False
    reads_all: bool = False
    items: int = 0
    services: TaskServices = field(default_factory=TaskServices)
    tables: dict[str, LookupTable] = field(default_factory=dict)
    occupied_before: int = field(default_factory=occupied_before)

    def bound(self) -> Bound:
        """Return the memory bound of an operation outside of the tasks."""
        return Bound(self.worker_memory, self.occupied_before)

    def of_a_stage(self, value: T) -> T:
        """Return a part of a stage as its tasks run it: a copy, as workers get it, or itself if none is needed.

        Raises:
            SerializationError: something in it cannot travel.
        """
        if self.is_shared:
            return value
        try:
            data, shared = dumps_with_shared(value)
        except Exception as error:
            raise SerializationError(f"this pipeline cannot be sent to the workers: {error}") from error
        made: T = loads_with_shared(data, shared)
        return made


class InProcessTask(StageTask):
    """A task in the caller's process: the actions of `peek` steps and guards are called at once.

    Args:
        partition: its number among all partitions of the vertex.
        shared: the state of the run.
    """

    def __init__(self, partition: int, shared: SharedByTasks) -> None:
        super().__init__(partition, shared.worker_memory, shared.occupied_before)
        self.reads_all = shared.reads_all
        self._of_run = shared
        self._totals: list[tuple[Action, ItemCount]] = []

    def peeking(self, op: Op) -> Callable[[Any], object]:
        step, action = self._of_run.actions[op.step.position]

        def peek(item: Any) -> None:
            try:
                if (result := action(item)) is not None:
                    refuse_awaitable(result)
            except Exception as error:
                blame(error, step, item)
                raise

        return peek

    def counting(self, op: Op) -> ItemCount:
        counter = ItemCount()
        self._totals.append((self._of_run.actions[op.step.position], counter))
        return counter

    def noting(self, guard: Guard) -> Callable[[Any], object]:
        assert self._of_run.recovered is not None, "a plan with guards takes their notes"
        return self._of_run.recovered.taking(guard)

    def service(self, served: ServiceFunction, step: Step) -> Any:
        """Return the service of a step: the instance of the run, or of this task."""
        return self._of_run.services.get(served, step) if served.opened().shared else super().service(served, step)

    def check_can_route(self) -> None:
        """Hash keys as remote tasks do, on which a run may continue; hash seeds of strings differ between processes."""
        hash_without_seed(True)

    def table_of(self, sent: Payloads, step: Step) -> LookupTable:
        """Return the table of the right side of a hash join, made once for the run."""
        tables = self._of_run.tables
        if sent.name not in tables:
            tables[sent.name] = table_of(sent.payloads(), step)
        return tables[sent.name]

    def last_side_rows(self) -> Iterator[Row]:
        """Call the actions that take a number of items; there are no side rows."""
        totals, self._totals = self._totals, []
        for (_, action), counter in totals:
            if (number := counter.total()) > 0:
                action(number)
        return iter(())

    def counted(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield items as they are read: counted if their number is used, until the run is cancelled."""
        shared = self._of_run
        if shared.is_counting and (shared.counts_blocks or type(items) is not ColumnItems):
            number = ItemCount()
            self.at_end(lambda: self._add(number.total()))
            items = in_chain([Op("count", number, None, NO_CALL)], items)
        return _watched(items, shared.cancellation) if shared.cancellation.is_watched else items

    def _add(self, items: int) -> None:
        self._of_run.items += items


def counted(items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Count the items of a task of this process: an operation that can be copied with the others.

    A task elsewhere, where a run that moved continues, counts none.
    """
    return task.counted(items) if isinstance(task, InProcessTask) else items


def _watched(items: Iterator[Any], cancellation: Cancellation) -> Iterator[Any]:
    if type(items) is ColumnItems:
        return ColumnItems(_watched_blocks(items.blocks(), cancellation))
    return _watched_items(items, cancellation)


def _watched_blocks(blocks: Iterator[Block], cancellation: Cancellation) -> Iterator[Block]:
    for block in blocks:
        cancellation.check()
        yield _watched_items(block, cancellation) if isinstance(block, Iterator) else block


def _watched_items(items: Iterator[Any], cancellation: Cancellation) -> Iterator[Any]:
    for item in items:
        cancellation.check()
        yield item


def give_items(are_own: Callable[[], bool], items: Iterator[Any], task: StageTask) -> Iterator[Row]:
    """Yield the items in lists, instead of the pickled batches of `WriteItems`.

    Args:
        are_own: returns whether the items so far share no mutable object with the caller; others are copied.
        items: the items of the task.
        task: the task that emits them.
    """
    taking, written = BatchIterator(items), 0
    while batch := taking.take(_GIVEN):
        yield Row(0, task.partition, written, ITEMS, len(batch), batch if are_own() else copies(batch))
        written += len(batch)


_GIVEN = 16_384


def give_container(
    accumulate: Accumulate, are_own: Callable[[], bool], items: Iterator[Any], task: StageTask
) -> Iterator[Row]:
    """Yield the container of a task, instead of its pickled pieces.

    Args:
        accumulate: has the collector, as tasks run it.
        are_own: returns whether the container shares no mutable object with the caller; others are copied.
        items: the items of the task.
        task: the task that emits the container.
    """
    if accumulate.collector.parts is not None:
        yield from accumulate(items, task)
        return
    with naming(accumulate.step):
        container = collected(accumulate.collector, items)
        yield Row(0, task.partition, 0, ITEMS, 1, [container] if are_own() else copies([container]))
