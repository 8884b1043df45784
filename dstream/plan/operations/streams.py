"""Core operations on one stream, and the ends of plans.

Each has its `Step`, which alone has the arguments that are only shown. `pairs` contains the operations on two streams,
`stages` those of pipelines.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar, cast, dataclass_transform

from dstream.plan.steps import EarlyCheck, Guard, KeyInColumns, Op, Step
from dstream.spi.collector import Collector
from dstream.spi.gatherer import Calling, Gatherer
from dstream.spi.sink import MapWriter, Writer
from dstream.spi.source import Source

__all__ = [
    "Cache",
    "CacheIdentity",
    "CallResults",
    "Chain",
    "Collect",
    "Columns",
    "Concat",
    "Configure",
    "Core",
    "Distinct",
    "DropWhile",
    "End",
    "ForEachPartition",
    "Gather",
    "Hint",
    "ItemsOfTable",
    "Limit",
    "Loop",
    "OrderPreserving",
    "Parallel",
    "PartitionBy",
    "Partitions",
    "Read",
    "ReadCache",
    "Skip",
    "Sorted",
    "Table",
    "TakeWhile",
    "ToList",
    "Top",
    "Unary",
    "Unordered",
    "Write",
    "node",
]


C = TypeVar("C", bound=type)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def node(cls: C) -> C:
    """Make `cls` a value that compares by identity: a core operation, or a node that a user writes.

    Type checkers refuse to change it. What would refuse that at run time, `frozen=True`, costs 10 ms of every import of
    dstream: it makes each class three times as slowly, and each object at half the speed (CPython 3.11).
    """
    made: Any = dataclasses.dataclass(slots=True, eq=False, repr=False)(cls)
    return cast(C, made)


@node
class Core:
    """One operation: its functions, its values and the operations that it reads from.

    Attributes:
        step: the call of the user's that it stands for: by it it names itself in pictures, and when it fails.
    """

    step: Step = dataclasses.field(kw_only=True)

    def inputs(self) -> tuple[Core, ...]:
        """Return the operations that this one reads from, in order."""
        return ()

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        """Return the same operation on others, one for each of `inputs()`."""
        return self

    def label(self) -> str:
        """Return the call as the user wrote it, such as `.distinct()`; of several in one, all of them."""
        return self.step.label

    def __repr__(self) -> str:
        return f"<{self.label()}>"


@node
class Unary(Core):
    """An operation on the items of one stream."""

    upstream: Core

    def inputs(self) -> tuple[Core, ...]:
        return (self.upstream,)

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        (upstream,) = inputs
        return dataclasses.replace(self, upstream=upstream)


@node
class OrderPreserving(Unary):
    """One whose items have an order, and an end, if those before have one; `properties` knows those that differ."""


@node
class Read(Core):
    """The items of a source.

    Attributes:
        guards: what happens to its bad records.
    """

    source: Source[Any]
    guards: tuple[Guard, ...] = ()


@node
class Table(Core):
    """The rows of a table of the engine's own kind.

    Attributes:
        table: the user's table.
        made: makes items of its rows; None for the engine's own rows.
    """

    table: Any
    made: ItemsOfTable | None


class ItemsOfTable(Protocol):
    """Makes items of the rows of a table, in workers."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the columns that are read."""
        ...

    def made(self, batches: Iterable[Sequence[Sequence[Any]]]) -> Iterator[Any]:
        """Give the items.

        Args:
            batches: the values of each column, of some rows after another: structs and maps are dictionaries.
        """
        ...


@node
class ReadCache(Core):
    """The items that an engine kept of a `Cache`, in its own terms. Only `recalled` makes it."""

    items: Any
    is_ordered: bool


@node
class Concat(Core):
    """The items of each part, one part after another; `is_union`: in any order."""

    parts: tuple[Core, ...]
    is_union: bool

    def inputs(self) -> tuple[Core, ...]:
        return self.parts

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, parts=tuple(inputs))

    def label(self) -> str:
        return self.step.label if self.is_union else f"concat of {len(self.parts)}"


@node
class Chain(OrderPreserving):
    """A run of element-wise steps, executed as one."""

    ops: tuple[Op, ...]

    def label(self) -> str:
        return "".join(step.label for op in self.ops for step in op.steps())


