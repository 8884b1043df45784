"""Reductions of terminal operations, as collectors."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import operator
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Generic, TypeVar

from dstream import collectors
from dstream.base.functions import checked_result, refuse_awaitable
from dstream.base.memory import pieces
from dstream.collectors.groups import groups_of_any_key
from dstream.errors import NullElementError
from dstream.failures import shown
from dstream.spi.collector import Collector
from dstream.spi.columns import InColumns
from dstream.values import DoubleSummaryStatistics, ExactSum, IntSummaryStatistics, Optional
from dstream.values.order import choose as first_extreme
from dstream.values.order import holds_nan

__all__ = [
    "Negated",
    "double_statistics",
    "double_sum",
    "extreme",
    "folding",
    "folding_from",
    "folding_onto",
    "int_statistics",
    "int_sum",
    "latest",
    "latest_by_key",
    "nan_extreme",
    "present",
]


T = TypeVar("T")


def present(found: list[T], operation: str) -> Optional[T]:
    """Return the `Optional` of a list with one item or none.

    Raises:
        NullElementError: the item is None, which an `Optional` cannot contain.
    """
    if not found:
        return Optional.empty()
    if found[0] is None:
        raise NullElementError(f"{operation}() found a None, which an Optional cannot hold; filter it out or map it")
    return Optional.of(found[0])


class Negated(Generic[T]):
    """The negation of `predicate`."""

    def __init__(self, predicate: Callable[[T], object]) -> None:
        self.predicate = predicate
        self.__qualname__ = getattr(predicate, "__qualname__", type(predicate).__qualname__)

    def __call__(self, item: T) -> bool:
        """Return whether `predicate` is false for `item`."""
        result = self.predicate(item)
        if type(result) is not bool:
            refuse_awaitable(result)
        return not result


def folding(op: Callable[[T, T], T]) -> Collector[T, list[T], list[T]]:
    """Fold the items with `op`: a list of the one result, or of none for no items."""
    add_all = functools.partial(_fold_all, op)
    return Collector(list, functools.partial(_fold, op), functools.partial(_fold_pair, op), accumulate_all=add_all)


def folding_onto(identity: Any, op: Callable[[Any, Any], Any]) -> Collector[Any, list[Any], Any]:
    """Fold the items with `op`, and at the end fold the result onto `identity`, once."""
    return dataclasses.replace(folding(op), finisher=functools.partial(_onto, identity, op))


def _onto(identity: Any, op: Callable[[Any, Any], Any], buffered: list[Any]) -> Any:
    # Once, after all items: in the container of each partition it would count once per partition.
    return checked_result(op(identity, buffered[0])) if buffered else identity


def _fold(op: Callable[[Any, Any], Any], buffered: list[Any], value: Any) -> None:
    buffered[:] = [checked_result(op(buffered[0], value))] if buffered else [value]


def _fold_pair(op: Callable[[Any, Any], Any], left: list[Any], right: list[Any]) -> None:
    for value in right:
        _fold(op, left, value)


def _fold_all(op: Callable[[Any, Any], Any], buffered: list[Any], items: Iterable[Any]) -> list[Any]:
    items = iter(items)
    if not buffered:
        buffered.extend(islice(items, 1))
    if buffered:
        buffered[0] = checked_result(functools.reduce(op, items, buffered[0]))
    return buffered


def folding_from(
    identity: Any, accumulator: Callable[[Any, Any], Any], combiner: Callable[[Any, Any], Any]
) -> Collector[Any, list[Any], Any]:
    """Fold the items onto a fresh copy of `identity` in each partition that has any."""
    return Collector(
        list,
        functools.partial(_fold_from, identity, accumulator),
        functools.partial(_fold_pair, combiner),
        functools.partial(_or_identity, identity),
        accumulate_all=functools.partial(_fold_all_from, identity, accumulator),
    )


def _fold_from(identity: Any, accumulator: Callable[[Any, Any], Any], buffered: list[Any], item: Any) -> None:
    buffered[:] = [checked_result(accumulator(buffered[0] if buffered else _fresh(identity), item))]


def _fold_all_from(
    identity: Any, accumulator: Callable[[Any, Any], Any], buffered: list[Any], items: Iterable[Any]
) -> list[Any]:
    items = iter(items)
    for first in items:
        _fold_from(identity, accumulator, buffered, first)
        # This reads the other items, so that the loop ends.
        buffered[0] = checked_result(functools.reduce(accumulator, items, buffered[0]))
    return buffered


def _or_identity(identity: Any, buffered: list[Any]) -> Any:
    return buffered[0] if buffered else identity


def _fresh(identity: Any) -> Any:
    """Copy an identity that could be changed, so that no two folds share it."""
    return copy.deepcopy(identity)


def extreme(choose: Callable[..., Any], key: Callable[[Any], Any] | None) -> Collector[Any, list[Any], list[Any]]:
    """Choose the first of the extreme items by `min` or `max`: a list of it, or of none."""
    choose_all = functools.partial(_choose_all, choose, key)
    in_columns = InColumns("first", of=key, same_as=choose_all, first=1, reverse=choose is max)
    one = functools.partial(_choose_one, choose, key)
    # A container is a list of at most one item, so combining two of them is choosing, too.
    return Collector(list, one, choose_all, accumulate_all=choose_all, in_columns=in_columns)


def _choose_one(
    choose: Callable[..., Any], key: Callable[[Any], Any] | None, buffered: list[Any], item: Any
) -> list[Any]:
    return _choose_all(choose, key, buffered, (item,))


def _choose_all(
    choose: Callable[..., Any], key: Callable[[Any], Any] | None, buffered: list[Any], items: Iterable[Any]
) -> list[Any]:
    return _survivor(lambda candidates: first_extreme(choose, candidates, key), buffered, items)


def nan_extreme(choose: Callable[..., Any]) -> Collector[float, list[float], list[float]]:
    """Choose the extreme float; one NaN makes it NaN."""
    choose_all = functools.partial(_choose_all_floats, choose)
    return Collector(list, functools.partial(_choose_float, choose), choose_all, accumulate_all=choose_all)


def _choose_float(choose: Callable[..., Any], buffered: list[float], item: float) -> list[float]:
    return _choose_all_floats(choose, buffered, (item,))


def _choose_all_floats(choose: Callable[..., Any], buffered: list[float], items: Iterable[float]) -> list[float]:
    return _survivor(lambda floats: math.nan if holds_nan(floats) else choose(floats), buffered, items)


_CHUNK = 512
"""Items that fit into the cache of the processor, and do not start the garbage collector."""


def _survivor(choose: Callable[[list[Any]], Any], buffered: list[Any], items: Iterable[Any]) -> list[Any]:
    """Fold items by `choose`, which selects among the buffered items and the next chunk; buffer its last selection."""
    for few in pieces(items, _CHUNK):
        # In chunks: `min` and `max` iterate over a list in C.
        buffered = [choose([*buffered, *few])]
    return buffered


def latest() -> Collector[T, list[T], list[T]]:
    """Return a collector of the last item: a list with it, or an empty one."""
    return Collector(list, _keep, _keep_last, accumulate_all=_keep_last)


def _keep(buffered: list[Any], item: Any) -> None:
    buffered[:] = [item]


def _keep_last(buffered: list[Any], items: Iterable[Any]) -> list[Any]:
    last = deque(items, maxlen=1)
    buffered[:] = last or buffered
    return buffered


def latest_by_key() -> Collector[tuple[Any, T], Any, dict[Any, T]]:
    """Return a collector of the last value of each key, as `dict(pairs)`: None is a valid key and value."""
    last_value = collectors.collecting_and_then(latest(), operator.itemgetter(0))
    return groups_of_any_key(_key_of_pair, collectors.mapping(operator.itemgetter(1), last_value))


def _key_of_pair(item: Any) -> Any:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise TypeError(f"to_dict() takes entries and other pairs of a key and a value, not {shown(item)}")
    return item[0]


def int_sum() -> Collector[int, int, int]:
    """Add ints, which do not overflow."""
    return Collector(int, operator.add, operator.add, accumulate_all=_add_all)


def _add_all(total: int, items: Iterable[int]) -> int:
    return sum(items, total)


def double_sum() -> Collector[float, ExactSum, float]:
    """Add floats with compensation: the result is rounded once, however the items are split."""
    return Collector(ExactSum, ExactSum.add, ExactSum.merge, ExactSum.value, accumulate_all=_add_all_floats)


def _add_all_floats(total: ExactSum, items: Iterable[float]) -> ExactSum:
    total.add_all(items)
    return total


def int_statistics() -> Collector[int, IntSummaryStatistics, IntSummaryStatistics]:
    """Take the statistics of ints."""
    statistics = IntSummaryStatistics
    return Collector(statistics, statistics.accept, statistics.combine, accumulate_all=statistics.accept_all)


def double_statistics() -> Collector[float, DoubleSummaryStatistics, DoubleSummaryStatistics]:
    """Take the statistics of floats."""
    statistics = DoubleSummaryStatistics
    return Collector(statistics, statistics.accept, statistics.combine, accumulate_all=statistics.accept_all)
