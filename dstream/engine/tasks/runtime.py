"""`StageTask`: the runtime of operations in one task, with their side output and counts of items."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from dstream.base.memory import Bound, Growth, small_lists
from dstream.base.records import record
from dstream.base.threads import closing, closing_with
from dstream.engine.tasks.process import NO_RUN, Payloads, SharedServices, shared_services, table_made_once
from dstream.engine.tasks.rows import FAILED, ITEMS, WATERMARKS, ExpectedRows, Row
from dstream.errors import EngineError
from dstream.failures.transport import WorkerFailure, as_text
from dstream.keys import check_hash_seed
from dstream.operators.joins.lookup import LookupTable
from dstream.operators.rows.batches import Batcher, dumps_items, loads
from dstream.operators.rows.operations import ItemCount, Task, Watermarks, in_chain
from dstream.operators.rows.services import TaskServices
from dstream.operators.rows.spill import Run
from dstream.plan.operations.elementwise import ServiceFunction
from dstream.plan.steps import NO_CALL, Guard, Op, Step

__all__ = ["FEW_BYTES", "CountItems", "SideRows", "StageTask"]


FEW_BYTES = 32 * 2**20
"""The most bytes of such rows that the driver buffers in memory."""


class SideRows:
    """The rows of `peek` steps and guards that are sent to the driver's actions.

    Args:
        few: the number of payload bytes that remain in memory.
    """

    def __init__(self, few: int = FEW_BYTES) -> None:
        self._few = few
        self._held: list[Row] = []
        self._bytes = 0
        self._runs: list[Run] = []

    def add(self, row: Row) -> None:
        """Add a row; its payload is copied, so that its buffer can be released."""
        row = row._replace(payload=bytes(row.payload))
        self._held.append(row)
        self._bytes += len(row.payload)
        if self._bytes > self._few:
            # Each run is sorted, so that all of them are merged at the end without being loaded.
            self._runs.append(Run(self._sorted()))

    def in_order(self) -> Iterator[Row]:
        """Yield all rows, once: channel by channel, in encounter order."""
        if not self._held and not self._runs:
            return iter(())
        runs, self._runs = self._runs, []
        return heapq.merge(*runs, self._sorted(), key=_order)

    def _sorted(self) -> list[Row]:
        rows, self._held, self._bytes = self._held, [], 0
        return sorted(rows, key=_order)


def _order(row: Row) -> tuple[int, int, int]:
    return row.channel, row.source, row.sequence


_UNSEEN = 512
"""Items of one channel that are buffered for the driver before their size is measured."""
_BEFORE_ITEMS = -(2**62)
"""The first `sequence` of side rows: a shuffle delivers them before the items of their task, so that the reader of an
item has received what was seen and noted of earlier items."""


class StageTask:
    """One task of a stage.

    Attributes:
        partition: its number among all partitions of the stage's output, in encounter order.
        bound: the memory that its operations may use.
        run: the run of a plan that it belongs to.
        secret: the secret of the driver, which signs failures.
        watermarks: the watermarks of the task.
        reads_all: also what a writer leaves is read.
        counts_rows: the rows that it reads are counted, so they have to be read to the end.
    """

    def __init__(self, partition: int, worker_memory: int, before: int = 0) -> None:
        self.partition = partition
        self.bound = Bound(worker_memory, before)
        self.run = NO_RUN
        self.secret = b""
        self.watermarks = Watermarks()
        self.reads_all = False
        self.counts_rows = False
        self._services: TaskServices | None = None
        self._shared: SharedServices | None = None
        self._ending = ExitStack()
        self._side_rows = SideRows()
        self._peeked: dict[int, list[Any]] = {}
        self._counters: list[tuple[int, ItemCount]] = []
        self._peek_sequence = _BEFORE_ITEMS
        self._batcher = Batcher()
        self._growth = Growth()
        self._rows: Iterator[Row] = iter(())
        self._failure: str | None = None

    def peeking(self, op: Op) -> Callable[[Any], object]:
        """Return a function that buffers an item for the driver, which runs the action of the step."""
        return self._keeping(op.step.position)

    def counting(self, op: Op) -> ItemCount:
        """Return the counter of items for the driver."""
        counter = ItemCount()
        self._counters.append((op.step.position, counter))
        return counter

    def noting(self, guard: Guard) -> Callable[[Any], object]:
        """Return a function that buffers a note for the driver."""
        return self._keeping(guard.channel)

    def _keeping(self, channel: int) -> Callable[[Any], object]:
        # The first item is looked at alone, as it may be large.
        seen, most = self._peeked.setdefault(channel, []), 1

        def keep(item: Any) -> None:
            nonlocal most
            seen.append(item)
            if len(seen) >= most:
                most = self._fewer(channel)

        return keep

    def _fewer(self, channel: int) -> int:
        """Write the rows of a channel, if they are enough; return how many it may buffer until the next check."""
        buffered = self._peeked[channel]
        self._batcher.begin(buffered)
        if len(buffered) >= self._batcher.count or self._growth.exceeded(buffered):
            self._flush(channel)
        return min(self._batcher.count, len(buffered) + _UNSEEN)

    def at_end(self, close: Callable[[], object]) -> None:
        """Call `close` when the task ends, however it ends."""
        self._ending.push(closing(close))

    def at_end_with(self, close: Callable[[BaseException | None], object]) -> None:
        """Call `close` at the end of the task with its error; None if it did not fail, also if it was left early."""
        self._ending.push(closing_with(close))

    def service(self, served: ServiceFunction, step: Step) -> Any:
        """Return the service of a step: the instance of this process, or of this task."""
        # Without a connection to the driver the end of a shared service is unknown, so each task has its own.
        if served.opened().shared and self.run.home is not None:
            return self._shared_services().get(served, step)
        if self._services is None:
            self._services = TaskServices()
            self.at_end(self._services.destroy)
        return self._services.get(served, step)

    def _shared_services(self) -> SharedServices:
        if self._shared is None:
            self._shared = shared_services(self.run)
            self.at_end(self._shared.use())
        return self._shared

    def check_can_route(self) -> None:
        """Refuse to send keys to other tasks by hashes that are specific to this process.

        Raises:
            EngineError: the hashes of strings are random on this worker.
        """
        check_hash_seed()

    def table_of(self, sent: Payloads, step: Step) -> LookupTable:
        """Return the table of the right side of a hash join; the first task of a process that needs it makes it."""
        return table_made_once(sent, step)

    def ending(self) -> ExitStack:
        """Return a context at whose end everything is closed that has to be."""
        return self._ending

    def reading(self, rows: Iterator[Row], sent: ExpectedRows | None = None) -> Iterator[Row]:
        """Yield the rows of an earlier stage that carry items; process side rows and control rows.

        Args:
            rows: what arrived.
            sent: the rows to expect; None: they are not counted.

        Raises:
            WorkerFailure: a task of the earlier stage has failed, or its rows have not arrived.
        """
        self.counts_rows = sent is not None
        self._rows = self._reading(rows if sent is None else self._arriving(rows, sent))
        return self._rows

    def _arriving(self, rows: Iterator[Row], sent: ExpectedRows) -> Iterator[Row]:
        try:
            yield from sent.arriving(rows)
        except EngineError as error:
            self._failure = as_text(error, self.secret)
            raise WorkerFailure(self._failure) from None

    def _reading(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            if row.channel == ITEMS:
                yield row
            elif row.channel > ITEMS:
                self._side_rows.add(row)
            elif row.channel == WATERMARKS:
                self.watermarks.take(loads(row.payload))
            elif row.channel == FAILED:
                # Remembered, since a function of the user's that reads the items may catch the exception.
                self._failure = bytes(row.payload).decode()
                raise WorkerFailure(self._failure)

    def read_rest(self) -> None:
        """Read the rest: a failure may be among it, or one may have been caught that was not to be.

        Raises:
            WorkerFailure: a task of the earlier stage has failed.
        """
        deque(self._rows, maxlen=0)
        if self._failure is not None:
            raise WorkerFailure(self._failure)

    def side_rows(self) -> Iterator[Row]:
        """Yield the side rows that were added since the last call."""
        return self._side_rows.in_order()

    def last_side_rows(self) -> Iterator[Row]:
        """Yield all that is left at the end of the task."""
        for channel in self._peeked:
            self._flush(channel)
        for channel, counter in self._counters:
            if (number := counter.total()) > 0:
                self._side_rows.add(Row(0, self.partition, self._peek_sequence, channel, 1, dumps_items([number])))
                self._peek_sequence += 1
        self._counters.clear()
        return self.side_rows()

    def _flush(self, channel: int) -> None:
        seen = self._peeked[channel]
        for few in small_lists(seen) if self._growth.exceeded(seen) else [seen[:]]:
            if few:
                data = dumps_items(few)
                self._side_rows.add(Row(0, self.partition, self._peek_sequence, channel, len(few), data))
                self._batcher.learn(len(few), len(data))
                self._peek_sequence += 1
        seen.clear()
        self._growth.start()


@record(slots=False)
class CountItems:
    """Passes items on and adds their number to the count that the driver sees after the task."""

    accumulator: Any
    key: str

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[Any]:
        number = ItemCount()
        task.at_end(lambda: self.accumulator.add({self.key: number.total()}))
        return in_chain([Op("count", number, None, NO_CALL)], items)
