"""Calls of the user that `rewrite` makes other operations of: no engine runs them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dstream.plan.operations.elementwise import Action
from dstream.plan.operations.streams import Unary, node
from dstream.plan.steps import Delivery, Treatment, unchanged
from dstream.spi.gatherer import Gatherer
from dstream.spi.runtime import OpenedLater, Service
from dstream.values.numbers import exact_float, exact_int
from dstream.values.user_functions import shown_function

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


_Replay = Callable[[Any], Any]


@node
class RewrittenCall(Unary):
    """A call that is run as a part of another operation, such as the `Chain` of its neighbours."""


@node
class _OfEachItem(RewrittenCall):
    """A call with a function whose results replace each item.

    Attributes:
        kind: None, or the type that a result must have: `int` (checked) or `float` (converted).
    """

    fn: Callable[..., Any]
    kind: type | None = None

    def _function(self) -> Callable[..., Any] | None:
        return self.fn

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.fn),)


@node
class Map(_OfEachItem):
    """Each item replaced by the result of `fn`."""

    def item_count(self, counts: Sequence[int]) -> int | None:
        # Other conversions check the items, and so may fail.
        return counts[0] if self.fn is unchanged and self.label() == ".as_double_stream()" else None

    def replay(self) -> _Replay | None:
        return functools.partial(_converted, _CONVERTERS[self.kind], self.fn)

    def _arguments(self) -> Iterable[str]:
        return () if self.fn is unchanged else (shown_function(self.fn),)


def _converted(convert: _Replay | None, fn: _Replay, item: Any) -> Any:
    result = fn(item)
    return result if convert is None else convert(result)


_CONVERTERS: dict[type | None, _Replay | None] = {None: None, int: exact_int, float: exact_float}


@node
class FlatMap(_OfEachItem):
    """The items of all the iterables that `fn` makes; None is an empty one."""

    def replay(self) -> _Replay | None:
        return functools.partial(_all_of, _CONVERTERS[self.kind], self.fn)


def _all_of(convert: _Replay | None, fn: Callable[[Any], Iterable[Any] | None], item: Any) -> list[Any]:
    result = fn(item)
    items = () if result is None else result
    return list(items) if convert is None else list(map(convert, items))


@node
class MapMulti(_OfEachItem):
    """The items that `fn(item, emit)` emits for each item."""

    def replay(self) -> _Replay | None:
        return functools.partial(_all_of, _CONVERTERS[self.kind], functools.partial(_emitted, self.fn))


def _emitted(fn: Callable[[Any, Callable[[Any], None]], object], item: Any) -> list[Any]:
    emitted: list[Any] = []
    fn(item, emitted.append)
    return emitted


@node
class Filter(RewrittenCall):
    """The items that satisfy a predicate."""

    predicate: Callable[[Any], object]

    def _function(self) -> Callable[..., Any] | None:
        return self.predicate

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.predicate),)


@node
class _InCaller(RewrittenCall):
    """A call with an action that sees each item in the caller's process."""

    action: Callable[[Any], object]

    def _function(self) -> Callable[..., Any] | None:
        return self.action

    def _arguments(self) -> Iterable[str]:
        return (shown_function(self.action),)


@node
class Peek(_InCaller):
    """The same items; `action` sees each one in the caller's process."""


@node
class ForEach(_InCaller):
    """The end that runs `action` on each item in the caller's process; it only names a failure."""


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
        service: the factory of the service; or a placeholder that a context resolves.
        fn: takes (service, item).
        action: what becomes of its result.
    """

    service: Service[Any] | OpenedLater
    fn: Callable[[Any, Any], Any]
    action: Action

    def _function(self) -> Callable[..., Any] | None:
        return self.fn

    def replay(self) -> _Replay | None:
        """Return the call of the function with a service that is made in this process, for the item alone."""
        service = self.service
        return functools.partial(_served, service, self.fn, self.action) if isinstance(service, Service) else None

    def _call(self) -> str:
        return f".map_using({self.service!r}, {shown_function(self.fn)})"


def _served(service: Service[Any], fn: Callable[[Any, Any], Any], action: str, item: Any) -> Any:
    made = service.create()
    try:
        result = fn(made, item)
        return _all_of(None, lambda _: result, item) if action == "flat_map" else result
    finally:
        if service.destroy is not None:
            service.destroy(made)


@node
class Recover(RewrittenCall):
    """The same items; those on which the step before fails are skipped, replaced, or sent to a reducer.

    It follows the step that it applies to, possibly after other `Recover` steps.

    Attributes:
        kinds: the exceptions that it handles.
        treatment: what happens to a failed item.
        fn: takes the item and the exception; returns the replacement.
        kind: the type of the replacement: None for any, `int` or `float`.
        delivery: receives the dead letters.
    """

    kinds: tuple[type[Exception], ...]
    treatment: Treatment
    fn: Callable[[Any, Exception], Any] | None = None
    kind: type | None = None
    delivery: Delivery | None = None

    def _function(self) -> Callable[..., Any] | None:
        return self.fn

    def replay(self) -> _Replay | None:
        """Return the step before, whose failure is resolved."""
        before = self.upstream.replay()
        return None if self.fn is None or before is None else functools.partial(_resolved, before, self.kinds, self.fn)

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


def _resolved(
    before: _Replay, kinds: tuple[type[Exception], ...], fn: Callable[[Any, Exception], Any], item: Any
) -> Any:
    try:
        return before(item)
    except kinds as error:
        return fn(item, error)


@node
class Shuffle(RewrittenCall):
    """The items, or `count` of them, in the order of the random numbers that `ranking` puts before each: a sort."""

    ranking: Gatherer[Any, Any, Any]
    count: int | None
