"""Replay of one step on one item, for `Failure.replay` and for messages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from dstream.keys import canonical
from dstream.plan.operations.calls import Filter, FlatMap, ForEach, Map, MapMulti, Peek, Recover, WithService
from dstream.plan.operations.elementwise import Gather
from dstream.plan.operations.ends import Collect, ForEachPartition, Write
from dstream.plan.operations.keyed import Aggregate, Distinct, PartitionBy
from dstream.plan.operations.pairs import AsOf, Pairing
from dstream.plan.operations.streams import DropWhile, Node, Read, Sorted, TakeWhile
from dstream.plan.steps import no_key, unchanged
from dstream.spi.gatherer import Calling
from dstream.spi.runtime import Service
from dstream.values.entries import Entry, entry_key, entry_value, key_of, value_of
from dstream.values.numbers import exact_float, exact_int

__all__ = ["again", "function_of"]


Replay = Callable[[Any], Any]


def function_of(node: Node) -> Callable[..., Any] | None:
    """Return the one function of the user's that a step runs on single items, or None."""
    function = _function_of(node)
    return None if any(function is each for each in _OURS) else function


_OURS = (Entry, entry_key, entry_value, key_of, no_key, unchanged, value_of)
"""Functions that replace one that the user did not give."""


def _function_of(node: Node) -> Callable[..., Any] | None:
    match node:
        case Map(fn=fn) | FlatMap(fn=fn) | MapMulti(fn=fn):
            return fn
        case WithService(fn=fn):
            return fn
        case Filter(predicate=fn) | TakeWhile(predicate=fn) | DropWhile(predicate=fn):
            return fn
        case Peek(action=fn) | ForEach(action=fn) | ForEachPartition(action=fn):
            return fn
        case Sorted(key=key) | Distinct(key=key) | PartitionBy(key=key):
            return key
        case AsOf(left_on=on, right_on=other):
            # Of two functions it is not known which one failed.
            return on if on is other and not node.has_by else None
        case Pairing(left_key=key, right_key=other) if key is other:
            return key
        case Gather(gatherer=gatherer) if isinstance(gatherer.parallel, Calling):
            return gatherer.parallel.fn
        case Recover(fn=fn):
            return fn
    return None


@functools.singledispatch
def again(node: Node) -> Replay | None:
    """Return the replay of `node` on one item, or None if it does nothing to a single one."""
    return None


@again.register(Filter)
@again.register(TakeWhile)
@again.register(DropWhile)
@again.register(Peek)
@again.register(ForEach)
@again.register(Sorted)
@again.register(PartitionBy)
@again.register(Pairing)
def _(node: Node) -> Replay | None:
    return function_of(node)


@again.register
def _(node: Map) -> Replay:
    return functools.partial(_converted, _CONVERTERS[node.kind], node.fn)


def _converted(convert: Replay | None, fn: Replay, item: Any) -> Any:
    result = fn(item)
    return result if convert is None else convert(result)


_CONVERTERS: dict[type | None, Replay | None] = {None: None, int: exact_int, float: exact_float}


@again.register
def _(node: FlatMap) -> Replay:
    return functools.partial(_all_of, _CONVERTERS[node.kind], node.fn)


def _all_of(convert: Replay | None, fn: Callable[[Any], Iterable[Any] | None], item: Any) -> list[Any]:
    result = fn(item)
    items = () if result is None else result
    return list(items) if convert is None else list(map(convert, items))


@again.register
def _(node: MapMulti) -> Replay:
    return functools.partial(_all_of, _CONVERTERS[node.kind], functools.partial(_emitted, node.fn))


def _emitted(fn: Callable[[Any, Callable[[Any], None]], object], item: Any) -> list[Any]:
    emitted: list[Any] = []
    fn(item, emitted.append)
    return emitted


@again.register
def _(node: Gather) -> Replay | None:
    return node.gatherer.parallel.once if isinstance(node.gatherer.parallel, Calling) else None


@again.register
def _(node: Recover) -> Replay | None:
    """Let the step before fail, and resolve that."""
    before = again(node.upstream)
    return None if node.fn is None or before is None else functools.partial(_resolved, before, node.kinds, node.fn)


def _resolved(
    before: Replay, kinds: tuple[type[Exception], ...], fn: Callable[[Any, Exception], Any], item: Any
) -> Any:
    try:
        return before(item)
    except kinds as error:
        return fn(item, error)


@again.register
def _(node: Distinct) -> Replay:
    return functools.partial(_key, node.key)


def _key(key: Replay | None, item: Any) -> Any:
    return canonical(item if key is None else key(item))


@again.register
def _(node: WithService) -> Replay | None:
    """Make a service in this process, for this item alone."""
    service = node.service
    return functools.partial(_served, service, node.fn, node.action) if isinstance(service, Service) else None


def _served(service: Service[Any], fn: Callable[[Any, Any], Any], action: str, item: Any) -> Any:
    made = service.create()
    try:
        result = fn(made, item)
        return _all_of(None, lambda _: result, item) if action == "flat_map" else result
    finally:
        if service.destroy is not None:
            service.destroy(made)


@again.register(Collect)
@again.register(Write)
def _(node: Collect | Write) -> Replay | None:
    return None if node.collector is None else functools.partial(_collected, node.collector)


def _collected(collector: Any, item: Any) -> Any:
    return collector.collect([item])


@again.register
def _(node: Aggregate) -> Replay | None:
    """Reduce the item alone; of several inputs nobody knows whose item it is."""
    return functools.partial(_collected, node.reductions[0]) if len(node.reductions) == 1 else None


@again.register
def _(node: Read) -> Replay | None:
    """Ask the source, if it runs a function of the user's on its records: `replay(item)`."""
    replay: Replay | None = getattr(node.source, "replay", None)
    return replay
