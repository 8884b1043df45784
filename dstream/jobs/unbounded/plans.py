"""`OpenPlan` and `epoch_plan`: the plan of a job with its sources opened, and the plan of each epoch.

A vertex without an explicit parallelism retains the initial one of the job: each processor restores its own state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from dstream.errors import UnsupportedError
from dstream.jobs.unbounded.log import TimedPartition
from dstream.jobs.unbounded.ranges import BoundedAsStream, Range, joined, no_items, with_times
from dstream.pipeline.plan import PipelinePlan
from dstream.plan import Node, fold, rewrite, topological
from dstream.plan.operations.ends import Several, Write
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.operations.streams import Cache, CacheIdentity, Concat, Fork, Read, Unary
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs, ProcessorGraph
from dstream.plan.processor_graph import VertexGraph, with_parallelism
from dstream.plan.steps import Step
from dstream.plan.timestamps import StreamRead, timed
from dstream.plan.walk import opened
from dstream.processors.graph_operator import GraphOperator, in_steps
from dstream.spi import MapWriter, Streamable, StreamSource, Writer
from dstream.spi.epochs import (
    OfFixedShards,
    PartitionReceipt,
    PartitionTime,
    StateOperator,
    StepReceipt,
    StepState,
    StepTime,
)
from dstream.spi.runtime import EngineOfEpoch
from dstream.spi.sink import Collections

if TYPE_CHECKING:
    from dstream.operators.state.index import ShardIndex

__all__ = [
    "InThisEpoch",
    "OpenPlan",
    "Processors",
    "check_sinks",
    "epoch_plan",
    "open_plan",
    "processors_of",
    "steps_of_plan",
    "with_kept_parallelism",
]


def check_sinks(plan: PipelinePlan, call: str) -> None:
    """Refuse sinks whose content would depend on where epochs end.

    Args:
        plan: of a job without an end.
        call: the method, for the message.

    Raises:
        UnsupportedError: a sink needs all items of a job; the message names the alternative.
    """
    for write in plan.writes:
        instead = getattr(write.sink, "instead_of_epochs", None)
        if instead is not None and write.is_unbounded:
            raise UnsupportedError(
                f"{call}(): the stage {write.stage!r} writes into {write.sink.label}, which means all items of a job "
                f"at once, and this job never has them all: {instead}"
            )


Processors = Mapping[tuple[str, str], int]
"""The number of processors of a vertex, by the name of its stage, which is empty in a graph, and its own name."""


def steps_of_plan(plan: PipelinePlan, memory: Mapping[str, ShardIndex]) -> dict[str, StateOperator]:
    """Return the operators of a plan whose state outlives an epoch, by the names under which it is stored.

    Args:
        plan: the plan of the job, or a plan with which it may continue.
        memory: the locations of the state of its steps.
    """
    processors = processors_of(memory)
    core = in_steps(
        rewrite(plan.several([None] * len(plan.writes))),
        # Nothing runs here, so the number of new processors is arbitrary.
        lambda node: with_parallelism(with_kept_parallelism(node, processors), 1),
    )
    return {each.stage: each.operator for each in topological(core) if isinstance(each, OverEpochs)}


def processors_of(memory: Mapping[str, ShardIndex]) -> Processors:
    """Return how many processors the vertices of a job have.

    Args:
        memory: where the state of the steps of the job is.
    """
    found: dict[tuple[str, str], int] = {}
    for stage, index in memory.items():
        for name in index.signature if index.kind == "graph" else ():
            if isinstance(name, str):
                found[stage, name] = found["", name] = len(index.shards)
    return found


def with_kept_parallelism(node: ProcessorGraph, processors: Processors) -> VertexGraph:
    """Return the graph of an operation, in which each vertex without a number has the number of the job, if known.

    Args:
        node: the operation.
        processors: the numbers of the job; a new vertex has the maximum of the others.
    """
    most = max(processors.values(), default=-1)
    vertices = (
        dataclasses.replace(each, parallelism=processors.get((node.stage, each.name), most))
        if each.parallelism == -1
        else each
        for each in node.graph.vertices
    )
    return VertexGraph(tuple(vertices), node.graph.edges)


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """A plan that is made once, and filled in for each epoch.

    Attributes:
        several: the plan in core operations.
        sources: the sources that are read epoch by epoch, by the name of the stage.
        reads: the names of these stages, by the `id` of the operation.
        stamps: the stages that assign timestamps, by their names.
        steps: the operators whose state outlives an epoch, by the names of their stages.
        sources_of: the sources upstream of each of `stamps`.
        stamps_of: the `stamps` upstream of each of `steps`.
        inputs_of: the sources upstream of each input of a step, for steps that are called when an input ends; and the
            upstream steps of other graphs whose processors run for ever.
        read_steps: the calls that read them, by the names of their stages.
        refreshed: the seconds after which sides of joins are read again, by the `id` of their cache.
    """

    several: Several
    sources: Mapping[str, StreamSource[Any]]
    reads: Mapping[int, str]
    stamps: Mapping[str, AssignTimestamps]
    steps: Mapping[str, StateOperator]
    sources_of: Mapping[str, frozenset[str]]
    stamps_of: Mapping[str, frozenset[str]]
    read_steps: Mapping[str, Step] = field(default_factory=dict)
    refreshed: Mapping[int, float] = field(default_factory=dict)
    inputs_of: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)

    @property
    def is_fed_by_processors(self) -> bool:
        """Return whether steps are notified when processors of another graph end, which might have run for ever."""
        return any(origins - self.sources.keys() for inputs in self.inputs_of.values() for origins in inputs)


def _as_it_is(node: ProcessorGraph) -> VertexGraph:
    """Return the graph of an operation of which nothing is to run."""
    return with_parallelism(node.graph, 1)


def open_plan(
    plan: PipelinePlan,
    context: Collections,
    ready: Callable[[ProcessorGraph], VertexGraph] = _as_it_is,
    guarantee: str = "exactly-once",
) -> OpenPlan:
    """Open the sources and services of a plan, and find the edges of its operations.

    Args:
        plan: the plan of an unbounded job.
        context: opens sources.
        ready: returns the graphs of processors as they will run.
        guarantee: the guarantee that processors receive.

    Raises:
        SourceError: a source does not exist.
        UnsupportedError: a bounded source is both a cached side of a join and a stream.
    """
    several = plan.several([None] * len(plan.writes))
    is_open = opened(several, context)
    names = _names_of_sources(plan, topological(several), topological(is_open))
    core = _with_kept_sides(timed(in_steps(rewrite(is_open), ready, guarantee)))
    passing, held = _passing(core)
    reads = {id(each): names[id(each.source)] for each in passing}
    for each in passing:
        if id(each) in held:
            raise UnsupportedError(f"{each.label()} is read as a stream and as the kept side of a join: read it twice")
    order = topological(core)
    stamps = {each.stage: each for each in order if isinstance(each, AssignTimestamps)}
    steps = {each.stage: each for each in order if isinstance(each, OverEpochs)}
    return OpenPlan(
        core,
        {reads[id(each)]: _streamed(each) for each in passing},
        reads,
        stamps,
        {name: each.operator for name, each in steps.items()},
        {name: frozenset(reads[id(read)] for read in _above(each, Read)) for name, each in stamps.items()},
        {name: frozenset(stamp.stage for stamp in _above(each, AssignTimestamps)) for name, each in steps.items()},
        {reads[id(each)]: each.step for each in passing},
        _refreshed(order),
        {
            name: tuple(_origins_of(upstream, each.step, reads) for upstream in each.upstreams)
            for name, each in steps.items()
            if isinstance(each.operator, OfFixedShards)
        },
    )


def _origins_of(root: Node, step: Step, reads: Mapping[int, str]) -> frozenset[str]:
    """Return the names of an operation's origins; parts of a graph notify each other of an end."""
    above = list(_reached([root], []))
    endless = (each for each in above if isinstance(each, OverEpochs) and each.step is not step)
    return frozenset(
        (
            *(reads[id(each)] for each in above if isinstance(each, Read)),
            *(each.stage for each in endless if isinstance(each.operator, GraphOperator) and each.operator.is_endless),
        )
    )


