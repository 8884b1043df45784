"""From the nodes that users write to the core operations that engines know.

A run of element-wise steps becomes one `Chain`, neighbouring limits and skips become one,
`sorted().limit(n)` becomes `Top`, nested concats become flat, a step and what looks after its
failures become one, and each operation learns its `Step`.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import overload

from dstream.errors import SourceError, UnsupportedError
from dstream.plan import (
    core,
    core_of_pairs,
    core_of_stages,
    ends,
    nodes,
    nodes_by_key,
    nodes_of_forks,
    nodes_of_pairs,
    nodes_of_services,
    nodes_of_stages,
)
from dstream.plan.core import CacheIdentity, Core
from dstream.plan.core_of_forks import Fork, Several
from dstream.plan.core_of_services import Served, UsingBatches
from dstream.plan.ends import End
from dstream.plan.limited_forks import limited
from dstream.plan.nodes import Concat, Filter, FlatMap, Gather, Limit, Map, MapMulti, Node, Peek, Recover, Skip, Union
from dstream.plan.nodes_of_stages import Tally, Using
from dstream.plan.steps import Emitted, Guard, Op, Step
from dstream.plan.walk import inputs_first, steps_of, topological
from dstream.spi.in_parallel import Calling

__all__ = ["core_of", "rewrite"]

_LARGEST_TOP = 100_000
_ElementWise = Map | Filter | FlatMap | MapMulti | Peek | Using | Tally
_Needing = Using | nodes_of_services.UsingBatches


@overload
def rewrite(root: End) -> core.End: ...


@overload
def rewrite(root: ends.Several) -> Several: ...


@overload
def rewrite(root: Node) -> Core: ...


def rewrite(root: Node) -> Core:
    """Return the plan of `root` in core operations; a node that is shared stays shared.

    Raises:
        UnsupportedError: a node of the plan is no operation.
    """
    return _Rewriting(root).result()


class _Rewriting:
    """The state of one rewrite: what each node became, and the runs that are still growing."""

    def __init__(self, root: Node) -> None:
        calls = topological(root)
        self._steps = {id(node): step for node, step in zip(calls, steps_of(calls), strict=True)}
        self._order = inputs_first(root, _read_by) if any(isinstance(node, Recover) for node in calls) else calls
        self._readers = Counter(map(id, chain.from_iterable(map(_read_by, self._order))))
        self._became: dict[int, Core] = {}
        self._runs: dict[int, tuple[Core, list[Op]]] = {}
        self._parts: dict[int, list[Core]] = {}
        self._services: dict[int, int] = {}

    def result(self) -> Core:
        for each in self._order:
            node = _guarded(each)
            step = self._steps[id(node)]
            remedies = _guards(_recovers_of(each), self._steps, step)
            if isinstance(node, _ElementWise):
                self._runs[id(each)] = self._run(node, step, remedies)
            elif isinstance(node, Concat):
                self._parts[id(each)] = self._flat_parts(node)
            else:
                self._became[id(each)] = self._core(node, step, remedies)
        return self._core_of(self._order[-1])

    def _run(self, node: _ElementWise, step: Step, remedies: tuple[Guard, ...]) -> tuple[Core, list[Op]]:
        """Lengthen the run that ends in the upstream, unless someone else reads from it too."""
        upstream = node.upstream
        if id(upstream) in self._runs and self._readers[id(upstream)] == 1:
            start, ops = self._runs.pop(id(upstream))
        else:
            start, ops = self._core_of(upstream), []
        ops.append(self._op(node, step, remedies))
        return start, ops

    def _op(self, node: _ElementWise, step: Step, guards: tuple[Guard, ...]) -> Op:
        match node:
            case Map(upstream=_, fn=fn, kind=kind):
                return Op("map", fn, kind, step, guards)
            case Filter(upstream=_, predicate=predicate):
                return Op("filter", predicate, None, step, guards)
            case FlatMap(upstream=_, fn=fn, kind=kind):
                return Op("flat_map", fn, kind, step, guards)
            case MapMulti(upstream=_, fn=emitting, kind=kind):
                return Op("flat_map", Emitted(emitting), kind, step, guards)
            case Peek(upstream=_, action=action):
                return Op("peek", action, None, step, guards)
            case Using(action=what):
                return Op(what, self._served(node), None, step, guards)
            case Tally(upstream=_, take=take):
                return Op("count", take, None, step)

    def _served(self, node: _Needing) -> Served:
        """Return a function with its service, which has one number however many steps were given it."""
        return Served(node.service, node.fn, self._services.setdefault(id(node.service), len(self._services)))

    def _core_of(self, node: Node) -> Core:
        if id(node) in self._runs:
            start, ops = self._runs.pop(id(node))
            step = next((op.step for op in reversed(ops) if op.step.label), ops[-1].step)
            self._became[id(node)] = core.Chain(start, tuple(ops), step=step)
        elif id(node) in self._parts:
            parts = tuple(self._parts.pop(id(node)))
            self._became[id(node)] = core.Concat(parts, isinstance(node, Union), step=self._steps[id(node)])
        return self._became[id(node)]

    def _flat_parts(self, node: Concat) -> list[Core]:
        """Return the parts of a concat; a part that is a concat of its own gives its parts, unless it is shared."""
        first, *others = [self._parts_of(part) for part in node.parts]
        for parts in others:
            first.extend(parts)
        return first

    def _parts_of(self, part: Node) -> list[Core]:
        if id(part) in self._parts and self._readers[id(part)] == 1:
            return self._parts.pop(id(part))
        return [self._core_of(part)]

    def _core(self, node: Node, step: Step, remedies: tuple[Guard, ...]) -> Core:
        inputs = [self._core_of(upstream) for upstream in node.inputs()]
        match node:
            case Gather(gatherer=gatherer) if isinstance(gatherer.parallel, Calling):
                return core.Called(inputs[0], gatherer.parallel, remedies, step=step)
            case nodes_of_services.UsingBatches(size=size):
                return UsingBatches(inputs[0], self._served(node), size, step=step)
            case nodes.Read(source=source):
                return core.Read(source, (*remedies, *_own_guards(node, step)), step=step)
            case Limit():
                return self._limit(node, inputs[0], step)
            case Skip(count=count):
                return _behind(count, inputs[0], step)
        return core_of(node, inputs, step)

    def _limit(self, node: Limit, upstream: Core, step: Step) -> Core:
        if isinstance(upstream, core.Skip) and not node.count:
            return self._limit(node, upstream.upstream, step)  # Of an empty page nobody looks at what is skipped.
        if isinstance(upstream, core.Skip):
            # The page behind `skip(n)` ends at n + count: nobody needs to look further.
            first = dataclasses.replace(node, count=upstream.count + node.count)
            return dataclasses.replace(upstream, upstream=self._limit(first, upstream.upstream, step))
        if isinstance(upstream, core.Limit | core.Top):
            return _at_most(node.count, upstream)
        if isinstance(upstream, core.Sorted) and node.count <= _LARGEST_TOP and self._readers[id(node.upstream)] == 1:
            is_one_call = not node.label()
            return core.Top(
                upstream.upstream, node.count, upstream.key, upstream.reverse, is_one_call, step=upstream.step
            )
        if isinstance(upstream, core_of_pairs.Zip) and self._readers[id(node.upstream)] == 1:
            return _first_pairs(node.count, upstream, step)
        return core.Limit(upstream, node.count, step=step)


def _own_guards(node: nodes.Read, step: Step) -> tuple[Guard, ...]:
    """Return what a source itself wants for its bad records; what the user says behind it comes first."""
    silent = dataclasses.replace(step, label="")
    if node.delivery is not None:
        return (Guard((SourceError,), "sent", None, None, node.delivery, silent, step),)
    if getattr(node.source, "on_bad", "fail") == "skip":
        return (Guard((SourceError,), "ignored", None, None, None, silent, step),)
    return ()


def _behind(count: int, upstream: Core, step: Step) -> Core:
    if isinstance(upstream, core.Skip):
        return core.Skip(upstream.upstream, upstream.count + count, step=step)
    return core.Skip(upstream, count, step=step)


def _first_pairs(count: int, zipped: core_of_pairs.Zip, step: Step) -> Core:
    """Return what reads no more items of either side than the first pairs take."""
    left, right = (core.Limit(side, count, step=step) for side in zipped.inputs())
    first = dataclasses.replace(zipped, left=left, right=right)
    return core.Limit(first, count, step=step) if zipped.how == "interleaved" else first


def _at_most(count: int, operation: core.Limit | core.Top) -> Core:
    if isinstance(operation, core.Top) and count < operation.count:
        return dataclasses.replace(operation, count=count, is_one_call=False)
    return dataclasses.replace(operation, count=min(count, operation.count))


def _guarded(each: Node) -> Node:
    """Return the step that `each` is, or whose failures it looks after."""
    while isinstance(each, Recover):
        each = each.upstream
    return each


def _recovers_of(each: Node) -> list[Recover]:
    """Return what looks after the failures of `_guarded(each)`, in the order of the calls."""
    found = []
    while isinstance(each, Recover):
        found.append(each)
        each = each.upstream
    return found[::-1]


def _read_by(each: Node) -> Sequence[Node]:
    """Return the nodes that `each` reads from, once steps and what looks after them are one."""
    return _guarded(each).inputs()


def _guards(recovers: Iterable[Recover], steps: dict[int, Step], of: Step) -> tuple[Guard, ...]:
    """Return the guards of a step; `steps` has that of each node by its `id`."""
    return tuple(
        Guard(each.kinds, each.treatment, each.fn, each.kind, each.delivery, steps[id(each)], of) for each in recovers
    )


@functools.singledispatch
def core_of(node: nodes.Node, inputs: Sequence[Core], step: Step) -> Core:
    """Return the operation of `node`, which reads from `inputs` and names itself with `step`."""
    raise UnsupportedError(f"{node!r} is nothing that an engine runs")


@core_of.register
def _(node: nodes.Table, inputs: Sequence[Core], step: Step) -> Core:
    return core.Table(node.table, node.kind, step=step)


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
    if node.count is not None and node.count <= _LARGEST_TOP:
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
    return core.Write(inputs[0], node.writer, node.collector, step=step)


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
    return core_of_stages.Aggregate(tuple(inputs), node.operation, node.reductions, node.to, step=step)


@core_of.register
def _(node: nodes_of_stages.Stateful, inputs: Sequence[Core], step: Step) -> Core:
    return core_of_stages.Stateful(inputs[0], node.create, node.fn, node.action, node.key, step=step)


@core_of.register
def _(node: nodes_of_stages.Spread, inputs: Sequence[Core], step: Step) -> Core:
    return core_of_stages.Spread(inputs[0], node.count, step=step)
