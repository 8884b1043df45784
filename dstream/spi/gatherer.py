"""`Gatherer`: an intermediate operation as data, as in `java.util.stream.Gatherer` (JDK 24)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, overload

from dstream.spi.functions import refuse_one_that_would_not_run, shown_function
from dstream.spi.in_parallel import Calling, InParallel, ItemWise
from dstream.spi.integration import Composition, Integration, finished

__all__ = ["Downstream", "Gatherer"]

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
U = TypeVar("U")
T2 = TypeVar("T2")
A2 = TypeVar("A2")
R2 = TypeVar("R2")
R_contra = TypeVar("R_contra", contravariant=True)


class Downstream(Protocol[R_contra]):
    """What a gatherer hands its items to."""

    def push(self, item: R_contra, /) -> bool:
        """Hand on an item; return whether more are wanted."""
        ...

    def is_rejecting(self) -> bool:
        """Say whether no more items are wanted."""
        ...


@dataclass(frozen=True, repr=False)
class Gatherer(Generic[T, A, R]):
    """How items become other items, with a state between them. `Gatherer.of` makes one.

    Attributes:
        initializer: makes the state, fresh for each run.
        integrator: `integrator(state, item, downstream)` takes an item and pushes what it likes; False ends
            the stream there.
        combiner: `combiner(left, right)` makes one state of those of two neighbouring partitions, so that
            each partition may run on its own; None if they must run in order. It may change `left` and return
            None.
        finisher: `finisher(state, downstream)` pushes what is left at the end.
        gather_all: the same as a loop of `integrator`, faster.
        parallel: what an engine may know about it, to run it in parallel.
        name: the factory that made it, such as `window_fixed(3)`, for messages.
        may_stop: whether the integrator may want no more items at some point. Then an infinite stream before it is
            trusted to end, as one before a `take_while` is.
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

        Without a `combiner` one task takes all items, in order. With one, each partition runs on its own, with
        a state of its own: it pushes into the place where it stands, then the states are combined in order and
        the finisher runs once. So what is pushed for an item must not depend on items of other partitions.

        Args:
            initializer: makes the state; without it the state is None.
            integrator: `integrator(state, item, downstream)` changes the state, calls `downstream.push(item)` as
                often as it likes, and returns False when it wants no more items.
            combiner: `combiner(left, right)` changes `left` or returns the state of both.
            finisher: `finisher(state, downstream)` pushes what is left when the items have ended, or when the
                integrator wanted no more.

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

        It runs in parallel if both of them have a combiner. `stream.gather(a).gather(b)` gives the same and
        lets each of the two run as it can.

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
        """Give what becomes of `items`, lazily, here and now, in this process."""
        return self._integrated(items) if self.gather_all is None else self.gather_all(items)

    def _integrated(self, items: Iterable[T]) -> Iterator[R]:
        run = Integration(self)
        yield from run.pushed(items)
        yield from run.finished()

    def combined(self, left: A, right: A) -> A:
        """Return the state of two neighbouring partitions, whatever form the combiner has."""
        assert self.combiner is not None, "whoever combines has asked for a combiner"
        state = self.combiner(left, right)
        return left if state is None else state

    def finished(self, states: Iterable[A]) -> list[R]:
        """Return what the finisher pushes for the states of all partitions, in order."""
        left = iter(states)
        first = next(left, _NONE)
        combined: Any = self.initializer() if first is _NONE else first
        for state in left:
            combined = self.combined(combined, state)
        return finished(self, combined)


_NONE: Any = object()


def _runs_anywhere(gatherer: Gatherer[Any, Any, Any]) -> bool:
    """Say whether each partition may run a gatherer as if there were no others."""
    kind = gatherer.parallel
    return isinstance(kind, ItemWise) and not (isinstance(kind, Calling) and kind.is_shared)


def _nothing() -> None:
    """Make the state of a gatherer that has none."""
