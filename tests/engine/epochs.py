"""What tests of steps over epochs share: an operator, its state in a folder, and epochs that a test cuts by hand."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dstream as ds
from dstream.failures.attribution import failed_on
from dstream.keys import canonical, stable_hash
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.ends import ToList
from dstream.plan.operations.streams import Node, Read, Union
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs
from dstream.plan.steps import Op, Step
from dstream.spi.epochs import (
    EpochTime,
    PartitionReceipt,
    PartitionTime,
    ShardChange,
    ShardOutput,
    StepReceipt,
    StepTime,
    TaskPartials,
    target_of,
)
from dstream.values.time import END_OF_TIME, NO_WATERMARK

SHARDS = 8
Event = tuple[int, str, int]
"""A timestamp, a key, a number."""


def step(label: str, position: int = 1) -> Step:
    """Return a step of a chain of nine."""
    return Step(label, None, position, 9)


@dataclass(frozen=True)
class Listed:
    """A split, or a source of one split that does not say how many items it has."""

    items: tuple[Any, ...]

    ordered = True
    bounded = True
    in_caller = False

    def read(self) -> Iterator[Any]:
        return iter(self.items)

    def splits(self, parallelism: int) -> Sequence[Listed]:
        return [self]


@dataclass
class Lag:
    """A policy: the watermark is the greatest timestamp less a lag."""

    lag: int = 0
    greatest: int = NO_WATERMARK
    greatest_only: bool = True
    told: int = 0

    def report(self, timestamp: int, now: float) -> None:
        self.greatest = max(self.greatest, timestamp)
        self.told += 1

    def watermark(self, now: float) -> int:
        return NO_WATERMARK if self.greatest == NO_WATERMARK else self.greatest - self.lag


@dataclass
class Sums:
    """The sum of each key of a shard, given when the watermark passes the last item of the key."""

    of_keys: dict[str, tuple[int, int]] = field(default_factory=dict)

    def apply(self, partials: Sequence[tuple[int, Any]], moment: EpochTime) -> ShardOutput:
        for _, partial in partials:
            for key, (last, total) in partial.items():
                before = self.of_keys.get(key, (NO_WATERMARK, 0))
                self.of_keys[key] = max(last, before[0]), total + before[1]
        return ShardOutput(self._passed(moment.new))

    def _passed(self, watermark: int) -> Iterator[Any]:
        for key, (last, total) in sorted(self.of_keys.items()):
            if last < watermark:
                del self.of_keys[key]
                yield last, (key, total)

    def delta(self) -> Any:
        return dict(self.of_keys)

    def dump(self) -> Any:
        return dict(self.of_keys)

    def load(self, dumped: Any) -> None:
        self.of_keys = dict(dumped)

    def patch(self, delta: Any) -> None:
        self.load(delta)

    def deadline(self) -> int | None:
        return min((last + 1 for last, _ in self.of_keys.values()), default=None)

    def clock_deadline(self) -> float | None:
        return None

    def entries(self) -> Iterator[tuple[Any, Any]]:
        return iter(self.of_keys.items())

    def __len__(self) -> int:
        return len(self.of_keys)


@dataclass(frozen=True)
class SumByKey:
    """Adds the numbers of each key; items behind the watermark are late."""

    number_of: Callable[[Any], int] = field(default=lambda item: item[1])
    inputs: int = 1

    kind = "sums"
    signature = ()

    def partial(self, number: int, items: Iterator[Any], moment: EpochTime, shards: int) -> TaskPartials:
        of_shards: dict[int, dict[str, tuple[int, int]]] = {}
        seen = late = 0
        for timestamp, item in items:
            seen += 1
            if timestamp < moment.old:
                late += 1
                continue
            sums = of_shards.setdefault(stable_hash(canonical(item[0])) % shards, {})
            last, total = sums.get(item[0], (timestamp, 0))
            sums[item[0]] = max(last, timestamp), total + self._number(item)
        return TaskPartials(of_shards, seen, late)

    def _number(self, item: Any) -> int:
        try:
            return self.number_of(item)
        except Exception as error:
            failed_on(error, item)  # In operators of ours, the name of the variable does this.
            raise

    def new(self) -> Sums:
        return Sums()


@dataclass
class Folder:
    """A `StepState` whose shards are files, each written whole; what an epoch staged makes that of the next one."""

    path: str
    files: dict[int, ShardChange] = field(default_factory=dict)
    deadline_of: dict[int, int | None] = field(default_factory=dict)
    kept: dict[int, Sums] = field(default_factory=dict)

    shards = SHARDS

    def touched(self, target: int, targets: int, new: int, now: float) -> list[int]:
        due = (number for number, deadline in self.deadline_of.items() if deadline is not None and deadline <= new)
        return sorted(number for number in due if target_of(number, SHARDS, targets) == target)

    def open(self, shard: int, operator: Any) -> Sums:
        state: Sums = operator.new()
        if shard in self.files:
            state.load(pickle.loads((Path(self.path) / self.files[shard].file).read_bytes()))
        return state

    def keep(self, shard: int, state: Any) -> None:
        self.kept[shard] = state

    def relieve(self) -> bool:
        return False

    def staged(self) -> tuple[ShardChange, ...]:
        return tuple(self._written(number, state) for number, state in self.kept.items())

    def _written(self, number: int, state: Sums) -> ShardChange:
        name, dumped = uuid.uuid4().hex, pickle.dumps(state.dump())
        (Path(self.path) / name).write_bytes(dumped)
        return ShardChange(number, True, name, 0, len(dumped), len(state))

    def deadlines(self) -> tuple[int | None, float | None]:
        found = (state.deadline() for state in self.kept.values())
        return min((each for each in found if each is not None), default=None), None

    def after(self, receipts: Sequence[StepReceipt]) -> Folder:
        """Return the state that the next epoch starts with, if this one is committed."""
        changes = {change.shard: change for receipt in receipts for change in receipt.changes}
        known = Folder(self.path, {**self.files, **changes})
        return replace(known, deadline_of={number: known.open(number, SumByKey()).deadline() for number in known.files})


def timestamp_of(event: Event) -> int:
    """Return the first of its parts."""
    return event[0]


@dataclass
class Epoch:
    """One epoch of a plan: makes its nodes, and collects what its tasks say.

    Attributes:
        old: the watermark at its start.
        unread_watermark: that of the partitions that are not read.
    """

    number: int = 1
    now: float = 1.0
    old: int = NO_WATERMARK
    unread_watermark: int = END_OF_TIME
    partitions: list[PartitionReceipt] = field(default_factory=list)
    steps: list[StepReceipt] = field(default_factory=list)

    def stamped(
        self,
        events: Sequence[Event],
        partition: str = "0",
        *,
        policy: Lag | None = None,
        ends: bool = False,
        timestamp: Callable[[Any], Any] | None = timestamp_of,
        watermark: int = NO_WATERMARK,
        source: Any = None,
        counts: bool = True,
    ) -> Node:
        """Return the events of one partition, with their timestamps; what goes on is (key, number)."""
        time = PartitionTime("clock", ("events", partition), policy or Lag(), watermark, self.now, ends, counts)
        read: Node = Read(source or Listed(tuple(events)), step=step("read"))
        pairs = Chain(read, (Op("map", with_nothing, None, step(".pairs()", 2)),), step=step(".pairs()", 2))
        stamped = AssignTimestamps(
            pairs, timestamp, "clock", time, self.partitions.append, step=step(".add_timestamps(...)", 3)
        )
        return Chain(stamped, (Op("map", without_time, None, step(".map(...)", 4)),), step=step(".map(...)", 4))

    def over(self, *upstreams: Node, state: Folder, operator: Any = None, stage: str = "sums") -> OverEpochs:
        """Return a step over epochs."""
        time = StepTime(self.number, self.now, self.old, self.unread_watermark, frozenset({"clock"}))
        operator = operator or SumByKey(inputs=len(upstreams))
        return OverEpochs(upstreams, operator, stage, state, time, self.steps.append, step=step(f".{stage}(...)", 5))


def with_nothing(event: Any) -> tuple[None, Any]:
    """Return an event as a pair without a timestamp."""
    return None, event


def without_time(pair: tuple[int, Event]) -> tuple[int, tuple[str, int]]:
    """Return a pair without the timestamp in its item."""
    return pair[0], pair[1][1:]


def together(*parts: Node) -> Node:
    """Return the items of several partitions."""
    return Union(parts, step=step("merge"))


def run(core: Node, context: ds.Context) -> list[Any]:
    """Return the items that a plan gives, in no order."""
    return sorted(result(ToList(core, step=step("to_list()", 9)), context))


def result(end: Any, context: ds.Context) -> Any:
    """Return what a plan gives."""
    engine: Any = context.running_engine()
    return engine.submit(end).result()


def again(core: Node, fn: Callable[[Any], Any] | None = None) -> Node:
    """Return the items as a step on one item gives them."""
    return Chain(core, (Op("map", fn or itself, None, step(".again()", 6)),), step=step(".again()", 6))


def itself(item: Any) -> Any:
    """Return the item."""
    return item


def key_of(pair: Any) -> Any:
    """Return the key of an item with a timestamp, or of an event."""
    return pair[1][0]


def left_of_pair(entry: Any) -> Any:
    """Return the left item of an entry of two, which a join gives."""
    return entry[1][0]
