"""Routing to the shards of a step whose state outlives an epoch, with a count of all rows.

After its partials, each task sends one control row to every target: the number of rows that it sent to it, its counts,
and its watermarks. A target that misses a row, or the control row of a task, raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.base.showing import shown
from dstream.engine.tasks.rows import ITEMS, LAST, Row, check_arrived
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import Router
from dstream.errors import SerializationError
from dstream.failures import naming
from dstream.failures.attribution import failed_on, in_group
from dstream.operators.rows.batches import loads, loads_items
from dstream.operators.rows.operations import OfPartitions, Watermarks
from dstream.operators.state.items import culprit
from dstream.operators.state.stateful_steps import Arrival, Gathered
from dstream.plan.steps import Step
from dstream.spi.epochs import target_of

__all__ = ["ReadShards", "RouteToShards"]


class _Control(NamedTuple):
    """The last row of a task to one target.

    Attributes:
        rows: how many it sent there before.
        items: how many it saw, if that is counted at this target.
        late: how many of them were late.
        watermarks: that it has.
    """

    rows: int
    items: int
    late: int
    watermarks: OfPartitions


@record(slots=False)
class RouteToShards:
    """Send the partials of each shard to the target that has it; at the end, a control row to every target."""

    targets: int
    shards: int
    step: Step

    tells_watermarks: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True

    def __call__(self, items: Iterator[Arrival], task: StageTask) -> Iterator[Row]:
        sent, counted = Counter[int](), _Counted()
        try:
            for row in Router(self.targets, task).rows(counted.placed(items, self.shards, self.targets)):
                sent[row.target] += 1
                yield row
        # Batches are pickled as a whole, so the item to blame is looked for only now.
        except SerializationError as error:
            with naming(self.step):
                _look_at_each(counted.partials)
            raise error  # The error of a step before this one.
        watermarks = task.watermarks.all()
        for target in range(self.targets):
            # The counts of a task are added once, at one target.
            is_here = target == task.partition % self.targets
            control = _Control(sent[target], counted.items * is_here, counted.late * is_here, watermarks)
            yield Row(target, task.partition, LAST, ITEMS, 0, dumps(control))


@dataclass
class _Counted:
    """The counts of arrivals as they are routed."""

    items: int = 0
    late: int = 0
    partials: list[object] = field(default_factory=list)

    def placed(self, arrivals: Iterator[Arrival], shards: int, targets: int) -> Iterator[tuple[int, object]]:
        """Yield (target, (shard, number of the input, partial))."""
        for number, partials in arrivals:
            self.items += partials.items
            self.late += partials.late
            for shard, partial in partials.of_shards.items():
                self.partials.append(partial)
                yield target_of(shard, shards, targets), (shard, number, partial)


def _look_at_each(partials: Iterable[object]) -> None:
    """Raise the error of the one item, or group, that cannot be pickled, in words about it alone.

    Raises:
        SerializationError: there is one.
    """
    for partial in partials:
        found = culprit(partial, dumps)
        if found is None:
            continue
        what = "an item" if found.is_item else "a group"
        failed = SerializationError(
            f"{what} cannot travel between processes: {type(found.value).__name__} {shown(found.value)} cannot be "
            f"pickled: {found.error}"
        )
        if found.is_item:
            failed_on(failed, found.value)
        else:
            in_group(failed, found.key)
        raise failed from found.error


@record(slots=False)
class ReadShards:
    """A reader of the input of the shards of one target, as one `Gathered`.

    Attributes:
        targets: how many there are.
        sources: how many tasks have sent something.
    """

    targets: int
    sources: int
    step: Step

    def __call__(self, rows: Iterator[Row]) -> Iterator[Gathered]:
        gathered, arrived = Gathered(targets=self.targets), _Arrived()
        for row in rows:
            gathered.target = row.target
            if row.sequence == LAST:
                arrived.take_control(row.source, _Control(*loads(row.payload)), gathered)
                continue
            arrived.rows[row.source] += 1
            for shard, number, partial in loads_items(row.payload):
                gathered.add(shard, number, partial)
        check_arrived(arrived.reported, self.sources, arrived.sent, arrived.rows, self.step)
        gathered.watermarks = arrived.watermarks.all()
        yield gathered


@dataclass
class _Arrived:
    """The arrivals at a target, by the task that sent them.

    Attributes:
        rows: how many rows with partials.
        sent: how many there should be.
        reported: how many tasks have reported that.
    """

    rows: Counter[int] = field(default_factory=Counter)
    sent: Counter[int] = field(default_factory=Counter)
    reported: int = 0
    watermarks: Watermarks = field(default_factory=Watermarks)

    def take_control(self, source: int, control: _Control, gathered: Gathered) -> None:
        self.reported += 1
        self.sent[source] += control.rows
        self.watermarks.take(control.watermarks)
        gathered.items += control.items
        gathered.late += control.late
