"""`IntStream`, `LongStream`, `DoubleStream`: streams of numbers, with sums and statistics.

Ints are Python's: they do not overflow, so `IntStream` and `LongStream` differ in name only. Each
checks the numbers that user functions return: ints remain ints, floats remain floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from dstream.arguments import checked_function, choice, kind_of, refuse_no_iterable
from dstream.connectors.memory import Generate, Items, Range, whole
from dstream.plan import Map, Read, Sorted, Step, call_site, called, here, unchanged
from dstream.spi import Collector, Source
from dstream.stream.ends import Ends, Tabular
from dstream.stream.error_handling import Recovering
from dstream.stream.keyed import Keyed
from dstream.stream.neighbours import Gathering
from dstream.stream.objects import StreamBuilder, iteration, shown_call
from dstream.stream.pairs import Paired
from dstream.stream.reductions import double_statistics, double_sum, extreme, int_statistics, int_sum, nan_extreme
from dstream.stream.shorthands import Shared
from dstream.values import DoubleSummaryStatistics, IntSummaryStatistics, Optional
from dstream.values.numbers import exact_float, exact_int
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from dstream.stream.objects import Stream

__all__ = ["DoubleStream", "IntStream", "LongStream"]


N = TypeVar("N", int, float)
U = TypeVar("U")


class _NumericStream(Gathering[N], Keyed[N], Paired[N], Shared[N], Recovering[N], Ends[N], Tabular[N]):
    """The base of all streams of numbers."""

    __slots__ = ()

    _kind: ClassVar[type]

    # Getting a stream

    @classmethod
    def of(cls, *numbers: N) -> Self:
        """Return a stream of the arguments; an argument that is no number of this kind is refused at once.

        Example:
            >>> IntStream.of(1, 2, 3).sum()
            6
        """
        checked = tuple(map(_exact(cls._kind), numbers))
        return cls._read(Items(checked), f"{cls.__name__}.of({len(numbers)} numbers)")

    @classmethod
    def builder(cls) -> StreamBuilder[N, Self]:
        """Return a builder, which collects numbers and makes a stream of them.

        Example:
            >>> IntStream.builder().add(1).add(2).build().sum()
            3
        """
        name = f"{cls.__name__}.builder().build()"
        return StreamBuilder(lambda numbers: cls._read(Items(numbers), name), _exact(cls._kind))

    @classmethod
    def empty(cls) -> Self:
        """Return a stream of nothing."""
        return cls._read(Items(()), f"{cls.__name__}.empty()")

    @classmethod
    def from_iterable(cls, iterable: Iterable[N], partitions: int | None = None) -> Self:
        """Return a stream of the numbers of `iterable`, checked as they are read."""
        refuse_no_iterable(iterable)
        return cls._read(
            Items(iterable, partitions), f"{cls.__name__}.from_iterable({type(iterable).__name__})"
        )._checked("numbers")

    @classmethod
    def iterate(cls, seed: N, *functions: Callable[[N], Any]) -> Self:
        """Return `seed, next(seed), ...`: `iterate(seed, next)` or `iterate(seed, has_next, next)`.

        Example:
            >>> IntStream.iterate(1, lambda n: n * 2).limit(4).to_list()
            [1, 2, 4, 8]
        """
        return cls._read(iteration(seed, functions), f"{cls.__name__}.iterate({shown_call(seed, functions)})")._checked(
            "numbers"
        )

    @classmethod
    def generate(cls, supplier: Callable[[], N]) -> Self:
        """Return an infinite unordered stream of the results of `supplier`, in parallel."""
        source = Generate(checked_function(supplier, "supplier"))
        return cls._read(source, f"{cls.__name__}.generate({shown_function(supplier)})")._checked("numbers")

    @classmethod
    def concat(cls, *streams: Self) -> Self:
        """Return the numbers of each stream, one stream after another; ordered if all of them are."""
        if not streams:
            return cls.empty()
        if not isinstance(streams[0], cls):
            raise TypeError(f"concat() takes streams of type {cls.__name__}, not {kind_of(streams[0])}")
        return streams[0]._concat(*streams[1:])

    # Lazy operations

    def map(self, fn: Callable[[N], N]) -> Self:
        """Replace each number by `fn(number)`, which must be a number of the same kind."""
        return self._then(self._map(fn, self._kind, "map"))

    def map_to_obj(self, fn: Callable[[N], U]) -> Stream[U]:
        """Replace each number by the object `fn(number)`."""
        return self._as("Stream", self._map(fn, None, "map_to_obj"))

    def map_to_int(self, fn: Callable[[N], int]) -> IntStream:
        """Replace each number by the int `fn(number)`; anything else is a `TypeError` that names it."""
        return self._as("IntStream", self._map(fn, int, "map_to_int"))

    def map_to_long(self, fn: Callable[[N], int]) -> LongStream:
        """Replace each number by the int `fn(number)`; anything else is a `TypeError` that names it."""
        return self._as("LongStream", self._map(fn, int, "map_to_long"))

    def map_to_double(self, fn: Callable[[N], float]) -> DoubleStream:
        """Replace each number by the float of `fn(number)`."""
        return self._as("DoubleStream", self._map(fn, float, "map_to_double"))

    def flat_map(self, fn: Callable[[N], Iterable[N] | None]) -> Self:
        """Replace each number by all the numbers that `fn(number)` returns; None is not a number."""
        return self._then(self._flat_map(fn, self._kind, "flat_map"))

    def map_multi(self, fn: Callable[[N, Callable[[N], None]], object]) -> Self:
        """Replace each number by those that `fn(number, emit)` passes to `emit`."""
        return self._then(self._map_multi(fn, self._kind, "map_multi"))

    def boxed(self) -> Stream[N]:
        """Return the numbers as a stream of objects, which has collectors and sorting by key."""
        return self._as("Stream", self._node)

    def sorted(self, *, reverse: bool = False) -> Self:
        """Sort the numbers; NaN sorts last."""
        return self._then(Sorted(self._node, None, choice(reverse, "reverse"), step=here()))

    # Terminal operations

    def average(self) -> Optional[float]:
        """Return the mean, or an empty `Optional` for no numbers.

        Raises:
            OverflowError: the mean of ints is too large for a float. That of floats is infinite then, as in Java.

        Example:
            >>> IntStream.of(1, 2).average()
            Optional[1.5]
        """
        # Not the attribute `average`, which is infinite for ints beyond the floats.
        mean: Collector[N, Any, Optional[float]] = replace(self._statistics(), finisher=_mean)
        return self._collect(mean, "average")

    def _statistics(self) -> Collector[Any, Any, Any]:
        return int_statistics() if self._kind is int else double_statistics()

    @classmethod
    def _read(cls, source: Source[Any], name: str) -> Self:
        return cls(Read(source, step=Step(name, call_site())), None)

    def _checked(self, name: str) -> Self:
        """Check each number that the user passes."""
        return type(self)(
            Map(self._node, unchanged, self._kind, step=called(name, where=self._node.step.where)), self._runtime
        )


def _mean(statistics: IntSummaryStatistics | DoubleSummaryStatistics) -> Optional[float]:
    return Optional.of(statistics.sum / statistics.count) if statistics.count else Optional.empty()


class _IntegralStream(_NumericStream[int]):
    """The base of both streams of ints."""

    __slots__ = ()

    _kind = _resolved_kind = int

    @classmethod
    def range(cls, start: int, stop: int, step: int = 1) -> Self:
        """Return the ints of `range(start, stop, step)`: from `start` up to `stop`, without it.

        Split over partitions, never built in the caller.

        Raises:
            TypeError: an argument is no int.
            ValueError: `step` is 0.

        Example:
            >>> IntStream.range(1, 4).to_list()
            [1, 2, 3]
            >>> IntStream.range(9, 0, -3).to_list()
            [9, 6, 3]
        """
        return cls._read(Range(start, stop, step), _shown_range(cls, "range", start, stop, step))

    @classmethod
    def range_closed(cls, start: int, stop: int, step: int = 1) -> Self:
        """Return the ints from `start` up to `stop`, with it if the steps meet it; otherwise as `range`.

        Example:
            >>> IntStream.range_closed(0, 6, 3).to_list()
            [0, 3, 6]
        """
        # A range ends before its stop, seen in the direction of its step.
        behind = whole(stop, "stop") + (1 if whole(step, "step") > 0 else -1)
        return cls._read(Range(start, behind, step), _shown_range(cls, "range_closed", start, stop, step))

    def as_double_stream(self) -> DoubleStream:
        """Return the ints as floats."""
        return self._as("DoubleStream", self._map(unchanged, float, "as_double_stream"))

    def sum(self) -> int:
        """Return the sum, 0 for no ints; it does not overflow.

        Example:
            >>> IntStream.range_closed(1, 100).sum()
            5050
        """
        return self._collect(int_sum(), "sum")

    def min(self) -> Optional[int]:
        """Return the least int, or an empty `Optional` for none."""
        return self._collect_present(extreme(min, None), "min")

    def max(self) -> Optional[int]:
        """Return the greatest int, or an empty `Optional` for none."""
        return self._collect_present(extreme(max, None), "max")

    def summary_statistics(self) -> IntSummaryStatistics:
        """Return count, sum, min, max and average in one pass.

        Example:
            >>> IntStream.of(1, 2, 3).summary_statistics()
            IntSummaryStatistics(count=3, sum=6, min=1, max=3, average=2.0)
        """
        return self._collect(int_statistics(), "summary_statistics")


def _shown_range(cls: type, name: str, start: int, stop: int, step: int) -> str:
    return f"{cls.__name__}.{name}({start}, {stop}{'' if step == 1 else f', {step}'})"


class IntStream(_IntegralStream):
    """A stream of ints: `java.util.stream.IntStream` without overflow.

    Example:
        >>> IntStream.range(0, 10).filter(lambda n: n % 3 == 0).to_list()
        [0, 3, 6, 9]
    """

    __slots__ = ()

    def as_long_stream(self) -> LongStream:
        """Return the ints as a `LongStream`."""
        # Python has one type of ints.
        return self._as("LongStream", self._node)


class LongStream(_IntegralStream):
    """A stream of ints under Java's other name; Python has one kind of int."""

    __slots__ = ()


def _exact(kind: type) -> Callable[[Any], Any]:
    """Return a check of the numbers of a stream of this kind."""
    return exact_int if kind is int else exact_float


class DoubleStream(_NumericStream[float]):
    """A stream of floats: ints become floats, sums are compensated, one NaN makes `min`, `max`, `sum` NaN.

    Example:
        >>> DoubleStream.of(*[0.1] * 10).sum()
        1.0
    """

    __slots__ = ()

    _kind = _resolved_kind = float

    def sum(self) -> float:
        """Return the sum, rounded once, however the floats are split; 0.0 for none."""
        return self._collect(double_sum(), "sum")

    def min(self) -> Optional[float]:
        """Return the least float, NaN if any is, or an empty `Optional` for none."""
        return self._collect_present(nan_extreme(min), "min")

    def max(self) -> Optional[float]:
        """Return the greatest float, NaN if any is, or an empty `Optional` for none."""
        return self._collect_present(nan_extreme(max), "max")

    def summary_statistics(self) -> DoubleSummaryStatistics:
        """Return count, sum, min, max and average in one pass."""
        return self._collect(double_statistics(), "summary_statistics")
