"""Terminal operations, compiled: collectors, grouped results and writes, also of graphs of processors.

A graph of processors whose last vertex writes results by key has no processors for it: the senders combine the items of
each key and send them to the task that writes the bucket of the key, which combines and finishes them. The same applies
to a vertex before it that only accumulates. Counts and failures are still attributed to these vertices.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, cast

from dstream.base.records import record
from dstream.engine.compiler.evaluation import collector_read
from dstream.engine.compiler.gatherers import gives_windows, reads_ahead
from dstream.engine.compiler.inputs import chain_read, in_the_caller
from dstream.engine.compiler.keyed import NO_HOT_KEY, partials
from dstream.engine.compiler.processors import in_parts
from dstream.engine.compiler.walk import ClusterFacts, Compiling, OfOne, called_as, compile_end, compile_node, line_to
from dstream.engine.physical.graph import (
    Assembled,
    Combined,
    Done,
    Each,
    Ending,
    Framed,
    Last,
    Listed,
    Move,
    Nothing,
    PartitionCount,
    Pulled,
)
from dstream.engine.physical.vertices import (
    Evaluation,
    Items,
    Rows,
    Splits,
    Taken,
    Vertex,
    is_one_task,
    one_by_one,
    piped,
)
from dstream.engine.tasks.gatherers import AccumulateAcross, AccumulateInside, Bordering
from dstream.engine.tasks.readers import combine_groups, read_batches, read_buckets
from dstream.engine.tasks.routing import RouteGroups
from dstream.engine.tasks.sinks import (
    Accumulate,
    Act,
    RoutePartialsToBuckets,
    RouteToBuckets,
    WriteColumns,
    WriteGroups,
    WriteItems,
)
from dstream.operators.rows.operations import operation, written, written_entries
from dstream.operators.state.watermarks import receipt_step
from dstream.plan.operations.elementwise import Chain, Gather
from dstream.plan.operations.ends import Collect, Columns, ForEachPartition, Loop, Partitions, ToList, Write
from dstream.plan.operations.keyed import Aggregate
from dstream.plan.operations.sort_limit import Limit, Skip
from dstream.plan.operations.streams import Concat, Hint, Node, Read
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import GraphVertex, LastVertices, groups_of, last_vertices, with_parallelism
from dstream.plan.properties import guards_of, is_bounded
from dstream.plan.steps import Op
from dstream.plan.walk import fold, topological
from dstream.processors.groups import GroupInput, GroupShuffle, WritingResults
from dstream.spi import ByPlace, Collector, MapWriter, Writer
from dstream.spi.suppliers import GroupsByKey

__all__ = ["FEW", "Apart", "LastGroups", "last_groups", "reads_only", "reduced_apart"]


@record(slots=False, eq=False)
class LastGroups:
    """The results by key of the last vertex of a graph.

    Attributes:
        parts: what the senders have of each key.
        vertex: has the number of tasks that may make the results.
        groups: how they are made.
        receipts: takes the counts of the edges.
    """

    parts: Items
    vertex: GraphVertex
    groups: GroupsByKey
    receipts: Op


def last_groups(end: Write, compiling: Compiling) -> LastGroups | None:
    """Return the groups that the tasks of a write can finish; None: the graph's processors emit the output.

    Args:
        end: a write of unchanged entries into a map.
        compiling: the graph of tasks that is being made.
    """
    blocks = end.upstream
    if not isinstance(blocks, Chain) or len(blocks.ops) != 1 or not isinstance(blocks.upstream, ProcessorGraph):
        return None
    # One task runs the whole graph then, and there is no shuffle to save.
    if compiling.facts.is_sequential or not compiling.is_bounded(blocks):
        return None
    node = blocks.upstream
    graph = with_parallelism(node.graph, compiling.facts.cores)
    found = last_vertices(graph)
    if found is None:
        return None
    items = _arriving(blocks, dataclasses.replace(node, graph=found.before), compiling)
    receipts = in_the_caller(receipt_step(node.step, node.take), compiling)
    parts = _parts(blocks, items, found, receipts, compiling)
    return LastGroups(parts, found.last, groups_of(found.last), receipts)


def _arriving(blocks: Chain, before: ProcessorGraph, compiling: Compiling) -> Items:
    """Return the items of the edge into the vertices: of a source, or of the rest of the graph."""
    graph = blocks.upstream

    def compiled(node: Node, inputs: Sequence[Items]) -> Items:
        if node is graph and before.graph.vertices:
            return in_parts(before, inputs, compiling)
        if node is graph or (node is blocks and not before.graph.vertices):
            return inputs[0]
        return compile_node(node, inputs, compiling)

    return fold(blocks, compiled)


def _parts(blocks: Chain, items: Items, found: LastVertices, receipts: Op, compiling: Compiling) -> Items:
    """Return the senders' part of each key, counted as the input and output of the vertices."""
    first, groups = found.first, groups_of(found.first)
    node = Aggregate((blocks,), groups.operation, (groups.reduction,), True, None, step=first.step)
    arriving = piped(items, None, GroupInput(first.name, receipts, first.step))
    parts = partials(node, [arriving], compiling)
    return parts if first is found.last else piped(parts, None, GroupShuffle(first.name, found.last.name, receipts))


