"""`fold` and `scan`: one value that goes from item to item."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, overload

from dstream.gatherers.gatherer_arguments import function, optional_function
from dstream.spi import AtEnd, Downstream, Gatherer, RunningValue
from dstream.values.flattened import checked_result

__all__ = ["fold", "scan"]

T = TypeVar("T")
R = TypeVar("R")
U = TypeVar("U")
U2 = TypeVar("U2")
U3 = TypeVar("U3")


@overload
def fold(  # type: ignore[overload-overlap]  # For pyright, as with `Stream.iterate`: it takes `(0, 1)` for that 0 and 1.
    start: Callable[[], R], fn: Callable[[R, T], R], combiner: Callable[[R, R], R] | None = None
) -> Gatherer[T, Any, R]: ...
@overload
def fold(
    start: Callable[[], tuple[U, U2]],
    fn: Callable[[tuple[U, U2], T], tuple[U, U2]],
    combiner: Callable[[tuple[U, U2], tuple[U, U2]], tuple[U, U2]] | None = None,
) -> Gatherer[T, Any, tuple[U, U2]]: ...
@overload
def fold(
    start: Callable[[], tuple[U, U2, U3]],
    fn: Callable[[tuple[U, U2, U3], T], tuple[U, U2, U3]],
    combiner: Callable[[tuple[U, U2, U3], tuple[U, U2, U3]], tuple[U, U2, U3]] | None = None,
) -> Gatherer[T, Any, tuple[U, U2, U3]]: ...
def fold(
    start: Callable[[], Any], fn: Callable[[Any, Any], Any], combiner: Callable[[Any, Any], Any] | None = None
) -> Gatherer[Any, Any, Any]:
    """Gather all items into one value: `functools.reduce(fn, items, start())`. An empty stream gives `start()`.

    Without a `combiner` one task takes all items, in order. With one, each partition folds its own items from
    a start of its own, and the values are combined in order. So the start must change nothing (0 for a sum,
    "" for a text), and `combiner(fold of a, fold of b)` must be the fold of a, then b.

    Args:
        start: makes the value of no items.
        fn: `fn(value, item)` returns the next value.
        combiner: `combiner(left, right)` returns the value of two neighbouring parts.

    Example:
        >>> from dstream.gatherers import fold
        >>> Stream.of(1, 2, 3).gather(fold(lambda: "", lambda text, n: f"{text}{n}")).to_list()
        ['123']
    """
    function(start, "start")
    function(fn, "fn")
    optional_function(combiner, "combiner")
    return Gatherer(
        functools.partial(_boxed, start),
        functools.partial(_take, fn),
        None if combiner is None else functools.partial(_combine, combiner),
        _push_value,
        functools.partial(_folded, start, fn),
        None if combiner is None else AtEnd(functools.partial(_state_of, start, fn)),
        "fold(...)",
    )


def _boxed(start: Callable[[], R]) -> list[R]:
    return [start()]


def _take(fn: Callable[[R, T], R], box: list[R], item: T, downstream: Downstream[R]) -> None:
    box[0] = fn(box[0], item)


def _combine(combiner: Callable[[R, R], R], left: list[R], right: list[R]) -> list[R]:
    return [combiner(left[0], right[0])]


def _push_value(box: list[R], downstream: Downstream[R]) -> None:
    downstream.push(checked_result(box[0]))


def _state_of(start: Callable[[], R], fn: Callable[[R, T], R], items: Iterable[T]) -> list[R]:
    value = start()
    for item in items:
        value = fn(value, item)
    return [checked_result(value)]


def _folded(start: Callable[[], R], fn: Callable[[R, T], R], items: Iterable[T]) -> Iterator[R]:
    yield from _state_of(start, fn, items)


@overload
def scan(  # type: ignore[overload-overlap]  # For pyright, as with `Stream.iterate`: it takes `(0, 1)` for that 0 and 1.
    start: Callable[[], R], fn: Callable[[R, T], R], combiner: Callable[[R, R], R] | None = None
) -> Gatherer[T, Any, R]: ...
@overload
def scan(
    start: Callable[[], tuple[U, U2]],
    fn: Callable[[tuple[U, U2], T], tuple[U, U2]],
    combiner: Callable[[tuple[U, U2], tuple[U, U2]], tuple[U, U2]] | None = None,
) -> Gatherer[T, Any, tuple[U, U2]]: ...
@overload
def scan(
    start: Callable[[], tuple[U, U2, U3]],
    fn: Callable[[tuple[U, U2, U3], T], tuple[U, U2, U3]],
    combiner: Callable[[tuple[U, U2, U3], tuple[U, U2, U3]], tuple[U, U2, U3]] | None = None,
) -> Gatherer[T, Any, tuple[U, U2, U3]]: ...
def scan(
    start: Callable[[], Any], fn: Callable[[Any, Any], Any], combiner: Callable[[Any, Any], Any] | None = None
) -> Gatherer[Any, Any, Any]:
    """Gather the value so far behind each item: `itertools.accumulate` without its start.

    Without a `combiner` one task takes all items, in order. With one, each partition first folds its own items
    from a start of its own, and then goes over them again from the value of those before it: `fn` runs twice for
    an item. The start must change nothing (0 for a sum), and `combiner(fold of a, fold of b)` must be the fold
    of a, then b. `fn` must return a new value, not change the old one: each of them is an item.

    Args:
        start: makes the value of no items.
        fn: `fn(value, item)` returns the next value.
        combiner: `combiner(left, right)` returns the value of two neighbouring parts.

    Example:
        >>> import operator
        >>> from dstream.gatherers import scan
        >>> Stream.of(3, 1, 2).gather(scan(lambda: 0, operator.add, operator.add)).to_list()
        [3, 4, 6]
    """
    function(start, "start")
    function(fn, "fn")
    optional_function(combiner, "combiner")
    return Gatherer(
        functools.partial(_boxed, start),
        functools.partial(_take_and_push, fn),
        gather_all=functools.partial(_scanned, start, fn),
        parallel=None if combiner is None else RunningValue(start, fn, combiner),
        name="scan(...)",
    )


def _take_and_push(fn: Callable[[R, T], R], box: list[R], item: T, downstream: Downstream[R]) -> bool:
    box[0] = fn(box[0], item)
    return downstream.push(box[0])


def _scanned(start: Callable[[], R], fn: Callable[[R, T], R], items: Iterable[T]) -> Iterator[R]:
    value, items = start(), iter(items)
    for item in items:
        value = checked_result(fn(value, item))
        yield value
        break
    for item in items:
        value = fn(value, item)
        yield value
