"""Collectors that give each item to several others, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar, overload

from collectors.arguments import checked_collector, checked_function
from collectors.batches import batches
from collectors.naming import named
from dstream.spi import Collector
from dstream.values.flattened import checked_result

__all__ = ["all_of", "teeing"]

T = TypeVar("T")
R = TypeVar("R")
R1 = TypeVar("R1")
R2 = TypeVar("R2")
R3 = TypeVar("R3")
R4 = TypeVar("R4")

Parts = tuple[Collector[Any, Any, Any], ...]


@named
def teeing(
    first: Collector[T, Any, R1], second: Collector[T, Any, R2], fn: Callable[[R1, R2], R]
) -> Collector[T, object, R]:
    """Give each item to both collectors, in one pass, and both results to `fn`.

    Example:
        >>> from collectors import counting, summing
        >>> teeing(summing(), counting(), lambda total, count: total / count).collect([1, 2, 6])
        3.0
    """
    parts = (checked_collector(first, "first"), checked_collector(second, "second"))
    return _together(parts, partial(apply_to, checked_function(fn, "fn")))


def apply_to(fn: Callable[..., Any], results: tuple[Any, ...]) -> Any:
    """Give each result to `fn` as an argument of its own."""
    return checked_result(fn(*results))


@overload
def all_of() -> Collector[Any, object, tuple[()]]: ...
@overload
def all_of(first: Collector[T, Any, R1], /) -> Collector[T, object, tuple[R1]]: ...
@overload
def all_of(first: Collector[T, Any, R1], second: Collector[T, Any, R2], /) -> Collector[T, object, tuple[R1, R2]]: ...
@overload
def all_of(
    first: Collector[T, Any, R1], second: Collector[T, Any, R2], third: Collector[T, Any, R3], /
) -> Collector[T, object, tuple[R1, R2, R3]]: ...
@overload
def all_of(
    first: Collector[T, Any, R1],
    second: Collector[T, Any, R2],
    third: Collector[T, Any, R3],
    fourth: Collector[T, Any, R4],
    /,
) -> Collector[T, object, tuple[R1, R2, R3, R4]]: ...
@overload
def all_of(
    first: Collector[T, Any, R1], second: Collector[T, Any, R2], /, *, finish: Callable[[R1, R2], R]
) -> Collector[T, object, R]: ...
@overload
def all_of(
    first: Collector[T, Any, R1],
    second: Collector[T, Any, R2],
    third: Collector[T, Any, R3],
    /,
    *,
    finish: Callable[[R1, R2, R3], R],
) -> Collector[T, object, R]: ...
@overload
def all_of(
    first: Collector[T, Any, Any],
    second: Collector[T, Any, Any],
    third: Collector[T, Any, Any],
    fourth: Collector[T, Any, Any],
    /,
    *more: Collector[T, Any, Any],
    finish: Callable[..., R],
) -> Collector[T, object, R]: ...
@overload
def all_of(
    first: Collector[T, Any, Any],
    second: Collector[T, Any, Any],
    third: Collector[T, Any, Any],
    fourth: Collector[T, Any, Any],
    fifth: Collector[T, Any, Any],
    /,
    *more: Collector[T, Any, Any],
) -> Collector[T, object, tuple[Any, ...]]: ...
@named
def all_of(*collectors: Collector[Any, Any, Any], finish: Callable[..., Any] | None = None) -> Collector[Any, Any, Any]:
    """Give each item to all the collectors, in one pass, and return the tuple of their results.

    Args:
        collectors: what is to become of the items.
        finish: takes one argument for each result and gives what is returned in place of the tuple.

    Example:
        >>> from collectors import counting, max_by
        >>> all_of(counting(), max_by(len)).collect(["a", "ccc"])
        (2, Optional['ccc'])
    """
    parts = tuple(checked_collector(part, f"collectors[{index}]") for index, part in enumerate(collectors))
    return _together(parts, tuple if finish is None else partial(apply_to, checked_function(finish, "finish")))


def _together(parts: Parts, finisher: Callable[[Any], Any]) -> Collector[Any, Any, Any]:
    return Collector(
        partial(supply_each, parts),
        partial(_accumulate_each, parts),
        partial(combine_each, parts),
        partial(finish_each, parts, finisher),
        accumulate_all=partial(_accumulate_all_each, parts),
        deducting=deduct_each(parts),
    )


def supply_each(parts: Parts) -> list[Any]:
    """Return a fresh container for each collector."""
    return [part.supplier() for part in parts]


def _accumulate_each(parts: Parts, containers: list[Any], item: Any) -> None:
    for index, part in enumerate(parts):
        accumulate_in(part, index, containers, item)


def accumulate_in(part: Collector[Any, Any, Any], index: int, containers: list[Any], item: Any) -> None:
    """Take an item into one of several containers."""
    following = part.accumulator(containers[index], item)
    if following is not None:
        containers[index] = following


def _accumulate_all_each(parts: Parts, containers: list[Any], items: Iterable[Any]) -> list[Any]:
    for batch in batches(items):
        containers[:] = [part.accumulated(container, batch) for part, container in zip(parts, containers, strict=True)]
    return containers


def combine_each(parts: Parts, left: list[Any], right: list[Any]) -> None:
    """Combine the containers of each collector."""
    left[:] = [part.combined(mine, theirs) for part, mine, theirs in zip(parts, left, right, strict=True)]


def deduct_each(parts: Parts) -> Callable[[list[Any], list[Any]], None] | None:
    """Return what takes containers out of others again, if each collector has that."""
    return partial(_deduct_each, parts) if all(part.deducting is not None for part in parts) else None


def _deduct_each(parts: Parts, left: list[Any], right: list[Any]) -> None:
    left[:] = [part.deducted(mine, theirs) for part, mine, theirs in zip(parts, left, right, strict=True)]


def finish_each(parts: Parts, finisher: Callable[[Any], Any], containers: list[Any]) -> Any:
    """Give the results of the collectors, as a tuple, to `finisher`."""
    return finisher(tuple(part.finisher(container) for part, container in zip(parts, containers, strict=True)))
