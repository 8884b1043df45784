"""Steps over epochs in tasks: timestamps, partial results, and their application to the state.

A task makes one `Arrival` of the items of one input. What came for the shards of one task is `Gathered`, in the order
of (input, partition, offset); behind another such step, of (input, shard there, sequence). Then each shard is opened,
applied and kept, one after another.
"""

from __future__ import annotations

import copy
import functools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from dstream.base.memory import give_back, holding, resident_bytes
from dstream.errors import IllegalStateError
from dstream.failures import naming, shown
from dstream.operators.rows.operations import OfPartitions, Operation, Task, operation
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs
from dstream.plan.steps import Op, Step
from dstream.spi.epochs import (
    ClosesProcessors,
    CountsEdges,
    EdgeCounts,
    EpochTime,
    PartitionReceipt,
    PartitionTime,
    ShardState,
    StateOperator,
    StepReceipt,
    StepState,
    StepTime,
    TaskPartials,
    WatermarkPolicy,
    target_of,
    watermark_of,
)
from dstream.values.time import END_OF_TIME, NO_WATERMARK, Timed

__all__ = ["Arrival", "Gathered", "applying", "applying_all", "reducing", "stamping", "telling"]


@operation.register
def _(node: AssignTimestamps) -> Operation:
    return stamping(node, telling(node.step, node.take))


def telling(step: Step, take: Callable[[Any], object] | None) -> Op:
    """Return a step whose function takes the receipts of tasks in the caller's process."""
    return Op("peek", _nobody if take is None else take, None, step)


def _nobody(receipt: Any) -> None:
    """Take a receipt that nobody wants."""


def stamping(node: AssignTimestamps, receipts: Op) -> Operation:
    """Return the operation of a task on the items of the partition.

    Args:
        node: the operation.
        receipts: takes what became of the time.
    """
    return _Stamping(node.timestamp, node.time, receipts, node.step, node.drop_before, node.are_beside)


@dataclass(frozen=True)
class _Stamping:
    timestamp: Callable[[Any], Any] | None
    time: PartitionTime | None
    receipts: Op
    step: Step
    drop_before: int | None = None
    are_beside: bool = False

    def __call__(self, items: Iterator[tuple[None, Any]], task: Task) -> Iterator[Timed]:
        if self.time is None:
            raise IllegalStateError("items without an end are read by jobs, which say what time it is")
        # The policy as the last epoch left it: a task that runs again begins with it, too.
        seen = _Seen(copy.deepcopy(self.time.policy), self.time.now)
        with naming(self.step):
            yield from self._kept(self._stamped(items, seen))
            watermark = self._watermark(seen, self.time)
        if self.time.counts or seen.items:
            task.watermarks.take({(self.time.stamp, self.time.partition): watermark})
        task.peeking(self.receipts)(
            PartitionReceipt(self.time.stamp, self.time.partition, seen.policy, watermark, seen.greatest, seen.items)
        )

    def _kept(self, stamped: Iterator[Timed]) -> Iterator[Timed]:
        """Return the items that go on. Time is told of all: it has come as far as those that do not."""
        return stamped if self.drop_before is None else _since(self.drop_before, stamped)

    def _stamped(self, items: Iterator[tuple[None, Any]], seen: _Seen) -> Iterator[Timed]:
        if self.timestamp is None:
            return seen.by_the_clock(items)
        stamped = seen.greatest_only if seen.wants_greatest else seen.each
        return _alone(stamped(items, self.timestamp)) if self.are_beside else stamped(items, self.timestamp)

    def _watermark(self, seen: _Seen, time: PartitionTime) -> int:
        seen.report_rest()
        # A policy may go back, for example one of the user's; the watermark of a partition does not.
        return END_OF_TIME if time.ends else max(time.watermark, watermark_of(seen.policy, time.now))


def _alone(stamped: Iterator[Timed]) -> Iterator[Timed]:
    return ((timestamp, item) for timestamp, (_, item) in stamped)


def _since(first: int, stamped: Iterator[Timed]) -> Iterator[Timed]:
    return ((timestamp, item) for timestamp, item in stamped if timestamp is not None and timestamp >= first)


