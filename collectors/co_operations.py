"""Aggregate operations of several inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

from collectors.arguments import checked_count, checked_function
from collectors.bags import Bag
from collectors.compound import accumulate_in, apply_to, combine_each, deduct_each, finish_each, supply_each
from dstream.spi import AggregateOperation, Collector

__all__ = ["co_operation", "to_bags"]

T0 = TypeVar("T0")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
R = TypeVar("R")
R0 = TypeVar("R0")
R1 = TypeVar("R1")
R2 = TypeVar("R2")
R3 = TypeVar("R3")

Of = AggregateOperation


# A type checker looks into the lambdas of a collector only where it expects one.
@overload
def co_operation(
    op0: Collector[T0, Any, R0],
    op1: Collector[T1, Any, R1],
    /,
) -> Of[tuple[T0, T1], Any, tuple[R0, R1]]: ...
@overload
def co_operation(
    op0: Collector[T0, Any, R0],
    op1: Collector[T1, Any, R1],
    /,
    *,
    finish: Callable[[R0, R1], R],
) -> Of[tuple[T0, T1], Any, R]: ...
@overload
def co_operation(
    op0: Collector[T0, Any, R0],
    op1: Collector[T1, Any, R1],
    op2: Collector[T2, Any, R2],
    /,
) -> Of[tuple[T0, T1, T2], Any, tuple[R0, R1, R2]]: ...
@overload
def co_operation(
    op0: Collector[T0, Any, R0],
    op1: Collector[T1, Any, R1],
    op2: Collector[T2, Any, R2],
    /,
    *,
    finish: Callable[[R0, R1, R2], R],
) -> Of[tuple[T0, T1, T2], Any, R]: ...
@overload
def co_operation(
    op0: Collector[T0, Any, R0],
    op1: Collector[T1, Any, R1],
    op2: Collector[T2, Any, R2],
    op3: Collector[T3, Any, R3],
    /,
) -> Of[tuple[T0, T1, T2, T3], Any, tuple[R0, R1, R2, R3]]: ...
@overload
def co_operation(op0: Of[tuple[T0], Any, R0], /) -> Of[tuple[T0], Any, tuple[R0]]: ...
@overload
def co_operation(
    op0: Of[tuple[T0], Any, R0], op1: Of[tuple[T1], Any, R1], /
) -> Of[tuple[T0, T1], Any, tuple[R0, R1]]: ...
@overload
def co_operation(
    op0: Of[tuple[T0], Any, R0], op1: Of[tuple[T1], Any, R1], op2: Of[tuple[T2], Any, R2], /
) -> Of[tuple[T0, T1, T2], Any, tuple[R0, R1, R2]]: ...
@overload
def co_operation(
    op0: Of[tuple[T0], Any, R0],
    op1: Of[tuple[T1], Any, R1],
    op2: Of[tuple[T2], Any, R2],
    op3: Of[tuple[T3], Any, R3],
    /,
) -> Of[tuple[T0, T1, T2, T3], Any, tuple[R0, R1, R2, R3]]: ...
@overload
def co_operation(
    op0: Of[tuple[T0], Any, R0], op1: Of[tuple[T1], Any, R1], /, *, finish: Callable[[R0, R1], R]
) -> Of[tuple[T0, T1], Any, R]: ...
@overload
def co_operation(
    op0: Of[tuple[T0], Any, R0],
    op1: Of[tuple[T1], Any, R1],
    op2: Of[tuple[T2], Any, R2],
    /,
    *,
    finish: Callable[[R0, R1, R2], R],
) -> Of[tuple[T0, T1, T2], Any, R]: ...
@overload
def co_operation(
    op0: Of[Any, Any, Any],
    op1: Of[Any, Any, Any],
    op2: Of[Any, Any, Any],
    op3: Of[Any, Any, Any],
    /,
    *more: Of[Any, Any, Any],
    finish: Callable[..., R],
) -> Of[tuple[Any, ...], Any, R]: ...
@overload
def co_operation(
    op0: Of[Any, Any, Any],
    op1: Of[Any, Any, Any],
    op2: Of[Any, Any, Any],
    op3: Of[Any, Any, Any],
    op4: Of[Any, Any, Any],
    /,
    *more: Of[Any, Any, Any],
) -> Of[tuple[Any, ...], Any, tuple[Any, ...]]: ...
def co_operation(*operations: Any, finish: Callable[..., Any] | None = None) -> Any:
    """Run one operation on each input, and return the tuple of their results, or what `finish` makes of them.

    Args:
        operations: collectors, or aggregate operations of one input.
        finish: takes one argument for each result.

    Raises:
        TypeError: there is none, or one of them is no operation of one input.

    Example:
        >>> from collectors import counting, summing
        >>> op = co_operation(counting(), summing(len))
        >>> op.arity
        2
    """
    results = tuple if finish is None else partial(apply_to, checked_function(finish, "finish"))
    if not operations:
        raise TypeError("co_operation() needs an operation for each input, and there is none")
    for index, each in enumerate(operations):
        if not isinstance(each, AggregateOperation) or each.arity != 1:
            raise TypeError(f"operations[{index}] must be an operation of one input, such as a collector, not {each!r}")
    parts = tuple(each.on_input(0) for each in operations)
    made: AggregateOperation[Any, Any, Any] = AggregateOperation(
        partial(supply_each, parts),
        tuple(partial(accumulate_in, part, index) for index, part in enumerate(parts)),
        partial(combine_each, parts),
        deduct_each(parts),
        finish=partial(finish_each, parts, results),
    )
    return made.called("co_operation(...)")


def to_bags(n: int) -> AggregateOperation[tuple[Any, ...], Any, tuple[list[Any], ...]]:
    """Return a tuple with a list for each of `n` inputs: its items, in encounter order.

    Raises:
        TypeError: `n` is not an int.
        ValueError: it is below 1.

    Example:
        >>> bags = to_bags(2)
        >>> container = bags.create()
        >>> bags.accumulates[1](container, "b")
        >>> bags.finish(container)
        ([], ['b'])
    """
    if checked_count(n, "n") < 1:
        raise ValueError("to_bags() needs an input at least")
    made: AggregateOperation[tuple[Any, ...], Any, tuple[list[Any], ...]] = AggregateOperation(
        partial(_bags, n),
        tuple(partial(_put, index) for index in range(n)),
        _put_together,
        _take_out,
        finish=_lists,
    )
    return made.called("to_bags(...)")


def _bags(count: int) -> list[Bag]:
    return [Bag() for _ in range(count)]


def _put(index: int, bags: list[Bag], item: Any) -> None:
    bags[index].append(item)


def _put_together(left: list[Bag], right: list[Bag]) -> None:
    for mine, theirs in zip(left, right, strict=True):
        mine += theirs


def _take_out(left: list[Bag], right: list[Bag]) -> None:
    for mine, theirs in zip(left, right, strict=True):
        mine.take_out(theirs)


def _lists(bags: list[Bag]) -> tuple[list[Any], ...]:
    return tuple(map(list, bags))
