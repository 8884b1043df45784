"""Graphs whose last vertex gives results by key to a map: what a pipeline does with such results.

The senders combine what they have of each key and send it to the task that writes the bucket of the key, which combines
and finishes it. The vertex has no processors then, nor has one before it that only accumulates for it: results move no
more, and many keys go to disk. What is counted, and told of failures, belongs to these vertices all the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from dstream.engine.compiler.compile_graphs import in_parts
from dstream.engine.compiler.compile_inputs import in_the_caller
from dstream.engine.compiler.compile_stages import partials
from dstream.engine.compiler.compiling import Compiling, compile_node
from dstream.engine.graph.vertices import Items, piped
from dstream.engine.kernels.groups_of_vertex import Arriving, Sending
from dstream.engine.kernels.stamping import telling
from dstream.plan.core import Chain, Core, Write
from dstream.plan.core_of_graphs import Processing
from dstream.plan.core_of_stages import Aggregate
from dstream.plan.graph_parallelism import with_parallelism
from dstream.plan.last_vertices import LastVertices, groups_of, last_vertices
from dstream.plan.steps import Op
from dstream.plan.vertex_graph import GraphVertex
from dstream.plan.walk import fold
from dstream.spi.processor_suppliers import GroupsByKey

__all__ = ["LastGroups", "last_groups"]


@dataclass(frozen=True, eq=False)
class LastGroups:
    """The results by key of the last vertex of a graph.

    Attributes:
        parts: what the senders have of each key.
        vertex: says how many tasks may make the results.
        groups: how they are made.
        receipts: takes the counts of the edges.
    """

    parts: Items
    vertex: GraphVertex
    groups: GroupsByKey
    receipts: Op


def last_groups(end: Write, compiling: Compiling) -> LastGroups | None:
    """Return what the tasks of a write can make of a graph; None: its processors give what is written.

    Args:
        end: a write of entries, as they come, into a map.
        compiling: the graph of tasks that is being made.
    """
    blocks = end.upstream
    if not isinstance(blocks, Chain) or len(blocks.ops) != 1 or not isinstance(blocks.upstream, Processing):
        return None
    if compiling.facts.is_sequential or not compiling.is_bounded(blocks):
        return None
    node = blocks.upstream
    graph = with_parallelism(node.graph, compiling.facts.cores)
    found = last_vertices(graph)
    if found is None:
        return None
    items = _arriving(blocks, dataclasses.replace(node, graph=found.before), compiling)
    receipts = in_the_caller(telling(node.step, node.take), compiling)
    parts = _parts(blocks, items, found, receipts, compiling)
    return LastGroups(parts, found.last, groups_of(found.last), receipts)


def _arriving(blocks: Chain, before: Processing, compiling: Compiling) -> Items:
    """Return the items of the edge into the vertices: of a source, or of what is left of the graph."""
    graph = blocks.upstream

    def compiled(node: Core, inputs: Sequence[Items]) -> Items:
        if node is graph and before.graph.vertices:
            return in_parts(before, inputs, compiling)
        if node is graph or (node is blocks and not before.graph.vertices):
            return inputs[0]
        return compile_node(node, inputs, compiling)

    return fold(blocks, compiled)


def _parts(blocks: Chain, items: Items, found: LastVertices, receipts: Op, compiling: Compiling) -> Items:
    """Return what the senders have of each key, counted as what the vertices receive and send."""
    first, groups = found.first, groups_of(found.first)
    node = Aggregate((blocks,), groups.operation, (groups.reduction,), True, None, step=first.step)
    arriving = piped(items, None, Arriving(first.name, receipts, first.step))
    parts = partials(node, [arriving], compiling)
    return parts if first is found.last else piped(parts, None, Sending(first.name, found.last.name, receipts))
