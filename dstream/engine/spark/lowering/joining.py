"""What operations by key become on Spark.

A join first computes the side that may be small, routed by its keys, and keeps it. If its bytes are
few, they come to the driver and travel with the other side's stage, where nothing moves. If not,
one shuffle brings both sides together: in each partition the side that is held comes first.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from dstream.engine.batches import loads
from dstream.engine.joining import Side, sides_of
from dstream.engine.kernels import Task, operation
from dstream.engine.matching import Matching, cogrouped, index_of, matched
from dstream.engine.spark.flow import Flow, Frame, rows_of
from dstream.engine.spark.lowering.registry import Lowering, lower_node, step_of
from dstream.engine.spark.readers import read_buckets
from dstream.engine.spark.routing import RouteItems, RouteSide
from dstream.engine.spark.rows import ITEMS
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.keys import canonical_all
from dstream.plan import CoGroup, Join, PartitionBy, Step, is_bounded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "BROADCAST",
    "LARGEST_SMALL_SIDE",
    "bytes_of",
    "cogroup_batches",
    "join_batches",
    "join_with",
    "may_be_small",
]

LARGEST_SMALL_SIDE = 4 * 2**20
"""How many bytes of one side may travel with the function that joins it, to every task."""

BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
"""Spark's own setting: how many bytes its joins send to every task; below 0, none. A lower bound counts here too."""

Batches = Iterator[tuple[int, tuple[list[Any], list[Any]]]]
"""(target, (keys, items)); those of the side that comes second have the targets behind those of the first."""


def may_be_small(node: Join) -> list[bool]:
    """Return which sides may travel to the other one, in the order in which they are looked at; True is the left."""
    candidates = {"inner": [False, True], "left": [False], "right": [True], "full": []}[node.how]
    return [is_left for is_left in candidates if is_bounded(node.left if is_left else node.right)]


def bytes_of(text: str) -> int:
    """Return a size as Spark writes it, `10485760b` or `4m`, in bytes; -1 if it says nothing."""
    found = re.match(r"\s*(-?\d+)\s*([kmgtp]?)", text.lower())
    return int(found[1]) << 10 * " kmgtp".index(found[2] or " ") if found else -1


