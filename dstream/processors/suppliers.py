"""The meta-suppliers of the graphs of a plan in the driver, from `init` to `close`."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from dstream.base.threads import contextmanager
from dstream.failures import naming
from dstream.plan.operations.ends import End, Several
from dstream.plan.operations.streams import Node
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import GraphVertex, VertexGraph, with_parallelism
from dstream.plan.walk import fold, topological
from dstream.processors.graph_execution import HERE
from dstream.spi.suppliers import MetaSupplierContext, ProcessorMetaSupplier, supplier_at

__all__ = ["ReadySuppliers", "supplied"]


_log = logging.getLogger("dstream.core")


class ReadySuppliers:
    """Suppliers that were called, for as long as their processors run."""

    def __init__(self) -> None:
        self._ready: list[GraphVertex] = []

    def graph(self, graph: VertexGraph, guarantee: str) -> VertexGraph:
        """Return a graph whose suppliers may be sent: its meta-suppliers return them for the only member.

        Args:
            graph: a graph whose vertices have their numbers of processors.
            guarantee: the guarantee that suppliers see.

        Raises:
            Exception: the error of a meta-supplier, with its vertex.
        """
        return VertexGraph(tuple(self._asked(vertex, guarantee) for vertex in graph.vertices), graph.edges)

    def _asked(self, vertex: GraphVertex, guarantee: str) -> GraphVertex:
        with naming(vertex.step):
            # Before `init`: a supplier that fails in it is closed, too.
            self._ready.append(vertex)
            vertex.supplier.init(MetaSupplierContext(vertex.name, vertex.parallelism, guarantee))
            supplier = supplier_at(HERE, vertex.supplier)
            return dataclasses.replace(vertex, supplier=ProcessorMetaSupplier.of(supplier))

    def close(self, error: BaseException | None) -> None:
        """Close them; their errors are logged.

        Args:
            error: why the run failed; None if it did not.
        """
        ready, self._ready = self._ready, []
        for vertex in ready:
            try:
                vertex.supplier.close(error)
            except Exception:
                _log.exception("close() of the meta-supplier of the vertex %r failed", vertex.name)


E = TypeVar("E", bound=End | Several)


@contextmanager
def supplied(end: E, cores: Callable[[], int]) -> Iterator[E]:
    """Yield a plan whose vertices have suppliers that may be sent, for as long as it runs.

    Args:
        end: the end of the plan.
        cores: returns the number of processors of a vertex that sets none; called if there is a graph.

    Raises:
        Exception: the error of a meta-supplier, with its vertex; errors of `close` are logged.
    """
    suppliers = ReadySuppliers()
    failed: BaseException | None = None
    try:
        yield _supplied(end, cores, suppliers)
    except BaseException as error:
        failed = error
        raise
    finally:
        suppliers.close(failed)


def _supplied(end: E, cores: Callable[[], int], suppliers: ReadySuppliers) -> E:
    if not any(isinstance(each, ProcessorGraph) for each in topological(end)):
        return end
    suggested = cores()

    def ready(node: Node, inputs: Sequence[Node]) -> Node:
        if not isinstance(node, ProcessorGraph):
            return node.reading(inputs)
        graph = suppliers.graph(with_parallelism(node.graph, suggested), node.guarantee)
        return node.with_inputs(inputs, graph=graph)

    return cast(E, fold(end, ready))
