"""`Collector`: a mutable reduction as data, usable with no engine at all."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

from dstream.spi.functions import shown_function
from dstream.values.blaming import failed_on, forgotten, in_group, stopped

__all__ = ["Characteristics", "Collector", "Keyed", "identity"]

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
K = TypeVar("K")
T2 = TypeVar("T2")
A2 = TypeVar("A2")
R2 = TypeVar("R2")


class Characteristics(enum.Enum):
    """What a collector allows the engine to do."""

    CONCURRENT = "CONCURRENT"
    UNORDERED = "UNORDERED"
    IDENTITY_FINISH = "IDENTITY_FINISH"


def identity(container: Any) -> Any:
    """Return `container`: the finisher of a collector whose container is its result."""
    return container


@dataclass(frozen=True, repr=False)
class Collector(Generic[T, A, R]):
    """How items become a result: `supplier`, `accumulator`, `combiner`, `finisher`.

    `accumulator(container, item)` and `combiner(left, right)` may change the container and return
    None (`list.append`, `list.extend`), or return the next container. Combining is associative and
    keeps the order left, right. A container is fresh for each task and travels pickled.

    Attributes:
        accumulate_all: the same as a loop of `accumulator`, faster; returns the container.
        keyed: set when the result is a dictionary of groups; an engine may then combine group by
            group where the data is.
        name: the factory that made it, such as `grouping_by(...)`, for messages; it may be empty.
        parts: gives a container as several smaller ones, which travel one after another and are combined in order.

    Example:
        >>> import operator
        >>> total = Collector(int, operator.add, operator.add)
        >>> total.collect([1, 2, 3])
        6
    """

    supplier: Callable[[], A]
    accumulator: Callable[[A, T], A | None]
    combiner: Callable[[A, A], A | None]
    finisher: Callable[[A], R] = identity
    characteristics: frozenset[Characteristics] = frozenset()
    accumulate_all: Callable[[A, Iterable[T]], A] | None = None
    keyed: Keyed[T, R] | None = None
    name: str = field(default="", compare=False)
    parts: Callable[[A], Iterable[A]] | None = None

    def __repr__(self) -> str:
        functions: list[Any] = [self.supplier, self.accumulator, self.combiner]
        functions += [self.finisher] * (self.finisher is not identity)
        return self.name or f"Collector({', '.join(map(shown_function, functions))})"

    def __post_init__(self) -> None:
        for name in ("supplier", "accumulator", "combiner", "finisher"):
            if not callable(getattr(self, name)):
                raise TypeError(f"Collector: {name} must be callable, not {type(getattr(self, name)).__name__}")
        for each in self.characteristics:
            if not isinstance(each, Characteristics):
                raise TypeError(f"Collector: characteristics must be Characteristics, not {type(each).__name__}")

    @overload
    @staticmethod
    def of(
        supplier: Callable[[], A2],
        accumulator: Callable[[A2, T2], A2 | None],
        combiner: Callable[[A2, A2], A2 | None],
        /,
        *characteristics: Characteristics,
    ) -> Collector[T2, A2, A2]: ...

    @overload
    @staticmethod
    def of(
        supplier: Callable[[], A2],
        accumulator: Callable[[A2, T2], A2 | None],
        combiner: Callable[[A2, A2], A2 | None],
        finisher: Callable[[A2], R2],
        /,
        *characteristics: Characteristics,
    ) -> Collector[T2, A2, R2]: ...

    @staticmethod
    def of(supplier: Any, accumulator: Any, combiner: Any, /, *rest: Any) -> Collector[Any, Any, Any]:
        """Make a collector, with the arguments in the order of `java.util.stream.Collector.of`.

        That is: supplier, accumulator, combiner, a finisher if there is one, characteristics if there are any.

        Example:
            >>> Collector.of(list, list.append, list.extend, len).collect("abc")
            3
        """
        finisher = identity
        if rest and not isinstance(rest[0], Characteristics):
            finisher, *rest = rest  # type: ignore[assignment]
        for each in rest:
            if not isinstance(each, Characteristics):
                raise TypeError(f"Collector.of: characteristics must be Characteristics, not {type(each).__name__}")
        return Collector(supplier, accumulator, combiner, finisher, frozenset(rest))

    def collect(self, items: Iterable[T]) -> R:
        """Reduce `items` here and now, in this process.

        Example:
            >>> Collector(list, list.append, list.extend).collect("abc")
            ['a', 'b', 'c']
        """
        try:
            return self.finisher(self.accumulated(self.supplier(), items))
        except StopIteration as error:
            forgotten(error)
            raise stopped(f"a function of {self!r}") from error
        except Exception as error:
            forgotten(error)  # Where a function of a stream called this, the item of that one is to blame.
            raise

    def accumulated(self, container: A, items: Iterable[T]) -> A:
        """Return the container that holds what `container` held and then `items`."""
        if self.accumulate_all is not None:
            return self.accumulate_all(container, items)
        accumulator = self.accumulator
        for item in items:
            try:
                following = accumulator(container, item)
            except Exception as error:
                failed_on(error, item)
                raise
            if following is not None:
                container = following
        return container

    def finished(self, groups: Iterable[tuple[K, A]]) -> Iterator[tuple[K, R]]:
        """Give each key with the result of its container; a failure names the key, since no item belongs to it."""
        finisher = self.finisher
        for key, container in groups:
            try:
                value = finisher(container)
            except Exception as error:
                in_group(error, key)
                raise
            yield key, value

    def combined(self, left: A, right: A) -> A:
        """Return the container of `left` followed by `right`; either may be changed or used up."""
        following = self.combiner(left, right)
        return left if following is None else following


@dataclass(frozen=True)
class Keyed(Generic[T, R]):
    """A collector seen as one downstream collector per key.

    The container of such a collector is a dictionary from canonical key (`dstream.keys`) to
    downstream container, in the order in which the keys were first seen.

    Attributes:
        classifier: the key of an item; it raises for a key that the collector refuses.
        downstream: what happens to the items of one key, as (container, finished value).
        assemble: makes the result from (key, value) pairs in the order in which the keys were first seen.
    """

    classifier: Callable[[T], Any]
    downstream: Collector[Any, Any, Any]
    assemble: Callable[[Iterable[tuple[Any, Any]]], R]
