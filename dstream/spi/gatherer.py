"""`Gatherer`: an intermediate operation as data, its parallel forms, and its integration loop.

The parallel forms are optional: an engine without them runs the gatherer in one task, one item after another, with the
same result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

from dstream.base.functions import refuse_awaitable
from dstream.base.records import record
from dstream.spi.sink import Sink
from dstream.values.user_functions import refuse_one_that_would_not_run, shown_function

__all__ = [
    "AtEnd",
    "ByPlace",
    "Calling",
    "Composition",
    "Downstream",
    "Gatherer",
    "InParallel",
    "Integration",
    "ItemWise",
    "Outcome",
    "Place",
    "RunningValue",
    "finished",
]


T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
U = TypeVar("U")
T2 = TypeVar("T2")
A2 = TypeVar("A2")
R2 = TypeVar("R2")
R_contra = TypeVar("R_contra", contravariant=True)


class Downstream(Protocol[R_contra]):
    """The receiver of a gatherer's output."""

    def push(self, item: R_contra, /) -> bool:
        """Emit an item; return whether more items are accepted."""
        ...

    def is_rejecting(self) -> bool:
        """Return whether no more items are accepted."""
        ...


@dataclass(frozen=True, repr=False)
class Gatherer(Generic[T, A, R]):
    """Intermediate operation from items to other items, with a state between them. `Gatherer.of` makes one.

    Attributes:
        initializer: makes the state, fresh for each run.
        integrator: `integrator(state, item, downstream)` takes an item and pushes any number of items; False ends the
            stream.
        combiner: `combiner(left, right)` merges the states of two neighbouring partitions, so that partitions may run
            in parallel; None if they must run in order. It may change `left` and return None.
        finisher: `finisher(state, downstream)` pushes the remaining items at the end.
        gather_all: the same as a loop of `integrator`, faster.
        parallel: properties with which an engine may run it in parallel.
        name: the factory that made it, such as `window_fixed(3)`, for messages.
        may_stop: whether the integrator may stop before the end of its input. Then an infinite stream upstream is
            assumed to end, as upstream of a `take_while`.
    """

    initializer: Callable[[], A]
    integrator: Callable[[A, T, Downstream[R]], bool | None]
    combiner: Callable[[A, A], A | None] | None = None
    finisher: Callable[[A, Downstream[R]], object] | None = None
    gather_all: Callable[[Iterable[T]], Iterator[R]] | None = None
    parallel: InParallel | None = None
    name: str = field(default="", compare=False)
    may_stop: bool = False

    @overload
    @staticmethod
    def of(
        initializer: Callable[[], A2],
        *,
        integrator: Callable[[A2, T2, Downstream[R2]], bool | None],
        combiner: Callable[[A2, A2], A2 | None] | None = ...,
        finisher: Callable[[A2, Downstream[R2]], object] | None = ...,
    ) -> Gatherer[T2, A2, R2]: ...

    @overload
    @staticmethod
    def of(
        initializer: None = ...,
        *,
        integrator: Callable[[None, T2, Downstream[R2]], bool | None],
        combiner: Callable[[None, None], None] | None = ...,
        finisher: Callable[[None, Downstream[R2]], object] | None = ...,
    ) -> Gatherer[T2, None, R2]: ...

    @staticmethod
    def of(
        initializer: Callable[[], Any] | None = None,
        *,
        integrator: Callable[[Any, Any, Any], bool | None],
        combiner: Callable[[Any, Any], Any] | None = None,
        finisher: Callable[[Any, Any], object] | None = None,
    ) -> Gatherer[Any, Any, Any]:
        """Return a gatherer of your own.

        Without a `combiner` one task takes all items, in order. With one, each partition has a separate state and emits
        at the position of its partition, then the states are combined in order and the finisher runs once. So the
        output for an item must not depend on items of other partitions.

        Args:
            initializer: makes the state; without it the state is None.
            integrator: `integrator(state, item, downstream)` changes the state, calls `downstream.push(item)` any
                number of times, and returns False to stop, also that of NumPy.
            combiner: `combiner(left, right)` changes `left` or returns the state of both.
            finisher: `finisher(state, downstream)` pushes the remaining items at the end of the input, or when the
                integrator stopped.

        Raises:
            TypeError: one of them is no function.

        Example:
            >>> from dstream.gatherers import Gatherer
            >>> def grow(state, item, downstream):
            ...     if not state or item > state[-1]:
            ...         state.append(item)
            ...         downstream.push(item)
            >>> Stream.of(3, 1, 4, 1, 5).gather(Gatherer.of(list, integrator=grow)).to_list()
            [3, 4, 5]
        """
        given = {"initializer": initializer, "combiner": combiner, "finisher": finisher}
        for name, fn in [("integrator", integrator), *((n, f) for n, f in given.items() if f is not None)]:
            if not callable(fn):
                raise TypeError(f"{name} must be a function, not {'None' if fn is None else type(fn).__name__}")
            refuse_one_that_would_not_run(fn, name)
        return Gatherer(initializer or _nothing, integrator, combiner, finisher, name="Gatherer.of(...)", may_stop=True)

    def __repr__(self) -> str:
        return self.name or f"Gatherer({shown_function(self.initializer)}, {shown_function(self.integrator)})"

    def and_then(self, other: Gatherer[R, Any, U]) -> Gatherer[T, Any, U]:
        """Return a gatherer whose items `other` gathers, one by one, as they are pushed.

        It runs in parallel if both of them have a combiner. `stream.gather(a).gather(b)` is equivalent, and each of the
        two runs in parallel if it can.

        Raises:
            TypeError: `other` is no gatherer.

        Example:
            >>> from dstream.gatherers import scan, window_fixed
            >>> sums = scan(lambda: 0, lambda total, n: total + n)
            >>> Stream.of(1, 2, 3, 4, 5).gather(sums.and_then(window_fixed(2))).to_list()
            [(1, 3), (6, 10), (15,)]
        """
        if not isinstance(other, Gatherer):
            raise TypeError(f"other must be a Gatherer, not {'None' if other is None else type(other).__name__}")
        both = Composition(self, other)
        return Gatherer(
            both.begin,
            both.integrate,
            None if self.combiner is None or other.combiner is None else both.combine,
            both.finish,
            both.gather if self.gather_all is not None or isinstance(other.parallel, Calling) else None,
            ItemWise() if _runs_anywhere(self) and _runs_anywhere(other) else None,
            f"{self}.and_then({other})",
            self.may_stop or other.may_stop,
        )

    def gather(self, items: Iterable[T]) -> Iterator[R]:
        """Yield the output for `items`, lazily, in this process."""
        return self._integrated(items) if self.gather_all is None else self.gather_all(items)

    def _integrated(self, items: Iterable[T]) -> Iterator[R]:
        run = Integration(self)
        yield from run.pushed(items)
        yield from run.finished()

    def combined(self, left: A, right: A) -> A:
        """Return the state of two neighbouring partitions, for each form of combiner."""
        assert self.combiner is not None, "only gatherers with a combiner are combined"
        state = self.combiner(left, right)
        # None: `left` was changed in place.
        return left if state is None else state

    def finished(self, states: Iterable[A]) -> list[R]:
        """Return the output of the finisher for the states of all partitions, in order."""
        left = iter(states)
        first = next(left, _NONE)
        # Without states, as of an empty stream, the finisher gets a new one.
        combined: Any = self.initializer() if first is _NONE else first
        for state in left:
            combined = self.combined(combined, state)
        return finished(self, combined)


