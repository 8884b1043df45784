"""Epochs of unbounded jobs: watermarks, times of steps and receipts; `StateOperator`: state across epochs.

A `StateOperator` does not depend on jobs, files or engines. Every engine runs an epoch in these steps:

1. Where the items are, each task calls `partial(...)` on the items of one input: one partial for each shard that they
   belong to.
2. Where a shard is, `apply(...)` takes all partials of the epoch at once, then advances the watermark, and emits the
   results. The delta that it returns contains the values that changed, not the items.
3. The state is `dump`ed from time to time; a later process restores it with `load` and one `patch` for each delta
   since.

So no function of the user's has to be deterministic: what it made of an item is stored, and not computed again.

All of it is plain values: those for tasks are sent pickled; those that tasks return are receipts, which count only if
the epoch is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dstream.base.records import record
from dstream.base.showing import shown
from dstream.spi.collector import Collector
from dstream.spi.columns import InColumns
from dstream.values.time import END_OF_TIME, NO_WATERMARK, Timed

__all__ = [
    "ClosesProcessors",
    "CountsEdges",
    "EdgeCounts",
    "EpochTime",
    "MovesToDisk",
    "OfFixedShards",
    "PartitionReceipt",
    "PartitionTime",
    "ReducesInColumns",
    "ShardChange",
    "ShardOutput",
    "ShardState",
    "StateOperator",
    "StepReceipt",
    "StepState",
    "StepTime",
    "TaskPartials",
    "WatermarkPolicy",
    "policy_as_planned",
    "target_of",
    "watermark_of",
]


@record
class EpochTime:
    """Clock and watermarks of one epoch.

    Attributes:
        epoch: its number, from 1.
        now: the one reading of the clock of this epoch, in seconds since 1970.
        old: the watermark of the step at the start of the epoch, in milliseconds; older items are late.
        new: the watermark at its end, not below `old`; equal to `old` until all items are read.
        is_resumed: this is the first epoch of a driver, after a pause of unknown length.
        clock_deadline: the minimum of the deadlines of all shards before the epoch: all shards use this value.
        shard: the number of the shard.
        ended: the numbers of the inputs that end with this epoch; passed to operators of fixed shards.
    """

    epoch: int
    now: float
    old: int
    new: int
    is_resumed: bool = False
    clock_deadline: float | None = None
    shard: int = 0
    ended: frozenset[int] = frozenset()


class TaskPartials(NamedTuple):
    """The input of a step from one task.

    Attributes:
        of_shards: by the number of the shard, in the order of items inside each; plain data that can be pickled.
        items: the number of items that the task read.
        late: how many of them were late, including those that are sent to the output of late items.
    """

    of_shards: Mapping[int, Any]
    items: int
    late: int


class ShardOutput(NamedTuple):
    """The output of one shard in an epoch.

    Attributes:
        outputs: pairs `(timestamp, item)`, or `(timestamp, Late(item))` for items of the output of late items; consumed
            once, before `delta` is called.
        late: how many more items were late in this shard, not counted by `TaskPartials`.
    """

    outputs: Iterable[Timed]
    late: int = 0


class ShardState(Protocol):
    """The state of the keys of one shard, in the memory of one process."""

    def apply(self, partials: Sequence[tuple[int, Any]], moment: EpochTime) -> ShardOutput:
        """Process the input of this shard, advance the watermark from `old` to `new`, and return the output.

        Args:
            partials: (number of the input, partial), in the order of (input, partition of the source, offset). Empty if
                only time passes.
            moment: `new` is known now.
        """
        ...

    def delta(self) -> Any | None:
        """Return the changes since the state was made or this was last called, for `patch`; None: nothing."""
        ...

    def dump(self) -> Any:
        """Return the whole state as a value that can be pickled; it shares nothing mutable with the state."""
        ...

    def load(self, dumped: Any) -> None:
        """Become the state that was dumped; called on an empty one."""
        ...

    def patch(self, delta: Any) -> None:
        """Become the state after an epoch, of which this is the delta."""
        ...

    def deadline(self) -> int | None:
        """Return the least watermark at which this shard acts without an item; None: no timer is pending."""
        ...

    def clock_deadline(self) -> float | None:
        """Return the clock time at which this shard acts without an item, as for early results."""
        ...

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Yield the keys with their states, for views of a running job."""
        ...

    def __len__(self) -> int:
        """Return how many keys have a state."""
        ...


@runtime_checkable
class MovesToDisk(Protocol):
    """A `ShardState` that can spill to disk. Others remain in memory, regardless of their size."""

    def to_disk(self) -> bool:
        """Move the state to a file that is deleted with this process, and return whether that was done now."""
        ...


@runtime_checkable
class OfFixedShards(Protocol):
    """An operator that fixes the number of shards of its state, as one whose shards are processors.

    Attributes:
        shards: how many.
        ticks: each of them has something to do in the first epoch, with or without items.
    """

    @property
    def shards(self) -> int: ...

    @property
    def ticks(self) -> bool: ...