FEW = 10_000
"""The largest number of items that are sent to the caller at once."""


@compile_end.register
def _(end: ToList, compiling: Compiling) -> Ending:
    skipped, limit = _page(end.upstream)
    if limit is not None:
        # Pulled in waves, so that partitions after the limit do not run.
        return Pulled(compiling.items_of(limit.upstream), limit, skipped, True)
    return Last(Vertex(compiling.items_of(end.upstream), WriteItems(), end.step), Listed())


@compile_end.register
def _(end: Loop, compiling: Compiling) -> Ending:
    ends = compiling.is_bounded(end.upstream)
    skipped, limit = _page(end.upstream) if ends else (0, None)
    last = end.upstream if limit is None else limit.upstream
    return Pulled(compiling.items_of(last), limit, skipped, ends)


def _page(last: Node) -> tuple[int, Limit | None]:
    """Return how many items to leave out before a limit, and the limit, if a plan ends in these two."""
    # The skipped items are sent to the caller too, so that many of them are left out by tasks instead.
    if isinstance(last, Skip) and last.count <= FEW and isinstance(last.upstream, Limit):
        return last.count, last.upstream
    return 0, last if isinstance(last, Limit) else None


@compile_end.register
def _(end: Partitions, compiling: Compiling) -> Ending:
    items = compiling.items_of(end.upstream)
    return Each(items) if compiling.is_bounded(end.upstream) else Pulled(items, None, 0, False)


@compile_end.register
def _(end: ForEachPartition, compiling: Compiling) -> Ending:
    return Last(Vertex(compiling.items_of(end.upstream), Act(end.action, end.step), end.step), Nothing())


@compile_end.register
def _(end: Columns, compiling: Compiling) -> Ending:
    columns = Vertex(compiling.items_of(end.upstream), WriteColumns(end.step), end.step)
    return Last(columns, Framed(end.is_frame))


@compile_end.register
def _(end: Collect, compiling: Compiling) -> Ending:
    collector, decided = _collector_read(end.collector, compiling)
    end = dataclasses.replace(end, collector=collector)
    apart = None if _has_letters(compiling.root) else reduced_apart(end.upstream, end.collector)
    if apart is not None:
        behind = tuple(chain_read(chain, compiling) for chain in apart.behind)
        return compiling.decide(ReducedApart(compiling.items_of(apart.gather.upstream), apart, end, behind, decided))
    items = compiling.items_of(end.upstream)
    if end.collector.keyed is None:
        return _one_container_each(items, end, decided)
    if is_one_task(items):
        return _in_one_task(items, end, decided)
    return compiling.decide(Groups(items, end, compiling.facts, compiling.is_ordered(end.upstream), decided))


