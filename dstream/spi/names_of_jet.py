"""`NamesOfJet`: a class of the Core API whose names in Hazelcast Jet lead to those that it has here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["NamesOfJet"]

_OTHERWISE = {
    "addEdge": "edge(edge)",
    "addVertex": "vertex(vertex)",
    "getInboundEdges": "inbound_edges(name)",
    "getOutboundEdges": "outbound_edges(name)",
    "newUniqueVertex": "new_vertex(name, supplier)",
    "iterator": "for vertex in dag",
    "toDotString": "to_dot()",
    "getName": "name",
    "getMetaSupplier": "supplier",
    "setMetaSupplier": "update_supplier(change)",
    "updateMetaSupplier": "update_supplier(change)",
    "setLocalParallelism": "local_parallelism(n)",
    "getLocalParallelism": "parallelism",
    "determineLocalParallelism": "parallelism",
    "checkLocalParallelism": "local_parallelism(n)",
    "getSource": "source",
    "getSourceName": "source.name",
    "getSourceOrdinal": "source_ordinal",
    "getDestination": "destination",
    "getDestName": "destination.name",
    "getDestOrdinal": "destination_ordinal",
    "setPriority": "priority(n)",
    "getPriority": "priority_number",
    "getRoutingPolicy": "routing",
    "getPartitioner": "partitioner",
    "getOrderComparator": "order",
    "getConfig": "config",
    "fanout": "unicast()",
    "tryProcess": "tick()",
    "setCooperative": "is_cooperative = False",
    "getLogger": "logger",
    "getOutbox": "outbox",
    "isEmpty": "len(inbox) == 0",
    "size": "len(inbox)",
    "hasReservation": "offer(item), which says whether the item was taken",
}


class NamesOfJet:
    """Raises an AttributeError that says our name for one of Jet's."""

    __slots__ = ()

    if not TYPE_CHECKING:  # A type checker would take it for every name.

        def __getattr__(self, name: str) -> Any:
            ours = re.sub("([A-Z])", lambda found: "_" + found[0].lower(), name)
            if ours == name or not hasattr(type(self), ours):
                ours = _OTHERWISE.get(name)
            if ours is None:
                return object.__getattribute__(self, name)  # This says what is missing, also inside of a property.
            raise AttributeError(f"{type(self).__name__} has no {name!r} of Hazelcast Jet's: here it is {ours}")