_NONE: Any = object()


def _runs_anywhere(gatherer: Gatherer[Any, Any, Any]) -> bool:
    """Return whether a gatherer may run on each partition independently."""
    kind = gatherer.parallel
    return isinstance(kind, ItemWise) and not (isinstance(kind, Calling) and kind.is_shared)


def _nothing() -> None:
    """Return None, the state of a gatherer without one."""


@dataclass(frozen=True)
class ItemWise:
    """A stateless gatherer: partitions run it independently."""


class Outcome(NamedTuple):
    """The outcome of a call.

    Attributes:
        item: the input.
        result: the result; None if the call failed.
        error: the exception, or None.
    """

    item: Any
    result: Any
    error: Exception | None


@dataclass(frozen=True)
class Calling(ItemWise, ABC):
    """A gatherer that makes one call for each item, several at a time, and keeps their order.

    Attributes:
        fn: the function to call.
        rate: the limit of calls a second of all tasks together; None: unlimited.
        cache: equal items are called once, over all tasks.
        instead: a tuple of the value that replaces the result of a failed call; or an empty tuple.
        into: the output of items whose call failed, or None.
    """

    fn: Callable[[Any], Any]
    rate: float | None = None
    cache: bool = False
    instead: tuple[Any, ...] = ()
    into: Sink[Any, Any] | None = None

    @property
    def is_shared(self) -> bool:
        """True if all tasks share a rate limit or a cache."""
        return self.rate is not None or self.cache

    @abstractmethod
    def outcomes(self, items: Iterable[Any], slot: int = 0, slots: int = 1) -> Iterator[Outcome]:
        """Make the calls and yield their outcomes in the order of the items; closing it ends calls in flight.

        Args:
            items: the arguments of the calls.
            slot: the number of this task among all that may run at once.
            slots: the number of these tasks; they share the rate.
        """

    @abstractmethod
    def once(self, item: Any) -> Any:
        """Make one call immediately."""


