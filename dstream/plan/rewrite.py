"""`rewrite`: from the nodes of a plan to core operations.

A run of element-wise steps becomes one `Chain`, neighbouring limits and skips become one,
`sorted().limit(n)` becomes `Top`, nested concats become flat, a step and what looks after its
failures become one, and each operation gets its `Step`. `translation` contains the translation of one node alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, overload

from dstream.errors import SourceError
from dstream.keys import canonical
from dstream.plan import ends, nodes, stage_nodes
from dstream.plan.ends import End
from dstream.plan.keyed_nodes import Distinct
from dstream.plan.nodes import (
    Concat,
    Filter,
    FlatMap,
    Fork,
    Gather,
    Limit,
    Map,
    MapMulti,
    Node,
    Peek,
    Recover,
    Skip,
    Union,
)
from dstream.plan.operations import pairs, streams
from dstream.plan.operations.stages import ServiceFunction, Several, UsingBatches
from dstream.plan.operations.streams import Core
from dstream.plan.stage_nodes import Tally, WithService
from dstream.plan.steps import EarlyCheck, Emitted, Guard, Op, Step
from dstream.plan.translation import LARGEST_TOP, core_of
from dstream.plan.walk import inputs_first, steps_of, topological
from dstream.spi import Collector
from dstream.spi.gatherer import Calling

__all__ = ["rewrite"]


_ElementWise = Map | Filter | FlatMap | MapMulti | Peek | WithService | Tally
_Needing = WithService | stage_nodes.UsingBatches


@overload
def rewrite(root: End) -> streams.End: ...


@overload
def rewrite(root: ends.SeveralEnds) -> Several: ...


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
        self._has_recovers = Recover in map(type, calls)
        self._order = inputs_first(root, _read_by) if self._has_recovers else calls
        self._readers: dict[int, int] = {}
        for node in self._order:
            for read in _read_by(node) if self._has_recovers else node.inputs():
                self._readers[id(read)] = self._readers.get(id(read), 0) + 1
        self._became: dict[int, Core] = {}
        self._runs: dict[int, tuple[Core, list[Op]]] = {}
        self._parts: dict[int, list[Core]] = {}
        self._services: dict[int, int] = {}
        self._looks = _looks_of(calls, self._steps)

    def result(self) -> Core:
        for each in self._order:
            node = _guarded(each)
            step = self._steps[id(node)]
            remedies = _guards(_recovers_of(each), self._steps, step) if self._has_recovers else ()
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
            case WithService(action=what):
                return Op(what, self._served(node), None, step, guards)
            case Tally(upstream=_, take=take):
                return Op("count", take, None, step)

    def _served(self, node: _Needing) -> ServiceFunction:
        """Return a function with its service, which has one number however many steps were given it."""
        return ServiceFunction(node.service, node.fn, self._services.setdefault(id(node.service), len(self._services)))

    def _core_of(self, node: Node) -> Core:
        if id(node) in self._runs:
            start, ops = self._runs.pop(id(node))
            step = next((op.step for op in reversed(ops) if op.step.label), ops[-1].step)
            self._became[id(node)] = streams.Chain(start, tuple(ops), step=step)
        elif id(node) in self._parts:
            parts = tuple(self._parts.pop(id(node)))
            self._became[id(node)] = streams.Concat(parts, isinstance(node, Union), step=self._steps[id(node)])
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
                return streams.CallResults(inputs[0], gatherer.parallel, remedies, step=step)
            case stage_nodes.UsingBatches(size=size):
                return UsingBatches(inputs[0], self._served(node), size, step=step)
            case nodes.Read(source=source):
                return streams.Read(source, (*remedies, *_own_guards(node, step)), step=step)
            case Limit():
                return self._limit(node, inputs[0], step)
            case Skip(count=count):
                return _behind(count, inputs[0], step)
        became = core_of(node, inputs, step)
        if id(node) in self._looks and isinstance(became, streams.Sorted):
            return dataclasses.replace(became, looks=self._looks[id(node)])
        return became

    def _limit(self, node: Limit, upstream: Core, step: Step) -> Core:
        if isinstance(upstream, streams.Skip) and not node.count:
            return self._limit(node, upstream.upstream, step)  # Of an empty page nobody looks at what is skipped.
        if isinstance(upstream, streams.Skip):
            # The page behind `skip(n)` ends at n + count: nobody needs to look further.
            first = dataclasses.replace(node, count=upstream.count + node.count)
            return dataclasses.replace(upstream, upstream=self._limit(first, upstream.upstream, step))
        if isinstance(upstream, streams.Limit | streams.Top):
            return _at_most(node.count, upstream)
        if isinstance(upstream, streams.Sorted) and node.count <= LARGEST_TOP and self._readers[id(node.upstream)] == 1:
            is_one_call = not node.label()
            return streams.Top(
                upstream.upstream, node.count, upstream.key, upstream.reverse, is_one_call, step=upstream.step
            )
        if isinstance(upstream, pairs.Zip) and self._readers[id(node.upstream)] == 1:
            return _first_pairs(node.count, upstream, step)
        return streams.Limit(upstream, node.count, step=step)


def _own_guards(node: nodes.Read, step: Step) -> tuple[Guard, ...]:
    """Return what a source itself wants for its bad records; what the user says behind it comes first."""
    is_sent, is_skipped = node.delivery is not None, getattr(node.source, "on_bad", "fail") == "skip"
    if not is_sent and not is_skipped:
        return ()
    silent = dataclasses.replace(step, label="")
    return (Guard((SourceError,), "sent" if is_sent else "ignored", None, None, node.delivery, silent, step),)


def _behind(count: int, upstream: Core, step: Step) -> Core:
    if isinstance(upstream, streams.Skip):
        return streams.Skip(upstream.upstream, upstream.count + count, step=step)
    return streams.Skip(upstream, count, step=step)


def _first_pairs(count: int, zipped: pairs.Zip, step: Step) -> Core:
    """Return what reads no more items of either side than the first pairs take."""
    left, right = (streams.Limit(side, count, step=step) for side in zipped.inputs())
    first = dataclasses.replace(zipped, left=left, right=right)
    return streams.Limit(first, count, step=step) if zipped.how == "interleaved" else first


def _at_most(count: int, operation: streams.Limit | streams.Top) -> Core:
    if isinstance(operation, streams.Top) and count < operation.count:
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


def _looks_of(order: Iterable[Node], steps: dict[int, Step]) -> dict[int, tuple[EarlyCheck, ...]]:
    """Return for each sort, by its `id`, what looks at its first items in the name of a sink or a call behind it.

    A writer may say by `check_item` what it would refuse, and `distinct()` refuses items that cannot be keys. Each item
    of a sort comes to them if what is between only keeps items; so one that is refused there is refused before the
    sort.

    Args:
        order: the nodes of the plan.
        steps: that of each node, by its `id`.
    """
    found: dict[int, tuple[EarlyCheck, ...]] = {}
    for end in order:
        if isinstance(end, ends.Write | Distinct) and (check := _check_of(end)) is not None:
            sort = _sort_before(end.upstream)
            if sort is not None:
                found[id(sort)] = (*found.get(id(sort), ()), EarlyCheck(check, steps[id(end)]))
    return found


def _sort_before(node: Node) -> nodes.Sorted | None:
    """Return the earliest sort whose items all come to the end behind `node`."""
    found = None
    while isinstance(node, _KEEPING):
        found = node if isinstance(node, nodes.Sorted) else found
        [node] = node.inputs()
    return found


def _check_of(end: ends.Write | Distinct) -> Callable[[Any], object] | None:
    """Return what refuses an item that `end` will refuse; None: nothing does without a function of the user's."""
    if isinstance(end, Distinct):
        return canonical if end.key is None else None
    check: Callable[[Any], object] | None = getattr(end.writer, "check_item", None)
    if check is None or end.collector is None:
        return check
    return None if end.collector.functions else partial(_check_entry, end.collector, check)


def _check_entry(collector: Collector[Any, Any, Any], check: Callable[[Any], object], item: Any) -> None:
    for entry in collector.accumulated(collector.supplier(), [item]).items():
        check(entry)


_KEEPING = (
    nodes.Configure,
    nodes.Parallel,
    nodes.Sorted,
    nodes.Unordered,
    Peek,
    Fork,
    Tally,
)
