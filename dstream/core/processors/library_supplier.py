"""`LibrarySupplier`: what the functions of this library give a vertex, where a plain function would not do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.spi import AggregateOperation
from dstream.spi.functions import shown_function
from dstream.spi.processor import Processor
from dstream.spi.processor_suppliers import (
    Address,
    GroupsByKey,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    TwoStages,
)

__all__ = ["LibrarySupplier", "shown_call"]


@dataclass(frozen=True, slots=True, repr=False)
class LibrarySupplier(ProcessorMetaSupplier):
    """Makes the processors of a vertex by a function, and shows the call that it came from.

    Attributes:
        create: makes a processor; it travels pickled.
        shown: the call.
        preferred_local_parallelism: how many processors there are unless the vertex says so.
        two_stages: how others may do a part of their work.
        groups: what they emit, if these are results by key.
        inputs: how many inbound edges they take; None: any number.
    """

    create: Callable[[], Processor]
    shown: str
    preferred_local_parallelism: int = -1
    two_stages: TwoStages | None = None
    groups: GroupsByKey | None = None
    inputs: int | None = None

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        """Return what gives each address a supplier of these processors."""
        return _Everywhere(_LibraryProcessors(self.create, self.two_stages, self.groups))

    def __repr__(self) -> str:
        return self.shown


@dataclass(frozen=True, slots=True)
class _Everywhere:
    supplier: ProcessorSupplier

    def __call__(self, address: Address) -> ProcessorSupplier:
        return self.supplier


@dataclass(slots=True)
class _LibraryProcessors(ProcessorSupplier):
    create: Callable[[], Processor]
    two_stages: TwoStages | None
    groups: GroupsByKey | None

    def get(self, count: int) -> Sequence[Processor]:
        return [self.create() for _ in range(count)]

    def get_one(self, number: int, count: int) -> Processor:
        return self.create()


def shown_call(name: str, *given: Any, **named: Any) -> str:
    """Return a call as its user would write it; what is None is left out."""
    parts = [_shown(each) for each in given if each is not None]
    parts += [f"{key}={_shown(value)}" for key, value in named.items() if value is not None]
    return f"{name}({', '.join(parts)})"


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return shown_function(value) if callable(value) and not isinstance(value, AggregateOperation) else repr(value)