class _Seen:
    """The facts seen of a partition so far.

    Attributes:
        wants_greatest: the policy is told one timestamp, the greatest, when all items were seen.
        greatest: the greatest timestamp; `NO_WATERMARK` before the first one.
    """

    def __init__(self, policy: WatermarkPolicy, now: float) -> None:
        self.policy = policy
        self.now = now
        self.wants_greatest = bool(getattr(policy, "greatest_only", False))
        self.greatest = NO_WATERMARK
        self.items = 0
        self._is_told = False

    def greatest_only(self, pairs: Iterator[tuple[None, Any]], timestamp_of: Callable[[Any], Any]) -> Iterator[Timed]:
        # Local variables, and below a test of the type without a call: the loop runs for each item.
        greatest, number = self.greatest, 0
        for _, item in pairs:
            timestamp = timestamp_of(item)
            if type(timestamp) is not int:
                timestamp = _milliseconds(timestamp)
            if timestamp > greatest:
                greatest = timestamp
            number += 1
            yield timestamp, item
        self.greatest, self.items = greatest, number

    def each(self, pairs: Iterator[tuple[None, Any]], timestamp_of: Callable[[Any], Any]) -> Iterator[Timed]:
        report, now, self._is_told = self.policy.report, self.now, True
        for _, item in pairs:
            timestamp = timestamp_of(item)
            if type(timestamp) is not int:
                timestamp = _milliseconds(timestamp)
            report(timestamp, now)
            self.greatest = max(self.greatest, timestamp)
            self.items += 1
            yield timestamp, item

    def by_the_clock(self, pairs: Iterator[tuple[None, Any]]) -> Iterator[Timed]:
        timestamp = int(self.now * 1000)
        for _, each in pairs:
            self.items += 1
            yield timestamp, each
        if self.items:
            self.greatest = timestamp

    def report_rest(self) -> None:
        """Tell the policy the greatest timestamp, unless it was told all of them."""
        if self.items and not self._is_told:
            self.policy.report(self.greatest, self.now)


def _milliseconds(timestamp: Any) -> int:
    """Return an integer of another class, such as one of NumPy's, as an int."""
    if isinstance(timestamp, bool) or not hasattr(type(timestamp), "__index__"):
        raise TypeError(f"the timestamp of an item is milliseconds as an int, not {shown(timestamp)}")
    return int(timestamp)


class Arrival(NamedTuple):
    """The part of one input in one task.

    Attributes:
        number: of the input.
    """

    number: int
    partials: TaskPartials


@dataclass
class Gathered:
    """The input of the shards of one task.

    Attributes:
        target: the number of the task.
        targets: how many such tasks there are.
        of_shards: (number of the input, partial) by the number of the shard, in order.
        items: how many items the tasks saw that are counted here.
        late: how many of them were late.
        watermarks: that came with them.
    """

    target: int = 0
    targets: int = 1
    of_shards: dict[int, list[tuple[int, Any]]] = field(default_factory=dict)
    items: int = 0
    late: int = 0
    watermarks: OfPartitions = field(default_factory=dict)

    def add(self, shard: int, number: int, partial: Any) -> None:
        """Take a partial behind those that came before."""
        self.of_shards.setdefault(shard, []).append((number, partial))


def reducing(node: OverEpochs, number: int) -> Operation:
    """Return the operation of a task on the items of one input.

    Args:
        node: the operation.
        number: of the input.
    """
    shards = None if node.state is None else node.state.shards
    return _Reducing(node.operator, number, node.time, shards, node.step)


@dataclass(frozen=True)
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
        deque(items, maxlen=0)  # What stands behind the last item, such as watermarks, is seen too.
        yield Arrival(self.number, partials)


def _without_time() -> IllegalStateError:
    return IllegalStateError("a step over epochs runs in jobs, which give it a state and say what time it is")


def _moment(time: StepTime, new: int) -> EpochTime:
    return EpochTime(time.epoch, time.now, time.old, new, time.is_resumed, time.clock_deadline, ended=time.ended)


