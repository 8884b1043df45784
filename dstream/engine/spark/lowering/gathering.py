"""What gatherers become on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dstream.engine import gathering as gathering  # registers what each partition runs
from dstream.engine.kernels import operation
from dstream.engine.spark.borders import Bordering, containers
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Flow, rows_of
from dstream.engine.spark.lowering.registry import Lowering, lower_across, lower_node, step_of
from dstream.engine.spark.lowering.streams import in_one_place_or_across
from dstream.engine.spark.neighbours import ahead, at_end, by_place, in_one_task, integrated, running
from dstream.engine.spark.sinks import Accumulate, WriteItems
from dstream.plan import Chain, Configure, Gather, Node, Op, Parallel, Read, Unordered, is_bounded, unchanged
from dstream.spi import AtEnd, ByPlace, Collector, ItemWise, Running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Apart", "reads_ahead", "reduced", "reduced_apart"]


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


@dataclass(frozen=True)
class Apart:
    """A gatherer inside of whose partitions the work can begin before the neighbours are known.

    Attributes:
        gather: its node.
        kind: what it does in parallel.
        behind: the nodes behind it, each of which needs one item only.
    """

    gather: Gather
    kind: ByPlace[Any, Any]
    behind: tuple[Chain, ...]


def reduced_apart(last: Node, collector: Collector[Any, Any, Any]) -> Apart | None:
    """Return the gatherer whose results are only reduced, if they can be so apart from those across borders.

    What `peek` steps see and what is noted of failures would not be in order then.
    """
    behind: list[Chain] = []
    node = last
    while isinstance(node, Chain | Unordered | Parallel | Configure):
        if isinstance(node, Chain):
            behind.append(node)
        node = node.upstream
    if collector.keyed is not None or not isinstance(node, Gather) or not is_bounded(node.upstream):
        return None
    kind = node.gatherer.parallel
    if not isinstance(kind, ByPlace) or kind.gather_ahead is None or reads_ahead(node):
        return None
    if any(op.action == "peek" or op.guards for chain in behind for op in chain.ops):
        return None
    return Apart(node, kind, tuple(reversed(behind)))


def reduced(apart: Apart, flow: Flow, sink: Accumulate, cluster: Cluster) -> DataFrame:
    """Return the rows with the containers of what `apart` makes of a flow, in order."""
    behind = tuple(map(operation, apart.behind))
    if flow.has_one_partition():
        for each in (operation(apart.gather), *behind):
            flow = flow.pipe(each)
        return rows_of(flow, sink, cluster)
    return containers(flow, Bordering(apart.kind, behind, sink), cluster)
