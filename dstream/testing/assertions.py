"""Assertions about streams, with messages that show what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from dstream.failures import MISSING, failure, shown
from dstream.stream.base import BaseStream
from dstream.testing.comparing import difference, difference_in_any_order, exact, report

__all__ = ["assert_fails", "assert_items", "assert_items_in_any_order"]

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


def assert_items(stream: BaseStream[T] | Iterable[T], expected: Iterable[T]) -> None:
    """Make sure that a stream, or any iterable, gives exactly these items in this order.

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
    """Make sure that a stream, or any iterable, gives exactly these items, each as often, in any order.

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
    """Make sure that a stream, or a call without arguments, fails; return its exception.

    Args:
        action: a stream, which is read to its end, or a function that runs one.
        error: the type of the exception.
        step: the step that fails, as it names itself: `".map(parse)"`.
        item: the item on which it fails.

    Raises:
        AssertionError: it does not fail, or in another way.

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
