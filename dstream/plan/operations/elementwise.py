"""Operations on single items, or on several consecutive ones, within tasks.

`rewrite` makes one `Chain` of `map`, `filter` and similar calls (`dstream.plan.operations.calls`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Literal

from dstream.base.records import record
from dstream.errors import IllegalStateError
from dstream.plan.operations.streams import OrderPreserving, node
from dstream.plan.steps import Emitted, Guard, Op, Step, resolving
from dstream.spi.gatherer import Calling, Gatherer
from dstream.spi.runtime import OpenedLater, Service
from dstream.values.user_functions import shown_function

__all__ = [
    "Action",
    "CallResults",
    "Chain",
    "Gather",
    "ServiceFunction",
    "UsingBatches",
]


Action = Literal["map", "filter", "flat_map"]
"""The role of a function's result: it replaces the item, decides whether the item is kept, or contains several."""


@node
class Chain(OrderPreserving):
    """A run of element-wise steps, executed as one."""

    ops: tuple[Op, ...]

    def all_guards(self) -> Iterable[Guard]:
        return chain.from_iterable(op.guards for op in self.ops)

    def shipped(self) -> Iterator[tuple[Step, Any]]:
        for op in self.ops:
            if op.action not in ("peek", "count"):  # These functions run in the driver.
                yield from ((op.step, function) for function in _of_user(op.fn))
            yield from resolving(op.guards)

    def label(self) -> str:
        return "".join(step.label for op in self.ops for step in op.steps())


def _of_user(fn: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield the user's functions in the function of a step."""
    match fn:
        case Emitted(fn=emitting):
            yield emitting
        case ServiceFunction(fn=using, service=Service(create=create, destroy=destroy)):
            yield from (using, create, *(() if destroy is None else (destroy,)))
        case ServiceFunction(fn=using):
            yield using
        case _:
            yield fn


@node
class Gather(OrderPreserving):
    """The output of a gatherer."""

    gatherer: Gatherer[Any, Any, Any]

    def _function(self) -> Callable[..., Any] | None:
        calls = self.gatherer.parallel
        return calls.fn if isinstance(calls, Calling) else None

    def replay(self) -> Callable[[Any], Any] | None:
        calls = self.gatherer.parallel
        return calls.once if isinstance(calls, Calling) else None


@node
class CallResults(OrderPreserving):
    """The results of a gatherer's calls.

    Attributes:
        slots: the number of tasks that share its rate.
        is_timed: items are pairs `(timestamp, item)`; calls take the item, and results keep its timestamp.
    """

    calling: Calling
    guards: tuple[Guard, ...]
    slots: int = 1
    is_timed: bool = False

    def all_guards(self) -> Iterable[Guard]:
        return self.guards

    def shipped(self) -> Iterator[tuple[Step, Any]]:
        yield self.step, self.calling.fn
        yield from resolving(self.guards)


@record(eq=False)
class ServiceFunction:
    """A function that takes a service and an item, or several items, as the function of a step.

    Attributes:
        service: the factory of the service; or a placeholder, until the plan is opened for a context.
        fn: takes (service, item), or (service, items).
        number: the number of the service in its plan. Steps with the same service share one instance.
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
        """Return the function with the service's object."""
        return functools.partial(self.fn, made)


@node
class UsingBatches(OrderPreserving):
    """The results of a function for batches of items and a service: results in the order of the items.

    The first batch has one item, each later one twice as many, up to `size`.

    Attributes:
        service: the factory of the service; or a placeholder that a context resolves.
        fn: takes (service, items); returns their results.
        size: the largest number of items in a batch.
        number: the number of the service in its plan, which `rewrite` counts.
    """

    service: Service[Any] | OpenedLater
    fn: Callable[[Any, list[Any]], Iterable[Any]]
    size: int = 256
    number: int = 0

    def served(self) -> ServiceFunction:
        """Return the function with its service."""
        return ServiceFunction(self.service, self.fn, self.number)

    def shipped(self) -> Iterator[tuple[Step, Any]]:
        return ((self.step, function) for function in _of_user(self.served()))

    def _call(self) -> str:
        return f".map_using_batches({self.service!r}, {shown_function(self.fn)})"