@dataclass(frozen=True)
class AtEnd(Generic[T, A]):
    """A gatherer with a combiner that takes every item and pushes nothing before its finisher: only states travel.

    Attributes:
        state_of: returns the state after all items of a partition.
    """

    state_of: Callable[[Iterable[T]], A]


@dataclass(frozen=True)
class Place:
    """The position of a partition's items in the stream.

    Attributes:
        offset: how many items precede them.
        size: how many items the partition has.
        total: how many items the stream has.
    """

    offset: int
    size: int
    total: int


@dataclass(frozen=True)
class ByPlace(Generic[T, R]):
    """A gatherer that partitions run independently, with the position of the partition and a number of items after it.

    Attributes:
        following: the number of items after its last one that a partition needs, at most.
        gather_part: `gather_part(items, place)` returns the output that begins in a partition; `items` are its own
            items, then the following items, if there are any.
        gather_ahead: `gather_ahead(own, behind, is_first)` returns the same without the position: `own` are the items
            of the partition, `behind` all items after it, read as far as needed, and `is_first()` returns whether no
            items precede it; None if that is not possible. A collector may call it separately for the inside of a
            partition and for the part across its end, with `behind` empty and `is_first()` False for the inside: an
            item with less than `following` items after it emits nothing then, so nothing may be emitted for the end of
            the stream, nor at its start except for a stream of at most `following` items.
        window: it emits a tuple of each item and the following `window` - 1 items; None: it emits something else.
    """

    following: int
    gather_part: Callable[[Iterable[T], Place], Iterator[R]]
    gather_ahead: Callable[[Iterable[T], Iterable[T], Callable[[], bool]], Iterator[R]] | None = None
    window: int | None = None


@dataclass(frozen=True)
class RunningValue(Generic[T, A]):
    """A gatherer that emits the running value after each item; a partition needs the value of all items before it.

    Attributes:
        start: returns the value of no items.
        fn: `fn(value, item)` returns the next value.
        combiner: `combiner(left, right)` returns the value of two neighbouring parts.
    """

    start: Callable[[], A]
    fn: Callable[[A, T], A]
    combiner: Callable[[A, A], A]


InParallel = ItemWise | AtEnd[Any, Any] | ByPlace[Any, Any] | RunningValue[Any, Any]


