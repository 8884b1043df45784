"""Integrators at work: one gatherer over the items of one place, and one gatherer that pushes into another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dstream.values.flattened import refuse_awaitable

if TYPE_CHECKING:
    from dstream.spi.gatherer import Downstream, Gatherer

__all__ = ["Composition", "Integration", "finished"]

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")


class Integration(Generic[T, A, R]):
    """One run of a gatherer's integrator, and then of its finisher.

    Attributes:
        state: what the initializer made.
        has_stopped: whether the integrator wanted no more items.
    """

    def __init__(self, gatherer: Gatherer[T, A, R]) -> None:
        self.state = gatherer.initializer()
        self.has_stopped = False
        self._gatherer = gatherer
        self._held: _Held[R] = _Held()

    def pushed(self, items: Iterable[T]) -> Iterator[R]:
        """Give what the integrator pushes for each item, before the next one is read."""
        integrator, state, held = self._gatherer.integrator, self.state, self._held
        for item in items:
            wants_more = integrator(state, item, held)
            yield from held.taken()
            if wants_more is False:
                self.has_stopped = True
                return
            if wants_more is not None and wants_more is not True:
                refuse_awaitable(wants_more)

    def finished(self) -> list[R]:
        """Return what the finisher pushes."""
        return finished(self._gatherer, self.state)


def finished(gatherer: Gatherer[Any, A, R], state: A) -> list[R]:
    """Return what the finisher of `gatherer` pushes for a state."""
    held: _Held[R] = _Held()
    if gatherer.finisher is not None:
        refuse_awaitable(gatherer.finisher(state, held))
    return held.taken()


class _Held(Generic[R]):
    """A downstream that keeps what is pushed until it is taken."""

    def __init__(self) -> None:
        self._items: list[R] = []

    def push(self, item: R, /) -> bool:
        self._items.append(item)
        return True

    def is_rejecting(self) -> bool:
        return False

    def taken(self) -> list[R]:
        items, self._items = self._items, []
        return items


@dataclass
class _States:
    """The states of two gatherers, and whether the second one wanted no more."""

    left: Any
    right: Any
    is_rejecting: bool = False


@dataclass(frozen=True)
class Composition:
    """Two gatherers as one: what `left` pushes is what `right` integrates."""

    left: Gatherer[Any, Any, Any]
    right: Gatherer[Any, Any, Any]

    def begin(self) -> _States:
        """Make the state of both."""
        return _States(self.left.initializer(), self.right.initializer())

    def integrate(self, states: _States, item: Any, downstream: Downstream[Any]) -> bool:
        """Let `left` take an item and push into `right`; say whether both want more."""
        wants_more = self.left.integrator(states.left, item, _Through(self.right, states, downstream))
        return wants_more is not False and not states.is_rejecting

    def combine(self, first: _States, second: _States) -> _States:
        """Return the states of two neighbouring partitions as one."""
        left, right = self.left.combined(first.left, second.left), self.right.combined(first.right, second.right)
        return _States(left, right, first.is_rejecting or second.is_rejecting)

    def finish(self, states: _States, downstream: Downstream[Any]) -> None:
        """Finish `left`, whose last items go through `right` too, and then `right`."""
        if self.left.finisher is not None:
            self.left.finisher(states.left, _Through(self.right, states, downstream))
        if self.right.finisher is not None:
            self.right.finisher(states.right, downstream)

    def gather(self, items: Iterable[Any]) -> Iterator[Any]:
        """Give what both make of `items`; nobody can tell it from a loop of `integrate`.

        That holds if `left` is one of ours, or if `right` takes every item.
        """
        return self.right.gather(self.left.gather(items))


@dataclass(frozen=True, slots=True)
class _Through:
    """The downstream of the first of two gatherers: the second one."""

    right: Gatherer[Any, Any, Any]
    states: _States
    downstream: Downstream[Any]

    def push(self, item: Any, /) -> bool:
        if self.is_rejecting():
            return False
        if self.right.integrator(self.states.right, item, self.downstream) is False:
            self.states.is_rejecting = True
        return not self.is_rejecting()

    def is_rejecting(self) -> bool:
        return self.states.is_rejecting or self.downstream.is_rejecting()