@node
class CallResults(OrderPreserving):
    """What the calls of a gatherer give.

    Attributes:
        slots: how many tasks share its rate.
        is_timed: items are pairs `(timestamp, item)`; calls take the item, and results keep its timestamp.
    """

    calling: Calling
    guards: tuple[Guard, ...]
    slots: int = 1
    is_timed: bool = False


@node
class Hint(OrderPreserving):
    """The same items; the engine is told something of them, or of the run."""


@node
class Unordered(Hint):
    """The same items, released from their encounter order."""


@node
class Parallel(Hint):
    """The last of these in a plan says in how many partitions it runs; None leaves it to the data and the cores."""

    partitions: int | None


@node
class Configure(Hint):
    """The engine runs with these settings."""

    settings: Mapping[str, str]


@node
class Cache(OrderPreserving):
    """The same items, computed once and kept for the plans that read them later.

    Attributes:
        identity: under which the items are kept: that of the user's node.
    """

    identity: CacheIdentity


class CacheIdentity:
    """Which `cache()` it is: equal to itself alone. A copy of it, or what is unpickled, is another one."""

    __slots__ = ("__weakref__",)


@node
class Limit(OrderPreserving):
    """The first `count` items."""

    count: int


@node
class Skip(OrderPreserving):
    """The items after the first `count`."""

    count: int


@node
class TakeWhile(OrderPreserving):
    """The longest prefix whose items satisfy a predicate, which is trusted to end it."""

    predicate: Callable[[Any], object]


@node
class DropWhile(OrderPreserving):
    """What follows the longest prefix whose items satisfy a predicate."""

    predicate: Callable[[Any], object]


@node
class Gather(OrderPreserving):
    """What a gatherer makes of the items."""

    gatherer: Gatherer[Any, Any, Any]


@node
class Sorted(OrderPreserving):
    """The items in the order of their keys; equal keys keep their order.

    Attributes:
        looks: refuse the first item of each task, in the name of what takes the items later.
    """

    key: Callable[[Any], Any] | None
    reverse: bool
    looks: tuple[EarlyCheck, ...] = ()


@node
class Top(OrderPreserving):
    """The first `count` items in the order of their keys: `sorted().limit(count)`.

    Attributes:
        is_one_call: its step is the whole of it; otherwise that of the sort.
        columns: how keys may stand in columns; None: not at all.
    """

    count: int
    key: Callable[[Any], Any] | None
    reverse: bool
    is_one_call: bool
    columns: KeyInColumns | None = None

    def label(self) -> str:
        return self.step.label if self.is_one_call else f"{self.step.label}.limit({self.count})"


@node
class Distinct(OrderPreserving):
    """The first item of each key; the key of an item is `key(item)`, or the item itself."""

    key: Callable[[Any], Any] | None


@node
class PartitionBy(OrderPreserving):
    """The same items, equal keys in one of `count` partitions; the key of an item is that of its entry, or itself.

    Attributes:
        count: how many; None: as many as the cores suggest.
    """

    count: int | None
    key: Callable[[Any], Any] | None


@node
class End(OrderPreserving):
    """What becomes of the items of a plan. An engine is given one, with the plan before it."""


@node
class ToList(End):
    """All items as a list, in encounter order; every partition runs at once."""


@node
class Loop(End):
    """The items one after another, in encounter order, lazily: no more partitions run than are asked for."""


@node
class Partitions(End):
    """The items of each partition, lazily, partitions in encounter order."""


@node
class Collect(End):
    """The items reduced by a collector."""

    collector: Collector[Any, Any, Any]


@node
class ForEachPartition(End):
    """`action` runs on the items of each partition, where the partition is."""

    action: Callable[[Any], object]


@node
class Write(End):
    """A writer takes the items where they are.

    Attributes:
        writer: takes the items of each partition; with a collector, the entries of each bucket. None: it only explains.
        collector: a keyed one whose groups are the entries, or None.
        functions: what those of the user's are called that the writer calls for each item.
    """

    writer: Writer | MapWriter | None
    collector: Collector[Any, Any, Any] | None
    functions: tuple[str, ...] = ()


@node
class Columns(End):
    """The items as a table with columns.

    Attributes:
        is_frame: a table of the engine's own kind, whose rows stay where they are; otherwise one of Arrow.
    """

    is_frame: bool
