"""`epoch_plan`: the plan of one epoch, which an engine runs like any other: ranges, time and state put into it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, NamedTuple, cast

from dstream.errors import UnsupportedError
from dstream.jobs.unbounded.log_record import Place
from dstream.jobs.unbounded.open_plan import OpenPlan
from dstream.jobs.unbounded.ranges import Range, joined, no_items, with_times
from dstream.plan.core import Cache, CacheIdentity, Concat, Core, Read, Unary, Write
from dstream.plan.core_of_epochs import OverEpochs, Stamped
from dstream.plan.core_of_forks import Fork, Several
from dstream.plan.walk import topological
from dstream.spi import MapWriter, Writer
from dstream.spi.epochs import PartitionReceipt, PartitionTime, StepReceipt, StepState, Tick

__all__ = ["InThisEpoch", "epoch_plan"]


@dataclass(frozen=True, slots=True)
class InThisEpoch:
    """What is put into a plan for one epoch.

    Attributes:
        ranges: of each source, by the name of its stage.
        times: of the partitions that are read.
        ticks: what time it is for each step over epochs, by its name.
        states: their states.
        writers: one for each end of the plan.
        take_time: takes what became of the time of partitions.
        take_step: takes the receipts of steps.
        kept: which reading of a side of a join counts, by the `id` of what keeps it; others count for good.
        is_small: the epoch is expected to be so small that one task takes it.
    """

    ranges: Mapping[str, Sequence[Range]]
    writers: Sequence[Writer | MapWriter | None]
    times: Mapping[Place, PartitionTime] = field(default_factory=dict)
    ticks: Mapping[str, Tick] = field(default_factory=dict)
    states: Mapping[str, StepState] = field(default_factory=dict)
    take_time: Callable[[PartitionReceipt], object] | None = None
    take_step: Callable[[StepReceipt], object] | None = None
    kept: Mapping[int, CacheIdentity] = field(default_factory=dict)
    is_small: bool = False


def epoch_plan(plan: OpenPlan, epoch: InThisEpoch) -> Several:
    """Return the plan of one epoch.

    A stage that gives timestamps stands there once for each range, with all that is before it, so that each range has
    a time of its own.

    Raises:
        UnsupportedError: something other than steps item by item stands before such a stage.
    """
    return _Filling(plan, epoch).result()


class _Copy(NamedTuple):
    """What reads one range, or what stands where nothing is read."""

    source: str
    range: Range | None
    node: Core


class _Filling:
    """What each operation of the plan becomes in one epoch."""

    def __init__(self, plan: OpenPlan, epoch: InThisEpoch) -> None:
        self._plan = plan
        self._epoch = epoch
        self._parted = {
            id(node) for stamp in plan.stamps.values() for node in topological(stamp) if not isinstance(node, Stamped)
        }
        self._copies: dict[int, list[_Copy]] = {}
        self._became: dict[int, Core] = {}

    def result(self) -> Several:
        for node in topological(self._plan.several):
            if id(node) in self._parted:
                self._copies[id(node)] = self._copied(node)
            else:
                self._became[id(node)] = self._filled(node)
        several = cast(Several, self._became[id(self._plan.several)])
        ends = zip(several.ends, self._epoch.writers, strict=True)
        written = tuple(_written(end, writer) for end, writer in ends)
        return dataclasses.replace(several, ends=written, is_epoch=True, is_small=self._epoch.is_small)

    def _filled(self, node: Core) -> Core:
        if isinstance(node, Stamped):
            return self._stamped(node)
        if isinstance(node, Read):
            stage = self._plan.reads.get(id(node))
            return node if stage is None else _reading(node, joined(self._epoch.ranges.get(stage, ())))
        made = node.with_inputs([self._one(upstream) for upstream in node.inputs()])
        if isinstance(made, OverEpochs):
            return self._ticking(made)
        if isinstance(made, Fork):  # What is computed once in a run is of no use to the next epoch.
            return dataclasses.replace(made, identity=CacheIdentity())
        kept = self._epoch.kept.get(id(node))
        return made if kept is None or not isinstance(made, Cache) else dataclasses.replace(made, identity=kept)

    def _one(self, node: Core) -> Core:
        """Return what reads all ranges of a source, or what an operation became."""
        if id(node) not in self._copies:
            return self._became[id(node)]
        return _side_by_side([copy.node for copy in self._copies[id(node)]], node)

    def _copied(self, node: Core) -> list[_Copy]:
        """Return an operation once for each range that it sees."""
        if isinstance(node, Read):
            stage = self._plan.reads[id(node)]
            ranges = self._epoch.ranges.get(stage, ())
            return [_Copy(stage, each, _reading(node, each.items)) for each in ranges] or [
                _Copy(stage, None, _reading(node, no_items))
            ]
        if isinstance(node, Concat):
            return [copy for part in node.parts for copy in self._copies[id(part)]]
        if not isinstance(node, Unary):
            raise UnsupportedError(f"{node.label()} stands before a stage that gives timestamps; give them before it")
        return [copy._replace(node=_again(node, copy.node)) for copy in self._copies[id(node.upstream)]]

    def _stamped(self, node: Stamped) -> Core:
        """Return the stage once for each range. Where nothing is read, no time is told."""
        parts = []
        for copy in self._copies[id(node.upstream)]:
            if copy.range is not None:
                upstream = _with_times(copy.node) if node.are_beside else copy.node
                time = self._epoch.times[Place(node.stage, copy.source, copy.range.partition)]
                parts.append(
                    dataclasses.replace(node, upstream=upstream, time=time, take=self._epoch.take_time, policy=None)
                )
        return _side_by_side(parts, node) if parts else Read(no_items, step=node.step)

    def _ticking(self, node: OverEpochs) -> Core:
        name = node.stage
        ticks, states = self._epoch.ticks, self._epoch.states
        return dataclasses.replace(node, tick=ticks[name], state=states[name], take=self._epoch.take_step)


def _reading(node: Read, items: Any) -> Core:
    return dataclasses.replace(node, source=items)


def _with_times(node: Core) -> Core:
    """Return what reads one range of a source that knows the time of each item, with the times."""
    if isinstance(node, Read):
        return _reading(node, with_times(node.source))
    assert isinstance(node, Unary), "nothing but what is read alone stands before native timestamps"
    # What else reads a fork reads it without the times.
    upstream = _with_times(node.upstream)
    return upstream if isinstance(node, Fork) else node.with_inputs([upstream])


def _again(node: Unary, upstream: Core) -> Core:
    made = node.with_inputs([upstream])
    return dataclasses.replace(made, identity=CacheIdentity()) if isinstance(made, Fork) else made


def _side_by_side(parts: Sequence[Core], node: Core) -> Core:
    return parts[0] if len(parts) == 1 else Concat(tuple(parts), False, step=node.step)


@singledispatch
def _written(end: Any, writer: Writer | MapWriter | None) -> Any:
    raise UnsupportedError(f"{end!r} is no end of a pipeline")


@_written.register
def _(end: Write, writer: Writer | MapWriter | None) -> Write:
    return dataclasses.replace(end, writer=writer)
