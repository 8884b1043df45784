"""Collectors of several collectors in one pass, and aggregate operations of several inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

from dstream.arguments import checked_function
from dstream.base.functions import checked_result
from dstream.collectors.arguments import checked_collector, checked_count, named, shown
from dstream.collectors.batches import steps_together
from dstream.errors import UnstableKeyError
from dstream.keys import canonical_all
from dstream.spi import AggregateOperation, Collector, InColumns

__all__ = ["Bag", "all_of", "co_operation", "teeing", "to_bags"]


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
    """Pass each item to both collectors, in one pass, and both results to `fn`.

    Example:
        >>> from collectors import counting, summing
        >>> teeing(summing(), counting(), lambda total, count: total / count).collect([1, 2, 6])
        3.0
    """
    parts = (checked_collector(first, "first"), checked_collector(second, "second"))
    return _together(parts, partial(apply_to, checked_function(fn, "fn")))


def apply_to(fn: Callable[..., Any], results: tuple[Any, ...]) -> Any:
    """Call `fn` with the results as its arguments."""
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
    """Pass each item to all the collectors, in one pass, and return the tuple of their results.

    Args:
        collectors: collectors of the items.
        finish: receives one argument for each result and returns the replacement of the tuple.

    Example:
        >>> from collectors import counting, max_by
        >>> all_of(counting(), max_by(len)).collect(["a", "ccc"])
        (2, Optional['ccc'])
    """
    parts = tuple(checked_collector(part, f"collectors[{index}]") for index, part in enumerate(collectors))
    return _together(parts, tuple if finish is None else partial(apply_to, checked_function(finish, "finish")))


def _together(parts: Parts, whole: Callable[[Any], Any]) -> Collector[Any, Any, Any]:
    steps = steps_together(parts)
    finisher = partial(finish_each, parts, whole)
    return Collector(
        partial(supply_each, parts),
        partial(_accumulate_each, parts),
        partial(combine_each, parts),
        finisher,
        accumulate_all=steps,
        deducting=deduct_each(parts),
        in_columns=_in_columns(parts, whole, finisher, steps),
    )


def _in_columns(
    parts: Parts, whole: Callable[[Any], Any], finisher: Callable[[Any], Any], same_as: Callable[..., Any]
) -> InColumns | None:
    known = [part.on_columns() for part in parts]
    taken = tuple(each for each in known if each is not None and each.makes_containers)
    if not parts or len(taken) < len(parts):
        return None
    finishers = tuple(part.finisher for part in parts)
    return InColumns("several", parts=taken, finishers=finishers, whole=whole, total=finisher, same_as=same_as)


def supply_each(parts: Parts) -> list[Any]:
    """Return a fresh container for each collector."""
    return [part.supplier() for part in parts]


def _accumulate_each(parts: Parts, containers: list[Any], item: Any) -> None:
    for index, part in enumerate(parts):
        accumulate_in(part, index, containers, item)


def accumulate_in(part: Collector[Any, Any, Any], index: int, containers: list[Any], item: Any) -> None:
    """Accumulate an item in one of several containers."""
    following = part.accumulator(containers[index], item)
    if following is not None:
        containers[index] = following


def combine_each(parts: Parts, left: list[Any], right: list[Any]) -> None:
    """Combine the containers of each collector."""
    # In place: a combiner that returns None has changed its left side.
    left[:] = [part.combined(mine, theirs) for part, mine, theirs in zip(parts, left, right, strict=True)]


def deduct_each(parts: Parts) -> Callable[[list[Any], list[Any]], None] | None:
    """Return a function that subtracts containers from others, if each collector has one."""
    return partial(_deduct_each, parts) if all(part.deducting is not None for part in parts) else None


def _deduct_each(parts: Parts, left: list[Any], right: list[Any]) -> None:
    left[:] = [part.deducted(mine, theirs) for part, mine, theirs in zip(parts, left, right, strict=True)]


def finish_each(parts: Parts, finisher: Callable[[Any], Any], containers: list[Any]) -> Any:
    """Call `finisher` with the tuple of the results of the collectors."""
    return finisher(tuple(part.finisher(container) for part, container in zip(parts, containers, strict=True)))


class Bag(list[Any]):
    """A list that equals another one if both have the same items, in any order.

    Items are the same if they are one key of a grouping. Without a reliable hash they are the same if they are equal,
    or if their pickles are equal, such as those of two copies that contain NaN or compare by identity.
    """

    __slots__ = ()

    def take_out(self, others: list[Any]) -> None:
        """Remove, for each of `others`, the first item that is the same.

        Raises:
            ValueError: there is none.
        """
        if _are_equal(self[: len(others)], others):  # A window that slides loses its oldest items.
            del self[: len(others)]
            return
        left = _without(self, others)
        self[:] = _without_one_by_one(self, others) if left is None else left

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list):
            return NotImplemented
        if len(self) != len(other):
            return False
        try:
            Bag(self).take_out(other)
        except ValueError:
            return False
        return True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def _are_equal(left: list[Any], right: list[Any]) -> bool:
    try:
        return list(left) == list(right)
    except Exception:  # Arrays have no truth.
        return False


def _without(items: list[Any], others: list[Any]) -> list[Any] | None:
    """Return the remaining items in one pass, or None if not all have a reliable hash."""
    try:
        taken, keys = Counter(canonical_all(others)), canonical_all(items)
    except UnstableKeyError:
        return None
    left = []
    for key, item in zip(keys, items, strict=True):
        if taken.get(key):
            taken[key] -= 1
        else:
            left.append(item)
    for key in +taken:  # `+` leaves out the keys whose count is 0.
        raise _missing(key)
    return left


def _without_one_by_one(items: list[Any], others: list[Any]) -> list[Any]:
    left = list(items)
    for item in others:
        del left[_place_of(item, left)]
    return left


def _place_of(item: Any, items: list[Any]) -> int:
    try:
        return items.index(item)
    except Exception:  # No item is equal, or a comparison has no truth value.
        form = _pickled(item)
    for place, other in enumerate(items):
        if type(other) is type(item) and form is not None and _pickled(other) == form:
            return place
    raise _missing(item)


def _pickled(item: Any) -> bytes | None:
    import pickle  # lazily: few programs remove items from a bag

    try:
        return pickle.dumps(item)
    except Exception:  # It cannot be pickled, so no copy of it is about.
        return None


def _missing(item: Any) -> ValueError:
    return ValueError(f"{shown(item)} cannot be taken out of a bag that holds nothing equal to it")


T0 = TypeVar("T0")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")


R0 = TypeVar("R0")


Of = AggregateOperation


# A type checker infers the lambdas of a collector only where it expects a collector.
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
    """Run one operation on each input, and return the tuple of their results, or the result of `finish` for them.

    Args:
        operations: collectors, or aggregate operations of one input.
        finish: receives one argument for each result.

    Raises:
        TypeError: there is no operation, or an argument is no operation of one input.

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