def _refreshed(order: Sequence[Node]) -> dict[int, float]:
    """Return the lifetimes of sides of joins that are read again, with all caches above them."""
    found: dict[int, float] = {}
    for join in order:
        if isinstance(join, HashJoin) and join.refresh_every is not None:
            kept = (each for each in topological(join.right) if isinstance(each, Cache))
            found.update((id(each), join.refresh_every) for each in kept)
    return found


def _with_kept_sides(several: Several) -> Several:
    """Return the plan in which the right side of a hash join is read in the first epoch, and cached for others.

    A driver that resumes the job reads it again. A side that several joins read is computed once in each run (`Fork`),
    and so is not cached separately.
    """
    return cast(Several, fold(several, _with_kept_side))


def _with_kept_side(node: Node, inputs: Sequence[Node]) -> Node:
    made = node.reading(inputs)
    if isinstance(made, HashJoin) and made.refresh_every is not None:
        # A side with separate caches for rows that others cache too: they do not read them again.
        made = replace(made, right=fold(made.right, _with_own_cache))
    if isinstance(made, HashJoin) and (not isinstance(made.right, Cache) or isinstance(made.right, Fork)):
        made = replace(made, right=Cache(made.right, CacheIdentity(), step=made.right.step))
    return made


def _with_own_cache(node: Node, inputs: Sequence[Node]) -> Node:
    made = node.reading(inputs)  # The read is not copied: others may not read it as a stream.
    return replace(made, identity=CacheIdentity()) if isinstance(made, Cache) else made


