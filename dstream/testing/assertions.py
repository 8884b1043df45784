"""Assertions about the items of streams, immediate or as sinks, with messages of the differences.

They end a stream with `collect`, or a stage of a pipeline with `write_to`. All items are collected in the caller's
memory, and the run fails with an `AssertionError` of the difference.

**Parallelism**: the tasks send their items; the caller checks them once, at the end of the run.
**Guarantee**: a run whose items are wrong fails.
**On re-run**: the items of the new run are checked.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from more_itertools import chunked

from dstream.arguments import running_function
from dstream.base.pickling import dumps
from dstream.failures import MISSING, failure, shown
from dstream.spi import Collections, Receipt, Sink
from dstream.stream.base import BaseStream
from dstream.testing.comparison import difference, difference_in_any_order, exact, missing_from, report
from dstream.values.user_functions import shown_function

__all__ = [
    "AssertingSink",
    "assert_any_order",
    "assert_collected",
    "assert_collected_eventually",
    "assert_contains",
    "assert_fails",
    "assert_items",
    "assert_items_in_any_order",
    "assert_ordered",
]


T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


def assert_items(stream: BaseStream[T] | Iterable[T], expected: Iterable[T]) -> None:
    """Assert that a stream, or any iterable, has exactly these items in this order.

    `1`, `1.0` and `True` differ, every NaN is the same.

    Raises:
        AssertionError: it does not; the message shows the first difference.

    Example:
        >>> assert_items(Stream.of("a", "bb").map(len), [1, 2])
    """
    __tracebackhide__ = True
    actual, wanted = list(stream), list(expected)
    found = difference(wanted, actual)
    if found is not None:
        raise AssertionError(report(wanted, actual, found))


def assert_items_in_any_order(stream: BaseStream[T] | Iterable[T], expected: Iterable[T]) -> None:
    """Assert that a stream, or any iterable, has exactly these items with their multiplicity, in any order.

    Items need no hash. `1`, `1.0` and `True` differ, every NaN is the same.

    Raises:
        AssertionError: it does not; the message shows what is missing and what is unexpected.

    Example:
        >>> assert_items_in_any_order(Stream.of([2], [1]).unordered(), [[1], [2]])
    """
    __tracebackhide__ = True
    actual, wanted = list(stream), list(expected)
    found = difference_in_any_order(wanted, actual)
    if found is not None:
        raise AssertionError(report(wanted, actual, found))


def assert_fails(
    action: BaseStream[Any] | Callable[[], object],
    error: type[E],
    *,
    step: str | None = None,
    item: object = MISSING,
) -> E:
    """Assert that a stream, or a call without arguments, fails; return its exception.

    Args:
        action: a stream, which is read to its end, or a function that runs one.
        error: the type of the exception.
        step: the label of the step that fails: `".map(parse)"`.
        item: the item on which it fails.

    Raises:
        AssertionError: it does not fail, or with another error.

    Example:
        >>> failed = assert_fails(Stream.of(2, 0).map(lambda n: 1 / n), ZeroDivisionError, step=".map(lambda)", item=0)
        >>> str(failed)
        'division by zero'
    """
    __tracebackhide__ = True
    caught = _caught(action, error)
    known = failure(caught)
    where = None if known is None else known.step.label
    if step is not None and where != step:
        raise AssertionError(
            f"expected the step {step} to fail, but it was {where or 'no step that is known'}"
        ) from caught
    if item is not MISSING:
        failing = MISSING if known is None else known.item
        if exact(failing) != exact(item):
            raise AssertionError(f"expected it to fail on {shown(item)}, but it was {shown(failing)}") from caught
    return caught


def _caught(action: BaseStream[Any] | Callable[[], object], error: type[E]) -> E:
    __tracebackhide__ = True
    try:
        if isinstance(action, BaseStream):
            action.to_list()
        else:
            action()
    except error as caught:
        return caught
    except Exception as other:
        raise AssertionError(f"expected {error.__name__}, got {type(other).__name__}: {other}") from other
    raise AssertionError(f"expected {error.__name__}, but nothing was raised")


_BATCH = 512


def assert_ordered(items: Iterable[T]) -> Sink[T, None]:
    """Fail a run unless exactly these items arrive, in this order.

    `1`, `1.0` and `True` differ, every NaN is the same.

    Args:
        items: the items; all are in memory.

    Example:
        >>> Stream.of("a", "bb").map(len).collect(assert_ordered([1, 2]))
    """
    wanted = list(items)
    return AssertingSink(
        f"assert_ordered({shown(wanted)})", lambda found: _raise(difference(wanted, found), wanted, found)
    )


def assert_any_order(items: Iterable[T]) -> Sink[T, None]:
    """Fail a run unless exactly these items arrive, each as often, in any order.

    Items need no hash. `1`, `1.0` and `True` differ, every NaN is the same.

    Args:
        items: the items; all are in memory.

    Example:
        >>> Stream.of([2], [1]).collect(assert_any_order([[1], [2]]))
    """
    wanted = list(items)
    return AssertingSink(
        f"assert_any_order({shown(wanted)})",
        lambda found: _raise(difference_in_any_order(wanted, found), wanted, found),
    )


def assert_contains(items: Iterable[T]) -> Sink[T, None]:
    """Fail a run unless these items arrive, each at least as often as here, in any order, among any others.

    Args:
        items: the items; all are in memory.

    Example:
        >>> Stream.of(1, 2, 3).collect(assert_contains([3, 1]))
    """
    wanted = list(items)
    return AssertingSink(
        f"assert_contains({shown(wanted)})", lambda found: _raise(missing_from(found, wanted), wanted, found)
    )


def assert_collected(fn: Callable[[list[T]], object]) -> Sink[T, None]:
    """Fail a run if `fn` does: it takes the list of all items, in encounter order, in the caller's process.

    Args:
        fn: raises what is wrong, as `assert` does. What it returns does not count.

    Raises:
        TypeError: `fn` is no function, or one whose call would not run it.

    Example:
        >>> def check(names):
        ...     assert len(names) == 2
        >>> Stream.of("Ada", "Grace").collect(assert_collected(check))
    """
    return AssertingSink(f"assert_collected({shown_function(running_function(fn, 'fn'))})", fn)


def assert_collected_eventually(seconds: float, fn: Callable[[list[T]], object]) -> Sink[T, None]:
    """Fail a run if `fn` still does when these seconds are over; it takes the list of the items so far.

    Bounded data is checked once, when all items have arrived, regardless of the time: `seconds` is the limit of an
    unbounded run.

    Args:
        seconds: a number above 0.
        fn: as for `assert_collected`.

    Raises:
        TypeError: `fn` is no function, or one whose call would not run it.
        ValueError: `seconds` is no number above 0.

    Example:
        >>> Stream.of(1, 2).collect(assert_collected_eventually(5, lambda numbers: None))
    """
    given: Any = seconds  # Callers without type checks may pass any value.
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
        raise ValueError(f"seconds must be a number above 0, not {shown(seconds)}")
    return AssertingSink(f"assert_collected_eventually({seconds!r}, {shown_function(running_function(fn, 'fn'))})", fn)


def _raise(found: str | None, wanted: list[Any], actual: list[Any]) -> None:
    __tracebackhide__ = True
    if found:
        raise AssertionError(report(wanted, actual, found))


@dataclass(frozen=True, repr=False)
class AssertingSink(Generic[T]):
    """A sink whose commit checks the items; it is its own target.

    Attributes:
        label: the call that made it.
        check: takes all items.
    """

    label: str
    check: Callable[[list[T]], object]

    collector = None
    job = None

    def open(self, context: Collections) -> AssertingSink[T]:
        """Return the sink itself: there is nothing to open."""
        return self

    def begin(self, job: str | None, epoch: int = 1) -> AssertingJob:
        """Begin an epoch."""
        return AssertingJob(self.check)

    def result(self) -> None:
        """Return None."""

    def __repr__(self) -> str:
        return self.label


@dataclass
class AssertingJob:
    """Write job of one run whose items are checked once."""

    check: Callable[[list[Any]], object]
    writer: SendingWriter = field(default_factory=lambda: SendingWriter(), init=False)
    is_done: bool = field(default=False, init=False)

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Check the items.

        Raises:
            AssertionError: they are wrong.
        """
        if self.is_done:
            return
        # Before it counts as done, so that a second commit after a failure fails, too.
        self.check([item for each in receipts if isinstance(each, bytes) for item in pickle.loads(each)])
        self.is_done = True

    def abort(self) -> None:
        """Do nothing: there is no output."""


@dataclass(frozen=True)
class SendingWriter:
    """Writer that sends the items to the caller: they are the receipts."""

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Yield the items, pickled."""
        return map(dumps, chunked(items, _BATCH))