@operation.register
def _(node: OverEpochs) -> Operation:
    return applying_all(node, telling(node.step, node.take))


def applying_all(node: OverEpochs, receipts: Op) -> Operation:
    """Return an operation that applies the arrivals of all tasks at once, where all shards are; see `applying`."""
    return functools.partial(_applied_here, applying(node, receipts))


def _applied_here(apply: Operation, arrivals: Iterator[Arrival], task: Task) -> Iterator[Timed]:
    gathered = Gathered()
    for number, partials in arrivals:
        gathered.items += partials.items
        gathered.late += partials.late
        for shard, partial in partials.of_shards.items():
            gathered.add(shard, number, partial)
    yield from apply(iter((gathered,)), task)


def applying(node: OverEpochs, receipts: Op) -> Operation:
    """Return the operation of a task on its gathered input.

    Args:
        node: the operation.
        receipts: takes the receipt of the task.
    """
    return _Applying(node.operator, node.stage, node.state, node.time, receipts, node.step)


@dataclass(frozen=True)
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
        # This reads all rows: from now on the watermarks of all partitions that lead here are known.
        (gathered,) = all_gathered
        task.watermarks.take(gathered.watermarks)
        time = self.time
        new = time.watermark(task.watermarks.least(time.stamps))
        run = _Run(self.operator, self.state, self.step, time, _moment(time, new), task.bound.bytes)
        task.at_end_with(run.ended)
        with holding():
            yield from run.outputs(gathered)
        task.peeking(self.receipts)(run.receipt(self.stage, gathered))


class _Run:
    """The shards of one task in one epoch."""

    def __init__(
        self, operator: StateOperator, state: StepState, step: Step, time: StepTime, moment: EpochTime, bound: int
    ) -> None:
        self._operator, self._state, self._step, self._time, self._moment = operator, state, step, time, moment
        self._bound = bound
        self._late = 0
        self._outputs = 0
        self._edges: list[EdgeCounts] = []
        self._opened: ShardState | None = None

    def outputs(self, gathered: Gathered) -> Iterator[Timed]:
        """Yield the output of each shard; the shard is kept when all of that was consumed."""
        state, moment = self._state, self._moment
        # By number, so that the steps behind see one order of shards, however many tasks there are.
        for number in sorted({*gathered.of_shards, *self._touched(gathered)}):
            with naming(self._step):
                self._opened = shard = state.open(number, self._operator)
                applied = shard.apply(gathered.of_shards.pop(number, ()), replace(moment, shard=number))
                for output in applied.outputs:
                    self._outputs += 1
                    yield output
                self._late += applied.late
                if isinstance(shard, CountsEdges):
                    self._edges.append(shard.edge_counts())
                # Behind all outputs: a task that fails before leaves the shard of the last epoch as it was.
                state.keep(number, shard)
                self._opened = None
                self._relieve()

    def ended(self, error: BaseException | None) -> None:
        """Let the processors of a shard whose outputs were not all taken know why; the shard is not kept."""
        if isinstance(self._opened, ClosesProcessors):
            self._opened.close_processors(error)

    def _touched(self, gathered: Gathered) -> list[int]:
        """Return the shards that have to be opened although nothing came for them."""
        state, moment = self._state, self._moment
        if not self._time.has_new_end:
            return state.touched(gathered.target, gathered.targets, moment.new, moment.now)
        count = state.shards
        return [each for each in range(count) if target_of(each, count, gathered.targets) == gathered.target]

    def _relieve(self) -> None:
        """Let state move to disk where this process occupies more than it may."""
        if resident_bytes() > self._bound and self._state.relieve():
            give_back()

    def receipt(self, stage: str, gathered: Gathered) -> StepReceipt:
        """Write the changes, and return their receipt."""
        changes = self._state.staged()
        deadline, clock_deadline = self._state.deadlines()
        late = gathered.late + self._late
        new, edges = self._moment.new, tuple(self._edges)
        return StepReceipt(stage, gathered.items, late, self._outputs, new, deadline, clock_deadline, changes, edges)
