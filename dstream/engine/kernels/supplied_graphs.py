"""The meta-suppliers of the graphs of a plan get ready in the driver before it runs, and close when it has run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TypeVar

from dstream.executor.ready_suppliers import ReadySuppliers
from dstream.plan.core import Core, End
from dstream.plan.core_of_forks import Several
from dstream.plan.core_of_graphs import Processing
from dstream.plan.graph_parallelism import with_parallelism
from dstream.plan.walk import topological
from dstream.values.contexts import contextmanager

__all__ = ["supplied"]

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
    if not any(isinstance(each, Processing) for each in topological(end)):
        return end
    suggested = cores()
    became: dict[int, Core] = {}
    for each in topological(end):
        made = each.with_inputs([became[id(upstream)] for upstream in each.inputs()]) if each.inputs() else each
        if isinstance(made, Processing):
            graph = suppliers.graph(with_parallelism(made.graph, suggested), made.guarantee)
            made = dataclasses.replace(made, graph=graph)
        became[id(each)] = made
    return became[id(end)]  # type: ignore[return-value]  # what ends a plan becomes the same with other inputs
