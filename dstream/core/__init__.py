"""The Core API: graphs of processors, for authors of vertices.

`dag` and `vertices` define the graph; `abstract_processor`, `block_processor` and `traversers` the base classes of
processors, `suppliers` a short form for simple ones. `processors` is the library; `plan` makes the plan of a graph.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dstream.core import processors
    from dstream.core.abstract_processor import AbstractProcessor, FlatMapper
    from dstream.core.dag import DAG
    from dstream.core.suppliers import force_total_parallelism_one, processor_of
    from dstream.core.traversers import AppendableTraverser, ResettableSingletonTraverser, Traverser, lazy, traverse
    from dstream.core.vertices import Edge, EdgeConfig, Vertex
    from dstream.plan.processor_graph import Routing
    from dstream.spi.processor import BroadcastKey, Inbox, Outbox, Processor, ProcessorContext, Watermark
    from dstream.spi.suppliers import MetaSupplierContext, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
    from dstream.values.entries import constant_key, entry_key, entry_value, whole_item

__all__ = [
    "DAG",
    "AbstractProcessor",
    "AppendableTraverser",
    "BroadcastKey",
    "Edge",
    "EdgeConfig",
    "FlatMapper",
    "Inbox",
    "MetaSupplierContext",
    "Outbox",
    "Processor",
    "ProcessorContext",
    "ProcessorMetaSupplier",
    "ProcessorSupplier",
    "ResettableSingletonTraverser",
    "Routing",
    "SupplierContext",
    "Traverser",
    "Vertex",
    "Watermark",
    "constant_key",
    "entry_key",
    "entry_value",
    "force_total_parallelism_one",
    "lazy",
    "processor_of",
    "processors",
    "traverse",
    "whole_item",
]


_HOMES = {
    "DAG": "dag",
    "AbstractProcessor": "abstract_processor",
    "AppendableTraverser": "traversers",
    "Edge": "vertices",
    "EdgeConfig": "vertices",
    "FlatMapper": "abstract_processor",
    "ResettableSingletonTraverser": "traversers",
    "Traverser": "traversers",
    "Vertex": "vertices",
    "force_total_parallelism_one": "suppliers",
    "lazy": "traversers",
    "processor_of": "suppliers",
    "traverse": "traversers",
}
"""The modules of this package that have the names."""

_CONTRACTS = {
    "BroadcastKey": "dstream.spi.processor",
    "Inbox": "dstream.spi.processor",
    "MetaSupplierContext": "dstream.spi.suppliers",
    "Outbox": "dstream.spi.processor",
    "Processor": "dstream.spi.processor",
    "ProcessorContext": "dstream.spi.processor",
    "ProcessorMetaSupplier": "dstream.spi.suppliers",
    "ProcessorSupplier": "dstream.spi.suppliers",
    "Routing": "dstream.plan.processor_graph",
    "SupplierContext": "dstream.spi.suppliers",
    "Watermark": "dstream.spi.processor",
    "constant_key": "dstream.values.entries",
    "entry_key": "dstream.values.entries",
    "entry_value": "dstream.values.entries",
    "whole_item": "dstream.values.entries",
}
"""The modules below that have the others."""

if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> Any:
        """Import the module of a name on first use: a worker that runs processors needs only some of them."""
        home = f"{__name__}.{_HOMES[name]}" if name in _HOMES else _CONTRACTS.get(name)
        if home is None:
            if name == "processors":
                return import_module(f"{__name__}.processors")
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(home), name)
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