def _collector_read(
    collector: Collector[Any, Any, Any], compiling: Compiling
) -> tuple[Collector[Any, Any, Any], Sequence[Evaluation]]:
    """Return a collector with its functions read, if columns can take it, and the decision on each."""
    if not compiling.facts.reads_functions:
        return collector, ()
    return collector_read(collector, compiling.namespaces, is_verified=compiling.facts.columns == "verify")


def _has_letters(root: Node) -> bool:
    return any(guard.treatment == "sent" for guard in guards_of(topological(root)))


def _one_container_each(items: Items, end: Collect, decided: Sequence[Evaluation]) -> Last:
    """Reduce the items of each partition where they are."""
    step = end.step
    reduced = Vertex(items, Accumulate(end.collector, step), step, notes=(_COMBINES,), decided=decided)
    return Last(reduced, Combined(end.collector))


_COMBINES = "each task combines its items into one container"


def _in_one_task(items: Items, end: Collect, decided: Sequence[Evaluation]) -> Last:
    """Reduce the items of the only partition: groups that may be tables are finished there, in columns."""
    collector, step = end.collector, end.step
    if not _may_be_tables(collector):
        return _one_container_each(items, end, decided)
    finished = Vertex(items, WriteGroups(collector, step), step, notes=(_FINISHES,), decided=decided)
    return Last(finished, Assembled(collector, is_ordered=False))


def _may_be_tables(collector: Collector[Any, Any, Any]) -> bool:
    known = collector.on_columns()
    if known is None or known.expression is None or known.downstream is None:
        return False
    return collector.keyed is not None and known.downstream.makes_containers


_FINISHES = "the only task combines and finishes each key"


@record(slots=False, eq=False)
class Groups(OfOne):
    """Each group is combined in the task where the shuffle puts it; the caller gets one finished value for each."""

    end: Collect
    facts: ClusterFacts
    is_ordered: bool
    decided: Sequence[Evaluation] = ()

    counts = True

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        (items,), (several,), collector, step = inputs, partitions, self.end.collector, self.end.step
        # One task has every item of a key already, so a shuffle would only cost.
        if several == 1 or collector.keyed is None:
            return Done(last=_in_one_task(items, self.end, self.decided))
        targets = self.facts.targets(several or 0)
        routed = Vertex(items, RouteGroups(collector, targets, step), step, decided=self.decided)
        why = "each task first combines what it has of each key; the parts of a key meet in one place"
        met = Rows((Taken(routed),), targets, read_batches, is_ordered=False, why=why, notes=(NO_HOT_KEY,))
        combine = functools.partial(combine_groups, collector.keyed.downstream, step)
        groups = piped((met,), self.end, combine, "combines and finishes each key")
        return Done(last=Last(Vertex(groups, WriteItems(), step), Assembled(collector, self.is_ordered)))


@compile_end.register
def _(end: Write, compiling: Compiling) -> Ending:
    grouped = _results_written_as_they_are(end)
    if grouped is not None:
        parts = partials(grouped, [compiling.items_of(grouped.upstreams[0])], compiling)
        return compiling.decide(BucketsOfResults(parts, grouped, end, compiling.facts))
    of_vertex = last_groups(end, compiling) if _takes_entries(end) else None
    if of_vertex is not None:
        return compiling.decide(BucketsOfVertex(of_vertex.parts, of_vertex, end))
    items, step = compiling.items_of(end.upstream), end.step
    if end.collector is not None:
        collector, decided = _collector_read(end.collector, compiling)
        end = dataclasses.replace(end, collector=collector)
        return compiling.decide(Buckets(items, end, compiling.facts, decided))
    receipts = piped(items, None, functools.partial(written, cast(Writer, end.writer), step))
    notes, decided = ("each task writes its items, in place",), called_as(end, end.functions, compiling.facts)
    return Last(Vertex(receipts, WriteItems(), step, notes=notes, decided=decided), Listed())


