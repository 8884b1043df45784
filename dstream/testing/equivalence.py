"""`same_everywhere`: one pipeline on both engines, with different partitionings of its items."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast, overload

from dstream.base.by_value import dumps_by_value
from dstream.collections import IStreamCache, IStreamList, IStreamMap
from dstream.errors import SerializationError
from dstream.failures import shown
from dstream.plan import Node, is_ordered
from dstream.plan.capture_checks import check_captures
from dstream.spi import Engine
from dstream.stream import Stream
from dstream.stream.base import BaseStream
from dstream.testing.comparison import difference, difference_in_any_order, exact
from dstream.testing.engines import context_for_test
from dstream.testing.functions import CapturedState, Observed
from dstream.testing.partitions import Partitioning, Parts, partitionings
from dstream.values import Optional

__all__ = ["same_everywhere"]


A = TypeVar("A")
B = TypeVar("B")
R = TypeVar("R")
U = TypeVar("U")

_ENGINES = ("local", "spark")


@overload
def same_everywhere(
    pipeline: Callable[[Stream[A]], BaseStream[U]],
    first: Iterable[A] | Parts[A],
    /,
    *,
    partitions: Iterable[int] = ...,
    seed: int = ...,
    engines: Collection[str] = ...,
    by: Callable[[Any], object] | None = ...,
    may_change: Collection[str] = ...,
) -> list[U]: ...


@overload
def same_everywhere(
    pipeline: Callable[[Stream[A]], R],
    first: Iterable[A] | Parts[A],
    /,
    *,
    partitions: Iterable[int] = ...,
    seed: int = ...,
    engines: Collection[str] = ...,
    by: Callable[[Any], object] | None = ...,
    may_change: Collection[str] = ...,
) -> R: ...


@overload
def same_everywhere(
    pipeline: Callable[[Stream[A], Stream[B]], BaseStream[U]],
    first: Iterable[A] | Parts[A],
    second: Iterable[B] | Parts[B],
    /,
    *,
    partitions: Iterable[int] = ...,
    seed: int = ...,
    engines: Collection[str] = ...,
    by: Callable[[Any], object] | None = ...,
    may_change: Collection[str] = ...,
) -> list[U]: ...


@overload
def same_everywhere(
    pipeline: Callable[[Stream[A], Stream[B]], R],
    first: Iterable[A] | Parts[A],
    second: Iterable[B] | Parts[B],
    /,
    *,
    partitions: Iterable[int] = ...,
    seed: int = ...,
    engines: Collection[str] = ...,
    by: Callable[[Any], object] | None = ...,
    may_change: Collection[str] = ...,
) -> R: ...


@overload
def same_everywhere(
    pipeline: Callable[..., Any],
    /,
    *inputs: Iterable[Any] | Parts[Any],
    partitions: Iterable[int] = ...,
    seed: int = ...,
    engines: Collection[str] = ...,
    by: Callable[[Any], object] | None = ...,
    may_change: Collection[str] = ...,
) -> Any: ...


def same_everywhere(
    pipeline: Callable[..., Any],
    /,
    *inputs: Iterable[Any] | Parts[Any],
    partitions: Iterable[int] = (1, 2, 3, 8),
    seed: int = 0,
    engines: Collection[str] = _ENGINES,
    by: Callable[[Any], object] | None = None,
    may_change: Collection[str] = (),
) -> Any:
    """Assert that a pipeline has the same result on both engines, for all partitionings of its items; return it.

    The local engine defines the right result. It also detects what would fail on workers: a function that captures an
    object that cannot be pickled, that changes a captured variable, or that changes its items. Then Spark runs the
    pipeline once for each number of `partitions`, cut at random positions, with empty partitions, and once with one
    item in each (up to 16 items). Items without an order, as of a set or of `Parts(..., ordered=False)`, are also
    shuffled.

    Results are compared exactly: `1`, `1.0` and `True` differ, every NaN is the same. The order of
    items counts if the stream is ordered. An exception is a result: its type and its message are compared, and it is
    raised if it is the same everywhere. A distributed collection is compared as a dict or a list of its contents.

    Takes 0.1 to 0.3 seconds for each run on Spark, and several seconds once to start it. Without Java, a test that
    pytest runs is skipped after the local half.

    Args:
        pipeline: takes one stream for each input; returns a stream or any result.
        inputs: the items of each stream; `Parts` to set the partitions.
        partitions: the numbers of partitions into which the items are divided, in turn.
        seed: determines the cuts and the order; the message of a difference names it.
        engines: omit `"spark"` for the checks that need no Java.
        by: makes a result comparable, such as `lambda mean: round(mean, 9)`.
        may_change: names of captured variables that a function may change, such as a cache.

    Raises:
        AssertionError: there is a difference, or the pipeline could not run on workers.

    Example:
        >>> same_everywhere(lambda words: words.map(len).sorted(), ["bb", "a"], engines=["local"])
        [1, 2]
    """
    __tracebackhide__ = True
    trial = _Trial(pipeline, [_Input.of(given, number) for number, given in enumerate(inputs, 1)], by)
    expected = _on_local(trial, may_change)
    if "spark" in engines:
        for division in trial.divisions(list(partitions), seed):
            actual = trial.run("spark", division)
            found = actual.differs_from(expected)
            if found is not None:
                raise AssertionError(_report(trial, division, expected, actual, found, seed))
    return expected.result()


@dataclass(frozen=True)
class _Input:
    """The items of one stream, pickled, so that each run has its own."""

    like: Parts[Any]
    pickled: list[bytes]

    @staticmethod
    def of(given: Iterable[Any] | Parts[Any], number: int) -> _Input:
        like = given if isinstance(given, Parts) else Parts(given, ordered=not isinstance(given, set | frozenset))
        items = list(itertools.chain.from_iterable(like.parts))
        return _Input(like, [_pickled(item, f"item {place} of input {number}") for place, item in enumerate(items)])

    def items(self) -> list[Any]:
        """Return fresh items, as they were passed."""
        return [pickle.loads(data) for data in self.pickled]

    def whole(self) -> Partitioning:
        """Return the items as the local engine reads them: all in one, in order."""
        return Partitioning(1, range(len(self.pickled)), ())


def _pickled(item: Any, name: str) -> bytes:
    try:
        return dumps_by_value(item)
    except Exception as error:
        raise AssertionError(f"{name} cannot be sent to a worker: {shown(item)}: {error}") from error


@dataclass(frozen=True)
class _Outcome:
    """The outcome of a run: a result or an exception, and whether the order of its items counts."""

    value: Any
    comparable: Any
    error: Exception | None
    in_order: bool

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value

    def differs_from(self, expected: _Outcome) -> str | None:
        """Describe the difference from the expected outcome; None if there is no difference."""
        if self.error is not None or expected.error is not None:
            return difference(_words(expected), _words(self))
        if isinstance(expected.comparable, list) and isinstance(self.comparable, list) and not expected.in_order:
            return difference_in_any_order(expected.comparable, self.comparable)
        return difference(expected.comparable, self.comparable)

    def __str__(self) -> str:
        return shown(self.value) if self.error is None else _words(self)


def _words(outcome: _Outcome) -> str:
    """Write an exception as its type and its message."""
    return f"{type(outcome.error).__name__}: {outcome.error}" if outcome.error else shown(outcome.value)


@dataclass
class _Trial:
    """A pipeline, and the items that it is tried on."""

    pipeline: Callable[..., Any]
    inputs: list[_Input]
    by: Callable[[Any], object] | None
    agreed: list[int] = field(default_factory=list)

    def divisions(self, partitions: Sequence[int], seed: int) -> Iterator[list[Partitioning]]:
        """Yield partitionings of the inputs, repeatedly."""
        ways = [
            list(partitionings(len(one.pickled), one.like.ordered, partitions, f"{seed}/{number}"))
            for number, one in enumerate(self.inputs)
        ]
        for division in itertools.zip_longest(*ways):
            filled = [way or ways[number][-1] for number, way in enumerate(division)]
            yield filled
            # Reached if the caller requests another division, after this one showed no difference.
            self.agreed.append(max((way.count for way in filled), default=1))

    def run(self, engine: str, division: list[Partitioning], look: Callable[[Node], None] | None = None) -> _Outcome:
        """Run the pipeline once on fresh items."""
        items = [one.items() for one in self.inputs]
        return self.run_on(engine, division, items, look or _ignore)

    def run_on(
        self, engine: str, division: list[Partitioning], items: list[list[Any]], look: Callable[[Node], None]
    ) -> _Outcome:
        orders: list[bool] = []

        def observe(plan: Node) -> None:
            look(plan)
            orders.append(is_ordered(plan))

        def wrap(inner: Engine) -> Engine:
            return cast(Engine, Observed(inner, observe))

        with context_for_test(engine, wrap) as ctx:
            sources = [way.of(own, one.like) for way, own, one in zip(division, items, self.inputs, strict=True)]
            value, error = _settled(self.pipeline, [ctx.read(source) for source in sources])
        comparable = self.by(value) if self.by is not None and error is None else value
        return _Outcome(value, comparable, error, all(orders))


def _ignore(plan: Node) -> None:
    """Ignore a plan."""


def _settled(pipeline: Callable[..., Any], streams: list[Stream[Any]]) -> tuple[Any, Exception | None]:
    """Return the result of a pipeline, as a value that outlives its context, or the exception that it raises."""
    try:
        return _materialized(pipeline(*streams)), None
    except Exception as error:
        return None, error


def _materialized(result: Any) -> Any:
    # Read while the context is open: a handle to a stream or a collection ends with it.
    if isinstance(result, BaseStream):
        return result.to_list()
    if isinstance(result, IStreamMap | IStreamCache):
        return dict(result.items())
    return list(result) if isinstance(result, Iterator | IStreamList) else result


def _on_local(trial: _Trial, may_change: Collection[str]) -> _Outcome:
    """Run on the local engine, and refuse a pipeline that could not run on workers."""
    __tracebackhide__ = True
    state, problems = CapturedState(), []

    def look(plan: Node) -> None:
        try:
            check_captures(plan)
        except SerializationError as error:
            problems.append(str(error))  # Raised after the run, where it cannot count as an exception of the pipeline.
        state.keep(plan)

    items = [one.items() for one in trial.inputs]
    outcome = trial.run_on("local", [one.whole() for one in trial.inputs], items, look)
    problems += (
        f"{change}; a worker would change a copy of its own: let the function return what it found, "
        "collect it, or use peek(), which runs in the caller"
        for change in state.changes(may_change)
    )
    problems += _changed_items(trial.inputs, items)
    if problems:
        raise AssertionError(problems[0])
    return outcome


def _changed_items(inputs: list[_Input], after: list[list[Any]]) -> Iterator[str]:
    for number, (one, items) in enumerate(zip(inputs, after, strict=True), 1):
        for place, (old, new) in enumerate(zip(one.items(), items, strict=True)):
            if exact(old) != exact(new):
                yield (
                    f"a step changed item {place} of input {number} from {shown(old)} to {shown(new)}; "
                    "on Spark it would change a copy: make a new item and return it"
                )


def _report(
    trial: _Trial, division: list[Partitioning], expected: _Outcome, actual: _Outcome, found: str, seed: int
) -> str:
    """Write down a difference, so that it can be made again."""
    count = max((way.count for way in division), default=1)
    lines = ["the pipeline gives something else on Spark than on the local engine", ""]
    for number, (way, one) in enumerate(zip(division, trial.inputs, strict=True), 1):
        shuffled = f", in the order {shown(list(way.order))}" if list(way.order) != sorted(way.order) else ""
        size = len(one.pickled)
        lines.append(f"  input {number}  {size} items in {way.count} partitions, cut at {list(way.cuts)}{shuffled}")
    lines += [
        f"  local    {expected}",
        f"  Spark    {actual}",
        f"  first difference: {found}",
        f"  again: same_everywhere(..., partitions=[{count}], seed={seed})",
        f"  look at: {_advice(trial, count, expected, actual)}",
    ]
    return "\n".join(lines)


def _advice(trial: _Trial, count: int, expected: _Outcome, actual: _Outcome) -> str:
    """Return advice on the cause of a difference."""
    again = trial.run("local", [one.whole() for one in trial.inputs])
    if again.differs_from(expected) is not None:
        return "what changes from run to run: random numbers, the time, a generator that can be read only once"
    if expected.error is not None or actual.error is not None:
        return "what raises: of several items that fail in several partitions, any may be the first"
    if _are_close(expected.value, actual.value):
        return "sums of floats, which depend on where the items are cut: use summing(), or compare by= a rounding"
    if count == 1 or 1 not in trial.agreed:
        return (
            "what differs between two processes: hash() of a text, the order of a set, variables of a module, "
            "or the order of an unordered stream"
        )
    return (
        "what depends on where the items are cut, since one partition gives the same: a function of "
        "reduce() or a combiner that is not associative, an identity that changes something, for_each_partition()"
    )


def _are_close(left: Any, right: Any) -> bool:
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and len(left) == len(right):
        return all(map(_are_close, left, right))
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        return all(_are_close(left[key], right[key]) for key in left)
    if isinstance(left, Optional) and isinstance(right, Optional):
        return _are_close(left.or_else(None), right.or_else(None))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-6)
    return exact(left) == exact(right)
