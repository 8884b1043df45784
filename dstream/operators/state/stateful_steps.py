"""Steps over epochs in tasks: partial results, and their application to the state.

A task makes one `Arrival` of the items of one input. The partials for the shards of one task are `Gathered`, in the
order of (input, partition, offset); downstream of another such step, of (input, upstream shard, sequence). Then each
shard is opened, applied and kept, one after another.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple, cast

from dstream.base.memory import give_back, holding, resident_bytes
from dstream.base.records import record
from dstream.errors import IllegalStateError
from dstream.failures import naming
from dstream.operators.rows.operations import OfPartitions, Operation, Task, operation
from dstream.operators.state.watermarks import next_watermark, receipt_step
from dstream.plan.operations.unbounded import OverEpochs
from dstream.plan.steps import Op, Step
from dstream.spi.epochs import (
    ClosesProcessors,
    CountsEdges,
    EdgeCounts,
    EpochTime,
    ShardState,
    StateOperator,
    StepReceipt,
    StepState,
    StepTime,
    TaskPartials,
    target_of,
)
from dstream.values.time import Timed

__all__ = ["Arrival", "Gathered", "applying", "applying_all", "reducing"]


class Arrival(NamedTuple):
    """The partials of one input from one task.

    Attributes:
        number: the number of the input.
    """

    number: int
    partials: TaskPartials


@dataclass
class Gathered:
    """The input of the shards of one task.

    Attributes:
        target: the number of the task.
        targets: the number of such tasks.
        of_shards: (number of the input, partial) by the number of the shard, in order.
        items: the number of items that the counted tasks read.
        late: the number of late items among them.
        watermarks: the watermarks that arrived with them.
    """

    target: int = 0
    targets: int = 1
    of_shards: dict[int, list[tuple[int, Any]]] = field(default_factory=dict)
    items: int = 0
    late: int = 0
    watermarks: OfPartitions = field(default_factory=dict)

    def add(self, shard: int, number: int, partial: Any) -> None:
        """Append a partial of a shard."""
        self.of_shards.setdefault(shard, []).append((number, partial))


def reducing(node: OverEpochs, number: int) -> Operation:
    """Return the operation of a task on the items of one input.

    Args:
        node: the operation.
        number: the number of the input.
    """
    shards = None if node.state is None else node.state.shards
    return _Reducing(node.operator, number, node.time, shards, node.step)


@record(slots=False)
class _Reducing:
    operator: StateOperator
    number: int
    time: StepTime | None
    shards: int | None
    step: Step

    def __call__(self, items: Iterator[Timed], task: Task) -> Iterator[Arrival]:
        if self.time is None or self.shards is None:
            raise _without_time()
        with naming(self.step), holding():
            partials = self.operator.partial(self.number, items, _moment(self.time, self.time.old), self.shards)
        deque(items, maxlen=0)  # Reads markers after the last item, too, such as watermarks.
        yield Arrival(self.number, partials)


def _without_time() -> IllegalStateError:
    return IllegalStateError("a step over epochs runs in jobs, which give it a state and a clock")


def _moment(time: StepTime, new: int) -> EpochTime:
    return EpochTime(time.epoch, time.now, time.old, new, time.is_resumed, time.clock_deadline, ended=time.ended)


@operation.register
def _(node: OverEpochs) -> Operation:
    return applying_all(node, receipt_step(node.step, node.take))


def applying_all(node: OverEpochs, receipts: Op) -> Operation:
    """Return an operation that applies the arrivals of all tasks at once, where all shards are; see `applying`."""
    return functools.partial(_applied_here, applying(node, receipts))


def _applied_here(apply: Operation, arrivals: Iterator[Arrival], task: Task) -> Iterator[Timed]:
    yield from apply(iter((_gathered(arrivals),)), task)


def _gathered(arrivals: Iterator[Arrival]) -> Gathered:
    """Return all arrivals; nothing else has the partials then, so that those of a shard go when it was applied."""
    gathered = Gathered()
    for number, partials in arrivals:
        gathered.items += partials.items
        gathered.late += partials.late
        for shard, partial in partials.of_shards.items():
            gathered.add(shard, number, partial)
    return gathered


def applying(node: OverEpochs, receipts: Op) -> Operation:
    """Return the operation of a task on its gathered input.

    Args:
        node: the operation.
        receipts: takes the receipt of the task.
    """
    return _Applying(node.operator, node.stage, node.state, node.time, receipts, node.step)


@record(slots=False)
class _Applying:
    operator: StateOperator
    stage: str
    state: StepState | None
    time: StepTime | None
    receipts: Op
    step: Step

    def __call__(self, all_gathered: Iterator[Gathered], task: Task) -> Iterator[Timed]:
        if self.time is None or self.state is None:
            raise _without_time()
        # This reads all rows: then the watermarks of all upstream partitions are known.
        (gathered,) = all_gathered
        task.watermarks.take(gathered.watermarks)
        time = self.time
        new = next_watermark(time, task.watermarks.least(time.stamps))
        run = _Run(self.operator, self.state, self.step, time, _moment(time, new), task.bound.bytes)
        task.at_end_with(run.ended)
        with holding():
            yield from run.outputs(gathered)
        task.peeking(self.receipts)(run.receipt(self.stage, gathered))


@functools.cache
def _counts_edges(kind: type) -> bool:
    """Return whether shards of a class count edges: `isinstance` with a protocol costs 10 microseconds (3.11)."""
    return issubclass(kind, CountsEdges)


_SOON = 0.001
"""Seconds in which no process grows by many megabytes, and the shards of a small epoch all take their turns."""


class _MemoryPressure:
    """Check whether state must move to disk, since this process exceeds its memory bound.

    A process may have much other data, such as a driver: there state moves once, and again when the process has grown.
    """

    def __init__(self) -> None:
        self._left = 0

    def is_high(self, bound: int) -> bool:
        """Return whether the process occupies more than a number of bytes, and more than state has left lately."""
        occupied = resident_bytes()
        self._left = 0 if occupied <= bound else min(self._left, occupied)
        return occupied > bound and (not self._left or occupied > self._left + _GROWTH)

    def relieved(self, bound: int) -> None:
        """Record the memory of the process after its state has moved."""
        occupied = resident_bytes()
        self._left = occupied if occupied > bound else 0


_GROWTH = 32 * 2**20
_pressure = _MemoryPressure()


class _Run:
    """The shards of one task in one epoch."""

    def __init__(
        self, operator: StateOperator, state: StepState, step: Step, time: StepTime, moment: EpochTime, bound: int
    ) -> None:
        self._operator, self._state, self._step, self._time, self._moment = operator, state, step, time, moment
        self._bound = bound
        self._looked_at = 0.0
        self._late = 0
        self._outputs = 0
        self._edges: list[EdgeCounts] = []
        self._opened: ShardState | None = None

    def outputs(self, gathered: Gathered) -> Iterator[Timed]:
        """Yield the output of each shard; the shard is kept when its output was consumed."""
        state, moment = self._state, self._moment
        # By number, so that downstream steps see one order of shards for any number of tasks.
        for number in sorted({*gathered.of_shards, *self._touched(gathered)}):
            with naming(self._step):
                self._opened = shard = state.open(number, self._operator)
                applied = shard.apply(gathered.of_shards.pop(number, ()), replace(moment, shard=number))
                for output in applied.outputs:
                    self._outputs += 1
                    yield output
                self._late += applied.late
                if _counts_edges(type(shard)):
                    self._edges.append(cast(CountsEdges, shard).edge_counts())
                # After all outputs: a task that fails before does not change the shard of the last epoch.
                state.keep(number, shard)
                self._opened = None
                self._relieve()

    def ended(self, error: BaseException | None) -> None:
        """Close the processors of a shard whose outputs were not all read, with the error; the shard is not kept."""
        if isinstance(self._opened, ClosesProcessors):
            self._opened.close_processors(error)

    def _touched(self, gathered: Gathered) -> list[int]:
        """Return the shards that have to be opened although no item arrived for them."""
        state, moment = self._state, self._moment
        if not self._time.has_new_end:
            return state.touched(gathered.target, gathered.targets, moment.new, moment.now)
        count = state.shards
        return [each for each in range(count) if target_of(each, count, gathered.targets) == gathered.target]

    def _relieve(self) -> None:
        """Move state to disk if this process occupies more than its bound."""
        now = perf_counter()
        if now - self._looked_at < _SOON:
            return
        self._looked_at = now
        if _pressure.is_high(self._bound):
            if self._state.relieve():
                give_back()
            _pressure.relieved(self._bound)

    def receipt(self, stage: str, gathered: Gathered) -> StepReceipt:
        """Write the changes, and return their receipt."""
        changes = self._state.staged()
        deadline, clock_deadline = self._state.deadlines()
        late = gathered.late + self._late
        new, edges = self._moment.new, tuple(self._edges)
        return StepReceipt(stage, gathered.items, late, self._outputs, new, deadline, clock_deadline, changes, edges)
