"""Processor suppliers: creation of processors, first in the driver, then on workers.

A `ProcessorMetaSupplier` is called once, in the driver, for the supplier of processors at each address, a
`ProcessorSupplier`, which is sent pickled. There is one address: all workers together are one member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from dstream.base.records import record
from dstream.spi.collector import AggregateOperation, Collector
from dstream.spi.processor import Processor
from dstream.spi.sink import Collections

__all__ = [
    "Address",
    "AnySupplier",
    "GroupsByKey",
    "MetaSupplierContext",
    "ProcessorMetaSupplier",
    "ProcessorSupplier",
    "SameEverywhere",
    "SupplierContext",
    "TwoStages",
    "checked_count",
    "meta_supplier",
    "supplier_at",
]


Address = str
P = TypeVar("P", bound=Processor)


@dataclass(frozen=True, slots=True)
class MetaSupplierContext:
    """The facts known in the driver before processors are made.

    Attributes:
        vertex: the name of the vertex.
        total_parallelism: how many processors it has.
        guarantee: `"none"`, `"at-least-once"` or `"exactly-once"`.
    """

    vertex: str
    total_parallelism: int = 1
    guarantee: str = "none"

    @property
    def local_parallelism(self) -> int:
        """The number of processors of the vertex in a member; there is one member."""
        return self.total_parallelism


@dataclass(frozen=True, slots=True)
class SupplierContext(MetaSupplierContext):
    """The facts known where processors are made."""


@record
class TwoStages:
    """Division of the work of processors that gather items with the senders of the items, so that less has to move.

    Attributes:
        keys: functions that return the key by which items are grouped, one per inbound edge; None: all are one group.
        first: takes the number of an inbound edge; returns a supplier of processors that emit an `Entry` of each key
            and the partial result of its items, any number of times.
        second: takes the numbers of edges on which such entries arrive instead of items; returns a supplier of the
            processors of the vertex.
    """

    keys: tuple[Callable[[Any], Any], ...] | None
    first: Callable[[int], Callable[[], Processor]]
    second: Callable[[frozenset[int]], Callable[[], Processor]]


@record
class GroupsByKey:
    """Output of processors that gather the items of one inbound edge: an `Entry` of each key and its result, once.

    Attributes:
        key: returns the key of an item.
        operation: makes the results; its containers can be combined.
        reduction: groups items by that key, with the containers of the operation.
        of_containers: the items are entries whose values are containers.
    """

    key: Callable[[Any], Any]
    operation: AggregateOperation[Any, Any, Any]
    reduction: Collector[Any, Any, dict[Any, Any]]
    of_containers: bool = False


class ProcessorSupplier:
    """Makes the processors of a vertex that run in one process. A subclass overrides `get`; it is sent pickled."""

    two_stages: TwoStages | None = None
    """The part of the work of its processors that may run before the shuffle; None: there is none."""
    groups: GroupsByKey | None = None
    """The output of its processors, if they emit nothing else; None: it is not known."""

    def init(self, context: SupplierContext) -> None:
        """Get ready; called once in each process, before `get`."""

    def get(self, count: int) -> Sequence[Processor]:
        """Return `count` new processors.

        Args:
            count: at least 1.
        """
        raise NotImplementedError(f"{type(self).__name__} has no get()")

    def get_one(self, number: int, count: int) -> Processor:
        """Return the new processor of one number, for a task that runs only this one; subclasses need not override it.

        Args:
            number: below `count`.
            count: how many processors the vertex has.

        Raises:
            TypeError: `get` returned something that is no processor.
            ValueError: `get` returned another number of processors, or one of them twice.
        """
        return checked_count(self.get(count), count)[number]

    def close(self, error: BaseException | None) -> None:
        """Release resources; called once, after all processors were closed. An error here is only logged.

        Args:
            error: why the run failed; None if it did not.
        """

    @staticmethod
    def of(create: Callable[[], Processor]) -> ProcessorSupplier:
        """Return a supplier that calls a function for each processor."""
        return _OfFunction(create)


def checked_count(made: Sequence[Processor], count: int) -> list[Processor]:
    """Return the processors of a supplier; refuse another number of them, and other objects.

    Raises:
        TypeError: an item is no processor.
        ValueError: their number is not `count`, or one occurs twice.
    """
    found = list(made)
    for each in found:
        if not isinstance(each, Processor):
            raise TypeError(f"a supplier of processors gave {each!r}, which is no Processor")
    if len(found) != count:
        raise ValueError(f"the supplier gave {len(found)} processors, not {count}")
    # By identity: processors may be equal, as dataclasses are.
    if len(set(map(id, found))) != count:
        raise ValueError("the supplier gave one processor twice: each has an outbox and a state of its own")
    return found


class ProcessorMetaSupplier:
    """Makes the suppliers of a vertex, in the driver. A subclass overrides `get`."""

    preferred_local_parallelism: int = -1
    """The number of processors of a vertex that sets none itself; -1: the number of cores."""
    inputs: int | None = None
    """The number of inbound edges of its processors; None: any number."""
    two_stages: TwoStages | None = None
    """The part of the work of its processors that may run before the shuffle; None: there is none."""
    groups: GroupsByKey | None = None
    """The output of its processors, if they emit nothing else; None: it is not known."""

    def init(self, context: MetaSupplierContext) -> None:
        """Get ready; called once, in the driver, before `get`."""

    def opened(self, context: Collections) -> ProcessorMetaSupplier:
        """Return the supplier for a job: if it names collections, with these collections.

        Called first of all, in the driver.

        Args:
            context: has the collections of the storage.
        """
        return self

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        """Return a function that returns the supplier of each address.

        Args:
            addresses: of the members: one.
        """
        raise NotImplementedError(f"{type(self).__name__} has no get()")

    def close(self, error: BaseException | None) -> None:
        """Release resources; called once, in the driver, at the end."""

    @staticmethod
    def of(supplier: AnySupplier, preferred_local_parallelism: int = -1) -> ProcessorMetaSupplier:
        """Return a meta-supplier that returns the same supplier for each address."""
        return _OfSupplier(supplier_of(supplier), preferred_local_parallelism)


AnySupplier = Callable[[], Processor] | ProcessorSupplier | ProcessorMetaSupplier
"""The supplier of a vertex: a function that makes a processor, or one of the classes."""


def meta_supplier(supplier: AnySupplier) -> ProcessorMetaSupplier:
    """Return the meta-supplier of a supplier of any kind.

    Raises:
        TypeError: it is none.
    """
    return supplier if isinstance(supplier, ProcessorMetaSupplier) else ProcessorMetaSupplier.of(supplier)


def supplier_of(supplier: Any) -> ProcessorSupplier:
    """Return the supplier of an object that is no meta-supplier.

    Raises:
        TypeError: it is none.
    """
    if isinstance(supplier, ProcessorSupplier):
        return supplier
    # A processor itself may be callable, and would be shared by all.
    if isinstance(supplier, ProcessorMetaSupplier | Processor) or not callable(supplier):
        raise TypeError(f"a vertex takes a function that makes a processor, or a supplier, not {supplier!r}")
    if wanted := _arguments(supplier):
        raise TypeError(
            f"a vertex takes a function that makes a processor, which is called without arguments, and {supplier!r} "
            f"wants {wanted}; processor_of(fn) makes processors of a generator function fn(ordinal, items)"
        )
    return ProcessorSupplier.of(cast("Callable[[], Processor]", supplier))


def _arguments(fn: Callable[..., Any]) -> str:
    """Return the arguments without which a function cannot be called; nothing also if they are unknown."""
    import inspect  # Graphs alone need it.

    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # Some builtins have no signature.
        return ""
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return ", ".join(
        each.name for each in parameters if each.default is inspect.Parameter.empty and each.kind not in optional
    )


def supplier_at(address: Address, supplier: ProcessorMetaSupplier) -> ProcessorSupplier:
    """Return the supplier that a meta-supplier has for the only member.

    Raises:
        TypeError: it returns no function, or the function returns no supplier.
    """
    gives: Any = supplier.get([address])
    if not callable(gives):
        raise TypeError(
            f"get(addresses) of {type(supplier).__name__} must return a function that takes an address and gives a "
            f"ProcessorSupplier, not {gives!r}"
        )
    made: Any = gives(address)
    if not isinstance(made, ProcessorSupplier):
        raise TypeError(
            f"the function that get(addresses) of {type(supplier).__name__} returned must give a ProcessorSupplier for "
            f"the address {address!r}, not {made!r}"
        )
    return made


@dataclass(slots=True)
class _OfFunction(ProcessorSupplier):
    create: Callable[[], Processor]

    def get(self, count: int) -> Sequence[Processor]:
        return checked_count([self.create() for _ in range(count)], count)

    def get_one(self, number: int, count: int) -> Processor:
        # The inherited method would make all processors of the vertex, and drop all but one.
        (made,) = self.get(1)
        return made


@dataclass(slots=True)
class _OfSupplier(ProcessorMetaSupplier):
    supplier: ProcessorSupplier
    preferred_local_parallelism: int = -1

    @property
    def two_stages(self) -> TwoStages | None:  # type: ignore[override]
        return self.supplier.two_stages

    @property
    def groups(self) -> GroupsByKey | None:  # type: ignore[override]
        return self.supplier.groups

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        return SameEverywhere(self.supplier)


@record
class SameEverywhere:
    """The function from each address to one supplier."""

    supplier: ProcessorSupplier

    def __call__(self, address: Address) -> ProcessorSupplier:
        return self.supplier
