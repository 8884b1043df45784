"""The core operations of steps that need a service: they hold its number until a task gives them the service itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dstream.errors import IllegalStateError
from dstream.plan.core import Chain, Core, Keeping, node
from dstream.spi.service import OpenedLater, Service

__all__ = ["Served", "UsingBatches", "served_steps"]


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A function that takes a service and an item, or several items, as the function of a step.

    Attributes:
        service: what gives it; until the plan was opened for a context, maybe what does.
        fn: takes (service, item), or (service, items).
        number: that of the service in its plan. Steps that were given the same one share what it makes.
    """

    service: Service[Any] | OpenedLater
    fn: Callable[[Any, Any], Any]
    number: int

    def __call__(self, item: Any) -> Any:
        raise AssertionError("a task binds the service of a step before its first item")

    def opened(self) -> Service[Any]:
        """Return the service.

        Raises:
            IllegalStateError: the plan was not opened for a context.
        """
        if isinstance(self.service, Service):
            return self.service
        raise IllegalStateError(f"{self.service!r} is known by its name: it needs a context, which a job opens it for")

    def bound(self, made: Any) -> Callable[[Any], Any]:
        """Return the function with what the service made."""
        return functools.partial(self.fn, made)


@node
class UsingBatches(Keeping):
    """What a function gives for some items at a time, in their order.

    Attributes:
        served: takes (service, items); gives the results of these.
        size: how many items it takes at most.
    """

    served: Served
    size: int


def served_steps(operations: Iterable[Core]) -> Iterator[Served]:
    """Give the functions of the operations of a plan that need a service."""
    for each in operations:
        if isinstance(each, Chain):
            yield from (op.fn for op in each.ops if isinstance(op.fn, Served))
        elif isinstance(each, UsingBatches):
            yield each.served
