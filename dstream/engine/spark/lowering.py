"""Lowering: what each core node becomes on Spark, one handler for each node.

Most nodes need one partition only and are piped onto the stage that reads it. The others run a
first job that leaves its rows where they are, and go on from there: `limit` and its kin to learn
how many items stand before each partition, `sorted` to learn how the keys are spread.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dstream.engine.batches import Batch, Batcher, loads
from dstream.engine.kernels import guarded, operation
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Flow, Frame, Pieces, Splits, joined, rows_of, segment_rows
from dstream.engine.spark.prefixes import after, from_first_failing, up_to, up_to_first_failing
from dstream.engine.spark.readers import first_of_keys, in_place_order, read_batches, read_places
from dstream.engine.spark.rows import SAMPLE
from dstream.engine.spark.shipping import packed_split
from dstream.engine.spark.sinks import RouteByKey, RouteByPlace, RouteByRange, SortRuns, WriteItems
from dstream.engine.spark.stage import Piece
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.pickling import dumps
from dstream.plan import (
    Chain,
    Concat,
    Configure,
    Distinct,
    DropWhile,
    Limit,
    Node,
    Parallel,
    Read,
    Skip,
    Sorted,
    Step,
    TakeWhile,
    Top,
    Unordered,
    fold,
    is_bounded,
    is_ordered,
    parallelism,
)
from dstream.spi import Split

__all__ = ["Lowering", "is_generated"]

_ITEMS_WORTH_A_TARGET = 10_000
_LARGE_SPLIT = 2**20


class Lowering:
    """One plan on its way to Spark.

    Attributes:
        cluster: where it will run.
        actions: what to call in the driver for what each `peek` step saw, by the step's channel.
    """

    def __init__(self, root: Node, cluster: Cluster) -> None:
        self.cluster = cluster
        self.actions: dict[int, tuple[Step, Callable[[Any], object]]] = {}
        self.parallelism = parallelism(root) or cluster.cores
        self.is_sequential = self.parallelism == 1

    def lower(self, root: Node) -> Flow:
        """Return the flow of `root`; a node that several others read from is lowered once."""
        return fold(root, lambda node, inputs: _lower(node, inputs, self))

    def targets(self, partitions: int) -> int:
        """Return in how many partitions to shuffle what stands in `partitions` partitions."""
        return max(1, min(partitions, max(self.parallelism, 3 * self.cluster.cores)))


@functools.singledispatch
def _lower(node: Node, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    raise UnsupportedError(f"the Spark engine does not run {node.label()}")


@_lower.register
def _(node: Read, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    flow = Flow((Splits(Pieces(_pieces(node, lowering.parallelism))),))
    counting = lowering.cluster.counting()
    if counting is not None:
        flow = flow.pipe(counting)
    return flow.in_one_task() if lowering.is_sequential else flow


def _pieces(node: Read, parallelism: int) -> Iterator[Piece]:
    cut = _in_batches if node.source.in_caller else _whole
    with naming(_step(node)):
        for split in node.source.splits(parallelism):
            yield cut(split, node.step)


def _whole(split: Split[Any], step: Step | None) -> Piece:
    return Piece(packed_split(split, step), (), (), step)


def _in_batches(split: Split[Any], step: Step | None) -> Piece:
    """Cut a large split that holds its items itself, so that a worker unpickles a batch at a time."""
    whole = _whole(split, step)
    if whole.split is None or len(whole.split) <= _LARGE_SPLIT:
        return whole
    batches = Batcher().batches(split.read())
    return Piece(None, tuple(Piece(dumps(Batch(data)), (), (), step) for _, data in batches), (), step)


@_lower.register
def _(node: Concat, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    flow = joined(inputs)
    return flow.in_one_task() if lowering.is_sequential else flow


@_lower.register(Unordered)
@_lower.register(Parallel)
@_lower.register(Configure)
def _(node: Node, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    return inputs[0]


@_lower.register
def _(node: Chain, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    ops = []
    for op in node.ops:
        if op.action == "peek":
            lowering.actions[op.step.position] = (op.step, op.fn)
            op = dataclasses.replace(op, fn=_in_the_driver)
        ops.append(op)
    return inputs[0].pipe(operation(dataclasses.replace(node, ops=tuple(ops))))


def _in_the_driver(item: Any) -> None:
    """Stand for the action of a `peek`, which stays in the driver."""


@_lower.register(Limit)
@_lower.register(Skip)
@_lower.register(TakeWhile)
@_lower.register(DropWhile)
@_lower.register(Distinct)
@_lower.register(Sorted)
@_lower.register(Top)
def _(node: Node, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    """Pipe the operation onto the one partition that there is, or run it across several."""
    (flow,) = inputs
    bounded = is_bounded(node.inputs()[0])
    if isinstance(node, Limit) and is_generated(node.upstream) and not lowering.is_sequential:
        return _shared_out(node, flow)
    if not bounded:
        flow = _endless_in_one_task(node, flow)
    return flow.pipe(operation(node)) if flow.has_one_partition() else _across_partitions(node, flow, lowering)


def _endless_in_one_task(node: Node, flow: Flow) -> Flow:
    """Let one task read a flow that does not end, unless a prefix of it, which does end, is wanted."""
    if all(isinstance(segment, Splits) for segment in flow.segments):
        return flow.in_one_task()
    if isinstance(node, Limit | TakeWhile):
        return flow
    raise UnsupportedError(
        f"the Spark engine does not run {node.label()} on an infinite stream that follows one with a shuffle "
        "(sorted, distinct); limit() it before"
    )


def is_generated(node: Node) -> bool:
    """Say whether each partition of `node` is endless by itself: what `generate` makes, step by step."""
    while isinstance(node, Chain | Unordered | Parallel | Configure):
        node = node.upstream
    return isinstance(node, Read) and not (node.source.bounded or node.source.ordered)


def _shared_out(node: Limit, flow: Flow) -> Flow:
    """Let each partition of an infinite unordered stream give its share."""
    pieces = [piece for segment in flow.segments if isinstance(segment, Splits) for piece in segment.pieces]
    shares = [(node.count + index) // len(pieces) for index in range(len(pieces))]
    limited = (
        dataclasses.replace(piece, operations=(*piece.operations, operation(dataclasses.replace(node, count=share))))
        for piece, share in zip(pieces, shares, strict=True)
    )
    return Flow((Splits(Pieces(limited)),))


@functools.singledispatch
def _across_partitions(node: Node, flow: Flow, lowering: Lowering) -> Flow:
    raise UnsupportedError(f"the Spark engine does not run {node.label()} across partitions")


@_across_partitions.register
def _(node: Limit, flow: Flow, lowering: Lowering) -> Flow:
    return up_to(node.count, flow.pipe(operation(node)), lowering.cluster.doing(_step(node), "looking for its end"))


@_across_partitions.register
def _(node: Skip, flow: Flow, lowering: Lowering) -> Flow:
    return after(node.count, flow, lowering.cluster.doing(_step(node), "looking for its start"))


@_across_partitions.register
def _(node: TakeWhile, flow: Flow, lowering: Lowering) -> Flow:
    cluster = lowering.cluster.doing(_step(node), "looking for its end")
    return up_to_first_failing(_step(node).guard(node.predicate), flow, cluster)


@_across_partitions.register
def _(node: DropWhile, flow: Flow, lowering: Lowering) -> Flow:
    cluster = lowering.cluster.doing(_step(node), "looking for its start")
    return from_first_failing(_step(node).guard(node.predicate), flow, cluster)


@_across_partitions.register
def _(node: Distinct, flow: Flow, lowering: Lowering) -> Flow:
    cluster, step, key = lowering.cluster, _step(node), guarded(node)
    sources = flow.count_partitions()
    targets = lowering.targets(sources)
    routed = cluster.shuffled(rows_of(flow, RouteByKey(key, targets, step), cluster), targets)
    ordered = is_ordered(node.upstream)
    firsts = Frame(routed, targets, read_places).pipe(functools.partial(first_of_keys, key, ordered, step))
    if not ordered:
        return Flow((firsts,))
    back = cluster.shuffled(segment_rows(firsts, RouteByPlace(sources, targets), 0, cluster), targets)
    return Flow((Frame(back, targets).pipe(in_place_order),))


@_across_partitions.register
def _(node: Sorted, flow: Flow, lowering: Lowering) -> Flow:
    cluster, step, key = lowering.cluster, _step(node), node.key
    sources = flow.count_partitions()
    runs = cluster.pinned(rows_of(flow, SortRuns(key, node.reverse, step), cluster))
    samples = list(cluster.doing(step, "sample of keys").rows(runs.where(f"channel = {SAMPLE}")))
    kept = runs.where(f"channel <> {SAMPLE}")
    total = sum(row.size for row in samples)
    targets = min(lowering.targets(sources), 1 + total // _ITEMS_WORTH_A_TARGET)
    if targets > 1:
        sample = [item for row in samples for item in loads(row.payload)]
        by_range = RouteByRange(key, node.reverse, sample, targets, step)
        kept = segment_rows(Frame(kept, sources, read_batches), by_range, 0, cluster)
    return Flow((Frame(cluster.shuffled(kept, targets), targets).pipe(operation(node)),))


@_across_partitions.register
def _(node: Top, flow: Flow, lowering: Lowering) -> Flow:
    top, cluster = operation(node), lowering.cluster
    candidates = rows_of(flow.pipe(top), WriteItems(), cluster)
    return Flow((Frame(cluster.shuffled(candidates, 1), 1).pipe(top),))


def _step(node: Node) -> Step:
    assert node.step is not None, "rewrite gives every node its step"
    return node.step
