"""What gatherers become on Spark."""

from __future__ import annotations

from collections.abc import Sequence

from dstream.engine import gathering as gathering  # registers what each partition runs
from dstream.engine.kernels import operation
from dstream.engine.spark.flow import Flow, rows_of
from dstream.engine.spark.lowering.registry import Lowering, lower_across, lower_node, step_of
from dstream.engine.spark.lowering.streams import in_one_place_or_across
from dstream.engine.spark.neighbours import ahead, at_end, by_place, in_one_task, integrated, running
from dstream.engine.spark.sinks import WriteItems
from dstream.plan import Chain, Configure, Gather, Node, Op, Parallel, Read, Unordered, unchanged
from dstream.spi import AtEnd, ByPlace, ItemWise, Running

__all__ = ["reads_ahead"]


@lower_node.register
def _(node: Gather, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    if isinstance(node.gatherer.parallel, ItemWise):
        return inputs[0].pipe(operation(node))
    return in_one_place_or_across(node, inputs[0], lowering)


@lower_across.register
def _(node: Gather, flow: Flow, lowering: Lowering) -> Flow:
    gatherer, step, whole, cluster = node.gatherer, step_of(node), operation(node), lowering.cluster
    match gatherer.parallel:
        case ByPlace() as kind if reads_ahead(node):
            return ahead(kind, flow)
        case ByPlace() as kind:
            return by_place(kind, whole, flow, cluster.doing(step, "what its neighbours need"))
        case Running() as kind:
            return running(kind, whole, step, flow, cluster.doing(step, "the values between partitions"))
        case AtEnd() as kind:
            return at_end(gatherer, kind, step, flow, cluster)
    if gatherer.combiner is not None:
        return integrated(gatherer, step, flow, cluster.doing(step, "where it ends"))
    return in_one_task(rows_of(flow, WriteItems(), cluster), whole, cluster)


def reads_ahead(node: Gather) -> bool:
    """Say whether each partition may read the items that follow it itself, since nothing of the user's makes them."""
    kind = node.gatherer.parallel
    upstream: Node = node.upstream
    while isinstance(upstream, Chain | Unordered | Parallel | Configure):
        if isinstance(upstream, Chain) and not all(map(_is_unseen, upstream.ops)):
            return False
        upstream = upstream.upstream
    is_free = isinstance(upstream, Read) and getattr(upstream.source, "is_free_to_read", False)
    return is_free and isinstance(kind, ByPlace) and kind.gather_ahead is not None


def _is_unseen(op: Op) -> bool:
    """Say whether nobody can tell that a step ran twice on a number."""
    return op.action == "map" and any(op.fn is fn for fn in (unchanged, float, int, str, abs))
