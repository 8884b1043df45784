"""What an engine may know of a gatherer, so that several partitions can run it at once.

An engine that knows none of this runs the gatherer in one task, one item after another, which gives the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from dstream.spi.sink import Sink

__all__ = ["AtEnd", "ByPlace", "Calling", "InParallel", "ItemWise", "Outcome", "Place", "RunningValue"]

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True)
class ItemWise:
    """A gatherer that keeps nothing from one item to the next: each partition runs it on its own."""


class Outcome(NamedTuple):
    """How a call ended.

    Attributes:
        item: what it was given.
        result: what it gave; None if it failed.
        error: what it raised, or None.
    """

    item: Any
    result: Any
    error: Exception | None


@dataclass(frozen=True)
class Calling(ItemWise, ABC):
    """A gatherer that makes one call for each item, several at a time, and keeps their order.

    Attributes:
        fn: what is called.
        rate: how many calls a second all tasks together may make; None for any number.
        cache: equal items are called once, over all tasks.
        instead: the value in place of a result that could not be had, in a tuple; or an empty tuple.
        into: where items whose call failed go, or None.
    """

    fn: Callable[[Any], Any]
    rate: float | None = None
    cache: bool = False
    instead: tuple[Any, ...] = ()
    into: Sink[Any, Any] | None = None

    @property
    def is_shared(self) -> bool:
        """Whether all tasks together keep to something: a rate, or one call for equal items."""
        return self.rate is not None or self.cache

    @abstractmethod
    def outcomes(self, items: Iterable[Any], slot: int = 0, slots: int = 1) -> Iterator[Outcome]:
        """Make the calls and give their outcomes in the order of the items; closing it ends what is in flight.

        Args:
            items: what the calls are given.
            slot: the number of this task among all that may run at once.
            slots: how many those are; they share the rate.
        """

    @abstractmethod
    def once(self, item: Any) -> Any:
        """Make one call here and now."""


@dataclass(frozen=True)
class AtEnd(Generic[T, A]):
    """A gatherer with a combiner that takes every item and pushes nothing before its finisher: only states travel.

    Attributes:
        state_of: gives the state behind all items of a partition.
    """

    state_of: Callable[[Iterable[T]], A]


@dataclass(frozen=True)
class Place:
    """Where the items of a partition stand in the stream.

    Attributes:
        offset: how many items stand before them.
        size: how many items the partition has.
        total: how many items the stream has.
    """

    offset: int
    size: int
    total: int


@dataclass(frozen=True)
class ByPlace(Generic[T, R]):
    """A gatherer that a partition runs on its own if it knows its place and some items of those behind it.

    Attributes:
        following: how many items behind its last one a partition looks at, at most.
        gather_part: `gather_part(items, place)` gives what begins in a partition; `items` are its own ones, then
            the following ones, as many as there are.
        gather_ahead: `gather_ahead(own, behind, is_first)` gives the same without knowing the place: `own` are the
            items of the partition, `behind` all items behind it, read as far as needed, and `is_first()` says whether
            there are none before it; None if that is not possible. A collector may have it called for what lies
            inside of a partition and for what lies across its end apart, with `behind` empty and `is_first()` False for
            the first: an item with less than `following` behind it gives nothing then, so nothing may be said about the
            end of the stream, nor at its start but for a stream of no more than `following` items.
        window: it gives a tuple of each item and the `window` - 1 ones behind it; None: it gives something else.
    """

    following: int
    gather_part: Callable[[Iterable[T], Place], Iterator[R]]
    gather_ahead: Callable[[Iterable[T], Iterable[T], Callable[[], bool]], Iterator[R]] | None = None
    window: int | None = None


@dataclass(frozen=True)
class RunningValue(Generic[T, A]):
    """A gatherer that gives the value so far behind each item; a partition needs the value of all items before it.

    Attributes:
        start: makes the value of no items.
        fn: `fn(value, item)` gives the next value.
        combiner: `combiner(left, right)` gives the value of two neighbouring parts.
    """

    start: Callable[[], A]
    fn: Callable[[A, T], A]
    combiner: Callable[[A, A], A]


InParallel = ItemWise | AtEnd[Any, Any] | ByPlace[Any, Any] | RunningValue[Any, Any]
