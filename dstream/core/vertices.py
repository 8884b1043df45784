"""Vertices and edges of a `DAG`, with their configuration and routing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

from dstream.arguments import checked_function, count, kind_of, optional_function, partition_count, whole
from dstream.errors import IllegalStateError
from dstream.plan import call_site
from dstream.plan.processor_graph import GraphEdge, Routing
from dstream.plan.steps import SourceLocation
from dstream.spi.processor import NamesOfJet
from dstream.spi.suppliers import AnySupplier, ProcessorMetaSupplier, meta_supplier
from dstream.values.entries import same_key
from dstream.values.user_functions import shown_function

__all__ = ["Edge", "EdgeConfig", "Vertex"]


class Vertex(NamesOfJet):
    """A name, the supplier of the processors, and their number.

    `dag.new_vertex(...)` makes one and adds it.

    Args:
        name: unique in its graph.
        supplier: a function that makes a processor, such as a class of processors, or what `dstream.core.processors`
            has; or a `ProcessorSupplier`; or a `ProcessorMetaSupplier`.

    Attributes:
        where: the source location of the call that made it.

    Raises:
        TypeError: the name is no str, or the supplier is none.
        ValueError: the name is empty.

    Example:
        >>> from dstream.core import Vertex, processors
        >>> Vertex("upper", processors.map(str.upper)).local_parallelism(2)
        Vertex('upper', local_parallelism=2)
    """

    __slots__ = ("_is_endless", "_name", "_parallelism", "_supplier", "where")

    def __init__(self, name: str, supplier: AnySupplier) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a vertex must be a str, not {kind_of(name)}")
        if not name:
            raise ValueError("the name of a vertex must not be empty")
        self._name = name
        self._supplier = meta_supplier(supplier)
        self._parallelism = -1
        self._is_endless = False
        self.where: SourceLocation | None = call_site()

    @property
    def name(self) -> str:
        """The name of the vertex."""
        return self._name

    @property
    def supplier(self) -> ProcessorMetaSupplier:
        """The supplier of the processors."""
        return self._supplier

    @property
    def parallelism(self) -> int:
        """The number of processors; -1 unless it was set: then its supplier, or the engine, decides."""
        return self._parallelism

    def local_parallelism(self, processors: int) -> Self:
        """Set the number of processors: all of them, since there is one member.

        Args:
            processors: at least 1; -1 leaves it to the supplier and the engine.

        Raises:
            ValueError: it is neither.
        """
        number = whole(processors, "local_parallelism")
        if number != -1 and number < 1:
            raise ValueError(f"local_parallelism of vertex {self._name!r} must be at least 1, or -1: {number}")
        self._parallelism = number
        return self

    def endless(self) -> Self:
        """Declare that its processors, to which no edge leads, may run for ever: the job runs epoch by epoch then.

        In each epoch they get a slice of time, and at its end they save their position. A graph that reads a
        source without an end runs so anyway.
        """
        self._is_endless = True
        return self

    @property
    def is_endless(self) -> bool:
        """Return whether its processors may run for ever."""
        return self._is_endless

    def update_supplier(self, change: Callable[[ProcessorMetaSupplier], AnySupplier]) -> None:
        """Replace the supplier by the result of a function, such as one that peeks at the items.

        Args:
            change: takes the meta-supplier that the vertex has.
        """
        self._supplier = meta_supplier(checked_function(change, "change")(self._supplier))

    def said(self) -> list[str]:
        """Return the vertex's options other than its name and supplier, for drawings."""
        parallelism = [] if self._parallelism == -1 else [f"local_parallelism={self._parallelism}"]
        return [*parallelism, *(["endless"] if self._is_endless else [])]

    def __repr__(self) -> str:
        return f"Vertex({', '.join([repr(self._name), *self.said()])})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = memo[id(self)] = copy.copy(self)
        made._supplier = copy.copy(self._supplier)  # A shallow copy: its attributes may be locks or connections.
        return made


