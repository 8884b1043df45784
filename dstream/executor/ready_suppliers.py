"""`ReadySuppliers`: the meta-suppliers of graphs in the driver, from when they get ready to when they close."""

from __future__ import annotations

import dataclasses
import logging

from dstream.executor.graph_run import HERE
from dstream.failures import naming
from dstream.plan.vertex_graph import GraphVertex, VertexGraph
from dstream.spi.processor_suppliers import MetaSupplierContext, ProcessorMetaSupplier, supplier_at

__all__ = ["ReadySuppliers"]

_log = logging.getLogger("dstream.core")


class ReadySuppliers:
    """Those that were asked, for as long as what they gave runs."""

    def __init__(self) -> None:
        self._ready: list[GraphVertex] = []

    def graph(self, graph: VertexGraph, guarantee: str) -> VertexGraph:
        """Return a graph whose suppliers may travel: those that its meta-suppliers give the one member.

        Args:
            graph: whose vertices say how many processors they have.
            guarantee: what suppliers are told.

        Raises:
            Exception: what a meta-supplier raised, with its vertex.
        """
        return VertexGraph(tuple(self._asked(vertex, guarantee) for vertex in graph.vertices), graph.edges)

    def _asked(self, vertex: GraphVertex, guarantee: str) -> GraphVertex:
        with naming(vertex.step):
            self._ready.append(vertex)
            vertex.supplier.init(MetaSupplierContext(vertex.name, vertex.parallelism, guarantee))
            supplier = supplier_at(HERE, vertex.supplier)
            return dataclasses.replace(vertex, supplier=ProcessorMetaSupplier.of(supplier))

    def close(self, error: BaseException | None) -> None:
        """Close them; what they raise is logged.

        Args:
            error: why the run failed; None if it did not.
        """
        ready, self._ready = self._ready, []
        for vertex in ready:
            try:
                vertex.supplier.close(error)
            except Exception:
                _log.exception("close() of the meta-supplier of the vertex %r failed", vertex.name)
