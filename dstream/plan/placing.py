"""Where `connect(engine="auto")` runs a plan: here, in the caller's process, if its items are few and here already.

All others run on Spark. The answer depends on the plan and on what is kept of its `cache()` steps, so `explain()` gives
the same as the terminal operation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dstream.plan.core import Cache, Chain, Core, Limit, Read, Table
from dstream.plan.core_of_graphs import Processing
from dstream.plan.properties import configuration, parallelism
from dstream.plan.recalling import Cached, Found, nothing_kept
from dstream.plan.walk import inputs_first
from dstream.spi.source import Held

__all__ = ["MOST_ITEMS", "Placement", "place"]

MOST_ITEMS = 4096
"""How many items the sources of a plan may have together if it is to run in the caller's process."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a plan runs.

    Attributes:
        is_here: in the caller's process; if not, on Spark.
        reason: a line that says where, and why.
    """

    is_here: bool
    reason: str


class _Items(NamedTuple):
    """How many items come out of a node if none is added or left out on the way.

    Attributes:
        on_spark: why they belong there whatever their number; "" if they do not.
        is_sure: none is added or left out, so that a `limit` here says how many are read.
    """

    number: float
    on_spark: str = ""
    is_sure: bool = False


def place(root: Core, found: Found = nothing_kept) -> Placement:
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

    def reads(each: Core) -> Sequence[Core]:
        return () if isinstance(each, Cache) and kept(each) is not None else each.inputs()

    items: dict[int, _Items] = {}
    for each in inputs_first(root, reads):
        items[id(each)] = _items(each, [items[id(upstream)] for upstream in reads(each)], kept)
    return _placed(items[id(root)])


def _asked_of_spark(root: Core) -> str:
    """Say what the plan asks for that only Spark has."""
    partitions = parallelism(root)
    if partitions is not None and partitions > 1:
        return f".parallel({partitions}) asks for {partitions} partitions"
    return "its settings are those of Spark" if configuration(root) else ""


def _items(operation: Core, inputs: Sequence[_Items], kept: Found) -> _Items:
    match operation:
        case Read():
            return _of_source(operation)
        case Table():
            return _Items(math.inf, f"{operation.label()} is there")
        case Cache() if (cached := kept(operation)) is not None:
            return _of_cached(operation, cached)
        case Chain(ops=ops) if all(op.action in ("map", "peek", "count") and not op.guards for op in ops):
            return inputs[0]
        case Processing(upstreams=()):
            return _Items(math.inf, f"{operation.label()} runs its processors on workers")
        case Limit(count=most) if inputs[0].is_sure:
            return _Items(min(inputs[0].number, most), is_sure=True)
    # Ever doubled, the exact number would be too long to write.
    number = min(sum(each.number for each in inputs), MOST_ITEMS + 1)
    return _Items(number, next((each.on_spark for each in inputs if each.on_spark), ""))


def _of_cached(cache: Cache, cached: Cached) -> _Items:
    there = f"{cache.label()} keeps its items there"
    return _Items(math.inf, there) if cached.count is None else _Items(cached.count)


def _of_source(read: Read) -> _Items:
    source = read.source
    number = source.count_items() if isinstance(source, Held) else None
    if number is None:
        # A few items of a collection are read sooner here than Spark starts.
        is_near = getattr(source, "can_be_read_here", False)
        return _Items(math.inf, f"{read.label()} is read by workers", is_sure=is_near)
    if number < math.inf:
        return _Items(number, is_sure=True)
    unknown = f"nobody knows how many items {read.label()} has"
    return _Items(number, unknown if source.bounded else f"{read.label()} has no end", is_sure=True)


def _placed(items: _Items) -> Placement:
    if items.on_spark:
        return _there(items.on_spark)
    if items.number > MOST_ITEMS:
        return _there(f"more than {MOST_ITEMS:,} items from the caller")
    number = int(items.number)
    return Placement(is_here=True, reason=f"runs in this process: {number:,} item{'s' * (number != 1)} from the caller")


def _there(why: str) -> Placement:
    return Placement(is_here=False, reason=f"runs on Spark: {why}")
