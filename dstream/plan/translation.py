"""Translation of each node to its core operation.

`rewrite` makes the operations that depend on the steps before and behind them. A node of an extension registers its
handler where it is defined.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections import defaultdict
from collections.abc import Mapping, Sequence

from dstream.errors import UnsupportedError
from dstream.plan import ends, keyed_nodes, nodes, stage_nodes
from dstream.plan import nodes as nodes_of_forks
from dstream.plan.operations import pairs, stages, streams
from dstream.plan.operations.stages import Fork, Several
from dstream.plan.operations.streams import CacheIdentity, Core, Limit
from dstream.plan.steps import Op, Step
from dstream.plan.walk import topological

__all__ = ["LARGEST_TOP", "core_of", "limited"]


_Wanted = dict[int, list[Limit | None]]
"""The limits by which each fork is read; None: all items are wanted."""


def limited(several: Several) -> Several:
    """Return the plan with a limit before each fork that is read by limits alone: the largest of these."""
    limits = {number: limit for number, found in _wanted(several).items() if (limit := _largest(found)) is not None}
    became: dict[int, Core] = {}
    for each in topological(several) if limits else ():
        became[id(each)] = _limited(each, became, limits)
    result = became.get(id(several), several)
    assert isinstance(result, Several), "a plan with several ends remains one"
    return result


def _wanted(several: Several) -> _Wanted:
    """Say how each fork is read; a fork of a fork that ends early wants no more than it gives."""
    wanted: _Wanted = defaultdict(list)
    for reader in reversed(topological(several)):
        limit = (
            reader if isinstance(reader, Limit) else _largest(wanted[id(reader)]) if isinstance(reader, Fork) else None
        )
        for upstream in reader.inputs():
            if isinstance(upstream, Fork):
                wanted[id(upstream)].append(limit)
    return wanted


def _largest(found: list[Limit | None]) -> Limit | None:
    """Return the limit that is enough for all readers, if all have one."""
    return max(found, key=lambda limit: math.inf if limit is None else limit.count)


def _limited(each: Core, became: Mapping[int, Core], limits: Mapping[int, Limit]) -> Core:
    inputs = [became[id(upstream)] for upstream in each.inputs()]
    limit = limits.get(id(each))
    if limit is not None:
        inputs = [dataclasses.replace(limit, upstream=inputs[0])]
    is_same = all(new is old for new, old in zip(inputs, each.inputs(), strict=True))
    return each if is_same else each.with_inputs(inputs)


LARGEST_TOP = 100_000
"""The first so many items in order are found without sorting the others."""


@functools.singledispatch
def core_of(node: nodes.Node, inputs: Sequence[Core], step: Step) -> Core:
    """Return the operation of `node`, which reads from `inputs` and names itself with `step`."""
    raise UnsupportedError(f"{node!r} is nothing that an engine runs")


@core_of.register
def _(node: nodes.Table, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Table(node.table, node.made, step=step)


@core_of.register
def _(node: nodes.Unordered, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Unordered(inputs[0], step=step)


@core_of.register
def _(node: nodes.Parallel, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Parallel(inputs[0], node.partitions, step=step)


@core_of.register
def _(node: nodes.Configure, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Configure(inputs[0], node.settings, step=step)


@core_of.register
def _(node: nodes.Cache, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Cache(inputs[0], node.identity, step=step)


@core_of.register
def _(node: nodes.TakeWhile, inputs: Sequence[Core], step: Step) -> Core:
    return streams.TakeWhile(inputs[0], node.predicate, step=step)


@core_of.register
def _(node: nodes.DropWhile, inputs: Sequence[Core], step: Step) -> Core:
    return streams.DropWhile(inputs[0], node.predicate, step=step)


@core_of.register
def _(node: nodes.Gather, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Gather(inputs[0], node.gatherer, step=step)


@core_of.register
def _(node: nodes.Sorted, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Sorted(inputs[0], node.key, node.reverse, step=step)


@core_of.register
def _(node: nodes.Shuffle, inputs: Sequence[Core], step: Step) -> Core:
    ranked = streams.Gather(inputs[0], node.ranking, step=step)
    rank, item = operator.itemgetter(0), operator.itemgetter(1)
    if node.count is not None and node.count <= LARGEST_TOP:
        shuffled: Core = streams.Top(ranked, node.count, rank, False, True, step=step)
    else:
        shuffled = streams.Sorted(ranked, rank, False, step=step)
        shuffled = shuffled if node.count is None else streams.Limit(shuffled, node.count, step=step)
    unseen = dataclasses.replace(step, label="")
    return streams.Chain(shuffled, (Op("map", item, None, unseen),), step=unseen)


@core_of.register
def _(node: keyed_nodes.Distinct, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Distinct(inputs[0], node.key, step=step)


@core_of.register
def _(node: keyed_nodes.PartitionBy, inputs: Sequence[Core], step: Step) -> Core:
    return streams.PartitionBy(inputs[0], node.count, node.key, step=step)


@core_of.register
def _(node: keyed_nodes.Join, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    return pairs.Join(left, right, node.left_key, node.right_key, node.how, step=step)


@core_of.register
def _(node: stage_nodes.HashJoin, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    keys, limit, every = (node.left_key, node.right_key), node.broadcast_limit, node.refresh_every
    return pairs.HashJoin(left, right, *keys, node.projecting, node.is_inner, limit, every, step=step)


@core_of.register
def _(node: keyed_nodes.CoGroup, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    return pairs.CoGroup(left, right, node.left_key, node.right_key, step=step)


@core_of.register
def _(node: stage_nodes.Zip, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    return pairs.Zip(left, right, node.how, node.fill, step=step)


@core_of.register
def _(node: stage_nodes.SemiJoin, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    return pairs.SemiJoin(left, right, node.left_key, node.right_key, node.is_anti, step=step)


@core_of.register
def _(node: stage_nodes.AsOf, inputs: Sequence[Core], step: Step) -> Core:
    left, right = inputs
    places = node.left_on, node.right_on, node.direction, node.tolerance
    return pairs.AsOf(left, right, node.left_key, node.right_key, *places, step=step)


@core_of.register
def _(node: ends.ToList, inputs: Sequence[Core], step: Step) -> Core:
    return streams.ToList(inputs[0], step=step)


@core_of.register
def _(node: ends.Loop, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Loop(inputs[0], step=step)


@core_of.register
def _(node: ends.Partitions, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Partitions(inputs[0], step=step)


@core_of.register
def _(node: ends.Collect, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Collect(inputs[0], node.collector, step=step)


@core_of.register
def _(node: ends.ForEachPartition, inputs: Sequence[Core], step: Step) -> Core:
    return streams.ForEachPartition(inputs[0], node.action, step=step)


@core_of.register
def _(node: ends.Write, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Write(inputs[0], node.writer, node.collector, node.functions, step=step)


@core_of.register
def _(node: ends.Columns, inputs: Sequence[Core], step: Step) -> Core:
    return streams.Columns(inputs[0], node.is_frame, step=step)


@core_of.register
def _(node: nodes_of_forks.Fork, inputs: Sequence[Core], step: Step) -> Core:
    # An identity of its own: what is kept goes with the run, and the next one of the same nodes finds nothing.
    return Fork(inputs[0], CacheIdentity(), step=dataclasses.replace(step, label="fork"))


@core_of.register
def _(node: ends.SeveralEnds, inputs: Sequence[Core], step: Step) -> Core:
    writes = tuple(each for each in inputs if isinstance(each, streams.Write))
    assert len(writes) == len(inputs), "what ends together are writes"
    return limited(Several(writes, step=step))


@core_of.register
def _(node: stage_nodes.Aggregate, inputs: Sequence[Core], step: Step) -> Core:
    return stages.Aggregate(tuple(inputs), node.operation, node.reductions, node.is_keyed, node.to, step=step)


@core_of.register
def _(node: stage_nodes.Stateful, inputs: Sequence[Core], step: Step) -> Core:
    return stages.Stateful(inputs[0], node.create, node.fn, node.action, node.key, step=step)


@core_of.register
def _(node: stage_nodes.Spread, inputs: Sequence[Core], step: Step) -> Core:
    return stages.Spread(inputs[0], node.count, step=step)
