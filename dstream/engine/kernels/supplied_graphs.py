"""What happens to the meta-suppliers of graphs in the driver: they get ready, say what makes processors, and close."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from dstream.executor.graph_run import HERE
from dstream.failures import naming
from dstream.plan.core import Core, End
from dstream.plan.core_of_forks import Several
from dstream.plan.core_of_graphs import Processing
from dstream.plan.graph_parallelism import with_parallelism
from dstream.plan.vertex_graph import GraphVertex, VertexGraph
from dstream.plan.walk import topological
from dstream.spi.processor_suppliers import MetaSupplierContext, ProcessorMetaSupplier
from dstream.values.contexts import contextmanager

__all__ = ["supplied"]

_log = logging.getLogger("dstream.core")

E = TypeVar("E", bound=End | Several)


@contextmanager
def supplied(end: E, cores: Callable[[], int]) -> Iterator[E]:
    """Give a plan whose vertices have suppliers that may travel, for as long as it runs.

    Args:
        end: where the plan ends.
        cores: says how many processors a vertex has that does not say it; asked if there is a graph.

    Raises:
        Exception: what a meta-supplier raised, with its vertex; what `close` raises is logged.
    """
    ready: list[GraphVertex] = []
    failed: BaseException | None = None
    try:
        yield _supplied(end, cores, ready)
    except BaseException as error:
        failed = error
        raise
    finally:
        for vertex in ready:
            try:
                vertex.supplier.close(failed)
            except Exception:
                _log.exception("close() of the meta-supplier of the vertex %r failed", vertex.name)


def _supplied(end: E, cores: Callable[[], int], ready: list[GraphVertex]) -> E:
    if not any(isinstance(each, Processing) for each in topological(end)):
        return end
    suggested = cores()
    became: dict[int, Core] = {}
    for each in topological(end):
        made = each.with_inputs([became[id(upstream)] for upstream in each.inputs()]) if each.inputs() else each
        if isinstance(made, Processing):
            graph = with_parallelism(made.graph, suggested)
            vertices = tuple(_asked(vertex, made.guarantee, ready) for vertex in graph.vertices)
            made = dataclasses.replace(made, graph=VertexGraph(vertices, graph.edges))
        became[id(each)] = made
    return became[id(end)]  # type: ignore[return-value]  # what ends a plan becomes the same with other inputs


def _asked(vertex: GraphVertex, guarantee: str, ready: list[GraphVertex]) -> GraphVertex:
    """Return a vertex with the supplier that its meta-supplier gives the one member."""
    with naming(vertex.step):
        ready.append(vertex)
        vertex.supplier.init(MetaSupplierContext(vertex.name, vertex.parallelism, guarantee))
        supplier = vertex.supplier.get([HERE])(HERE)
        return dataclasses.replace(vertex, supplier=ProcessorMetaSupplier.of(supplier))
