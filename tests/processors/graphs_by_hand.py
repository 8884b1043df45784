"""Processors, vertices and edges for tests of the executor."""

from __future__ import annotations

from typing import Any

from dstream.plan.processor_graph import GraphEdge, GraphVertex, VertexGraph
from dstream.plan.steps import Step
from dstream.processors.blocks import items_of_outlet
from dstream.processors.graph_execution import GraphExecution
from dstream.spi.processor import Processor
from dstream.spi.suppliers import meta_supplier


class Mapped(Processor):
    """Gives what a function makes of each item."""

    def __init__(self, fn):
        self.fn = fn

    def init(self, outbox, context):
        """Keep both."""
        self.outbox, self.context = outbox, context

    def process(self, ordinal, inbox):
        """Give one for each."""
        while len(inbox):
            if not self.outbox.offer(self.fn(inbox.peek())):
                return
            inbox.remove()


class Source(Processor):
    """Gives items, as many as the outbox takes in one call."""

    def __init__(self, items):
        self.left = list(items)

    def init(self, outbox, context):
        """Keep the outbox."""
        self.outbox = outbox

    def complete(self):
        """Give what is left."""
        del self.left[: self.outbox.offer_all(self.left)]
        return not self.left


class Log(Processor):
    """Gives what it is told, with its number."""

    def init(self, outbox, context):
        """Keep both."""
        self.outbox, self.index = outbox, context.index

    def process(self, ordinal, inbox):
        """Tell of items."""
        for item in inbox:
            assert self.outbox.offer((self.index, ordinal, item))

    def try_process_watermark(self, watermark):
        """Tell of time."""
        return self.outbox.offer((self.index, "watermark", watermark.timestamp))

    def complete_edge(self, ordinal):
        """Tell of an edge that ended."""
        return self.outbox.offer((self.index, "end of", ordinal))

    def complete(self):
        """Tell of the end."""
        return self.outbox.offer((self.index, "end", None))


class Summing(Processor):
    """Keeps a sum by key, and gives all of them at the end."""

    def __init__(self):
        self.sums = {}

    def init(self, outbox, context):
        """Keep the outbox."""
        self.outbox = outbox

    def process(self, ordinal, inbox):
        """Add."""
        for key, value in inbox:
            self.sums[key] = self.sums.get(key, 0) + value

    def save_to_snapshot(self):
        """Save each sum."""
        return all(self.outbox.offer_to_snapshot(key, total) for key, total in self.sums.items())

    def restore_from_snapshot(self, inbox):
        """Take the sums back."""
        self.sums.update(inbox.drain())

    def complete(self):
        """Give the sums."""
        return self.outbox.offer(dict(self.sums))


def vertex(name: str, create: Any, parallelism: int = 1) -> GraphVertex:
    """Return a vertex."""
    return GraphVertex(name, meta_supplier(create), parallelism, Step(f"vertex {name!r}", None, 1, 1))


def edge(source: str, destination: str, source_ordinal: int = 0, ordinal: int = 0, **options: Any) -> GraphEdge:
    """Return an edge."""
    return GraphEdge(source, source_ordinal, destination, ordinal, **options)


def graph_of(vertices: list[GraphVertex], edges: list[GraphEdge]) -> VertexGraph:
    """Return a graph."""
    return VertexGraph(tuple(vertices), tuple(edges))


def run_of(vertices: list[GraphVertex], edges: list[GraphEdge], arrivals: Any = (), **options: Any) -> list[Any]:
    """Run a graph to its end, and return the items of its first outlet."""
    run = GraphExecution(graph_of(vertices, edges), {each.name: each.parallelism for each in vertices}, **options)
    blocks = list(run.run(iter(arrivals)))
    run.close()
    return list(items_of_outlet(0, blocks))
