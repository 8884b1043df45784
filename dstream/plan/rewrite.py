"""`rewrite`: from the calls of the user to the operations that engines run.

A run of element-wise steps becomes one `Chain`, neighbouring limits and skips become one,
`sorted().limit(n)` becomes `Top`, nested concats become flat, a step and the handlers of its failures become one, and
each operation gets a numbered `Step`. Other operations are unchanged.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast, overload

from dstream.errors import SourceError, UnsupportedError
from dstream.keys import canonical
from dstream.plan.operations.calls import (
    Filter,
    FlatMap,
    Map,
    MapMulti,
    Peek,
    Recover,
    RewrittenCall,
    Shuffle,
    Tally,
    WithService,
)
from dstream.plan.operations.elementwise import CallResults, Chain, Gather, ServiceFunction, UsingBatches
from dstream.plan.operations.ends import End, Several, Write
from dstream.plan.operations.keyed import Distinct
from dstream.plan.operations.pairs import Zip
from dstream.plan.operations.sort_limit import Limit, Skip, Sorted, Top
from dstream.plan.operations.streams import CacheIdentity, Concat, Configure, Fork, Node, Parallel, Read, Unordered
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.steps import EarlyCheck, Emitted, Guard, Op, Step
from dstream.plan.walk import fold, inputs_first, steps_of, topological
from dstream.spi import Collector
from dstream.spi.gatherer import Calling

__all__ = ["LARGEST_TOP", "limited", "rewrite"]


LARGEST_TOP = 100_000
"""At most this number of first items in order are found without sorting the others."""

_ElementWise = Map | Filter | FlatMap | MapMulti | Peek | WithService | Tally


@overload
def rewrite(root: End) -> End: ...


@overload
def rewrite(root: Several) -> Several: ...


@overload
def rewrite(root: Node) -> Node: ...


def rewrite(root: Node) -> Node:
    """Return the plan of `root` as engines run it; shared operations remain shared.

    Raises:
        UnsupportedError: a call of the plan is no operation.
    """
    return _Rewriting(root).result()


class _Rewriting:
    """The state of one rewrite: the replacement of each node, and the runs that are still growing."""

    def __init__(self, root: Node) -> None:
        calls = topological(root)
        self._steps = {id(node): step for node, step in zip(calls, steps_of(calls), strict=True)}
        self._has_recovers = Recover in map(type, calls)
        # Most plans have no such step, and need no second walk.
        self._order = inputs_first(root, _read_by) if self._has_recovers else calls
        self._readers: dict[int, int] = {}
        for node in self._order:
            for read in _read_by(node) if self._has_recovers else node.inputs():
                self._readers[id(read)] = self._readers.get(id(read), 0) + 1
        self._became: dict[int, Node] = {}
        self._runs: dict[int, tuple[Node, list[Op]]] = {}
        self._parts: dict[int, list[Node]] = {}
        self._services: dict[int, int] = {}
        self._looks = _looks_of(calls, self._steps)

    def result(self) -> Node:
        for each in self._order:
            node = _guarded(each)
            step = self._steps[id(node)]
            remedies = _guards(_recovers_of(each), self._steps, step) if self._has_recovers else ()
            if isinstance(node, _ElementWise):
                self._runs[id(each)] = self._run(node, step, remedies)
            elif isinstance(node, Concat):
                self._parts[id(each)] = self._flat_parts(node)
            else:
                self._became[id(each)] = self._made(node, step, remedies)
        return self._made_of(self._order[-1])

    def _run(self, node: _ElementWise, step: Step, remedies: tuple[Guard, ...]) -> tuple[Node, list[Op]]:
        """Lengthen the run that ends in the upstream, unless someone else reads from it too."""
        # An operation with two readers is not merged, so that both read the same result.
        upstream = node.upstream
        if id(upstream) in self._runs and self._readers[id(upstream)] == 1:
            start, ops = self._runs.pop(id(upstream))
        else:
            start, ops = self._made_of(upstream), []
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
            case WithService(service=service, fn=using, action=what):
                return Op(what, ServiceFunction(service, using, self._number(node)), None, step, guards)
            case Tally(upstream=_, take=take):
                return Op("count", take, None, step)

    def _number(self, node: WithService | UsingBatches) -> int:
        """Return the number of a service: one per service, also if several steps use it."""
        return self._services.setdefault(id(node.service), len(self._services))

    def _made_of(self, node: Node) -> Node:
        if id(node) in self._runs:
            start, ops = self._runs.pop(id(node))
            # The last call of the user's names the chain: steps that `rewrite` adds have no label.
            step = next((op.step for op in reversed(ops) if op.step.label), ops[-1].step)
            self._became[id(node)] = Chain(start, tuple(ops), step=step)
        elif isinstance(node, Concat) and id(node) in self._parts:
            parts = tuple(self._parts.pop(id(node)))
            self._became[id(node)] = dataclasses.replace(node, parts=parts, step=self._steps[id(node)])
        return self._became[id(node)]

    def _flat_parts(self, node: Concat) -> list[Node]:
        """Return the parts of a concat; parts that are concats are replaced by their own parts, unless shared."""
        first, *others = [self._parts_of(part) for part in node.parts]
        for parts in others:
            first.extend(parts)
        return first

    def _parts_of(self, part: Node) -> list[Node]:
        if id(part) in self._parts and self._readers[id(part)] == 1:
            return self._parts.pop(id(part))
        return [self._made_of(part)]

    def _made(self, node: Node, step: Step, remedies: tuple[Guard, ...]) -> Node:
        inputs = [self._made_of(upstream) for upstream in node.inputs()]
        match node:
            case Read():
                return node.with_inputs(inputs, step=step, guards=(*remedies, *_own_guards(node, step)))
            case Limit():
                return self._limit(node, inputs[0], step)
            case Skip(count=count):
                return _behind(count, inputs[0], step)
            case Sorted():
                return node.with_inputs(inputs, step=step, looks=self._looks.get(id(node), ()))
            case Shuffle():
                return _shuffled(node, inputs[0], step)
            case Gather(gatherer=gatherer) if isinstance(gatherer.parallel, Calling):
                return CallResults(inputs[0], gatherer.parallel, remedies, step=step)
            case UsingBatches():
                return node.with_inputs(inputs, step=step, number=self._number(node))
            case Fork():
                # A new identity: cached items end with the run, and the next one of this plan finds nothing.
                return node.with_inputs(inputs, step=dataclasses.replace(step, label="fork"), identity=CacheIdentity())
            case ProcessorGraph(is_one_step=True, graph=graph):
                return node.with_inputs(inputs, step=step, graph=graph.in_one_step(step))
            case Several():
                return limited(node.with_inputs(inputs, step=step))
            case RewrittenCall():
                raise UnsupportedError(f"{node!r} is nothing that an engine runs")
        return node.with_inputs(inputs, step=step)

    def _limit(self, node: Limit, upstream: Node, step: Step) -> Node:
        if isinstance(upstream, Skip) and not node.count:
            return self._limit(node, upstream.upstream, step)  # An empty page does not need its skipped items.
        if isinstance(upstream, Skip):
            # The page after `skip(n)` ends at n + count: nothing after that is read.
            first = dataclasses.replace(node, count=upstream.count + node.count)
            return dataclasses.replace(upstream, upstream=self._limit(first, upstream.upstream, step))
        if isinstance(upstream, Limit | Top):
            return _at_most(node.count, upstream)
        # With another reader the sort runs anyway, and the first items are its first rows.
        if isinstance(upstream, Sorted) and node.count <= LARGEST_TOP and self._readers[id(node.upstream)] == 1:
            sort, is_one_call = upstream, not node.label()
            return Top(sort.upstream, node.count, sort.key, sort.reverse, is_one_call, step=sort.step)
        if isinstance(upstream, Zip) and self._readers[id(node.upstream)] == 1:
            return _first_pairs(node.count, upstream, step)
        return Limit(upstream, node.count, step=step)


def _shuffled(node: Shuffle, upstream: Node, step: Step) -> Node:
    ranked = Gather(upstream, node.ranking, step=step)
    rank, item = operator.itemgetter(0), operator.itemgetter(1)
    if node.count is not None and node.count <= LARGEST_TOP:
        shuffled: Node = Top(ranked, node.count, rank, False, True, step=step)
    else:
        shuffled = Sorted(ranked, rank, step=step)
        shuffled = shuffled if node.count is None else Limit(shuffled, node.count, step=step)
    unseen = dataclasses.replace(step, label="")
    return Chain(shuffled, (Op("map", item, None, unseen),), step=unseen)


def _own_guards(node: Read, step: Step) -> tuple[Guard, ...]:
    """Return a source's own guards for its bad records; the user's guards downstream take precedence."""
    is_sent, is_skipped = node.delivery is not None, getattr(node.source, "on_bad", "fail") == "skip"
    if not is_sent and not is_skipped:
        return ()
    silent = dataclasses.replace(step, label="")
    return (Guard((SourceError,), "sent" if is_sent else "ignored", None, None, node.delivery, silent, step),)


def _behind(count: int, upstream: Node, step: Step) -> Node:
    if isinstance(upstream, Skip):
        return Skip(upstream.upstream, upstream.count + count, step=step)
    return Skip(upstream, count, step=step)


def _first_pairs(count: int, zipped: Zip, step: Step) -> Node:
    """Return an operation that reads from either side only the items of the first pairs."""
    left, right = (Limit(side, count, step=step) for side in zipped.inputs())
    first = dataclasses.replace(zipped, left=left, right=right)
    # Interleaved items are emitted one by one, so *n* items of each side are up to 2 *n* items.
    return Limit(first, count, step=step) if zipped.how == "interleaved" else first


def _at_most(count: int, operation: Limit | Top) -> Node:
    if isinstance(operation, Top) and count < operation.count:
        # The call that it was made of named another count.
        return dataclasses.replace(operation, count=count, is_one_call=False)
    return dataclasses.replace(operation, count=min(count, operation.count))


def _guarded(each: Node) -> Node:
    """Return the step that `each` is, or whose failures it looks after."""
    while isinstance(each, Recover):
        each = each.upstream
    return each


def _recovers_of(each: Node) -> list[Recover]:
    """Return the guards of the failures of `_guarded(each)`, in the order of the calls."""
    found = []
    while isinstance(each, Recover):
        found.append(each)
        each = each.upstream
    return found[::-1]


def _read_by(each: Node) -> Sequence[Node]:
    """Return the nodes that `each` reads from, once steps and their guards are one."""
    return _guarded(each).inputs()


def _guards(recovers: Iterable[Recover], steps: dict[int, Step], of: Step) -> tuple[Guard, ...]:
    """Return the guards of a step; `steps` has the step of each node by its `id`."""
    return tuple(
        Guard(each.kinds, each.treatment, each.fn, each.kind, each.delivery, steps[id(each)], of) for each in recovers
    )


def _looks_of(order: Iterable[Node], steps: dict[int, Step]) -> dict[int, tuple[EarlyCheck, ...]]:
    """Return for each sort, by its `id`, the early checks of a downstream sink or call.

    A writer may refuse items by `check_item`, and `distinct()` refuses items that cannot be keys. Each item
    of a sort reaches them if the steps between do not change items; so one that is refused there is refused before the
    sort.

    Args:
        order: the nodes of the plan.
        steps: the step of each node, by its `id`.
    """
    found: dict[int, tuple[EarlyCheck, ...]] = {}
    for end in order:
        if isinstance(end, Write | Distinct) and (check := _check_of(end)) is not None:
            sort = _sort_before(end.upstream)
            if sort is not None:
                found[id(sort)] = (*found.get(id(sort), ()), EarlyCheck(check, steps[id(end)]))
    return found


def _sort_before(node: Node) -> Sorted | None:
    """Return the earliest sort all of whose items reach the end after `node`."""
    found = None
    # A check at the earliest of several sorts refuses items soonest.
    while isinstance(node, _KEEPING):
        found = node if isinstance(node, Sorted) else found
        [node] = node.inputs()
    return found


def _check_of(end: Write | Distinct) -> Callable[[Any], object] | None:
    """Return a check that refuses the items that `end` will refuse; None: none without a function of the user's."""
    if isinstance(end, Distinct):
        return canonical if end.key is None else None
    check: Callable[[Any], object] | None = getattr(end.writer, "check_item", None)
    if check is None or end.collector is None:
        return check
    return None if end.collector.functions else partial(_check_entry, end.collector, check)


def _check_entry(collector: Collector[Any, Any, Any], check: Callable[[Any], object], item: Any) -> None:
    for entry in collector.accumulated(collector.supplier(), [item]).items():
        check(entry)


_KEEPING = (Configure, Parallel, Sorted, Unordered, Peek, Fork, Tally)


_Wanted = dict[int, list[Limit | None]]
"""The limits by which each fork is read; None: all items are wanted."""


def limited(several: Several) -> Several:
    """Return the plan with a limit before each fork that is read by limits alone: the largest of these."""
    limits = {number: limit for number, found in _wanted(several).items() if (limit := _largest(found)) is not None}
    return cast(Several, fold(several, lambda each, inputs: _limited(each, inputs, limits))) if limits else several


def _wanted(several: Several) -> _Wanted:
    """Return how each fork is read; a fork of a fork that ends early needs no more than that one emits."""
    wanted: _Wanted = defaultdict(list)
    # Readers before their inputs, so that the limits of a fork are complete before those of an upstream fork are
    # computed.
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


def _limited(each: Node, inputs: Sequence[Node], limits: Mapping[int, Limit]) -> Node:
    limit = limits.get(id(each))
    return each.reading(inputs if limit is None else [dataclasses.replace(limit, upstream=inputs[0])])