def _names_of_sources(plan: PipelinePlan, before: Sequence[Node], after: Sequence[Node]) -> dict[int, str]:
    """Return the names of the stages that read, by the `id` of their open source."""
    known = {name for name, _ in plan.last_nodes}
    others = [each for each in plan.stages if not each.upstreams and each.name not in known]
    names: dict[int, str] = {}
    for node, is_open in zip(before, after, strict=True):
        if isinstance(node, Read) and isinstance(is_open, Read):
            found = plan.stage_of(node) or next((each.name for each in others if each.where == node.step.where), None)
            # A source that is read twice is one: its offsets are recorded under the name that it got first.
            names.setdefault(id(is_open.source), found or f"source-{len(names) + 1}")
            # Each stage is one source, so two of them on one line are distinguished by their order.
            others = [each for each in others if each.name != found]
    return names


def _passing(core: Node) -> tuple[list[Read], set[int]]:
    """Return the reads that are streamed, epoch after epoch, and the `id` of the reads that a join caches."""
    passing, held = [core], list[Node]()
    found: dict[int, Read] = {}
    for node in _reached(passing, held):
        if isinstance(node, Read):
            found[id(node)] = node
    return list(found.values()), {id(each) for root in held for each in topological(root)}


def _reached(stack: list[Node], held: list[Node], until: type[Any] | tuple[()] = ()) -> Iterator[Node]:
    """Yield each operation once, without the right sides of hash joins, which are appended to `held`.

    Args:
        stack: the first operations.
        held: collects the sides.
        until: the kind of operations whose inputs are left out.
    """
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if not isinstance(node, until):
            # The buffer of a join is no stream, so the time of its sources does not count.
            held.extend(node.broadcast_inputs())
            stack.extend(reversed(node.streamed_inputs()))


def _streamed(read: Read) -> StreamSource[Any]:
    source = read.source
    if isinstance(source, StreamRead):
        return source.stream
    return source.as_stream() if isinstance(source, Streamable) else BoundedAsStream(source)


def _above(root: Node, kind: type[Any]) -> Iterable[Any]:
    """Return the upstream operations of a kind, up to the first of them on each path."""
    return (each for each in _reached(list(root.inputs()), [], kind) if isinstance(each, kind))


@dataclass(frozen=True, slots=True)
class InThisEpoch:
    """The operations that one epoch puts into a plan.

    Attributes:
        ranges: the ranges of each source, by the name of its stage.
        times: the times of the partitions that are read.
        step_times: the time of each step over epochs, by its name.
        states: their states.
        writers: one for each end of the plan.
        take_time: receives the new times of partitions.
        take_step: receives the receipts of steps.
        kept: the valid reading of a side of a join, by the `id` of its cache; others are permanent.
        is_small: the epoch is expected to be small enough for one task.
        engine: the engine that runs it; None: the only engine of the context.
    """

    ranges: Mapping[str, Sequence[Range]]
    writers: Sequence[Writer | MapWriter | None]
    times: Mapping[TimedPartition, PartitionTime] = field(default_factory=dict)
    step_times: Mapping[str, StepTime] = field(default_factory=dict)
    states: Mapping[str, StepState] = field(default_factory=dict)
    take_time: Callable[[PartitionReceipt], object] | None = None
    take_step: Callable[[StepReceipt], object] | None = None
    kept: Mapping[int, CacheIdentity] = field(default_factory=dict)
    is_small: bool = False
    engine: EngineOfEpoch | None = None


def epoch_plan(plan: OpenPlan, epoch: InThisEpoch) -> Several:
    """Return the plan of one epoch.

    A stage that assigns timestamps is copied for each range, with all upstream operations, so that each range has its
    own time.

    Raises:
        UnsupportedError: something other than steps item by item is before such a stage.
    """
    return _Filling(plan, epoch).result()


class _Copy(NamedTuple):
    """A reader of one range, or the empty input where nothing is read."""

    source: str
    range: Range | None
    node: Node