EdgeCounts = Mapping[str, tuple[Sequence[int], Sequence[int]]]
"""The numbers of items on the inbound and on the outbound edges of each vertex, by its name."""


@runtime_checkable
class CountsEdges(Protocol):
    """A `ShardState` of processors, between which items pass edges."""

    def edge_counts(self) -> EdgeCounts:
        """Return the counts of the last `apply`, once its outputs were consumed."""
        ...


@runtime_checkable
class ClosesProcessors(Protocol):
    """A `ShardState` of processors, which have to be told why they are no longer used."""

    def close_processors(self, error: BaseException | None) -> None:
        """Close the processors in this process, if any.

        Args:
            error: why the job fails; None if it does not, or is continued elsewhere.
        """
        ...


@runtime_checkable
class ReducesInColumns(Protocol):
    """A `StateOperator` whose `partial` may take items in columns: it groups them by key, and collects each group."""

    def reductions(self) -> Sequence[tuple[Callable[[Any], Any] | None, Collector[Any, Any, Any]]]:
        """Return of each input the function of keys, or None, and the collector of the items of a key."""
        ...

    def with_columns(self, known: tuple[InColumns | None, ...]) -> StateOperator:
        """Return a copy that has, for each input, how columns group it; None: they do not."""
        ...


class StateOperator(Protocol):
    """A step over epochs, as a value that travels pickled.

    Attributes:
        kind: the kind of operator, such as `"window"`; state is not passed to an operator of another kind.
        signature: plain data on which the state depends, such as the size of a window: state with another signature is
            refused.
        inputs: how many inputs it has.
    """

    @property
    def kind(self) -> str: ...

    @property
    def signature(self) -> tuple[Any, ...]: ...

    @property
    def inputs(self) -> int: ...

    def partial(self, number: int, items: Iterator[Timed], moment: EpochTime, shards: int) -> TaskPartials:
        """Reduce items of one input where they are, in order.

        The shard of a key is computed by `dstream.keys.hashing.shard_numbers`; without keys, it is 0. A failure finds
        its item by the name of a local variable: a loop over items that calls the user's functions names it `item`.

        Args:
            number: of the input, from 0.
            items: of one task; timestamps may be None for operators that need none.
            moment: only `epoch`, `now` and `old` are set.
            shards: the number of shards.

        Raises:
            Exception: what a function of the user's raised.
        """
        ...

    def new(self) -> ShardState:
        """Return the empty state of a shard."""
        ...


@runtime_checkable
class WatermarkPolicy(Protocol):
    """The progress of event time in one partition of a source. It is picklable, and stored with each epoch.

    A policy with an attribute `greatest_only` that is True receives only the greatest timestamp of an epoch. A policy
    whose class has `settings`, the names of attributes, takes their values from the pipeline with which the job is
    resumed.
    """

    def report(self, timestamp: int, now: float) -> None:
        """Take the timestamp of an event, in milliseconds.

        Args:
            timestamp: of the event.
            now: the clock time of this epoch, in seconds.
        """
        ...

    def watermark(self, now: float) -> int:
        """Return the timestamp, in milliseconds, before which no event is expected any more; it may decrease.

        Without an event it is -2**63, unless it follows from the clock alone.
        """
        ...


def policy_as_planned(kept: WatermarkPolicy, planned: WatermarkPolicy) -> WatermarkPolicy:
    """Return the policy with which a partition is continued when the pipeline may have changed.

    Args:
        kept: the policy of the last record, with its state.
        planned: the new policy of the pipeline. If the classes differ, the state is dropped.
    """
    if _named(type(kept)) != _named(type(planned)):
        return planned
    for name in getattr(type(planned), "settings", ()):
        setattr(kept, name, getattr(planned, name))
    return kept


def _named(kind: type) -> tuple[str, str]:
    """Return a class's module and name, the same where each pickle brings its own class."""
    return kind.__module__, kind.__qualname__


def watermark_of(policy: WatermarkPolicy, now: float) -> int:
    """Return the watermark of a policy, which may be one of the user's.

    Raises:
        TypeError: it is no int.
        Exception: what the policy raised.
    """
    watermark: Any = policy.watermark(now)
    if isinstance(watermark, int):
        return watermark
    raise TypeError(f"policy.watermark(now) must give milliseconds as int, not {shown(watermark)}")


@record
class PartitionTime:
    """The time of one partition, for the task that adds timestamps to a range of it.

    Attributes:
        stamp: the name of the stage that assigns timestamps.
        partition: the name of the stage of the source, and the name of the partition.
        policy: its state after the last epoch.
        watermark: the watermark of the partition at the start of the epoch.
        now: the clock time of this epoch, in seconds.
        ends: the partition has ended with this range: its watermark becomes `END_OF_TIME`.
        counts: whether it holds the watermark back; False if it is idle. Its watermark is sent only if it counts or had
            an event: items that are all filtered out before they get timestamps do not advance the time.
    """

    stamp: str
    partition: tuple[str, str]
    policy: WatermarkPolicy
    watermark: int
    now: float
    ends: bool = False
    counts: bool = True


