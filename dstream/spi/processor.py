"""`Processor`: the code of a vertex, with its inbox, outbox and context; Jet names for hints.

The names, and the order of the calls, are those of Hazelcast Jet 0.6. A method that returns a bool returns True when it
is done; False requests another call, as when the outbox is full. `dstream.core.AbstractProcessor` implements most of
this.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dstream.base.records import record
from dstream.errors import UnsupportedError

__all__ = [
    "SHARDS",
    "BroadcastKey",
    "Inbox",
    "NamesOfJet",
    "Outbox",
    "Overflow",
    "Processor",
    "ProcessorContext",
    "ShardKey",
    "Targets",
    "Watermark",
]


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
    """Base class whose AttributeError for a name of Jet's suggests the name in dstream."""

    __slots__ = ()

    if not TYPE_CHECKING:  # A type checker would accept it for every name.

        def __getattr__(self, name: str) -> Any:
            ours = re.sub("([A-Z])", lambda found: "_" + found[0].lower(), name)
            # Of the class: on the object, a property would run, and may fail.
            if ours == name or not hasattr(type(self), ours):
                ours = _OTHERWISE.get(name)
            if ours is None:
                return object.__getattribute__(self, name)  # This reports what is missing, also inside of a property.
            raise AttributeError(f"{type(self).__name__} has no {name!r} of Hazelcast Jet's: here it is {ours}")


SHARDS = 64
"""The number of shards of the keys of a vertex; `dstream.keys.hashing` computes which one a key belongs to."""

Targets = int | Sequence[int] | None
"""Ordinals of the outbound edges that receive an item; None: all edges."""


@dataclass(frozen=True, slots=True, order=True)
class Watermark:
    """Mark that no event before a timestamp is expected any more; it is sent among the items.

    Attributes:
        timestamp: in milliseconds.
    """

    timestamp: int


@dataclass(frozen=True, slots=True)
class BroadcastKey:
    """A key of a snapshot that belongs to no key of items: it does not move with them.

    Attributes:
        key: unique among the keys that one processor saves.
    """

    key: Hashable


@record
class ShardKey:
    """A key of a snapshot for all that a processor stores of the keys of one shard: it is sent where these keys are.

    That is processor `target_of(shard, SHARDS, total_parallelism)` of its vertex, as a partitioned edge with
    the default partitioner has it.

    Attributes:
        shard: from 0 up to `SHARDS`.
    """

    shard: int


class Inbox(Protocol):
    """The pending items of a processor. Items that it leaves are passed again in the next call."""

    def peek(self) -> Any:
        """Return the first item without removing it; None if the inbox is empty."""
        ...

    def poll(self) -> Any:
        """Remove and return the first item; None if the inbox is empty."""
        ...

    def remove(self) -> None:
        """Remove the first item.

        Raises:
            IndexError: there is none.
        """
        ...

    def drain(self) -> list[Any]:
        """Remove and return all items, in order."""
        ...

    def drain_to(self, take: Callable[[Any], object]) -> int:
        """Remove all items, pass each to a function, and return their number."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Remove and yield items, one after another; a failure is attributed to the last one."""
        ...

    def __len__(self) -> int: ...


class Outbox(Protocol):
    """The output of a processor: a bucket for each outbound edge, and one for its snapshot.

    After `offer` or `offer_to_snapshot` has returned False, nothing else may be offered before the processor has
    returned, and then the same item first.
    """

    @property
    def bucket_count(self) -> int:
        """The number of outbound edges."""
        ...

    def offer(self, item: Any, to: Targets = None) -> bool:
        """Put an item into buckets, or into none of them if one is full.

        Args:
            item: not None.
            to: the ordinals of the edges; None: all.

        Returns:
            Whether the item was accepted. Without an outbound edge, it always is.

        Raises:
            TypeError: the item is None.
            ValueError: there is no edge of that ordinal.
            IllegalStateError: another item was refused before, and is to be offered again.
        """
        ...

    def offer_all(self, items: Sequence[Any], to: Targets = None) -> int:
        """Put the first items of a block, as far as they fit, into buckets, and return their number.

        Costs much less than an `offer` for each. Items that were not accepted are to be offered again, in order.

        Raises:
            As `offer`.
        """
        ...

    def offer_to_snapshot(self, key: Any, value: Any) -> bool:
        """Put an entry into the snapshot; allowed inside of `save_to_snapshot` alone.

        Raises:
            IllegalStateError: no snapshot is being taken, or another key was refused before.
            ValueError: the processor has saved this key already.
        """
        ...


