"""Calls of the user that `rewrite` makes other operations of: no engine knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dstream.plan.operations.elementwise import Action
from dstream.plan.operations.streams import Unary, node
from dstream.plan.steps import Delivery, Treatment, unchanged
from dstream.spi.gatherer import Gatherer
from dstream.spi.runtime import OpenedLater, Service
from dstream.values.functions import shown_function

__all__ = [
    "Filter",
    "FlatMap",
    "ForEach",
    "Map",
    "MapMulti",
    "Peek",
    "Recover",
    "RewrittenCall",
    "Shuffle",
    "Tally",
    "WithService",
]


@node
class RewrittenCall(Unary):
    """A call that is run as a part of another operation, such as the `Chain` of its neighbours."""


@node
class Map(RewrittenCall):
    """Each item replaced by the result of `fn`.

    Attributes:
        kind: None, or the type that a result must have: `int` (checked) or `float` (converted).
    """

    fn: Callable[[Any], Any]
    kind: type | None = None

    def _arguments(self) -> Iterable[str]:
        return () if self.fn is unchanged else (shown_function(self.fn),)


@node
class Filter(RewrittenCall):
    """The items that satisfy a predicate."""

    predicate: Callable[[Any], object]

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.predicate),)


@node
class FlatMap(RewrittenCall):
    """The items of all the iterables that `fn` makes; None is an empty one."""

    fn: Callable[[Any], Iterable[Any] | None]
    kind: type | None = None

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.fn),)


@node
class MapMulti(RewrittenCall):
    """The items that `fn(item, emit)` emits for each item."""

    fn: Callable[[Any, Callable[[Any], None]], object]
    kind: type | None = None

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.fn),)


@node
class Peek(RewrittenCall):
    """The same items; `action` sees each one in the caller's process."""

    action: Callable[[Any], object]

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.action),)


@node
class Tally(RewrittenCall):
    """The same items, which are counted where they are.

    Attributes:
        take: is called in the caller's process with how many a task has let pass, once for each task.
    """

    take: Callable[[int], object]

    def _call(self) -> str:
        return ""


@node
class WithService(RewrittenCall):
    """The results of a function for each item and a service, which tasks make where they are.

    Attributes:
        service: what gives it; or what does, once a context is there.
        fn: takes (service, item).
        action: what becomes of its result.
    """

    service: Service[Any] | OpenedLater
    fn: Callable[[Any, Any], Any]
    action: Action

    def _call(self) -> str:
        return f".map_using({self.service!r}, {shown_function(self.fn)})"


@node
class Recover(RewrittenCall):
    """The same items; those that the step before fails on are left out, replaced, or sent away.

    It stands behind the step that it applies to, maybe behind others of its kind.

    Attributes:
        kinds: the exceptions that this is for.
        treatment: what happens to such an item.
        fn: gives the item that takes its place, of the item and the exception.
        kind: what that must be: None, `int` or `float`.
        delivery: takes the dead letters.
    """

    kinds: tuple[type[Exception], ...]
    treatment: Treatment
    fn: Callable[[Any, Exception], Any] | None = None
    kind: type | None = None
    delivery: Delivery | None = None

    def _call(self) -> str:
        return ""

    def arguments(self) -> Iterator[str]:
        """Yield the arguments as the user wrote them."""
        names = ", ".join(kind.__name__ for kind in self.kinds)
        yield names if len(self.kinds) == 1 else f"({names})"
        if self.fn is not None:
            yield shown_function(self.fn)
        if self.delivery is not None:
            yield f"into={self.delivery.label}"


@node
class Shuffle(RewrittenCall):
    """The items, or `count` of them, in the order of the random numbers that `ranking` puts before each: a sort."""

    ranking: Gatherer[Any, Any, Any]
    count: int | None


@node
class ForEach(RewrittenCall):
    """The end that runs `action` on each item in the caller's process; it only names a failure."""

    action: Callable[[Any], object]

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.action),)
