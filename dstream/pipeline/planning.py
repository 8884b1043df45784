"""Planning of a job from the stages of a pipeline: refusals, forks, parallelism, names."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dstream.errors import IllegalStateError, UnsupportedError
from dstream.pipeline.arguments import under_the_name
from dstream.pipeline.plan import (
    PipelinePlan,
    PlannedStage,
    PlannedWrite,
    check_that_all_or_none_takes_epochs,
)
from dstream.pipeline.stage_records import AS_MANY, StageRecord, names_of, names_of_late_sinks, relinked
from dstream.pipeline.stages import known_as, placed, with_processors
from dstream.plan import Node, PartitionBy, Read, Recover, Step, is_bounded, rewrite, topological
from dstream.plan.operations.calls import FlatMap
from dstream.plan.operations.keyed import Aggregate
from dstream.plan.operations.streams import Fork, Spread
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs, ProcessorGraph
from dstream.plan.timestamps import StreamRead, in_time, late_ones_of
from dstream.spi import ProcessorSink, Sink
from dstream.spi.processor_ends import Nowhere
from dstream.stream.runtime import Delivery

__all__ = ["planned"]


def planned(records: Sequence[StageRecord]) -> PipelinePlan:
    """Return the plan of these stages, in the order in which they were made.

    Raises:
        IllegalStateError: there is no source, a stage has no sink, or a sink is used twice.
        UnsupportedError: the input of a sink, or of several stages, never ends; or some written streams end and others
            run in epochs.
    """
    names = names_of(records)
    _check_ends(records, names)
    nodes = _nodes(records, names)
    late_names = names_of_late_sinks(records, names)
    stages = tuple(stage for each in records for stage in _stages(each, names, late_names))
    writes = tuple(write for each in records for write in _writes(each, names, late_names, nodes))
    _check_that_all_end(records, writes, names)
    plan = PipelinePlan(stages, writes, tuple(_last_nodes(records, nodes, names)))
    _check_that_forks_end(plan, records, nodes, names)
    check_that_all_or_none_takes_epochs(plan)
    return plan


def _stages(record: StageRecord, names: Mapping[int, str], late_names: Mapping[int, str]) -> Iterator[PlannedStage]:
    """Yield a stage, and the one that writes its late items."""
    name = names[id(record)]
    yield PlannedStage(name, record.kind, tuple(names[id(above)] for above in record.upstreams), record.where)
    if record.late_to is not None:
        yield PlannedStage(late_names[id(record)], "late_to", (name,), record.where)


def _writes(
    record: StageRecord, names: Mapping[int, str], late_names: Mapping[int, str], nodes: _Nodes
) -> Iterator[PlannedWrite]:
    if record.sink is not None:
        is_named = record.given_name is not None
        # Its processors write by themselves, and leave no item for the job to write.
        sink = Nowhere(record.sink.label) if isinstance(record.sink, ProcessorSink) else record.sink
        yield PlannedWrite(names[id(record)], nodes.own[id(record)], sink, record.where, is_named)
    if record.late_to is not None:
        yield PlannedWrite(late_names[id(record)], nodes.late[id(record)], record.late_to, record.where)


def _last_nodes(records: Sequence[StageRecord], nodes: _Nodes, names: Mapping[int, str]) -> Iterator[tuple[str, Node]]:
    """Yield the last node of each stage whose items are counted: others emit one item for each that they take.

    Nothing is between a step and the one that handles its failures, nor between results by key and a map that takes
    them as they are.
    """
    is_part = {id(each.looks_after) for each in records if each.looks_after is not None}
    is_written = {id(each.upstreams[0]) for each in records if each.sink is not None}
    for each in records:
        node = nodes.own[id(each)]
        is_result = isinstance(node, Aggregate) and id(each) in is_written
        if each.sink is None and not _gives_as_many(each, node) and id(each) not in is_part and not is_result:
            yield names[id(each)], node


def _gives_as_many(record: StageRecord, node: Node) -> bool:
    """Return whether a stage emits one item for each that it takes, so that they need not be counted."""
    # Items that are late, or before the first timestamp that is wanted, are dropped.
    drops = isinstance(node, OverEpochs) or (isinstance(node, AssignTimestamps) and node.drop_before is not None)
    return record.kind in AS_MANY and not drops


def _check_ends(records: Sequence[StageRecord], names: Mapping[int, str]) -> None:
    if not records:
        raise IllegalStateError(
            "the pipeline is empty: it begins with pipeline.read_from(source) and ends with stage.write_to(sink)"
        )
    read = {id(above) for each in records for above in each.upstreams}
    for each in records:
        if each.sink is None and id(each) not in read:
            raise IllegalStateError(f"{placed(names[id(each)], each)} ends nowhere: attach write_to(sink) to it")
    writers: dict[int, StageRecord] = {}
    for each, sink in _sinks(records):
        first = writers.setdefault(id(sink), each)
        if first is not each:
            raise IllegalStateError(
                f"{placed(names[id(each)], each)} writes to the same sink object as {placed(names[id(first)], first)}: "
                f"make a second {sink.label}, or let one write_to(sink, *stages) take all of it"
            )


def _sinks(records: Iterable[StageRecord]) -> Iterator[tuple[StageRecord, Sink[Any, Any]]]:
    """Yield each stage with each sink that it writes to, on every path."""
    for each in records:
        for sink in (each.sink,) if each.sink is not None else (each.late_to, _sink_of_letters(each)):
            if sink is not None:
                yield each, sink


def _sink_of_letters(record: StageRecord) -> Sink[Any, Any] | None:
    """Return the sink of a stage's dead letters, or of a source's bad records; None if it has none."""
    node = record.node
    return node.delivery.reducer if isinstance(node, Recover | Read) and isinstance(node.delivery, Delivery) else None


def _check_that_all_end(
    records: Sequence[StageRecord], writes: Iterable[PlannedWrite], names: Mapping[int, str]
) -> None:
    endless = [
        each for each in records if not each.upstreams and isinstance(each.node, Read) and not each.node.source.bounded
    ]
    if endless and not all(is_bounded(rewrite(write.node)) for write in writes):
        first = endless[0]
        raise UnsupportedError(
            f"{placed(names[id(first)], first)} reads {first.node.label()}, which never ends: limit() ends it, and "
            "sources that are read range by range, such as stream_source_from(...), need no end"
        )


def _check_that_forks_end(
    plan: PipelinePlan, records: Sequence[StageRecord], nodes: _Nodes, names: Mapping[int, str]
) -> None:
    """Refuse an endless fork, since a fork is computed once and stored; if only limits read it, it is bounded."""
    if all(each.node.source.bounded for each in records if isinstance(each.node, Read)):
        return
    several = rewrite(plan.several([None] * len(plan.writes)))
    if all(is_bounded(each) for each in topological(several) if isinstance(each, Fork)):
        return
    times = _times_read(records)
    for each in records:
        if times[id(each)] > 1 and not is_bounded(rewrite(nodes.own[id(each)])):
            raise UnsupportedError(
                f"{placed(names[id(each)], each)} never ends, and more than one stage reads it: what they share is "
                "computed once and kept, so limit() must end it before the fork"
            )


class _Nodes(NamedTuple):
    """The last nodes of stages in the plan, by the `id` of the stage.

    Attributes:
        own: the node of its items.
        late: the node of its late items, if a sink takes them.
    """

    own: dict[int, Node]
    late: dict[int, Node]


def _nodes(records: Sequence[StageRecord], names: Mapping[int, str]) -> _Nodes:
    found = _Nodes({}, {})
    given: dict[int, Node] = {}
    times = _times_read(records)
    for each in records:
        node = _own_node(each, found.own, given, names)
        if each.sink is None or isinstance(each.sink, ProcessorSink):
            node = _called(node, names[id(each)], each.given_name)
        if each.late_to is not None:
            both = Fork(node)
            node, found.late[id(each)] = in_time(both), late_ones_of(both)
        found.own[id(each)] = node
        # A separate node, not `own`: the step that handles failures contains the step itself, without the fork.
        given[id(each)] = Fork(node) if times[id(each)] > 1 else node
    return found


def _called(node: Node, stage: str, given_name: str | None) -> Node:
    """Return a node with the name of its stage, if records of epochs contain it, or the user gave it."""
    if isinstance(node, AssignTimestamps | OverEpochs):
        node = dataclasses.replace(node, stage=stage)
    if isinstance(node, FlatMap) and isinstance(node.upstream, ProcessorGraph):
        node = dataclasses.replace(node, upstream=known_as(node.upstream, stage))
    return node if given_name is None else _named(node, given_name)


def _own_node(
    record: StageRecord, own: Mapping[int, Node], given: Mapping[int, Node], names: Mapping[int, str]
) -> Node:
    before = record.looks_after
    if before is not None:
        # The step with whose failures it deals is part of it; a stage that reads that one without it has a step apart.
        return relinked(record.node, {id(before.node): own[id(before)]})
    if record.parallelism != -1 and (spread := _in_partitions(record)) is not None:
        record = dataclasses.replace(record, node=spread, parallelism=-1)
    instead = {id(above.node): _spread(given[id(above)], record) for above in record.upstreams}
    node = relinked(record.node, instead)
    if record.sink is not None or not record.upstreams:
        return node
    return under_the_name(node, names[id(record.upstreams[0])])


def _named(node: Node, stage: str) -> Node:
    """Return a node whose last call bears the name of its stage."""
    if node.label():
        return dataclasses.replace(node, step=dataclasses.replace(node.step, stage=stage))
    return node.reading([_named(upstream, stage) for upstream in node.inputs()])


def _in_partitions(record: StageRecord) -> Node | None:
    """Return the node of a stage which sets its number of partitions itself; None: its items are spread before."""
    node, count = record.node, record.parallelism
    if record.sink is not None and not isinstance(record.sink, ProcessorSink):
        return None  # It shares the node of another stage.
    if isinstance(node, Read):
        # Each partition of an unbounded source is one part.
        return node if isinstance(node.source, StreamRead) else dataclasses.replace(node, parts=count)
    if isinstance(node, Spread | PartitionBy):
        step = node.step
        if not step.is_unnamed:  # Its call shows the count before what the user gave to it.
            step = dataclasses.replace(step, label=step.label.replace("(", f"({count}, ", 1))
        return dataclasses.replace(node, count=count, step=step)
    if isinstance(node, FlatMap) and isinstance(node.upstream, ProcessorGraph):
        return dataclasses.replace(node, upstream=with_processors(node.upstream, count))
    return None


def _spread(node: Node, record: StageRecord) -> Node:
    if record.parallelism == -1:
        return node
    return Spread(node, record.parallelism, step=Step(f".set_local_parallelism({record.parallelism})", record.where))


def _times_read(records: Sequence[StageRecord]) -> Counter[int]:
    """Return how often the items of each stage are read in a run, by the `id` of the stage.

    A stage that deals with the failures of another one contains it, and reads what that one reads.
    """
    times: Counter[int] = Counter()
    # From the end: a stage that nothing reads reads nothing itself.
    for each in reversed(records):
        if each.sink is not None or times[id(each)]:
            times.update(id(above) for above in each.step.upstreams)
    return times