def _results_written_as_they_are(end: Write) -> Aggregate | None:
    """Return the aggregate by key whose entries go into a map as they are: each key is there once, with one value."""
    node = end.upstream
    while isinstance(node, Hint):
        node = node.upstream
    if not _takes_entries(end):
        return None
    is_alone = isinstance(node, Aggregate) and node.is_keyed and node.to is None and len(node.upstreams) == 1
    return node if isinstance(node, Aggregate) and is_alone else None


def _takes_entries(end: Write) -> bool:
    return end.collector is not None and end.collector.keyed is not None and end.collector.keyed.takes_entries


@record(slots=False, eq=False)
class BucketsOfResults(OfOne):
    """The containers of a key meet in the task that writes the bucket of the key: its result moves no more."""

    node: Aggregate
    end: Write
    facts: ClusterFacts

    counts = True

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        (items,), (several,), node = inputs, partitions, self.node
        if several == 1:
            return Buckets(items, self.end, self.facts).begin((piped(items, node, operation(node)),), partitions)
        assert self.end.collector is not None, "entries go through a collector"
        keyed = node.reductions[0].keyed
        assert keyed is not None, "there is a result for each key"
        writer = cast(MapWriter, self.end.writer)
        # A bucket is written by one task, so more tasks than buckets would have nothing to do.
        targets = min(self.facts.targets(several or 0), writer.buckets)
        routed = Vertex(items, RoutePartialsToBuckets(writer, node.step, targets), node.step)
        counted = "no more than the buckets of the map"
        met = Rows((Taken(routed),), targets, read_buckets, is_ordered=False, why=_BUCKETS_MEET, counted=counted)
        results = functools.partial(written_entries, writer, keyed.downstream, node.step, through=self.end.collector)
        buckets = piped((met,), self.end, results, "finishes each key and writes its bucket")
        return Done(last=Last(Vertex(buckets, WriteItems(), self.end.step), Listed()))


@record(slots=False, eq=False)
class BucketsOfVertex(OfOne):
    """The same, for the last vertex of a graph: one task per processor, but at most one per bucket."""

    groups: LastGroups
    end: Write

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        (items,), vertex, step = inputs, self.groups.vertex, self.groups.vertex.step
        keyed = self.groups.groups.reduction.keyed
        assert keyed is not None, "there is a result for each key"
        assert self.end.collector is not None, "entries go through a collector"
        writer = cast(MapWriter, self.end.writer)
        targets = min(vertex.parallelism, writer.buckets)
        routed = Vertex(items, RoutePartialsToBuckets(writer, step, targets), step)
        counted = "one for each processor, no more than the buckets of the map"
        met = Rows((Taken(routed),), targets, read_buckets, is_ordered=False, why=_BUCKETS_MEET, counted=counted)
        made = WritingResults(vertex.name, self.groups.receipts, writer, self.end.collector, keyed.downstream, step)
        buckets = piped((met,), self.end, made, "finishes each key and writes its bucket")
        return Done(last=Last(Vertex(buckets, WriteItems(), self.end.step), Listed()))


_BUCKETS_MEET = "what the tasks have of a key meets in the task that writes its bucket"


@record(slots=False, eq=False)
class Buckets(OfOne):
    """Each group is combined in the task that writes its bucket of the map."""

    end: Write
    facts: ClusterFacts
    decided: Sequence[Evaluation] = ()

    counts = True

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        collector, writer, step = self.end.collector, cast(MapWriter, self.end.writer), self.end.step
        assert collector is not None, "entries come from a collector"
        assert collector.keyed is not None, "it is a keyed one"
        targets = min(self.facts.targets(partitions[0] or 0), writer.buckets)
        routed = Vertex(inputs[0], RouteToBuckets(collector, writer, step, targets), step, decided=self.decided)
        why = "each task first combines what it has of each key; each key goes to its bucket"
        counted = "no more than the buckets of the map"
        met = Rows((Taken(routed),), targets, read_buckets, is_ordered=False, why=why, counted=counted)
        entries = functools.partial(written_entries, writer, collector.keyed.downstream, step)
        buckets = piped((met,), self.end, entries, "combines each key and writes its bucket")
        return Done(last=Last(Vertex(buckets, WriteItems(), step), Listed()))


