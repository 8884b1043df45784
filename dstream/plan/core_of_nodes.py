"""The core operation of each node: one handler for each node that becomes one operation by itself.

`rewrite` makes those that depend on what stands before and behind them. A node of an extension registers its handler
where it is defined.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Sequence

from dstream.errors import UnsupportedError
from dstream.plan import (
    core,
    core_of_pairs,
    core_of_stages,
    ends,
    nodes,
    nodes_by_key,
    nodes_of_forks,
    nodes_of_pairs,
    nodes_of_stages,
)
from dstream.plan.core import CacheIdentity, Core
from dstream.plan.core_of_forks import Fork, Several
from dstream.plan.limited_forks import limited
from dstream.plan.steps import Op, Step

__all__ = ["LARGEST_TOP", "core_of"]

LARGEST_TOP = 100_000
"""The first so many items in order are found without sorting the others."""


@functools.singledispatch
def core_of(node: nodes.Node, inputs: Sequence[Core], step: Step) -> Core:
    """Return the operation of `node`, which reads from `inputs` and names itself with `step`."""
    raise UnsupportedError(f"{node!r} is nothing that an engine runs")


@core_of.register
def _(node: nodes.Table, inputs: Sequence[Core], step: Step) -> Core:
    return core.Table(node.table, node.made, step=step)


@core_of.register
def _(node: nodes.Unordered, inputs: Sequence[Core], step: Step) -> Core:
    return core.Unordered(inputs[0], step=step)


@core_of.register
def _(node: nodes.Parallel, inputs: Sequence[Core], step: Step) -> Core:
    return core.Parallel(inputs[0], node.partitions, step=step)


@core_of.register
def _(node: nodes.Configure, inputs: Sequence[Core], step: Step) -> Core:
    return core.Configure(inputs[0], node.settings, step=step)


@core_of.register
def _(node: nodes.Cache, inputs: Sequence[Core], step: Step) -> Core:
    return core.Cache(inputs[0], node.identity, step=step)


@core_of.register
def _(node: nodes.TakeWhile, inputs: Sequence[Core], step: Step) -> Core:
    return core.TakeWhile(inputs[0], node.predicate, step=step)


@core_of.register
def _(node: nodes.DropWhile, inputs: Sequence[Core], step: Step) -> Core:
    return core.DropWhile(inputs[0], node.predicate, step=step)


@core_of.register
def _(node: nodes.Gather, inputs: Sequence[Core], step: Step) -> Core:
    return core.Gather(inputs[0], node.gatherer, step=step)


@core_of.register
def _(node: nodes.Sorted, inputs: Sequence[Core], step: Step) -> Core:
    return core.Sorted(inputs[0], node.key, node.reverse, step=step)


@core_of.register
def _(node: nodes.Shuffle, inputs: Sequence[Core], step: Step) -> Core:
    ranked = core.Gather(inputs[0], node.ranking, step=step)
    rank, item = operator.itemgetter(0), operator.itemgetter(1)
    if node.count is not None and node.count <= LARGEST_TOP:
        shuffled: Core = core.Top(ranked, node.count, rank, False, True, step=step)
    else:
        shuffled = core.Sorted(ranked, rank, False, step=step)
        shuffled = shuffled if node.count is None else core.Limit(shuffled, node.count, step=step)
    unseen = dataclasses.replace(step, label="")
    return core.Chain(shuffled, (Op("map", item, None, unseen),), step=unseen)


@core_of.register
def _(node: nodes_by_key.Distinct, inputs: Sequence[Core], step: Step) -> Core:
    return core.Distinct(inputs[0], node.key, step=step)


@core_of.register
def _(node: nodes_by_key.PartitionBy, inputs: Sequence[Core], step: Step) -> Core:
    return core.PartitionBy(inputs[0], node.count, node.key, step=step)


@core_of.register
def _(node: nodes_by_key.Join, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    return core_of_pairs.Join(left, right, node.left_key, node.right_key, node.how, step=step)


@core_of.register
def _(node: nodes_of_stages.HashJoin, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    keys, limit, every = (node.left_key, node.right_key), node.broadcast_limit, node.refresh_every
    return core_of_pairs.HashJoin(left, right, *keys, node.projecting, node.is_inner, limit, every, step=step)


@core_of.register
def _(node: nodes_by_key.CoGroup, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    return core_of_pairs.CoGroup(left, right, node.left_key, node.right_key, step=step)


@core_of.register
def _(node: nodes_of_pairs.Zip, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    return core_of_pairs.Zip(left, right, node.how, node.fill, step=step)


@core_of.register
def _(node: nodes_of_pairs.SemiJoin, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    return core_of_pairs.SemiJoin(left, right, node.left_key, node.right_key, node.is_anti, step=step)


@core_of.register
def _(node: nodes_of_pairs.AsOf, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    places = node.left_on, node.right_on, node.direction, node.tolerance
    return core_of_pairs.AsOf(left, right, node.left_key, node.right_key, *places, step=step)


@core_of.register
def _(node: ends.ToList, inputs: Sequence[Core], step: Step) -> Core:
    return core.ToList(inputs[0], step=step)


@core_of.register
def _(node: ends.Loop, inputs: Sequence[Core], step: Step) -> Core:
    return core.Loop(inputs[0], step=step)


@core_of.register
def _(node: ends.Partitions, inputs: Sequence[Core], step: Step) -> Core:
    return core.Partitions(inputs[0], step=step)


@core_of.register
def _(node: ends.Collect, inputs: Sequence[Core], step: Step) -> Core:
    return core.Collect(inputs[0], node.collector, step=step)


@core_of.register
def _(node: ends.ForEachPartition, inputs: Sequence[Core], step: Step) -> Core:
    return core.ForEachPartition(inputs[0], node.action, step=step)


@core_of.register
def _(node: ends.Write, inputs: Sequence[Core], step: Step) -> Core:
    return core.Write(inputs[0], node.writer, node.collector, node.functions, step=step)


@core_of.register
def _(node: ends.Columns, inputs: Sequence[Core], step: Step) -> Core:
    return core.Columns(inputs[0], node.is_frame, step=step)


@core_of.register
def _(node: nodes_of_forks.Shared, inputs: Sequence[Core], step: Step) -> Core:
    # An identity of its own: what is kept goes with the run, and the next one of the same nodes finds nothing.
    return Fork(inputs[0], CacheIdentity(), step=dataclasses.replace(step, label="fork"))


@core_of.register
def _(node: ends.Several, inputs: Sequence[Core], step: Step) -> Core:
    writes = tuple(each for each in inputs if isinstance(each, core.Write))
    assert len(writes) == len(inputs), "what ends together are writes"
    return limited(Several(writes, step=step))


@core_of.register
def _(node: nodes_of_stages.Aggregate, inputs: Sequence[Core], step: Step) -> Core:
    return core_of_stages.Aggregate(tuple(inputs), node.operation, node.reductions, node.is_keyed, node.to, step=step)


@core_of.register
def _(node: nodes_of_stages.Stateful, inputs: Sequence[Core], step: Step) -> Core:
    return core_of_stages.Stateful(inputs[0], node.create, node.fn, node.action, node.key, step=step)


@core_of.register
def _(node: nodes_of_stages.Spread, inputs: Sequence[Core], step: Step) -> Core:
    return core_of_stages.Spread(inputs[0], node.count, step=step)
