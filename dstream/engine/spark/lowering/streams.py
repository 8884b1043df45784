"""What the nodes of `java.util.stream` become on Spark, one handler for each node.

Most nodes need one partition only and are piped onto the stage that reads it. The others run a
first job that leaves its rows where they are, and go on from there: `limit` and its kin to learn
how many items stand before each partition, `sorted` to learn how the keys are spread.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from dstream.engine.batches import Batch, Batcher, loads
from dstream.engine.kernels import guarded, operation
from dstream.engine.recovering import shipped
from dstream.engine.spark.flow import Flow, Frame, Pieces, Splits, joined, rows_of, segment_rows
from dstream.engine.spark.lowering.registry import Lowering, lower_across, lower_node, step_of
from dstream.engine.spark.prefixes import after, from_first_failing, up_to, up_to_first_failing
from dstream.engine.spark.readers import (
    first_of_keys,
    in_place_order,
    one_of_each_key,
    read_batches,
    read_columns,
    read_places,
)
from dstream.engine.spark.routing import RouteFirstOnes
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
    Union,
    Unordered,
    is_bounded,
    is_ordered,
    topological,
)
from dstream.spi import Held, Split

__all__ = ["in_one_place_or_across", "is_generated", "reads_only"]

_ITEMS_WORTH_A_TARGET = 10_000
_RUNS_LOOKED_AT = 4096
_ITEMS_OF_A_SMALL_PIECE = 16_384
_LARGE_SPLIT = 2**20


@lower_node.register
def _(node: Read, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    flow = Flow((Splits(Pieces(_pieces(node, _divisor(node, lowering)))),))
    counting = lowering.cluster.counting()
    if counting is not None:
        flow = flow.pipe(counting)
    return flow.in_one_task() if lowering.is_sequential else flow


def _divisor(node: Read, lowering: Lowering) -> int:
    """Return into how many splits a source is to be divided."""
    held = node.source.count_items() if lowering.in_small_pieces and isinstance(node.source, Held) else None
    if held is None or held == math.inf:
        return lowering.parallelism
    return max(lowering.parallelism, int(held) // _ITEMS_OF_A_SMALL_PIECE)


def _pieces(node: Read, parallelism: int) -> Iterator[Piece]:
    cut = _in_batches if node.source.in_caller else _whole
    with naming(step_of(node)):
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


@lower_node.register(Union)
@lower_node.register(Concat)
def _(node: Concat, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    flow = joined(inputs)
    return flow.in_one_task() if lowering.is_sequential else flow


@lower_node.register(Unordered)
@lower_node.register(Parallel)
@lower_node.register(Configure)
def _(node: Node, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    return inputs[0]


@lower_node.register
def _(node: Chain, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    ops = []
    for op in node.ops:
        if op.action == "peek":
            lowering.actions[op.step.position] = (op.step, op.fn)
            op = dataclasses.replace(op, fn=_in_the_driver)
        ops.append(shipped(op))
    return inputs[0].pipe(operation(dataclasses.replace(node, ops=tuple(ops))))


def _in_the_driver(item: Any) -> None:
    """Stand for the action of a `peek`, which stays in the driver."""


@lower_node.register(Limit)
@lower_node.register(Skip)
@lower_node.register(TakeWhile)
@lower_node.register(DropWhile)
@lower_node.register(Distinct)
@lower_node.register(Sorted)
@lower_node.register(Top)
def _(node: Node, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    if isinstance(node, Limit) and is_generated(node.upstream) and not lowering.is_sequential:
        return _shared_out(node, inputs[0])
    return in_one_place_or_across(node, inputs[0], lowering)


def in_one_place_or_across(node: Node, flow: Flow, lowering: Lowering) -> Flow:
    """Pipe the operation onto the one partition that there is, or run it across several."""
    if not is_bounded(node.inputs()[0]):
        flow = _endless_in_one_task(node, flow)
    return flow.pipe(operation(node)) if flow.has_one_partition() else lower_across(node, flow, lowering)


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


def reads_only(root: Node) -> bool:
    """Say whether one stage gives the items of a plan, so that dividing its sources further changes nothing else."""
    return all(isinstance(node, _READING) for node in topological(root))


_READING = (Read, Chain, Concat, Union, Unordered, Parallel, Configure)


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


@lower_across.register
def _(node: Limit, flow: Flow, lowering: Lowering) -> Flow:
    return up_to(node.count, flow.pipe(operation(node)), lowering.cluster.doing(step_of(node), "looking for its end"))


@lower_across.register
def _(node: Skip, flow: Flow, lowering: Lowering) -> Flow:
    return after(node.count, flow, lowering.cluster.doing(step_of(node), "looking for its start"))


@lower_across.register
def _(node: TakeWhile, flow: Flow, lowering: Lowering) -> Flow:
    cluster = lowering.cluster.doing(step_of(node), "looking for its end")
    return up_to_first_failing(step_of(node).guard(node.predicate), flow, cluster)


@lower_across.register
def _(node: DropWhile, flow: Flow, lowering: Lowering) -> Flow:
    cluster = lowering.cluster.doing(step_of(node), "looking for its start")
    return from_first_failing(step_of(node).guard(node.predicate), flow, cluster)


@lower_across.register
def _(node: Distinct, flow: Flow, lowering: Lowering) -> Flow:
    cluster, step, key = lowering.cluster, step_of(node), guarded(node)
    sources = flow.count_partitions()
    targets = lowering.targets(sources)
    if not is_ordered(node.upstream):
        routed = cluster.shuffled(rows_of(flow, RouteFirstOnes(node.key, targets, step), cluster), targets)
        return Flow((Frame(routed, targets, read_columns).pipe(functools.partial(one_of_each_key, step)),))
    routed = cluster.shuffled(rows_of(flow, RouteByKey(key, targets, step), cluster), targets)
    firsts = Frame(routed, targets, read_places).pipe(functools.partial(first_of_keys, key, step))
    back = cluster.shuffled(segment_rows(firsts, RouteByPlace(sources, targets), 0, cluster), targets)
    return Flow((Frame(back, targets).pipe(in_place_order),))


@lower_across.register
def _(node: Sorted, flow: Flow, lowering: Lowering) -> Flow:
    cluster, step, key = lowering.cluster, step_of(node), node.key
    sources = flow.count_partitions()
    runs = cluster.pinned(rows_of(flow, SortRuns(key, node.reverse, step), cluster))
    samples = list(cluster.doing(step, "sample of keys").rows(runs.where(f"channel = {SAMPLE}")))
    kept = runs.where(f"channel <> {SAMPLE}")
    total = sum(row.size for row in samples)
    targets = min(lowering.targets(sources), 1 + total // _ITEMS_WORTH_A_TARGET)
    if targets > 1:
        chosen = samples[:: 1 + len(samples) // _RUNS_LOOKED_AT]
        sample = [item for row in chosen for item in loads(row.payload)]
        by_range = RouteByRange(key, node.reverse, sample, targets, step)
        kept = segment_rows(Frame(kept, sources, read_batches), by_range, 0, cluster)
    return Flow((Frame(cluster.shuffled(kept, targets), targets).pipe(operation(node)),))


@lower_across.register
def _(node: Top, flow: Flow, lowering: Lowering) -> Flow:
    top, cluster = operation(node), lowering.cluster
    candidates = rows_of(flow.pipe(top), WriteItems(), cluster)
    return Flow((Frame(cluster.shuffled(candidates, 1), 1).pipe(top),))