def reads_only(root: Node) -> bool:
    """Return whether one stage computes the items of a plan, so that its sources can be divided further."""
    return all(isinstance(node, _READING) for node in topological(root))


_READING = (Read, Chain, Concat, Hint)


@record(slots=False)
class Apart:
    """A gatherer whose work inside of a partition can begin before the neighbours are known.

    Attributes:
        gather: its operation.
        kind: its parallel form.
        behind: the downstream operations, each of which needs one item only.
    """

    gather: Gather
    kind: ByPlace[Any, Any]
    behind: tuple[Chain, ...]


def reduced_apart(last: Node, collector: Collector[Any, Any, Any]) -> Apart | None:
    """Return the gatherer whose results are only reduced, if partitions can reduce without their borders.

    With `peek` steps and notes of failures they cannot: their order would be lost.
    """
    *line, node = line_to(last)
    behind = [each for each in line if isinstance(each, Chain)]
    # Groups of windows are as large as the windows, so computing them apart saves nothing.
    if collector.keyed is not None or not isinstance(node, Gather) or not is_bounded(node.upstream):
        return None
    kind = node.gatherer.parallel
    if not isinstance(kind, ByPlace) or kind.gather_ahead is None or reads_ahead(node):
        return None
    if any(op.action == "peek" or op.guards for chain in behind for op in chain.ops):
        return None
    return Apart(node, kind, tuple(reversed(behind)))


@record(slots=False, eq=False)
class ReducedApart(OfOne):
    """A gatherer and its reduction, inside of each partition and then across the borders between them."""

    apart: Apart
    end: Collect
    behind: tuple[tuple[Chain, tuple[Evaluation | None, ...]], ...]
    decided: Sequence[Evaluation] = ()

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        apart, (items,) = self.apart, inputs
        # There is no border to look across.
        if partitions == (1,):
            behind = self._behind(piped(items, apart.gather, operation(apart.gather)))
            return Done(last=_one_container_each(behind, self.end, self.decided))
        step = self.end.step
        bordering = Bordering(
            apart.kind, tuple(operation(node) for node, _ in self.behind), Accumulate(self.end.collector, step)
        )
        windows = gives_windows(apart.kind, in_several=not all(isinstance(each, Splits) for each in items))
        own = self._shown(piped(items, apart.gather, None, "what lies inside of each partition", gives=windows))
        inside = Vertex(own, AccumulateInside(bordering), step, notes=(_COMBINES,), decided=self.decided)
        ends = f"up to {apart.kind.following:,} items from each end of the partitions"
        why = f"the containers, and {ends}, meet in one task"
        met = (Rows((Taken(inside),), 1, iter, why=why),)
        borders = self._shown(
            piped(met, apart.gather, None, "what lies across the borders of partitions", gives=one_by_one())
        )
        across = Vertex(borders, AccumulateAcross(bordering), step, notes=(_BETWEEN,), decided=self.decided)
        return Done(last=Last(across, Combined(self.end.collector)))

    def _behind(self, items: Items) -> Items:
        for node, decided in self.behind:
            items = piped(items, node, operation(node), decided=decided)
        return items

    def _shown(self, items: Items) -> Items:
        """Add the calls after the gatherer, which the sink of the tasks runs."""
        for node, decided in self.behind:
            items = piped(items, node, None, decided=decided)
        return items


_BETWEEN = "what lies across a border has a container of its own, in its place between the others"