class _Filling:
    """The replacements of a plan's operations for one epoch."""

    def __init__(self, plan: OpenPlan, epoch: InThisEpoch) -> None:
        self._plan = plan
        self._epoch = epoch
        self._parted = {
            id(node)
            for stamp in plan.stamps.values()
            for node in topological(stamp)
            if not isinstance(node, AssignTimestamps)
        }
        self._copies: dict[int, list[_Copy]] = {}
        self._became: dict[int, Node] = {}

    def result(self) -> Several:
        for node in topological(self._plan.several):
            if id(node) in self._parted:
                self._copies[id(node)] = self._copied(node)
            else:
                self._became[id(node)] = self._filled(node)
        several = cast(Several, self._became[id(self._plan.several)])
        ends = zip(several.ends, self._epoch.writers, strict=True)
        written = tuple(_written(end, writer) for end, writer in ends)
        is_small, engine = self._epoch.is_small, self._epoch.engine
        return dataclasses.replace(several, ends=written, is_epoch=True, is_small=is_small, engine=engine)

    def _filled(self, node: Node) -> Node:
        if isinstance(node, AssignTimestamps):
            return self._stamped(node)
        if isinstance(node, Read):
            stage = self._plan.reads.get(id(node))
            return node if stage is None else _reading(node, joined(self._epoch.ranges.get(stage, ())))
        made = node.with_inputs([self._one(upstream) for upstream in node.inputs()])
        if isinstance(made, OverEpochs):
            return self._timed(made)
        if isinstance(made, Fork):  # A result that is computed once in a run is of no use to the next epoch.
            return dataclasses.replace(made, identity=CacheIdentity())
        kept = self._epoch.kept.get(id(node))
        return made if kept is None or not isinstance(made, Cache) else dataclasses.replace(made, identity=kept)

    def _one(self, node: Node) -> Node:
        """Return the reader of all ranges of a source, or the replacement of an operation."""
        if id(node) not in self._copies:
            return self._became[id(node)]
        return _side_by_side([copy.node for copy in self._copies[id(node)]], node)

    def _copied(self, node: Node) -> list[_Copy]:
        """Return an operation once for each range that it sees."""
        if isinstance(node, Read):
            stage = self._plan.reads[id(node)]
            ranges = self._epoch.ranges.get(stage, ())
            # Without a range one copy remains, so that downstream operations have an input.
            return [_Copy(stage, each, _reading(node, each.items)) for each in ranges] or [
                _Copy(stage, None, _reading(node, no_items))
            ]
        if isinstance(node, Concat):
            return [copy for part in node.parts for copy in self._copies[id(part)]]
        if not isinstance(node, Unary):
            raise UnsupportedError(f"{node.label()} stands before a stage that gives timestamps; give them before it")
        return [copy._replace(node=_again(node, copy.node)) for copy in self._copies[id(node.upstream)]]

    def _stamped(self, node: AssignTimestamps) -> Node:
        """Return the stage once for each range. Where nothing is read, no time is reported."""
        parts = []
        for copy in self._copies[id(node.upstream)]:
            if copy.range is not None:
                upstream = _with_times(copy.node) if node.are_beside else copy.node
                time = self._epoch.times[TimedPartition(node.stage, copy.source, copy.range.partition)]
                # The policy is sent with the time, after the last range, so the policy of the plan is left out.
                parts.append(
                    dataclasses.replace(node, upstream=upstream, time=time, take=self._epoch.take_time, policy=None)
                )
        return _side_by_side(parts, node) if parts else Read(no_items, step=node.step)

    def _timed(self, node: OverEpochs) -> Node:
        name = node.stage
        step_times, states = self._epoch.step_times, self._epoch.states
        return dataclasses.replace(node, time=step_times[name], state=states[name], take=self._epoch.take_step)


def _reading(node: Read, items: Any) -> Node:
    return dataclasses.replace(node, source=items)


def _with_times(node: Node) -> Node:
    """Return the reader of one range of a source that has the time of each item, with the times."""
    if isinstance(node, Read):
        return _reading(node, with_times(node.source))
    assert isinstance(node, Unary), "native timestamps directly follow a read"
    # What else reads a fork reads it without the times.
    upstream = _with_times(node.upstream)
    return upstream if isinstance(node, Fork) else node.with_inputs([upstream])


def _again(node: Unary, upstream: Node) -> Node:
    made = node.with_inputs([upstream])
    return replace(made, identity=CacheIdentity()) if isinstance(made, Fork) else made


def _side_by_side(parts: Sequence[Node], node: Node) -> Node:
    return parts[0] if len(parts) == 1 else Concat(tuple(parts), step=node.step)


@singledispatch
def _written(end: Any, writer: Writer | MapWriter | None) -> Any:
    raise UnsupportedError(f"{end!r} is no end of a pipeline")


@_written.register
def _(end: Write, writer: Writer | MapWriter | None) -> Write:
    return dataclasses.replace(end, writer=writer)
