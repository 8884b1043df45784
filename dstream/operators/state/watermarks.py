"""Timestamps of items in tasks, and the watermarks of partitions and of steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from dstream.base.records import record
from dstream.errors import IllegalStateError
from dstream.failures import naming, shown
from dstream.operators.rows.blocks import Block, ColumnItems, given
from dstream.operators.rows.operations import Operation, Task, operation
from dstream.plan.operations.unbounded import AssignTimestamps
from dstream.plan.steps import KeyInColumns, Op, Step
from dstream.spi.epochs import PartitionReceipt, PartitionTime, StepTime, WatermarkPolicy, watermark_of
from dstream.values.time import END_OF_TIME, NO_WATERMARK, Timed

__all__ = ["next_watermark", "receipt_step", "stamping"]


def next_watermark(time: StepTime, reported: int) -> int:
    """Return the watermark of a step at the end of the epoch; it never decreases.

    Args:
        time: the time of the step.
        reported: the least watermark that arrived in band from its `stamps`; `END_OF_TIME` without one.
    """
    least = min(time.unread_watermark, reported)
    # `END_OF_TIME` from all means that no partition limits event time, not that time has ended.
    return max(time.old, time.minimum, time.all_idle if least == END_OF_TIME else least)


@operation.register
def _(node: AssignTimestamps) -> Operation:
    return stamping(node, receipt_step(node.step, node.take))


def receipt_step(step: Step, take: Callable[[Any], object] | None) -> Op:
    """Return a step whose function takes the receipts of tasks in the caller's process."""
    return Op("peek", _discard if take is None else take, None, step)


def _discard(receipt: Any) -> None:
    """Take a receipt that has no use."""


def stamping(node: AssignTimestamps, receipts: Op, in_columns: KeyInColumns | None = None) -> Operation:
    """Return the operation of a task on the items of the partition.

    Args:
        node: the operation.
        receipts: receives the progress of event time.
        in_columns: the timestamps as an expression over columns, if the function is read.
    """
    return _Stamping(node.timestamp, node.time, receipts, node.step, node.drop_before, node.are_beside, in_columns)


@record(slots=False)
class _Stamping:
    timestamp: Callable[[Any], Any] | None
    time: PartitionTime | None
    receipts: Op
    step: Step
    drop_before: int | None = None
    are_beside: bool = False
    in_columns: KeyInColumns | None = None

    def __call__(self, items: Iterator[tuple[None, Any]], task: Task) -> Iterator[Timed]:
        if self.time is None:
            raise IllegalStateError("items without an end are read by jobs, which have a clock")
        # The policy as the last epoch left it: a task that runs again begins with it, too.
        seen = _Seen(copy.deepcopy(self.time.policy), self.time.now)
        if type(items) is ColumnItems and self._takes_columns(seen):
            return ColumnItems(self._until_the_end(self._blocks(items.blocks(), seen), seen, self.time, task))
        return self._until_the_end(self._not_dropped(self._stamped(items, seen)), seen, self.time, task)

    def _takes_columns(self, seen: _Seen) -> bool:
        is_read = self.in_columns is not None and self.in_columns.expression is not None
        # A policy that reads each timestamp receives one item after another.
        return is_read and seen.wants_greatest and self.drop_before is None and not self.are_beside

    def _blocks(self, blocks: Iterator[Block], seen: _Seen) -> Iterator[Block]:
        from dstream.operators.columns.windows import stamped_block  # loads NumPy, which made the columns

        assert self.timestamp is not None, "only a function is read"
        assert self.in_columns is not None, "it is read"
        for block in blocks:
            stamped = stamped_block(block, self.in_columns, self.timestamp, self.step.label)
            if stamped is None:
                yield seen.greatest_only(iter(given(block)), self.timestamp)
            else:
                seen.take(*stamped[1:])
                yield stamped[0]

    def _until_the_end(self, made: Iterator[Any], seen: _Seen, time: PartitionTime, task: Task) -> Iterator[Any]:
        """Yield timestamped items, or blocks of them, and then report the progress of event time."""
        with naming(self.step):
            yield from made
            watermark = self._watermark(seen, time)
        if time.counts or seen.items:
            task.watermarks.take({(time.stamp, time.partition): watermark})
        task.peeking(self.receipts)(
            PartitionReceipt(time.stamp, time.partition, seen.policy, watermark, seen.greatest, seen.items)
        )

    def _not_dropped(self, stamped: Iterator[Timed]) -> Iterator[Timed]:
        """Return the items that are not dropped. The policy receives the timestamps of all items."""
        return stamped if self.drop_before is None else _since(self.drop_before, stamped)

    def _stamped(self, items: Iterator[tuple[None, Any]], seen: _Seen) -> Iterator[Timed]:
        if self.timestamp is None:
            return seen.by_the_clock(items)
        stamped = seen.greatest_only if seen.wants_greatest else seen.each
        return _alone(stamped(items, self.timestamp)) if self.are_beside else stamped(items, self.timestamp)

    def _watermark(self, seen: _Seen, time: PartitionTime) -> int:
        seen.report_rest()
        # The watermark of a user's policy may decrease; the watermark of a partition does not.
        return END_OF_TIME if time.ends else max(time.watermark, watermark_of(seen.policy, time.now))


def _alone(stamped: Iterator[Timed]) -> Iterator[Timed]:
    return ((timestamp, item) for timestamp, (_, item) in stamped)


def _since(first: int, stamped: Iterator[Timed]) -> Iterator[Timed]:
    return ((timestamp, item) for timestamp, item in stamped if timestamp is not None and timestamp >= first)


class _Seen:
    """The event time of a partition so far.

    Attributes:
        wants_greatest: the policy receives one timestamp, the greatest, after all items.
        greatest: the greatest timestamp; `NO_WATERMARK` before the first item.
    """

    def __init__(self, policy: WatermarkPolicy, now: float) -> None:
        self.policy = policy
        self.now = now
        self.wants_greatest = bool(getattr(policy, "greatest_only", False))
        self.greatest = NO_WATERMARK
        self.items = 0
        self._has_every_event = False

    def greatest_only(self, pairs: Iterator[tuple[None, Any]], timestamp_of: Callable[[Any], Any]) -> Iterator[Timed]:
        # Local variables, and below a test of the type without a call: the loop runs for each item.
        greatest, number = self.greatest, self.items
        for _, item in pairs:
            timestamp = timestamp_of(item)
            if type(timestamp) is not int:
                timestamp = _milliseconds(timestamp)
            if timestamp > greatest:
                greatest = timestamp
            number += 1
            yield timestamp, item
        self.greatest, self.items = greatest, number

    def take(self, greatest: int, items: int) -> None:
        """Record a block of items, by their greatest timestamp and their number."""
        self.greatest, self.items = max(self.greatest, greatest), self.items + items

    def each(self, pairs: Iterator[tuple[None, Any]], timestamp_of: Callable[[Any], Any]) -> Iterator[Timed]:
        report, now, self._has_every_event = self.policy.report, self.now, True
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
        """Report the greatest timestamp to the policy, unless it got all of them."""
        if self.items and not self._has_every_event:
            self.policy.report(self.greatest, self.now)


def _milliseconds(timestamp: Any) -> int:
    """Return an integer of another class, such as `numpy.int64`, as an int."""
    if isinstance(timestamp, bool) or not hasattr(type(timestamp), "__index__"):
        raise TypeError(f"the timestamp of an item is milliseconds as an int, not {shown(timestamp)}")
    return int(timestamp)
