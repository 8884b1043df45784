"""Properties of a plan: order, bounds, size, parallelism; `place`: Spark or the caller's process.

A plan runs in the caller's process if `place` is certain that it reads few items; all others run on Spark. The answer
depends on the plan and on the content of its `cache()` steps, so `explain()` gives the same as the terminal operation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from dstream.errors import IllegalStateError
from dstream.plan.operations.elementwise import Chain, Gather, ServiceFunction, UsingBatches
from dstream.plan.operations.ends import Several
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.operations.streams import Cache, Configure, Fork, Node, Parallel, Read, Table
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.steps import Guard
from dstream.plan.walk import CacheContent, CacheLookup, each, fold, nothing_kept, topological
from dstream.spi.source import input_size

__all__ = [
    "MOST_ITEMS",
    "Placement",
    "bounded_operations",
    "check",
    "configuration",
    "guards_of",
    "is_bounded",
    "is_of_epoch",
    "is_ordered",
    "known_size",
    "ordered_operations",
    "parallelism",
    "place",
    "served_steps",
]


def check(root: Node, *, needs_end: bool) -> None:
    """Refuse a plan that could never finish.

    Args:
        root: the last operation of the plan.
        needs_end: whether the terminal operation needs every item of `root`.

    A gatherer of the user's is trusted to stop, as a `take_while` is.

    Raises:
        IllegalStateError: an infinite stream is sorted, cached, the side of a join that must end, or read to its end.
    """
    bounded: dict[int, bool] = {}
    for found in topological(root):
        inputs = [bounded[id(upstream)] for upstream in found.inputs()]
        bounded[id(found)] = found.has_end(inputs) or (isinstance(found, Gather) and found.gatherer.may_stop)
        refused = "" if all(inputs) else found.refusal(inputs)
        if refused:
            step = found.upstream.step if isinstance(found, Fork) else found.step
            place = f" at {step.where}" if step.where else ""
            raise IllegalStateError(f"an infinite stream cannot be {refused}: {step.label}{place}; limit() it before")
    if needs_end and not bounded[id(root)]:
        raise IllegalStateError(
            "this operation needs every item and the stream is infinite; end it with limit() or take_while() before"
        )


def is_ordered(root: Node) -> bool:
    """Say whether the items of `root` have an encounter order that must be kept."""
    return fold(root, lambda operation, inputs: operation.has_order(inputs))


def is_bounded(root: Node) -> bool:
    """Say whether the items of `root` end; `take_while` is trusted to end."""
    return fold(root, lambda operation, inputs: operation.has_end(inputs))


def is_of_epoch(root: Node) -> bool:
    """Say whether a plan is an epoch of a job over unbounded data, or has operations that only epochs have."""
    if isinstance(root, Several) and root.is_epoch:
        return True
    return any(found.is_of_epoch for found in topological(root))


def ordered_operations(root: Node) -> dict[int, bool]:
    """Say of every operation of the plan, by its `id`, whether its items have an encounter order."""
    return each(root, lambda operation, inputs: operation.has_order(inputs))


def bounded_operations(root: Node) -> dict[int, bool]:
    """Say of every operation of the plan, by its `id`, whether its items end."""
    return each(root, lambda operation, inputs: operation.has_end(inputs))


def parallelism(root: Node) -> int | None:
    """Return the number of partitions that the last `parallel` or `sequential` asked for, or None."""
    asked = [found.partitions for found in topological(root) if isinstance(found, Parallel)]
    return asked[-1] if asked else None


def configuration(root: Node) -> dict[str, str]:
    """Return the settings of every `configure`, the later ones winning."""
    settings: dict[str, str] = {}
    for found in topological(root):
        if isinstance(found, Configure):
            settings.update(found.settings)
    return settings


def known_size(root: Node) -> int | None:
    """Return how many items `root` has if its sources know that and no function of the user's stands behind them.

    Nothing is read. None if only running the plan can tell. It is asked of what the user wrote: in core operations the
    calls that check their items and those that only change their type look alike.
    """
    # Sources are asked only if their answers can matter: those of files look at each file.
    if fold(root, lambda each, counts: 0 if isinstance(each, Read) else _item_count(each, counts)) is None:
        return None
    return fold(root, _item_count)


def _item_count(operation: Node, counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return operation.item_count(known) if len(known) == len(counts) else None


MOST_ITEMS = 4096
"""The most items that the sources of a plan have together if it is to run in the caller's process."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement of a plan.

    Attributes:
        is_here: in the caller's process; if not, on Spark.
        reason: a line that says where, and why.
    """

    is_here: bool
    reason: str


class _Items(NamedTuple):
    """The number of items that come out of a node if none is added or left out on the way.

    Attributes:
        on_spark: why they belong there whatever their number; "" if they do not.
        is_sure: none is added or left out, so that a `limit` here says how many are read.
    """

    number: float
    on_spark: str = ""
    is_sure: bool = False


def place(root: Node, found: CacheLookup = nothing_kept) -> Placement:
    """Say where a plan runs.

    A source counts with its items, twice if two steps read it. A `limit` counts instead of the source
    before it, if only `map` and `peek` stand between. What steps add or leave out does not count: that is
    known only once they ran.

    Args:
        root: the last operation of the plan.
        found: says what is kept of a `cache()`, which counts instead of what stands before.
    """
    asked = _asked_of_spark(root)
    if asked:
        return _there(asked)
    kept = functools.cache(found)  # so that all of this sees one state of what is kept

    def reads(node: Node) -> Sequence[Node]:
        return () if isinstance(node, Cache) and kept(node) is not None else node.inputs()

    return _placed(fold(root, lambda node, inputs: _items(node, inputs, kept), reads))


def _asked_of_spark(root: Node) -> str:
    """Return the part of the plan that only Spark supports."""
    partitions = parallelism(root)
    if partitions is not None and partitions > 1:
        return f".parallel({partitions}) asks for {partitions} partitions"
    return "its settings are those of Spark" if configuration(root) else ""


def _items(operation: Node, inputs: Sequence[_Items], kept: CacheLookup) -> _Items:
    match operation:
        case Read():
            return _of_source(operation)
        case Table():
            return _Items(math.inf, f"{operation.label()} is there")
        case Cache() if (cached := kept(operation)) is not None:
            return _of_cached(operation, cached)
        # These steps add and leave out nothing, so a limit behind them bounds what is read.
        case Chain(ops=ops) if all(op.action in ("map", "peek", "count") and not op.guards for op in ops):
            return inputs[0]
        case ProcessorGraph(upstreams=()):
            return _Items(math.inf, f"{operation.label()} runs its processors on workers")
        case Limit(count=most) if inputs[0].is_sure:
            return _Items(min(inputs[0].number, most), is_sure=True)
    # Ever doubled, the exact number would be too long to write.
    number = min(sum(each.number for each in inputs), MOST_ITEMS + 1)
    return _Items(number, next((each.on_spark for each in inputs if each.on_spark), ""))


def _of_cached(cache: Cache, cached: CacheContent) -> _Items:
    there = f"{cache.label()} keeps its items there"
    return _Items(math.inf, there) if cached.count is None else _Items(cached.count)


def _of_source(read: Read) -> _Items:
    source = read.source
    size = input_size(source)
    if not size.is_held:
        # A few items of a collection are read sooner here than Spark starts.
        return _Items(math.inf, f"{read.label()} is read by workers", is_sure=size.is_near)
    if size.items is not None and size.items < math.inf:
        return _Items(size.items, is_sure=True)
    unknown = f"nobody knows how many items {read.label()} has"
    return _Items(math.inf, unknown if source.bounded else f"{read.label()} has no end", is_sure=True)


def _placed(items: _Items) -> Placement:
    if items.on_spark:
        return _there(items.on_spark)
    if items.number > MOST_ITEMS:
        return _there(f"more than {MOST_ITEMS:,} items from the caller")
    number = int(items.number)
    return Placement(is_here=True, reason=f"runs in this process: {number:,} item{'s' * (number != 1)} from the caller")


def _there(why: str) -> Placement:
    return Placement(is_here=False, reason=f"runs on Spark: {why}")


def served_steps(operations: Iterable[Node]) -> Iterator[ServiceFunction]:
    """Give the functions of the operations of a plan that need a service."""
    for node in operations:
        if isinstance(node, Chain):
            yield from (op.fn for op in node.ops if isinstance(op.fn, ServiceFunction))
        elif isinstance(node, UsingBatches):
            yield node.served()


def guards_of(operations: Iterable[Node]) -> Iterator[Guard]:
    """Give the guards of the operations of a plan."""
    return chain.from_iterable(node.all_guards() for node in operations)