@record
class PartitionReceipt:
    """The time of a partition after an epoch.

    Attributes:
        watermark: of the partition at the end of the epoch; not below the watermark at its start.
        greatest: the greatest timestamp of the range; `NO_WATERMARK` without an event.
        items: the number of events.
    """

    stamp: str
    partition: tuple[str, str]
    policy: WatermarkPolicy
    watermark: int
    greatest: int
    items: int


@record
class StepTime:
    """The current time of a step over epochs.

    Attributes:
        epoch: the number of the epoch.
        now: its clock time, in seconds.
        old: the watermark of the step at the start of the epoch.
        unread_watermark: the least watermark of the partitions that count and are not read in this epoch;
            `END_OF_TIME` if there is none.
        stamps: the stages that assign the timestamps of the items of this step.
        is_resumed: this is the first epoch of a driver.
        all_idle: the watermark if no partition holds it back: the maximum of the watermarks of partitions that have not
            ended; `END_OF_TIME` only if all sources have ended.
        clock_deadline: the earliest clock time that a shard of the step waits for; None if no shard waits.
        minimum: a lower bound of the watermark, regardless of the lag of an input.
        ended: the numbers of the inputs that end with this epoch.
        has_new_end: one of the inputs ends in this epoch; passed to each shard.
    """

    epoch: int
    now: float
    old: int
    unread_watermark: int
    stamps: frozenset[str]
    is_resumed: bool = False
    all_idle: int = END_OF_TIME
    clock_deadline: float | None = None
    minimum: int = NO_WATERMARK
    ended: frozenset[int] = frozenset()
    has_new_end: bool = False


@record
class ShardChange:
    """The location of the state of a shard after one epoch: a part of a file.

    Attributes:
        shard: its number.
        is_snapshot: it is the whole state; otherwise what changed.
        file: the name of the file below the folder of the job's state.
        offset: where the part begins.
        length: how many bytes it has; 0 if nothing changed but the deadlines.
        keys: how many keys have a state in this shard now.
        merges: how many of the last parts of the shard it replaces, whose changes it holds besides its own.
        deadline: that of the shard from now on, in event time.
        clock_deadline: that of the shard from now on, by the clock.
    """

    shard: int
    is_snapshot: bool
    file: str
    offset: int
    length: int
    keys: int
    merges: int = 0
    deadline: int | None = None
    clock_deadline: float | None = None


@record
class StepReceipt:
    """The report of one task on a step over epochs.

    Attributes:
        stage: the name of the step.
        items: the number of input items; items of tasks before the shuffle are counted once, before it.
        late: the number of late items.
        outputs: the number of output items.
        watermark: at the end of the epoch; the same in all tasks.
        deadline: the minimum of the deadlines of its shards, or None.
        clock_deadline: the minimum of the deadlines of its shards, or None.
        changes: the locations of the written state.
        edges: what passed the edges of its processors, for each shard that has processors.
    """

    stage: str
    items: int
    late: int
    outputs: int
    watermark: int
    deadline: int | None
    clock_deadline: float | None
    changes: tuple[ShardChange, ...]
    edges: tuple[EdgeCounts, ...] = ()


def target_of(shard: int, shards: int, targets: int) -> int:
    """Return which of several tasks has a shard.

    A task has consecutive shards, so that the items of all tasks together are in the order of the shards, for any
    number of tasks: downstream steps see the same order on any engine.
    """
    return shard * targets // shards


class StepState(Protocol):
    """The state of a step at the start of one epoch, as tasks see it; it travels pickled.

    On re-run: a task may run twice, also at once; each attempt stages files of its own, and one attempt counts.
    """

    @property
    def shards(self) -> int:
        """The number of shards."""
        ...

    def touched(self, target: int, targets: int, new: int, now: float) -> list[int]:
        """Return the shards of a task that have to be opened although no item arrived: time passes a deadline.

        `target_of` decides which shards a task has.
        """
        ...

    def open(self, shard: int, operator: StateOperator) -> ShardState:
        """Return the state of a shard as the last epoch left it, for this task alone."""
        ...

    def keep(self, shard: int, state: ShardState) -> None:
        """Accept an opened shard, after it was applied: its delta, or a snapshot, will be staged."""
        ...

    def relieve(self) -> bool:
        """Move shards to disk that can be, since this process is over its memory bound; return whether any was."""
        ...

    def staged(self) -> tuple[ShardChange, ...]:
        """Write the shards passed to `keep` to new files, flushed, and return their locations."""
        ...

    def deadlines(self) -> tuple[int | None, float | None]:
        """Return the least deadline of the shards passed to `keep`, in event time and by the clock."""
        ...
