"""Steps whose state outlives an epoch, compiled: one shuffle to the shards of the state.

The state is divided into shards by key. If one task has all items, or there are known to be few, that task has all
shards, and nothing is shuffled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import chain

from dstream.base.records import record
from dstream.engine.compiler.evaluation import groups_read, timestamps_read
from dstream.engine.compiler.inputs import in_the_caller, nothing, numbers
from dstream.engine.compiler.processors import called_in_graph
from dstream.engine.compiler.walk import ClusterFacts, Compiling, Wide, across, called_as, called_by, compile_node
from dstream.engine.physical.graph import Done, Move
from dstream.engine.physical.vertices import (
    Evaluation,
    Input,
    Items,
    OutputFormat,
    Rows,
    SourceSplits,
    Splits,
    Taken,
    Vertex,
    in_one_task,
    one_after_another,
    piped,
)
from dstream.engine.tasks.shards import ReadShards, RouteToShards
from dstream.operators.state.stateful_steps import applying, applying_all, reducing
from dstream.operators.state.watermarks import receipt_step, stamping
from dstream.plan.operations.unbounded import AssignTimestamps, OverEpochs
from dstream.plan.steps import KeyInColumns, Op
from dstream.spi.epochs import ReducesInColumns
from dstream.spi.source import input_size

__all__ = ["FEW"]


FEW = 1_000
"""The number of items that one task reads in less time than a shuffle takes."""

_SHARDS = 64
"""The number of shards by default, for plans that are drawn before a job supplies a state."""


@compile_node.register
def _(node: AssignTimestamps, inputs: Sequence[Items], compiling: Compiling) -> Items:
    receipts = in_the_caller(receipt_step(node.step, node.take), compiling)
    does = "the watermark of a partition travels behind its items"
    in_columns, decided = _timestamps_read(node, compiling)
    gives = None if in_columns is None else OutputFormat()
    return piped(inputs[0], node, stamping(node, receipts, in_columns), does, decided, gives)


def _timestamps_read(node: AssignTimestamps, compiling: Compiling) -> tuple[KeyInColumns | None, Sequence[Evaluation]]:
    """Return the function of the timestamps as it was read, if columns take it, and the decision on it."""
    facts = compiling.facts
    policy = None if node.time is None else node.time.policy
    reads_every_event = policy is not None and not getattr(policy, "greatest_only", False)
    if node.timestamp is None or not facts.reads_functions or reads_every_event:
        return None, called_as(node, () if node.timestamp is None else ("fn",), facts)
    if node.are_beside or node.drop_before is not None:
        return None, called_as(node, ("fn",), facts)
    return timestamps_read(node.timestamp, compiling.namespaces, is_verified=facts.columns == "verify")


@compile_node.register
def _(node: OverEpochs, inputs: Sequence[Items], compiling: Compiling) -> Items:
    receipts = in_the_caller(receipt_step(node.step, node.take), compiling)
    does = "each task first reduces what it has of each shard of the state"
    graph = getattr(node.operator, "graph", None)
    read_as, reduced = _operator_read(node, compiling) if graph is None else (node, [()] * len(inputs))
    applied = () if graph is None else called_in_graph(graph, compiling.facts)
    parts = (
        piped(items, node, reducing(read_as, number), does, reduced[number]) for number, items in enumerate(inputs)
    )
    items = one_after_another(tuple(chain.from_iterable(parts)))
    # Time passes in each shard of a step without inputs, too, so each needs a task.
    if not inputs:
        count = _SHARDS if node.state is None else node.state.shards
        items = piped(numbers(count, node.step), None, nothing)
    if _may_be_read_together(items) and (compiling.facts.is_sequential or _are_few(items)):
        items = in_one_task(items)
    wide = WhereStateIs(node, receipts, compiling.facts, applied)
    return across(node, items, compiling, lambda: wide, applying_all(node, receipts), applied)


def _operator_read(node: OverEpochs, compiling: Compiling) -> tuple[OverEpochs, Sequence[Sequence[Evaluation]]]:
    """Return a step with the functions of its operator read, as far as columns support them, and the decisions.

    The decisions are those of the functions for each input.
    """
    facts, operator = compiling.facts, node.operator
    if not isinstance(operator, ReducesInColumns) or not facts.reads_functions:
        return node, [called_by(node, facts)] * len(node.upstreams)
    is_verified = facts.columns == "verify"
    reductions = operator.reductions()
    found = [groups_read(*each, compiling.namespaces, is_verified=is_verified) for each in reductions]
    read_as = operator.with_columns(tuple(known for known, _ in found))
    return dataclasses.replace(node, operator=read_as), [decided for _, decided in found]


def _may_be_read_together(items: Items) -> bool:
    return all(isinstance(each, Splits) for each in items)


def _are_few(items: Items) -> bool:
    """Return whether all sources are known to have few items in total."""
    left = FEW
    for source in _sources(items):
        size = input_size(source.node.source)
        # A source that does not know its size may be long.
        if not size.is_exact or size.items is None or size.items > left:
            return False
        left -= int(size.items)
    return True


def _sources(items: Sequence[Input | SourceSplits]) -> Iterator[SourceSplits]:
    pending = list(items)
    while pending:
        each = pending.pop()
        if isinstance(each, SourceSplits):
            yield each
        elif isinstance(each, Splits):
            pending += each.parts


@record(slots=False, eq=False)
class WhereStateIs(Wide):
    """The inputs of a shard meet in the process that has the shard."""

    node: OverEpochs
    receipts: Op
    facts: ClusterFacts
    decided: Sequence[Evaluation]

    def begin(self, inputs: Items, partitions: int) -> Move:
        node, step = self.node, self.node.step
        shards = _SHARDS if node.state is None else node.state.shards
        targets = min(self.facts.targets(partitions), shards)
        routed = Taken(Vertex(inputs, RouteToShards(targets, shards, step), step))
        reader = ReadShards(targets, partitions, step)
        why = "items of a key meet where their state is"
        met = Rows((routed,), targets, reader, is_ordered=False, why=why, notes=(_BEHIND, _COUNTED))
        return Done(piped((met,), node, applying(node, self.receipts), _APPLIES, self.decided))


_BEHIND = "watermarks travel behind the items, to every task"
_COUNTED = "what was sent and what has arrived is counted; if they differ, the epoch runs again"
_APPLIES = "the state takes what came, then time passes"