@dataclass(frozen=True, slots=True)
class EdgeConfig:
    """Bounds of the items that are buffered on an edge.

    Between two processors of one task `queue_size` is exact. Spark itself bounds the data that it moves between tasks,
    in bytes: a shuffle is written to disk, so the other two settings are checked and stored, but have no effect.

    Attributes:
        queue_size: how many items are buffered between two processors before the first one must pause.
        receive_window_multiplier: how much data may be in transit between members; there is one member.
        packet_size_limit: how many bytes a packet between members has.

    Raises:
        TypeError: one of them is no int.
        ValueError: one of them is below 1.
    """

    queue_size: int = 1024
    receive_window_multiplier: int = 3
    packet_size_limit: int = 16384

    def __post_init__(self) -> None:
        for field in fields(self):
            partition_count(getattr(self, field.name), field.name)


class Edge(NamesOfJet):
    """A connection from a vertex to another one, with the routing of items to processors; by default to any, in turn.

    The methods that set the routing change the edge and return it.

    Attributes:
        source: the vertex that it leaves.
        source_ordinal: its number among the edges that leave that vertex, from 0.
        destination: the vertex that it leads to; None until `to` was called.
        destination_ordinal: its number among the edges that lead there, from 0.
        where: the source location of the call that made it.

    Example:
        >>> from dstream.core import Edge, Vertex, processors, whole_item
        >>> words, counts = Vertex("words", processors.noop()), Vertex("counts", processors.noop())
        >>> Edge.between(words, counts).partitioned(whole_item).distributed()
        edge words(0) -> counts(0), partitioned by whole_item, distributed
    """

    __slots__ = (
        "_config",
        "_is_distributed",
        "_key",
        "_order",
        "_partitioner",
        "_priority",
        "_routing",
        "destination",
        "destination_ordinal",
        "source",
        "source_ordinal",
        "where",
    )

    def __init__(self, source: Vertex, source_ordinal: int = 0) -> None:
        self.source = _vertex(source)
        self.source_ordinal = count(source_ordinal, "ordinal")
        self.destination: Vertex | None = None
        self.destination_ordinal = 0
        # The line of the user's call: an edge that leads nowhere is found out much later.
        self.where: SourceLocation | None = call_site()
        self._priority = 0
        self._routing = Routing.UNICAST
        self._key: Callable[[Any], Any] | None = None
        self._partitioner: Callable[[Any, int], int] | None = None
        self._order: Callable[[Any], Any] | None = None
        self._is_distributed = False
        self._config = EdgeConfig()

    @classmethod
    def between(cls, source: Vertex, destination: Vertex) -> Self:
        """Return the edge between two vertices that have no other one there: its ordinals are 0."""
        return cls(source).to(destination)

    @classmethod
    def from_(cls, source: Vertex, ordinal: int = 0) -> Self:
        """Begin an edge, which `to` completes.

        Args:
            source: the vertex that it leaves.
            ordinal: its number among the edges that leave that vertex.

        Raises:
            TypeError: the source is no vertex, or the ordinal no int.
            ValueError: the ordinal is negative.
        """
        return cls(source, ordinal)

    def to(self, destination: Vertex, ordinal: int = 0) -> Self:
        """Set the destination.

        Args:
            destination: the vertex that it leads to.
            ordinal: its number among the inbound edges of the destination, by which processors identify it.

        Raises:
            IllegalStateError: it leads somewhere already.
            TypeError: the destination is no vertex, or the ordinal no int.
            ValueError: the ordinal is negative.
        """
        # Checked before anything is set: an edge that is refused can be led elsewhere.
        number = count(ordinal, "ordinal")
        if self.destination is not None:
            raise IllegalStateError(f"{self.described()} leads somewhere already")
        self.destination = _vertex(destination)
        self.destination_ordinal = number
        return self

    # Which processors get an item

    def unicast(self) -> Self:
        """Send each item to any one processor, in turn: the default."""
        return self._routed(Routing.UNICAST)

    def isolated(self) -> Self:
        """Send the items of each processor to its own processors of the destination only.

        So no order is lost. If the destination has fewer processors than the source, several source processors share
        one.
        """
        return self._routed(Routing.ISOLATED)

    def broadcast(self) -> Self:
        """Send each item to every processor of the destination."""
        return self._routed(Routing.BROADCAST)

    def partitioned(self, key: Callable[[Any], Any], partitioner: Callable[[Any, int], int] | None = None) -> Self:
        """Send items of one key to one processor, over all edges into the destination that are partitioned alike.

        Args:
            key: returns the key of an item, which follows the rules of keys everywhere.
            partitioner: takes a key and the number of processors, and returns the number of one.
        """
        checked_function(key, "key")
        optional_function(partitioner, "partitioner")
        return self._routed(Routing.PARTITIONED, key, partitioner)

    def all_to_one(self) -> Self:
        """Send all items to one processor of the destination, which is the same for all such edges into it."""
        return self._routed(Routing.PARTITIONED, same_key)

    def _routed(
        self,
        routing: Routing,
        key: Callable[[Any], Any] | None = None,
        partitioner: Callable[[Any, int], int] | None = None,
    ) -> Self:
        self._routing, self._key, self._partitioner = routing, key, partitioner
        return self

    # When, and how much

    def priority(self, priority: int) -> Self:
        """Set the priority: edges with a lower one are read to their end before others of the destination.

        Items of the others are buffered meanwhile without bound, on disk if they are large.

        Args:
            priority: 0 unless it is set.
        """
        self._priority = whole(priority, "priority")
        return self

    def ordered(self, key: Callable[[Any], Any]) -> Self:
        """Merge the items of several senders, each in the order of a key, so that they arrive in order.

        Args:
            key: returns the sort key of an item; each processor of the source emits its items in this order.
        """
        self._order = checked_function(key, "key")
        return self

    def distributed(self) -> Self:
        """Declare that items may be sent to other members; there is one member, so it is shown and changes nothing."""
        self._is_distributed = True
        return self

    def set_config(self, config: EdgeConfig) -> Self:
        """Set how many items are buffered.

        Raises:
            TypeError: it is no `EdgeConfig`.
        """
        if not isinstance(config, EdgeConfig):
            raise TypeError(f"set_config() takes an EdgeConfig, not {kind_of(config)}")
        self._config = config
        return self

    # Looking at it

    @property
    def routing(self) -> Routing:
        """The routing: which processors get an item."""
        return self._routing

    @property
    def key(self) -> Callable[[Any], Any] | None:
        """The function of an item's key, if the edge is partitioned."""
        return self._key

    @property
    def partitioner(self) -> Callable[[Any, int], int] | None:
        """The function that chooses a processor's number; None: the default of all edges."""
        return self._partitioner

    @property
    def order(self) -> Callable[[Any], Any] | None:
        """The function that items are merged by, if the edge is ordered."""
        return self._order

    @property
    def priority_number(self) -> int:
        """Edges with a lower one are read first."""
        return self._priority

    @property
    def is_distributed(self) -> bool:
        """Return whether `distributed()` was called."""
        return self._is_distributed

    @property
    def config(self) -> EdgeConfig:
        """The size of the buffer."""
        return self._config

    def described(self) -> str:
        """Return the edge as messages name it: both ends with their ordinals, and the source location."""
        location = f" at {self.where}" if self.where else ""
        return f"edge {self.ends()}{location}"

    def ends(self) -> str:
        """Return both ends, with their ordinals."""
        destination = "nowhere" if self.destination is None else f"{self.destination.name}({self.destination_ordinal})"
        return f"{self.source.name}({self.source_ordinal}) -> {destination}"

    def how(self) -> list[str]:
        """Return the settings that differ from the defaults of an edge, in words."""
        words = []
        if self._key is same_key:
            words.append("all to one")
        elif self._key is not None:
            by = f" with {shown_function(self._partitioner)}" if self._partitioner else ""
            words.append(f"partitioned by {shown_function(self._key)}{by}")
        elif self._routing is not Routing.UNICAST:
            words.append(self._routing.value)
        if self._order is not None:
            words.append(f"ordered by {shown_function(self._order)}")
        if self._is_distributed:
            words.append("distributed")
        if self._priority:
            words.append(f"priority {self._priority}")
        return words

    def __repr__(self) -> str:
        return ", ".join([f"edge {self.ends()}", *self.how()])

    def as_value(self) -> GraphEdge:
        """Return the edge for an engine."""
        assert self.destination is not None
        return GraphEdge(
            self.source.name,
            self.source_ordinal,
            self.destination.name,
            self.destination_ordinal,
            self._priority,
            self._routing,
            self._key,
            self._partitioner,
            self._order,
            self._is_distributed,
            self._config.queue_size,
        )


def _vertex(value: Any) -> Vertex:
    if not isinstance(value, Vertex):
        raise TypeError(f"an edge stands between vertices, which dag.new_vertex(...) makes, not {kind_of(value)}")
    return value