class Integration(Generic[T, A, R]):
    """One run of a gatherer's integrator, and then of its finisher.

    Attributes:
        state: the result of the initializer.
        has_stopped: whether the integrator returned False.
    """

    def __init__(self, gatherer: Gatherer[T, A, R]) -> None:
        self.state = gatherer.initializer()
        self.has_stopped = False
        self._gatherer = gatherer
        self._held: _OutputBuffer[R] = _OutputBuffer()

    def pushed(self, items: Iterable[T]) -> Iterator[R]:
        """Yield the output of the integrator for each item, before the next one is read."""
        integrator, state, held = self._gatherer.integrator, self.state, self._held
        for item in items:
            wants_more = integrator(state, item, held)
            yield from held.taken()
            # The usual values are tested inline, without a call for each item.
            if wants_more is not None and wants_more is not True and not accepts_more(wants_more):
                self.has_stopped = True
                return

    def finished(self) -> list[R]:
        """Return the output of the finisher."""
        return finished(self._gatherer, self.state)


def accepts_more(answer: Any) -> bool:
    """Return whether the result of an integrator continues the stream: all do but False, also that of NumPy."""
    if answer is None or answer is True or answer is False:
        return answer is not False
    refuse_awaitable(answer)
    # A comparison of NumPy's numbers is one; NumPy before 2.0 names it `bool_`. It is not imported for this.
    is_bool = type(answer).__module__ == "numpy" and type(answer).__name__ in ("bool", "bool_")
    return bool(answer) if is_bool else True


def finished(gatherer: Gatherer[Any, A, R], state: A) -> list[R]:
    """Return the output of the finisher of `gatherer` for a state."""
    held: _OutputBuffer[R] = _OutputBuffer()
    if gatherer.finisher is not None:
        refuse_awaitable(gatherer.finisher(state, held))
    return held.taken()


class _OutputBuffer(Generic[R]):
    """A downstream that buffers its input until it is drained."""

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
    """The states of two gatherers, and whether the second one has stopped."""

    left: Any
    right: Any
    is_rejecting: bool = False


@record(slots=False)
class Composition:
    """Two gatherers as one: `right` integrates the output of `left`."""

    left: Gatherer[Any, Any, Any]
    right: Gatherer[Any, Any, Any]

    def begin(self) -> _States:
        """Return the initial state of both."""
        return _States(self.left.initializer(), self.right.initializer())

    def integrate(self, states: _States, item: Any, downstream: Downstream[Any]) -> bool:
        """Pass an item to `left`, which pushes into `right`; return whether both accept more."""
        wants_more = self.left.integrator(states.left, item, _Through(self.right, states, downstream))
        return accepts_more(wants_more) and not states.is_rejecting

    def combine(self, first: _States, second: _States) -> _States:
        """Return the states of two neighbouring partitions as one."""
        left, right = self.left.combined(first.left, second.left), self.right.combined(first.right, second.right)
        return _States(left, right, first.is_rejecting or second.is_rejecting)

    def finish(self, states: _States, downstream: Downstream[Any]) -> None:
        """Finish `left`, pass its last items to `right`, and then finish `right`."""
        if self.left.finisher is not None:
            self.left.finisher(states.left, _Through(self.right, states, downstream))
        if self.right.finisher is not None:
            self.right.finisher(states.right, downstream)

    def gather(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the output of both for `items`; it equals that of a loop of `integrate`.

        This applies if `left` is a built-in gatherer, or if `right` takes every item.
        """
        return self.right.gather(self.left.gather(items))


@record
class _Through:
    """The downstream of the first of two gatherers: the second one."""

    right: Gatherer[Any, Any, Any]
    states: _States
    downstream: Downstream[Any]

    def push(self, item: Any, /) -> bool:
        # `left` may push although no more items are accepted.
        if self.is_rejecting():
            return False
        if not accepts_more(self.right.integrator(self.states.right, item, self.downstream)):
            self.states.is_rejecting = True
        return not self.is_rejecting()

    def is_rejecting(self) -> bool:
        return self.states.is_rejecting or self.downstream.is_rejecting()
