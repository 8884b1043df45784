"""The Core API: graphs of processors, for those who write their own vertices.

`dag`, `vertex` and `edge` have the graph, `abstract_processor` and `traverser` what processors are written with,
`generator_processor` a shorter way to write one. `processors` is the library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dstream.core import processors
    from dstream.core.abstract_processor import AbstractProcessor, FlatMapper
    from dstream.core.dag import DAG
    from dstream.core.edge import Edge, EdgeConfig
    from dstream.core.generator_processor import processor_of
    from dstream.core.key_functions import constant_key, entry_key, entry_value, whole_item
    from dstream.core.single_supplier import force_total_parallelism_one
    from dstream.core.traverser import (
        AppendableTraverser,
        ResettableSingletonTraverser,
        Traverser,
        lazy,
        traverse,
    )
    from dstream.core.vertex import Vertex
    from dstream.plan.vertex_graph import Routing
    from dstream.spi.processor import BroadcastKey, Inbox, Outbox, Processor, ProcessorContext, Watermark
    from dstream.spi.processor_suppliers import (
        MetaSupplierContext,
        ProcessorMetaSupplier,
        ProcessorSupplier,
        SupplierContext,
    )

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
    "AppendableTraverser": "traverser",
    "Edge": "edge",
    "EdgeConfig": "edge",
    "FlatMapper": "abstract_processor",
    "ResettableSingletonTraverser": "traverser",
    "Traverser": "traverser",
    "Vertex": "vertex",
    "constant_key": "key_functions",
    "entry_key": "key_functions",
    "entry_value": "key_functions",
    "force_total_parallelism_one": "single_supplier",
    "lazy": "traverser",
    "processor_of": "generator_processor",
    "traverse": "traverser",
    "whole_item": "key_functions",
}
"""The modules of this package that have the names."""

_CONTRACTS = {
    "BroadcastKey": "dstream.spi.processor",
    "Inbox": "dstream.spi.processor",
    "MetaSupplierContext": "dstream.spi.processor_suppliers",
    "Outbox": "dstream.spi.processor",
    "Processor": "dstream.spi.processor",
    "ProcessorContext": "dstream.spi.processor",
    "ProcessorMetaSupplier": "dstream.spi.processor_suppliers",
    "ProcessorSupplier": "dstream.spi.processor_suppliers",
    "Routing": "dstream.plan.vertex_graph",
    "SupplierContext": "dstream.spi.processor_suppliers",
    "Watermark": "dstream.spi.processor",
}
"""The modules below that have the others."""

if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> Any:
        """Load the module of a name when somebody asks for it: a worker that runs processors needs few of them."""
        home = f"{__name__}.{_HOMES[name]}" if name in _HOMES else _CONTRACTS.get(name)
        if home is None:
            if name == "processors":
                return import_module(f"{__name__}.processors")
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(home), name)
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
