"""What the calls of a gatherer become on Spark.

Calls without a rate and without a cache run where the items are. A rate is shared by the tasks that
may run at once, each with steps of time of its own, so the step runs in no more tasks than there are
cores. For a cache equal items meet in one task, and the results go back to their place.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import itemgetter
from typing import Any

from dstream.engine.batches import Batcher
from dstream.engine.calling import called_once, calls_of
from dstream.engine.kernels import Task, operation
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Flow, Frame, rows_of, segment_rows
from dstream.engine.spark.lowering.registry import Lowering, lower_across, lower_node, step_of
from dstream.engine.spark.lowering.streams import in_one_place_or_across
from dstream.engine.spark.readers import in_place_order, read_places
from dstream.engine.spark.rows import ITEMS, Row
from dstream.engine.spark.sinks import RouteByPlace, Router, WriteItems
from dstream.engine.spark.stage import StageTask
from dstream.failures import naming
from dstream.keys import canonical, check_hash_seed, stable_hash
from dstream.plan import Called, Node, Step, is_bounded, is_ordered, topological

__all__ = ["calls_run_first"]


@lower_node.register
def _(node: Called, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    if not node.calling.is_shared:
        return inputs[0].pipe(operation(node))
    flow = in_one_place_or_across(node, inputs[0], lowering)
    return _kept(flow, node, lowering) if calls_run_first(node, lowering.root) else flow


@lower_across.register
def _(node: Called, flow: Flow, lowering: Lowering) -> Flow:
    if node.calling.cache:
        return _called_once(node, flow, lowering)
    flow = _at_once(flow, lowering.cluster)
    return flow.pipe(operation(replace(node, slots=flow.count_partitions())))


def _kept(flow: Flow, node: Called, lowering: Lowering) -> Flow:
    """Make the calls now and keep the results: several that read them would make them several times at once."""
    cluster = lowering.cluster.doing(step_of(node), "calls, for several that read the results")
    rows = cluster.pinned(rows_of(flow, WriteItems(), cluster))
    cluster.places(rows.where(f"channel = {ITEMS}"))
    return Flow((Frame(rows, flow.count_partitions()),))


def calls_run_first(node: Called, root: Node) -> bool:
    """Say whether calls that have a rate or a cache run in a job of their own: more than one way leads from them on."""
    ways = {id(root): 1}
    for each in reversed(topological(root)):
        for upstream in each.inputs():
            ways[id(upstream)] = ways.get(id(upstream), 0) + ways[id(each)]
    return ways[id(node)] > 1 and is_bounded(node)


def _at_once(flow: Flow, cluster: Cluster) -> Flow:
    """Return the items in no more partitions than can run at once, neighbours together."""
    partitions = flow.count_partitions()
    targets = cluster.cores
    if partitions <= targets:
        return flow
    rows = rows_of(flow, _Together(partitions, targets), cluster)
    return Flow((Frame(cluster.shuffled(rows, targets), targets),))


@dataclass(frozen=True)
class _Together:
    """Write the items for the target that neighbouring partitions share."""

    sources: int
    targets: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        target, sequence = task.partition * self.targets // self.sources, count()
        for size, data in Batcher().batches(items):
            yield Row(target, task.partition, next(sequence), ITEMS, size, data)


def _called_once(node: Called, flow: Flow, lowering: Lowering) -> Flow:
    cluster = lowering.cluster
    sources = flow.count_partitions()
    targets = lowering.targets(sources)
    if node.calling.rate is not None:
        targets = min(targets, cluster.cores)
    routed = cluster.shuffled(rows_of(flow, _RouteByInput(targets, step_of(node)), cluster), targets)
    calls = functools.partial(called_once, calls_of(replace(node, slots=targets)))
    results = Frame(routed, targets, read_places).pipe(calls)
    if not is_ordered(node.upstream):
        return Flow((results.pipe(_without_places),))
    back = cluster.shuffled(segment_rows(results, RouteByPlace(sources, targets), 0, cluster), targets)
    return Flow((Frame(back, targets).pipe(in_place_order),))


@dataclass(frozen=True)
class _RouteByInput:
    """Send (position, item) to the target where equal items meet."""

    targets: int
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        check_hash_seed()
        placed = ((self._target(item), (position, item)) for position, item in enumerate(items))
        with naming(self.step):
            yield from Router(self.targets, task).rows(placed)

    def _target(self, item: Any) -> int:
        return stable_hash(canonical(item)) % self.targets


def _without_places(pairs: Iterator[tuple[Any, Any]], task: Task) -> Iterator[Any]:
    return map(itemgetter(1), pairs)