@lower_node.register
def _(node: Join, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    meeting = _Meeting(inputs, sides_of(node), lowering, endless=not is_bounded(node))
    bound = min(LARGEST_SMALL_SIDE, bytes_of(lowering.cluster.setting(BROADCAST)))
    sizes: dict[bool, int] = {}
    for is_left in may_be_small(node) if bound >= 0 else ():
        sizes[is_left] = meeting.size(is_left)
        if sizes[is_left] <= bound:
            return meeting.travelling(is_left, Matching.of(node.how, is_left))
    if not is_bounded(node):
        raise UnsupportedError(
            f"the Spark engine joins an infinite stream only with one of at most {bound:,} bytes: {node.label()}; "
            "limit() it before"
        )
    holds_left = sizes[True] < sizes[False] if len(sizes) == 2 else node.how == "right"
    join = functools.partial(join_batches, Matching.of(node.how, holds_left), step_of(node))
    return meeting.shuffled(holds_left, join)


@lower_node.register
def _(node: CoGroup, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    meeting = _Meeting(inputs, sides_of(node), lowering, endless=False)
    return meeting.shuffled(True, functools.partial(cogroup_batches, step_of(node)))


@lower_node.register
def _(node: PartitionBy, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    (flow,) = inputs
    if lowering.is_sequential or (node.count == 1 and flow.has_one_partition()):
        return flow.pipe(operation(node))
    rows = rows_of(flow, RouteItems(node.key, node.count, step_of(node)), lowering.cluster)
    return Flow((Frame(lowering.cluster.shuffled(rows, node.count), node.count),))


class _Meeting:
    """Two sides on their way to each other; a side is named by whether it is the left one."""

    def __init__(self, flows: Sequence[Flow], sides: Sequence[Side], lowering: Lowering, *, endless: bool) -> None:
        left, right = flows
        self._flows = {True: left, False: right}
        self._sides = {True: sides[0], False: sides[1]}
        self._cluster = lowering.cluster
        partitions = 1 if endless else left.count_partitions() + right.count_partitions()
        self._targets = lowering.targets(partitions)
        self._kept: dict[bool, DataFrame] = {}
        self._has_peeked: dict[bool, bool] = {}

    def size(self, is_left: bool) -> int:
        """Compute one side, keep it where it is, and return how many bytes its items are."""
        frame = self._kept[is_left] = self._cluster.pinned(self._routed(is_left, 0))
        cluster = self._cluster.doing(self._sides[is_left].step, f"size of the {_name(is_left)} side")
        sizes = list(cluster.sizes(frame))
        self._has_peeked[is_left] = any(channel > ITEMS for channel, _ in sizes)
        return sum(size for channel, size in sizes if channel == ITEMS)

    def _routed(self, is_left: bool, first: int) -> DataFrame:
        sink = RouteSide(self._sides[is_left], self._targets)
        return rows_of(self._flows[is_left], sink, self._cluster, first)

    def travelling(self, is_left: bool, matching: Matching) -> Flow:
        """Let a side that was computed come to the driver, and from there to each task of the other one."""
        cluster = self._cluster.doing(self._sides[is_left].step, f"the {_name(is_left)} side, which is small")
        rows = cluster.rows(self._kept[is_left].where(f"channel = {ITEMS}"))
        payloads = tuple(bytes(row.payload) for row in rows)
        passing, pairs_of = self._passing(not is_left)
        join = functools.partial(join_with, payloads, matching, self._sides[is_left].step, pairs_of)
        return Flow((*self._peeked(is_left), *passing.pipe(join).segments))

    def _passing(self, is_left: bool) -> tuple[Flow, Callable[[Iterator[Any]], Iterator[Any]]]:
        """Return a side as it is, or as it was kept, and what makes pairs of it."""
        if is_left in self._kept:
            return Flow((self._frame(is_left),)), _pairs
        return self._flows[is_left], self._sides[is_left].pairs

    def _frame(self, is_left: bool) -> Frame:
        return Frame(self._kept[is_left], self._flows[is_left].count_partitions(), read_buckets)

    def _peeked(self, is_left: bool) -> Iterator[Frame]:
        """Give a segment without items that hands on what `peek` steps saw of a side that is not read again."""
        if self._has_peeked[is_left]:
            frame = self._frame(is_left)
            yield Frame(frame.frame.where(f"channel > {ITEMS}"), frame.partitions)

    def shuffled(self, left_first: bool, meet: Callable[..., Iterator[Any]]) -> Flow:
        """Let both sides meet by key, one side before the other one in each partition."""
        first, second = (
            self._rows(left_first, 0),
            self._rows(not left_first, self._flows[left_first].count_partitions()),
        )
        rows = first.union(self._cluster.beside(second, self._targets))
        frame = Frame(self._cluster.shuffled(rows, self._targets), self._targets, read_buckets)
        return Flow((frame.pipe(functools.partial(meet, self._targets)),))

    def _rows(self, is_left: bool, first: int) -> DataFrame:
        return self._kept[is_left] if is_left in self._kept else self._routed(is_left, first)


def _name(is_left: bool) -> str:
    return "left" if is_left else "right"


def join_with(
    payloads: Sequence[bytes],
    matching: Matching,
    step: Step,
    pairs_of: Callable[[Iterator[Any]], Iterator[Any]],
    items: Iterator[Any],
    task: Task,
) -> Iterator[Any]:
    """Join the items of one side, as they pass, with the whole of the other one."""
    with naming(step):
        held = index_of(_pairs((0, loads(payload)) for payload in payloads))
        yield from matching.entries(held, pairs_of(items))


def join_batches(matching: Matching, step: Step, targets: int, batches: Batches, task: Task) -> Iterator[Any]:
    """Join the two sides that met in one partition, the one that is held first."""
    with naming(step):
        held, passing = _two_sides(targets, batches)
        yield from matched(_pairs(held), _pairs(passing), matching, task.bound)


def cogroup_batches(step: Step, targets: int, batches: Batches, task: Task) -> Iterator[Any]:
    """Group the two sides that met in one partition, the left one first."""
    with naming(step):
        lefts, rights = _two_sides(targets, batches)
        yield from cogrouped(_pairs(lefts), _pairs(rights), task.bound)


def _two_sides(targets: int, batches: Batches) -> tuple[Batches, Batches]:
    """Return the batches of the side that comes first, and those of the other one, asked for afterwards.

    `more_itertools.before_and_after` (11.2) does the same with `tee`, which keeps all of the second side in memory as
    long as somebody has the first iterator.
    """
    behind: list[tuple[int, tuple[list[Any], list[Any]]]] = []

    def first() -> Batches:
        for batch in batches:
            if batch[0] >= targets:
                behind.append(batch)
                return
            yield batch

    def second() -> Batches:
        while behind:
            yield behind.pop()
        yield from batches

    return first(), second()


def _pairs(batches: Iterable[tuple[int, tuple[list[Any], list[Any]]]]) -> Iterator[tuple[Any, Any]]:
    """Give (key, item), with keys that are canonical in this process."""
    return chain.from_iterable(zip(canonical_all(keys), items, strict=True) for _, (keys, items) in batches)
