"""`AggregateOperation` and `Collector`: mutable reductions as data, without an engine.

A collector is the aggregate operation of one input. Reductions are executed as collectors: `on_input(i)` returns the
collector that adds one of several inputs to their common container.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar, overload

from dstream.base.functions import refuse_awaitable
from dstream.base.records import record
from dstream.failures.attribution import failed_on, forgotten, in_group, stopped
from dstream.spi.columns import InColumns
from dstream.values.user_functions import refuse_async, refuse_one_that_would_not_run, shown_function

__all__ = ["AggregateOperation", "Characteristics", "Collector", "Keyed", "identity"]


In = TypeVar("In", bound=tuple[Any, ...])
T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
K = TypeVar("K")
T2 = TypeVar("T2")
A2 = TypeVar("A2")
R2 = TypeVar("R2")
T3 = TypeVar("T3")


class Characteristics(enum.Enum):
    """A freedom of the engine in using a collector."""

    CONCURRENT = "CONCURRENT"
    UNORDERED = "UNORDERED"
    IDENTITY_FINISH = "IDENTITY_FINISH"


def identity(container: Any) -> Any:
    """Return `container`: the finisher of a collector whose container is its result."""
    return container


class AggregateOperation(Generic[In, A, R]):
    """Reduction of the items of one or several inputs to one result, under the names of Hazelcast Jet.

    A container is made by `create`; `accumulate` adds an item of an input to it, `combine` merges another container
    that follows it. Both may change the container and return None, or return the next container. `finish` returns the
    result and leaves the container unchanged.

    Args:
        create: makes an empty container.
        accumulate: takes (container, item); for several inputs, a tuple with one function per input.
        combine: takes (container, later container). Without it nothing is combined before items are shuffled: all
            items of a group are sent to one task, which accumulates them in order, the items of earlier inputs first.
        deduct: takes (container, other) and undoes `combine(container, other)`, for windows that slide.
        finish: takes the container; unset, the container is the result.

    Raises:
        TypeError: one of them cannot be called, or would not run, as an async function; or `accumulate` is an empty
            tuple.

    Example:
        >>> longest = AggregateOperation(int, lambda most, word: max(most, len(word)), max)
        >>> longest.on_input(0).collect(["a", "ccc"])
        3
    """

    @overload
    def __init__(
        self: AggregateOperation[tuple[T2], A2, A2],
        create: Callable[[], A2],
        accumulate: Callable[[A2, T2], A2 | None],
        combine: Callable[[A2, A2], A2 | None] | None = None,
        deduct: Callable[[A2, A2], A2 | None] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: AggregateOperation[tuple[T2], A2, R2],
        create: Callable[[], A2],
        accumulate: Callable[[A2, T2], A2 | None],
        combine: Callable[[A2, A2], A2 | None] | None = None,
        deduct: Callable[[A2, A2], A2 | None] | None = None,
        *,
        finish: Callable[[A2], R2],
    ) -> None: ...
    @overload
    def __init__(
        self: AggregateOperation[tuple[T2, T3], A2, A2],
        create: Callable[[], A2],
        accumulate: tuple[Callable[[A2, T2], A2 | None], Callable[[A2, T3], A2 | None]],
        combine: Callable[[A2, A2], A2 | None] | None = None,
        deduct: Callable[[A2, A2], A2 | None] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: AggregateOperation[tuple[T2, T3], A2, R2],
        create: Callable[[], A2],
        accumulate: tuple[Callable[[A2, T2], A2 | None], Callable[[A2, T3], A2 | None]],
        combine: Callable[[A2, A2], A2 | None] | None = None,
        deduct: Callable[[A2, A2], A2 | None] | None = None,
        *,
        finish: Callable[[A2], R2],
    ) -> None: ...
    @overload
    def __init__(
        self: AggregateOperation[tuple[Any, ...], A2, A2],
        create: Callable[[], A2],
        accumulate: tuple[Callable[[A2, Any], A2 | None], ...],
        combine: Callable[[A2, A2], A2 | None] | None = None,
        deduct: Callable[[A2, A2], A2 | None] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: AggregateOperation[tuple[Any, ...], A2, R2],
        create: Callable[[], A2],
        accumulate: tuple[Callable[[A2, Any], A2 | None], ...],
        combine: Callable[[A2, A2], A2 | None] | None = None,
        deduct: Callable[[A2, A2], A2 | None] | None = None,
        *,
        finish: Callable[[A2], R2],
    ) -> None: ...
    def __init__(
        self, create: Any, accumulate: Any, combine: Any = None, deduct: Any = None, finish: Any = identity
    ) -> None:
        accumulates = accumulate if isinstance(accumulate, tuple) else (accumulate,)
        if not accumulates:
            raise TypeError("AggregateOperation: accumulate needs a function for each input, and there is none")
        called = [("create", create), ("finish", finish), *(("accumulate", each) for each in accumulates)]
        called += [(name, each) for name, each in (("combine", combine), ("deduct", deduct)) if each is not None]
        for name, each in called:
            if not callable(each):
                raise TypeError(f"AggregateOperation: {name} must be a function, not {type(each).__name__}")
            refuse_async(each, f"AggregateOperation: {name}")
            if name not in ("create", "finish"):  # The result of such a function would be mistaken for a container.
                refuse_one_that_would_not_run(each, f"AggregateOperation: {name}")
        self._functions = _Functions(create, accumulates, combine, deduct, finish)

    def called(self, name: str) -> AggregateOperation[In, A, R]:
        """Return a copy of the operation with the name of the factory that made it, for messages."""
        made: AggregateOperation[Any, A, R] = AggregateOperation(
            self.create, self.accumulates, self.combine, self.deduct, finish=self.finish
        )
        # The name is no argument of the public constructor.
        made._functions = replace(made._functions, name=name)
        return made

    @property
    def create(self) -> Callable[[], A]:
        """The function that returns an empty container."""
        return self._parts_of_it().create

    @property
    def accumulates(self) -> tuple[Callable[[A, Any], A | None], ...]:
        """The functions that add an item to a container, one per input."""
        return self._parts_of_it().accumulates

    @property
    def combine(self) -> Callable[[A, A], A | None] | None:
        """The function that merges a later container into an earlier one; None if containers cannot be combined."""
        return self._parts_of_it().combine

    @property
    def deduct(self) -> Callable[[A, A], A | None] | None:
        """Undoes `combine`; None if that cannot be."""
        return self._parts_of_it().deduct

    @property
    def finish(self) -> Callable[[A], R]:
        """The function that returns the result of a container."""
        return self._parts_of_it().finish

    @property
    def arity(self) -> int:
        """The number of inputs."""
        return len(self.accumulates)

    def with_finish(self, finish: Callable[[A], R2]) -> AggregateOperation[In, A, R2]:
        """Return a copy of the operation with another result of its container.

        Example:
            >>> from collectors import to_list
            >>> to_list().with_finish(len).on_input(0).collect("abc")
            3
        """
        made: AggregateOperation[Any, A, R2] = AggregateOperation(
            self.create, self.accumulates, self.combine, self.deduct, finish=finish
        )
        return made

    def with_accumulate(self, *accumulates: Callable[[A, Any], A | None]) -> AggregateOperation[tuple[Any, ...], A, R]:
        """Return a copy of the operation on other inputs, with a function for each of them."""
        return AggregateOperation(self.create, accumulates, self.combine, self.deduct, finish=self.finish)

    def on_input(self, number: int) -> Collector[Any, Any, R]:
        """Return a collector that accumulates the items of one input into the container of all.

        The containers of all inputs are combined in the order of the inputs.

        Raises:
            IndexError: there is no such input.
        """
        accumulate = self.accumulates[number]
        if self.combine is not None:
            return Collector(self.create, accumulate, self.combine, self.finish, name=repr(self), deducting=self.deduct)
        # Without a combiner the container is a list of the items, which are accumulated at the end.
        replay = partial(_accumulated_at_last, self)
        return Collector(list, partial(_keep, number), list.extend, replay, name=repr(self))

    def as_collector(self) -> Collector[Any, A, R]:
        """Return it as a collector.

        Raises:
            TypeError: it has several inputs.
        """
        if self.arity != 1:
            raise TypeError(f"{self!r} has {self.arity} inputs: give it to co_aggregate(...) with as many stages")
        return self.on_input(0)

    def result_of(self, items: Iterable[tuple[int, Any]]) -> R:
        """Return the result of pairs of an item and the number of its input; nothing is combined."""
        return _accumulated_at_last(self, items)

    def _parts_of_it(self) -> _Functions:
        # A collector, which is a dataclass, overrides this: its functions are fields.
        return self._functions

    def __repr__(self) -> str:
        parts = self._functions
        if parts.name:
            return parts.name
        shown = [shown_function(parts.create), *map(shown_function, parts.accumulates)]
        shown += [shown_function(each) for each in (parts.combine, parts.deduct) if each is not None]
        return f"AggregateOperation({', '.join(shown)})"


def _keep(number: int, items: list[tuple[int, Any]], item: Any) -> None:
    items.append((number, item))


def _accumulated_at_last(operation: AggregateOperation[Any, A, R], items: Iterable[tuple[int, Any]]) -> R:
    """Accumulate buffered items, since their containers cannot be combined, and finish."""
    return operation.finish(_container_of(operation, items))  # Apart: a failure to finish belongs to no item.


def _container_of(operation: AggregateOperation[Any, A, Any], items: Iterable[tuple[int, Any]]) -> A:
    container = operation.create()
    for number, item in items:
        try:
            following = operation.accumulates[number](container, item)
        except Exception as error:
            failed_on(error, item)
            raise
        container = container if following is None else following
    refuse_awaitable(container)
    return container


@record(slots=False)
class _Functions:
    """The functions of a collector, each by its part."""

    create: Callable[[], Any]
    accumulates: tuple[Callable[[Any, Any], Any], ...]
    combine: Callable[[Any, Any], Any] | None
    deduct: Callable[[Any, Any], Any] | None
    finish: Callable[[Any], Any]
    name: str = ""


@dataclass(frozen=True, repr=False)
class Collector(AggregateOperation[tuple[T], A, R], Generic[T, A, R]):
    """Reduction of items to a result: `supplier`, `accumulator`, `combiner`, `finisher`.

    `accumulator(container, item)` and `combiner(left, right)` may change the container and return
    None (`list.append`, `list.extend`), or return the next container. Combining is associative and
    keeps the order left, right. A container is fresh for each task and travels pickled.

    Attributes:
        accumulate_all: the same as a loop of `accumulator`, faster; returns the container.
        keyed: set if the result is a dictionary of groups; an engine may then combine group by group before the
            shuffle.
        name: the factory that made it, such as `grouping_by(...)`, for messages; it may be empty.
        parts: splits a container into several smaller ones, which are sent one after another and combined in order.
        deducting: takes (container, other) and undoes the combination with `other`; None if that is not possible.
        in_columns: the equivalent of `accumulate_all` for columns of numbers; None if there is none. `on_columns`
            checks whether it still applies.
        functions: the user's functions that take items, by their labels, such as `summing(fn)`: for diagrams.

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
    deducting: Callable[[A, A], A | None] | None = None
    in_columns: InColumns | None = field(default=None, compare=False)
    functions: tuple[tuple[str, Callable[..., Any]], ...] = field(default=(), compare=False)

    def on_columns(self) -> InColumns | None:
        """Return its column functions, unless the function that they are equivalent to has been replaced."""
        known = self.in_columns
        return known if known is not None and known.same_as is self.accumulate_all else None

    def _parts_of_it(self) -> _Functions:
        return _Functions(self.supplier, (self.accumulator,), self.combiner, self.deducting, self.finisher)

    def on_input(self, number: int) -> Collector[T, A, R]:
        """Return this collector, which has one input."""
        if number not in (0, -1):
            raise IndexError(f"{self!r} has one input")
        return self

    def __repr__(self) -> str:
        functions: list[Any] = [self.supplier, self.accumulator, self.combiner]
        functions += [self.finisher] * (self.finisher is not identity)
        return self.name or f"Collector({', '.join(map(shown_function, functions))})"

    def __post_init__(self) -> None:
        for name in ("supplier", "accumulator", "combiner", "finisher"):
            if not callable(getattr(self, name)):
                raise TypeError(f"Collector: {name} must be a function, not {type(getattr(self, name)).__name__}")
            refuse_async(getattr(self, name), f"Collector: {name}")
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

        The order is: supplier, accumulator, combiner, an optional finisher, optional characteristics.

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
        """Reduce `items` immediately, in this process.

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
        """Return the container with the contents of `container` and then `items`."""
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
        # After the loop, since an async accumulator returns coroutines from the first item on.
        refuse_awaitable(container)
        return container

    def finished(self, groups: Iterable[tuple[K, A]]) -> Iterator[tuple[K, R]]:
        """Yield each key with the result of its container; a failure names the key, since it has no item."""
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

    def deducted(self, left: A, right: A) -> A:
        """Return the contents of `left` before `right` was combined with it; `left` may be changed."""
        assert self.deducting is not None, "only what has it is asked"
        following = self.deducting(left, right)
        return left if following is None else following


@dataclass(frozen=True)
class Keyed(Generic[T, R]):
    """A collector seen as one downstream collector per key.

    The container of such a collector is a dictionary from canonical key (`dstream.keys`) to
    downstream container, in the order in which the keys were first seen.

    Attributes:
        classifier: the key of an item; it raises for a key that the collector refuses.
        downstream: the collector of the items of one key, as (container, finished value).
        assemble: makes the result from (key, value) pairs in the order in which the keys were first seen.
        takes_entries: the items are entries: the only entry of a key becomes its group unchanged.
    """

    classifier: Callable[[T], Any]
    downstream: Collector[Any, Any, Any]
    assemble: Callable[[Iterable[tuple[Any, Any]]], R]
    takes_entries: bool = False