class Overflow(Protocol):
    """Spill of groups that do not fit into the memory of a process; returns them combined, once."""

    def is_due(self) -> bool:
        """Return whether the process occupies more than it may."""
        ...

    def take(self, groups: dict[Any, Any]) -> None:
        """Put containers by key on disk, and leave none of them."""
        ...

    def combined(self, groups: dict[Any, Any], combine: Callable[[Any, Any], Any]) -> Iterator[tuple[Any, ...]]:
        """Yield (key, container) of these groups, and of all spilled groups; in any order, if groups were spilled."""
        ...


@dataclass(frozen=True, slots=True)
class ProcessorContext:
    """The environment of a processor.

    Attributes:
        vertex: the name of its vertex.
        index: its number among the processors of the vertex, from 0.
        total_parallelism: the number of processors of the vertex.
        guarantee: `"none"`, `"at-least-once"` or `"exactly-once"`.
        logger: named after the vertex and the number.
        overflow: creates the spill of groups that do not fit into memory; None: there is none.
    """

    vertex: str
    index: int = 0
    total_parallelism: int = 1
    guarantee: str = "none"
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("dstream.core"))
    overflow: Callable[[], Overflow] | None = None

    @property
    def local_parallelism(self) -> int:
        """The number of processors of the vertex on this member; there is one member."""
        return self.total_parallelism

    @property
    def snapshotting_enabled(self) -> bool:
        """True if the state of processors is saved: the guarantee is not `"none"`."""
        return self.guarantee != "none"


class Processor(NamesOfJet):
    """The code of a vertex: one of several instances, each with a part of the items. Its methods do nothing.

    The calls are made in this order: `init`; if there is a snapshot, `restore_from_snapshot` until its inbox is empty,
    then `finish_snapshot_restore`; then repeatedly `tick`, `process` for an edge that has items,
    `try_process_watermark`, `complete_edge` for each edge that has ended; after the last edge, `complete` until it is
    done. `save_to_snapshot` may be called between them. `close` is the last call, also after a failure.

    Attributes:
        is_cooperative: its calls are short and do not block, so it shares a thread with others; otherwise it has its
            own.
        ticks_alone: an overridden `tick` has work also without items, as by the clock: an unbounded job runs epochs for
            it periodically. False: it only continues work that items or watermarks began.
    """

    is_cooperative: bool = True
    ticks_alone: bool = True

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Get ready; called once, where the processor runs."""

    def process(self, ordinal: int, inbox: Inbox) -> None:
        """Process items of one inbound edge from the inbox, until the outbox is full.

        Args:
            ordinal: of the edge.
            inbox: not empty; contains only items of this edge, and no watermarks.
        """

    def tick(self) -> bool:
        """Do work that does not depend on items; called before items are processed, and while the inbox is empty."""
        return True

    def try_process_watermark(self, watermark: Watermark) -> bool:
        """Process a watermark; when this is done, it is forwarded, and is not to be emitted."""
        return True

    def complete_edge(self, ordinal: int) -> bool:
        """Handle the end of an inbound edge; called before the first item of an edge with a later priority."""
        return True

    def complete(self) -> bool:
        """Emit the rest; called when all inbound edges have ended, so for a source from the beginning."""
        return True

    def save_to_snapshot(self) -> bool:
        """Offer the state to the snapshot, entry by entry; output that must precede it may be emitted, too."""
        return True

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        """Restore entries `(key, value)` of a snapshot from the inbox; keys are the saved keys.

        Raises:
            UnsupportedError: always, unless overridden: what was saved would be lost.
        """
        raise UnsupportedError(f"{type(self).__name__} saves a snapshot, and has no restore_from_snapshot()")

    def finish_snapshot_restore(self) -> bool:
        """Prepare to continue; called after all entries were restored, if there were any."""
        return True

    def close(self, error: BaseException | None) -> None:
        """Release resources; called once, last. An error here is logged, and changes nothing.

        Args:
            error: why the run failed, also downstream of this processor; None if it did not fail, or ended early.
        """
