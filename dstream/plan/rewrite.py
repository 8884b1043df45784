"""From the nodes that users write to the dozen that engines know.

A run of element-wise steps becomes one `Chain`, neighbouring limits and skips become one,
`sorted().limit(n)` becomes `Top`, nested concats become flat, a step and what looks after its
failures become one, and each node learns its `Step`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dstream.plan.guards_of_steps import Called, Guard, Recover, guarded, guards, read_by, recovers_of
from dstream.plan.nodes import (
    Concat,
    Filter,
    FlatMap,
    Gather,
    Limit,
    Map,
    MapMulti,
    Node,
    Peek,
    Skip,
    Sorted,
    node,
)
from dstream.plan.steps import Step
from dstream.plan.walk import inputs_first, steps_of, topological
from dstream.spi.in_parallel import Calling

__all__ = ["Chain", "Op", "Top", "rewrite"]

_LARGEST_TOP = 100_000
_ElementWise = Map | Filter | FlatMap | MapMulti | Peek


@dataclass(frozen=True, slots=True)
class Op:
    """One element-wise step of a `Chain`.

    Attributes:
        action: `"map"`, `"filter"`, `"flat_map"` or `"peek"`.
        kind: None, or `int` or `float`: what each result must be.
        guards: what happens to items that it fails on.
    """

    action: str
    fn: Callable[[Any], Any]
    kind: type | None
    step: Step
    guards: tuple[Guard, ...] = ()

    def steps(self) -> list[Step]:
        """Return the user's calls that it stands for."""
        return [self.step, *(guard.step for guard in self.guards if guard.step.label)]


@node
class Chain(Node):
    """A run of element-wise steps, executed as one."""

    upstream: Node
    ops: tuple[Op, ...]

    def label(self) -> str:
        return "".join(step.label for op in self.ops for step in op.steps())


@node
class Top(Node):
    """The first `count` items in the order of their keys: `sorted().limit(count)`.

    Attributes:
        call: the whole call as the user wrote it, if it was one.
    """

    upstream: Node
    count: int
    key: Callable[[Any], Any] | None
    reverse: bool
    call: str = ""

    def label(self) -> str:
        return self.call or f"{self.step.label if self.step else '.sorted()'}.limit({self.count})"


def rewrite(root: Node) -> Node:
    """Return the plan of `root` in core nodes; a node that is shared stays shared."""
    return _Rewriting(root).result()


class _Rewriting:
    """The state of one rewrite: what each node became, and the runs that are still growing."""

    def __init__(self, root: Node) -> None:
        calls = topological(root)
        self._steps = {id(node): step for node, step in zip(calls, steps_of(calls), strict=True)}
        self._order = inputs_first(root, read_by) if any(isinstance(node, Recover) for node in calls) else calls
        self._readers = Counter(map(id, chain.from_iterable(map(read_by, self._order))))
        self._became: dict[int, Node] = {}
        self._runs: dict[int, tuple[Node, list[Op]]] = {}
        self._parts: dict[int, list[Node]] = {}

    def result(self) -> Node:
        for each in self._order:
            node = guarded(each)
            step = self._steps[id(node)]
            remedies = guards(recovers_of(each), self._steps, step)
            if isinstance(node, _ElementWise):
                self._runs[id(each)] = self._run(node, step, remedies)
            elif isinstance(node, Concat):
                self._parts[id(each)] = self._flat_parts(node)
            else:
                self._became[id(each)] = self._core(node, step, remedies)
        return self._core_of(self._order[-1])

    def _run(self, node: _ElementWise, step: Step, remedies: tuple[Guard, ...]) -> tuple[Node, list[Op]]:
        """Lengthen the run that ends in the upstream, unless someone else reads from it too."""
        upstream = node.upstream
        if id(upstream) in self._runs and self._readers[id(upstream)] == 1:
            start, ops = self._runs.pop(id(upstream))
        else:
            start, ops = self._core_of(upstream), []
        ops.append(_op(node, step, remedies))
        return start, ops

    def _core_of(self, node: Node) -> Node:
        if id(node) in self._runs:
            start, ops = self._runs.pop(id(node))
            self._became[id(node)] = Chain(start, tuple(ops), where=node.where, step=ops[-1].step)
        elif isinstance(node, Concat) and id(node) in self._parts:
            self._became[id(node)] = node.with_inputs(self._parts.pop(id(node)), node.step)
        return self._became[id(node)]

    def _flat_parts(self, node: Concat) -> list[Node]:
        """Return the parts of a concat; a part that is a concat of its own gives its parts, unless it is shared."""
        first, *others = [self._parts_of(part) for part in node.parts]
        for parts in others:
            first.extend(parts)
        return first

    def _parts_of(self, part: Node) -> list[Node]:
        if id(part) in self._parts and self._readers[id(part)] == 1:
            return self._parts.pop(id(part))
        return [self._core_of(part)]

    def _core(self, node: Node, step: Step, remedies: tuple[Guard, ...]) -> Node:
        inputs = [self._core_of(upstream) for upstream in node.inputs()]
        if isinstance(node, Gather) and isinstance(node.gatherer.parallel, Calling):
            return Called(inputs[0], node.gatherer.parallel, remedies, node.label(), where=node.where, step=step)
        if isinstance(node, Limit):
            return self._limit(node, inputs[0], step)
        if isinstance(node, Skip) and isinstance(inputs[0], Skip):
            return Skip(inputs[0].upstream, inputs[0].count + node.count, where=node.where, step=step)
        return node.with_inputs(inputs, step)

    def _limit(self, node: Limit, upstream: Node, step: Step) -> Node:
        if isinstance(upstream, Skip):
            # The page behind `skip(n)` ends at n + count: nobody needs to look further.
            first = dataclasses.replace(node, count=upstream.count + node.count)
            return dataclasses.replace(upstream, upstream=self._limit(first, upstream.upstream, step))
        if isinstance(upstream, Limit | Top):
            return _at_most(node.count, upstream)
        if isinstance(upstream, Sorted) and node.count <= _LARGEST_TOP and self._readers[id(node.upstream)] == 1:
            top = Top(upstream.upstream, node.count, upstream.key, upstream.reverse, upstream.call)
            return dataclasses.replace(top, where=upstream.where, step=upstream.step)
        return Limit(upstream, node.count, where=node.where, step=step)


def _at_most(count: int, node: Limit | Top) -> Node:
    if isinstance(node, Top) and count < node.count:
        return dataclasses.replace(node, count=count, call="")
    return dataclasses.replace(node, count=min(count, node.count))


def _op(node: _ElementWise, step: Step, guards: tuple[Guard, ...]) -> Op:
    match node:
        case Map(upstream=_, fn=fn, kind=kind):
            return Op("map", fn, kind, step, guards)
        case Filter(upstream=_, predicate=predicate):
            return Op("filter", predicate, None, step, guards)
        case FlatMap(upstream=_, fn=fn, kind=kind):
            return Op("flat_map", fn, kind, step, guards)
        case MapMulti(upstream=_, fn=emitting, kind=kind):
            return Op("flat_map", _Emitted(emitting), kind, step, guards)
        case Peek(upstream=_, action=action):
            return Op("peek", action, None, step, guards)


@dataclass(frozen=True, slots=True)
class _Emitted:
    """`map_multi` as a `flat_map`: the items that `fn` emits, as a list."""

    fn: Callable[[Any, Callable[[Any], None]], object]

    def __call__(self, item: Any) -> list[Any]:
        emitted: list[Any] = []
        self.fn(item, emitted.append)
        return emitted
